//! What each protection of the engine buys: the storm set with one of them switched off.

use super::cost::build_program;
use super::processes::answered;
use crate::evidence::{Measurement, Record, Run};
use crate::repository::Repository;
use crate::{Failure, report};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// The entry of the table.
pub(super) const MEASUREMENT: Measurement = Measurement {
    name: "ablation",
    summary: "goodput, attempts and recovery in simulated storms with one protection switched off at a time",
    run: Run::Whole(run),
};

/// What each protection is tried in.
const ARGUMENTS: [&str; 10] = [
    "--shape",
    "bench,impatient,1-of-5-errors,1-of-5-silent,2-of-5-cold,3-of-5-half,3-of-5-throttle,4-of-5-errors,5-of-5-half",
    "--load",
    "0.5,0.8,1.2,2",
    "--clients",
    "mixed,immediate",
    "--seeds",
    "2",
    "--without",
    "all",
];
/// What every other router is held against.
const WHOLE: &str = "seawall";
/// A change below this is noise: the same cells with other seeds differ by as much.
const GOODPUT_NOISE: f64 = 0.01;
const ATTEMPTS_NOISE: f64 = 0.05;
const RECOVERY_NOISE_SECONDS: f64 = 2.0;
/// Of the time to the answer of 99%, this part.
const P99_NOISE: f64 = 0.2;

/// One router in one cell.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    cell: String,
    router: String,
    goodput: f64,
    attempts: f64,
    recovery_seconds: f64,
    p99_seconds: f64,
}

/// What the absence of one protection does, over all cells.
#[derive(Clone, Debug, Default, PartialEq)]
struct Effect {
    /// Sums of the differences to the whole engine, over the cells.
    goodput: f64,
    cells: usize,
    /// Cells that are worse, and better, by more than noise.
    worse: usize,
    better: usize,
    /// The greatest losses: of goodput, of upstream attempts, of recovery, of the time of 99%, with their cells.
    least: (f64, String),
    most_attempts: (f64, String),
    latest: (f64, String),
    slowest: (f64, String),
}

fn run(repository: &Repository) -> Result<Record, Failure> {
    let program = build_program(repository)?;
    report::say("every protection switched off in 144 cells, 2 seeds: about ten minutes of one core");
    Ok(record(&effects(&rows(&program)?)))
}

fn rows(program: &Path) -> Result<Vec<Row>, Failure> {
    let answer = answered(Command::new(program).args(["sim", "storms", "--json"]).args(ARGUMENTS))?;
    let missing =
        || Failure::Answer { command: "seawall sim storms --json".to_owned(), reason: "a key is missing".to_owned() };
    answer["rows"].as_array().ok_or_else(missing)?.iter().map(row).collect::<Option<_>>().ok_or_else(missing)
}

fn row(value: &Value) -> Option<Row> {
    Some(Row {
        cell: value["cell"].as_str()?.to_owned(),
        router: value["router"].as_str()?.to_owned(),
        goodput: value["goodput"].as_f64()?,
        attempts: value["upstream_attempts"].as_f64()?,
        recovery_seconds: value["recovery_seconds"].as_f64()?,
        p99_seconds: value["p99_seconds"].as_f64()?,
    })
}

/// By protection, in the order of the rows.
fn effects(rows: &[Row]) -> Vec<(String, Effect)> {
    let whole: BTreeMap<&str, &Row> =
        rows.iter().filter(|row| row.router.starts_with(WHOLE)).map(|row| (row.cell.as_str(), row)).collect();
    let mut effects: Vec<(String, Effect)> = Vec::new();
    for row in rows {
        let Some(name) = row.router.strip_prefix("without ") else { continue };
        let Some(with) = whole.get(row.cell.as_str()) else { continue };
        let known = effects.iter().position(|(known, _)| known == name);
        let place = known.unwrap_or_else(|| {
            effects.push((name.to_owned(), Effect::default()));
            effects.len() - 1
        });
        effects[place].1.add(with, row);
    }
    effects
}

impl Effect {
    fn add(&mut self, with: &Row, without: &Row) {
        let goodput = without.goodput - with.goodput;
        let attempts = without.attempts - with.attempts;
        let slower = without.recovery_seconds - with.recovery_seconds;
        let later = without.p99_seconds - with.p99_seconds;
        let (gains, loses) = (P99_NOISE * with.p99_seconds, -P99_NOISE * with.p99_seconds);
        let is_worse =
            goodput < -GOODPUT_NOISE || attempts > ATTEMPTS_NOISE || slower > RECOVERY_NOISE_SECONDS || later > gains;
        let is_better =
            goodput > GOODPUT_NOISE || attempts < -ATTEMPTS_NOISE || slower < -RECOVERY_NOISE_SECONDS || later < loses;
        self.goodput += goodput;
        self.cells += 1;
        self.worse += usize::from(is_worse);
        self.better += usize::from(is_better && !is_worse);
        keep(&mut self.least, goodput, &without.cell, |new, old| new < old);
        keep(&mut self.most_attempts, attempts, &without.cell, |new, old| new > old);
        keep(&mut self.latest, later, &without.cell, |new, old| new > old);
        keep(&mut self.slowest, slower, &without.cell, |new, old| new > old);
    }

