//! Whether two requests ask for the same, as one number.
//!
//! Two bodies are the same where only white space between tokens and the order of an object's members differ. Lexemes
//! stay as they are written: `1.0` is not `1`, `"\u0041"` is not `"A"`, and of members of one name the order counts,
//! since parsers disagree on which of them holds. Nothing is parsed into a tree: the walk hashes the bytes where they
//! stand and keeps one number for each member of the objects that are open.
//!
//! The hash is SipHash-1-3 with 128 bits (Aumasson and Bernstein, 2012) under a key that the process draws when it
//! starts: who does not know the key cannot make two requests that count as one.

use crate::client_signals::ClientSignals;
use crate::json::{Cursor, MAX_DEPTH};
use http::HeaderMap;
use siphasher::sip128::{Hasher128, SipHasher13};
use std::hash::Hasher;

/// Headers that may change an answer: of those that pass to an upstream, all that are not about the client itself; and
/// the two that say whose account it is.
const DECIDING: [&str; 6] =
    ["accept", "anthropic-beta", "anthropic-version", "openai-beta", "openai-organization", "openai-project"];

/// The secret of one process.
#[derive(Clone, Copy)]
pub struct FingerprintKey(u64, u64);

impl std::fmt::Debug for FingerprintKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("FingerprintKey")
    }
}

/// All that decides an answer.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Whose it is, as a number.
    pub tenant: u32,
    /// The model it gets, as a number: two names of one model may mean it differently, so the body's name counts, too.
    pub model: u32,
    /// The key that was presented: what one client sends is never the answer to another.
    pub presented_key: Option<&'a [u8]>,
    /// Its method.
    pub method: &'a str,
    /// Path and query, with the version of the interface.
    pub path_and_query: &'a str,
    /// All headers.
    pub headers: &'a HeaderMap,
    /// The body, in which [`crate::body::peek`] found no fault.
    pub body: &'a [u8],
}

impl FingerprintKey {
    /// The secret out of 128 random bits.
    pub const fn new(random: u128) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "its two halves")]
        Self((random >> 64) as u64, random as u64)
    }

    fn hasher(self) -> SipHasher13 {
        SipHasher13::new_with_keys(self.0, self.1)
    }

    /// The number of a request: two have the same where they ask for the same.
    pub fn fingerprint(self, asked: &Asked<'_>) -> u128 {
        let mut hasher = self.hasher();
        hasher.write_u32(asked.tenant);
        hasher.write_u32(asked.model);
        write_framed(&mut hasher, asked.presented_key.unwrap_or_default());
        write_framed(&mut hasher, asked.method.as_bytes());
        write_framed(&mut hasher, asked.path_and_query.as_bytes());
        for name in DECIDING {
            let values = asked.headers.get_all(name);
            hasher.write_usize(values.iter().count());
            for value in values {
                write_framed(&mut hasher, value.as_bytes());
            }
        }
        let mut walk = Walk { key: self, cursor: Cursor::new(asked.body), members: Vec::new() };
        walk.value(&mut hasher, 0);
        hasher.finish128().as_u128()
    }

    /// The number of the key that a client gave to say what is the same; `None`: it gave none. With another body, or in
    /// anybody else's hands, it is another one.
    pub fn key(self, fingerprint: u128, signals: &ClientSignals<'_>) -> Option<u128> {
        let given = [signals.idempotency_key, signals.request_id];
        let (kind, given) = given.into_iter().enumerate().find_map(|(kind, given)| Some((kind, given?)))?;
        let mut hasher = self.hasher();
        hasher.write_u128(fingerprint);
        hasher.write_usize(kind);
        write_framed(&mut hasher, given);
        Some(hasher.finish128().as_u128())
    }
}

fn write_framed(hasher: &mut SipHasher13, bytes: &[u8]) {
    hasher.write_usize(bytes.len());
    hasher.write(bytes);
}

/// A member of an open object.
#[derive(Clone, Copy)]
struct Hashed<'a> {
    key: &'a [u8],
    hash: u128,
}

struct Walk<'a> {
    key: FingerprintKey,
    cursor: Cursor<'a>,
    /// The members so far of all objects that are open, the outermost first.
    members: Vec<Hashed<'a>>,
}

