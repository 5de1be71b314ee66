//! `seawall sim swarm`: random worlds with random faults, and whether they are safe and live again.

use crate::clock::Stopwatch;
use crate::{Exit, console};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use seawall_sim::swarm::{Plan, Report};
use std::ops::Range;
use std::panic::catch_unwind;
use std::time::Duration;

/// Runs random worlds: who calls whom, what fails and how Seawall is set follow from a seed. While faults last nothing
/// may happen that never must, and once they are lifted requests succeed again.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    seawall sim swarm                                  # the worlds of the first 100 seeds\n  \
    seawall sim swarm --seed 645                       # one world again\n  \
    seawall sim swarm --seeds 1000..1500\n  \
    seawall sim swarm --minutes 10 --seed 20261130     # as many as ten minutes have time for, from this seed on\n\n\
    Each world is told before it runs: if the program hangs, the last line names the seed. The exit code is 1 if any\n\
    world failed.")]
pub struct Swarm {
    /// Run the world of this seed; with `--minutes`, begin with it.
    #[arg(long, value_name = "NUMBER", conflicts_with = "seeds")]
    pub seed: Option<u64>,
    /// Run the worlds of these seeds, the last one left out.
    #[arg(long, value_name = "FIRST..END", default_value = "0..100", value_parser = seeds)]
    pub seeds: Range<u64>,
    /// Run one seed after the other for this long.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "seeds")]
    pub minutes: Option<u64>,
    /// Print the report of each world as one line of JSON; what each is goes to standard error.
    #[arg(long)]
    pub json: bool,
}

/// What came of all worlds together.
#[derive(Debug, Default)]
struct Tally {
    worlds: u64,
    with_seawall: u64,
    events: u64,
    failed: Vec<u64>,
}

fn seeds(text: &str) -> Result<Range<u64>, String> {
    let range = text.split_once("..").and_then(|(first, end)| Some(first.parse().ok()?..end.parse().ok()?));
    let range = range.ok_or("write the first seed, two dots, and the seed after the last: `0..100`")?;
    if range.is_empty() {
        return Err(format!("there is no seed in it: the second number has to be larger than {}", range.start));
    }
    Ok(range)
}

pub(super) fn run(swarm: &Swarm) -> Exit {
    let watch = Stopwatch::start();
    let limit = swarm.minutes.map(|minutes| Duration::from_secs(60 * minutes));
    let seeds = match (swarm.seed, limit) {
        (seed, Some(_)) => seed.unwrap_or(0)..u64::MAX,
        (Some(seed), None) => seed..seed.saturating_add(1),
        (None, None) => swarm.seeds.clone(),
    };
    let bar = progress(limit.map_or(seeds.end - seeds.start, |limit| limit.as_secs()));
    let mut tally = Tally::default();
    for seed in seeds {
        let passed = watch.took().wall;
        if tally.worlds > 0 && limit.is_some_and(|limit| passed >= limit) {
            break;
        }
        bar.set_position(limit.map_or(tally.worlds, |_| passed.as_secs()));
        bar.set_message(format!("{} worlds, {} failed", tally.worlds, tally.failed.len()));
        bar.suspend(|| tally.take(&one(seed, swarm.json)));
    }
    bar.finish_and_clear();
    if !swarm.json {
        console::result(&tally.render());
    }
    if tally.failed.is_empty() { Exit::Done } else { Exit::Failed }
}

/// Tells a world, runs it, tells what came of it.
fn one(seed: u64, json: bool) -> Report {
    let plan = Plan::new(seed);
    if json {
        console::message(&plan.to_string());
    } else {
        console::result(&format!("{plan}\n"));
    }
    let report = catch_unwind(|| plan.run()).unwrap_or_else(|_| plan.panicked());
    if json {
        let line = serde_json::to_string(&report).expect("plain data has a JSON form");
        console::result(&(line + "\n"));
    } else {
        console::result(&verdict(&report));
    }
    report
}

fn verdict(report: &Report) -> String {
    if report.failures.is_empty() {
        return format!("  lives: {} events, trace {}\n", report.events, report.trace_hash);
    }
    report.failures.iter().map(|failure| ["  FAILED: ", failure, "\n"].concat()).collect()
}

impl Tally {
    fn take(&mut self, report: &Report) {
        self.worlds += 1;
        self.with_seawall += u64::from(report.with_seawall);
        self.events += report.events;
        if !report.failures.is_empty() {
            self.failed.push(report.seed);
        }
    }

    fn render(&self) -> String {
        let Self { worlds, with_seawall, events, failed } = self;
        let mut text = format!("{worlds} worlds, {with_seawall} of them with Seawall, {events} events: ");
        if failed.is_empty() {
            text.push_str("all live\n");
            return text;
        }
        let seeds: Vec<String> = failed.iter().map(u64::to_string).collect();
        text + &format!("{} failed: seed {}\n", failed.len(), seeds.join(", "))
    }
}

/// A line on standard error; nothing at all where that is no terminal.
fn progress(length: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:24} {elapsed} so far, {eta} to go  {msg}");
    ProgressBar::new(length).with_style(style.expect("the template is valid"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(seed: u64, failures: &[&str]) -> Report {
        let failures = failures.iter().map(|failure| (*failure).to_owned()).collect();
        Report { failures, events: 7, trace_hash: "ab".to_owned(), ..Plan::new(seed).panicked() }
    }

    #[test]
    fn a_range_of_seeds_is_read_and_an_empty_one_refused() {
        assert_eq!(seeds("3..5"), Ok(3..5));
        assert!(seeds("5..3").unwrap_err().contains("larger than 5"));
        for wrong in ["", "3", "3..", "..5", "3...5", "a..b", "-1..2"] {
            assert!(seeds(wrong).unwrap_err().contains("`0..100`"), "{wrong}");
        }
    }

    #[test]
    fn what_failed_is_told_with_its_seed() {
        let mut tally = Tally::default();
        for report in [report(1, &[]), report(2, &["one", "other"]), report(3, &["one"])] {
            tally.take(&report);
        }
        assert!(tally.render().ends_with(", 21 events: 2 failed: seed 2, 3\n"), "{}", tally.render());
        assert_eq!(verdict(&report(2, &["one", "other"])), "  FAILED: one\n  FAILED: other\n");
        assert_eq!(verdict(&report(1, &[])), "  lives: 7 events, trace ab\n");
    }
}
