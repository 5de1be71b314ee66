//! A scanner over JSON bytes: finds members and their places, builds no tree, allocates nothing.
//!
//! It checks the structure (brackets, commas, colons, closed strings, depth) so that any conforming parser behind us
//! sees the same members, and leaves the lexemes alone: number forms such as `1E400`, lone surrogates, odd escapes and
//! the `NaN` that Python writes are the upstream's to judge. It keeps one bit for each open bracket instead of
//! recursing, so depth cannot overflow the stack.

use memchr::memchr2;
use std::borrow::Cow;
use std::ops::Range;

/// Brackets that may be open at once, the outermost included.
pub(crate) const MAX_DEPTH: u32 = 128;

/// Bytes that a string holding a file (base64) counts for in an estimate of length: about what an image costs.
const BLOB_BYTES: usize = 4096;

/// What is wrong, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Something else was expected at this offset.
    Expected(&'static str, usize),
    /// More than [`MAX_DEPTH`] brackets are open at this offset.
    TooDeep(usize),
}

/// A member of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member<'a> {
    /// The key as it is written, without its quotes.
    pub(crate) key: &'a [u8],
    /// Where the key's opening quote is.
    pub(crate) key_at: usize,
    /// Where the value is, without white space around it.
    pub(crate) value: Range<usize>,
}

impl Member<'_> {
    /// Whether the key is `name`, in whatever spelling (`"mod\u0065l"`).
    pub(crate) fn is(&self, name: &str) -> bool {
        if self.key == name.as_bytes() {
            return true;
        }
        // An escape makes a key longer: a shorter or equal one cannot be a disguise.
        self.key.len() > name.len() && self.key.contains(&b'\\') && decode_key(self.key).as_deref() == Some(name)
    }

    /// Whether the key is `name` but for the case of its letters.
    pub(crate) fn is_in_other_case(&self, name: &str) -> bool {
        if self.key.contains(&b'\\') {
            return decode_key(self.key).is_some_and(|key| key != name && key.eq_ignore_ascii_case(name));
        }
        self.key != name.as_bytes() && self.key.eq_ignore_ascii_case(name.as_bytes())
    }
}

fn decode_key(key: &[u8]) -> Option<String> {
    let quoted = [b"\"", key, b"\""].concat();
    serde_json::from_slice(&quoted).ok()
}

/// The text of a JSON string (with its quotes). `None`: not a string, or not text (a lone surrogate, invalid UTF-8).
pub(crate) fn text(value: &[u8]) -> Option<Cow<'_, str>> {
    let inner = value.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    if memchr2(b'\\', b'"', inner).is_none() {
        return std::str::from_utf8(inner).ok().map(Cow::Borrowed);
    }
    serde_json::from_slice::<String>(value).ok().map(Cow::Owned)
}

/// A count: a JSON number as a whole number, cut towards zero and held inside `u64`. `None`: no number, or negative.
pub(crate) fn count(value: &[u8]) -> Option<u64> {
    let lexeme = std::str::from_utf8(value).ok()?;
    if !lexeme.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    if lexeme.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(lexeme.parse().unwrap_or(u64::MAX));
    }
    let number: f64 = lexeme.parse().ok()?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates, as documented")]
    Some(number as u64)
}

/// The members of the object in `bytes`, in order; ends after the first fault.
///
/// White space may stand around the object, nothing else.
#[derive(Clone, Debug)]
pub(crate) struct Members<'a> {
    cursor: Cursor<'a>,
    open: usize,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    First,
    Later,
    Ended,
}

impl<'a> Members<'a> {
    /// Opens the object.
    pub(crate) fn new(bytes: &'a [u8]) -> Result<Self, Fault> {
        let mut cursor = Cursor::new(bytes);
        cursor.skip_space();
        if cursor.peek() != Some(b'{') {
            return Err(Fault::Expected("an object", cursor.at));
        }
        let open = cursor.at;
        cursor.at += 1;
        Ok(Self { cursor, open, state: State::First })
    }

    /// Where the object's `{` is.
    pub(crate) const fn open(&self) -> usize {
        self.open
    }

    /// Bytes that files in the strings seen so far (base64) take beyond what they count for.
    pub(crate) const fn blob_excess(&self) -> usize {
        self.cursor.blob_excess
    }

