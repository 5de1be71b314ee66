//! Going away: F25.

use crate::support::client::{Client, End, chat, chat_stream, get};
use crate::support::in_time;
use crate::support::plane::{Plane, Setup};
use crate::support::upstream::{Call, DONE, FINISH, LAST_CHUNK, STREAM, Upstream, delta};
use seawall_proxy::run::Drained;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::Instant;

/// Streams and answers that end when the test says so.
async fn held(open: &watch::Sender<bool>) -> Upstream {
    let open = open.clone();
    Upstream::start(move |mut call: Call| {
        let mut opened = open.subscribe();
        async move {
            let is_stream = String::from_utf8_lossy(&call.seen.body).contains("\"stream\":true");
            if !is_stream {
                opened.wait_for(|open| *open).await.unwrap();
                return call.good().await;
            }
            call.send(STREAM).await;
            call.chunk(delta("first")).await;
            opened.wait_for(|open| *open).await.unwrap();
            call.chunk([&delta("last"), FINISH, DONE].concat()).await;
            call.send(LAST_CHUNK).await;
            call.keep()
        }
    })
    .await
}

async fn probe(plane_admin: std::net::SocketAddr) -> (u16, u16) {
    let mut admin = Client::connect(plane_admin).await;
    admin.send(get("/livez")).await;
    let live = admin.unchecked().await.status;
    admin.send(get("/readyz")).await;
    (live, admin.unchecked().await.status)
}

struct Clients {
    streams: Vec<Client>,
    answers: Vec<Client>,
    queued: Vec<Client>,
    idle: Vec<Client>,
}

/// Four of each kind: streams, answers in one piece, requests in the line, idle connections.
async fn clients(plane: &Plane, upstream: &Upstream) -> Clients {
    let mut all = Clients { streams: Vec::new(), answers: Vec::new(), queued: Vec::new(), idle: Vec::new() };
    for _ in 0..4 {
        let mut client = plane.client().await;
        client.send(get("/v1/models")).await;
        assert_eq!(client.response().await.status, 200);
        all.idle.push(client);
        let mut client = plane.client().await;
        client.send(chat_stream()).await;
        client.events(1).await;
        all.streams.push(client);
        let mut client = plane.client().await;
        client.send(chat()).await;
        all.answers.push(client);
    }
    upstream.called(8).await;
    for _ in 0..4 {
        let mut client = plane.client().await;
        client.send(chat()).await;
        all.queued.push(client);
    }
    plane.until("four wait", |plane| plane.waiting() == 4).await;
    all
}

async fn plane(upstream: &Upstream, limit: &str) -> Plane {
    Setup::new()
        .model("m", "", &[])
        .deployment(&format!("http://{}", upstream.address), "capacity = { standard = 8 }")
        .server(&format!("drain_limit = \"{limit}\""))
        .start()
        .await
}

#[tokio::test]
async fn f25_everything_that_runs_or_waits_is_finished() {
    let open = watch::Sender::new(false);
    let upstream = held(&open).await;
    let plane = plane(&upstream, "20s").await;
    let mut all = clients(&plane, &upstream).await;
    let (address, admin, app) = (plane.address, plane.admin, plane.app.clone());
    assert_eq!(probe(admin).await, (200, 200));
    let drain = tokio::spawn(plane.drain());
    in_time("draining", app.draining.cancelled()).await;
    assert_eq!(probe(admin).await, (200, 503));
    // Idle connections are closed, new ones refused.
    for client in &mut all.idle {
        client.closed().await;
    }
    in_time("new connections are refused", async {
        while TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(!drain.is_finished());
    open.send_replace(true);
    for client in &mut all.streams {
        let answer = client.response().await;
        assert_eq!((answer.status, answer.end), (200, End::Complete));
        assert_eq!(answer.text(), [&delta("first"), &delta("last"), FINISH, DONE].concat());
        client.closed().await;
    }
    for client in all.answers.iter_mut().chain(&mut all.queued) {
        let answer = client.response().await;
        assert_eq!((answer.status, answer.header("connection")), (200, Some("close")), "{answer:?}");
        client.closed().await;
    }
    let begun = Instant::now();
    assert_eq!(drain.await.unwrap(), Drained::Complete);
    assert!(begun.elapsed() < Duration::from_secs(1));
    assert_eq!(app.driver.live(), 0);
}

#[tokio::test]
async fn f25_at_the_limit_everyone_is_told() {
    let open = watch::Sender::new(false);
    let upstream = held(&open).await;
    let plane = plane(&upstream, "300ms").await;
    let mut all = clients(&plane, &upstream).await;
    let app = plane.app.clone();
    let begun = Instant::now();
    let drain = tokio::spawn(plane.drain());
    for client in &mut all.streams {
        let answer = client.response().await;
        assert_eq!((answer.status, answer.end), (200, End::Broken));
        let text = answer.text();
        let event = text.strip_prefix(&delta("first")).unwrap().strip_prefix("data: ").unwrap();
        let event: serde_json::Value = serde_json::from_str(event.trim_end()).unwrap();
        assert_eq!(event["error"]["code"], "draining");
    }
    for client in all.answers.iter_mut().chain(&mut all.queued) {
        let answer = client.response().await;
        assert_eq!((answer.status, answer.code().as_str()), (503, "draining"), "{answer:?}");
        client.closed().await;
    }
    assert_eq!(drain.await.unwrap(), Drained::Cut(12));
    assert!(begun.elapsed() >= Duration::from_millis(300) && begun.elapsed() < Duration::from_secs(2));
    assert_eq!(app.driver.live(), 0);
}

#[tokio::test]
async fn f25_a_request_on_an_old_connection_is_sent_elsewhere() {
    let open = watch::Sender::new(false);
    let upstream = held(&open).await;
    let plane = plane(&upstream, "20s").await;
    // Its head is half sent when the drain begins.
    let mut client = plane.client().await;
    let request = chat();
    client.send(&request[..30]).await;
    let mut stream = plane.client().await;
    stream.send(chat_stream()).await;
    stream.events(1).await;
    let app = plane.app.clone();
    let drain = tokio::spawn(plane.drain());
    in_time("draining", app.draining.cancelled()).await;
    client.send(&request[30..]).await;
    // Either it is told so, or its connection was closed before its head was complete: never a hang.
    if let Some(answer) = client.try_response().await {
        crate::support::contract::check(&answer);
        assert_eq!((answer.status, answer.code().as_str()), (503, "draining"));
    }
    open.send_replace(true);
    assert_eq!(stream.response().await.end, End::Complete);
    assert_eq!(drain.await.unwrap(), Drained::Complete);
}
