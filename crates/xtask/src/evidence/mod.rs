//! Long measurements, recorded under `docs/benchmarks/` with date, commit and conditions.
//!
//! They are no tests: they take minutes and depend on the machine. A claim in the README points to one of these
//! records. To add one, write a file here and add a line to [`MEASUREMENTS`].

mod ablation;
mod build;
mod cost;
mod discovery;
mod failover;
mod live_storms;
mod map;
mod processes;
mod profile;
mod record;
mod replays;
mod simulator;
mod storms;
mod swarm;

pub use record::{Conditions, Record, write};

use crate::repository::Repository;
use crate::{Failure, report};
use clap::Args;

/// A measurement that can be run by name.
#[derive(Clone, Copy, Debug)]
pub struct Measurement {
    /// Its name, and that of its record.
    pub name: &'static str,
    /// What it tells, in one line.
    pub summary: &'static str,
    /// Measures; takes minutes.
    pub run: Run,
}

/// How a measurement is run.
#[derive(Clone, Copy, Debug)]
pub enum Run {
    /// For as long as it takes.
    Whole(fn(&Repository) -> Result<Record, Failure>),
    /// For so many minutes: there is no end to what it could measure.
    ForMinutes(fn(&Repository, u64) -> Result<Record, Failure>),
    /// In parts, of which some can be chosen.
    Chosen(fn(&Repository, &Choice) -> Result<Record, Failure>),
}

/// What a measurement can be told.
#[derive(Clone, Debug, Args)]
pub struct Choice {
    /// How long a measurement runs that could go on without end (the swarm)
    #[arg(long, default_value_t = DEFAULT_MINUTES, value_parser = clap::value_parser!(u64).range(1..))]
    pub minutes: u64,
    /// Live storms: run only these balancers, with commas between them; the page has all rows that there are
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Live storms: run again what was run already
    #[arg(long)]
    pub again: bool,
    /// Live storms: requests of each run
    #[arg(long, default_value_t = DEFAULT_REQUESTS, value_name = "NUMBER")]
    pub requests: u64,
    /// Live storms: runs at the same time
    #[arg(long, default_value_t = 1, value_name = "NUMBER", value_parser = one_to_eight)]
    pub side_by_side: usize,
}

/// Eight runs at a time want more cores than most machines have.
fn one_to_eight(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|number| (1..=8).contains(number)).ok_or_else(|| "write a number from 1 to 8".to_owned())
}

/// The minutes of [`Run::ForMinutes`] where none are told.
pub const DEFAULT_MINUTES: u64 = 10;
/// The requests of a live storm where none are told.
pub const DEFAULT_REQUESTS: u64 = 3000;

/// Every measurement.
pub const MEASUREMENTS: &[Measurement] = &[
    build::MEASUREMENT,
    cost::MEASUREMENT,
    ablation::MEASUREMENT,
    discovery::MEASUREMENT,
    failover::MEASUREMENT,
    live_storms::MEASUREMENT,
    map::MEASUREMENT,
    replays::MEASUREMENT,
    simulator::MEASUREMENT,
    storms::MEASUREMENT,
    swarm::MEASUREMENT,
];

/// Runs the named measurements one after the other and writes their records; `list` names them all. A choice reaches
/// only those that take one.
pub fn run(repository: &Repository, names: &[String], choice: &Choice) -> Result<(), Failure> {
    if names == ["list"] {
        for measurement in MEASUREMENTS {
            report::say(&format!("{:<16} {}", measurement.name, measurement.summary));
        }
        return Ok(());
    }
    let chosen: Vec<&Measurement> = names.iter().map(|name| by_name(name)).collect::<Result<_, _>>()?;
    for measurement in chosen {
        report::say(&format!("measuring {}: {}", measurement.name, measurement.summary));
        let record = match measurement.run {
            Run::Whole(run) => run(repository)?,
            Run::ForMinutes(run) => run(repository, choice.minutes)?,
            Run::Chosen(run) => run(repository, choice)?,
        };
        let file = write(repository, measurement.name, &record, &Conditions::now(repository)?)?;
        report::say(&format!("wrote {file}"));
    }
    Ok(())
}

fn by_name(name: &str) -> Result<&'static Measurement, Failure> {
    MEASUREMENTS.iter().find(|measurement| measurement.name == name).ok_or_else(|| {
        let known: Vec<&str> = MEASUREMENTS.iter().map(|measurement| measurement.name).collect();
        Failure::Usage(format!("there is no measurement `{name}`; there are: {}", known.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn an_unknown_name_is_refused_before_anything_runs() {
        let choice = Choice { minutes: 1, only: Vec::new(), again: false, requests: 1, side_by_side: 1 };
        let failure = run(&Repository::at("nowhere"), &["no-such".to_owned()], &choice);
        let failure = failure.expect_err("there is no such measurement");
        assert!(failure.to_string().contains("there are: build"), "{failure}");
    }

    #[test]
    fn names_are_unique_and_can_be_file_names() {
        let names: BTreeSet<&str> = MEASUREMENTS.iter().map(|measurement| measurement.name).collect();
        assert_eq!(names.len(), MEASUREMENTS.len());
        let plain = |name: &&str| name.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-');
        assert!(names.iter().all(plain) && !names.contains("list"));
    }
}