    #[expect(clippy::cast_precision_loss, reason = "cells are few")]
    fn mean(&self) -> f64 {
        self.goodput / self.cells.max(1) as f64
    }
}

/// Keeps the value that is further from nothing.
fn keep(kept: &mut (f64, String), value: f64, cell: &str, is_further: fn(f64, f64) -> bool) {
    if is_further(value, kept.0) {
        *kept = (value, cell.to_owned());
    }
}

fn record(effects: &[(String, Effect)]) -> Record {
    let mut result = String::from(
        "| without | worse | better | goodput, mean | goodput, worst cell | attempts, worst cell | back s, worst cell | p99 s, worst cell |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for (name, effect) in effects {
        let Effect { cells, worse, better, least, most_attempts, latest, slowest, .. } = effect;
        let told = |(value, cell): &(f64, String), decimals: usize| {
            if cell.is_empty() { String::new() } else { format!("{value:+.decimals$} ({cell})") }
        };
        writeln!(
            result,
            "| {name} | {worse} of {cells} | {better} | {:+.3} | {} | {} | {} | {} |",
            effect.mean(),
            told(least, 3),
            told(most_attempts, 2),
            told(slowest, 1),
            told(latest, 1)
        )
        .expect("a string takes any text");
    }
    Record {
        title: "What each protection buys".to_owned(),
        method: METHOD.replace("{ARGUMENTS}", &ARGUMENTS.join(" ")),
        result: result.trim_end().to_owned(),
        reading: reading(effects),
    }
}

fn reading(effects: &[(String, Effect)]) -> String {
    let named = |is_wanted: &dyn Fn(&Effect) -> bool| {
        let names: Vec<&str> =
            effects.iter().filter(|(_, effect)| is_wanted(effect)).map(|(name, _)| name.as_str()).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    };
    format!(
        "* Buys something: switched off, more cells are worse than better: {}.\n\
         * Costs and buys about as much, or more: {}.\n\
         * Changes nothing in these cells: {}.",
        named(&|effect| effect.worse > effect.better),
        named(&|effect| effect.worse <= effect.better && effect.worse + effect.better > 0),
        named(&|effect| effect.worse + effect.better == 0)
    )
}

const METHOD: &str = "`seawall sim storms {ARGUMENTS}`: the cells of the simulated storms, and \
    five servers of which some fail for ten seconds (at once, every second time, or without a word and then cold), \
    throttle, or clients that wait for 3 s only, with the whole engine and with \
    one protection switched off at a time, the same seeds and so the same arrivals for all. Figures are differences to \
    the whole engine: goodput as a part of the oracle's, attempts at the servers for each distinct request, seconds until \
    the goodput is back, and to the answer of 99% of the good requests. A cell is *worse* where goodput falls by more than 0.01, attempts rise by more than 0.05, the \
    return takes more than 2 s longer or the time of 99% a fifth longer, and *better* where it is the other way and nothing is worse.";

#[cfg(test)]
mod tests {
    use super::*;

    fn told(cell: &str, router: &str, goodput: f64, attempts: f64) -> Row {
        Row {
            cell: cell.to_owned(),
            router: router.to_owned(),
            goodput,
            attempts,
            recovery_seconds: 1.0,
            p99_seconds: 1.0,
        }
    }

    #[test]
    fn what_is_missing_is_held_against_the_whole_engine_in_the_same_cell() {
        let rows = [
            told("one", "seawall x", 0.9, 1.0),
            told("one", "without a", 0.5, 1.0),
            told("one", "without b", 0.9, 1.0),
            told("two", "seawall x", 0.8, 1.0),
            told("two", "without a", 0.8, 1.2),
            told("two", "without b", 0.805, 1.01),
        ];
        let effects = effects(&rows);
        let (name, a) = &effects[0];
        assert_eq!((name.as_str(), a.cells, a.worse, a.better), ("a", 2, 2, 0));
        assert!((a.mean() + 0.2).abs() < 1e-9);
        assert_eq!((a.least.1.as_str(), a.most_attempts.1.as_str(), a.slowest.1.as_str()), ("one", "two", ""));
        let record = record(&effects);
        assert!(
            record.result.contains("| a | 2 of 2 | 0 | -0.200 | -0.400 (one) | +0.20 (two) |  |  |"),
            "{}",
            record.result
        );
        assert!(record.reading.contains("than better: a.") && record.reading.ends_with("in these cells: b."));
        assert_eq!(row(&serde_json::json!({"cell": "one"})), None);
    }
}
