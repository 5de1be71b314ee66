//! Golden files: realistic requests and answers in unusual forms. Only the model of a request may change, and the facts
//! of a stream are the same however it is cut. The first word of a file's name is its endpoint; a number at the end of
//! an answer's name is its status.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's helpers may fail the test")]

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use seawall_core::capacity::{Allowance, Left};
use seawall_wire::allowance::allowance;
use seawall_wire::body::{peek, rewrite_model};
use seawall_wire::dialect::Endpoint;
use seawall_wire::sse::{SseScanner, StreamEnd, StreamFacts};
use seawall_wire::upstream_error::{Answer, Verdict, classify, classify_stream_error};
use seawall_wire::usage::{BodyTap, Usage};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// All golden files whose name ends so, by `dialect/name`.
fn golden(ending: &str) -> BTreeMap<String, Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
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

fn endpoint(name: &str) -> Endpoint {
    let word = name.split_once('/').unwrap().1.split('-').next().unwrap();
    match word {
        "chat_completions" => Endpoint::ChatCompletions,
        "completions" => Endpoint::Completions,
        "embeddings" => Endpoint::Embeddings,
        "responses" => Endpoint::Responses,
        "messages" => Endpoint::Messages,
        "count_tokens" => Endpoint::CountTokens,
        _ => panic!("{name}: no endpoint is called {word}"),
    }
}

#[test]
fn only_the_model_of_a_request_changes() {
    for (name, bytes) in golden(".request.json") {
        let body = Bytes::from(bytes);
        let facts = peek(&body).unwrap_or_else(|error| panic!("{name}: {error}"));
        let same = rewrite_model(&body, &facts, None);
        assert_eq!((same.as_ptr(), same.len()), (body.as_ptr(), body.len()), "{name}");
        let renamed = rewrite_model(&body, &facts, Some("up/\"m\" é"));
        let value = r#""up/\"m\" é""#;
        let expected = if let Some(span) = facts.model_span() {
            [&body[..span.start], value.as_bytes(), &body[span.end..]].concat()
        } else {
            let open = body.iter().position(|byte| *byte == b'{').unwrap() + 1;
            [&body[..open], format!("\"model\":{value},").as_bytes(), &body[open..]].concat()
        };
        assert_eq!(renamed, expected, "{name}");
        assert_eq!(peek(&renamed).unwrap().model(&renamed).as_deref(), Some("up/\"m\" é"), "{name}");
    }
}

#[test]
fn requests_tell_their_facts() {
    let expected = [
        ("anthropic/count_tokens-plain", Some("claude-demo"), false, None),
        ("anthropic/messages-plain", Some("claude-demo"), false, Some(1024)),
        ("anthropic/messages-stream", Some("claude-demo"), true, Some(64)),
        ("azure/chat_completions-plain", None, false, Some(16)),
        ("azure/chat_completions-stream", Some("gpt-4o"), true, None),
        ("azure/embeddings-tokens", Some("demo-embed"), false, None),
        ("azure/responses-plain", Some("demo-chat"), false, None),
        ("openai/chat_completions-escaped-key", Some("demo-chat"), false, None),
        ("openai/chat_completions-image", Some("demo-chat"), false, Some(64)),
        ("openai/chat_completions-no-model", None, false, None),
        ("openai/chat_completions-odd-forms", Some("demo-chat"), false, None),
        ("openai/chat_completions-plain", Some("demo-chat"), false, None),
        ("openai/chat_completions-stream", Some("demo-chat"), true, Some(256)),
        ("openai/chat_completions-tools", Some("demo-chat"), false, None),
        ("openai/completions-prompt-list", Some("demo-chat"), false, Some(16)),
        ("openai/embeddings-batch", Some("demo-embed"), false, None),
        ("openai/responses-stream", Some("demo-chat"), true, Some(1024)),
    ];
    let files = golden(".request.json");
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    assert_eq!(names, expected.map(|(name, ..)| name));
    for (name, model, stream, limit) in expected {
        let body = &files[name];
        let facts = peek(body).unwrap();
        assert_eq!(facts.model(body).as_deref(), model, "{name}");
        assert_eq!((facts.stream, facts.max_output_tokens), (stream, limit), "{name}");
        assert!(facts.input_bytes > 0, "{name}");
    }
}

