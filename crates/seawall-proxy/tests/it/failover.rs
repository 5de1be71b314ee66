//! Which failure goes elsewhere, under which name: F47, F51, F54.

use crate::support::client::{CHAT, CHAT_PATH, CHAT_STREAM, Client, chat, chat_stream, get, post};
use crate::support::plane::{Plane, Setup};
use crate::support::upstream::{ANSWER, Call, Upstream, delta};
use std::time::Duration;
use tokio::time::Instant;

/// What the first deployment does, and how its attempt is counted.
async fn first(case: &'static str) -> (Option<Upstream>, String) {
    let upstream = match case {
        "refused" => {
            let address = crate::advice::free_address().await;
            return (None, format!("http://{address}"));
        }
        "no name" => return (None, "http://no-such-host.invalid:80".to_owned()),
        "no tls" => {
            let plain = Upstream::at_head(|mut call: Call| async move {
                call.send("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await;
                call.finish().await
            })
            .await;
            let url = format!("https://{}", plain.address);
            return (Some(plain), url);
        }
        "reset" => Upstream::start(|call: Call| async move { call.reset() }).await,
        "closed" => Upstream::start(Call::finish).await,
        "no http" => {
            Upstream::start(|mut call: Call| async move {
                call.send("SSH-2.0-x\r\n\r\n").await;
                call.finish().await
            })
            .await
        }
        "error object" => {
            Upstream::start(|call: Call| async move {
                let body = r#"{"error":{"message":"x","type":"server_error","code":null}}"#;
                if String::from_utf8_lossy(&call.seen.body).contains("stream") {
                    return call.stream(format!(": hi\n\ndata: {body}\n\n")).await;
                }
                call.json(200, "", body).await
            })
            .await
        }
        "overloaded" => {
            Upstream::start(|call: Call| async move {
                let body = r#"{"error":{"message":"x","type":"overloaded_error"}}"#;
                if String::from_utf8_lossy(&call.seen.body).contains("stream") {
                    return call.stream(format!("event: error\ndata: {body}\n\n")).await;
                }
                call.json(200, "", body).await
            })
            .await
        }
        "empty" => {
            Upstream::start(|call: Call| async move {
                if String::from_utf8_lossy(&call.seen.body).contains("stream") {
                    return call.stream(": only a comment\n\n").await;
                }
                call.json(200, "", r#"{"object":"error","message":"x","code":500}"#).await
            })
            .await
        }
        status => {
            let (status, headers) = status.split_once(' ').unwrap_or((status, ""));
            let status: u16 = status.parse().unwrap();
            let headers = if headers.is_empty() { String::new() } else { format!("retry-after: {headers}\r\n") };
            Upstream::start(move |call: Call| {
                let headers = headers.clone();
                async move { call.json(status, &headers, "{}").await }
            })
            .await
        }
    };
    let url = format!("http://{}", upstream.address);
    (Some(upstream), url)
}

/// The table: what happens at the first deployment, how its attempt counts, and whether another one is asked at once.
/// Everything else goes back to the client (see F09).
const TABLE: [(&str, &str); 20] = [
    ("429", "throttled"),
    ("429 30", "throttled"),
    ("529", "throttled"),
    ("503 30", "throttled"),
    ("401", "credential_refused"),
    ("402", "throttled"),
    ("403", "credential_refused"),
    ("408", "timed_out"),
    ("409", "failed"),
    ("425", "failed"),
    ("500", "failed"),
    ("502", "failed"),
    ("503", "failed"),
    ("504", "timed_out"),
    ("refused", "not_sent"),
    ("no name", "not_sent"),
    ("reset", "failed"),
    ("closed", "failed"),
    ("no http", "failed"),
    ("error object", "failed"),
];
const MORE: [(&str, &str); 3] = [("no tls", "not_sent"), ("overloaded", "throttled"), ("empty", "failed")];

async fn two(url: &str, good: &Upstream) -> Plane {
    Setup::new()
        .model("m", "[models.timeouts]\nconnect = \"500ms\"", &[])
        .deployment(url, "priority = 0")
        .deployment(&format!("http://{}", good.address), "priority = 1")
        .start()
        .await
}

#[tokio::test]
async fn f54_a_failure_of_the_deployment_goes_to_another_at_once() {
    for (case, end) in TABLE.into_iter().chain(MORE) {
        for request in [chat(), chat_stream()] {
            let (upstream, url) = first(case).await;
            let good = Upstream::good().await;
            let plane = two(&url, &good).await;
            let begun = Instant::now();
            let answer = plane.ask(request).await;
            assert_eq!((answer.status, answer.attempts()), (200, "2"), "{case}: {answer:?}");
            assert!(begun.elapsed() < Duration::from_millis(1_500), "{case}: {:?}", begun.elapsed());
            plane.idle().await;
            assert_eq!(plane.attempts("u1", end), 1, "{case}");
            assert_eq!(good.count(), 1, "{case}");
            if let Some(upstream) = upstream.filter(|_| case != "no tls") {
                assert_eq!(upstream.count(), 1, "{case}");
            }
            plane.stop().await;
        }
    }
}

#[tokio::test]
async fn f54_a_throttled_deployment_is_left_alone_for_its_stated_time() {
    for case in ["429 30", "503 30", "429 86400"] {
        let (upstream, url) = first(case).await;
        let good = Upstream::good().await;
        let plane = two(&url, &good).await;
        for _ in 0..20 {
            assert_eq!(plane.ask(chat()).await.status, 200);
        }
        assert_eq!((upstream.unwrap().count(), good.count()), (1, 20), "{case}");
        assert_eq!(plane.deployment("u1").health, "healthy");
        plane.stop().await;
    }
}

#[tokio::test]
async fn f54_a_failure_without_another_deployment_is_told_in_our_forms() {
    for (case, _) in TABLE.into_iter().chain(MORE) {
        let (_upstream, url) = first(case).await;
        let patience = "[models.queue]\npatience = \"0s\"\n[models.timeouts]\nconnect = \"500ms\"";
        let plane = Setup::new().model("m", patience, &[]).deployment(&url, "").start().await;
        for request in [chat(), chat_stream()] {
            // The contract is checked on each.
            let answer = plane.ask(request).await;
            assert!([429, 503, 504].contains(&answer.status), "{case}: {answer:?}");
        }
        plane.stop().await;
    }
}

#[tokio::test]
async fn f47_client_mistakes_never_take_a_deployment_out() {
    let script = |call: Call| async move {
        let body = String::from_utf8_lossy(&call.seen.body).into_owned();
        let wanted = body.split("\"want\":").nth(1).and_then(|rest| rest.get(..3)?.parse().ok());
        match wanted {
            Some(status) => call.json(status, "", r#"{"error":{"message":"m"}}"#).await,
            None => call.good().await,
        }
    };
    let (one, two) = (Upstream::start(script).await, Upstream::start(script).await);
    let plane = Setup::m(&[one.address, two.address]).start().await;
    let (mut bad, mut good) = (plane.client().await, plane.client().await);
    for status in [400, 404, 413, 422] {
        for number in 0..60 {
            let stream = if number % 5 == 0 { "true" } else { "false" };
            let body = format!(r#"{{"model":"m","stream":{stream},"want":{status}}}"#);
            bad.send(post(CHAT_PATH, "", body)).await;
            assert_eq!(bad.response().await.outcome(), "client_error");
            bad.send(post(CHAT_PATH, "", "{")).await;
            assert_eq!(bad.response().await.outcome(), "invalid_request");
            if number % 10 == 0 {
                good.send(chat()).await;
                assert_eq!(good.response().await.status, 200);
            }
        }
    }
    for name in ["u1", "u2"] {
        assert_eq!((plane.deployment(name).health, plane.deployment(name).share_percent), ("healthy", 100));
    }
    assert_eq!((plane.outcomes("client_error"), plane.outcomes("invalid_request")), (240, 240));
    plane.stop().await;
}

#[tokio::test]
async fn f51_each_deployment_gets_its_own_name_and_the_answer_keeps_the_upstream_s() {
    // The stated rule: the `model` of an answer is the upstream's own word and passes as it came, on every route.
    let said = "\"model\":\"up-a-2024-08-06\"";
    let script = move |fails: bool| {
        move |call: Call| async move {
            let stream = String::from_utf8_lossy(&call.seen.body).contains("\"stream\":true");
            match (fails, stream) {
                (true, _) => call.json(500, "", "{}").await,
                (_, true) => {
                    call.stream(format!(
                        "data: {{{said},\"t\":\"up-a\"}}\n\n{}data: [DONE]\n\n",
                        delta("up-a-2024-08-06")
                    ))
                    .await
                }
                (_, false) => call.json(200, "", format!("{{{said},\"text\":\"up-a-2024-08-06\"}}")).await,
            }
        }
    };
    let (a, b) = (Upstream::start(script(true)).await, Upstream::start(script(false)).await);
    let plane = Setup::new()
        .model("m", "aliases = [\"n\"]\n[models.ejection]\nconsecutive_failures = 1000\nminimum_outcomes = 1000\n[models.retry]\nfloor_per_second = 100", &[])
        .deployment(&format!("http://{}", a.address), "priority = 0\nmodel = \"up-a\"")
        .deployment(&format!("http://{}", b.address), "priority = 1\nmodel = \"dep/b\"\ndialect = \"azure\"\napi_version = \"2024-10-21\"")
        .model("other", "", &[b.address])
        .tenant("team", "models = [\"m\"]")
        .start()
        .await;
    let key = "authorization: Bearer secret-team\r\n";
    for (path, target_a, target_b) in [
        (CHAT_PATH, CHAT_PATH, "/openai/deployments/dep%2Fb/chat/completions?api-version=2024-10-21"),
        ("/v1/embeddings", "/v1/embeddings", "/openai/deployments/dep%2Fb/embeddings?api-version=2024-10-21"),
        ("/v1/responses", "/v1/responses", "/openai/v1/responses"),
        (
            "/openai/v1/chat/completions",
            CHAT_PATH,
            "/openai/deployments/dep%2Fb/chat/completions?api-version=2024-10-21",
        ),
        (
            "/openai/deployments/m/chat/completions?api-version=2025-01-01",
            CHAT_PATH,
            "/openai/deployments/dep%2Fb/chat/completions?api-version=2024-10-21",
        ),
    ] {
        for (asked, body) in [("m", CHAT), ("n", CHAT), ("m", CHAT_STREAM)] {
            let body = body.replace("\"m\"", &format!("\"{asked}\""));
            let answer = plane.ask(post(path, key, &body)).await;
            assert_eq!((answer.status, answer.attempts()), (200, "2"), "{path}: {answer:?}");
            assert!(answer.text().contains(said), "{answer:?}");
            let (seen_a, seen_b) = (a.seen().pop().unwrap(), b.seen().pop().unwrap());
            assert_eq!((seen_a.target(), seen_b.target()), (target_a, target_b));
            let renamed = |to: &str| body.replace(&format!("\"{asked}\""), &format!("\"{to}\""));
            assert_eq!(String::from_utf8_lossy(&seen_a.body), renamed("up-a"));
            // Where the path names the model, the body goes as it came.
            let expected_b = if target_b.contains("deployments") { body.clone() } else { renamed("dep/b") };
            assert_eq!(String::from_utf8_lossy(&seen_b.body), expected_b);
        }
    }
    // The list holds exactly what the key may call, aliases included.
    let list = format!("GET /v1/models HTTP/1.1\r\nhost: a\r\n{key}\r\n");
    let list = plane.ask(list).await.json();
    let names: Vec<_> = list["data"].as_array().unwrap().iter().map(|entry| entry["id"].as_str().unwrap()).collect();
    assert_eq!(names, ["m", "n"]);
    let answer = plane.ask(post(CHAT_PATH, key, r#"{"model":"other"}"#)).await;
    assert_eq!((answer.status, answer.code().as_str()), (404, "model_not_found"));
    assert_eq!(plane.ask(get("/v1/models")).await.status, 401);
    // Counted under the name of the model, whichever alias was asked for.
    assert_eq!(plane.metric("seawall_requests_total{", &[("model", "m"), ("outcome", "served")]), 15);
    plane.stop().await;
}

#[tokio::test]
async fn refusals_have_the_form_of_each_surface() {
    let upstream = Upstream::always(200, "", ANSWER).await;
    let plane = Setup::m(&[upstream.address]).tenant("team", "").start().await;
    let mut client = Client::connect(plane.address).await;
    for (path, headers) in [
        (CHAT_PATH, ""),
        ("/openai/deployments/m/chat/completions?api-version=2024-10-21", ""),
        ("/openai/v1/responses", ""),
        ("/v1/messages", "anthropic-version: 2023-06-01\r\n"),
    ] {
        let is_anthropic = !headers.is_empty();
        client.send(post(path, headers, CHAT)).await;
        let answer = client.response().await;
        assert_eq!((answer.status, answer.json().get("request_id").is_some()), (401, is_anthropic), "{answer:?}");
        client.send(post(path, &format!("{headers}x-api-key: secret-team\r\n"), r#"{"model":"zzz"}"#)).await;
        let answer = client.response().await;
        let is_azure_path = path.contains("deployments");
        assert_eq!(answer.status, if is_azure_path { 200 } else { 404 }, "{answer:?}");
    }
    plane.stop().await;
}
