//! How a key is written: what remedies show.

use super::Walk;
use crate::node::Node;
use crate::schema::{Choice, Kinds};
use crate::syntax::Syntax;
use serde_json::Value as Json;

/// The deepest example: a schema may hold itself.
const DEEPEST: u32 = 4;

impl<'s> Walk<'s, '_> {
    /// How a key is written, with its example, its default, or what it takes; in the quotes of a message.
    pub(super) fn written(&self, key: &str, label: &str, property: &'s Json) -> String {
        let schema = self.schema.resolved(property);
        let told = telling(property).or_else(|| telling(schema));
        if told.is_none() && self.schema.is_list_of_tables(schema) {
            let header = match self.syntax {
                Syntax::Toml => self.syntax.repeated_section(key),
                Syntax::Json => self.assigned(label, "[{ ... }]"),
            };
            return with_keys(header, self.schema.resolved(&schema["items"]));
        }
        if told.is_none() && (schema["type"] == "object" || Kinds::of(schema).is_some()) {
            let header = match self.syntax {
                Syntax::Toml => self.syntax.section(key),
                Syntax::Json => self.assigned(label, "{ ... }"),
            };
            return with_keys(header, schema);
        }
        self.assigned(label, &self.example(property))
    }

    /// `name = value`, or the value alone for an item of a list.
    pub(super) fn assigned(&self, label: &str, value: &str) -> String {
        let is_item = match self.syntax {
            Syntax::Toml => label.ends_with(']'),
            Syntax::Json => label.contains('/'),
        };
        if is_item { format!("`{value}`") } else { self.syntax.assignment(label, value) }
    }

    /// A table where a list of tables belongs.
    pub(super) fn as_a_list(&self, node: &Node) -> String {
        match self.syntax {
            Syntax::Toml => format!("write {} in double brackets", self.syntax.repeated_section(&node.key)),
            Syntax::Json => format!("write it in brackets: {}", self.assigned(node.label(), "[{ ... }]")),
        }
    }

    /// A list where a table belongs.
    pub(super) fn as_a_table(&self, node: &Node) -> String {
        match self.syntax {
            Syntax::Toml => format!("write {} once, in single brackets", self.syntax.section(&node.key)),
            Syntax::Json => format!("write it in braces: {}", self.assigned(node.label(), "{ ... }")),
        }
    }

    /// Whether a list may hold tables that tell by their key what they are.
    pub(super) fn offers_tables(&self, list: &'s Json) -> bool {
        Choice::of(self.schema.resolved(&list["items"])).is_some_and(|choice| !choice.tags.is_empty())
    }

    /// Where a secret belongs in this property, as it is written; `None`: it takes no secret.
    pub(super) fn home(&self, property: &'s Json) -> Option<String> {
        let schema = self.schema.resolved(property);
        let own = schema["x-secret"].as_str().map(str::to_owned);
        let of_items = || self.schema.resolved(&schema["items"])["x-secret"].as_str();
        own.or_else(|| of_items().map(|home| format!("[{home}]")))
    }

    /// A value that the schema takes, as it is written.
    pub(super) fn example(&self, property: &'s Json) -> String {
        self.example_within(property, DEEPEST)
    }

    fn example_within(&self, property: &'s Json, depth: u32) -> String {
        let schema = self.schema.resolved(property);
        if let Some(told) = telling(property).or_else(|| telling(schema)) {
            return self.syntax.value(told);
        }
        if let Some(home) = schema["x-secret"].as_str() {
            return home.to_owned();
        }
        if depth == 0 {
            return "...".to_owned();
        }
        if Kinds::of(schema).is_none()
            && let Some(choice) = Choice::of(schema)
        {
            return match (choice.words.first(), choice.tags.first()) {
                (None, Some((tag, _, inner))) => {
                    self.syntax.tagged(tag, &self.example_within(inner, depth - 1)).trim_matches('`').to_owned()
                }
                (word, _) => format!("\"{}\"", word.map(|(word, _)| *word).unwrap_or_default()),
            };
        }
        match schema["type"].as_str().unwrap_or_default() {
            "integer" => schema["enum"].get(0).map_or_else(|| within(20.0, schema), Json::to_string),
            "number" => within(0.5, schema),
            "boolean" => "true".to_owned(),
            "array" => self.example_list(schema, depth),
            "string" => {
                let format = schema["format"].as_str().and_then(|name| self.schema.kind().format(name));
                format!("\"{}\"", format.map_or("...", |format| format.example))
            }
            _ => "{ ... }".to_owned(),
        }
    }

    fn example_list(&self, schema: &'s Json, depth: u32) -> String {
        let items: Vec<String> = match schema["prefixItems"].as_array() {
            Some(positions) => positions.iter().map(|item| self.example_within(item, depth - 1)).collect(),
            None => vec![self.example_within(&schema["items"], depth - 1)],
        };
        format!("[{}]", items.join(", "))
    }
}

/// A section and the keys that it must have.
fn with_keys(header: String, schema: &Json) -> String {
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str);
    let required: Vec<String> = required.map(|name| format!("`{name}`")).collect();
    match required.split_last() {
        None => header,
        Some((last, [])) => format!("{header} with {last}"),
        Some((last, others)) => format!("{header} with {} and {last}", others.join(", ")),
    }
}

/// The example or default of a schema, if it says something.
fn telling(schema: &Json) -> Option<&Json> {
    let told = schema["examples"].get(0).unwrap_or(&schema["default"]);
    let says_nothing = told.is_null() || *told == serde_json::json!([]) || *told == serde_json::json!({});
    (!says_nothing).then_some(told)
}

/// `usual`, or the nearest number that the schema takes where that is none.
fn within(usual: f64, schema: &Json) -> String {
    let bound = |name: &str| schema[name].as_f64();
    let least = bound("minimum").or_else(|| bound("exclusiveMinimum").map(|least| least + 1.0));
    let most = bound("maximum").or_else(|| bound("exclusiveMaximum").map(|most| most - 1.0));
    usual.max(least.unwrap_or(usual)).min(most.unwrap_or(usual)).to_string()
}
