//! A kind of document with one of everything that a schema may ask for.

use schemars::JsonSchema;
use seawall_document::formats::{self, DurationText, Format, FormatError};
use seawall_document::{Errors, Kind, Places, Schema, Syntax, text_value};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;

/// A timetable.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Timetable {
    /// What it is called.
    #[schemars(required, extend("format" = "name"), example = &"morning")]
    pub(crate) name: Option<String>,
    /// The share of seats that are taken.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub(crate) share: f64,
    /// Faster than this is not believed.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub(crate) speed: Option<f64>,
    /// How many.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 20))]
    pub(crate) count: u32,
    /// A change, up or down.
    #[serde(default)]
    pub(crate) offset: i32,
    /// One for each day.
    #[serde(default)]
    #[schemars(length(max = 3))]
    pub(crate) weights: Vec<f64>,
    /// Points in time and the load from then on.
    #[serde(default)]
    pub(crate) curve: Vec<(TimeText, f64)>,
    /// The seats of each class.
    #[serde(default)]
    #[schemars(extend("propertyNames" = { "type": "string", "format": "name" }))]
    pub(crate) classes: BTreeMap<String, u32>,
    /// A rest, if there is one.
    pub(crate) rest: Option<Rest>,
    /// What happens.
    #[serde(default)]
    pub(crate) event: Vec<Event>,
    /// What to do when it is late.
    #[serde(default)]
    pub(crate) late: Late,
    /// A note in words of one's own.
    #[schemars(length(min = 1, max = 40))]
    pub(crate) note: Option<String>,
}

const fn one() -> u32 {
    1
}

/// A pause.
#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rest {
    /// When it begins.
    #[schemars(required)]
    pub(crate) at: Option<TimeText>,
    /// How long it is.
    #[schemars(required)]
    pub(crate) length: Option<DurationText>,
}

/// Something that happens.
#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Event {
    /// A train comes.
    Arrival {
        /// When.
        at: TimeText,
    },
    /// A line is shut.
    Closure(Closure),
}

/// Where a line is shut.
#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Closure {
    /// When.
    pub(crate) at: TimeText,
    /// Which line.
    pub(crate) line: String,
}

/// What a late train does.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub(crate) enum Late {
    /// It waits.
    #[default]
    Wait,
    /// It goes after so many minutes.
    Go(#[schemars(range(min = 1))] u32),
}

text_value!(
    /// A time of day in minutes.
    pub(crate) TimeText(u32), "time", time, Some("^[0-9]{2}:[0-9]{2}$"));

impl fmt::Display for TimeText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:02}:{:02}", self.0 / 60, self.0 % 60)
    }
}

fn time(text: &str) -> Result<u32, FormatError> {
    let error = || FormatError::new("is not a time of day", "write hours and minutes, for example `09:30`");
    let (hours, minutes) = text.split_once(':').ok_or_else(error)?;
    let number = |part: &str, most: u32| part.parse::<u32>().ok().filter(|number| *number < most && part.len() == 2);
    Ok(number(hours, 24).ok_or_else(error)? * 60 + number(minutes, 60).ok_or_else(error)?)
}

const FORMATS: &[Format] =
    &[Format { name: "time", shown: "time of day", example: "09:30", test: |text| time(text).map(drop) }];

fn kind(syntax: Syntax) -> Kind {
    Kind {
        name: "a timetable",
        syntax,
        quantity: "minutes",
        hides_by_name: false,
        formats: &[formats::COMMON, FORMATS],
    }
}

/// The schema of timetables in TOML.
pub(crate) fn toml_schema() -> &'static Schema {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    SCHEMA.get_or_init(|| Schema::new::<Timetable>(kind(Syntax::Toml)))
}

/// The schema of timetables in JSON.
pub(crate) fn json_schema() -> &'static Schema {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    SCHEMA.get_or_init(|| Schema::new::<Timetable>(kind(Syntax::Json)))
}

/// A timetable without further checks.
pub(crate) fn read(text: &str, schema: &Schema) -> Result<Timetable, Errors> {
    let (timetable, places): (Timetable, Places<'_>) = seawall_document::read(text, "file", schema)?;
    places.finish(timetable)
}

/// Line, message and remedy of each mistake of a text.
pub(crate) fn mistakes(text: &str, schema: &Schema) -> Vec<(usize, String, String)> {
    let errors = read(text, schema).expect_err(text);
    let problems = errors.problems().iter().map(|problem| {
        let line = errors.position(problem).map_or(0, |(line, _)| line);
        (line, problem.message.clone(), problem.suggestion.clone().expect("a remedy"))
    });
    problems.collect()
}

/// Checks that a text has exactly one mistake, with this line, message and remedy.
pub(crate) fn one_mistake(text: &str, schema: &Schema, line: usize, message: &str, remedy: &str) {
    assert_eq!(mistakes(text, schema), [(line, message.to_owned(), remedy.to_owned())], "{text}");
}
