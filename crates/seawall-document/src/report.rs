//! What is wrong with a document, collected.

use crate::errors::{Problem, safe_key};
use crate::node::{Node, Value};
use std::collections::BTreeSet;
use std::ops::Range;

/// Collects what is wrong with a document.
#[derive(Debug, Default)]
pub struct Report {
    pub(crate) problems: Vec<Problem>,
    /// Places that are never shown.
    pub(crate) secrets: Vec<Range<usize>>,
    /// Keys of tables and lists of which a part was left out because it was wrong: what is missing there is no second
    /// mistake.
    incomplete: BTreeSet<String>,
}

impl Report {
    /// A mistake at a value.
    pub fn at(&mut self, node: &Node, message: impl Into<String>, remedy: impl Into<String>) {
        // The root has no place of its own.
        let span = if node.key.is_empty() { None } else { Some(node.span.clone()) };
        self.push(&node.key, span, message, remedy);
    }

    /// A mistake at a place; `None`: the document says nothing about it, for example an argument of a command line.
    /// An empty `remedy` is none.
    pub fn push(
        &mut self,
        key: &str,
        span: Option<Range<usize>>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        let suggestion = Some(remedy.into()).filter(|remedy| !remedy.is_empty());
        self.problems.push(Problem { message: message.into(), suggestion, key: safe_key(key), span });
    }

    /// Never show this value.
    pub fn hide(&mut self, node: &Node) {
        self.secrets.push(node.span.clone());
        match &node.value {
            Value::List(items) => items.iter().for_each(|item| self.hide(item)),
            Value::Table(entries) => entries.iter().for_each(|entry| self.hide(&entry.node)),
            _ => {}
        }
    }

    /// Whether anything is wrong so far.
    pub fn is_empty(&self) -> bool {
        self.problems.is_empty()
    }

    /// Whether a part of this table or list was left out: what is missing there is no second mistake.
    pub fn is_incomplete(&self, node: &Node) -> bool {
        self.is_incomplete_at(&node.key)
    }

    /// Whether a part of the table or list with this full key was left out, also where nothing of it is left.
    pub fn is_incomplete_at(&self, key: &str) -> bool {
        self.incomplete.contains(key)
    }

    /// A part of the table or list with this full key was left out.
    pub(crate) fn leave_out(&mut self, key: &str) {
        self.incomplete.insert(key.to_owned());
    }
}
