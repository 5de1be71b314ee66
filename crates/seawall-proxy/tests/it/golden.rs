//! Law 10 on raw bytes: every golden request reaches the upstream, and every golden answer the client, byte for byte.
//! With them F43: the streams of the golden files are in every unusual dress that the grammar allows.

use crate::support::client::{End, post};
use crate::support::plane::{Plane, Setup};
use crate::support::upstream::{ANSWER, Call, LAST_CHUNK, STREAM, Upstream, Wire};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// All golden files whose name ends so, by `dialect/name`.
fn golden(ending: &str) -> BTreeMap<String, Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../seawall-wire/tests/golden");
    let mut found = BTreeMap::new();
    for dialect in ["openai", "azure", "anthropic"] {
        for entry in std::fs::read_dir(root.join(dialect)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if let Some(name) = name.strip_suffix(ending) {
                found.insert(format!("{dialect}/{name}"), std::fs::read(&path).unwrap());
            }
        }
    }
    assert!(found.len() > 10, "the golden files are there");
    found
}

/// Where a golden file is asked for, and with which headers.
fn place(name: &str) -> (String, &'static str) {
    let (dialect, word) = name.split_once('/').unwrap();
    let endpoint = word.split('-').next().unwrap();
    let endpoint = match endpoint {
        "chat_completions" => "chat/completions",
        "count_tokens" => "messages/count_tokens",
        other => other,
    };
    match dialect {
        "azure" => (format!("/openai/v1/{endpoint}"), ""),
        "anthropic" => (format!("/v1/{endpoint}"), "anthropic-version: 2023-06-01\r\n"),
        _ => (format!("/v1/{endpoint}"), ""),
    }
}

/// One model of each family that takes every name.
async fn every_model(openai: &Upstream, anthropic: &Upstream, settings: &str) -> Plane {
    let names = ["demo-chat", "gpt-4o", "demo-embed"];
    let mut setup = Setup::new();
    for name in names {
        setup = setup.model(name, "", &[]).deployment(&format!("http://{}", openai.address), settings);
    }
    setup
        .model("claude-demo", "", &[])
        .deployment(&format!("http://{}", anthropic.address), &format!("dialect = \"anthropic\"\n{settings}"))
        .start()
        .await
}

