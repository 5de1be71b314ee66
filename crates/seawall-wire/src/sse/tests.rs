use super::*;

const CHAT: &str = concat!(
    r#"{"choices":[{"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":null}"#,
    "\n",
    r#"{"choices":[{"delta":{"content":"é好🙂 "#,
    r#"\"usage\":{\"prompt_tokens\":9} [DONE]"},"finish_reason":null}],"usage":null}"#,
    "\n",
    r#"{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":null}"#,
    "\n",
    r#"{"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":200,"#,
    r#""prompt_tokens_details":{"cached_tokens":64}}}"#,
    "\n[DONE]"
);

fn scan(endpoint: Endpoint, chunks: &[&[u8]]) -> StreamFacts {
    let mut scanner = SseScanner::new(endpoint);
    let mut events = 0;
    for chunk in chunks {
        events += scanner.push(chunk);
    }
    assert_eq!(events, scanner.facts().events);
    scanner.finish()
}

/// The facts of a stream, the same whole, byte by byte and at every split.
fn facts(endpoint: Endpoint, stream: &[u8]) -> StreamFacts {
    let whole = scan(endpoint, &[stream]);
    let bytes: Vec<&[u8]> = stream.chunks(1).collect();
    assert_eq!(scan(endpoint, &bytes), whole, "byte by byte: {}", stream.escape_ascii());
    for at in 0..=stream.len() {
        let (first, second) = stream.split_at(at);
        assert_eq!(scan(endpoint, &[first, second]), whole, "split at {at}: {}", stream.escape_ascii());
    }
    whole
}

fn chat(separator: &str, prefix: &str, ending: &str) -> String {
    let events: Vec<String> = CHAT.lines().map(|data| format!("{prefix}{data}")).collect();
    events.join(separator) + ending
}

