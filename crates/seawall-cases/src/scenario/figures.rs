//! What is read from a run, and what it has to be.

use super::events::Change;
use super::units::{Clock, Span};
use schemars::JsonSchema;
use serde::Deserialize;

/// A number that is read from a run. Times are minutes since midnight.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Its name.
    pub name: String,
    /// What it is, in a few words.
    #[serde(default)]
    pub about: String,
    /// How it is read.
    pub measure: Measure,
    /// Whether it is a time of day.
    #[serde(default)]
    pub is_time: bool,
}

/// How a figure is read. Series are named `actor.metric`, or `actor.metric.part`; `seawall replay CASE --series` lists
/// them. Several series are added up.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// The sum over a time.
    Sum(Aggregate),
    /// The mean per second over a time.
    Rate(Aggregate),
    /// One sum divided by another.
    Ratio(Move),
    /// The extreme of a sum, or of a ratio of sums, over a moving window.
    Rolling(Rolling),
    /// The extreme of a level (instances, slots) over a time.
    Level(Rolling),
    /// A wave: a time in which a ratio over a moving window stays above a bound.
    Wave(Wave),
    /// When a ratio over a moving window first passes a bound and stays there.
    First(First),
    /// When the so-manieth count happened.
    Nth(Nth),
    /// How much counts per second resemble those of a fixed time before.
    Autocorrelation(Autocorrelation),
    /// The largest value that a mark of the run reached.
    Mark(String),
    /// The first of two figures less the second.
    Difference([String; 2]),
    /// The first of two figures divided by the second.
    Quotient([String; 2]),
    /// The least of several figures.
    Least(Vec<String>),
    /// The greatest of several figures.
    Greatest(Vec<String>),
}

/// From when until when; without one, the beginning or the end of the run.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Window {
    /// From when.
    pub from: Option<Clock>,
    /// Until when.
    pub until: Option<Clock>,
}

/// A sum over a time.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Aggregate {
    /// The series.
    pub of: Vec<String>,
    /// From when.
    pub from: Option<Clock>,
    /// Until when.
    pub until: Option<Clock>,
}

/// One sum divided by another.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Move {
    /// The series above the line.
    pub of: Vec<String>,
    /// The series below the line.
    pub to: Vec<String>,
    /// From when.
    pub from: Option<Clock>,
    /// Until when.
    pub until: Option<Clock>,
    /// The window of the sum below the line, where it is another one.
    pub to_window: Option<Window>,
}

/// The extreme over a moving window.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rolling {
    /// The series, or those above the line.
    pub of: Vec<String>,
    /// The series below the line; without them it is a rate per second (of a level: the level itself).
    #[serde(default)]
    pub to: Vec<String>,
    /// The window; it ends at the time that it is told for.
    #[serde(default = "minute")]
    pub window: Span,
    /// Which extreme.
    pub pick: Pick,
    /// From when.
    pub from: Option<Clock>,
    /// Until when.
    pub until: Option<Clock>,
}

const fn minute() -> Span {
    Span::from_secs(60)
}

/// Which value of many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pick {
    /// The greatest.
    Greatest,
    /// The least.
    Least,
    /// The mean.
    Mean,
    /// The largest distance from the mean, as a part of the mean.
    Spread,
    /// The time of the greatest.
    WhenGreatest,
}

/// A wave.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Wave {
    /// The series above the line.
    pub of: Vec<String>,
    /// The series below the line.
    pub to: Vec<String>,
    /// The window, centred.
    pub window: Span,
    /// The ratio that is passed in a wave.
    pub above: f64,
    /// Two waves with less than this between them are one.
    #[serde(default)]
    pub joins: Span,
    /// A shorter one is none.
    #[serde(default)]
    pub least: Span,
    /// Which one, from 1; without it, the figure is told for all of them together.
    pub number: Option<u32>,
    /// What is told of it.
    pub part: WavePart,
    /// From when.
    pub from: Option<Clock>,
    /// Until when.
    pub until: Option<Clock>,
}

/// What is told of a wave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WavePart {
    /// How many there are.
    Count,
    /// When it begins.
    Begin,
    /// When it ends; of a wave that goes on at the end of the run, none.
    End,
    /// How many minutes it lasts.
    Minutes,
    /// The sum of the series above the line.
    Sum,
    /// The sum of the series above the line per second.
    Rate,
    /// The ratio over the whole wave.
    Ratio,
}

