//! Fallbacks between models on real sockets: F09, F11, F54.

use crate::support::client::{CHAT, CHAT_PATH, chat, chat_stream, get, post};
use crate::support::plane::{Plane, Setup};
use crate::support::upstream::{ANSWER, Call, Upstream};
use std::time::Duration;
use tokio::time::Instant;

/// Always fails in this way.
async fn failing(status: u16, headers: &'static str) -> Upstream {
    Upstream::start(move |call: Call| async move {
        let words = "x".repeat(4 * 1024);
        call.json(status, headers, &format!("{{\"error\":{{\"message\":\"{words}\",\"type\":\"server_error\"}}}}"))
            .await
    })
    .await
}

/// The model `m` on `u1`, which falls back to `other` on `u2`.
async fn two(first: &Upstream, second: &Upstream) -> Plane {
    Setup::new()
        .model("m", "fallback = [\"other\"]", &[first.address])
        .model("other", "aliases = [\"another\"]", &[second.address])
        .start()
        .await
}

#[tokio::test]
async fn f54_the_next_model_of_the_list_serves_what_the_first_one_does_not() {
    for (status, headers, end, payment) in [
        (429, "", "throttled", "not_sent_bucket"),
        (429, "retry-after: 30\r\n", "throttled", "not_sent_bucket"),
        (529, "", "throttled", "not_sent_bucket"),
        (500, "", "failed", "retry_budget"),
        (503, "", "failed", "retry_budget"),
        (504, "", "timed_out", "retry_budget"),
    ] {
        for request in [chat(), chat_stream()] {
            let (bad, good) = (failing(status, headers).await, Upstream::good().await);
            let plane = two(&bad, &good).await;
            let answer = plane.ask(request).await;
            assert_eq!((answer.status, answer.attempts()), (200, "2"), "{status}: {answer:?}");
            assert_eq!(answer.header("x-seawall-model"), Some("other"));
            assert_eq!((bad.count(), good.count()), (1, 1));
            let sent = String::from_utf8(good.seen()[0].body.clone()).unwrap();
            assert!(sent.contains("\"model\":\"other\""), "it is asked for its own model: {sent}");
            assert_eq!(plane.attempts("u1", end), 1);
            assert_eq!(plane.metric("seawall_attempts_total{", &[("deployment", "u2"), ("payment", payment)]), 1);
            let log: serde_json::Value = serde_json::from_str(plane.log(1).await.lines().next().unwrap()).unwrap();
            assert_eq!((&log["model"], &log["fallback_model"]), (&"m".into(), &"other".into()));
            assert_eq!(plane.metric("seawall_tokens_total{", &[("model", "m")]), 0, "they are the other one's");
            plane.stop().await;
        }
    }
    // An answer of the model itself says nothing of it, and its own mistake stays the client's.
    let (good, other) = (Upstream::good().await, Upstream::good().await);
    let plane = two(&good, &other).await;
    let answer = plane.ask(chat()).await;
    assert_eq!((answer.header("x-seawall-model"), answer.text().as_str()), (None, ANSWER));
    let answer = plane.ask(post(CHAT_PATH, "", CHAT.replace("\"m\"", "\"another\""))).await;
    assert_eq!((answer.header("x-seawall-model"), other.count()), (None, 1));
    plane.stop().await;
    let (bad, other) = (failing(400, "").await, Upstream::good().await);
    let plane = two(&bad, &other).await;
    assert_eq!((plane.ask(chat()).await.status, other.count()), (400, 0));
    plane.stop().await;
    // A refusal says which model was asked last.
    let (bad, other) = (failing(500, "").await, failing(500, "").await);
    let plane = two(&bad, &other).await;
    let answer = plane.ask(chat()).await;
    assert_eq!((answer.status, answer.attempts(), answer.header("x-seawall-model")), (429, "2", Some("other")));
    plane.stop().await;
}

/// Answers everything so.
async fn saying(status: u16, body: &'static str) -> Upstream {
    Upstream::start(move |call: Call| async move { call.json(status, "", body).await }).await
}

const TOO_LONG: &str = concat!(
    r#"{"error": {"code":"context_length_exceeded", "type":"invalid_request_error","#,
    r#""message":"This model's maximum context length is 8 tokens.","param":"messages"}}"#
);

