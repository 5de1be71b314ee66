//! Whole runs against a server on loopback.

mod server;

use super::*;
use futures_util::FutureExt;
use http::{HeaderName, HeaderValue};
use server::{Body, Server, streamed, whole};
use std::collections::BTreeMap;
use std::future::pending;
use std::sync::OnceLock;

const OK: &str = r#"{"choices":[{"message":{"content":"hi"}}]}"#;

fn options(server: &Server, count: u64) -> LoadOptions {
    LoadOptions {
        rate_per_second: 200.0,
        limit: Limit::Count(count),
        patience: Duration::from_secs(30),
        ..LoadOptions::new(server.url())
    }
}

async fn finished(options: LoadOptions) -> Report {
    run(options, pending(), |_| {}).await.expect("the options are right")
}

/// Answers everything alike.
async fn constant(answer: impl Fn() -> http::Response<Body> + Send + Sync + 'static) -> Server {
    Server::start(move |_| std::future::ready(answer()).boxed()).await
}

fn adds_up(report: &Report) {
    assert_eq!(report.arrivals, report.sent + report.not_sent);
    assert_eq!(report.sent, report.succeeded + report.failed + report.cancelled);
    assert_eq!(report.failures.iter().map(|failure| failure.count).sum::<u64>(), report.failed);
    assert_eq!(report.requests_by_attempts.values().sum::<u64>(), report.sent);
    assert_eq!(report.latency.count, report.succeeded + report.failed);
    assert_eq!(report.profiles.iter().map(|group| group.sent).sum::<u64>(), report.sent);
    assert_eq!(report.tenants.iter().map(|group| group.succeeded).sum::<u64>(), report.succeeded);
}

#[tokio::test]
async fn a_stall_is_seen_by_all_the_calls_that_came_in_the_meantime() {
    const STALL: Duration = Duration::from_millis(500);
    // From the 40th attempt on nothing is answered until the stall is over, as if the server's process were stopped.
    let stall_ends: Arc<OnceLock<Instant>> = Arc::default();
    let server = Server::start(move |number| {
        let stall_ends = Arc::clone(&stall_ends);
        async move {
            if number >= 40 {
                sleep_until(*stall_ends.get_or_init(|| clock::now() + STALL)).await;
            }
            whole(200, &[], OK)
        }
        .boxed()
    })
    .await;
    let report = finished(options(&server, 240)).await;
    adds_up(&report);
    assert_eq!((report.succeeded, report.failed), (240, 0));
    // 100 of 240 calls were due during the stall, and waited 500, 495, 490, ... ms. A closed loop would have shown as
    // many slow calls as it had connections.
    assert!(report.latency.max_ms >= 480.0, "{report:?}");
    assert!(report.latency.p90_ms >= 350.0, "{report:?}");
    // 100 calls x 250 ms / 240 calls.
    assert!(report.latency.mean_ms >= 90.0, "{report:?}");
}

/// The attempts of each call, in order.
fn by_call(server: &Server) -> BTreeMap<String, Vec<server::Seen>> {
    let mut calls: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for seen in server.seen() {
        calls.entry(seen.user()).or_default().push(seen);
    }
    calls
}

