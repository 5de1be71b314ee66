//! Reads the facts of an event stream as its chunks pass by, and changes nothing.
//!
//! The grammar is that of server-sent events in the HTML standard: lines end with LF, CRLF or CR; a blank line ends an
//! event; `data` lines of one event belong together; a leading byte order mark and comments are skipped. One thing
//! differs: at the end of the stream an event without its blank line still counts ([`SseScanner::finish`]), since
//! clients read it too. The facts do not depend on how the stream is cut into chunks.
//!
//! Memory is bounded: of an event whose line or data exceeds [`MAX_EVENT_BYTES`] only its end and its name are seen.
//! JSON is looked into only where a search for a few keys finds one that can carry a fact; inside the text of an answer
//! these keys cannot stand, because quotes are escaped there.

use crate::dialect::Endpoint;
use crate::json;
use crate::upstream_error::ErrorFacts;
use crate::usage::{Usage, UsageParts, value_after};
use memchr::{memchr2, memmem};
use std::sync::LazyLock;

/// The longest line, and the most data, of which the facts are read.
pub const MAX_EVENT_BYTES: usize = 256 * 1024;
/// What is kept of a longer line: its field's name.
const CUT_BYTES: usize = 64;
/// Buffers are given back above this size.
const KEEP_BYTES: usize = 16 * 1024;

/// How a stream said that it is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// `data: [DONE]`.
    Done,
    /// Responses: `response.completed`.
    Completed,
    /// Responses: `response.incomplete`, cut by a limit; a valid answer.
    Incomplete,
    /// Responses: `response.failed`; [`StreamFacts::error`] says why.
    Failed,
    /// Anthropic: `message_stop`.
    MessageStop,
}

/// An error told inside a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamError {
    /// Which event it was, from 1: as the first one it can still become a real status.
    pub event: u64,
    /// Its words.
    pub facts: ErrorFacts,
}

/// What a stream has told so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamFacts {
    /// Events with data that have ended; comments are none.
    pub events: u64,
    /// Events that carried a piece of the answer, as near as that can be told without reading it: a piece is about a
    /// token.
    pub outputs: u64,
    /// Comment lines: heartbeats, no progress of the answer.
    pub comments: u64,
    /// Whether a reason to finish was given (`finish_reason`, `stop_reason`), or the end itself.
    pub finished: bool,
    /// The first end that was told.
    pub end: Option<StreamEnd>,
    /// The first error that was told.
    pub error: Option<StreamError>,
    /// The usage, as far as it was told.
    pub usage: Option<Usage>,
    /// Events too large to be read.
    pub oversized: u64,
}

/// Names that can carry facts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Name {
    /// No `event` line.
    #[default]
    None,
    Error,
    MessageStart,
    MessageDelta,
    MessageStop,
    Completed,
    Incomplete,
    Failed,
    /// A piece of the answer.
    Delta,
    Other,
}

impl Name {
    fn read(name: &[u8]) -> Self {
        match name {
            b"" => Self::None,
            b"error" => Self::Error,
            b"message_start" => Self::MessageStart,
            b"message_delta" => Self::MessageDelta,
            b"message_stop" => Self::MessageStop,
            b"response.completed" => Self::Completed,
            b"response.incomplete" => Self::Incomplete,
            b"response.failed" => Self::Failed,
            b"content_block_delta" => Self::Delta,
            // Text, reasoning, arguments of a call: Responses names them all so.
            other if other.ends_with(b".delta") => Self::Delta,
            _ => Self::Other,
        }
    }

    const fn end(self) -> Option<StreamEnd> {
        match self {
            Self::MessageStop => Some(StreamEnd::MessageStop),
            Self::Completed => Some(StreamEnd::Completed),
            Self::Incomplete => Some(StreamEnd::Incomplete),
            Self::Failed => Some(StreamEnd::Failed),
            Self::None | Self::Error | Self::MessageStart | Self::MessageDelta | Self::Delta | Self::Other => None,
        }
    }
}

/// Watches one stream.
#[derive(Clone, Debug)]
pub struct SseScanner {
    endpoint: Endpoint,
    facts: StreamFacts,
    usage: UsageParts,
    /// The part of the current line that came in earlier chunks.
    line: Vec<u8>,
    line_is_cut: bool,
    /// The data of the current event.
    data: Vec<u8>,
    has_data: bool,
    data_is_cut: bool,
    name: Name,
    /// Whether anything of the current event, or line, has passed.
    is_open: bool,
    is_first_line: bool,
    /// A CR ended the last line: an LF that follows belongs to it.
    after_cr: bool,
}

