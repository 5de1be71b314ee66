//! The facts of a request body, and the same body with another model.
//!
//! The body stays the bytes the client sent. [`peek`] walks it once; [`rewrite_model`] and [`splice_model`] replace the
//! one value that may differ upstream, or insert it where it is missing. A member that decides something here (`model`,
//! `stream`) may stand once only: parsers disagree on which of two counts, and the upstream must see what we saw.

use crate::json::{self, Fault, MAX_DEPTH, Members};
use bytes::{Bytes, BytesMut};
use std::borrow::Cow;
use std::ops::Range;

/// The longest model name, in bytes as written: names go into messages, logs and metrics.
pub const MAX_MODEL_BYTES: usize = 512;

/// What Seawall needs to know of a request body. Spans are places in the body that was peeked at; the accessors take
/// that same body again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BodyFacts {
    /// Whether a stream is asked for.
    pub stream: bool,
    /// The bound on output tokens: `max_completion_tokens`, `max_output_tokens` or `max_tokens`, the first that stands.
    pub max_output_tokens: Option<u64>,
    /// Answers asked for (`n`), at least 1.
    pub choices: u64,
    /// Bytes of everything the model reads: messages, input, prompt, system, instructions, tools. A file in base64
    /// counts for 4,096 bytes, about what an image costs.
    pub input_bytes: u64,
    model: Option<Range<usize>>,
    user: Option<Range<usize>>,
    open: usize,
    is_empty: bool,
}

impl BodyFacts {
    /// The model that `body` names; `None` where it has none or `null`. Allocates only for a name with escapes.
    pub fn model<'a>(&self, body: &'a [u8]) -> Option<Cow<'a, str>> {
        json::text(body.get(self.model.clone()?)?)
    }

    /// The place of the model's value in the body, quotes included.
    pub fn model_span(&self) -> Option<Range<usize>> {
        self.model.clone()
    }

    /// The end user that `body` names.
    pub fn user<'a>(&self, body: &'a [u8]) -> Option<Cow<'a, str>> {
        json::text(body.get(self.user.clone()?)?)
    }
}

/// Why a body cannot be used. The message names the place (bytes from the start) and the remedy; all are 400.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// Nothing was sent.
    #[error("The body is empty: send a JSON object.")]
    Empty,
    /// It starts with a byte order mark.
    #[error("The body starts with a byte order mark: send plain UTF-8 without one.")]
    ByteOrderMark,
    /// It is no JSON, or no object.
    #[error("The body is no valid JSON object: {expected} was expected at byte {at}.")]
    Syntax {
        /// What should stand there.
        expected: &'static str,
        /// Bytes from the start of the body.
        at: usize,
    },
    /// Too many brackets are open at once.
    #[error("The body is nested deeper than {MAX_DEPTH} levels at byte {at}: flatten it.")]
    TooDeep {
        /// Bytes from the start of the body.
        at: usize,
    },
    /// A member that decides something stands twice.
    #[error("The body has a second \"{name}\" at byte {at}: send it once.")]
    Duplicate {
        /// The member.
        name: &'static str,
        /// Bytes from the start of the body.
        at: usize,
    },
    /// A member that decides something, in other letters: some parsers would take it for the real one.
    #[error("The body spells \"{name}\" with other letters at byte {at}: write it in lower case.")]
    OtherCase {
        /// The member.
        name: &'static str,
        /// Bytes from the start of the body.
        at: usize,
    },
    /// A member of the wrong type.
    #[error("\"{name}\" at byte {at} must be {expected}.")]
    WrongType {
        /// The member.
        name: &'static str,
        /// What it must be.
        expected: &'static str,
        /// Bytes from the start of the body.
        at: usize,
    },
}

impl BodyError {
    /// The `error.code` to answer with.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Empty | Self::ByteOrderMark | Self::Syntax { .. } | Self::TooDeep { .. } => "invalid_json",
            Self::Duplicate { .. } | Self::OtherCase { .. } => "duplicate_member",
            Self::WrongType { .. } => "invalid_type",
        }
    }
}

