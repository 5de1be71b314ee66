//! The record of an incident: what was published about it, in a form that can be searched and compared.
//!
//! A record is a JSON file. Its keys and words are those of a public library of incidents, so that records can be
//! exchanged with it; words that our cases need are added in [`vocabulary`].

mod check;
mod formats;
pub mod vocabulary;

pub use formats::{Date, Day, Elapsed};

use schemars::JsonSchema;
use seawall_document::{Errors, Kind, Places, Schema, Syntax, reference};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::OnceLock;
use vocabulary::{Component, Contributing, DateKind, Domain, RootCause, Severity, SourceKind, Symptom};

/// The record of one incident.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Record of an incident")]
pub struct Record {
    /// Its id: two letters for the library, four digits for the case.
    #[schemars(extend("format" = "case-id"))]
    pub id: String,
    /// One sentence: what happened to whom, and through what.
    pub title: Text,
    /// Who runs the service.
    #[schemars(extend("format" = "prose"))]
    pub org: String,
    /// The same as a part of an address.
    #[schemars(extend("format" = "slug"))]
    pub org_slug: String,
    /// What it is about.
    #[schemars(length(min = 1), extend("uniqueItems" = true))]
    pub domain: Vec<Domain>,
    /// The day, in UTC.
    pub date: Date,
    /// What the date is the date of.
    pub date_kind: DateKind,
    /// How far users were affected.
    pub severity: Severity,
    /// Who was affected, by what.
    pub impact: Impact,
    /// How long it took.
    pub timeline: Timeline,
    /// What users and operators saw, in words of the list.
    #[schemars(length(min = 1), extend("uniqueItems" = true))]
    pub symptoms: Vec<Symptom>,
    /// What users and operators saw, and when.
    pub symptoms_text: Text,
    /// What set it off.
    pub trigger: Text,
    /// What set it off, in a word of the list.
    pub root_cause: RootCause,
    /// What made it larger, longer or harder to see, in words of the list.
    #[schemars(extend("uniqueItems" = true))]
    pub contributing: Vec<Contributing>,
    /// The parts that took part, in words of the list.
    #[schemars(length(min = 1), extend("uniqueItems" = true))]
    pub components: Vec<Component>,
    /// How it came about, step by step.
    pub summary: Text,
    /// Who or what noticed it, and when.
    pub detection: Text,
    /// What ended it, in the order in which it was done.
    pub remediation: Vec<Item>,
    /// What was decided so that it does not come again.
    pub action_items: Vec<Item>,
    /// What others can learn from it.
    pub lessons: Text,
    /// Where it was published.
    #[schemars(length(min = 1))]
    pub sources: Vec<Source>,
    /// Guidance that the publication points to.
    #[schemars(extend("uniqueItems" = true, "items" = { "type": "string", "format": "web-address" }))]
    pub docs: Vec<String>,
    /// Ids of cases that are like it.
    #[schemars(extend("uniqueItems" = true, "items" = { "type": "string", "format": "case-id" }))]
    pub related: Vec<String>,
    /// The id of the case that came again; null: it is the first of its kind that is known.
    #[schemars(extend("format" = "case-id"))]
    pub recurrence_of: Option<String>,
    /// Who wrote and who reviewed the record.
    pub review: Review,
    /// When the record was last changed, in UTC.
    #[schemars(extend("format" = "date-time"))]
    pub updated_at: String,
    /// Where the record can be read; null: nowhere but in its file.
    #[schemars(extend("format" = "web-address"))]
    pub url: Option<String>,
}

/// A text in one or more languages, by their codes. English is always there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend(
    "propertyNames" = { "type": "string", "format": "language" },
    "additionalProperties" = { "type": "string", "format": "prose" }
))]
pub struct Text {
    /// In English.
    #[schemars(extend("format" = "prose"))]
    pub en: String,
    /// In other languages.
    #[serde(flatten)]
    pub others: BTreeMap<String, String>,
}

/// Who was affected, by what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Impact {
    /// Which requests of which service, and how.
    #[schemars(extend("format" = "prose"))]
    pub scope: String,
    /// How many users; `unknown` where it was not published.
    #[schemars(extend("format" = "prose"))]
    pub users: String,
    /// Where.
    #[schemars(extend("format" = "prose"))]
    pub region: String,
}

/// How long it took, from the first effect on users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Timeline {
    /// Until those who run the service knew; null: not published.
    pub detected_after: Option<Elapsed>,
    /// Until users were no longer affected; null: not published.
    pub resolved_after: Option<Elapsed>,
}

/// One thing that was done or decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Item {
    /// What.
    pub text: Text,
}

/// A publication.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Its address; null: it has none that is known to last.
    #[schemars(extend("format" = "web-address"))]
    pub url: Option<String>,
    /// What it is.
    pub kind: SourceKind,
    /// The address of a copy that stays; null: there is none.
    #[schemars(extend("format" = "web-address"))]
    pub archived: Option<String>,
}

/// Who wrote and who reviewed a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Review {
    /// Who or what wrote it; null: not told.
    #[schemars(extend("format" = "prose"))]
    pub written_by: Option<String>,
    /// When it was reviewed; null: it was not.
    #[schemars(extend("format" = "date-time"))]
    pub reviewed_at: Option<String>,
    /// Who reviewed it; null: nobody.
    #[schemars(extend("format" = "prose"))]
    pub reviewed_by: Option<String>,
}

impl Record {
    /// Reads the text of a record, named `file` in errors: the record, or everything that is wrong, each with its line,
    /// its JSON pointer and a remedy.
    pub fn parse(text: &str, file: &str) -> Result<Self, Errors> {
        let (record, mut places): (Self, Places<'_>) = seawall_document::read(text, file, schema())?;
        check::record(&record, &mut places);
        places.finish(record)
    }

    /// The text of the record's file. [`parse`](Self::parse) reads it back.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("texts and lists always serialise");
        text.push('\n');
        text
    }
}

fn schema() -> &'static Schema {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        Schema::new::<Record>(Kind {
            name: "a record",
            syntax: Syntax::Json,
            quantity: "value",
            hides_by_name: false,
            formats: &[formats::FORMATS],
        })
    })
}

/// The JSON schema of a record, for editors; a generated file of the documentation.
pub fn schema_json() -> String {
    schema().to_json()
}

const HEAD: &str = "# Record of an incident\n\n\
<!-- Generated from the types of `seawall-cases`; change their comments and run `cargo xtask generate`. -->\n\n\
`cases/<name>/case.json` holds what was published about an incident: facts, in our own words. Every key below must be \
there, but those that may be null; an unknown key or word is an error. A text is an object with one text for each \
language, English at least: `{ \"en\": \"...\" }`.\n\n\
The schema for editors is [case-record.schema.json](case-record.schema.json).\n";

/// The reference page of records, in Markdown; a generated file of the documentation.
pub fn reference_markdown() -> String {
    let sections = [
        ("record", ""),
        ("impact", "Impact"),
        ("timeline", "Timeline"),
        ("sources", "Source"),
        ("review", "Review"),
        ("remediation, action_items", "Item"),
        ("text", "Text"),
    ];
    reference::markdown(schema(), HEAD, &sections)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_the_schema_asks_for_is_checked() {
        assert_eq!(schema().unchecked(), Vec::<String>::new());
    }
}
