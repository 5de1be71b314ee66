//! What must hold for any bytes at all.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use proptest::prelude::*;
use seawall_wire::body::{peek, rewrite_model};
use seawall_wire::dialect::Endpoint;
use seawall_wire::sse::{SseScanner, StreamFacts};
use seawall_wire::upstream_error::{Answer, classify};
use seawall_wire::usage::{BodyTap, usage_in_tail};
use seawall_wire::wait_hint::stated_wait;
use std::time::Duration;

/// Bytes that are nearly JSON: real members in any order, spacing and number form, now and then broken.
fn near_json() -> impl Strategy<Value = String> {
    let value = prop_oneof![
        Just("1E400".to_owned()),
        Just("-0.0".to_owned()),
        Just("null".to_owned()),
        Just("[{\"model\":\"x\"},[[]]]".to_owned()),
        Just("\"\\ud800\\\"\"".to_owned()),
        "\"([a-z/é ]|\\\\[nq/\"]){0,6}\"",
        "[0-9]{1,25}",
    ];
    let key = prop_oneof![Just("messages"), Just("x"), Just(""), Just("max_tokens"), Just("mod"), Just("n")];
    let space = prop_oneof![Just(""), Just(" "), Just("\r\n\t")];
    prop::collection::vec((key, value, space), 0..8).prop_map(|members| {
        let members: Vec<String> =
            members.iter().map(|(key, value, space)| format!("{space}\"{key}\":{space}{value}")).collect();
        members.join(",")
    })
}

fn pieces(bytes: &[u8], cuts: &[usize], endpoint: Endpoint) -> StreamFacts {
    let mut scanner = SseScanner::new(endpoint);
    let mut at = 0;
    for cut in cuts {
        let end = (at + cut).min(bytes.len());
        scanner.push(&bytes[at..end]);
        at = end;
    }
    scanner.push(&bytes[at..]);
    scanner.finish()
}

fn stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just("data: "),
        Just("data:"),
        Just("\n"),
        Just("\r"),
        Just("\r\n"),
        Just("\n\n"),
        Just(": c"),
        Just("event: error\n"),
        Just("event: message_stop\n"),
        Just("[DONE]"),
        Just("{\"error\":{\"code\":7}}"),
        Just("{\"usage\":{\"prompt_tokens\":1},"),
        Just("\"finish_reason\":\"x\"}"),
        Just("{\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":5}}}"),
        Just("\u{feff}"),
        Just("é🙂"),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat().into_bytes())
}

fn config() -> ProptestConfig {
    let rng_seed = proptest::test_runner::RngSeed::Fixed(7);
    ProptestConfig { cases: 512, rng_seed, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let body = Bytes::from(bytes);
        if let Ok(facts) = peek(&body) {
            prop_assert!(facts.model_span().is_none_or(|span| span.end <= body.len()));
        }
        usage_in_tail(&body);
        for endpoint in [Endpoint::ChatCompletions, Endpoint::Responses, Endpoint::Messages] {
            pieces(&body, &[], endpoint);
        }
    }

    #[test]
    fn any_cut_or_flipped_body_is_read_without_harm(
        inner in near_json(),
        cut in 0_usize..400,
        flip in 0_usize..400,
        to in any::<u8>(),
    ) {
        let mut bytes = format!("{{{inner}}}").into_bytes();
        let length = bytes.len();
        bytes[flip % length] = to;
        bytes.truncate(cut.max(1));
        if let Ok(facts) = peek(&bytes) {
            let body = Bytes::from(bytes);
            let renamed = rewrite_model(&body, &facts, Some("m"));
            let model = peek(&renamed).unwrap().model(&renamed).map(String::from);
            prop_assert_eq!(model.as_deref(), Some("m"));
        }
    }

    #[test]
    fn a_rewrite_changes_the_model_only(
        before in near_json(),
        after in near_json(),
        name in "\\PC{0,12}",
        new in "\\PC{0,12}",
    ) {
        let quote = |text: &str| serde_json::Value::from(text).to_string();
        let join = |model: &str| {
            let mut members = vec![&before[..], model, &after[..]];
            members.retain(|part| !part.is_empty());
            format!(" {{{}}} ", members.join(","))
        };
        let body = Bytes::from(join(&format!("\"model\" : {}", quote(&name))));
        let facts = peek(&body).unwrap();
        let model = facts.model(&body);
        prop_assert_eq!(model.as_deref(), Some(&name[..]));
        let expected = join(&format!("\"model\" : {}", quote(&new)));
        prop_assert_eq!(rewrite_model(&body, &facts, Some(&new)), expected.as_bytes());
    }

    #[test]
    fn a_conforming_parser_agrees(
        inner in near_json(),
        flip in 0_usize..200,
        to in prop::sample::select(&b"{}[],:\"0 x\\"[..]),
    ) {
        let mut bytes = format!("{{\"model\":\"m\",{inner}}}").into_bytes();
        let length = bytes.len();
        bytes[flip % length] = to;
        // Whatever a strict parser takes as an object with a model, we take too, with the same model.
        if let Ok(serde_json::Value::Object(object)) = serde_json::from_slice(&bytes)
            && let Ok(facts) = peek(&bytes)
        {
            let model = object.get("model").and_then(serde_json::Value::as_str);
            let ours = facts.model(&bytes);
            prop_assert_eq!(ours.as_deref(), model);
        } else if let Ok(object) = serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(&bytes) {
            // Refused by us only for a reason of ours.
            prop_assert!(object.get("model").is_none_or(|model| !model.is_string()), "{:?}", peek(&bytes));
        }
    }

    #[test]
    fn facts_do_not_depend_on_the_cuts(bytes in stream(), cuts in prop::collection::vec(0_usize..9, 0..60)) {
        for endpoint in [Endpoint::ChatCompletions, Endpoint::Responses, Endpoint::Messages] {
            prop_assert_eq!(pieces(&bytes, &cuts, endpoint), pieces(&bytes, &[], endpoint));
        }
    }

    #[test]
    fn any_answer_is_classified(status in 100_u16..700, body in near_json(), wait in "[ -~]{0,20}") {
        let mut headers = HeaderMap::new();
        headers.insert("retry-after", HeaderValue::from_str(&wait).unwrap());
        let stated = stated_wait(&headers, Duration::from_secs(1_700_000_000));
        prop_assert!(stated.is_none_or(|wait| wait <= Duration::from_hours(24) && !wait.is_zero()));
        let body = format!("{{\"error\":{{{body}}}}}");
        classify(&Answer { status, headers: &headers, body: body.as_bytes(), now: Duration::ZERO });
    }

    #[test]
    fn a_tap_sees_the_end_however_it_is_cut(filler in 0_usize..60_000, size in 1_usize..50_000) {
        let body = format!("{{\"a\":\"{}\",\"usage\":{{\"prompt_tokens\":3}}}}", "x".repeat(filler));
        let mut tap = BodyTap::new();
        body.as_bytes().chunks(size).for_each(|chunk| tap.push(chunk));
        prop_assert_eq!(tap.usage().map(|usage| usage.input_tokens), Some(3));
    }
}