#[test]
fn every_dress_of_a_stream_tells_the_same() {
    let expected = facts(Endpoint::ChatCompletions, chat("\n\n", "data: ", "\n\n").as_bytes());
    assert_eq!((expected.events, expected.comments, expected.oversized), (5, 0, 0));
    assert_eq!(expected.outputs, 1, "of role, text, reason, usage and end one is a piece of the answer");
    assert_eq!((expected.end, expected.finished), (Some(StreamEnd::Done), true));
    assert_eq!(expected.usage, Some(Usage { input_tokens: 100, cached_input_tokens: 64, output_tokens: 200 }));
    assert_eq!(expected.error, None);
    let dresses = [
        chat("\r\n\r\n", "data: ", "\r\n\r\n"),
        chat("\r\r", "data: ", "\r\r"),
        chat("\r\n\n", "data: ", "\n\r"),
        chat("\n\n", "data:", "\n\n"),
        chat("\n\n\n\n", "data: ", "\n\n\n"),
        chat("\n\n", "data: ", " \n\n"),
        chat("\n\n", "data: ", ""),
        chat("\n\n", "data: ", "\n"),
        chat("\n\n", "id: 7\nretry: 10\nevent: message\ndata: ", "\n\n"),
        format!("\u{feff}{}", chat("\n\n", "data: ", "\n\n")),
        format!("\n\n{}", chat("\n\n", "data: ", "\n\n")),
        chat("\n\n", "data: ", "\n\n").replace(r#","usage":"#, ",\ndata: \"usage\":"),
    ];
    for dress in dresses {
        assert_eq!(facts(Endpoint::ChatCompletions, dress.as_bytes()), expected, "{dress:?}");
    }
}

#[test]
fn comments_are_counted_apart() {
    let stream = format!(": X PROCESSING\n\n:\n\n{}", chat("\n:\n\n", ": between\ndata: ", "\n\n"));
    let found = facts(Endpoint::ChatCompletions, stream.as_bytes());
    assert_eq!((found.events, found.comments), (5, 11));
    let mut scanner = SseScanner::new(Endpoint::ChatCompletions);
    assert_eq!(scanner.push(b": hb\n\n: hb\n\n"), 0);
    assert!(scanner.is_at_boundary());
}

#[test]
fn each_way_to_end_is_seen_once() {
    let finish = "data: {\"choices\":[{\"finish_reason\": \"stop\"}]}\n\n";
    let found = facts(Endpoint::ChatCompletions, finish.as_bytes());
    assert_eq!((found.finished, found.end), (true, None));
    let found = facts(Endpoint::ChatCompletions, b"data: [DONE]\n\ndata: {}\n\ndata: [DONE]\n\n");
    assert_eq!((found.events, found.end), (3, Some(StreamEnd::Done)));
    let found = facts(Endpoint::ChatCompletions, b"data: {\"choices\":[{\"finish_reason\":null}]}\n\n");
    assert_eq!((found.finished, found.end), (false, None));
    let two = br#"data: {"choices":[{"finish_reason":null},{"finish_reason" : "length"}]}"#;
    assert!(facts(Endpoint::Completions, two).finished);
}

#[test]
fn responses_streams_are_read_with_and_without_names() {
    let events = [
        (
            "response.created",
            r#"{"type":"response.created","response":{"status":"in_progress","error":null,"usage":null}}"#,
        ),
        ("response.output_text.delta", r#"{"type":"response.output_text.delta","delta":"\"response.completed\""}"#),
        (
            "response.completed",
            concat!(
                r#"{"response":{"error":null,"usage":{"input_tokens":7,"input_tokens_details":{"cached_tokens":2},"#,
                r#""output_tokens":3}},"type":"response.completed"}"#
            ),
        ),
    ];
    let named: Vec<String> = events.iter().map(|(name, data)| format!("event: {name}\ndata: {data}\n\n")).collect();
    let bare: Vec<String> = events.iter().map(|(_, data)| format!("data: {data}\n\n")).collect();
    let found = facts(Endpoint::Responses, named.concat().as_bytes());
    assert_eq!(facts(Endpoint::Responses, bare.concat().as_bytes()), found);
    assert_eq!((found.events, found.end, found.error), (3, Some(StreamEnd::Completed), None));
    assert_eq!(found.usage, Some(Usage { input_tokens: 7, cached_input_tokens: 2, output_tokens: 3 }));

    let failed =
        br#"data: {"type":"response.failed","response":{"error":{"code":"rate_limit_exceeded","message":"m"}}}"#;
    let found = facts(Endpoint::Responses, failed);
    assert_eq!(found.end, Some(StreamEnd::Failed));
    assert_eq!(found.error.and_then(|error| error.facts.code).as_deref(), Some("rate_limit_exceeded"));
    let error = br#"data: {"type":"error","code":"server_error","message":"m","param":null}"#;
    assert_eq!(facts(Endpoint::Responses, error).error.and_then(|error| error.facts.message).as_deref(), Some("m"));
    let incomplete = b"event: response.incomplete\ndata: {\"response\":{}}\n\n";
    assert_eq!(facts(Endpoint::Responses, incomplete).end, Some(StreamEnd::Incomplete));
}

#[test]
fn messages_streams_sum_their_usage() {
    let stream = concat!(
        "event: message_start\n",
        r#"data: {"type":"message_start","message":{"usage":"#,
        r#"{"input_tokens":10,"cache_read_input_tokens":5,"output_tokens":1}}}"#,
        "\n\nevent: ping\ndata: {\"type\": \"ping\"}\n\n",
        "event: content_block_delta\n",
        "data: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"message_stop\"}}\n\n",
        "event: message_delta\n",
        r#"data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":42}}"#,
        "\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
    );
    let found = facts(Endpoint::Messages, stream.as_bytes());
    assert_eq!(found.usage, Some(Usage { input_tokens: 15, cached_input_tokens: 5, output_tokens: 42 }));
    assert_eq!((found.events, found.finished, found.end), (5, true, Some(StreamEnd::MessageStop)));
    let bare: Vec<&str> = stream.split_inclusive('\n').filter(|line| !line.starts_with("event")).collect();
    assert_eq!(facts(Endpoint::Messages, bare.concat().as_bytes()), found);
}

#[test]
fn errors_in_any_dress_are_seen() {
    for (endpoint, stream, code) in [
        (Endpoint::ChatCompletions, r#"data: {"error":{"message":"m","type":"t","code":503}}"#, Some("503")),
        (Endpoint::ChatCompletions, r#"data: {"object":"error","message":"m","type":"t","code":400}"#, Some("400")),
        (Endpoint::ChatCompletions, "event: error\ndata: {\"message\":\"m\",\"type\":\"t\"}", None),
        (Endpoint::ChatCompletions, r#"data:{"error":"m","error_type":"t"}"#, None),
        (
            Endpoint::Messages,
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"t\",\"message\":\"m\"}}",
            None,
        ),
        (Endpoint::Messages, r#"data: {"type":"error","error":{"type":"t","message":"m"}}"#, None),
        (Endpoint::Responses, r#"data: {"error":{"message":"m","type":"t"}}"#, None),
    ] {
        let found = facts(endpoint, format!("{stream}\n\n").as_bytes()).error.unwrap_or_else(|| panic!("{stream}"));
        assert_eq!(found.event, 1, "{stream}");
        assert_eq!(found.facts.error_type.as_deref(), Some("t"), "{stream}");
        assert_eq!((found.facts.message.as_deref(), found.facts.code.as_deref()), (Some("m"), code), "{stream}");
    }
    let nested = br#"data: {"choices":[{"content_filter_results":{"error":{"code":"x"}}}],"error":null}"#;
    assert_eq!(facts(Endpoint::ChatCompletions, nested).error, None);
}

#[test]
fn oversized_events_cost_no_memory_and_still_end() {
    let filler = "x".repeat(2 * MAX_EVENT_BYTES);
    let stream = format!(
        "event: response.completed\ndata: {{\"a\":\"{filler}\"}}\n\ndata: {{\"type\":\"error\",\"code\":\"c\"}}\n\n"
    );
    let whole = scan(Endpoint::Responses, &[stream.as_bytes()]);
    assert_eq!((whole.events, whole.oversized, whole.end), (2, 1, Some(StreamEnd::Completed)));
    assert_eq!(whole.error.as_ref().map(|error| error.event), Some(2));
    for size in [1, 1000, MAX_EVENT_BYTES - 1, MAX_EVENT_BYTES + 30] {
        let mut scanner = SseScanner::new(Endpoint::Responses);
        for chunk in stream.as_bytes().chunks(size) {
            scanner.push(chunk);
            assert!(scanner.line.capacity() + scanner.data.capacity() <= 4 * MAX_EVENT_BYTES);
        }
        assert_eq!(scanner.finish(), whole, "{size}");
    }
}

#[test]
fn a_stream_cut_inside_an_event_is_not_at_a_boundary() {
    let mut scanner = SseScanner::new(Endpoint::ChatCompletions);
    assert!(scanner.is_at_boundary());
    for (chunk, at_boundary) in
        [("data: {", false), ("}", false), ("\n", false), ("\r", true), ("\n", true), ("id: 1\n", false), ("\n", true)]
    {
        scanner.push(chunk.as_bytes());
        assert_eq!(scanner.is_at_boundary(), at_boundary, "{chunk:?}");
    }
}

#[test]
fn pieces_of_an_answer_are_counted_in_each_dialect() {
    let outputs = |endpoint, stream: &str| {
        let mut scanner = SseScanner::new(endpoint);
        scanner.push(stream.as_bytes());
        scanner.finish().outputs
    };
    let azure = [
        r#"{"choices": [ ],"prompt_filter_results":[{"prompt_index":0}]}"#,
        r#"{"choices":[{"delta":{"role":"assistant","content":""}}]}"#,
        r#"{"choices":[{"delta":{"content":"a"}}]}"#,
        r#"{"choices":[{"delta":{"content":"b \"finish_reason\":\"stop\""},"finish_reason":null}]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
        "[DONE]",
    ];
    let chat = |events: &[&str]| events.iter().map(|data| format!("data: {data}\n\n")).collect::<Vec<_>>().concat();
    assert_eq!(outputs(Endpoint::ChatCompletions, &chat(&azure)), 2);
    // Some name the role in each chunk, and some think before they speak.
    let role = r#"{"choices":[{"delta":{"role":"assistant","content":"a"}}]}"#;
    let thought = r#"{"choices":[{"delta":{"role":"assistant","content":"","reasoning_content":"x"}}]}"#;
    assert_eq!(outputs(Endpoint::ChatCompletions, &chat(&[role, thought, role])), 3);
    // Some tell the usage with each piece.
    let counted = r#"{"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":9,"completion_tokens":1}}"#;
    let only_usage = r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2}}"#;
    assert_eq!(outputs(Endpoint::ChatCompletions, &chat(&[counted, counted, only_usage])), 2);
    let error = r#"{"error":{"message":"m","type":"server_error"}}"#;
    assert_eq!(outputs(Endpoint::ChatCompletions, &chat(&[role, error])), 1);
    assert_eq!(outputs(Endpoint::Completions, &chat(&[r#"{"choices":[{"text":"a"}]}"#])), 1);
    let named = |endpoint, kinds: &[&str], with_name: bool| {
        let name = |kind: &str| if with_name { format!("event: {kind}\n") } else { String::new() };
        let event = |kind: &&str| format!("{}data: {{\"type\":\"{kind}\",\"x\":\"a.delta\"}}\n\n", name(kind));
        outputs(endpoint, &kinds.iter().map(event).collect::<String>())
    };
    let messages = ["message_start", "content_block_start", "content_block_delta", "ping", "content_block_delta"];
    let responses = ["response.created", "response.output_text.delta", "response.output_text.done"];
    for with_name in [true, false] {
        assert_eq!(named(Endpoint::Messages, &messages, with_name), 2);
        assert_eq!(named(Endpoint::Responses, &responses, with_name), 1);
    }
}
