//! The file as a tree in which every value knows its place: what the checks walk over.

use crate::errors::Problem;
use std::collections::BTreeSet;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value with its place.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// Its bytes in the file; of a section, its header.
    pub(crate) span: Range<usize>,
    /// Its full key, for example `models[0].deployments[1].url`.
    pub(crate) key: String,
    /// What it is.
    pub(crate) value: Value,
}

/// What a node is.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(String),
    /// Saturated where it does not fit.
    Integer(i128),
    Flag(bool),
    /// A float or a date, which no setting takes; the name of its type.
    Other(&'static str),
    List(Vec<Node>),
    Table(Vec<Entry>),
}

/// One `name = value` of a table.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) name_span: Range<usize>,
    pub(crate) node: Node,
}

impl Node {
    /// The tree of a parsed file.
    pub(crate) fn root(table: &Spanned<DeTable<'_>>) -> Self {
        Self { span: 0..0, key: String::new(), value: Value::Table(entries("", table.get_ref())) }
    }

    fn new(key: String, value: &Spanned<DeValue<'_>>) -> Self {
        let inner = match value.get_ref() {
            DeValue::String(text) => Value::Text(text.clone().into_owned()),
            DeValue::Integer(number) => {
                Value::Integer(i128::from_str_radix(number.as_str(), number.radix()).unwrap_or(i128::MAX))
            }
            DeValue::Boolean(flag) => Value::Flag(*flag),
            DeValue::Float(_) => Value::Other("a number with a fraction"),
            DeValue::Datetime(_) => Value::Other("a date"),
            DeValue::Array(items) => {
                let items = items.iter().enumerate();
                Value::List(items.map(|(index, item)| Self::new(format!("{key}[{index}]"), item)).collect())
            }
            DeValue::Table(table) => Value::Table(entries(&key, table)),
        };
        Self { span: value.span(), key, value: inner }
    }

    /// What a message calls the type of this value.
    pub(crate) const fn type_name(&self) -> &'static str {
        match self.value {
            Value::Text(_) => "a text",
            Value::Integer(_) => "a whole number",
            Value::Flag(_) => "`true` or `false`",
            Value::Other(name) => name,
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
        }
    }

    /// The value of a key of this table.
    pub(crate) fn get(&self, name: &str) -> Option<&Self> {
        match &self.value {
            Value::Table(entries) => entries.iter().find(|entry| entry.name == name).map(|entry| &entry.node),
            _ => None,
        }
    }

    /// The value of a key, or this table where the file does not say it.
    pub(crate) fn get_or_self(&self, name: &str) -> &Self {
        self.get(name).unwrap_or(self)
    }

    /// The items of the list under a key; none where there is no list.
    pub(crate) fn items(&self, name: &str) -> &[Self] {
        match self.get(name).map(|node| &node.value) {
            Some(Value::List(items)) => items,
            _ => &[],
        }
    }

    /// The last part of the key, for example `url` or `keys[0]`.
    pub(crate) fn label(&self) -> &str {
        self.key.rsplit('.').next().unwrap_or(&self.key)
    }

    /// The plain value, places forgotten.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Text(text) => text.as_str().into(),
            Value::Integer(number) => i64::try_from(*number).unwrap_or(i64::MAX).into(),
            Value::Flag(flag) => (*flag).into(),
            Value::Other(_) => serde_json::Value::Null,
            Value::List(items) => items.iter().map(Self::to_json).collect(),
            Value::Table(entries) => entries
                .iter()
                .map(|entry| (entry.name.clone(), entry.node.to_json()))
                .collect::<serde_json::Map<_, _>>()
                .into(),
        }
    }
}

fn entries(key: &str, table: &DeTable<'_>) -> Vec<Entry> {
    let dot = if key.is_empty() { "" } else { "." };
    table
        .iter()
        .map(|(name, value)| Entry {
            name: name.get_ref().clone().into_owned(),
            name_span: name.span(),
            node: Node::new(format!("{key}{dot}{}", name.get_ref()), value),
        })
        .collect()
}

/// Collects what is wrong with a file.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) problems: Vec<Problem>,
    /// Places that are never shown.
    pub(crate) secrets: Vec<Range<usize>>,
    /// Keys of tables and lists of which a part was left out because it was wrong: what is missing there is no second
    /// mistake.
    pub(crate) incomplete: BTreeSet<String>,
}

impl Report {
    /// A mistake at a value.
    pub(crate) fn at(&mut self, node: &Node, message: impl Into<String>, suggestion: impl Into<String>) {
        // The root has no place of its own.
        let span = if node.key.is_empty() { None } else { Some(node.span.clone()) };
        self.push(node.key.clone(), span, message.into(), suggestion.into());
    }

    /// A mistake at a place.
    pub(crate) fn push(&mut self, key: String, span: Option<Range<usize>>, message: String, suggestion: String) {
        let key = crate::errors::safe_key(key);
        let suggestion = Some(suggestion).filter(|suggestion| !suggestion.is_empty());
        self.problems.push(Problem { message, suggestion, key, span });
    }

    /// Never show this value.
    pub(crate) fn hide(&mut self, node: &Node) {
        self.secrets.push(node.span.clone());
        match &node.value {
            Value::List(items) => items.iter().for_each(|item| self.hide(item)),
            Value::Table(entries) => entries.iter().for_each(|entry| self.hide(&entry.node)),
            _ => {}
        }
    }

    /// Whether a part of this table or list was left out.
    pub(crate) fn is_incomplete(&self, node: &Node) -> bool {
        self.incomplete.contains(&node.key)
    }
}
