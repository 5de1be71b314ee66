//! A raw HTTP client on hyper, and fleets to point it at.

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use seawall_lab::fleet::{FleetHandle, FleetOptions, ServerOptions, start};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;

pub(crate) const TOKEN: &str = "the-admin-token";
/// Longer than anything here takes on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(20);

/// Starts these servers on free ports, with the admin token above.
pub(crate) async fn fleet(servers: Vec<ServerOptions>) -> FleetHandle {
    let mut options = FleetOptions::of(([127, 0, 0, 1], 0).into(), servers);
    options.admin_token = Some(TOKEN.into());
    "stands in the test's support module".clone_into(&mut options.token_hint);
    options.seed = 7;
    start(options).await.expect("free loopback ports can be bound")
}

/// One instant server.
pub(crate) async fn instant() -> FleetHandle {
    fleet(vec![ServerOptions::instant("one")]).await
}

pub(crate) async fn try_send(to: SocketAddr, request: Request<Full<Bytes>>) -> hyper::Result<Response<Incoming>> {
    let stream = TcpStream::connect(to).await.expect("the fleet listens");
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    sender.send_request(request).await
}

pub(crate) async fn send(to: SocketAddr, request: Request<Full<Bytes>>) -> Response<Incoming> {
    tokio::time::timeout(LONG, try_send(to, request)).await.expect("an answer in time").expect("an answer")
}

pub(crate) fn post(path: &str, body: &Value) -> Request<Full<Bytes>> {
    Request::post(path).header("host", "127.0.0.1").body(Full::from(body.to_string())).expect("a valid request")
}

pub(crate) fn get(path: &str) -> Request<Full<Bytes>> {
    Request::get(path).header("host", "127.0.0.1").body(Full::default()).expect("a valid request")
}

pub(crate) async fn text(response: Response<Incoming>) -> String {
    let body = tokio::time::timeout(LONG, response.into_body().collect()).await.expect("a body in time");
    String::from_utf8(body.expect("a whole body").to_bytes().to_vec()).expect("UTF-8")
}

/// The body as far as it comes before it breaks, and whether it broke.
pub(crate) async fn broken_text(response: Response<Incoming>) -> (String, bool) {
    let (mut body, mut bytes) = (response.into_body(), Vec::new());
    loop {
        match tokio::time::timeout(LONG, body.frame()).await.expect("an end in time") {
            None => return (String::from_utf8(bytes).expect("UTF-8"), false),
            Some(Err(_)) => return (String::from_utf8(bytes).expect("UTF-8"), true),
            Some(Ok(frame)) => bytes.extend_from_slice(&frame.into_data().unwrap_or_default()),
        }
    }
}

pub(crate) async fn json_of(response: Response<Incoming>) -> (StatusCode, Value) {
    let status = response.status();
    let text = text(response).await;
    (status, serde_json::from_str(&text).expect("a JSON body"))
}

pub(crate) async fn post_json(to: SocketAddr, path: &str, body: &Value) -> (StatusCode, Value) {
    json_of(send(to, post(path, body)).await).await
}

pub(crate) async fn get_json(to: SocketAddr, path: &str) -> Value {
    let (status, value) = json_of(send(to, get(path)).await).await;
    assert_eq!(status, StatusCode::OK, "{path}: {value}");
    value
}

/// The body of a short chat.
pub(crate) fn chat() -> Value {
    json!({"model": "demo-chat", "messages": [{"role": "user", "content": "hi"}]})
}

pub(crate) fn streaming(mut body: Value) -> Value {
    body["stream"] = json!(true);
    body
}

/// Switches a fault with the token.
pub(crate) async fn order(fleet: &FleetHandle, order: &Value) -> (StatusCode, Value) {
    let mut request = post("/fleet/faults", order);
    let bearer = format!("Bearer {TOKEN}").parse().expect("a valid header");
    request.headers_mut().insert("authorization", bearer);
    json_of(send(fleet.admin_addr(), request).await).await
}

/// As `order`, and it must be taken.
pub(crate) async fn fault(fleet: &FleetHandle, wanted: &Value) {
    let (status, answer) = order(fleet, wanted).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
}

pub(crate) async fn counters(fleet: &FleetHandle) -> Value {
    get_json(fleet.admin_addr(), "/fleet/counters").await
}

/// Looks at the counters until they are as wanted.
pub(crate) async fn until_counters(fleet: &FleetHandle, wanted: impl Fn(&Value) -> bool) -> Value {
    let look = async {
        loop {
            let seen = counters(fleet).await;
            if wanted(&seen) {
                return seen;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LONG, look).await.expect("the counters become as wanted")
}

/// The data of each event of a stream, in order, with its event name where it has one.
pub(crate) fn events(stream: &str) -> Vec<(Option<&str>, &str)> {
    let mut events = Vec::new();
    for block in stream.split("\n\n").filter(|block| !block.is_empty() && !block.starts_with(':')) {
        let mut name = None;
        for line in block.lines() {
            if let Some(value) = line.strip_prefix("event: ") {
                name = Some(value);
            } else {
                let data = line.strip_prefix("data: ").expect("each line is an event's name or its data");
                events.push((name, data));
            }
        }
    }
    events
}

/// As `events`, each data as JSON, `[DONE]` as a string.
pub(crate) fn json_events(stream: &str) -> Vec<Value> {
    let value = |data: &str| if data == "[DONE]" { json!(data) } else { serde_json::from_str(data).expect("JSON") };
    events(stream).into_iter().map(|(_, data)| value(data)).collect()
}

/// Sends over HTTP/2 with prior knowledge.
pub(crate) async fn send_http2(to: SocketAddr, request: Request<Full<Bytes>>) -> Response<Incoming> {
    let stream = TcpStream::connect(to).await.expect("the fleet listens");
    let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.expect("an HTTP/2 handshake");
    tokio::spawn(connection);
    sender.send_request(request).await.expect("an answer")
}
