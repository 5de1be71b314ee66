//! Long measurements, recorded under `docs/benchmarks/` with date, commit and conditions.
//!
//! They are no tests: they take minutes and depend on the machine. A claim in the README points to one of these
//! records. To add one, write a file here and add a line to [`MEASUREMENTS`].

mod build;
mod cost;
mod discovery;
mod failover;
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
}

/// The minutes of [`Run::ForMinutes`] where none are told.
pub const DEFAULT_MINUTES: u64 = 10;

/// Every measurement.
pub const MEASUREMENTS: &[Measurement] = &[
    build::MEASUREMENT,
    cost::MEASUREMENT,
    discovery::MEASUREMENT,
    failover::MEASUREMENT,
    map::MEASUREMENT,
    replays::MEASUREMENT,
    simulator::MEASUREMENT,
    storms::MEASUREMENT,
    swarm::MEASUREMENT,
];

/// Runs the named measurements one after the other and writes their records; `list` names them all. `minutes` reaches
/// only those that take them.
pub fn run(repository: &Repository, names: &[String], minutes: u64) -> Result<(), Failure> {
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
            Run::ForMinutes(run) => run(repository, minutes)?,
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
        let failure =
            run(&Repository::at("nowhere"), &["no-such".to_owned()], 1).expect_err("there is no such measurement");
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
