//! What of a replay is drawn, and into which file.

use super::report::Replayed;
use crate::figures::number;
use crate::plot::{Mark, Plot, RunPlot, svg};
use seawall_cases::scenario::Scenario;
use seawall_sim::replay::{Outcome, SeedRuns};
use std::fs;
use std::path::{Path, PathBuf};

/// Refuses what could not be drawn before anything is run.
pub(super) fn check(scenario: &Scenario, slug: &str) -> Result<(), String> {
    let has_plot = scenario.plot.is_some();
    has_plot.then_some(()).ok_or_else(|| {
        format!("error: {slug}: there is nothing to draw; name the series in a `[plot]` section of the scenario")
    })
}

/// Writes the picture of one case, or of several into a folder, each under its case's name.
pub(super) fn write(all: &[Replayed<'_>], into: &Path, is_folder: bool) -> Result<(), String> {
    let failed = |path: &Path, error: &std::io::Error| format!("error: cannot write {}: {error}", path.display());
    if is_folder {
        fs::create_dir_all(into).map_err(|error| failed(into, &error))?;
    }
    for replayed in all {
        let Some(runs) = replayed.seeds.first() else { continue };
        let scenario = &replayed.study.case.scenario;
        let file: PathBuf = if is_folder { into.join(format!("{}.svg", runs.case)) } else { into.to_owned() };
        fs::write(
            &file,
            svg(&plot(scenario, runs, "Drawn by `seawall replay --svg`: every figure comes out of the simulation.")),
        )
        .map_err(|error| failed(&file, &error))?;
    }
    Ok(())
}

fn plot<'a>(scenario: &'a Scenario, runs: &'a SeedRuns, foot: &str) -> Plot<'a> {
    let (start, end) = (scenario.scenario.start.minutes(), scenario.scenario.end.minutes());
    Plot {
        title: &scenario.scenario.title,
        about: format!("{}, simulated with seed {}. Times are those of the post-mortem.", runs.case, runs.seed),
        foot: foot.to_owned(),
        start,
        end,
        marks: marks(scenario),
        capacity_is: scenario.plot.as_ref().map_or("", |plot| &plot.capacity_is),
        runs: vec![
            run("As it happened", &runs.as_it_happened),
            observed(runs),
            run("With Seawall", &runs.with_seawall),
        ],
    }
}

/// The events, those of one minute together.
fn marks(scenario: &Scenario) -> Vec<Mark> {
    let mut marks: Vec<Mark> = Vec::new();
    let mut events: Vec<_> = scenario.event.iter().collect();
    events.sort_by_key(|event| event.at);
    for event in events {
        let minute = event.at.minutes();
        match marks.last_mut() {
            Some(last) if minute - last.minute < 1.0 => last.names.push(event.name.clone()),
            _ => marks.push(Mark { minute, names: vec![event.name.clone()] }),
        }
    }
    marks
}

fn run<'a>(title: &'a str, outcome: &'a Outcome) -> RunPlot<'a> {
    if outcome.absent.is_empty() {
        return RunPlot { title, facts: facts(outcome), series: Some(&outcome.series) };
    }
    let facts = format!("not there yet: it needs {}", outcome.absent.join(", "));
    RunPlot { title, facts, series: None }
}

/// Whoever only looks on changes nothing, and twice the same curves are of no use.
fn observed(runs: &SeedRuns) -> RunPlot<'_> {
    let title = "Observed by Seawall";
    if runs.observed.absent.is_empty() && runs.observed.series == runs.as_it_happened.series {
        let facts = "it looks on and acts on nothing: every minute is as above".to_owned();
        return RunPlot { title, facts, series: None };
    }
    run(title, &runs.observed)
}

/// Totals over the whole run.
fn facts(outcome: &Outcome) -> String {
    let total = |name: &str| -> Option<f64> {
        let values = outcome.series.get(name)?;
        Some(values.iter().map(|(_, value)| value).sum())
    };
    let (goodput, failed) = (total("goodput"), total("failed"));
    let per_request = total("attempts").zip(total("demand")).filter(|(_, demand)| *demand > 0.0);
    let attempts =
        per_request.map(|(attempts, demand)| format!("{} attempts for each request", number(attempts / demand)));
    let ended = failed.zip(goodput).filter(|(failed, goodput)| failed + goodput > 0.0);
    let failures = ended
        .map(|(failed, goodput)| format!("{} % of what ended had failed", number(100.0 * failed / (failed + goodput))));
    attempts.into_iter().chain(failures).collect::<Vec<_>>().join(", ")
}