impl From<Fault> for BodyError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Expected(expected, at) => Self::Syntax { expected, at },
            Fault::TooDeep(at) => Self::TooDeep { at },
        }
    }
}

/// The members that say how long the answer may be, the one that wins first.
const LIMITS: [&str; 3] = ["max_completion_tokens", "max_output_tokens", "max_tokens"];
/// The members that the model reads.
const INPUTS: [&[u8]; 7] = [b"messages", b"input", b"prompt", b"system", b"instructions", b"tools", b"functions"];

/// Reads the facts of a request body in one pass over its bytes.
///
/// Accepted as they are: any white space, member order, number form, escape, unknown member, up to 128 levels. Refused:
/// what is no JSON object, a second `model` or `stream`, and these two with a type that no upstream takes.
pub fn peek(body: &[u8]) -> Result<BodyFacts, BodyError> {
    if body.is_empty() {
        return Err(BodyError::Empty);
    }
    if body.starts_with(b"\xef\xbb\xbf") {
        return Err(BodyError::ByteOrderMark);
    }
    let mut members = Members::new(body)?;
    let mut facts = BodyFacts { choices: 1, open: members.open(), is_empty: true, ..BodyFacts::default() };
    let mut seen_stream = false;
    let mut limits = [None; LIMITS.len()];
    let mut blobs_before = 0;
    while let Some(member) = members.next().transpose()? {
        facts.is_empty = false;
        let value = &body[member.value.clone()];
        let blobs = members.blob_excess() - blobs_before;
        blobs_before = members.blob_excess();
        if INPUTS.contains(&member.key) {
            facts.input_bytes += (value.len() - blobs) as u64;
        } else if member.is("model") {
            if facts.model.is_some() {
                return Err(BodyError::Duplicate { name: "model", at: member.key_at });
            }
            check_model(value, member.value.start)?;
            facts.model = Some(member.value);
        } else if member.is("stream") {
            if seen_stream {
                return Err(BodyError::Duplicate { name: "stream", at: member.key_at });
            }
            seen_stream = true;
            facts.stream = match value {
                b"true" => true,
                b"false" | b"null" => false,
                _ => return Err(wrong_type("stream", "true or false", member.value.start)),
            };
        } else if member.is("user") {
            facts.user = Some(member.value);
        } else if member.is("n") {
            facts.choices = json::count(value).unwrap_or(1).max(1);
        } else if let Some(limit) = LIMITS.iter().position(|name| member.is(name)) {
            limits[limit] = json::count(value);
        } else if let Some(name) = ["model", "stream"].into_iter().find(|name| member.is_in_other_case(name)) {
            return Err(BodyError::OtherCase { name, at: member.key_at });
        }
    }
    facts.max_output_tokens = limits.into_iter().flatten().next();
    Ok(facts)
}

fn check_model(value: &[u8], at: usize) -> Result<(), BodyError> {
    if value.len() > MAX_MODEL_BYTES {
        return Err(wrong_type("model", "a name of at most 512 bytes", at));
    }
    if value == b"null" || json::text(value).is_some() {
        return Ok(());
    }
    Err(wrong_type("model", "a string of valid text", at))
}

const fn wrong_type(name: &'static str, expected: &'static str, at: usize) -> BodyError {
    BodyError::WrongType { name, expected, at }
}

/// A body in up to three pieces: the client's bytes around a new model value. Nothing of the client's is copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplicedBody {
    /// The client's bytes before the new ones; the whole body where nothing changes.
    pub head: Bytes,
    /// Our bytes; empty where nothing changes.
    pub value: Bytes,
    /// The client's bytes after the new ones.
    pub tail: Bytes,
}

impl SplicedBody {
    /// Bytes in all.
    pub fn len(&self) -> usize {
        self.head.len() + self.value.len() + self.tail.len()
    }

    /// Whether there are no bytes at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The pieces in order, without the empty ones.
    pub fn pieces(self) -> impl Iterator<Item = Bytes> {
        [self.head, self.value, self.tail].into_iter().filter(|piece| !piece.is_empty())
    }

