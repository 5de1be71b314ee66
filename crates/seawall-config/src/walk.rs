//! Compares a file with the schema and reports every difference: unknown keys, missing keys, wrong types, values out of
//! range, words that are none of the choices.
//!
//! What is wrong is left out of the tree that comes back, so that the checks after this one find no second mistake in
//! the first one.

use crate::errors::shown;
use crate::node::{Entry, Node, Report, Value};
use crate::redact::{is_secret_name, looks_secret};
use crate::schema::{Choice, resolved, schema};
use crate::units::test_format;
use serde_json::Value as Json;

/// The part of the file that fits the schema.
pub(crate) fn fitting(root: Node, report: &mut Report, syntax_is_broken: bool) -> Node {
    let mut walk = Walk { report, syntax_is_broken };
    let empty = Node { span: 0..0, key: String::new(), value: Value::Table(Vec::new()) };
    walk.fit(root, schema()).unwrap_or(empty)
}

struct Walk<'a> {
    report: &'a mut Report,
    /// The parser put empty values where it could not read one, and may have lost keys.
    syntax_is_broken: bool,
}

impl Walk<'_> {
    fn fit(&mut self, node: Node, schema: &'static Json) -> Option<Node> {
        if self.syntax_is_broken && node.span.is_empty() && !node.key.is_empty() {
            return None;
        }
        let schema = resolved(schema);
        if let Some(choice) = Choice::of(schema) {
            return self.fit_choice(node, schema, &choice);
        }
        match (schema["type"].as_str().unwrap_or_default(), &node.value) {
            ("object", Value::Table(_)) => Some(self.fit_table(node, schema)),
            ("array", Value::List(_)) => Some(self.fit_list(node, schema)),
            ("string", Value::Text(_)) => self.fit_text(node, schema),
            ("integer", Value::Integer(_)) => self.fit_integer(node, schema),
            ("boolean", Value::Flag(_)) => Some(node),
            (expected, _) => {
                self.wrong_type(&node, expected, schema);
                None
            }
        }
    }

    fn fit_table(&mut self, node: Node, schema: &'static Json) -> Node {
        let Node { span, key, value: Value::Table(entries) } = node else { return node };
        let (known, unknown): (Vec<Entry>, Vec<Entry>) =
            entries.into_iter().partition(|entry| schema["properties"].get(&entry.name).is_some());
        if !unknown.is_empty() {
            self.report.incomplete.insert(key.clone());
        }
        let mut present: Vec<String> =
            unknown.iter().filter_map(|entry| self.unknown_key(&key, entry, schema)).collect();
        let mut kept: Vec<Entry> = Vec::new();
        for Entry { name, name_span, node } in known {
            let property = &schema["properties"][&name];
            // `[[model]]` and then `[models.queue]`: the second header is no mistake of its own.
            let is_consequence = present.contains(&name)
                && matches!(node.value, Value::Table(_))
                && resolved(property)["type"] == "array";
            present.push(name.clone());
            match if is_consequence { None } else { self.fit(node, property) } {
                Some(node) => kept.push(Entry { name, name_span, node }),
                None => drop(self.report.incomplete.insert(key.clone())),
            }
        }
        let table = Node { span, key, value: Value::Table(kept) };
        if !self.syntax_is_broken {
            self.missing_keys(&table, &present, schema);
        }
        table
    }

    fn missing_keys(&mut self, table: &Node, present: &[String], schema: &'static Json) {
        for name in schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str) {
            if !present.iter().any(|key| key == name) {
                let remedy = format!("add {}", written(&table.key, name, &schema["properties"][name]));
                self.report.at(table, format!("{} has no `{name}`", section(&table.key)), remedy);
            }
        }
    }

    /// Reports an unknown key; gives the known one that was probably meant.
    fn unknown_key(&mut self, table: &str, entry: &Entry, schema: &'static Json) -> Option<String> {
        let known: Vec<&str> =
            schema["properties"].as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect();
        let meant = nearest(&entry.name, &known);
        let remedy = if is_secret_name(&entry.name) && entry.node.span.len() > 2 && secret_home(&known).is_some() {
            self.report.hide(&entry.node);
            let home = secret_home(&known).unwrap_or_default();
            format!(
                "a file only says where a secret is: write `{home}` and put the secret into that environment variable"
            )
        } else if let Some(meant) = meant {
            format!("did you mean `{meant}`?")
        } else {
            format!("the keys here are {}", quoted_list(&known))
        };
        if is_secret_name(&entry.name) {
            self.report.hide(&entry.node);
        }
        let place =
            if table.is_empty() { "at the top of the file".to_owned() } else { format!("in {}", section(table)) };
        let message = format!("unknown key {} {place}", shown(&entry.name));
        self.report.push(entry.node.key.clone(), Some(entry.name_span.clone()), message, remedy);
        meant.map(str::to_owned)
    }

    fn fit_list(&mut self, node: Node, schema: &'static Json) -> Node {
        let Node { span, key, value: Value::List(items) } = node else { return node };
        let count = items.len();
        let kept: Vec<Node> = items.into_iter().filter_map(|item| self.fit(item, &schema["items"])).collect();
        if kept.len() < count {
            self.report.incomplete.insert(key.clone());
        }
        let list = Node { span, key, value: Value::List(kept) };
        if count == 0 && schema["minItems"].as_u64().is_some_and(|least| least > 0) {
            let remedy = format!("write {}", written("", list.label(), schema));
            self.report.at(&list, format!("`{}` is empty", list.label()), remedy);
            self.report.incomplete.insert(list.key.clone());
        }
        list
    }

    fn fit_text(&mut self, node: Node, schema: &'static Json) -> Option<Node> {
        let Value::Text(text) = &node.value else { return None };
        match test_format(schema["format"].as_str().unwrap_or_default(), text) {
            Ok(()) => Some(node),
            Err(error) => {
                if error.secret {
                    self.report.hide(&node);
                }
                self.report.at(&node, format!("`{}` {}", node.label(), error.fault), error.remedy);
                None
            }
        }
    }

    fn fit_integer(&mut self, node: Node, schema: &'static Json) -> Option<Node> {
        let Value::Integer(number) = node.value else { return None };
        if let Some(allowed) = schema["enum"].as_array() {
            let allowed: Vec<String> = allowed.iter().map(Json::to_string).collect();
            if allowed.contains(&number.to_string()) {
                return Some(node);
            }
            let remedy = format!("the values are {}", allowed.join(", "));
            self.report.at(&node, format!("`{}` cannot be {number}", node.label()), remedy);
            return None;
        }
        let least = schema["minimum"].as_i64().unwrap_or(0);
        let most = schema["maximum"].as_i64().unwrap_or_else(|| u32::MAX.into());
        if (i128::from(least)..=i128::from(most)).contains(&number) {
            return Some(node);
        }
        let bound =
            if number < i128::from(least) { format!("the least is {least}") } else { format!("the most is {most}") };
        let remedy = format!("write a whole number from {least} to {most}");
        self.report.at(&node, format!("`{}` is {}; {bound}", node.label(), written_number(number)), remedy);
        None
    }

    fn fit_choice(&mut self, node: Node, schema: &'static Json, choice: &Choice) -> Option<Node> {
        let secret = schema["x-secret"].as_str();
        match &node.value {
            Value::Text(text) if choice.words.iter().any(|(word, _)| word == text) => Some(node),
            Value::Text(_) if secret.is_some() => {
                self.literal_secret(&node, secret.unwrap_or_default());
                None
            }
            Value::Text(text) => {
                let (fault, remedy) = wrong_word(text, choice);
                self.report.at(&node, format!("`{}` {fault}", node.label()), remedy);
                None
            }
            Value::Table(_) if !choice.tags.is_empty() => self.fit_tagged(node, secret, choice),
            _ => {
                if secret.is_some() {
                    self.report.hide(&node);
                }
                let message = format!("`{}` cannot be {}", node.label(), node.type_name());
                self.report.at(&node, message, format!("write one of {}", choice.list()));
                None
            }
        }
    }

    fn fit_tagged(&mut self, node: Node, secret: Option<&str>, choice: &Choice) -> Option<Node> {
        let Value::Table(entries) = &node.value else { return None };
        let known: Vec<&str> = choice.tags.iter().map(|(tag, _, _)| *tag).collect();
        if let Some(entry) = entries.iter().find(|entry| !known.contains(&entry.name.as_str())) {
            if secret.is_some() {
                self.report.hide(&entry.node);
            }
            let remedy = match nearest(&entry.name, &known) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("write one of {}", choice.list()),
            };
            let message = format!("unknown key {} in `{}`", shown(&entry.name), node.label());
            self.report.push(entry.node.key.clone(), Some(entry.name_span.clone()), message, remedy);
            return None;
        }
        let [entry] = entries.as_slice() else {
            let message = format!("`{}` takes exactly one of {}", node.label(), quoted_list(&known));
            self.report.at(&node, message, format!("write one of {}", choice.list()));
            return None;
        };
        let (_, _, inner) = choice.tags.iter().find(|(tag, _, _)| *tag == entry.name)?;
        let entry = Entry { node: self.fit(entry.node.clone(), inner)?, ..entry.clone() };
        Some(Node { value: Value::Table(vec![entry]), ..node })
    }

    fn literal_secret(&mut self, node: &Node, example: &str) {
        self.report.hide(node);
        let message = format!("`{}` holds a text; a config file only says where a secret is", node.label());
        let remedy = format!(
            "put the secret into an environment variable or a file of its own and write, for example, `{example}`"
        );
        self.report.at(node, message, remedy);
    }

    fn wrong_type(&mut self, node: &Node, expected: &str, schema: &'static Json) {
        if is_secret_name(node.label()) {
            self.report.hide(node);
        }
        let label = node.label();
        let name = label.split('[').next().unwrap_or(label);
        let (must_be, remedy) = match (expected, &node.value) {
            ("integer", Value::Text(text)) if text.parse::<u32>().is_ok() => {
                ("a whole number", format!("write it without quotes: `{name} = {text}`"))
            }
            ("boolean", Value::Text(text)) if text == "true" || text == "false" => {
                ("`true` or `false`", format!("write it without quotes: `{name} = {text}`"))
            }
            ("integer", _) => ("a whole number", example_remedy(name, schema)),
            ("boolean", _) => ("`true` or `false`", example_remedy(name, schema)),
            ("array", Value::Table(_)) => ("a list", format!("write {} in double brackets", double_section(&node.key))),
            ("array", Value::Text(text)) if !looks_secret(text) => {
                ("a list", format!("write it in brackets: `{name} = [\"...\"]`"))
            }
            ("array", _) => ("a list", format!("write {}", written(&node.key, name, schema))),
            ("object", Value::List(_)) => ("a table", format!("write {} once, in single brackets", section(&node.key))),
            ("object", _) => ("a table", format!("write {}", section(&node.key))),
            _ => ("a text", example_remedy(name, schema)),
        };
        self.report.at(node, format!("`{label}` is {}; it must be {must_be}", node.type_name()), remedy);
    }
}

