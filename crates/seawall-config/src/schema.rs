//! The schema of a config file: the one source of the walk over a file, the reference page and editors' completion.

use crate::raw::Raw;
use serde_json::Value as Json;
use std::sync::OnceLock;

/// The schema, made once.
pub(crate) fn schema() -> &'static Json {
    static SCHEMA: OnceLock<Json> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let mut schema = schemars::schema_for!(Raw).to_value();
        tidy(&mut schema);
        schema
    })
}

/// The JSON schema of a config file, for editors; a generated file of the documentation.
pub fn schema_json() -> String {
    let mut text = serde_json::to_string_pretty(schema()).expect("a JSON value always serialises");
    text.push('\n');
    text
}

/// Adapts what is made for JSON to TOML: there is no null, a comment's line ends are no line ends of its text, and the
/// default of a whole section is told by its keys.
fn tidy(schema: &mut Json) {
    if let Some(children) = schema.as_array_mut() {
        children.iter_mut().for_each(tidy);
    }
    let Some(object) = schema.as_object_mut() else { return };
    if let Some(Json::String(description)) = object.get_mut("description") {
        *description = description.replace('\n', " ");
    }
    if object.get("default").is_some_and(Json::is_object) {
        object.remove("default");
    }
    if let Some(types) = object.get("type").and_then(Json::as_array).cloned() {
        let only = types.into_iter().find(|kind| kind != "null").unwrap_or(Json::Null);
        object.insert("type".to_owned(), only);
    }
    let choices = object.get("anyOf").and_then(Json::as_array).cloned();
    if let Some([choice, null]) = choices.as_deref()
        && null["type"] == "null"
    {
        object.remove("anyOf");
        for (name, value) in choice.as_object().into_iter().flatten() {
            object.entry(name.clone()).or_insert_with(|| value.clone());
        }
    }
    for (_, child) in object.iter_mut() {
        tidy(child);
    }
}

/// The schema behind a `$ref`, or the schema itself.
pub(crate) fn resolved(schema: &'static Json) -> &'static Json {
    let target = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
    target.and_then(|pointer| self::schema().pointer(pointer)).unwrap_or(schema)
}

/// A setting that may be one of several things: words, or tables with one of several keys.
#[derive(Debug, Default)]
pub(crate) struct Choice {
    /// The words, and what each means.
    pub(crate) words: Vec<(&'static str, &'static str)>,
    /// The keys, what each means, and the schema of its value.
    pub(crate) tags: Vec<(&'static str, &'static str, &'static Json)>,
}

impl Choice {
    /// The choice that a schema offers; `None`: it offers none.
    pub(crate) fn of(schema: &'static Json) -> Option<Self> {
        let mut choice = Self::default();
        choice.collect(schema);
        (!choice.words.is_empty() || !choice.tags.is_empty()).then_some(choice)
    }

    fn collect(&mut self, schema: &'static Json) {
        let words = schema["enum"].as_array().into_iter().flatten().filter_map(Json::as_str);
        self.words.extend(words.map(|word| (word, "")));
        for part in ["oneOf", "anyOf"].into_iter().filter_map(|name| schema[name].as_array()).flatten() {
            let meaning = part["description"].as_str().unwrap_or_default();
            if let Some(word) = part["const"].as_str() {
                self.words.push((word, meaning));
            } else if let Some((tag, value)) = part["properties"].as_object().and_then(|tags| tags.iter().next()) {
                self.tags.push((tag, meaning, value));
            } else {
                self.collect(part);
            }
        }
    }

    /// All that may be written, for a message.
    pub(crate) fn list(&self) -> String {
        let words = self.words.iter().map(|(word, _)| format!("`\"{word}\"`"));
        let tags = self.tags.iter().map(|(tag, _, _)| format!("`{{ {tag} = ... }}`"));
        words.chain(tags).collect::<Vec<_>>().join(", ")
    }
}
