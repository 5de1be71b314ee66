//! Compares a document with its schema and reports every difference: unknown keys, missing keys, wrong types, values out
//! of range, words that are none of the choices.
//!
//! What is wrong is left out of the tree that comes back, so that the checks after this one find no second mistake in
//! the first one.

mod choice;
mod remedy;
mod value;

use crate::errors::shown;
use crate::node::{Entry, Node, Value};
use crate::redact::is_secret_name;
use crate::report::Report;
use crate::schema::{Choice, Kinds, NULLABLE, Schema};
use crate::syntax::{Parsed, Syntax};
use crate::words::{nearest, quoted_list};
use serde_json::Value as Json;

/// The part of a document that fits the schema.
pub(crate) fn fitting(parsed: Parsed, schema: &Schema, report: &mut Report) -> Node {
    let mut walk = Walk { schema, syntax: schema.kind().syntax, report, syntax_is_broken: parsed.is_broken };
    let empty = Node::new(0..0, String::new(), "", Value::Table(Vec::new()));
    walk.fit(parsed.root, schema.root()).unwrap_or(empty)
}

struct Walk<'s, 'r> {
    schema: &'s Schema,
    syntax: Syntax,
    report: &'r mut Report,
    /// The parser put empty values where it could not read one, and may have lost keys.
    syntax_is_broken: bool,
}