    /// The whole as one piece; copies only where something changed.
    pub fn joined(self) -> Bytes {
        if self.value.is_empty() {
            return self.head;
        }
        let mut joined = BytesMut::with_capacity(self.len());
        joined.extend_from_slice(&self.head);
        joined.extend_from_slice(&self.value);
        joined.extend_from_slice(&self.tail);
        joined.freeze()
    }
}

/// The body with `new_model` as its model, in pieces. `facts` are those of this very body.
///
/// The value is replaced where it stands. A body without a model gets the member right after its opening brace. `None`,
/// or a name that the body already has, changes nothing.
pub fn splice_model(body: &Bytes, facts: &BodyFacts, new_model: Option<&str>) -> SplicedBody {
    let unchanged = || SplicedBody { head: body.clone(), value: Bytes::new(), tail: Bytes::new() };
    let Some(new_model) = new_model else { return unchanged() };
    if facts.model(body).is_some_and(|model| model == new_model) {
        return unchanged();
    }
    let name = serde_json::Value::from(new_model).to_string();
    let (span, value) = match (&facts.model, facts.is_empty) {
        (Some(span), _) => (span.clone(), name),
        (None, true) => (facts.open + 1..facts.open + 1, format!("\"model\":{name}")),
        (None, false) => (facts.open + 1..facts.open + 1, format!("\"model\":{name},")),
    };
    if span.end > body.len() {
        // Facts of another body: leave this one alone rather than break it.
        return unchanged();
    }
    SplicedBody { head: body.slice(..span.start), value: value.into(), tail: body.slice(span.end..) }
}