fn wrong_word(text: &str, choice: &Choice) -> (String, String) {
    if choice.tags.iter().any(|(tag, _, _)| *tag == text) {
        return (
            format!("is {} without its size", shown(text)),
            format!("write the size, for example `{{ {text} = 20 }}`"),
        );
    }
    let words: Vec<&str> = choice.words.iter().map(|(word, _)| *word).collect();
    let list = format!("the values are {}", choice.list());
    let remedy = match nearest(text, &words) {
        Some(meant) => format!("did you mean `\"{meant}\"`? {list}"),
        None => list,
    };
    (format!("cannot be {}", shown(text)), remedy)
}

fn written_number(number: i128) -> String {
    if number == i128::MAX { "too large".to_owned() } else { number.to_string() }
}

fn example_remedy(name: &str, schema: &Json) -> String {
    format!("write it as in {}", written("", name, schema))
}

/// How a key is written, with its example, its default, or what it takes.
fn written(table: &str, name: &str, schema: &Json) -> String {
    let value = match schema["examples"].get(0).unwrap_or(&schema["default"]) {
        Json::Null if name == "deployments" => return "`[[models.deployments]]` with a `name` and a `url`".to_owned(),
        Json::Null if name == "keys" => "[{ env = \"TEAM_KEY\" }]".to_owned(),
        Json::Null if name == "client_secret" => "{ env = \"AZURE_CLIENT_SECRET\" }".to_owned(),
        Json::Null if schema["type"] == "integer" => "20".to_owned(),
        Json::Null if schema["type"] == "array" && table.is_empty() => return format!("`[[{name}]]`"),
        Json::Null => "\"...\"".to_owned(),
        value => value.to_string(),
    };
    format!("`{name} = {value}`")
}

