//! Reads answers: error bodies, and the events of streams.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The longest line of a stream that is read, and the longest error body.
const MAX_BYTES: usize = 1 << 20;
/// The longest code that is kept.
const MAX_CODE_CHARS: usize = 64;

/// What an error body says.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct ErrorFacts {
    pub(super) kind: Option<String>,
    pub(super) code: Option<String>,
    pub(super) message: Option<String>,
    /// Whether the body was JSON at all.
    pub(super) json: bool,
}

impl ErrorFacts {
    /// Reads `{"error": {...}}`, `{"error": "text", "error_type": ...}` and what else is JSON.
    pub(super) fn of_body(body: &[u8]) -> Self {
        match serde_json::from_slice::<Value>(body) {
            Ok(body) => Self::of_value(&body),
            Err(_) => Self::default(),
        }
    }

    fn of_value(body: &Value) -> Self {
        let text = |value: Option<&Value>| match value {
            Some(Value::String(text)) => Some(text.clone()),
            Some(Value::Number(number)) => Some(number.to_string()),
            _ => None,
        };
        let error = body.get("error").filter(|error| error.is_object()).unwrap_or(body);
        let flat = body.get("error").filter(|error| error.is_string());
        Self {
            kind: text(error.get("type")).or_else(|| text(body.get("error_type"))),
            code: text(error.get("code")),
            message: text(error.get("message")).or_else(|| text(flat)),
            json: true,
        }
    }

    /// The code, or else the type, by which the report groups failures; short, whatever the server wrote.
    pub(super) fn label(&self) -> Option<String> {
        self.code.as_ref().or(self.kind.as_ref()).map(|label| label.chars().take(MAX_CODE_CHARS).collect())
    }
}

/// Whether a whole answer with status 200 is an error all the same. Only answers that were kept whole are judged.
pub(super) fn error_in_success(body: &[u8]) -> Option<ErrorFacts> {
    #[derive(Deserialize)]
    struct Whole<'a> {
        #[serde(borrow, default)]
        error: Option<&'a RawValue>,
    }
    serde_json::from_slice::<Whole<'_>>(body).ok()?.error.map(|_| ErrorFacts::of_body(body))
}

/// Gathers bytes up to a bound.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pub(super) bytes: Vec<u8>,
    pub(super) whole: bool,
}

impl Kept {
    pub(super) fn new() -> Self {
        Self { bytes: Vec::new(), whole: true }
    }

    pub(super) fn add(&mut self, data: &[u8]) {
        let room = MAX_BYTES - self.bytes.len();
        self.bytes.extend_from_slice(&data[..data.len().min(room)]);
        self.whole &= data.len() <= room;
    }
}

/// A stream's state after the bytes read so far.
#[derive(Debug, Default)]
pub(super) struct StreamReader {
    line: Vec<u8>,
    skipped_line: bool,
    /// Events with data so far, the closing one not counted.
    pub(super) events: u64,
    /// Whether an event held output.
    pub(super) has_output: bool,
    /// Whether the stream said that it is complete.
    pub(super) done: bool,
    /// The first error event, and whether it was the very first event.
    pub(super) error: Option<(ErrorFacts, bool)>,
}

/// The few members of an event that matter here, over all endpoints.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(default)]
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    delta: Option<Delta>,
}

#[derive(Deserialize)]
struct Delta {
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    reasoning_content: Option<String>,
    #[serde(default)]
    tool_calls: Option<serde::de::IgnoredAny>,
}

impl Choice {
    fn has_output(&self) -> bool {
        let filled = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
        filled(&self.text)
            || self.delta.as_ref().is_some_and(|delta| {
                filled(&delta.content) || filled(&delta.reasoning_content) || delta.tool_calls.is_some()
            })
    }
}

impl StreamReader {
    /// Reads on; lines may be split anywhere. Returns whether the bytes completed at least one event with data.
    pub(super) fn feed(&mut self, mut data: &[u8]) -> bool {
        let before = self.events;
        while let Some(end) = data.iter().position(|byte| *byte == b'\n') {
            self.extend(&data[..end]);
            self.line_ends();
            data = &data[end + 1..];
        }
        self.extend(data);
        self.events > before
    }

    fn extend(&mut self, data: &[u8]) {
        if self.line.len() + data.len() > MAX_BYTES {
            self.skipped_line = true;
        } else {
            self.line.extend_from_slice(data);
        }
    }