/// When a ratio first passes a bound.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct First {
    /// The series above the line.
    pub of: Vec<String>,
    /// The series below the line; without them it is a rate per second, of a level the level itself.
    #[serde(default)]
    pub to: Vec<String>,
    /// The window; it ends at the time that it is told for.
    pub window: Span,
    /// The bound, where it has to be above.
    pub above: Option<f64>,
    /// The bound, where it has to be below.
    pub below: Option<f64>,
    /// How long it has to stay there; the figure is the beginning of that time.
    #[serde(default)]
    pub holds: Span,
    /// Whether the figure is the end of that time, as for an alarm.
    #[serde(default)]
    pub at_end: bool,
    /// From when.
    pub from: Option<Clock>,
    /// Until when.
    pub until: Option<Clock>,
}

/// When the so-manieth count happened.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nth {
    /// The series.
    pub of: Vec<String>,
    /// Which count, from 1. Scales.
    pub number: u32,
    /// From when.
    pub from: Option<Clock>,
}

/// How much counts per second resemble those of a fixed time before.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Autocorrelation {
    /// The series.
    pub of: Vec<String>,
    /// How long before.
    pub lag: Span,
    /// From when.
    pub from: Option<Clock>,
    /// Until when.
    pub until: Option<Clock>,
}

/// Which run a check is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Run {
    /// The incident as it happened.
    #[default]
    AsItHappened,
    /// The same with Seawall's engine looking on.
    Observed,
    /// With Seawall in the place of the naive routers.
    WithSeawall,
    /// With something changed; the check names it.
    Counterfactual,
}

/// Where a fact comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Tag {
    /// It was published.
    Published,
    /// It follows from what was published by arithmetic.
    Derived,
    /// We assume it.
    Assumed,
}

/// What a figure has to be.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Its name.
    pub name: String,
    /// Which run it is about.
    #[serde(default)]
    pub run: Run,
    /// The counterfactual, where it is about one.
    pub counterfactual: Option<String>,
    /// Where the fact comes from.
    pub tag: Tag,
    /// What was published, or the reason, in our own words.
    pub published: String,
    /// The figure; without one it is about something that is not measured yet, and fails as absent.
    pub figure: Option<String>,
    /// Its least value.
    pub low: Option<f64>,
    /// Its greatest value.
    pub high: Option<f64>,
    /// Its least value, of a time.
    pub earliest: Option<Clock>,
    /// Its greatest value, of a time.
    pub latest: Option<Clock>,
    /// Whether there must be no such figure: nothing of that kind happened.
    #[serde(default)]
    pub none: bool,
    /// Of a counterfactual: every series is the same as in the run as it happened until this time.
    pub same_until: Option<Clock>,
    /// Of a counterfactual: the figure is compared with the same figure of the run as it happened; `low` and `high`
    /// bound the difference.
    #[serde(default)]
    pub against_as_it_happened: bool,
    /// How the figure is told over several seeds.
    #[serde(default)]
    pub over_seeds: OverSeeds,
    /// The protection that has to exist for it.
    pub needs: Option<String>,
    /// Whether it belongs to what the incident is: it also has to hold when a calibrated value is a tenth more or less,
    /// and it must not hold any more when the cause is removed.
    #[serde(default)]
    pub keeps_incident: bool,
}

/// How a check looks at several seeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OverSeeds {
    /// It has to hold for each seed.
    #[default]
    Each,
    /// It has to hold for the median of at least five seeds, and is told only then.
    Median,
}

/// A run with something changed.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Counterfactual {
    /// Its name.
    pub name: String,
    /// What it shows.
    pub about: String,
    /// What the post-mortem says about what is changed.
    pub role: Option<Role>,
    /// Of what was irrelevant: figures that it moves all the same; the case has to say how much, and why that is so.
    #[serde(default)]
    pub moves: Vec<String>,
    /// Events that do not happen.
    #[serde(default)]
    pub without: Vec<String>,
    /// Settings that are another one from the start.
    #[serde(default)]
    pub set: Vec<Setting>,
    /// When this run ends, where it need not go to the end.
    pub end: Option<Clock>,
}

/// What a post-mortem says about an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// It is the cause: without it there is no incident.
    Cause,
    /// It had nothing to do with it: without it every figure stays within what differs from seed to seed.
    Irrelevant,
}

/// One setting of one actor.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// The actor.
    pub actor: String,
    /// The key, for example `duplicates` or `health.depends_on`.
    pub key: String,
    /// The text that it has instead.
    pub text: Option<String>,
    /// The number that it has instead.
    pub number: Option<f64>,
    /// Whether it is on instead.
    pub flag: Option<bool>,
    /// Whether the key is left out.
    #[serde(default)]
    pub remove: bool,
    /// The curve that it has instead.
    pub curve: Option<Vec<super::RampPoint>>,
    /// The change that it has instead: the actor is then the name of an event, and the key `change`.
    pub change: Option<Change>,
}
