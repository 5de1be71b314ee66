//! Upstreams that say nothing: F14.

use crate::support::client::{chat, chat_stream};
use crate::support::plane::Setup;
use crate::support::upstream::{Call, STREAM, Upstream};
use std::time::Duration;
use tokio::time::Instant;

/// Short times for the steps of an attempt.
pub(crate) const FAST: &str = "[models.timeouts]\nfirst_byte = \"300ms\"\nconnect = \"300ms\"\nidle = \"300ms\"";

#[tokio::test]
async fn f14_silence_from_byte_one_ends_in_time() {
    for request in [chat_stream(), chat()] {
        let upstream = Upstream::start(Call::hang).await;
        let plane = Setup::new().model("m", FAST, &[upstream.address]).start().await;
        let begun = Instant::now();
        let answer = plane.ask(request).await;
        let took = begun.elapsed();
        assert_eq!((answer.status, answer.outcome()), (504, "upstream_timeout"));
        assert!(took >= Duration::from_millis(300) && took < Duration::from_secs(2), "{took:?}");
        upstream.hung_up(1).await;
        plane.stop().await;
    }
}

/// What a silent upstream says before it falls silent.
async fn silent_after(words: &'static str) -> (Upstream, Upstream) {
    let silent = Upstream::start(move |mut call: Call| async move {
        call.send(words).await;
        call.hang().await
    })
    .await;
    (silent, Upstream::good().await)
}

#[tokio::test]
async fn f14_another_deployment_serves_while_nothing_but_comments_came() {
    let comments = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n\
                    8\r\n: ping\n\n\r\n8\r\n: ping\n\n\r\n";
    for (words, request) in [("", chat_stream()), ("", chat()), (STREAM, chat_stream()), (comments, chat_stream())] {
        let (silent, good) = silent_after(words).await;
        let plane = Setup::new()
            .model("m", FAST, &[])
            .deployment(&format!("http://{}", silent.address), "priority = 0")
            .deployment(&format!("http://{}", good.address), "priority = 1")
            .start()
            .await;
        let begun = Instant::now();
        let answer = plane.ask(request).await;
        assert_eq!((answer.status, answer.attempts()), (200, "2"), "{words:?} {answer:?}");
        assert!(begun.elapsed() < Duration::from_secs(2));
        silent.hung_up(1).await;
        assert_eq!((silent.count(), good.count()), (1, 1));
        plane.stop().await;
    }
}

#[tokio::test]
async fn f14_a_handshake_that_never_ends_is_bounded_by_itself() {
    // Its backlog is full and nobody accepts.
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&"127.0.0.1:0".parse::<std::net::SocketAddr>().unwrap().into()).unwrap();
    socket.listen(0).unwrap();
    let address = socket.local_addr().unwrap().as_socket().unwrap();
    let mut held = Vec::new();
    while let Ok(Ok(stream)) =
        tokio::time::timeout(Duration::from_millis(100), tokio::net::TcpStream::connect(address)).await
    {
        held.push(stream);
    }
    let good = Upstream::good().await;
    let timeouts = "[models.timeouts]\nconnect = \"300ms\"";
    let plane = Setup::new()
        .model("m", timeouts, &[])
        .deployment(&format!("http://{address}"), "priority = 0")
        .deployment(&format!("http://{}", good.address), "priority = 1")
        .start()
        .await;
    let begun = Instant::now();
    let answer = plane.ask(chat_stream()).await;
    assert_eq!((answer.status, answer.attempts()), (200, "2"));
    assert!(begun.elapsed() >= Duration::from_millis(300) && begun.elapsed() < Duration::from_secs(2));
    assert_eq!(plane.attempts("u1", "not_sent"), 1);
    plane.stop().await;
}

#[tokio::test]
async fn f14_a_slow_answer_in_one_piece_is_bounded_between_its_pieces() {
    // Six pieces, each within the idle time, together longer than the time for the first byte.
    let slow = Upstream::start(|mut call: Call| async move {
        call.send("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 12\r\n\r\n").await;
        let mut beat = tokio::time::interval(Duration::from_millis(100));
        for _ in 0..6 {
            beat.tick().await;
            call.send("[]").await;
        }
        call.keep()
    })
    .await;
    let plane = Setup::new().model("m", FAST, &[slow.address]).start().await;
    let answer = plane.ask(chat()).await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "[][][][][][]"), "{answer:?}");
    plane.stop().await;
    // The first piece and then silence.
    let (silent, good) = silent_after("HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n[").await;
    let slow_first_byte = "[models.timeouts]\nfirst_byte = \"60s\"\nidle = \"200ms\"";
    let plane = Setup::new()
        .model("m", slow_first_byte, &[])
        .deployment(&format!("http://{}", silent.address), "priority = 0")
        .deployment(&format!("http://{}", good.address), "priority = 1")
        .start()
        .await;
    let answer = plane.ask(chat()).await;
    assert_eq!((answer.status, answer.attempts()), (200, "2"));
    plane.stop().await;
}
