//! The operators' port: life, readiness, state, metrics, and the calls that change something.
//!
//! Liveness depends on this process alone, readiness on its own configuration and listeners (law 7): neither asks an
//! upstream. Every call needs a Host that is this machine, or the admin address itself, so that a web page cannot reach
//! it by rebinding a name; calls that change something need the token of `<data-dir>/admin-token` too.

use crate::admin_token::AdminToken;
use crate::app::App;
use crate::body::ResponseBody;
use crate::status;
use bytes::Bytes;
use http::header::{ALLOW, AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";
const METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The admin surface.
#[derive(Debug)]
pub struct Admin {
    /// The shared state.
    pub app: Arc<App>,
    /// What a call that changes something must carry.
    pub token: AdminToken,
    /// Where it listens.
    pub address: SocketAddr,
}

impl Admin {
    /// Answers one call.
    pub fn handle(&self, request: &Request<Incoming>) -> Response<ResponseBody> {
        if !self.host_is_ours(request.headers()) {
            return text(StatusCode::FORBIDDEN, "The Host header must be this machine: call it by 127.0.0.1.\n");
        }
        let path = request.uri().path();
        match (request.method(), path) {
            (&Method::GET, "/readyz") if self.app.draining.is_cancelled() => {
                text(StatusCode::SERVICE_UNAVAILABLE, "draining\n")
            }
            (&Method::GET, "/livez" | "/readyz") => text(StatusCode::OK, "ok\n"),
            (&Method::GET, "/statusz") => respond(StatusCode::OK, JSON, status::render(&self.app)),
            (&Method::GET, "/metrics") => {
                respond(StatusCode::OK, METRICS, self.app.metrics.render(&self.app.readings()))
            }
            (&Method::POST, "/admin/drain") => self.drain(request.headers()),
            (_, "/admin/drain") => not_allowed("POST"),
            (_, "/livez" | "/readyz" | "/statusz" | "/metrics") => not_allowed("GET"),
            _ => text(
                StatusCode::NOT_FOUND,
                "Unknown path. There are: GET /livez, /readyz, /statusz, /metrics; POST /admin/drain.\n",
            ),
        }
    }

    fn drain(&self, headers: &HeaderMap) -> Response<ResponseBody> {
        let presented = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let presented = presented.and_then(|value| value.strip_prefix("Bearer "));
        if !presented.is_some_and(|presented| self.token.matches(presented)) {
            let hint = format!("Send `Authorization: Bearer TOKEN` with the token of {}.\n", self.token.hint());
            return text(StatusCode::UNAUTHORIZED, &hint);
        }
        self.app.draining.cancel();
        text(StatusCode::ACCEPTED, "draining\n")
    }

    fn host_is_ours(&self, headers: &HeaderMap) -> bool {
        let Some(host) = headers.get(HOST).and_then(|value| value.to_str().ok()) else { return false };
        host_names_loopback(host) || host.parse::<SocketAddr>().is_ok_and(|address| address.ip() == self.address.ip())
    }
}

/// Whether a Host header names this machine by its loopback address or `localhost`.
fn host_names_loopback(host: &str) -> bool {
    if host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback()) {
        return true;
    }
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn not_allowed(methods: &'static str) -> Response<ResponseBody> {
    let mut response = text(StatusCode::METHOD_NOT_ALLOWED, &format!("This path takes {methods}.\n"));
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(methods));
    response
}

fn text(status: StatusCode, text: &str) -> Response<ResponseBody> {
    respond(status, TEXT, text.to_owned())
}

fn respond(status: StatusCode, kind: &'static str, body: String) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::full(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

#[cfg(test)]
mod tests {
    use super::host_names_loopback;

    #[test]
    fn only_this_machine_is_loopback() {
        for host in ["localhost", "LocalHost:9090", "127.0.0.1:9090", "127.8.8.8", "[::1]:9090", "::1"] {
            assert!(host_names_loopback(host), "{host}");
        }
        for host in ["", "example.com", "localhost.example.com:9090", "10.0.0.1:9090", "127.0.0.1.example.com", ":9090"]
        {
            assert!(!host_names_loopback(host), "{host}");
        }
    }
}
