//! Whether random worlds are safe and live again: as many as there is time for.

use super::cost::build_program;
use crate::evidence::{Measurement, Record, Run};
use crate::repository::Repository;
use crate::{Failure, clock, command, files, report};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

/// The entry of the table.
pub(super) const MEASUREMENT: Measurement = Measurement {
    name: "swarm",
    summary: "random worlds with random faults for `--minutes`: safe while faults last, alive after them",
    run: Run::ForMinutes(run),
};

/// What came of all worlds together.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    worlds: u64,
    with_seawall: u64,
    events: u64,
    last_seed: u64,
    /// Of each world that failed: its seed and everything that was found.
    failed: Vec<(u64, String)>,
}

fn run(repository: &Repository, minutes: u64) -> Result<Record, Failure> {
    let program = build_program(repository)?;
    let first = first_seed(&clock::today());
    // A world that hangs is the last one told there.
    let log = repository.target().join("swarm.log");
    report::say(&format!("{minutes} minutes of one core, from seed {first} on; worlds are told in {}", log.display()));
    let mut swarm = Command::new(program);
    swarm.args(["sim", "swarm", "--json", "--minutes", &minutes.to_string(), "--seed", &first.to_string()]);
    let tally = tally(&answered(&mut swarm, &log)?).ok_or_else(|| Failure::Answer {
        command: command::line(&swarm),
        reason: "a line is no report of a world".to_owned(),
    })?;
    Ok(record(minutes, first, &tally))
}

/// Each day looks at other worlds than the day before, and the record says at which.
fn first_seed(today: &str) -> u64 {
    let digits: String = today.chars().filter(char::is_ascii_digit).collect();
    digits.parse::<u64>().unwrap_or(0) * 1_000_000
}

/// The lines of the answer. The program ends with 1 when a world failed, which is for the page to tell.
fn answered(swarm: &mut Command, log: &Path) -> Result<String, Failure> {
    files::write(log, "")?;
    let told = File::create(log).map_err(Failure::file("write", log))?;
    let line = command::line(swarm);
    let output = swarm.stdin(Stdio::null()).stderr(told).output();
    let output = output.map_err(|source| Failure::Start { command: line.clone(), source })?;
    if !matches!(output.status.code(), Some(0 | 1)) {
        return Err(Failure::Command { command: line, status: output.status.to_string() });
    }
    String::from_utf8(output.stdout).map_err(|error| Failure::Answer { command: line, reason: error.to_string() })
}

fn tally(lines: &str) -> Option<Tally> {
    let mut tally = Tally::default();
    for line in lines.lines() {
        let report: Value = serde_json::from_str(line).ok()?;
        let seed = report["seed"].as_u64()?;
        tally.worlds += 1;
        tally.with_seawall += u64::from(report["with_seawall"].as_bool()?);
        tally.events += report["events"].as_u64()?;
        tally.last_seed = seed;
        let failures = report["failures"].as_array()?.iter().map(|failure| failure.as_str());
        let failures: Vec<&str> = failures.collect::<Option<_>>()?;
        if !failures.is_empty() {
            tally.failed.push((seed, failures.join("; ")));
        }
    }
    (tally.worlds > 0).then_some(tally)
}

fn record(minutes: u64, first: u64, tally: &Tally) -> Record {
    let Tally { worlds, with_seawall, events, last_seed, failed } = tally;
    let mut result = format!(
        "| what | value |\n| --- | --- |\n\
         | worlds | {worlds} (seeds {first} to {last_seed}) |\n\
         | with Seawall in the router's place | {with_seawall} |\n\
         | with a naive router, and Seawall looking on | {} |\n\
         | events | {events} |\n\
         | worlds that failed | {} |\n",
        worlds - with_seawall,
        failed.len()
    );
    if !failed.is_empty() {
        result.push_str("\n| seed | what was found |\n| --- | --- |\n");
        for (seed, found) in failed {
            writeln!(result, "| {seed} | {} |", found.replace('|', "\\|")).expect("a string takes any text");
        }
    }
    let found = match failed.len() {
        0 => "No world failed.".to_owned(),
        count => format!(
            "{count} of {worlds} worlds failed: each is a mistake, in the engine, in the simulator or in what is asked \
             for. `seawall sim swarm --seed N` runs one again."
        ),
    };
    Record {
        title: "Random worlds: safety and life".to_owned(),
        method: format!(
            "`seawall sim swarm --minutes {minutes}`: one world after the other, each from a seed. {METHOD}"
        ),
        result: result.trim_end().to_owned(),
        reading: format!("{found} {LIMITS}"),
    }
}

const METHOD: &str = "A seed draws one to five servers (serving engines, or capacity that is sold by the second) for \
    one or two models, one to three routers, one to three populations of clients that retry in their own ways, layers and \
    networks between them, one to four faults (servers down, failing, silent or slow, networks that lose or delay, \
    more arrivals, restarts), and Seawall's settings.\n\n\
    *Safety*: no checker finds anything in any world while faults last or later: one outcome for a request, no attempt \
    without a permit, no wait beside room, no lower class before a higher one, bounded memory; and an engine that \
    looks on changes nothing. *Life*: with Seawall, from a minute after the last fault on, 95% of every population's requests \
    succeed. *End*: once nothing new begins, everything drains.";

const LIMITS: &str = "What is left out is a limit of this statement: faults of more than half a minute, overload that \
    lasts, and refusals that stick to one request for longer than a second. The rate depends on the machine.";

#[cfg(test)]
mod tests {
    use super::*;

    fn line(seed: u64, with_seawall: bool, failures: &[&str]) -> String {
        let report = serde_json::json!({
            "seed": seed, "options": "o", "with_seawall": with_seawall, "failures": failures, "events": 100
        });
        report.to_string() + "\n"
    }

    #[test]
    fn a_record_says_how_many_worlds_there_were_and_which_failed() {
        let lines = [line(5, true, &[]), line(6, false, &["one | two", "three"]), line(7, true, &[])].concat();
        let tally = tally(&lines).expect("three reports");
        let record = record(3, 5, &tally);
        for row in [
            "| worlds | 3 (seeds 5 to 7) |",
            "| with Seawall in the router's place | 2 |",
            "| with a naive router, and Seawall looking on | 1 |",
            "| events | 300 |",
            "| worlds that failed | 1 |",
            "| 6 | one \\| two; three |",
        ] {
            assert!(record.result.contains(row), "{row} in {}", record.result);
        }
        assert!(record.reading.starts_with("1 of 3 worlds failed"), "{}", record.reading);
        assert!(record.method.starts_with("`seawall sim swarm --minutes 3`"));
        assert_eq!(super::tally(&lines.replace("\"events\"", "\"else\"")), None);
        assert_eq!(super::tally(""), None, "a run without a world says nothing");
        let good = super::tally(&line(5, true, &[])).expect("a report");
        assert!(super::record(3, 5, &good).reading.starts_with("No world failed."));
    }

    #[test]
    fn each_day_has_seeds_of_its_own() {
        assert_eq!(first_seed("2026-11-30"), 20_261_130_000_000);
    }
}