impl SseScanner {
    /// Watches a stream that answers `endpoint`.
    pub fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            facts: StreamFacts::default(),
            usage: UsageParts::default(),
            line: Vec::new(),
            line_is_cut: false,
            data: Vec::new(),
            has_data: false,
            data_is_cut: false,
            name: Name::None,
            is_open: false,
            is_first_line: true,
            after_cr: false,
        }
    }

    /// What was told so far.
    pub const fn facts(&self) -> &StreamFacts {
        &self.facts
    }

    /// Whether the bytes so far end between two events: nothing of another event has passed.
    pub const fn is_at_boundary(&self) -> bool {
        !self.is_open
    }

    /// Takes note of the next chunk. Returns the number of events with data that ended in it.
    pub fn push(&mut self, chunk: &[u8]) -> u64 {
        let before = self.facts.events;
        let mut rest = chunk;
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(end) = memchr2(b'\n', b'\r', rest) {
            let (line, after) = rest.split_at(end);
            rest = &after[1..];
            if after[0] == b'\r' {
                match rest.strip_prefix(b"\n") {
                    Some(next) => rest = next,
                    None => self.after_cr = rest.is_empty(),
                }
            }
            self.end_line(line);
        }
        if !rest.is_empty() {
            self.is_open = true;
            self.keep(rest);
        }
        self.facts.events - before
    }

    /// The stream has ended: an event without its blank line ends too. Returns the final facts.
    pub fn finish(mut self) -> StreamFacts {
        if !self.line.is_empty() {
            self.end_line(&[]);
        }
        self.end_event();
        self.facts
    }

    fn keep(&mut self, part: &[u8]) {
        if self.line_is_cut {
            return;
        }
        if self.line.len() + part.len() > MAX_EVENT_BYTES {
            self.line.extend_from_slice(&part[..part.len().min(CUT_BYTES)]);
            self.line.truncate(CUT_BYTES);
            self.line_is_cut = true;
            return;
        }
        self.line.extend_from_slice(part);
    }

    fn end_line(&mut self, last_part: &[u8]) {
        if self.line.is_empty() && last_part.len() <= MAX_EVENT_BYTES {
            self.read_line(last_part);
            return;
        }
        self.keep(last_part);
        let line = std::mem::take(&mut self.line);
        self.read_line(&line);
        self.line = reuse(line);
        self.line_is_cut = false;
    }

    fn read_line(&mut self, line: &[u8]) {
        let mut line = line;
        if std::mem::take(&mut self.is_first_line) {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            self.end_event();
            return;
        }
        self.is_open = true;
        let (field, value) = match memchr::memchr(b':', line) {
            Some(0) => {
                self.facts.comments += 1;
                return;
            }
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => self.add_data(value),
            b"event" => self.name = Name::read(value),
            _ => {}
        }
    }

    fn add_data(&mut self, value: &[u8]) {
        self.data_is_cut |= self.line_is_cut || self.data.len() + value.len() > MAX_EVENT_BYTES;
        if !self.data_is_cut {
            if self.has_data {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(value);
        }
        self.has_data = true;
    }

    fn end_event(&mut self) {
        self.is_open = false;
        let name = std::mem::take(&mut self.name);
        if !std::mem::take(&mut self.has_data) {
            return;
        }
        self.facts.events += 1;
        let data = std::mem::take(&mut self.data);
        if std::mem::take(&mut self.data_is_cut) {
            self.facts.oversized += 1;
            self.facts.outputs += u64::from(name.end().is_none());
            self.take_end(name.end());
        } else if data.trim_ascii() == b"[DONE]" {
            self.take_end(Some(StreamEnd::Done));
        } else {
            self.read_event(name, &data);
        }
        self.data = reuse(data);
    }

    fn read_event(&mut self, name: Name, data: &[u8]) {
        match self.endpoint {
            Endpoint::Responses | Endpoint::Messages => self.read_named(name, data),
            _ => self.read_chunk(name, data),
        }
    }

    /// An event of chat or text completions: a chunk.
    fn read_chunk(&mut self, name: Name, data: &[u8]) {
        if name == Name::Error || KEYS.error.find(data).is_some() {
            self.take_error(name, data);
        }
        let finishes = find_set(&KEYS.finish_reason, data);
        self.facts.finished |= finishes;
        let usage = if find_set(&KEYS.usage, data) { json::member(data, "usage") } else { None };
        if let Some(usage) = usage {
            self.take_usage(usage);
        }
        let is_error = self.facts.error.as_ref().is_some_and(|error| error.event == self.facts.events);
        // Usage comes in an event of its own, or, from some servers, in each.
        let is_none = (usage.is_some() || self.facts.outputs == 0) && is_opening(data);
        self.facts.outputs += u64::from(!finishes && !is_error && !is_none);
    }

    /// An event of Responses or Messages: its kind stands in its name, or else in its `type`.
    fn read_named(&mut self, name: Name, data: &[u8]) {
        let kind = if name == Name::None { self.kind_by_type(data) } else { name };
        match kind {
            Name::Error => self.take_error(kind, data),
            Name::MessageStart => {
                if let Some(usage) = json::member(data, "message").and_then(|message| json::member(message, "usage")) {
                    self.take_usage(usage);
                }
            }
            Name::MessageDelta => {
                if let Some(usage) = json::member(data, "usage") {
                    self.take_usage(usage);
                }
                let reason = json::member(data, "delta").and_then(|delta| json::member(delta, "stop_reason"));
                self.facts.finished |= reason.is_some_and(|reason| reason != b"null");
            }
            Name::Completed | Name::Incomplete | Name::Failed => {
                let response = json::member(data, "response").unwrap_or_default();
                if let Some(usage) = json::member(response, "usage") {
                    self.take_usage(usage);
                }
                if kind == Name::Failed {
                    self.take_error(kind, response);
                }
            }
            // An upstream of another make may send its errors without a name.
            Name::Delta | Name::Other if KEYS.error.find(data).is_some() => self.take_error(kind, data),
            Name::Delta => self.facts.outputs += 1,
            Name::None | Name::Other | Name::MessageStop => {}
        }
        self.take_end(kind.end());
    }

    fn kind_by_type(&self, data: &[u8]) -> Name {
        let keys: &[_] = if self.endpoint == Endpoint::Messages { &KEYS.messages } else { &KEYS.responses };
        if KEYS.error.find(data).is_none() && keys.iter().all(|key| key.find(data).is_none()) {
            return Name::Other;
        }
        let kind = json::member(data, "type").and_then(json::text);
        kind.map_or(Name::Other, |kind| Name::read(kind.as_bytes()))
    }

    fn take_error(&mut self, name: Name, data: &[u8]) {
        if self.facts.error.is_some() {
            return;
        }
        let facts = match name {
            Name::Error | Name::Failed => Some(ErrorFacts::read_any(data)),
            _ => ErrorFacts::read(data),
        };
        self.facts.error = facts.map(|facts| StreamError { event: self.facts.events, facts });
    }

    fn take_usage(&mut self, usage: &[u8]) {
        self.usage.merge(usage);
        self.facts.usage = self.usage.usage();
    }

    fn take_end(&mut self, end: Option<StreamEnd>) {
        self.facts.finished |= end.is_some();
        self.facts.end = self.facts.end.or(end);
    }
}