/// [`splice_model`] as one piece: the same [`Bytes`] (no copy) where nothing changes.
pub fn rewrite_model(body: &Bytes, facts: &BodyFacts, new_model: Option<&str>) -> Bytes {
    splice_model(body, facts, new_model).joined()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(body: &'static str, model: &str) -> String {
        let body = Bytes::from_static(body.as_bytes());
        let facts = peek(&body).unwrap();
        String::from_utf8(rewrite_model(&body, &facts, Some(model)).to_vec()).unwrap()
    }

    #[test]
    fn facts_are_found_wherever_they_stand() {
        let body = br#"
            {"messages":[{"role":"user","content":"hi"}],"stream" : true ,"user":"u\u00e9","n":3,
             "max_tokens":5,"max_completion_tokens":1e2,"mod\u0065l":"a\/b"}"#;
        let facts = peek(body).unwrap();
        assert_eq!(facts.model(body).as_deref(), Some("a/b"));
        assert_eq!(facts.user(body).as_deref(), Some("ué"));
        assert!(facts.stream);
        assert_eq!((facts.choices, facts.max_output_tokens), (3, Some(100)));
        assert_eq!(facts.input_bytes, r#"[{"role":"user","content":"hi"}]"#.len() as u64);
        assert_eq!(&body[facts.model_span().unwrap()], br#""a\/b""#);
    }

    #[test]
    fn nested_members_are_not_taken_for_the_request_s_own() {
        let body = br#"{"metadata":{"model":"x","stream":true},"input":"\"model\":\"y\"","model":"m"}"#;
        let facts = peek(body).unwrap();
        assert_eq!((facts.model(body).as_deref(), facts.stream), (Some("m"), false));
    }

    #[test]
    fn members_that_decide_may_stand_once() {
        for (body, name) in [
            (r#"{"model":"a","model":"a"}"#, "model"),
            (r#"{"model":"a","mod\u0065l":"b"}"#, "model"),
            (r#"{"stream":false,"stream":true}"#, "stream"),
        ] {
            assert!(matches!(peek(body.as_bytes()), Err(BodyError::Duplicate { name: n, .. }) if n == name), "{body}");
        }
        let error = peek(br#"{"model":"a","Model":"b"}"#).unwrap_err();
        assert_eq!(error, BodyError::OtherCase { name: "model", at: 13 });
        assert!(peek(br#"{"x":1,"x":2,"n":1,"n":2,"model":"a"}"#).is_ok());
    }

    #[test]
    fn mistakes_name_their_place() {
        let cases = [
            ("", "The body is empty: send a JSON object."),
            ("\u{feff}{}", "The body starts with a byte order mark: send plain UTF-8 without one."),
            ("[]", "The body is no valid JSON object: an object was expected at byte 0."),
            (r#"{"model":7}"#, "\"model\" at byte 9 must be a string of valid text."),
            (r#"{"model":"\ud800"}"#, "\"model\" at byte 9 must be a string of valid text."),
            (r#"{"stream":"true"}"#, "\"stream\" at byte 10 must be true or false."),
            (r#"{"stream":1}"#, "\"stream\" at byte 10 must be true or false."),
        ];
        for (body, message) in cases {
            assert_eq!(peek(body.as_bytes()).unwrap_err().to_string(), message, "{body}");
        }
        let long = format!("{{\"model\":\"{}\"}}", "x".repeat(600));
        assert!(matches!(peek(long.as_bytes()), Err(BodyError::WrongType { name: "model", .. })));
        let deep = format!("{{\"a\":{}", "[".repeat(200));
        assert_eq!(peek(deep.as_bytes()), Err(BodyError::TooDeep { at: 132 }));
    }

    #[test]
    fn odd_limits_count_as_none_or_as_much() {
        let limit = |body: &str| peek(body.as_bytes()).unwrap().max_output_tokens;
        assert_eq!(limit(r#"{"max_tokens":-1}"#), None);
        assert_eq!(limit(r#"{"max_tokens":null,"max_output_tokens":9}"#), Some(9));
        assert_eq!(limit(r#"{"max_tokens":1E400}"#), Some(u64::MAX));
        assert_eq!(peek(br#"{"n":0}"#).unwrap().choices, 1);
        assert_eq!(peek(br#"{"n":"many"}"#).unwrap().choices, 1);
    }

    #[test]
    fn files_do_not_count_byte_for_byte() {
        let image = "iVBORw0KGgo".repeat(10_000);
        let openai =
            format!(r#"{{"messages":[{{"content":[{{"image_url":{{"url":"data:image/png;base64,{image}"}}}}]}}]}}"#);
        let anthropic =
            format!(r#"{{"messages":[{{"content":[{{"source":{{"type":"base64","data":"{image}"}}}}]}}]}}"#);
        let plain = format!(r#"{{"messages":[{{"content":"{image}"}}]}}"#);
        for body in [openai, anthropic] {
            let bytes = peek(body.as_bytes()).unwrap().input_bytes;
            assert!((4_096..4_300).contains(&bytes), "{bytes}");
        }
        assert!(peek(plain.as_bytes()).unwrap().input_bytes > 110_000);
    }

    #[test]
    fn only_the_model_changes() {
        assert_eq!(
            rewritten(r#" {"z":1.0 , "model" :"m","a":1E400} "#, "u\"p"),
            r#" {"z":1.0 , "model" :"u\"p","a":1E400} "#
        );
        assert_eq!(rewritten(r#"{"model":null}"#, "m"), r#"{"model":"m"}"#);
        assert_eq!(rewritten(r#" { "a":1}"#, "m"), r#" {"model":"m", "a":1}"#);
        assert_eq!(rewritten(" { } ", "m"), r#" {"model":"m" } "#);
    }

    #[test]
    fn an_unchanged_body_is_the_same_memory() {
        let body = Bytes::from_static(br#"{"model":"a\/b"}"#);
        let facts = peek(&body).unwrap();
        for model in [None, Some("a/b")] {
            let same = rewrite_model(&body, &facts, model);
            assert_eq!((same.as_ptr(), same.len()), (body.as_ptr(), body.len()));
        }
        let pieces: Vec<Bytes> = splice_model(&body, &facts, Some("c")).pieces().collect();
        assert_eq!(pieces.len(), 3);
        assert_eq!(pieces[0].as_ptr(), body.as_ptr());
    }

    #[test]
    fn facts_of_another_body_break_nothing() {
        let facts = peek(br#"{"long":"xxxxxxxxxxxxxxxxxxxxxxxx","model":"a"}"#).unwrap();
        let other = Bytes::from_static(b"{}");
        assert_eq!(rewrite_model(&other, &facts, Some("m")), other);
        assert_eq!(facts.model(&other), None);
    }
}