/// Where a secret belongs in a table with these keys.
fn secret_home(known: &[&str]) -> Option<&'static str> {
    let homes = [
        ("credential", "credential = { env = \"OPENAI_API_KEY\" }"),
        ("keys", "keys = [{ env = \"TEAM_KEY\" }]"),
        ("client_secret", "client_secret = { env = \"AZURE_CLIENT_SECRET\" }"),
    ];
    homes.into_iter().find(|(key, _)| known.contains(key)).map(|(_, home)| home)
}

/// A table as its header is written: `[server]`, `[[models.deployments]]`.
pub(crate) fn section(key: &str) -> String {
    if key.is_empty() {
        return "the file".to_owned();
    }
    if key.ends_with(']') { double_section(key) } else { format!("`[{}]`", without_indices(key)) }
}

fn double_section(key: &str) -> String {
    format!("`[[{}]]`", without_indices(key))
}

fn without_indices(key: &str) -> String {
    let parts = key.split('.').map(|part| part.split('[').next().unwrap_or(part));
    crate::errors::safe_key(parts.collect::<Vec<_>>().join("."))
}

pub(crate) fn quoted_list(names: &[&str]) -> String {
    names.iter().map(|name| shown(name).to_string()).collect::<Vec<_>>().join(", ")
}

/// The known name that was probably meant: at most a third of its letters differ.
pub(crate) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let plain = |text: &str| text.to_lowercase().replace(['-', ' '], "_");
    let name = plain(&name.chars().take(100).collect::<String>());
    known
        .iter()
        .map(|candidate| (strsim::damerau_levenshtein(&name, &plain(candidate)), *candidate))
        .filter(|(distance, candidate)| *distance <= (candidate.chars().count() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_near() {
        assert_eq!(nearest("patiance", &["patience", "max_waiting"]), Some("patience"));
        assert_eq!(nearest("max-waiting", &["patience", "max_waiting"]), Some("max_waiting"));
        assert_eq!(nearest("completely_else", &["patience", "max_waiting"]), None);
    }

    #[test]
    fn sections_are_shown_as_they_are_written() {
        assert_eq!(section("models[0].deployments[3]"), "`[[models.deployments]]`");
        assert_eq!(section("models[0].queue"), "`[models.queue]`");
        assert_eq!(section(""), "the file");
    }
}