fn scan<'a>(endpoint: Endpoint, chunks: impl IntoIterator<Item = &'a [u8]>) -> StreamFacts {
    let mut scanner = SseScanner::new(endpoint);
    for chunk in chunks {
        scanner.push(chunk);
    }
    scanner.finish()
}

const fn usage(input_tokens: u64, cached_input_tokens: u64, output_tokens: u64) -> Usage {
    Usage { input_tokens, cached_input_tokens, output_tokens }
}

#[test]
fn streams_tell_the_same_at_every_split() {
    let chat = Some(usage(100, 64, 200));
    let expected = [
        ("anthropic/messages-crlf", 9, Some(StreamEnd::MessageStop), Some(usage(125, 100, 15))),
        ("anthropic/messages-overloaded", 5, None, Some(usage(125, 100, 1))),
        ("anthropic/messages-stream", 9, Some(StreamEnd::MessageStop), Some(usage(125, 100, 15))),
        ("azure/chat_completions-filter-results", 6, Some(StreamEnd::Done), Some(usage(9, 0, 2))),
        ("openai/chat_completions-cr", 20, Some(StreamEnd::Done), chat),
        ("openai/chat_completions-crlf", 20, Some(StreamEnd::Done), chat),
        ("openai/chat_completions-decorated-no-blank-end", 20, Some(StreamEnd::Done), chat),
        ("openai/chat_completions-error-first", 2, Some(StreamEnd::Done), None),
        ("openai/chat_completions-error-later", 4, None, None),
        ("openai/chat_completions-lf", 20, Some(StreamEnd::Done), chat),
        ("openai/chat_completions-mixed-no-space", 20, Some(StreamEnd::Done), chat),
        ("openai/chat_completions-no-done", 19, None, chat),
        ("openai/chat_completions-no-usage", 7, Some(StreamEnd::Done), None),
        ("openai/chat_completions-twice-done", 22, Some(StreamEnd::Done), chat),
        ("openai/chat_completions-two-data-lines", 20, Some(StreamEnd::Done), chat),
        ("openai/completions-stream", 4, Some(StreamEnd::Done), Some(usage(7, 0, 2))),
        ("openai/responses-completed", 9, Some(StreamEnd::Completed), Some(usage(37, 5, 11))),
        ("openai/responses-failed", 3, Some(StreamEnd::Failed), None),
        ("openai/responses-incomplete", 9, Some(StreamEnd::Incomplete), Some(usage(37, 5, 11))),
    ];
    let files = golden(".response.sse");
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    assert_eq!(names, expected.map(|(name, ..)| name));
    for (name, events, end, usage) in expected {
        let (endpoint, stream) = (endpoint(name), &files[name]);
        let whole = scan(endpoint, [&stream[..]]);
        assert_eq!((whole.events, whole.end, whole.usage), (events, end, usage), "{name}");
        assert_eq!(
            whole.error.is_some(),
            ["error", "failed", "overloaded"].iter().any(|word| name.contains(word)),
            "{name}"
        );
        assert_eq!(whole.finished, end.is_some() || name.ends_with("no-done"), "{name}");
        assert_eq!(scan(endpoint, stream.chunks(1)), whole, "{name} byte by byte");
        for at in 0..=stream.len() {
            assert_eq!(scan(endpoint, [&stream[..at], &stream[at..]]), whole, "{name} split at {at}");
        }
    }
}

#[test]
fn stream_errors_are_classified() {
    let files = golden(".response.sse");
    for (name, event, verdict) in [
        ("openai/chat_completions-error-first", 1, Verdict::Throttled { wait: None }),
        ("openai/chat_completions-error-later", 4, Verdict::Failed),
        ("openai/responses-failed", 3, Verdict::Failed),
        ("anthropic/messages-overloaded", 5, Verdict::Throttled { wait: None }),
    ] {
        let error = scan(endpoint(name), [&files[name][..]]).error.unwrap_or_else(|| panic!("{name}"));
        assert_eq!((error.event, classify_stream_error(&error.facts)), (event, verdict), "{name}");
    }
}

