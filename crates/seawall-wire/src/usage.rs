//! Tokens used, as the upstream reports them, in one form for the three dialects.
//!
//! OpenAI counts cached input inside `prompt_tokens` (`input_tokens` of Responses); Anthropic counts it beside
//! `input_tokens`. Here `input_tokens` is always all of the input.

use crate::json::{self, Members};
use memchr::memmem;

/// Tokens of one answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// All input, cached input included.
    pub input_tokens: u64,
    /// The part of the input that came out of a cache.
    pub cached_input_tokens: u64,
    /// All output, reasoning included.
    pub output_tokens: u64,
}

/// The usage in a whole body, or in its last kilobytes; `None` where it states none.
///
/// The last member `usage` that is an object is taken. The text of an answer cannot be mistaken for it: inside a JSON
/// string its quotes are escaped.
pub fn usage_in_tail(tail: &[u8]) -> Option<Usage> {
    const KEY: &[u8] = b"\"usage\"";
    let mut end = tail.len();
    while let Some(at) = memmem::rfind(&tail[..end], KEY) {
        if let Some(object) = value_after(&tail[at + KEY.len()..]).filter(|value| value.first() == Some(&b'{')) {
            let mut parts = UsageParts::default();
            parts.merge(object);
            if let Some(usage) = parts.usage() {
                return Some(usage);
            }
        }
        end = at;
    }
    None
}

/// What stands behind a key's closing quote: the value after the colon, and all that follows it.
pub(crate) fn value_after(rest: &[u8]) -> Option<&[u8]> {
    rest.trim_ascii_start().strip_prefix(b":").map(<[u8]>::trim_ascii_start)
}

/// Usage gathered over several events; counts only grow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UsageParts {
    input: Option<u64>,
    output: Option<u64>,
    cached: u64,
    /// Anthropic: read from the cache, and written to it, both beside `input`.
    cache_read: u64,
    cache_creation: u64,
}

impl UsageParts {
    /// Takes the counts of one `usage` object; what follows the object is not looked at.
    pub(crate) fn merge(&mut self, object: &[u8]) {
        let Ok(members) = Members::new(object) else { return };
        for member in members.map_while(Result::ok) {
            let value = &object[member.value.clone()];
            let counted = json::count(value);
            match member.key {
                b"prompt_tokens" | b"input_tokens" => self.input = self.input.max(counted),
                b"completion_tokens" | b"output_tokens" => self.output = self.output.max(counted),
                b"cache_read_input_tokens" => self.cache_read = self.cache_read.max(counted.unwrap_or(0)),
                b"cache_creation_input_tokens" => self.cache_creation = self.cache_creation.max(counted.unwrap_or(0)),
                b"prompt_tokens_details" | b"input_tokens_details" => {
                    let cached = json::member(value, "cached_tokens").and_then(json::count);
                    self.cached = self.cached.max(cached.unwrap_or(0));
                }
                _ => {}
            }
        }
    }

    /// The sum, once either side was stated.
    pub(crate) fn usage(&self) -> Option<Usage> {
        if self.input.is_none() && self.output.is_none() {
            return None;
        }
        let beside = self.cache_read.saturating_add(self.cache_creation);
        let input_tokens = self.input.unwrap_or(0).saturating_add(beside);
        Some(Usage {
            input_tokens,
            cached_input_tokens: self.cached.saturating_add(self.cache_read).min(input_tokens),
            output_tokens: self.output.unwrap_or(0),
        })
    }
}

/// Watches a body that does not stream as it passes: keeps its first and last kilobytes, nothing between.
#[derive(Clone, Debug, Default)]
pub struct BodyTap {
    head: Vec<u8>,
    tail: Vec<u8>,
}

impl BodyTap {
    /// Bytes kept of the start.
    pub const HEAD_BYTES: usize = 4 * 1024;
    /// Bytes kept of the end, at least, once so many have passed.
    pub const TAIL_BYTES: usize = 16 * 1024;

    /// Nothing seen yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes note of the next piece of the body.
    pub fn push(&mut self, chunk: &[u8]) {
        let missing = Self::HEAD_BYTES - self.head.len();
        self.head.extend_from_slice(&chunk[..chunk.len().min(missing)]);
        let kept = &chunk[chunk.len().saturating_sub(Self::TAIL_BYTES)..];
        let surplus = (self.tail.len() + kept.len()).saturating_sub(2 * Self::TAIL_BYTES);
        if surplus > 0 {
            // Dropping more than is needed makes the move rare: each byte is moved at most once on average.
            let keep = Self::TAIL_BYTES.min(self.tail.len());
            self.tail.drain(..self.tail.len() - keep);
        }
        self.tail.extend_from_slice(kept);
    }

    /// The start of the body.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// The usage that the body stated.
    pub fn usage(&self) -> Option<Usage> {
        usage_in_tail(&self.tail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_dialect_is_read() {
        let cases = [
            (
                r#"{"usage":{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13,
                   "prompt_tokens_details":{"cached_tokens":3}}}"#,
                (9, 3, 4),
            ),
            (
                r#"{"object":"response","usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":2},
                   "output_tokens":4}}"#,
                (9, 2, 4),
            ),
            (
                r#"{"usage" : {"input_tokens":9,"cache_creation_input_tokens":5,"cache_read_input_tokens":7,
                   "output_tokens":4}}"#,
                (21, 7, 4),
            ),
            (r#"{"data":[],"usage":{"prompt_tokens":9,"total_tokens":9}}"#, (9, 0, 0)),
            (r#"{"usage":{"prompt_tokens":9.0,"completion_tokens":1e2}}"#, (9, 0, 100)),
        ];
        for (body, (input_tokens, cached_input_tokens, output_tokens)) in cases {
            let expected = Usage { input_tokens, cached_input_tokens, output_tokens };
            assert_eq!(usage_in_tail(body.as_bytes()), Some(expected), "{body}");
        }
    }

    #[test]
    fn what_is_no_usage_is_not_taken_for_it() {
        for body in
            ["", "{}", r#"{"usage":null}"#, r#"{"usage":{}}"#, r#"{"a":"usage"}"#, r#"{"usage":{"total_tokens":"x"}}"#]
        {
            assert_eq!(usage_in_tail(body.as_bytes()), None, "{body}");
        }
        let text = r#"{"usage":{"prompt_tokens":1,"completion_tokens":2},"x":[{"token":"usage"}],
            "t":"\"usage\":{\"prompt_tokens\":9}"}"#;
        assert_eq!(usage_in_tail(text.as_bytes()).map(|usage| usage.input_tokens), Some(1));
    }

    #[test]
    fn a_tap_keeps_both_ends_in_bounded_memory() {
        let filler = "x".repeat(200_000);
        let body = format!(r#"{{"choices":["{filler}"],"usage":{{"prompt_tokens":7,"completion_tokens":8}}}}"#);
        for size in [1, 7, 1_000, 40_000, body.len()] {
            let mut tap = BodyTap::new();
            for chunk in body.as_bytes().chunks(size) {
                tap.push(chunk);
                assert!(tap.tail.len() <= 2 * BodyTap::TAIL_BYTES);
            }
            assert_eq!(tap.head(), &body.as_bytes()[..BodyTap::HEAD_BYTES], "{size}");
            assert_eq!(tap.usage().map(|usage| usage.output_tokens), Some(8), "{size}");
        }
    }
}
