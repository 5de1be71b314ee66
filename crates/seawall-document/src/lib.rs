//! Turns the text of a document into a value, or into all of its errors at once, each with file, line, column, key and
//! what to do about it.
//!
//! The way of a text: a [parser](mod@syntax) that makes a tree in which every value knows its place → [the
//! walk](mod@walk), which compares the tree with the [`Schema`] of a type and leaves out what is wrong → that type → the
//! checks of the crate whose document it is, which report to the same [`Places`] → a value, or [`Errors`].
//!
//! Nothing in here knows what a document is about: the schema comes from the types of another crate, and so do the
//! [formats](formats::Format) of its texts. It does no I/O.
//!
//! ```
//! use seawall_document::{Kind, Schema, Syntax, formats};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Race {
//!     laps: u32,
//!     limit: formats::DurationText,
//! }
//!
//! let kind = Kind {
//!     name: "a race file",
//!     syntax: Syntax::Toml,
//!     quantity: "size",
//!     hides_by_name: false,
//!     formats: &[formats::COMMON],
//! };
//! let schema = Schema::new::<Race>(kind);
//! let (race, mut places) = seawall_document::read::<Race>("laps = 5\nlimit = \"2h\"", "race.toml", &schema)?;
//! if race.laps > 3 {
//!     places.report_at("laps", "more laps than there is light for", "write at most 3");
//! }
//! let errors = places.finish(race).err().expect("one mistake");
//! assert_eq!(errors.position(&errors.problems()[0]), Some((1, 8)));
//! # Ok::<(), seawall_document::Errors>(())
//! ```

mod errors;
pub mod formats;
mod node;
mod redact;
pub mod reference;
mod report;
mod schema;
mod syntax;
mod walk;
mod words;

pub use errors::{Errors, Problem, Shown, shown};
pub use node::{Entry, Node, Value};
pub use redact::looks_secret;
pub use report::Report;
pub use schema::{Kind, Schema};
pub use syntax::Syntax;
pub use words::{nearest, quoted_list};

use serde::de::DeserializeOwned;

/// The document behind a value: the place of each key, and what is wrong so far.
///
/// The value was read from what is right; where something is wrong already it is for further checks only.
/// [`finish`](Self::finish) gives it out if nothing is wrong, or everything that is.
#[derive(Debug)]
#[must_use = "what is wrong is told by `finish`"]
pub struct Places<'a> {
    file: &'a str,
    text: &'a str,
    hides_by_name: bool,
    root: Node,
    report: Report,
}

/// Reads `text`, named `file` in errors, into a `T`.
///
/// The schema must be that of `T`. Where something is wrong, the part around it is left out: a `T` whose keys are
/// optional or have defaults is read all the same, so that further checks can report at once what they find in the
/// rest. Where no `T` can be read, what is wrong so far comes back as the error.
pub fn read<'a, T: DeserializeOwned>(text: &'a str, file: &'a str, schema: &Schema) -> Result<(T, Places<'a>), Errors> {
    let kind = schema.kind();
    let mut report = Report::default();
    let fitting = kind.syntax.parse(text, &mut report).map(|parsed| walk::fitting(parsed, schema, &mut report));
    let has_root = fitting.is_some();
    let root = fitting.unwrap_or_else(|| Node::new(0..0, String::new(), "", Value::Table(Vec::new())));
    let mut places = Places { file, text, hides_by_name: kind.hides_by_name, root, report };
    if has_root && let Ok(value) = serde_json::from_value(places.root.to_json()) {
        return Ok((value, places));
    }
    if places.report.is_empty() {
        // The deserialiser's own message may repeat a value; where the walk let one pass, this is our mistake.
        let message = "the file fits the schema and still cannot be read: this is a mistake of Seawall";
        places.report.push("", None, message, "report it with the file, secrets removed");
    }
    Err(places.errors())
}

impl Places<'_> {
    /// The part of the document that fits the schema: what the value was read from.
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// The tree and the report, for checks that walk the one and write to the other.
    pub fn parts(&mut self) -> (&Node, &mut Report) {
        (&self.root, &mut self.report)
    }

    /// Reports a mistake at a path of the value, such as `event[3].at` or `/event/3/at`, or at the last part of it that
    /// the document has. An index counts the items of the value.
    pub fn report_at(&mut self, path: &str, message: impl Into<String>, remedy: impl Into<String>) {
        self.report.at(self.root.find(path), message, remedy);
    }

    /// Whether a part of what is at a path, or of the last part of the path that the document has, was left out because
    /// it was wrong: what is missing there is no second mistake.
    pub fn is_incomplete(&self, path: &str) -> bool {
        self.report.is_incomplete(self.root.find(path))
    }

    /// Whether anything is wrong so far.
    pub fn has_problems(&self) -> bool {
        !self.report.is_empty()
    }

    /// `value` if nothing is wrong, or everything that is.
    pub fn finish<T>(self, value: T) -> Result<T, Errors> {
        if self.report.is_empty() { Ok(value) } else { Err(self.errors()) }
    }

    fn errors(self) -> Errors {
        Errors::new(self.file, self.text, (&self.report.secrets, self.hides_by_name), self.report.problems)
    }
}
