//! The admin endpoints: faults and counters.

use super::FleetCounts;
use super::body::FleetBody;
use super::counters::{Attempts, Counters};
use super::errors::json_response;
use super::faults::Order;
use super::server::{Server, lock, same_secret};
use http::{HeaderMap, Method, Request, Response, header, uri::Authority};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use secrecy::SecretString;
use serde_json::{Value, json};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

/// The largest admin body.
const MAX_BODY_BYTES: usize = 64 * 1024;

/// What the admin endpoints work on.
pub(super) struct Admin {
    pub(super) servers: Vec<(Arc<Server>, SocketAddr)>,
    pub(super) attempts: Arc<Mutex<Attempts>>,
    pub(super) token: Option<SecretString>,
    pub(super) token_hint: String,
}

/// Whether a path belongs to the admin endpoints.
pub(super) fn is_admin(path: &str) -> bool {
    path == "/fleet" || path.starts_with("/fleet/")
}

fn refused(status: u16, message: &str) -> Response<FleetBody> {
    json_response(status, &json!({"error": {"message": message}}))
}

impl Admin {
    pub(super) async fn handle(&self, request: Request<Incoming>) -> Response<FleetBody> {
        if !has_loopback_host(&request) {
            return refused(403, "The admin endpoints answer only to a loopback Host, such as 127.0.0.1 or localhost.");
        }
        let changes = request.method() != Method::GET;
        if changes && !self.token_is_right(request.headers()) {
            let message = format!(
                "This call changes the fleet and needs `Authorization: Bearer <token>`. The token: {}",
                self.token_hint
            );
            return refused(401, &message);
        }
        let path = request.uri().path().to_owned();
        match (request.method().as_str(), path.as_str()) {
            ("GET", "/fleet" | "/fleet/servers") => json_response(200, &self.list()),
            ("GET", "/fleet/counters") => json_response(200, &self.counters()),
            ("GET", "/fleet/faults") => json_response(200, &self.faults()),
            ("POST", "/fleet/counters/reset") => {
                self.reset_counters();
                json_response(200, &self.counters())
            }
            ("POST", "/fleet/faults") => match self.order(request).await {
                Ok(faults) => json_response(200, &faults),
                Err(message) => refused(400, &message),
            },
            (_, "/fleet/faults" | "/fleet/counters" | "/fleet/counters/reset") => {
                refused(405, "Faults take GET and POST, counters GET, and counters/reset POST.")
            }
            _ => refused(404, "There are /fleet/servers, /fleet/faults, /fleet/counters and /fleet/counters/reset."),
        }
    }

    fn token_is_right(&self, headers: &HeaderMap) -> bool {
        let Some(token) = &self.token else { return false };
        let bearer = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let bearer = bearer.and_then(|text| text.strip_prefix("Bearer ").or_else(|| text.strip_prefix("bearer ")));
        let plain = headers.get("x-admin-token").and_then(|value| value.to_str().ok());
        [bearer, plain].into_iter().flatten().any(|shown| same_secret(shown, token))
    }

    fn list(&self) -> Value {
        let row = |(server, address): &(Arc<Server>, SocketAddr)| {
            json!({
                "name": server.options.name, "region": server.options.region, "address": address.to_string(),
                "models": server.options.models,
            })
        };
        json!({"servers": self.servers.iter().map(row).collect::<Vec<_>>()})
    }

    pub(super) fn counts(&self) -> FleetCounts {
        let mut counts = FleetCounts::default();
        let mut total = Counters::default();
        for (server, _) in &self.servers {
            total.add(&lock(&server.counters));
            let now = server.snapshot();
            counts.running += u64::from(now.running);
            counts.waiting += u64::from(now.waiting);
        }
        (counts.distinct, counts.most) = lock(&self.attempts).distinct_and_most();
        FleetCounts { requests: total.requests, by_status: total.by_status, ..counts }
    }

    /// Changes the speed of every engine, to which faults add.
    pub(super) fn set_speed_ppm(&self, ppm: u32) {
        self.servers.iter().for_each(|(server, _)| server.set_speed_ppm(ppm));
    }

    /// Changes the slots of every engine.
    pub(super) fn set_slots(&self, slots: u32) {
        self.servers.iter().filter_map(|(server, _)| server.host.as_ref()).for_each(|host| host.set_slots(slots));
    }

    fn counters(&self) -> Value {
        let (mut total, mut running, mut waiting) = (Counters::default(), 0, 0);
        let mut rows = Vec::new();
        for (server, address) in &self.servers {
            let counters = lock(&server.counters).clone();
            let now = server.snapshot();
            total.add(&counters);
            running += u64::from(now.running);
            waiting += u64::from(now.waiting);
            let mut row = counters.json(now.running.into(), now.waiting.into());
            row["name"] = json!(server.options.name);
            row["region"] = json!(server.options.region);
            row["address"] = json!(address.to_string());
            rows.push(row);
        }
        json!({"total": total.json(running, waiting), "servers": rows, "attempts": lock(&self.attempts).json()})
    }

    pub(super) fn reset_counters(&self) {
        for (server, _) in &self.servers {
            *lock(&server.counters) = Counters::default();
        }
        *lock(&self.attempts) = Attempts::default();
    }

    fn faults(&self) -> Value {
        let row = |(server, _): &(Arc<Server>, SocketAddr)| {
            json!({
                "name": server.options.name, "region": server.options.region, "faults": server.present_faults()
            })
        };
        json!({"servers": self.servers.iter().map(row).collect::<Vec<_>>()})
    }

    /// Takes a fault order and gives the faults that hold then.
    async fn order(&self, request: Request<Incoming>) -> Result<Value, String> {
        let body = Limited::new(request.into_body(), MAX_BODY_BYTES).collect().await;
        let body = body.map_err(|error| format!("the body could not be read: {error}"))?.to_bytes();
        let order = Order::read(&body)?;
        let wanted = order.server();
        let selected: Vec<&Arc<Server>> =
            self.servers.iter().map(|(server, _)| server).filter(|server| is_meant(server, &wanted)).collect();
        if selected.is_empty() {
            let known: Vec<&str> = self.servers.iter().map(|(server, _)| server.options.name.as_str()).collect();
            return Err(format!("`server` is `{wanted}`; there are {} (or an index, a region, `*`)", known.join(", ")));
        }
        for server in &selected {
            lock(&server.faults).check(&order)?;
        }
        for server in selected {
            lock(&server.faults).apply(server.clock.now(), &order);
            server.faults_changed.notify_one();
            server.apply_capacity();
        }
        Ok(self.faults())
    }
}

fn is_meant(server: &Server, wanted: &str) -> bool {
    wanted == "*"
        || server.options.name == wanted
        || server.options.region == wanted
        || wanted.parse::<usize>().is_ok_and(|index| index == server.index)
}

/// A page that was led to this address under a foreign name (DNS rebinding) shows that name.
fn has_loopback_host(request: &Request<Incoming>) -> bool {
    let host = request.headers().get(header::HOST).and_then(|value| value.to_str().ok());
    let authority = host.or_else(|| request.uri().authority().map(Authority::as_str));
    let Some(authority) = authority.and_then(|text| text.parse::<Authority>().ok()) else { return false };
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
