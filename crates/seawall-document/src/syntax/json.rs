//! JSON into a tree in which every value knows its place.
//!
//! `serde_json` reads; a value's place is where the raw text that it hands out lies inside the whole text. Every level
//! of nesting is scanned once more for its children, which [`DEEPEST`] bounds. JSON has no way to go on behind a syntax
//! error, so of those only the first is told.

use super::{Parsed, Syntax};
use crate::node::{Entry, Node, Value};
use crate::report::Report;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;
use std::ops::Range;

/// The deepest nesting that is read: a record has a handful of levels.
const DEEPEST: usize = 64;

/// The tree of a text; `None` where the syntax is broken.
pub(crate) fn parse(text: &str, report: &mut Report) -> Option<Parsed> {
    let raw: &RawValue = match serde_json::from_str(text) {
        Ok(raw) => raw,
        Err(error) => {
            let at = position(text, error.line(), error.column());
            report.push("", Some(at..at), without_position(&error), "correct the JSON at this place");
            return None;
        }
    };
    let mut reader = Reader { text, report, is_broken: false };
    let root = reader.node(raw, String::new(), "", 0);
    if !matches!(root.value, Value::Table(_)) {
        reader.report.push("", Some(root.span), "the file holds no object", "write `{` ... `}` around its members");
        return None;
    }
    let is_broken = reader.is_broken;
    (!is_broken).then_some(Parsed { root: Node { span: 0..0, ..root }, is_broken })
}

struct Reader<'a> {
    text: &'a str,
    report: &'a mut Report,
    is_broken: bool,
}

impl<'a> Reader<'a> {
    fn node(&mut self, raw: &'a RawValue, key: String, label: &str, depth: usize) -> Node {
        let span = place(self.text, raw.get());
        if depth > DEEPEST {
            let message = format!("`{label}` is nested more than {DEEPEST} levels deep");
            return self.broken(span, key, &message, "write it flatter");
        }
        let read = match raw.get().as_bytes().first() {
            Some(b'{') => serde_json::from_str(raw.get()).map(|members| self.table(members, &key, depth)),
            Some(b'[') => serde_json::from_str(raw.get()).map(|items| self.list(items, &key, label, depth)),
            Some(b'"') => serde_json::from_str(raw.get()).map(Value::Text),
            Some(b't' | b'f') => serde_json::from_str(raw.get()).map(Value::Flag),
            Some(b'n') => Ok(Value::Null),
            _ => number(raw.get()),
        };
        match read {
            Ok(value) => Node::new(span, key, label, value),
            Err(error) => {
                let message = format!("`{label}` cannot be read: {}", without_position(&error));
                self.broken(span, key, &message, "correct the JSON at this place")
            }
        }
    }

    fn table(&mut self, members: Members<'a>, key: &str, depth: usize) -> Value {
        let mut entries: Vec<Entry> = Vec::new();
        for (name, value) in members.0 {
            let name_span = place(self.text, name.get());
            let Ok(name) = serde_json::from_str::<String>(name.get()) else {
                self.broken(name_span, key.to_owned(), "a name holds a broken escape", "correct it");
                continue;
            };
            let member = Syntax::Json.member(key, &name);
            if entries.iter().any(|entry| entry.name == name) {
                self.broken(name_span, member, "duplicate key", "remove one of the two");
                continue;
            }
            let node = self.node(value, member, &name, depth + 1);
            entries.push(Entry { name, name_span, node });
        }
        Value::Table(entries)
    }

    fn list(&mut self, items: Vec<&'a RawValue>, key: &str, label: &str, depth: usize) -> Value {
        let items = items.into_iter().enumerate().map(|(index, item)| {
            self.node(item, Syntax::Json.item(key, index), &Syntax::Json.item(label, index), depth + 1)
        });
        Value::List(items.collect())
    }

    fn broken(&mut self, span: Range<usize>, key: String, message: &str, remedy: &str) -> Node {
        self.is_broken = true;
        self.report.push(&key, Some(span.clone()), message, remedy);
        Node::new(span, key, "", Value::Null)
    }
}

fn number(text: &str) -> Result<Value, serde_json::Error> {
    if text.bytes().all(|byte| byte == b'-' || byte.is_ascii_digit()) {
        return Ok(Value::Integer(text.parse().unwrap_or(i128::MAX)));
    }
    serde_json::from_str(text).map(Value::Fraction)
}

/// Names and values of an object, as they are written, in their order.
struct Members<'a>(Vec<(&'a RawValue, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

/// Where `part`, which lies inside `text`, is in it.
fn place(text: &str, part: &str) -> Range<usize> {
    let start = (part.as_ptr().addr()).saturating_sub(text.as_ptr().addr());
    start..start + part.len()
}

/// The byte at a line and a column in bytes, both from 1, as `serde_json` tells them; its column 0 is the line end before
/// the line.
fn position(text: &str, line: usize, column: usize) -> usize {
    let line_start = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum::<usize>();
    (line_start + column).saturating_sub(1).min(text.len())
}

fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or_default().to_owned()
}