    fn line_ends(&mut self) {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.skipped_line) {
            // Too long to be read: an event all the same.
            self.events += 1;
            return;
        }
        let data = line.strip_prefix(b"data:").map(<[u8]>::trim_ascii);
        if let Some(data) = data.filter(|data| !data.is_empty()) {
            self.event(data);
        }
        // Gives the buffer back, so that a stream of small lines does not allocate for each.
        self.line = line;
        self.line.clear();
    }

    fn event(&mut self, data: &[u8]) {
        if data == b"[DONE]" {
            self.done = true;
            return;
        }
        let first = self.events == 0;
        self.events += 1;
        let Ok(event) = serde_json::from_slice::<Event<'_>>(data) else {
            return;
        };
        let kind = event.kind.as_deref().unwrap_or_default();
        if event.error.is_some() || kind == "error" || kind == "response.failed" {
            let nested = serde_json::from_slice::<Value>(data)
                .ok()
                .and_then(|mut event| event.get_mut("response").map(Value::take));
            let facts = nested.map_or_else(|| ErrorFacts::of_body(data), |response| ErrorFacts::of_value(&response));
            self.error.get_or_insert((facts, first));
            return;
        }
        self.done |= matches!(kind, "message_stop" | "response.completed" | "response.incomplete");
        self.has_output |= matches!(kind, "content_block_delta" | "response.output_text.delta")
            || event.choices.iter().any(Choice::has_output);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> StreamReader {
        let mut whole = StreamReader::default();
        whole.feed(text.as_bytes());
        for split in 0..text.len() {
            let mut parts = StreamReader::default();
            parts.feed(&text.as_bytes()[..split]);
            parts.feed(&text.as_bytes()[split..]);
            assert_eq!(
                (parts.events, parts.has_output, parts.done, &parts.error),
                (whole.events, whole.has_output, whole.done, &whole.error),
                "split at {split}"
            );
        }
        whole
    }

    #[test]
    fn streams_of_each_endpoint_are_read_at_every_split() {
        let role = "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n";
        let chat = read(role);
        assert_eq!((chat.events, chat.has_output, chat.done), (1, false, false));
        let content = r#"data: {"choices":[{"delta":{"content":"a\"b"}}]}"#;
        let chat = read(&format!("{role}: ping\r\n\r\n{content}\r\n\r\ndata: [DONE]\n\n"));
        assert_eq!((chat.events, chat.has_output, chat.done), (2, true, true));
        let delta = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\"}\n\n";
        let messages = read(&format!("{delta}data: {{\"type\":\"message_stop\"}}\n\n"));
        assert_eq!((messages.events, messages.has_output, messages.done), (2, true, true));
        let completed = r#"data: {"type":"response.completed","response":{"error":null}}"#;
        let responses = read(&format!("data: {{\"type\":\"response.output_text.delta\"}}\n\n{completed}\n\n"));
        assert_eq!((responses.has_output, responses.done, responses.error), (true, true, None));
    }

    #[test]
    fn error_events_are_told_from_output_and_the_first_one_from_later_ones() {
        let first = read("data: {\"error\":{\"type\":\"server_error\",\"code\":503,\"message\":\"full\"}}\n\n");
        let facts = ErrorFacts {
            kind: Some("server_error".into()),
            code: Some("503".into()),
            message: Some("full".into()),
            json: true,
        };
        assert_eq!(first.error, Some((facts, true)));
        let later = read("data: {\"choices\":[{\"text\":\"a\"}]}\n\ndata: {\"type\":\"error\",\"code\":\"lost\"}\n\n");
        assert_eq!(later.error.map(|(facts, first)| (facts.code, first)), Some((Some("lost".into()), false)));
        let failed =
            read("data: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"overloaded\"}}}\n\n");
        assert_eq!(failed.error.and_then(|(facts, _)| facts.code).as_deref(), Some("overloaded"));
    }

    #[test]
    fn error_bodies_of_each_form_are_read() {
        let flat = ErrorFacts::of_body(b"{\"error\":\"Model is overloaded\",\"error_type\":\"overloaded\"}");
        assert_eq!(
            (flat.label().as_deref(), flat.message.as_deref()),
            (Some("overloaded"), Some("Model is overloaded"))
        );
        assert_eq!(ErrorFacts::of_body(b"<html>"), ErrorFacts::default());
        assert_eq!(ErrorFacts::of_body(b"{\"error\":{\"code\":null,\"type\":\"t\"}}").label().as_deref(), Some("t"));
        assert!(error_in_success(b"{\"error\":null,\"output\":[]}").is_none());
        assert!(error_in_success(b"{\"error\":{\"code\":\"x\"}}").is_some());
    }

    #[test]
    fn endless_lines_and_bodies_stay_within_the_bound() {
        let mut reader = StreamReader::default();
        for _ in 0..40 {
            reader.feed(&vec![b'x'; 65_536]);
        }
        assert!(reader.line.len() <= MAX_BYTES);
        assert!(reader.feed(b"\ndata: [DONE]\n"));
        assert!(reader.done);
        let mut kept = Kept::new();
        (0..40).for_each(|_| kept.add(&vec![b'x'; 65_536]));
        assert_eq!((kept.bytes.len(), kept.whole), (MAX_BYTES, false));
    }
}
