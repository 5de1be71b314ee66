//! TOML into a tree. The parser recovers, so several syntax errors are told at once.

use super::{Parsed, Syntax};
use crate::node::{Entry, Node, Value};
use crate::report::Report;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The tree of a text; `None` where the header of a section is broken: everything below it was read into the wrong
/// section.
pub(crate) fn parse(text: &str, report: &mut Report) -> Option<Parsed> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let is_broken = !errors.is_empty();
    let mut a_header_is_broken = false;
    for error in errors {
        let span = error.span();
        a_header_is_broken |= span.as_ref().is_none_or(|span| is_in_header(text, span.start));
        let remedy = if error.message() == "duplicate key" {
            "remove one of the two; a section that repeats is written in double brackets, such as `[[section]]`"
        } else {
            "correct the syntax: `name = \"text\"`, `name = 20`, `[section]` or `[[list of sections]]`"
        };
        report.push("", span, error.message(), remedy);
    }
    let root = Node::new(0..0, String::new(), "", Value::Table(entries("", table.get_ref())));
    (!a_header_is_broken).then_some(Parsed { root, is_broken })
}

fn entries(table: &str, members: &DeTable<'_>) -> Vec<Entry> {
    members
        .iter()
        .map(|(name, value)| {
            let key = Syntax::Toml.member(table, name.get_ref());
            let node = node(key, name.get_ref(), value);
            Entry { name: name.get_ref().clone().into_owned(), name_span: name.span(), node }
        })
        .collect()
}

fn node(key: String, label: &str, value: &Spanned<DeValue<'_>>) -> Node {
    let inner = match value.get_ref() {
        DeValue::String(text) => Value::Text(text.clone().into_owned()),
        DeValue::Integer(number) => {
            Value::Integer(i128::from_str_radix(number.as_str(), number.radix()).unwrap_or(i128::MAX))
        }
        DeValue::Boolean(flag) => Value::Flag(*flag),
        DeValue::Float(number) => match number.as_str().parse::<f64>() {
            Ok(number) if number.is_finite() => Value::Fraction(number),
            _ => Value::Other("no finite number"),
        },
        DeValue::Datetime(_) => Value::Other("a date"),
        DeValue::Array(items) => {
            let item = |(index, item)| node(Syntax::Toml.item(&key, index), &Syntax::Toml.item(label, index), item);
            Value::List(items.iter().enumerate().map(item).collect())
        }
        DeValue::Table(table) => Value::Table(entries(&key, table)),
    };
    Node::new(value.span(), key, label, inner)
}

/// Whether a place is in the line of a section's header.
fn is_in_header(text: &str, position: usize) -> bool {
    let position = (0..=position.min(text.len())).rev().find(|position| text.is_char_boundary(*position)).unwrap_or(0);
    let line_start = text[..position].rfind('\n').map_or(0, |newline| newline + 1);
    text[line_start..].trim_start().starts_with('[')
}