#[test]
fn answers_tell_their_usage_and_their_meaning() {
    let fault = Verdict::ClientFault { status: 400 };
    let throttled = |seconds: Option<u64>| Verdict::Throttled { wait: seconds.map(Duration::from_secs) };
    let expected = [
        ("anthropic/count_tokens-plain", Verdict::Served, None),
        ("anthropic/messages-invalid-400", fault, None),
        ("anthropic/messages-overloaded-529", throttled(None), None),
        ("anthropic/messages-plain", Verdict::Served, Some(usage(55, 40, 6))),
        ("azure/chat_completions-filtered-400", fault, None),
        ("azure/chat_completions-plain", Verdict::Served, Some(usage(9, 0, 3))),
        ("azure/chat_completions-throttled-429", throttled(Some(26)), None),
        ("azure/chat_completions-unauthorized-401", Verdict::CredentialRefused, None),
        ("openai/chat_completions-context-400", Verdict::ContextExceeded, None),
        ("openai/chat_completions-overloaded-503", throttled(None), None),
        ("openai/chat_completions-plain", Verdict::Served, Some(usage(19, 8, 10))),
        ("openai/chat_completions-quota-429", Verdict::QuotaSpent { wait: None }, None),
        ("openai/chat_completions-rate-limit-429", throttled(Some(2)), None),
        ("openai/completions-prompt-list", Verdict::Served, Some(usage(7, 0, 16))),
        ("openai/embeddings-batch", Verdict::Served, Some(usage(12, 0, 0))),
        ("openai/responses-plain", Verdict::Served, Some(usage(36, 32, 8))),
    ];
    let files = golden(".response.json");
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    assert_eq!(names, expected.map(|(name, ..)| name));
    for (name, verdict, usage) in expected {
        let body = &files[name];
        let status = name.rsplit('-').next().and_then(|word| word.parse().ok()).unwrap_or(200);
        let answer = Answer { status, headers: &HeaderMap::new(), body, now: Duration::ZERO };
        let classified = classify(&answer);
        assert_eq!(classified.verdict, verdict, "{name}");
        assert_eq!(classified.error.is_some(), status != 200, "{name}");
        let mut tap = BodyTap::new();
        body.chunks(5).for_each(|chunk| tap.push(chunk));
        assert_eq!(tap.usage(), usage, "{name}");
    }
}

#[test]
fn heads_tell_what_is_left_of_limits() {
    /// 2026-01-01 00:00:00 UTC.
    const NEW_YEAR: Duration = Duration::from_hours(490_896);
    let left = |remaining, limit, reset_ms: Option<u64>| {
        let reset = reset_ms.map(Duration::from_millis);
        Some(Left { remaining, limit, reset })
    };
    let said = |requests, tokens| Allowance { requests, tokens };
    for (name, expected) in [
        ("openai/chat_completions-limits", said(left(499, Some(500), Some(120)), left(29_976, Some(30_000), Some(48)))),
        ("openai/chat_completions-limits-429", said(left(0, Some(3), Some(60_500)), None)),
        ("azure/chat_completions-limits", said(left(79, None, None), left(61_353, None, None))),
        ("azure/responses-limits-not-counted", said(None, None)),
        ("anthropic/messages-limits", said(left(0, Some(50), Some(3_000)), left(38_000, Some(40_000), Some(3_000)))),
    ] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{name}.headers"));
        let text = std::fs::read_to_string(&file).unwrap();
        let headers: HeaderMap = text
            .lines()
            .map(|line| line.split_once(": ").unwrap())
            .map(|(name, value)| (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap()))
            .collect();
        assert_eq!(allowance(&headers, NEW_YEAR), expected, "{name}");
    }
}