#[tokio::test]
async fn openai_python_makes_three_attempts_with_one_body_and_counts_them() {
    const HEADERS: &[(&str, &str)] = &[("retry-after-ms", "1"), ("retry-after", "1")];
    let server = constant(|| whole(503, HEADERS, r#"{"error":{"type":"t","code":"down"}}"#)).await;
    let report = finished(options(&server, 5)).await;
    adds_up(&report);
    assert_eq!((report.failed, report.attempts, report.max_attempts), (5, 15, 3));
    assert_eq!(report.requests_by_attempts, BTreeMap::from([(3, 5)]));
    assert_eq!(report.attempt_answers, BTreeMap::from([("503".to_owned(), 15)]));
    let failure = FailureCount { kind: FailureKind::Status, status: Some(503), code: Some("down".into()), count: 5 };
    assert_eq!(report.failures, [failure]);
    assert_eq!((report.waits.stated, report.waits.own), (10, 0));
    let calls = by_call(&server);
    assert_eq!(calls.len(), 5, "every call has its own body");
    for attempts in calls.values() {
        let counts: Vec<_> = attempts.iter().map(|seen| seen.header("x-stainless-retry-count")).collect();
        assert_eq!(counts, [Some("0"), Some("1"), Some("2")]);
        assert!(attempts.iter().all(|seen| seen.body == attempts[0].body));
        assert_eq!(attempts[0].header("user-agent"), Some("OpenAI/Python 2.54.0"));
        assert_eq!(attempts[0].header("authorization"), Some("Bearer demo-key"));
        assert_eq!(attempts[0].path, "/v1/chat/completions");
    }
}

#[tokio::test]
async fn a_gateway_tells_its_client_503_and_every_call_is_told_of() {
    let server = Server::start(|_| pending().boxed()).await;
    let team = (HeaderName::from_static("x-team"), HeaderValue::from_static("blue"));
    let profiles: Mix<Client> = "none".parse().unwrap();
    let calls = LoadOptions {
        behind_gateway: vec![*profiles.item(0)],
        profiles,
        attempt_timeout: Some(Duration::from_millis(30)),
        headers: vec![team],
        ..options(&server, 3)
    };
    let alone = LoadOptions { behind_gateway: Vec::new(), ..calls.clone() };
    let mut told = Vec::new();
    let each = |ended: EndedCall<'_>| told.push((ended.number, ended.attempts, ended.ending.clone()));
    let report = run_each(calls, pending(), |_| {}, each).await.expect("the options are right");
    adds_up(&report);
    told.sort_by_key(|(number, ..)| *number);
    let refused = Ending::Failure { kind: FailureKind::Status, status: Some(503), code: None };
    assert_eq!(told, [0, 1, 2].map(|number| (number, 1, refused.clone())));
    assert!(server.seen().iter().all(|seen| seen.header("x-team") == Some("blue")));
    // Without the gateway the client knows that it was its own limit.
    assert_eq!(finished(alone).await.failures[0].kind, FailureKind::ReadTimeout);
}

#[tokio::test]
async fn profiles_of_a_mix_retry_each_in_its_own_way() {
    let server = constant(|| whole(503, &[("x-should-retry", "false")], "{}")).await;
    let mix = "openai-python,immediate,azure-core-python,none".parse().unwrap();
    let calls = LoadOptions { profiles: mix, ..options(&server, 40) };
    // Azure's second and third waits are 1.6 and 3.2 s: its callers here do not wait that long.
    let report = finished(LoadOptions { patience: Duration::from_millis(1_500), ..calls }).await;
    adds_up(&report);
    let attempts: Vec<_> = report.profiles.iter().map(|group| group.attempts_per_request).collect();
    assert_eq!(attempts, [1.0, 4.0, 2.0, 1.0]);
    let azure = report.profiles[2].sent;
    let lost = report.failures.iter().find(|failure| failure.kind == FailureKind::Patience);
    assert_eq!(lost.map(|failure| failure.count), Some(azure));
    assert!(report.latency.max_ms >= 1_498.0, "{report:?}");
    for attempts in by_call(&server).values() {
        let is_azure = attempts[0].header("user-agent").is_some_and(|agent| agent.starts_with("azsdk-"));
        let ids: Vec<_> = attempts.iter().map(|seen| seen.header("x-ms-client-request-id")).collect();
        assert_eq!(ids[0].is_some(), is_azure);
        assert!(ids.iter().all(|id| *id == ids[0]), "the id is stable over attempts");
    }
}

#[tokio::test]
async fn streams_are_judged_by_how_they_end() {
    const TOKEN: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    const LATE_ERROR: &str = "data: {\"error\":{\"code\":\"lost\"}}\n\n";
    const DONE: &str = "data: [DONE]\n\n";
    let server = Server::start(|number| {
        let response = match number % 5 {
            0 => streamed(&[TOKEN, TOKEN, TOKEN, DONE], false),
            1 => streamed(&[TOKEN, TOKEN], false),
            2 => streamed(&[TOKEN, LATE_ERROR], true),
            3 => streamed(&[TOKEN], true),
            _ => streamed(&[LATE_ERROR], false),
        };
        std::future::ready(response).boxed()
    })
    .await;
    let report = finished(LoadOptions { stream_share: 1.0, ..options(&server, 50) }).await;
    adds_up(&report);
    let StreamReport { asked, succeeded, without_done, error_event, broken, .. } = report.streams;
    assert_eq!((asked, succeeded, without_done, error_event, broken), (50, 10, 10, 20, 10));
    assert_eq!(report.attempts, 50, "nothing is repeated once a stream has begun");
    assert_eq!((report.time_to_first_token.count, report.succeeded), (10, 10));
    assert!(report.time_to_first_token.max_ms <= report.latency.max_ms);
    assert!(report.gaps.count <= 30, "at most three gaps between the four chunks of ten streams");
}

#[tokio::test]
async fn a_first_event_in_error_is_repeated_by_the_clients_that_do() {
    let server = constant(|| streamed(&["data: {\"error\":{\"code\":\"503\"}}\n\n"], false)).await;
    let options = LoadOptions {
        stream_share: 1.0,
        profiles: "vercel-ai".parse().unwrap(),
        patience: Duration::from_secs(4),
        ..options(&server, 3)
    };
    // Its waits are 2 and 4 s, so that four seconds see two attempts.
    let report = finished(options).await;
    assert_eq!((report.attempts, report.failed), (6, 3));
}

#[tokio::test]
async fn arrivals_beyond_the_bound_are_counted_and_not_sent() {
    let server = Server::start(|_| pending().boxed()).await;
    let bounded = LoadOptions { max_in_flight: 3, patience: Duration::from_secs(2), ..options(&server, 40) };
    let report = finished(bounded).await;
    adds_up(&report);
    assert_eq!((report.arrivals, report.sent, report.not_sent), (40, 3, 37));
    assert_eq!(report.failures[0].kind, FailureKind::Patience);
    assert!(report.render().contains("raise --max-in-flight"));
    assert_eq!(server.seen().len(), 3);
}

#[tokio::test]
async fn faults_are_told_apart() {
    // Bound but not listening: refuses, and nobody else gets the port meanwhile.
    let closed = tokio::net::TcpSocket::new_v4().expect("a socket");
    closed.bind(([127, 0, 0, 1], 0).into()).expect("loopback has a free port");
    let refusing_url = format!("http://{}", closed.local_addr().expect("a bound socket has an address"));
    let once = |url: String| LoadOptions {
        limit: Limit::Count(1),
        profiles: "none".parse().unwrap(),
        attempt_timeout: Some(Duration::from_millis(200)),
        ..LoadOptions::new(url)
    };
    let silent = Server::start(|_| pending().boxed()).await;
    let timed_out = finished(once(silent.url())).await;
    assert_eq!(timed_out.failures[0].kind, FailureKind::ReadTimeout);
    let torn = constant(|| streamed_as_json(&["{"])).await;
    assert_eq!(finished(once(torn.url())).await.failures[0].kind, FailureKind::Reset);
    let lying = constant(|| whole(200, &[], r#"{"error":{"code":"oops"}}"#)).await;
    let failure = finished(once(lying.url())).await.failures.remove(0);
    assert_eq!((failure.kind, failure.code.as_deref()), (FailureKind::ErrorInSuccess, Some("oops")));
    let moved = constant(|| whole(302, &[("location", "/")], "")).await;
    assert_eq!(finished(once(moved.url())).await.failures[0].status, Some(302));
    let refused = finished(once(refusing_url)).await;
    assert_eq!(refused.failures[0].kind, FailureKind::Refused);
    assert_eq!((refused.attempt_answers["refused"], refused.local_limit_faults), (1, 0));
}

/// A whole answer that breaks off.
fn streamed_as_json(chunks: &'static [&'static str]) -> http::Response<Body> {
    let mut response = streamed(chunks, true);
    response.headers_mut().insert("content-type", "application/json".parse().expect("it is valid"));
    response
}

/// Tells when it is dropped.
struct OnDrop(tokio::sync::mpsc::Sender<()>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        // Full only where a test reads none of them.
        let _ = self.0.try_send(());
    }
}

#[tokio::test]
async fn a_caller_out_of_patience_hangs_up() {
    let (sender, mut dropped) = tokio::sync::mpsc::channel(16);
    let server = Server::start(move |_| {
        let guard = OnDrop(sender.clone());
        async move {
            let _guard = guard;
            pending().await
        }
        .boxed()
    })
    .await;
    let report = finished(LoadOptions { patience: Duration::from_millis(500), ..options(&server, 2) }).await;
    assert_eq!((report.failed, report.failures[0].kind), (2, FailureKind::Patience));
    // The server drops a request's work when its connection ends; were they kept open, this would never return.
    for _ in 0..2 {
        dropped.recv().await.expect("the server lives");
    }
}

#[tokio::test]
async fn a_connection_closed_while_idle_costs_no_attempt() {
    let url = server::closing_after_each_answer().await;
    let calls = LoadOptions { limit: Limit::Count(30), profiles: "none".parse().unwrap(), ..LoadOptions::new(url) };
    let report = finished(LoadOptions { rate_per_second: 100.0, ..calls }).await;
    adds_up(&report);
    assert_eq!((report.succeeded, report.attempts, report.connections_opened), (30, 30, 30));
}

#[tokio::test]
async fn a_cancelled_run_reports_what_there_was() {
    let server = Server::start(|_| pending().boxed()).await;
    let (cancel, cancelled) = tokio::sync::oneshot::channel::<()>();
    let mut cancel = Some(cancel);
    let endless = LoadOptions { limit: Limit::Duration(Duration::from_hours(1)), ..options(&server, 1) };
    let until = async move {
        // Resolves either way; a dropped sender cancels too.
        let _ = cancelled.await;
    };
    let report = run(endless, until, |progress| {
        if progress.in_flight >= 10 {
            cancel.take();
        }
    })
    .await
    .expect("the options are right");
    adds_up(&report);
    assert!(report.was_cancelled && report.sent >= 10, "{report:?}");
    assert_eq!((report.cancelled, report.succeeded), (report.sent, 0));
}

#[tokio::test]
async fn warm_up_and_connections_are_accounted_for() {
    let server = constant(|| whole(200, &[], OK)).await;
    let warm = LoadOptions { warm_up: Duration::from_millis(200), ..options(&server, 60) };
    let report = finished(warm).await;
    adds_up(&report);
    assert_eq!((report.warm_up_sent + report.warm_up_not_sent, report.arrivals, report.succeeded), (40, 60, 60));
    assert_eq!(server.seen().len(), 100);
    assert!(report.connections_opened < 100, "connections are used again: {}", report.connections_opened);
    assert_eq!(report.local_limit_faults, 0);
}

#[tokio::test]
async fn each_endpoint_and_tenant_is_called_in_its_form() {
    let server = constant(|| whole(200, &[], "{}")).await;
    for (_, endpoint) in Endpoint::ALL {
        let tenants = "a=key-a,b=key-b".parse().unwrap();
        finished(LoadOptions { endpoint, tenants, rate_per_second: 1_000.0, ..options(&server, 20) }).await;
    }
    let mut keys: BTreeMap<String, usize> = BTreeMap::new();
    for seen in server.seen() {
        let key = seen.header("authorization").or(seen.header("x-api-key")).expect("each call has a key");
        assert_eq!(seen.header("anthropic-version").is_some(), seen.path == "/v1/messages");
        *keys.entry(format!("{} {key}", seen.path)).or_default() += 1;
    }
    let expected = ["/v1/chat/completions Bearer key-a", "/v1/messages key-b", "/v1/responses Bearer key-b"];
    assert!(expected.iter().all(|key| keys.contains_key(*key)), "{keys:?}");
    assert_eq!((keys.len(), keys.values().sum::<usize>()), (10, 100));
}

#[tokio::test]
async fn a_report_is_read_by_machines_and_by_people() {
    let server = constant(|| whole(200, &[], OK)).await;
    let report = finished(LoadOptions { profiles: "none,immediate".parse().unwrap(), ..options(&server, 20) }).await;
    let json = serde_json::to_value(&report).expect("reports can be written");
    assert_eq!((&json["succeeded"], &json["endpoint"]), (&20.into(), &"chat".into()));
    assert_eq!(json["latency"]["count"], 20);
    let text = report.render();
    for words in ["sent        20 of 20 arrivals", "success     20, 100.00% of arrivals", "  immediate", "latency"] {
        assert!(text.contains(words), "{words} not in\n{text}");
    }
    assert!(!text.contains("demo-key"));
}

#[tokio::test]
async fn options_that_cannot_work_are_refused_before_anything_is_sent() {
    let server = constant(|| whole(200, &[], OK)).await;
    let right = || options(&server, 1);
    for (wrong, words) in [
        (LoadOptions { rate_per_second: f64::NAN, ..right() }, "rate: NaN"),
        (LoadOptions { rate_per_second: 0.0, ..right() }, "rate: 0"),
        (LoadOptions { stream_share: 1.5, ..right() }, "stream-share: 1.5 is no share; write a number from 0 to 1"),
        (LoadOptions { patience: Duration::ZERO, ..right() }, "patience: 0ns"),
        (LoadOptions { max_in_flight: 0, ..right() }, "max-in-flight: 0"),
        (LoadOptions { limit: Limit::Count(0), ..right() }, "count: "),
        (LoadOptions { limit: Limit::Duration(Duration::MAX), ..right() }, "duration: "),
        (LoadOptions { warm_up: Duration::MAX, ..right() }, "warm-up: "),
        (
            LoadOptions { tenants: Mix::one(Tenant { name: "t".into(), key: "a\nsecret".into() }), ..right() },
            "tenants: the key of `t`",
        ),
        (LoadOptions { target: "https://localhost".into(), ..right() }, "target: "),
    ] {
        let message = run(wrong, pending(), |_| {}).await.expect_err("the option is wrong").to_string();
        assert!(message.starts_with(words) && !message.contains("secret"), "{message}");
    }
    assert!(server.seen().is_empty());
}
