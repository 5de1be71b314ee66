//! The schema of a kind of document, made from its types: the one source of the walk over a text, the reference page and
//! editors' completion.

use crate::formats::Format;
use crate::syntax::Syntax;
use schemars::JsonSchema;
use serde_json::Value as Json;

/// What documents of one kind are called, how they are written, and what is special about them.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// With its article, for example `a config file`.
    pub name: &'static str,
    /// How it is written.
    pub syntax: Syntax,
    /// What the number under a word of a choice is, for example `size`, where `{ provisioned = 20 }` is one.
    pub quantity: &'static str,
    /// Whether the value of a key whose name is one that a secret would have (`token`, `api_key`) is hidden from every
    /// message. Text that looks like a secret always is.
    pub hides_by_name: bool,
    /// The formats of its texts.
    pub formats: &'static [&'static [Format]],
}

impl Kind {
    /// A format by its name.
    pub(crate) fn format(&self, name: &str) -> Option<&'static Format> {
        self.formats.iter().copied().flatten().find(|format| format.name == name)
    }
}

/// The schema of a kind of document. Made once and kept, for example in a `OnceLock`.
///
/// What the walk checks of JSON Schema: `type` (also `number`), `enum` and `const` of texts and whole numbers, `format`,
/// `minLength`, `maxLength`, the bounds of numbers, `required`, `properties`, `additionalProperties`, `propertyNames`
/// with a `format`, `items`, `prefixItems`, `minItems`, `maxItems`, `uniqueItems`, `$ref`, and `oneOf` and `anyOf` as serde's enums
/// make them: words, tables with one of several keys, tables with a key that tells their kind. A table without
/// `additionalProperties` takes no other keys. [`unchecked`](Self::unchecked) lists what goes beyond that. Of our own is
/// `x-secret`: where a secret belongs, as it is written.
#[derive(Debug)]
pub struct Schema {
    kind: Kind,
    /// For editors.
    published: Json,
    /// For the walk: no null but as a mark.
    walked: Json,
}

/// Marks, in the schema that is walked, a value that may be null.
pub(crate) const NULLABLE: &str = "x-nullable";

/// Keywords that are checked, or that only describe.
const CHECKED: &[&str] = &[
    "$defs",
    "$ref",
    "$schema",
    "additionalProperties",
    "anyOf",
    "const",
    "default",
    "description",
    "enum",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "oneOf",
    "prefixItems",
    "properties",
    "propertyNames",
    "required",
    "title",
    "type",
    "uniqueItems",
    NULLABLE,
    "x-secret",
];

impl Schema {
    /// The schema of documents that are read into a `T`.
    pub fn new<T: JsonSchema>(kind: Kind) -> Self {
        let mut published = schemars::schema_for!(T).to_value();
        let mut walked = published.clone();
        merge_references(&mut walked, &published["$defs"].clone());
        match kind.syntax {
            Syntax::Json => join_lines(&mut published),
            Syntax::Toml => {
                published.clone_from(&walked);
                tidy(&mut published, false);
            }
        }
        tidy(&mut walked, true);
        Self { kind, published, walked }
    }

