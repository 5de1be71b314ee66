//! A reference page in Markdown, made from a schema and so from the comments of the types.

use crate::schema::{Choice, Kinds, NULLABLE, Schema};
use crate::words::range;
use serde_json::Value as Json;
use std::fmt::Write as _;

/// A reference page: `head`, then each of the sections with its keys.
///
/// A section is a header as it is written in a document, and the name of its type; an empty name stands for the whole
/// document.
pub fn markdown(schema: &Schema, head: &str, sections: &[(&str, &str)]) -> String {
    let mut page = Page { schema, text: head.to_owned() };
    for (header, name) in sections {
        let section = if name.is_empty() { schema.root() } else { &schema.root()["$defs"][name] };
        page.section(header, section);
    }
    page.text
}

struct Page<'s> {
    schema: &'s Schema,
    text: String,
}

impl<'s> Page<'s> {
    fn section(&mut self, header: &str, schema: &'s Json) {
        self.push(format_args!("\n## `{header}`\n\n{}\n", text(schema)));
        if let Some(kinds) = Kinds::of(schema) {
            return self.kinds(&kinds);
        }
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            self.key(name, property, is_required(schema, name));
        }
    }

    /// The kinds of a section, each with its keys.
    fn kinds(&mut self, kinds: &Kinds<'s>) {
        for (word, meaning, schema) in &kinds.list {
            self.push(format_args!("\n### `{} = \"{word}\"`\n\n{meaning}\n\n", kinds.key));
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                if name != kinds.key {
                    let kind = self.type_name(property);
                    let default = default(property, is_required(schema, name));
                    self.push(format_args!("* `{name}`: {} Type: {kind}. Default: {default}.\n", text(property)));
                }
            }
        }
    }

    fn key(&mut self, name: &str, property: &'s Json, required: bool) {
        self.push(format_args!("\n### `{name}`\n\n{}\n\n", text(property)));
        let kind = self.type_name(property);
        self.push(format_args!("* Type: {kind}\n"));
        self.push(format_args!("* Default: {}\n", default(property, required)));
        if let Some(example) = property["examples"].get(0) {
            let written = self.schema.kind().syntax.assignment(name, &self.schema.kind().syntax.value(example));
            self.push(format_args!("* Example: {written}\n"));
        }
        let target = self.schema.resolved(property);
        for choice in
            [target, &property["items"]].into_iter().filter(|one| Kinds::of(one).is_none()).filter_map(Choice::of)
        {
            self.choices(&choice);
        }
    }

    fn choices(&mut self, choice: &Choice<'s>) {
        for (word, meaning) in choice.words.iter().filter(|(_, meaning)| !meaning.is_empty()) {
            self.push(format_args!("* `\"{word}\"`: {meaning}\n"));
        }
        for (tag, meaning, value) in &choice.tags {
            let written = self.schema.kind().syntax.tagged(tag, "...");
            self.push(format_args!("* {written}: {meaning}\n"));
            for (name, inner) in value["properties"].as_object().into_iter().flatten() {
                let default = match &inner["default"] {
                    Json::Null => String::new(),
                    value => format!(" Default `{value}`."),
                };
                self.push(format_args!("  * `{name}`: {}{default}\n", text(inner)));
            }
        }
    }

    fn type_name(&self, property: &'s Json) -> String {
        let target = self.schema.resolved(property);
        if Kinds::of(target).is_some() {
            return "a section of its own, below".to_owned();
        }
        if let Some(choice) = Choice::of(target) {
            return format!("one of {}", choice.list(self.schema.kind().syntax));
        }
        if is_section(property) {
            return "a section of its own, below".to_owned();
        }
        match property["type"].as_str().unwrap_or_default() {
            "integer" => integer(property),
            "number" => format!("number{}", range(property)),
            "boolean" => "`true` or `false`".to_owned(),
            "array" => self.list_type(property),
            "object" => match property.get("additionalProperties").filter(|free| free.is_object()) {
                Some(free) => format!("table with keys of your own, each value a {}", self.type_name(free)),
                None => "table".to_owned(),
            },
            _ => {
                let format = property["format"].as_str().and_then(|name| self.schema.kind().format(name));
                format.map_or("text", |format| format.shown).to_owned()
            }
        }
    }

    fn list_type(&self, list: &'s Json) -> String {
        let items = &list["items"];
        if let Some(positions) = list["prefixItems"].as_array() {
            let positions: Vec<String> = positions.iter().map(|item| self.type_name(item)).collect();
            return format!("`[{}]`", positions.join(", "));
        }
        if is_section(items) {
            return "list of sections, below".to_owned();
        }
        if let Some(choice) = Choice::of(items) {
            return if choice.tags.is_empty() { "list of words" } else { "list of tables" }.to_owned();
        }
        match items["type"].as_str().unwrap_or_default() {
            "integer" => "list of whole numbers".to_owned(),
            "number" => "list of numbers".to_owned(),
            "array" => format!("list of {}", self.type_name(items)),
            _ => "list of texts".to_owned(),
        }
    }

    fn push(&mut self, part: std::fmt::Arguments<'_>) {
        self.text.write_fmt(part).expect("writing to a string does not fail");
    }
}

fn is_required(table: &Json, name: &str) -> bool {
    table["required"].as_array().is_some_and(|names| names.iter().any(|one| one == name))
}

fn default(property: &Json, required: bool) -> String {
    match &property["default"] {
        Json::Null if required => "none, it must be set".to_owned(),
        Json::Null if is_section(property) && property[NULLABLE] != true => "each key's own".to_owned(),
        Json::Null => "not set".to_owned(),
        value => format!("`{value}`"),
    }
}

fn integer(property: &Json) -> String {
    match (property["enum"].as_array(), property["minimum"].as_u64(), property["maximum"].as_u64()) {
        (Some(values), _, _) => {
            format!("one of {}", values.iter().map(Json::to_string).collect::<Vec<_>>().join(", "))
        }
        (None, Some(least), Some(most)) => format!("whole number from {least} to {most}"),
        _ => "whole number".to_owned(),
    }
}

fn is_section(property: &Json) -> bool {
    property.get("$ref").is_some()
}

fn text(schema: &Json) -> &str {
    schema["description"].as_str().unwrap_or_default()
}