/// An emptied buffer, given back where it has grown large.
fn reuse(mut buffer: Vec<u8>) -> Vec<u8> {
    buffer.clear();
    buffer.shrink_to(KEEP_BYTES);
    buffer
}

/// Searches that tell whether an event can carry a fact at all.
struct Keys {
    error: memmem::Finder<'static>,
    finish_reason: memmem::Finder<'static>,
    usage: memmem::Finder<'static>,
    choices: memmem::Finder<'static>,
    content: memmem::Finder<'static>,
    role: memmem::Finder<'static>,
    messages: [memmem::Finder<'static>; 2],
    responses: [memmem::Finder<'static>; 4],
}

static KEYS: LazyLock<Keys> = LazyLock::new(|| Keys {
    error: memmem::Finder::new(b"\"error\""),
    finish_reason: memmem::Finder::new(b"\"finish_reason\""),
    usage: memmem::Finder::new(b"\"usage\""),
    choices: memmem::Finder::new(b"\"choices\""),
    content: memmem::Finder::new(b"\"content\""),
    role: memmem::Finder::new(b"\"role\""),
    messages: [memmem::Finder::new(b"\"message_"), memmem::Finder::new(b"\"content_block_delta\"")],
    responses: [
        memmem::Finder::new(b"\"response.completed\""),
        memmem::Finder::new(b"\"response.incomplete\""),
        memmem::Finder::new(b"\"response.failed\""),
        memmem::Finder::new(b".delta\""),
    ],
});

/// Whether a chunk only opens an answer: without choices (Azure tells there what its filter says of the prompt), or
/// with a role and no text yet.
fn is_opening(data: &[u8]) -> bool {
    let values = |key: &'static memmem::Finder<'_>| {
        key.find_iter(data).filter_map(|at| value_after(&data[at + key.needle().len()..]))
    };
    let is_empty = |list: &[u8]| list.strip_prefix(b"[").is_some_and(|list| list.trim_ascii_start().starts_with(b"]"));
    let is_text = |value: &[u8]| value.first() == Some(&b'"') && value.get(1) != Some(&b'"');
    values(&KEYS.choices).any(is_empty) || (KEYS.role.find(data).is_some() && !values(&KEYS.content).any(is_text))
}

/// Whether the key stands in `data` with a value other than null.
fn find_set(key: &memmem::Finder<'_>, data: &[u8]) -> bool {
    key.find_iter(data).any(|at| {
        let value = value_after(&data[at + key.needle().len()..]);
        value.is_some_and(|value| !value.starts_with(b"null"))
    })
}

#[cfg(test)]
mod tests;