#[tokio::test]
async fn f33_golden_requests_reach_the_upstream_byte_for_byte() {
    let (openai, anthropic) = (Upstream::good().await, Upstream::good().await);
    for (settings, new_name) in [("", None), ("model = \"up/\\\"m\\\" é\"", Some(r#""up/\"m\" é""#))] {
        let plane = every_model(&openai, &anthropic, settings).await;
        for (name, body) in golden(".request.json") {
            let facts = seawall_wire::body::peek(&body).unwrap();
            let (path, headers) = place(&name);
            let Some(model) = facts.model_span() else {
                // Without a model in the body only a path can name it.
                let path = path.replace("/openai/v1/", "/v1/");
                let path = path.replace("/v1/", "/openai/deployments/demo-chat/") + "?api-version=2024-10-21";
                assert_eq!(plane.ask(post(&path, headers, &body)).await.status, 200, "{name}");
                let open = body.iter().position(|byte| *byte == b'{').unwrap() + 1;
                let inserted = format!("\"model\":{},", new_name.unwrap_or("\"demo-chat\""));
                let expected = [&body[..open], inserted.as_bytes(), &body[open..]].concat();
                assert!(openai.seen().last().unwrap().body == expected, "{name}");
                continue;
            };
            let answer = plane.ask(post(&path, headers, &body)).await;
            assert_eq!(answer.status, 200, "{name}: {answer:?}");
            let upstream = if name.starts_with("anthropic") { &anthropic } else { &openai };
            let seen = upstream.seen().pop().unwrap();
            let expected = match new_name {
                None => body.clone(),
                Some(new) => [&body[..model.start], new.as_bytes(), &body[model.end..]].concat(),
            };
            assert!(seen.body == expected, "{name}: {}", String::from_utf8_lossy(&seen.body));
            assert_eq!(seen.header("content-type"), Some("application/json"));
        }
        plane.stop().await;
    }
}

#[tokio::test]
async fn f33_golden_answers_reach_the_client_byte_for_byte() {
    let next: Arc<Mutex<(u16, Vec<u8>)>> = Arc::default();
    let current = Arc::clone(&next);
    let script = move |call: Call| {
        let (status, body) = current.lock().unwrap().clone();
        async move { call.json(status, "", body).await }
    };
    let (openai, anthropic) = (Upstream::start(script.clone()).await, Upstream::start(script).await);
    let plane = every_model(&openai, &anthropic, "").await;
    let mut compared = 0;
    for (name, body) in golden(".response.json") {
        let status: u16 = name.rsplit('-').next().and_then(|word| word.parse().ok()).unwrap_or(200);
        if ![200, 400].contains(&status) {
            // A failure of the upstream is told in our words: see F54.
            continue;
        }
        *next.lock().unwrap() = (status, body.clone());
        let (path, headers) = place(&name);
        let model = if name.starts_with("anthropic") { "claude-demo" } else { "demo-chat" };
        let answer = plane.ask(post(&path, headers, format!("{{\"model\":\"{model}\"}}"))).await;
        assert_eq!(answer.status, status, "{name}");
        assert!(answer.body == body && answer.end == End::Complete, "{name}: {answer:?}");
        compared += 1;
    }
    assert!(compared > 8, "{compared}");
    plane.stop().await;
}

/// A stream in parts.
type Parts = Vec<Vec<u8>>;

async fn play(mut call: Call, parts: Parts) -> Option<Wire> {
    call.send(STREAM).await;
    for part in parts.iter().filter(|part| !part.is_empty()) {
        call.chunk(part).await;
        tokio::task::yield_now().await;
    }
    call.send(LAST_CHUNK).await;
    call.keep()
}

/// The parts of a stream that is cut at every position that leaves `rest` when divided by `period`.
fn cut(stream: &[u8], period: usize, rest: usize) -> Parts {
    let (first, others) = stream.split_at(rest.min(stream.len()));
    std::iter::once(first).chain(others.chunks(period)).map(<[u8]>::to_vec).collect()
}

/// The ways in which a stream is cut: byte by byte; at every position, as one of several cuts; and, of short streams,
/// at every position alone.
fn cuts(stream: &[u8]) -> impl Iterator<Item = Parts> {
    const PERIOD: usize = 24;
    let alone = if stream.len() < 1_000 { stream.len() + 1 } else { 0 };
    let alone = (0..alone).map(|at| vec![stream[..at].to_vec(), stream[at..].to_vec()]);
    std::iter::once(cut(stream, 1, 0)).chain((0..PERIOD).map(|rest| cut(stream, PERIOD, rest))).chain(alone)
}

#[tokio::test]
async fn f43_golden_streams_reach_the_client_byte_for_byte_at_every_split() {
    let next: Arc<Mutex<Parts>> = Arc::default();
    let current = Arc::clone(&next);
    let script = move |call: Call| {
        let parts = current.lock().unwrap().clone();
        play(call, parts)
    };
    let (openai, anthropic) = (Upstream::start(script.clone()).await, Upstream::start(script).await);
    let plane = every_model(&openai, &anthropic, "").await;
    let (mut served, mut failed, mut tokens) = (0, 0, 0);
    for (name, stream) in golden(".response.sse") {
        if name.ends_with("error-first") {
            // An error as the first event is a failure before the first byte: see F54.
            continue;
        }
        let facts = {
            let mut scanner = seawall_wire::sse::SseScanner::new(endpoint(&name));
            scanner.push(&stream);
            scanner.finish()
        };
        let (path, headers) = place(&name);
        let model = if name.starts_with("anthropic") { "claude-demo" } else { "demo-chat" };
        let mut client = plane.client().await;
        for (number, parts) in cuts(&stream).enumerate() {
            *next.lock().unwrap() = parts;
            // The same one again, after an error, would be a repeat.
            let body = format!("{{\"model\":\"{model}\",\"stream\":true,\"user\":\"{name} {number}\"}}");
            client.send(post(&path, headers, body)).await;
            let answer = client.response().await;
            assert!(answer.status == 200 && answer.body == stream, "{name} split {number}: {answer:?}");
            assert_eq!(answer.end, End::Complete, "{name} split {number}");
            if facts.error.is_some() {
                failed += 1;
            } else {
                served += 1;
            }
            tokens += facts.usage.map_or(0, |usage| usage.output_tokens);
        }
    }
    plane.idle().await;
    // Whatever the dress and the cut: the same outcome, and the same usage.
    assert_eq!((plane.outcomes("served"), plane.outcomes("stream_error")), (served, failed));
    assert!(served > 25 * 15, "{served}");
    assert_eq!(plane.metric("seawall_tokens_total{", &[("kind", "output")]), tokens);
    plane.stop().await;
}

fn endpoint(name: &str) -> seawall_wire::dialect::Endpoint {
    use seawall_wire::dialect::Endpoint;
    match name.split_once('/').unwrap().1.split('-').next().unwrap() {
        "chat_completions" => Endpoint::ChatCompletions,
        "completions" => Endpoint::Completions,
        "responses" => Endpoint::Responses,
        "messages" => Endpoint::Messages,
        other => panic!("{other} does not stream"),
    }
}

#[tokio::test]
async fn an_answer_of_another_type_than_asked_for_passes_too() {
    // A stream was asked for and the upstream answers in one piece, and the other way round.
    let upstream = Upstream::start(|call: Call| async move {
        if String::from_utf8_lossy(&call.seen.body).contains("\"stream\":true") {
            return call.json(200, "", ANSWER).await;
        }
        call.stream("data: {\"a\":1}\n\ndata: [DONE]\n\n").await
    })
    .await;
    let plane = Setup::m(&[upstream.address]).start().await;
    let answer = plane.ask(crate::support::client::chat_stream()).await;
    assert_eq!((answer.text().as_str(), answer.outcome()), (ANSWER, "served"));
    let answer = plane.ask(crate::support::client::chat()).await;
    assert_eq!(answer.text(), "data: {\"a\":1}\n\ndata: [DONE]\n\n");
    plane.stop().await;
}
