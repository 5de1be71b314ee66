//! What clients are told, when, and after how many attempts: F01, F02, F03, F09, F28, F30, F39.

use crate::support::client::{CHAT_PATH, Client, chat, chat_of, post};
use crate::support::plane::Setup;
use crate::support::upstream::Upstream;
use std::time::Duration;
use tokio::time::Instant;

#[tokio::test]
async fn f01_an_upstream_s_wait_reaches_the_client_in_our_forms() {
    let headers = "retry-after: 17\r\nretry-after-ms: 17000\r\n";
    let upstream = Upstream::always(429, headers, r#"{"error":{"code":"429","message":"slow down"}}"#).await;
    let plane = Setup::m(&[upstream.address]).start().await;
    let answer = plane.ask(chat()).await;
    // By the contract: at least the upstream's wait, up to one and a half of it, and the code of the table.
    assert_eq!((answer.status, answer.code().as_str()), (429, "capacity_exhausted"));
    assert!((17..=26).contains(&answer.retry_after()), "{answer:?}");
    assert_eq!((upstream.count(), answer.attempts()), (1, "1"));
    plane.stop().await;
}

/// An upstream that refuses with these headers until its second is over. Returns when the second request came after
/// the first.
async fn second_attempt(headers: impl Fn() -> String + Send + Sync + 'static) -> Duration {
    let upstream = Upstream::start(move |call| {
        let headers = headers();
        async move { if call.number == 0 { call.json(429, &headers, "{}").await } else { call.good().await } }
    })
    .await;
    let plane = Setup::m(&[upstream.address]).start().await;
    let answer = plane.ask(chat()).await;
    assert_eq!((answer.status, answer.attempts()), (200, "2"));
    plane.stop().await;
    let seen = upstream.seen();
    assert_eq!(seen.len(), 2);
    seen[1].at - seen[0].at
}

#[tokio::test]
async fn f02_the_second_attempt_waits_for_the_stated_seconds() {
    let gap = second_attempt(|| "retry-after: 1\r\n".to_owned()).await;
    assert!(gap >= Duration::from_secs(1) && gap < Duration::from_secs(3), "{gap:?}");
}

#[tokio::test]
async fn f02_the_second_attempt_waits_for_the_stated_milliseconds() {
    let gap = second_attempt(|| "retry-after-ms: 300\r\n".to_owned()).await;
    assert!(gap >= Duration::from_millis(300) && gap < Duration::from_secs(2), "{gap:?}");
}

#[tokio::test]
async fn f02_the_second_attempt_waits_for_the_stated_date() {
    let gap = second_attempt(|| {
        let at = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(2);
        format!("retry-after: {}\r\n", at.strftime("%a, %d %b %Y %H:%M:%S GMT"))
    })
    .await;
    // A date has whole seconds: up to one of the two is cut off.
    assert!(gap >= Duration::from_millis(990) && gap < Duration::from_secs(4), "{gap:?}");
}

#[tokio::test]
async fn f02_garbage_for_a_wait_is_a_short_wait() {
    for garbage in ["soon", "-5", "1000000000000"] {
        let gap = second_attempt(move || format!("retry-after: {garbage}\r\n")).await;
        assert!(gap < Duration::from_secs(2), "{garbage}: {gap:?}");
    }
}

#[tokio::test]
async fn f02_nobody_waits_for_a_time_beyond_patience() {
    let upstream = Upstream::always(429, "retry-after: 60\r\n", "{}").await;
    let plane = Setup::m(&[upstream.address]).start().await;
    let begun = Instant::now();
    let answer = plane.ask(chat()).await;
    // Beyond 58 s no client can be told when to come back: it is told not to.
    assert_eq!((answer.status, answer.header("x-should-retry")), (429, Some("false")));
    assert_eq!(upstream.count(), 1);
    assert!(begun.elapsed() < Duration::from_secs(2));
    plane.stop().await;
}

#[tokio::test]
async fn f03_the_only_deployment_is_never_taken_out() {
    let upstream = Upstream::start(|call| async move {
        if call.number < 6 { call.json(500, "", "{}").await } else { call.good().await }
    })
    .await;
    let plane = Setup::m(&[upstream.address]).start().await;
    for number in 0..12 {
        let answer = plane.ask(chat_of(number)).await;
        assert_eq!(answer.status, if number < 6 { 503 } else { 200 }, "request {number}: {answer:?}");
    }
    assert_eq!(upstream.count(), 12);
    plane.stop().await;
}

#[tokio::test]
async fn f09_a_client_s_mistake_is_tried_once_and_told_in_the_upstream_s_words() {
    let cases = [
        (400, 400, r#"{"error":{"code":"context_length_exceeded","type":"invalid_request_error","message":"é"}}"#),
        (400, 400, r#"{"error":{"code":"content_filter","message":"m","innererror":{"x":1.0}}}"#),
        (400, 400, r#"{ "error" : {"type":"invalid_request_error","message":"m"}}"#),
        (404, 404, r#"{"error":{"code":"model_not_found","message":"m"}}"#),
        (413, 413, "<html>too large</html>"),
        (422, 400, r#"{"error":{"message":"unprocessable"}}"#),
    ];
    for (status, told, body) in cases {
        let first = Upstream::always(status, "retry-after: 9\r\nx-should-retry: true\r\n", body).await;
        let second = Upstream::always(status, "retry-after: 9\r\n", body).await;
        let plane = Setup::m(&[first.address, second.address]).start().await;
        for _ in 0..20 {
            let answer = plane.ask(chat()).await;
            assert_eq!((answer.status, answer.text().as_str()), (told, body));
            assert_eq!((answer.outcome(), answer.attempts()), ("client_error", "1"));
        }
        assert_eq!(first.count() + second.count(), 20);
        assert_eq!((plane.deployment("u1").health, plane.deployment("u2").health), ("healthy", "healthy"));
        plane.stop().await;
    }
}

#[tokio::test]
async fn f30_every_reason_for_no_answer_has_its_own_status() {
    let dead = free_address().await;
    let busy = Upstream::always(429, "retry-after: 20\r\n", "{}").await;
    let locked = Upstream::always(401, "", r#"{"error":{"message":"bad key sk-123"}}"#).await;
    let plane = Setup::new()
        .model("dead", "", &[dead])
        .model("mixed", "[models.queue]\npatience = \"50ms\"", &[busy.address, dead])
        .model("locked", "", &[locked.address])
        .tenant("team", "")
        .start()
        .await;
    for round in 0..10 {
        let ask = |model: &str| {
            let body = format!(r#"{{"model":"{model}","user":"{round}"}}"#);
            post(CHAT_PATH, "api-key: secret-team\r\n", body)
        };
        let answer = plane.ask(ask("dead")).await;
        assert_eq!((answer.status, answer.code().as_str()), (503, "no_healthy_deployment"), "{answer:?}");
        let answer = plane.ask(ask("mixed")).await;
        assert_eq!(answer.status, 429, "{round} {answer:?}");
        let answer = plane.ask(ask("locked")).await;
        assert_eq!((answer.status, answer.code().as_str()), (503, "upstream_auth"), "{answer:?}");
        assert!(!answer.text().contains("sk-123"));
        let answer = plane.ask(ask("zzz")).await;
        assert_eq!((answer.status, answer.code().as_str()), (404, "model_not_found"));
    }
    let answer = plane.ask(post(CHAT_PATH, "api-key: wrong\r\n", r#"{"model":"dead"}"#)).await;
    assert_eq!(answer.status, 401);
    // The refused requests of the closed deployment cost it nothing: it was asked once.
    assert_eq!((busy.count(), plane.deployment("u2").health), (1, "healthy"));
    plane.stop().await;
}

/// Some servers quote the key that they refuse.
#[tokio::test]
async fn f31_a_refused_credential_that_is_quoted_reaches_neither_the_client_nor_the_log() {
    let locked = Upstream::always(401, "", r#"{"error":{"message":"Incorrect key: secret-canary"}}"#).await;
    let setup = Setup::new().model("m", "", &[]);
    let url = format!("http://{}", locked.address);
    let plane = setup.deployment(&url, "credential = { env = \"CANARY\" }").start().await;
    let answer = plane.ask(chat()).await;
    assert_eq!((answer.status, answer.code().as_str()), (503, "upstream_auth"), "{answer:?}");
    assert!(locked.seen()[0].header("authorization").is_some_and(|value| value == "Bearer secret-canary"));
    let log = plane.log(1).await;
    assert!(log.contains(r#""upstream_error":"status 401"#), "{log}");
    assert!(!answer.text().contains("canary") && !log.contains("canary"), "{log}");
    plane.stop().await;
}

/// A loopback address on which nothing listens.
pub(crate) async fn free_address() -> std::net::SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap()
}

#[tokio::test]
async fn f28_only_the_overflow_goes_to_the_second_priority() {
    let reserved = Upstream::start(|call| async move {
        if call.number % 2 == 0 {
            call.good().await
        } else {
            call.json(429, "retry-after-ms: 80\r\nretry-after: 1\r\n", "{}").await
        }
    })
    .await;
    let spare = Upstream::good().await;
    let plane = Setup::new()
        .model("m", "", &[])
        .deployment(&format!("http://{}", reserved.address), "capacity = { provisioned = 5 }\npriority = 0")
        .deployment(&format!("http://{}", spare.address), "priority = 1")
        .start()
        .await;
    for number in 0..20 {
        let begun = Instant::now();
        let answer = plane.ask(chat()).await;
        assert_eq!(answer.status, 200, "{number}");
        assert!(begun.elapsed() < Duration::from_millis(900), "it does not sleep before it spills over");
    }
    // One was served, one refused: from then on the stated second is kept.
    assert!(reserved.count() >= 2 && spare.count() >= 1);
    assert_eq!(reserved.count() + spare.count(), 20 + usize::try_from(plane.attempts("u1", "throttled")).unwrap());
    assert_eq!(plane.deployment("u1").health, "healthy");
    plane.stop().await;
}

#[tokio::test]
async fn f39_a_dead_pool_gets_little_more_than_one_attempt_a_request() {
    let upstreams = [
        Upstream::always(503, "", "{}").await,
        Upstream::always(503, "", "{}").await,
        Upstream::always(503, "", "{}").await,
    ];
    let addresses = upstreams.each_ref().map(|upstream| upstream.address);
    let plane = Setup::m(&addresses).start().await;
    let requests: u32 = 200;
    let mut client = plane.client().await;
    for number in 0..requests {
        let count = format!("x-stainless-retry-count: {}\r\n", number % 3);
        let body = crate::support::client::CHAT.replace("hi", &(number / 3).to_string());
        client.send(post(CHAT_PATH, &count, body)).await;
        let answer = client.response().await;
        assert!([429, 503].contains(&answer.status), "{answer:?}");
        if answer.attempts() == "2" {
            assert_eq!(answer.header("x-should-retry"), Some("false"));
        }
    }
    let attempts: usize = upstreams.iter().map(Upstream::count).sum();
    // A tenth of the requests, and the floor of one a second over the window of ten.
    assert!(attempts <= 200 + 20 + 10, "{attempts}");
    plane.stop().await;
}

#[tokio::test]
async fn f23_nothing_but_a_request_for_inference_reaches_an_upstream() {
    let upstream = Upstream::good().await;
    let plane = Setup::m(&[upstream.address]).start().await;
    let mut admin = Client::connect(plane.admin).await;
    for path in ["/livez", "/readyz", "/statusz", "/metrics"] {
        for _ in 0..50 {
            admin.send(crate::support::client::get(path)).await;
            assert_eq!(admin.unchecked().await.status, 200);
        }
    }
    for path in ["/v1/models", "/v1/models/m"] {
        assert_eq!(plane.ask(crate::support::client::get(path)).await.status, 200);
    }
    for path in ["/health", "/healthz", "/", "/v1/health"] {
        assert_eq!(plane.ask(crate::support::client::get(path)).await.status, 404);
    }
    assert_eq!((upstream.count(), upstream.connections()), (0, 0));
    assert_eq!(plane.ask(chat()).await.status, 200);
    assert_eq!(upstream.count(), 1);
    plane.stop().await;
}
