//! The two syntaxes a document may be written in: how each is read, and how a message writes a key, a section and an
//! example in it.

mod json;
mod toml;

use crate::errors::safe_key;
use crate::node::{Node, Value};
use crate::report::Report;
use serde_json::Value as Json;

/// How a document is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// TOML; a key is told as `models[0].deployments[1].url`.
    Toml,
    /// JSON; a key is told as a JSON pointer (RFC 6901), `/remediation/0/text`.
    Json,
}

/// What a parser made of a text.
pub(crate) struct Parsed {
    /// The tree.
    pub(crate) root: Node,
    /// The parser put empty values where it could not read one, and may have lost keys.
    pub(crate) is_broken: bool,
}

impl Syntax {
    /// The tree of a text; `None`: so much is wrong that more about it would mislead. What is wrong is reported.
    pub(crate) fn parse(self, text: &str, report: &mut Report) -> Option<Parsed> {
        match self {
            Self::Toml => toml::parse(text, report),
            Self::Json => json::parse(text, report),
        }
    }

    /// The key of a member of the table at `table`.
    pub(crate) fn member(self, table: &str, name: &str) -> String {
        match self {
            Self::Toml if table.is_empty() => name.to_owned(),
            Self::Toml => format!("{table}.{name}"),
            Self::Json => format!("{table}/{}", name.replace('~', "~0").replace('/', "~1")),
        }
    }

    /// The key of an item of the list at `list`; also what a message calls it, if `list` is what it calls the list.
    pub(crate) fn item(self, list: &str, index: usize) -> String {
        match self {
            Self::Toml => format!("{list}[{index}]"),
            Self::Json => format!("{list}/{index}"),
        }
    }

    /// What a message calls the type of a value, with its article.
    pub(crate) const fn type_name(self, value: &Value) -> &'static str {
        match value {
            Value::Text(_) => "a text",
            Value::Integer(_) => "a whole number",
            Value::Fraction(_) => "a number with a fraction",
            Value::Flag(_) => "`true` or `false`",
            Value::Other(name) => name,
            Value::Null => "null",
            Value::List(_) => "a list",
            Value::Table(_) => self.table_name(),
        }
    }

    /// What a message calls a table, with its article.
    pub(crate) const fn table_name(self) -> &'static str {
        match self {
            Self::Toml => "a table",
            Self::Json => "an object",
        }
    }

    /// A table as it is written: `[server]`, `[[models.deployments]]`, or its JSON pointer.
    pub(crate) fn section(self, key: &str) -> String {
        if key.is_empty() {
            return "the file".to_owned();
        }
        match self {
            Self::Toml if key.ends_with(']') => self.repeated_section(key),
            Self::Toml => format!("`[{}]`", without_indices(key)),
            Self::Json => format!("`{}`", safe_key(key)),
        }
    }

    /// A list of tables as it is written.
    pub(crate) fn repeated_section(self, key: &str) -> String {
        match self {
            Self::Toml => format!("`[[{}]]`", without_indices(key)),
            Self::Json => self.section(key),
        }
    }

    /// `name = value` with its quotes of a message.
    pub(crate) fn assignment(self, name: &str, value: &str) -> String {
        match self {
            Self::Toml => format!("`{name} = {value}`"),
            Self::Json => format!("`\"{name}\": {value}`"),
        }
    }

    /// The key of a choice with what stands for its value.
    pub(crate) fn tagged(self, tag: &str, value: &str) -> String {
        match self {
            Self::Toml => format!("`{{ {tag} = {value} }}`"),
            Self::Json => format!("`{{ \"{tag}\": {value} }}`"),
        }
    }

    /// A value as it is written.
    pub(crate) fn value(self, value: &Json) -> String {
        match (self, value) {
            (Self::Toml, Json::Object(members)) if members.is_empty() => "{}".to_owned(),
            (Self::Toml, Json::Object(members)) => {
                let members = members.iter().map(|(name, value)| format!("{name} = {}", self.value(value)));
                format!("{{ {} }}", members.collect::<Vec<_>>().join(", "))
            }
            (_, Json::Array(items)) => {
                let items = items.iter().map(|item| self.value(item));
                format!("[{}]", items.collect::<Vec<_>>().join(", "))
            }
            (_, value) => value.to_string(),
        }
    }
}

fn without_indices(key: &str) -> String {
    let parts = key.split('.').map(|part| part.split('[').next().unwrap_or(part));
    safe_key(&parts.collect::<Vec<_>>().join("."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn sections_are_shown_as_they_are_written() {
        assert_eq!(Syntax::Toml.section("models[0].deployments[3]"), "`[[models.deployments]]`");
        assert_eq!(Syntax::Toml.section("models[0].queue"), "`[models.queue]`");
        assert_eq!(Syntax::Toml.section(""), "the file");
        assert_eq!(Syntax::Json.section("/models/0/queue"), "`/models/0/queue`");
    }

    #[test]
    fn values_are_shown_as_they_are_written() {
        let value = json!({ "at": ["09:00", 0.5], "of": {} });
        assert_eq!(Syntax::Toml.value(&value), "{ at = [\"09:00\", 0.5], of = {} }");
        assert_eq!(Syntax::Json.value(&json!([1, "a"])), "[1, \"a\"]");
        assert_eq!(Syntax::Json.assignment("at", "1"), "`\"at\": 1`");
        assert_eq!(Syntax::Json.member("/a", "b/c~d"), "/a/b~1c~0d");
    }
}