impl<'a> Walk<'a> {
    /// Hashes a value without its white space, and each object in it by its members. Ends at what ends the value around
    /// it: a comma, a closing brace, the end.
    fn value(&mut self, into: &mut SipHasher13, depth: u32) {
        let mut from = self.cursor.at;
        // Brackets of arrays that this value opened.
        let mut open = 0_u32;
        while let Some(byte) = self.cursor.peek() {
            match byte {
                b'"' => {
                    if self.cursor.skip_string().is_err() {
                        self.cursor.at = self.cursor.bytes.len();
                    }
                }
                b'{' if depth < MAX_DEPTH => {
                    into.write(&self.cursor.bytes[from..self.cursor.at]);
                    self.object(into, depth + 1);
                    from = self.cursor.at;
                }
                b' ' | b'\n' | b'\r' | b'\t' => {
                    into.write(&self.cursor.bytes[from..self.cursor.at]);
                    self.cursor.skip_space();
                    from = self.cursor.at;
                }
                b',' | b'}' | b']' if open == 0 => break,
                b'[' | b']' => {
                    open = if byte == b'[' { open + 1 } else { open - 1 };
                    self.cursor.at += 1;
                }
                _ => self.cursor.at += 1,
            }
        }
        let end = self.cursor.at.min(self.cursor.bytes.len());
        into.write(&self.cursor.bytes[from.min(end)..end]);
    }

    /// Hashes an object: its brace, how many members it has, and the hashes of the members, in the order of their
    /// names.
    fn object(&mut self, into: &mut SipHasher13, depth: u32) {
        let first = self.members.len();
        let mut is_escaped = false;
        self.cursor.at += 1;
        loop {
            self.cursor.skip_space();
            match self.cursor.peek() {
                Some(b',') => self.cursor.at += 1,
                Some(b'"') => {
                    let member = self.member(depth);
                    is_escaped |= member.key.contains(&b'\\');
                    self.members.push(member);
                }
                _ => break,
            }
        }
        self.cursor.at = (self.cursor.at + 1).min(self.cursor.bytes.len());
        let members = &mut self.members[first..];
        // Two spellings may be one name, of whose members the order counts: then that of all of them does.
        if !is_escaped {
            members.sort_by_key(|member| member.key);
        }
        into.write_u8(b'{');
        into.write_usize(members.len());
        for member in members {
            into.write_u128(member.hash);
        }
        self.members.truncate(first);
    }