    fn step(&mut self) -> Result<Option<Member<'a>>, Fault> {
        let cursor = &mut self.cursor;
        cursor.skip_space();
        match (cursor.peek(), self.state) {
            (Some(b'}'), _) => {
                cursor.at += 1;
                cursor.skip_space();
                self.state = State::Ended;
                return if cursor.at == cursor.bytes.len() {
                    Ok(None)
                } else {
                    Err(Fault::Expected("the end of the body after the object", cursor.at))
                };
            }
            (Some(b','), State::Later) => cursor.at += 1,
            (_, State::Later) => return Err(Fault::Expected("a comma or a closing brace", cursor.at)),
            _ => {}
        }
        self.state = State::Later;
        cursor.skip_space();
        let key_at = cursor.at;
        let key = cursor.key()?;
        cursor.skip_space();
        let start = cursor.at;
        cursor.skip_value()?;
        Ok(Some(Member { key, key_at, value: start..cursor.at }))
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = Result<Member<'a>, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.state == State::Ended {
            return None;
        }
        let step = self.step();
        if step.is_err() {
            self.state = State::Ended;
        }
        step.transpose()
    }
}

/// The value of the member `name` of the object in `object`; the last one where it stands several times. A fault ends
/// the search, so that the head of a cut object can be searched too.
pub(crate) fn member<'a>(object: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let mut found = None;
    for member in Members::new(object).ok()? {
        let Ok(member) = member else { break };
        if member.is(name) {
            found = object.get(member.value);
        }
    }
    found
}

/// A place in JSON bytes.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) at: usize,
    blob_excess: usize,
    key_is_data: bool,
}

impl<'a> Cursor<'a> {
    /// At the first byte.
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, blob_excess: 0, key_is_data: false }
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    pub(crate) fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    /// A key and its colon.
    fn key(&mut self) -> Result<&'a [u8], Fault> {
        self.skip_space();
        if self.peek() != Some(b'"') {
            return Err(Fault::Expected("a key in double quotes", self.at));
        }
        let key = self.skip_string()?;
        self.key_is_data = key == b"data";
        self.skip_space();
        if self.peek() != Some(b':') {
            return Err(Fault::Expected("a colon", self.at));
        }
        self.at += 1;
        Ok(key)
    }

    /// A string; returns what stands between its quotes.
    pub(crate) fn skip_string(&mut self) -> Result<&'a [u8], Fault> {
        let open = self.at;
        self.at += 1;
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            let Some(found) = memchr2(b'"', b'\\', rest) else {
                return Err(Fault::Expected("the end of this string", open));
            };
            self.at += found;
            if self.bytes[self.at] == b'"' {
                self.at += 1;
                return Ok(&self.bytes[open + 1..self.at - 1]);
            }
            self.at += 2;
        }
    }

    fn skip_string_value(&mut self) -> Result<(), Fault> {
        let key_is_data = self.key_is_data;
        let inner = self.skip_string()?;
        if inner.len() > BLOB_BYTES && is_blob(inner, key_is_data) {
            self.blob_excess += inner.len() - BLOB_BYTES;
        }
        Ok(())
    }

    /// Any value, with a bit for each open bracket: 1 an array, 0 an object.
    fn skip_value(&mut self) -> Result<(), Fault> {
        let mut arrays: u128 = 0;
        // The object whose member this is counts as one.
        let mut depth: u32 = 1;
        loop {
            self.skip_space();
            let opened = match self.peek() {
                Some(b'"') => {
                    self.skip_string_value()?;
                    false
                }
                Some(bracket @ (b'{' | b'[')) => {
                    if depth == MAX_DEPTH {
                        return Err(Fault::TooDeep(self.at));
                    }
                    depth += 1;
                    arrays = arrays << 1 | u128::from(bracket == b'[');
                    self.at += 1;
                    self.skip_space();
                    match (bracket, self.peek()) {
                        (b'{', Some(b'}')) | (b'[', Some(b']')) => false,
                        (b'{', _) => {
                            self.key()?;
                            true
                        }
                        _ => true,
                    }
                }
                _ => {
                    self.skip_scalar()?;
                    false
                }
            };
            if !opened && self.close(&mut arrays, &mut depth)? {
                return Ok(());
            }
        }
    }

    /// What follows a value: closing brackets, then either the end (true) or a comma and the next value (false).
    fn close(&mut self, arrays: &mut u128, depth: &mut u32) -> Result<bool, Fault> {
        while *depth > 1 {
            self.skip_space();
            let in_array = *arrays & 1 == 1;
            match self.peek() {
                Some(b']') if in_array => {}
                Some(b'}') if !in_array => {}
                Some(b',') => {
                    self.at += 1;
                    if !in_array {
                        self.key()?;
                    }
                    return Ok(false);
                }
                _ if in_array => return Err(Fault::Expected("a comma or a closing bracket", self.at)),
                _ => return Err(Fault::Expected("a comma or a closing brace", self.at)),
            }
            self.at += 1;
            *arrays >>= 1;
            *depth -= 1;
        }
        Ok(true)
    }

    fn skip_scalar(&mut self) -> Result<(), Fault> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let in_scalar = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
        let length = rest.iter().position(|byte| !in_scalar(byte)).unwrap_or(rest.len());
        let scalar = &rest[..length];
        let digits = scalar.strip_prefix(b"-").unwrap_or(scalar);
        let is_number = digits.first().is_some_and(u8::is_ascii_digit);
        if is_number || matches!(scalar, b"true" | b"false" | b"null" | b"NaN" | b"Infinity" | b"-Infinity") {
            self.at += length;
            return Ok(());
        }
        Err(Fault::Expected("a value", self.at))
    }
}