    /// The JSON schema, for editors; a generated file of the documentation.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(&self.published).expect("a JSON value always serialises");
        text.push('\n');
        text
    }

    /// What the schema asks for and the walk does not check: keywords, formats of texts, and alternatives that are
    /// none of the supported forms. A test of the crate with the types holds it empty.
    pub fn unchecked(&self) -> Vec<String> {
        let mut found = Vec::new();
        self.collect_unchecked(&self.walked, "", &mut found);
        found
    }

    fn collect_unchecked(&self, schema: &Json, place: &str, found: &mut Vec<String>) {
        let format = schema["format"].as_str();
        for keyword in schema.as_object().into_iter().flatten().map(|(keyword, _)| keyword.as_str()) {
            // A pattern is for editors, where a format says the same to the walk.
            let is_checked = CHECKED.contains(&keyword) || (keyword == "pattern" && format.is_some());
            if !is_checked {
                found.push(format!("{place}: `{keyword}`"));
            }
        }
        if let Some(format) = format.filter(|name| schema["type"] == "string" && self.kind.format(name).is_none()) {
            found.push(format!("{place}: the format `{format}`"));
        }
        for list in ["oneOf", "anyOf"] {
            for part in schema[list].as_array().into_iter().flatten() {
                if Choice::of(part).is_none() && Kinds::of(schema).is_none() && part["properties"].is_null() {
                    found.push(format!("{place}: `{list}` of {part}"));
                }
            }
        }
        for (name, child) in children(schema) {
            self.collect_unchecked(child, &format!("{place}/{name}"), found);
        }
    }

    pub(crate) const fn kind(&self) -> &Kind {
        &self.kind
    }

    pub(crate) const fn root(&self) -> &Json {
        &self.walked
    }

    /// The schema behind a `$ref`, or the schema itself.
    pub(crate) fn resolved<'a>(&'a self, schema: &'a Json) -> &'a Json {
        let target = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
        target.and_then(|pointer| self.walked.pointer(pointer)).unwrap_or(schema)
    }

    /// Whether a list holds tables, which TOML writes as sections.
    pub(crate) fn is_list_of_tables(&self, list: &Json) -> bool {
        let items = self.resolved(&list["items"]);
        items["type"] == "object" && items["properties"].is_object() || Kinds::of(items).is_some()
    }
}

/// The schemas inside a schema.
fn children(schema: &Json) -> Vec<(String, &Json)> {
    let mut found = Vec::new();
    for name in ["$defs", "properties"] {
        found.extend(schema[name].as_object().into_iter().flatten().map(|(name, child)| (name.clone(), child)));
    }
    for name in ["oneOf", "anyOf", "prefixItems"] {
        let parts = schema[name].as_array().into_iter().flatten().enumerate();
        found.extend(parts.map(|(index, child)| (format!("{name}/{index}"), child)));
    }
    let single = ["items", "additionalProperties", "propertyNames"].into_iter();
    found.extend(single.filter_map(|name| Some((name.to_owned(), schema.get(name)?))));
    found
}

/// Puts the members of a referenced table into a table that has members of its own: serde's way to write a variant of
/// an enum whose kind is told by a key.
fn merge_references(schema: &mut Json, definitions: &Json) {
    if let Some(children) = schema.as_array_mut() {
        for child in children {
            merge_references(child, definitions);
        }
    }
    let Some(object) = schema.as_object_mut() else { return };
    let target = object.get("$ref").and_then(Json::as_str).and_then(|name| name.strip_prefix("#/$defs/"));
    if let Some(target) = target.map(|name| definitions[name].clone())
        && object.get("properties").is_some_and(Json::is_object)
    {
        object.shift_remove("$ref");
        for (name, child) in target["properties"].as_object().into_iter().flatten() {
            object["properties"][name] = child.clone();
        }
        let required = target["required"].as_array().into_iter().flatten().cloned();
        if let Some(Json::Array(names)) = object.get_mut("required") {
            names.extend(required);
        }
    }
    for (_, child) in object.iter_mut() {
        merge_references(child, definitions);
    }
}

/// A comment's line ends are no line ends of its text.
fn join_lines(schema: &mut Json) {
    if let Some(children) = schema.as_array_mut() {
        children.iter_mut().for_each(join_lines);
    }
    let Some(object) = schema.as_object_mut() else { return };
    if let Some(Json::String(description)) = object.get_mut("description") {
        *description = description.replace('\n', " ");
    }
    for (_, child) in object.iter_mut() {
        join_lines(child);
    }
}