    fn member(&mut self, depth: u32) -> Hashed<'a> {
        let mut hasher = self.key.hasher();
        let at = self.cursor.at;
        let key = self.cursor.skip_string().unwrap_or_default();
        let end = self.cursor.at.min(self.cursor.bytes.len());
        hasher.write(&self.cursor.bytes[at..end]);
        self.cursor.skip_space();
        if self.cursor.peek() == Some(b':') {
            self.cursor.at += 1;
        }
        self.cursor.skip_space();
        self.value(&mut hasher, depth);
        Hashed { key, hash: hasher.finish128().as_u128() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::peek;
    use http::HeaderValue;
    use proptest::prelude::*;
    use serde_json::Value;

    const KEY: FingerprintKey = FingerprintKey::new(0x0123_4567_89ab_cdef_0011_2233_4455_6677);

    fn asked<'a>(body: &'a [u8], headers: &'a HeaderMap) -> Asked<'a> {
        let (method, path_and_query) = ("POST", "/v1/chat/completions");
        Asked { tenant: 1, model: 2, presented_key: Some(b"k"), method, path_and_query, headers, body }
    }

    fn of(body: &str) -> u128 {
        peek(body.as_bytes()).unwrap();
        KEY.fingerprint(&asked(body.as_bytes(), &HeaderMap::new()))
    }

    #[test]
    fn space_and_the_order_of_members_do_not_count() {
        let plain = of(r#"{"a":[1,{"b":"x y","c":{}}],"d":null,"e":[]}"#);
        for same in [
            " { \"a\" : [ 1 , { \"b\" : \"x y\" , \"c\" : { } } ] ,\r\n\t\"d\" : null , \"e\" : [ ] } ",
            r#"{"e":[],"d":null,"a":[1,{"c":{},"b":"x y"}]}"#,
        ] {
            assert_eq!(of(same), plain, "{same}");
        }
    }

    #[test]
    fn everything_else_counts() {
        let bodies = [
            r#"{"a":1,"b":[1,2],"c":"A"}"#,
            r#"{"a":1.0,"b":[1,2],"c":"A"}"#,
            r#"{"a":1,"b":[2,1],"c":"A"}"#,
            r#"{"a":1,"b":[12],"c":"A"}"#,
            r#"{"a":1,"b":[[1,2]],"c":"A"}"#,
            r#"{"a":1,"b":[1],"c":"A"}"#,
            r#"{"a":1,"b":[1,2],"c":"\u0041"}"#,
            r#"{"a":1,"b":[1,2],"c":" A"}"#,
            r#"{"a":1,"b":[1,2],"\u0063":"A"}"#,
            r#"{"a":1,"b":[1,2],"c":"A","c":"B"}"#,
            r#"{"a":1,"b":[1,2],"c":"B","c":"A"}"#,
            r#"{"a":1,"b":[1,2,{}],"c":"A"}"#,
            r#"{"a":1,"b":[1,2],"c":{"A":1}}"#,
            r#"{"a":{"b":[1,2],"c":"A"}}"#,
            r#"{"m":1,"\u006d":2}"#,
            r#"{"\u006d":2,"m":1}"#,
            r#"{"a":{},"b":{}}"#,
            r#"{"a":{"b":{}}}"#,
            r"{}",
        ];
        let numbers: std::collections::BTreeSet<u128> = bodies.into_iter().map(of).collect();
        assert_eq!(numbers.len(), bodies.len());
    }

    #[test]
    fn who_asks_and_where_counts() {
        let none = HeaderMap::new();
        let base = asked(b"{}", &none);
        let with = |name: &'static str, value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.append(name, HeaderValue::from_static(value));
            headers
        };
        let [beta, version, retry] =
            [with("anthropic-beta", "x"), with("anthropic-version", "x"), with("x-stainless-retry-count", "1")];
        let all = [
            base,
            Asked { tenant: 2, ..base },
            Asked { model: 3, ..base },
            Asked { presented_key: Some(b"other"), ..base },
            Asked { presented_key: None, ..base },
            Asked { method: "PUT", ..base },
            Asked { path_and_query: "/v1/chat/completions?api-version=1", ..base },
            Asked { headers: &beta, ..base },
            Asked { headers: &version, ..base },
        ];
        let numbers: std::collections::BTreeSet<u128> = all.iter().map(|asked| KEY.fingerprint(asked)).collect();
        assert_eq!(numbers.len(), all.len());
        assert_eq!(KEY.fingerprint(&Asked { headers: &retry, ..base }), KEY.fingerprint(&base));
        assert_ne!(FingerprintKey::new(1).fingerprint(&base), KEY.fingerprint(&base), "keyed");
    }

    #[test]
    fn a_given_key_holds_for_the_same_request_only() {
        let signals = |idempotency_key, request_id| ClientSignals { request_id, idempotency_key, ..Default::default() };
        let key = |number, idempotency, id| KEY.key(number, &signals(idempotency, id));
        assert_eq!(key(1, None, None), None);
        let all = [
            key(1, Some(&b"a"[..]), None),
            key(1, Some(b"b"), None),
            key(2, Some(b"a"), None),
            key(1, None, Some(b"a")),
        ];
        assert_eq!(all.into_iter().collect::<std::collections::BTreeSet<_>>().len(), all.len());
        assert_eq!(key(1, Some(b"a"), Some(b"x")), key(1, Some(b"a"), None));
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            ".{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec(("[a-d]{1,2}", inner), 0..5)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    fn config() -> ProptestConfig {
        let rng_seed = proptest::test_runner::RngSeed::Fixed(7);
        ProptestConfig { cases: 512, rng_seed, failure_persistence: None, ..ProptestConfig::default() }
    }

    proptest! {
        #![proptest_config(config())]

        /// Equal values have one number, in whatever layout; other values have another.
        #[test]
        fn the_number_is_that_of_the_value(one in json(), other in json()) {
            let body = |value: &Value, pretty| {
                let whole = serde_json::json!({ "v": value });
                if pretty { serde_json::to_string_pretty(&whole) } else { serde_json::to_string(&whole) }.unwrap()
            };
            prop_assert_eq!(of(&body(&one, false)), of(&body(&one, true)));
            prop_assert_eq!(of(&body(&one, false)) == of(&body(&other, false)), one == other);
        }

        /// Whatever the bytes are, there is a number.
        #[test]
        fn it_takes_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let headers = HeaderMap::new();
            prop_assert_eq!(KEY.fingerprint(&asked(&bytes, &headers)), KEY.fingerprint(&asked(&bytes, &headers)));
        }
    }
}
