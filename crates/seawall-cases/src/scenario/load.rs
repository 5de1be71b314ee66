//! From a scenario file to a scenario, or to everything that is wrong with it.

use super::{Clock, Scenario, Span, check};
use seawall_document::formats::{Format, FormatError};
use seawall_document::{Errors, Kind, Places, Schema, Syntax, Value};
use std::sync::OnceLock;

/// The formats of a scenario's texts.
pub(crate) const FORMATS: &[Format] = &[
    Format { name: "clock", shown: "time of day", example: "12:17", test: clock },
    Format { name: "span", shown: "length of time", example: "30s", test: span },
];

fn clock(text: &str) -> Result<(), FormatError> {
    let error =
        || FormatError::new("is not a time of day", "write it as in `12:17`, `09:38:30` or, past midnight, `25:00`");
    Clock::parse(text).map(drop).ok_or_else(error)
}

fn span(text: &str) -> Result<(), FormatError> {
    let error = || {
        let remedy = "write a whole number and a unit, for example `250ms`, `30s`, `2m` or `1h`";
        FormatError::new("is not a length of time of at most two days", remedy)
    };
    Span::parse(text).map(drop).ok_or_else(error)
}

fn schema() -> &'static Schema {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        Schema::new::<Scenario>(Kind {
            name: "a scenario",
            syntax: Syntax::Toml,
            quantity: "value",
            hides_by_name: false,
            formats: &[FORMATS],
        })
    })
}

/// The JSON schema of a scenario file, for editors.
pub fn schema_json() -> String {
    schema().to_json()
}

/// The reference page of scenario files, made from the doc comments of their types.
pub fn reference_markdown() -> String {
    const HEAD: &str = "# Scenario files\n\nA scenario is data for the simulator: actors wired by name, a timeline of events, \
        figures that are read from a run,\nand checks of them. `seawall replay --scenario FILE` runs one; the files under \
        `cases/` are examples.\nTimes of day are on the post-mortem's own clock. Values that scale are multiplied by \
        `scenario.scale` and `--scale`.\n";
    let sections = [
        ("scenario file", ""),
        ("[scenario]", "Header"),
        ("[[population]]", "Population"),
        ("work", "Work"),
        ("retry", "Retry"),
        ("resubmit", "Resubmit"),
        ("[[layer]]", "Layer"),
        ("[[router]]", "Router"),
        ("feature", "Feature"),
        ("autoscaler of a router", "RouterScaling"),
        ("[[model_pool]]", "ModelPool"),
        ("[[engine]]", "Engine"),
        ("[[worker_pool]]", "WorkerPool"),
        ("autoscaler of a worker pool", "Autoscaler"),
        ("[[result_cache]]", "ResultCache"),
        ("[[lookup_cache]]", "LookupCache"),
        ("[[service]]", "Service"),
        ("health", "HealthCheck"),
        ("[[tier]]", "Tier"),
        ("[[link]]", "Link"),
        ("[[event]]", "Event"),
        ("change", "Change"),
        ("burst", "Burst"),
        ("[with_seawall]", "WithSeawall"),
        ("[[figure]]", "Figure"),
        ("sum, rate", "Aggregate"),
        ("ratio", "Move"),
        ("rolling, level", "Rolling"),
        ("wave", "Wave"),
        ("first", "First"),
        ("nth", "Nth"),
        ("autocorrelation", "Autocorrelation"),
        ("[[check]]", "Check"),
        ("[[counterfactual]]", "Counterfactual"),
        ("set", "Setting"),
        ("[plot]", "Plot"),
        ("[[calibrated]]", "Calibrated"),
    ];
    seawall_document::reference::markdown(schema(), HEAD, &sections)
}

impl Scenario {
    /// Reads the text of a scenario file, named `file` in errors: the scenario, or everything that is wrong, each with
    /// its line, its key and a remedy.
    pub fn parse(text: &str, file: &str) -> Result<Self, Errors> {
        let (scenario, mut places): (Self, Places<'_>) = seawall_document::read(text, file, schema())?;
        // A section that was not understood may be what another one names.
        let knows_all = !places.is_incomplete("") && !sections_are_incomplete(&places);
        for fault in check::faults(&scenario).into_iter().filter(|_| knows_all) {
            if !places.is_incomplete(&fault.key) {
                places.report_at(&fault.key, fault.message, fault.remedy);
            }
        }
        places.finish(scenario)
    }
}

fn sections_are_incomplete(places: &Places<'_>) -> bool {
    let Value::Table(sections) = &places.root().value else { return false };
    sections.iter().any(|section| matches!(section.node.value, Value::List(_)) && places.is_incomplete(&section.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_the_schema_asks_for_is_checked() {
        assert_eq!(schema().unchecked(), Vec::<String>::new());
    }
}