/// Adapts what is made for JSON to the walk, or to TOML: null is a mark or nothing; a comment's line ends are no line ends
/// of its text, and the default of a whole section is told by its keys.
fn tidy(schema: &mut Json, marks_null: bool) {
    if let Some(children) = schema.as_array_mut() {
        for child in children {
            tidy(child, marks_null);
        }
    }
    let Some(object) = schema.as_object_mut() else { return };
    if let Some(Json::String(description)) = object.get_mut("description") {
        *description = description.replace('\n', " ");
    }
    if object.get("default").is_some_and(Json::is_object) {
        object.remove("default");
    }
    let mut nullable = false;
    if let Some(types) = object.get("type").and_then(Json::as_array).cloned() {
        nullable = types.iter().any(|kind| kind == "null");
        let only = types.into_iter().find(|kind| kind != "null").unwrap_or(Json::Null);
        object.insert("type".to_owned(), only);
    }
    let choices = object.get("anyOf").and_then(Json::as_array).cloned();
    if let Some([choice, null]) = choices.as_deref()
        && null["type"] == "null"
    {
        nullable = true;
        object.remove("anyOf");
        for (name, value) in choice.as_object().into_iter().flatten() {
            object.entry(name.clone()).or_insert_with(|| value.clone());
        }
    }
    if nullable && marks_null {
        object.insert(NULLABLE.to_owned(), true.into());
    }
    for (name, child) in object.iter_mut() {
        match child.as_object_mut().filter(|_| ["$defs", "properties"].contains(&name.as_str())) {
            // Its names are keys of the document and no keywords.
            Some(named) => named.iter_mut().for_each(|(_, child)| tidy(child, marks_null)),
            None => tidy(child, marks_null),
        }
    }
}

/// A value that may be one of several things: words, or tables with one of several keys.
#[derive(Debug, Default)]
pub(crate) struct Choice<'s> {
    /// The words, and what each means.
    pub(crate) words: Vec<(&'s str, &'s str)>,
    /// The keys, what each means, and the schema of its value.
    pub(crate) tags: Vec<(&'s str, &'s str, &'s Json)>,
}

impl<'s> Choice<'s> {
    /// The choice that a schema offers; `None`: it offers none.
    pub(crate) fn of(schema: &'s Json) -> Option<Self> {
        let mut choice = Self::default();
        choice.collect(schema);
        (!choice.words.is_empty() || !choice.tags.is_empty()).then_some(choice)
    }

    fn collect(&mut self, schema: &'s Json) {
        let meaning = schema["description"].as_str().unwrap_or_default();
        if let Some(word) = schema["const"].as_str() {
            self.words.push((word, meaning));
        }
        let words = schema["enum"].as_array().into_iter().flatten().filter_map(Json::as_str);
        self.words.extend(words.map(|word| (word, "")));
        for part in ["oneOf", "anyOf"].into_iter().filter_map(|name| schema[name].as_array()).flatten() {
            let meaning = part["description"].as_str().unwrap_or_default();
            match part["properties"].as_object().and_then(|tags| tags.iter().next()) {
                Some((tag, value)) => self.tags.push((tag, meaning, value)),
                None => self.collect(part),
            }
        }
    }

    /// All that may be written, for a message.
    pub(crate) fn list(&self, syntax: Syntax) -> String {
        let words = self.words.iter().map(|(word, _)| format!("`\"{word}\"`"));
        let tags = self.tags.iter().map(|(tag, _, _)| syntax.tagged(tag, "..."));
        words.chain(tags).collect::<Vec<_>>().join(", ")
    }
}

/// Tables of several kinds, told apart by the word under one key.
#[derive(Debug)]
pub(crate) struct Kinds<'s> {
    /// The key.
    pub(crate) key: &'s str,
    /// The words, what each means, and the schema of the table.
    pub(crate) list: Vec<(&'s str, &'s str, &'s Json)>,
}

impl<'s> Kinds<'s> {
    /// The kinds that a schema offers; `None`: it offers none.
    pub(crate) fn of(schema: &'s Json) -> Option<Self> {
        let parts = ["oneOf", "anyOf"].into_iter().find_map(|name| schema[name].as_array())?;
        let told_by = |part: &'s Json| {
            let properties = part["properties"].as_object()?;
            properties.iter().find_map(|(name, value)| Some((name.as_str(), value["const"].as_str()?)))
        };
        let (key, _) = told_by(parts.first()?)?;
        let list = parts.iter().map(|part| {
            let (name, word) = told_by(part)?;
            (name == key).then(|| (word, part["description"].as_str().unwrap_or_default(), part))
        });
        Some(Self { key, list: list.collect::<Option<Vec<_>>>()? })
    }
}
