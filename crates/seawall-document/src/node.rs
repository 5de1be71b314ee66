//! A document as a tree in which every value knows its place: what the checks walk over.

use crate::errors::safe_key;
use std::ops::Range;

/// A value with its place.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its bytes in the text; of a section, its header; of the whole document, none.
    pub span: Range<usize>,
    /// Its full key, for example `models[0].deployments[1].url` or `/remediation/0/text`; empty for the whole document.
    pub key: String,
    /// What it is.
    pub value: Value,
    pub(crate) label: String,
}

/// What a node is.
#[derive(Clone, Debug)]
pub enum Value {
    /// A text.
    Text(String),
    /// A whole number, saturated where it does not fit.
    Integer(i128),
    /// A number that is written with a fraction or an exponent; always finite.
    Fraction(f64),
    /// `true` or `false`.
    Flag(bool),
    /// A date or a number that is not finite, which no schema takes; what a message calls it.
    Other(&'static str),
    /// JSON's `null`.
    Null,
    /// A list.
    List(Vec<Node>),
    /// A table, in the order of the parser.
    Table(Vec<Entry>),
}

/// One member of a table.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Where the name is.
    pub name_span: Range<usize>,
    /// Its value.
    pub node: Node,
}

impl Node {
    pub(crate) fn new(span: Range<usize>, key: String, label: &str, value: Value) -> Self {
        // A free key may be anything, also a secret that someone pasted.
        const LIMIT_CHARACTERS: usize = 60;
        let label: String = safe_key(label).chars().take(LIMIT_CHARACTERS).collect();
        Self { span, key, value, label: label.escape_debug().to_string() }
    }

    /// The value of a key of this table.
    pub fn get(&self, name: &str) -> Option<&Self> {
        match &self.value {
            Value::Table(entries) => entries.iter().find(|entry| entry.name == name).map(|entry| &entry.node),
            _ => None,
        }
    }

    /// The value of a key, or this table where the document does not say it.
    pub fn get_or_self(&self, name: &str) -> &Self {
        self.get(name).unwrap_or(self)
    }

    /// The items of the list under a key; none where there is no list.
    pub fn items(&self, name: &str) -> &[Self] {
        self.get(name).map_or(&[], Self::list)
    }

    /// The items of this list; none where it is no list.
    pub fn list(&self) -> &[Self] {
        match &self.value {
            Value::List(items) => items,
            _ => &[],
        }
    }

    /// The last part of the key as a message calls it, for example `url` or `keys[0]`; never a secret.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// The node at a path from here, or the last one on the way to it that the document has.
    ///
    /// A path is written like `event[3].at` or like `/event/3/at`. A number counts the items of *this* list, so in a
    /// document of which a part was left out it is the index of the value that was read, and not of the text.
    pub fn find(&self, path: &str) -> &Self {
        let separators: &[char] = if path.starts_with('/') { &['/'] } else { &['.', '['] };
        let mut node = self;
        for part in path.split(separators).filter(|part| !part.is_empty()) {
            let next = match &node.value {
                Value::List(items) => part.trim_end_matches(']').parse().ok().and_then(|index: usize| items.get(index)),
                _ => node.get(&part.replace("~1", "/").replace("~0", "~")),
            };
            let Some(next) = next else { return node };
            node = next;
        }
        node
    }

    /// The plain value, places forgotten.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Text(text) => text.as_str().into(),
            Value::Integer(number) => i64::try_from(*number).unwrap_or(i64::MAX).into(),
            Value::Fraction(number) => (*number).into(),
            Value::Flag(flag) => (*flag).into(),
            Value::Other(_) | Value::Null => serde_json::Value::Null,
            Value::List(items) => items.iter().map(Self::to_json).collect(),
            Value::Table(entries) => entries
                .iter()
                .map(|entry| (entry.name.clone(), entry.node.to_json()))
                .collect::<serde_json::Map<_, _>>()
                .into(),
        }
    }
}