/// Whether a long string is a file in base64: a data URL, or a member `data` that starts like base64.
fn is_blob(inner: &[u8], key_is_data: bool) -> bool {
    let head = &inner[..inner.len().min(128)];
    if head.starts_with(b"data:") {
        return memchr::memmem::find(head, b";base64,").is_some();
    }
    key_is_data
        && head.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(body: &[u8]) -> Option<Fault> {
        match Members::new(body) {
            Err(fault) => Some(fault),
            Ok(mut members) => members.find_map(Result::err),
        }
    }

    #[test]
    fn structure_is_checked_and_its_fault_located() {
        let cases: [(&[u8], Fault); 17] = [
            (b"", Fault::Expected("an object", 0)),
            (b" [1]", Fault::Expected("an object", 1)),
            (b"{", Fault::Expected("a key in double quotes", 1)),
            (b"{,}", Fault::Expected("a key in double quotes", 1)),
            (b"{a:1}", Fault::Expected("a key in double quotes", 1)),
            (b"{\"a\"}", Fault::Expected("a colon", 4)),
            (b"{\"a\":}", Fault::Expected("a value", 5)),
            (b"{\"a\":1", Fault::Expected("a comma or a closing brace", 6)),
            (b"{\"a\":1,}", Fault::Expected("a key in double quotes", 7)),
            (b"{\"a\":1 \"b\":2}", Fault::Expected("a comma or a closing brace", 7)),
            (b"{\"a\":[1 2]}", Fault::Expected("a comma or a closing bracket", 8)),
            (b"{\"a\":[1}", Fault::Expected("a comma or a closing bracket", 7)),
            (b"{\"a\":{\"b\":1]}", Fault::Expected("a comma or a closing brace", 11)),
            (b"{\"a\":\"x}", Fault::Expected("the end of this string", 5)),
            (b"{\"a\":\"x\\", Fault::Expected("the end of this string", 5)),
            (b"{\"a\":nul}", Fault::Expected("a value", 5)),
            (b"{} {}", Fault::Expected("the end of the body after the object", 3)),
        ];
        for (body, expected) in cases {
            assert_eq!(fault(body), Some(expected), "{}", body.escape_ascii());
        }
    }

    #[test]
    fn lexemes_are_left_alone() {
        let body = br#" {"":1E400,"a":-1e-7,"b":[NaN,-Infinity,1.0,01],"c":"\ud800\u0000\q","d":{"":{}},"e":[]} "#;
        assert_eq!(fault(body), None);
        assert_eq!(Members::new(body).unwrap().count(), 6);
        assert_eq!(member(body, "b"), Some(&b"[NaN,-Infinity,1.0,01]"[..]));
    }

    #[test]
    fn depth_is_bounded_without_recursion() {
        let nested = |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth)).into_bytes();
        assert_eq!(fault(&nested(127)), None);
        assert_eq!(fault(&nested(128)), Some(Fault::TooDeep(5 + 127)));
        assert_eq!(fault(&nested(1_000_000)), Some(Fault::TooDeep(5 + 127)));
        let objects = format!("{}1{}", "{\"a\":".repeat(128), "}".repeat(128));
        assert_eq!(fault(objects.as_bytes()), None);
    }

    #[test]
    fn keys_and_values_decode() {
        let body = br#"{"mod\u0065l":"a\/b","Model":1}"#;
        let members: Vec<_> = Members::new(body).unwrap().map(Result::unwrap).collect();
        assert!(members[0].is("model") && !members[0].is_in_other_case("model"));
        assert!(members[1].is_in_other_case("model") && !members[1].is("model"));
        assert_eq!(text(&body[members[0].value.clone()]).as_deref(), Some("a/b"));
        assert_eq!(text(br#""\ud800""#), None);
        assert_eq!(text(b"7"), None);
        let counts = [("0", Some(0)), ("7.9", Some(7)), ("1e3", Some(1000)), ("-1", None), ("null", None)];
        for (lexeme, expected) in counts {
            assert_eq!(count(lexeme.as_bytes()), expected, "{lexeme}");
        }
        assert_eq!(count(b"99999999999999999999999"), Some(u64::MAX));
        assert_eq!(count(b"1E400"), Some(u64::MAX));
    }
}