impl<'s> Walk<'s, '_> {
    fn fit(&mut self, node: Node, property: &'s Json) -> Option<Node> {
        if self.syntax_is_broken && node.span.is_empty() && !node.key.is_empty() {
            return None;
        }
        let schema = self.schema.resolved(property);
        if matches!(node.value, Value::Null) && (property[NULLABLE] == true || schema[NULLABLE] == true) {
            return Some(node);
        }
        if let Some(kinds) = Kinds::of(schema) {
            return self.fit_kind(node, schema, &kinds);
        }
        if let Some(choice) = Choice::of(schema) {
            return self.fit_choice(node, schema, &choice);
        }
        match (schema["type"].as_str().unwrap_or_default(), &node.value) {
            ("object", Value::Table(_)) => Some(self.fit_table(node, schema)),
            ("array", Value::List(_)) => self.fit_list(node, schema),
            ("string", Value::Text(_)) => self.fit_text(node, schema),
            ("integer", Value::Integer(_)) => self.fit_integer(node, schema),
            ("number", Value::Integer(_) | Value::Fraction(_)) => self.fit_number(node, schema),
            ("boolean", Value::Flag(_)) => Some(node),
            // A schema that says nothing takes everything.
            ("", _) if schema["enum"].is_null() => Some(node),
            (expected, _) => {
                self.wrong_type(&node, expected, property);
                None
            }
        }
    }

    fn fit_table(&mut self, node: Node, schema: &'s Json) -> Node {
        let Value::Table(entries) = node.value else { return node };
        let free = schema.get("additionalProperties").filter(|free| **free != false);
        let (known, unknown): (Vec<Entry>, Vec<Entry>) =
            entries.into_iter().partition(|entry| free.is_some() || schema["properties"].get(&entry.name).is_some());
        if !unknown.is_empty() {
            self.report.leave_out(&node.key);
        }
        let mut present: Vec<String> =
            unknown.iter().filter_map(|entry| self.unknown_key(&node.key, entry, schema)).collect();
        let mut kept: Vec<Entry> = Vec::new();
        for Entry { name, name_span, node: member } in known {
            let property = schema["properties"].get(&name).or(free).unwrap_or(&Json::Null);
            // `[[model]]` and then `[models.queue]`: the second header is no mistake of its own.
            let is_consequence = present.contains(&name)
                && matches!(member.value, Value::Table(_))
                && self.schema.resolved(property)["type"] == "array";
            let is_left_out = is_consequence || !self.name_fits(&member, &name, &name_span, schema);
            present.push(name.clone());
            match if is_left_out { None } else { self.fit(member, property) } {
                Some(member) => kept.push(Entry { name, name_span, node: member }),
                None => self.report.leave_out(&node.key),
            }
        }
        let table = Node { value: Value::Table(kept), ..node };
        if !self.syntax_is_broken {
            self.missing_keys(&table, &present, schema);
        }
        table
    }

    /// Whether a free key has the form that the schema asks of them.
    fn name_fits(&mut self, member: &Node, name: &str, span: &std::ops::Range<usize>, schema: &'s Json) -> bool {
        let is_free = schema["properties"].get(name).is_none();
        let format = schema["propertyNames"]["format"].as_str().and_then(|format| self.schema.kind().format(format));
        let Some(Err(error)) = format.filter(|_| is_free).map(|format| (format.test)(name)) else { return true };
        let message = format!("the key `{}` {}", member.label(), error.fault);
        self.report.push(&member.key, Some(span.clone()), message, error.remedy);
        false
    }

    fn missing_keys(&mut self, table: &Node, present: &[String], schema: &'s Json) {
        for name in schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str) {
            if !present.iter().any(|key| key == name) {
                let key = self.syntax.member(&table.key, name);
                let remedy = format!("add {}", self.written(&key, name, &schema["properties"][name]));
                let place = self.syntax.section(&table.key);
                self.report.at(table, format!("{place} has no `{name}`"), remedy);
            }
        }
    }

    /// Reports an unknown key; gives the known one that was probably meant.
    fn unknown_key(&mut self, table: &str, entry: &Entry, schema: &'s Json) -> Option<String> {
        let properties = || schema["properties"].as_object().into_iter().flatten();
        let known: Vec<&str> = properties().map(|(key, _)| key.as_str()).collect();
        let meant = nearest(&entry.name, &known);
        let is_secret = self.schema.kind().hides_by_name && is_secret_name(&entry.name);
        let home = properties().find_map(|(name, property)| Some(self.syntax.assignment(name, &self.home(property)?)));
        let remedy = match (home, meant) {
            (Some(home), _) if is_secret && entry.node.span.len() > 2 => {
                format!(
                    "a file only says where a secret is: write {home} and put the secret into that environment variable"
                )
            }
            (_, Some(meant)) => format!("did you mean `{meant}`?"),
            (_, None) => format!("the keys here are {}", quoted_list(&known)),
        };
        if is_secret {
            self.report.hide(&entry.node);
        }
        let place = if table.is_empty() {
            "at the top of the file".to_owned()
        } else {
            format!("in {}", self.syntax.section(table))
        };
        let message = format!("unknown key {} {place}", shown(&entry.name));
        self.report.push(&entry.node.key, Some(entry.name_span.clone()), message, remedy);
        meant.map(str::to_owned)
    }

    fn fit_list(&mut self, node: Node, schema: &'s Json) -> Option<Node> {
        let Value::List(items) = node.value else { return None };
        let count = items.len();
        let least = schema["minItems"].as_u64().map_or(0, saturated);
        let most = schema["maxItems"].as_u64().map_or(usize::MAX, saturated);
        let positions = schema["prefixItems"].as_array().map(Vec::as_slice).unwrap_or_default();
        let kept: Vec<Node> = items
            .into_iter()
            .enumerate()
            // What is too much of a tuple is told by its count.
            .filter(|(index, _)| positions.is_empty() || *index < positions.len())
            .filter_map(|(index, item)| self.fit(item, positions.get(index).unwrap_or(&schema["items"])))
            .collect();
        let is_whole = kept.len() == count;
        if !is_whole {
            self.report.leave_out(&node.key);
        }
        let list = Node { value: Value::List(kept), ..node };
        if schema["uniqueItems"] == true {
            self.repeated_items(&list);
        }
        if count < least || count > most {
            self.wrong_count(&list, count, (least, most), schema);
            self.report.leave_out(&list.key);
        }
        // A list of fixed length means something only as a whole.
        (least != most || (is_whole && count == least)).then_some(list)
    }

    fn repeated_items(&mut self, list: &Node) {
        let values: Vec<Json> = list.list().iter().map(Node::to_json).collect();
        for (index, item) in list.list().iter().enumerate() {
            if let Some(first) = values[..index].iter().position(|value| *value == values[index]) {
                let message = format!("`{}` says the same as `{}`", item.label(), list.list()[first].label());
                self.report.at(item, message, "remove one of the two");
            }
        }
    }

    fn wrong_count(&mut self, list: &Node, count: usize, (least, most): (usize, usize), schema: &'s Json) {
        let label = list.label();
        let items = if count == 1 { "item" } else { "items" };
        let message = if count == 0 {
            format!("`{label}` is empty")
        } else if least == most {
            format!("`{label}` has {count} {items}; it takes exactly {least}")
        } else if count < least {
            format!("`{label}` has {count} {items}; the least is {least}")
        } else {
            format!("`{label}` has {count} {items}; the most is {most}")
        };
        let remedy = if count > most && least != most {
            format!("write at most {most}")
        } else {
            format!("write {}", self.written(&list.key, label, schema))
        };
        self.report.at(list, message, remedy);
    }
}

fn saturated(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