/// `m` on two deployments, without and with a model of a longer context beside it.
#[tokio::test]
async fn f09_only_what_is_too_long_goes_to_a_longer_context_and_nothing_counts_against_health() {
    for (status, body, told, moves) in [
        (400, TOO_LONG, 400, true),
        (400, r#"{"error":{"code":"content_filter","message":"m"}}"#, 400, false),
        (400, r#"{"error":{"type":"invalid_request_error","message":"m"}}"#, 400, false),
        (404, r#"{"error":{"code":"model_not_found","message":"m"}}"#, 404, false),
        (422, r#"{"error":{"message":"m"}}"#, 400, false),
    ] {
        for has_longer in [false, true] {
            let upstreams = [saying(status, body).await, saying(status, body).await];
            let longer = Upstream::good().await;
            let settings = if has_longer { "context_fallback = [\"m-long\"]" } else { "" };
            let plane = Setup::new()
                .model("m", settings, &[upstreams[0].address, upstreams[1].address])
                .model("m-long", "", &[longer.address])
                .start()
                .await;
            let goes = moves && has_longer;
            for number in 0..10 {
                let answer = plane.ask(post(CHAT_PATH, "", CHAT.replace("hi", &number.to_string()))).await;
                if goes {
                    assert_eq!((answer.status, answer.attempts(), answer.text().as_str()), (200, "2", ANSWER));
                    assert_eq!(answer.header("x-seawall-model"), Some("m-long"));
                } else {
                    assert_eq!((answer.status, answer.attempts(), answer.text().as_str()), (told, "1", body));
                    assert_eq!((answer.header("x-seawall-model"), answer.outcome()), (None, "client_error"));
                }
            }
            let made = upstreams.iter().map(Upstream::count).sum::<usize>();
            assert_eq!((made, longer.count()), (10, if goes { 10 } else { 0 }), "{status} {body}");
            assert_eq!(["u1", "u2"].map(|name| plane.deployment(name).health), ["healthy"; 2]);
            plane.stop().await;
        }
    }
}

/// A chain of models that all fail: two attempts, a bounded log, and the process stays alive.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f11_a_chain_of_failing_models_ends() {
    let mut upstreams = Vec::new();
    for _ in 0..4 {
        upstreams.push(failing(500, "").await);
    }
    let plane = Setup::new()
        .model("m", "fallback = [\"b\", \"c\"]", &[upstreams[0].address, upstreams[1].address])
        .model("b", "fallback = [\"c\"]", &[upstreams[2].address])
        .model("c", "", &[upstreams[3].address])
        .start()
        .await;
    let made = || upstreams.iter().map(Upstream::count).sum::<usize>();
    let begun = Instant::now();
    let answer = plane.ask(chat()).await;
    assert_eq!((answer.status, answer.attempts()), (429, "2"), "{answer:?}");
    assert_eq!((answer.code().as_str(), made()), ("upstream_error_retried", 2));
    let log = plane.log(1).await;
    assert!(log.len() <= 8 * 1024, "{} bytes", log.len());
    let mut clients = Vec::new();
    for number in 0..200 {
        let mut client = plane.client().await;
        client.send(post(CHAT_PATH, "", CHAT.replace("hi", &number.to_string()))).await;
        clients.push(client);
    }
    let mut probe = crate::support::client::Client::connect(plane.admin).await;
    for client in &mut clients {
        let answer = client.response().await;
        assert!(answer.status != 200 && ["1", "2"].contains(&answer.attempts()), "{answer:?}");
        probe.send(get("/livez")).await;
        let asked = Instant::now();
        assert_eq!(probe.unchecked().await.status, 200);
        assert!(asked.elapsed() < Duration::from_millis(200));
    }
    let took = begun.elapsed();
    assert!(took < Duration::from_mins(1), "{took:?}");
    // Second attempts are paid for: 10% of the first ones, and one a second of each of the three pools, with one to begin
    // with.
    let floors = 3 * (1 + usize::try_from(took.as_secs()).expect("a minute"));
    assert!(made() <= 2 + 200 + 20 + floors, "{} in {took:?}", made());
    plane.stop().await;
}
