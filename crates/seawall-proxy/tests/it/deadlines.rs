//! Time: F41, and a caller's own deadline of F47.

use crate::support::client::{CHAT, CHAT_PATH, CHAT_STREAM, End, chat, chat_stream, post};
use crate::support::plane::{Plane, Setup};
use crate::support::upstream::{Call, STREAM, Upstream, delta};
use std::time::Duration;
use tokio::time::Instant;

const WITHIN: &str = "x-seawall-deadline-ms: 300\r\n";

/// One place, and someone who holds it.
async fn full(settings: &str) -> (Upstream, Plane, crate::support::client::Client) {
    let upstream = Upstream::start(|mut call: Call| async move {
        if call.number > 0 {
            return call.good().await;
        }
        call.send(STREAM).await;
        call.chunk(delta("x")).await;
        call.hang().await
    })
    .await;
    let plane = Setup::new()
        .model("m", settings, &[])
        .deployment(&format!("http://{}", upstream.address), "capacity = { standard = 1 }")
        .start()
        .await;
    let mut holder = plane.client().await;
    holder.send(chat_stream()).await;
    holder.events(1).await;
    (upstream, plane, holder)
}

#[tokio::test]
async fn f41_a_deadline_that_passes_in_the_line_starts_no_attempt() {
    let (upstream, plane, holder) = full("").await;
    for lines in [WITHIN, "grpc-timeout: 300m\r\n", "x-envoy-expected-rq-timeout-ms: 300\r\n"] {
        let begun = Instant::now();
        let answer = plane.ask(post(CHAT_PATH, lines, CHAT)).await;
        let took = begun.elapsed();
        assert_eq!((answer.outcome(), answer.attempts()), ("deadline_unmeetable", "0"), "{answer:?}");
        assert!(took >= Duration::from_millis(300) && took < Duration::from_millis(800), "{lines}: {took:?}");
    }
    drop(holder);
    assert_eq!(upstream.count(), 1);
    plane.stop().await;
}

#[tokio::test]
async fn f41_without_a_deadline_patience_bounds_the_wait() {
    let (upstream, plane, holder) = full("[models.queue]\npatience = \"300ms\"").await;
    for lines in ["", "x-stainless-read-timeout: 600\r\n", "x-seawall-deadline-ms: 60000\r\n"] {
        let begun = Instant::now();
        let answer = plane.ask(post(CHAT_PATH, lines, CHAT)).await;
        let took = begun.elapsed();
        assert_eq!((answer.status, answer.outcome(), answer.attempts()), (429, "capacity_exhausted", "0"));
        assert!(took >= Duration::from_millis(300) && took < Duration::from_millis(800), "{took:?}");
    }
    drop(holder);
    assert_eq!(upstream.count(), 1);
    plane.stop().await;
}

#[tokio::test]
async fn f41_a_client_that_left_the_line_starts_no_attempt() {
    let (upstream, plane, holder) = full("").await;
    for round in 0..10 {
        let mut client = plane.client().await;
        client.send(chat()).await;
        plane.until("it waits", |plane| plane.waiting() == 1).await;
        if round % 2 == 0 {
            client.reset();
        } else {
            drop(client);
        }
        plane.until("it left", |plane| plane.waiting() == 0).await;
    }
    drop(holder);
    plane.idle().await;
    assert_eq!((upstream.count(), plane.app.driver.live()), (1, 0));
    assert_eq!(plane.outcomes("client_gone"), 11);
    plane.stop().await;
}

#[tokio::test]
async fn f41_the_bound_of_the_line_refuses_at_once() {
    let (upstream, plane, holder) = full("[models.queue]\nmax_waiting = 1").await;
    let mut waiting = plane.client().await;
    waiting.send(chat()).await;
    plane.until("it waits", |plane| plane.waiting() == 1).await;
    let begun = Instant::now();
    let answer = plane.ask(chat()).await;
    assert_eq!((answer.status, answer.outcome()), (429, "capacity_exhausted"));
    assert!(begun.elapsed() < Duration::from_secs(1));
    drop(holder);
    assert_eq!(waiting.response().await.status, 200);
    assert_eq!(upstream.count(), 2);
    plane.stop().await;
}

#[tokio::test]
async fn f41_and_f47_a_deadline_ends_an_attempt_and_says_nothing_of_its_deployment() {
    let upstream = Upstream::start(Call::hang).await;
    let plane = Setup::m(&[upstream.address]).start().await;
    for number in 1..=20 {
        let begun = Instant::now();
        let body = if number % 2 == 0 { CHAT } else { CHAT_STREAM };
        let answer = plane.ask(post(CHAT_PATH, "x-seawall-deadline-ms: 50\r\n", body)).await;
        assert_eq!((answer.outcome(), answer.attempts()), ("deadline_unmeetable", "1"), "{answer:?}");
        assert!(begun.elapsed() < Duration::from_millis(550));
        upstream.hung_up(number).await;
    }
    assert_eq!((plane.deployment("u1").health, plane.attempts("u1", "deadline_passed")), ("healthy", 20));
    plane.stop().await;
}

#[tokio::test]
async fn f41_a_deadline_that_passes_in_mid_stream_is_told_in_the_stream() {
    let upstream = Upstream::start(|mut call: Call| async move {
        call.send(STREAM).await;
        call.chunk(delta("x")).await;
        call.hang().await
    })
    .await;
    let plane = Setup::m(&[upstream.address]).start().await;
    let answer = plane.ask(post(CHAT_PATH, WITHIN, CHAT_STREAM)).await;
    assert_eq!((answer.status, answer.end), (200, End::Broken));
    assert!(answer.text().contains("\"code\":\"deadline_unmeetable\""), "{answer:?}");
    upstream.hung_up(1).await;
    plane.idle().await;
    assert_eq!((plane.outcomes("deadline_unmeetable"), plane.deployment("u1").health), (1, "healthy"));
    plane.stop().await;
}

#[tokio::test]
async fn f41_a_deadline_of_ours_with_garbage_is_the_caller_s_mistake() {
    let upstream = Upstream::good().await;
    let plane = Setup::m(&[upstream.address]).start().await;
    for garbage in ["soon", "0", "-1", "1.5", ""] {
        let answer = plane.ask(post(CHAT_PATH, &format!("x-seawall-deadline-ms: {garbage}\r\n"), CHAT)).await;
        assert_eq!((answer.status, answer.code().as_str()), (400, "invalid_header"), "{garbage}");
    }
    assert_eq!(upstream.count(), 0);
    plane.stop().await;
}
