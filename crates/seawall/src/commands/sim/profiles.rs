//! `seawall sim profiles`: the measured clients, and what each does with an answer.

use crate::{Exit, console};
use clap::Args;
use seawall_model::profile::{Answer, Decision, Outcome, Profile};
use seawall_sim::Stream;
use serde::Serialize;
use std::fmt::Write as _;
use std::time::Duration;

/// Lists the clients whose way to retry was measured, and the attempts that each makes after each kind of failure.
#[derive(Debug, Args)]
#[command(
    after_help = "A scenario names one as `retry = { profile = \"openai-python\" }`, a load as `--profiles openai-python`."
)]
pub struct Profiles {
    /// Print them as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Kinds of failure, and the heading of each.
const FAILURES: [(&str, Outcome); 6] = [
    ("429", Outcome::Status(429)),
    ("500", Outcome::Status(500)),
    ("503", Outcome::Status(503)),
    ("refused", Outcome::Refused),
    ("reset", Outcome::Reset),
    ("timeout", Outcome::ReadTimeout),
];

/// What one client does.
#[derive(Debug, Serialize)]
struct Row {
    name: &'static str,
    measured: &'static str,
    /// Attempts for one request that ends so each time.
    attempts: std::collections::BTreeMap<&'static str, u32>,
    /// Waits before the next attempts after a 503 without advice, in seconds, as drawn with one seed.
    waits_seconds: Vec<f64>,
    /// Attempts at a 503 with `x-should-retry: false`.
    told_to_stop: u32,
    /// Whether a 503 with `retry-after: 7` is waited out.
    waits_as_told: bool,
}

/// The waits of a client that gets this answer each time, at once. Some give up after a time, not after attempts.
fn waits(profile: &Profile, answer: &Answer<'_>) -> Vec<(f64, bool)> {
    let mut random = Stream::new(1, profile.name);
    let mut call = profile.call();
    let mut waits = Vec::new();
    let mut elapsed = Duration::ZERO;
    while let Decision::RetryAfter { wait, told } = call.next(&Answer { elapsed, ..*answer }, &mut random) {
        elapsed += wait;
        waits.push((wait.as_secs_f64(), told));
    }
    waits
}

fn attempts(profile: &Profile, answer: &Answer<'_>) -> u32 {
    u32::try_from(waits(profile, answer).len()).unwrap_or(u32::MAX).saturating_add(1)
}

impl Row {
    fn of(profile: &'static Profile) -> Self {
        let busy = Answer::new(Outcome::Status(503));
        let told = waits(profile, &Answer { retry_after: Some("7"), ..busy });
        Self {
            name: profile.name,
            measured: profile.version,
            attempts: FAILURES.map(|(name, outcome)| (name, attempts(profile, &Answer::new(outcome)))).into(),
            waits_seconds: waits(profile, &busy).into_iter().map(|(wait, _)| wait).collect(),
            told_to_stop: attempts(profile, &Answer { should_retry: Some("false"), ..busy }),
            waits_as_told: told.first().is_some_and(|(wait, told)| *told && (7.0..8.0).contains(wait)),
        }
    }

    fn cells(&self) -> Vec<String> {
        let shown = |wait: &f64| format!("{wait:.1}");
        let most = 3;
        let mut waits: Vec<String> = self.waits_seconds.iter().take(most).map(shown).collect();
        if self.waits_seconds.len() > most {
            waits.push("...".to_owned());
        }
        let mut cells = vec![self.name.to_owned()];
        cells.extend(FAILURES.iter().map(|(name, _)| self.attempts[name].to_string()));
        cells.push(self.told_to_stop.to_string());
        cells.push(if self.waits_as_told { "yes" } else { "no" }.to_owned());
        cells.push(waits.join(" "));
        cells.push(self.measured.to_owned());
        cells
    }
}

pub(super) fn run(profiles: &Profiles) -> Exit {
    let rows: Vec<Row> = Profile::ALL.iter().map(Row::of).collect();
    if profiles.json {
        let json = serde_json::to_string_pretty(&rows).expect("plain data has a JSON form");
        console::result(&(json + "\n"));
    } else {
        console::result(&table(&rows));
    }
    Exit::Done
}

fn table(rows: &[Row]) -> String {
    let mut heads = vec!["name"];
    heads.extend(FAILURES.iter().map(|(name, _)| *name));
    heads.extend(["told no", "waits 7 s", "waits after 503", "measured"]);
    let mut lines: Vec<Vec<String>> = vec![heads.into_iter().map(str::to_owned).collect()];
    lines.extend(rows.iter().map(Row::cells));
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..lines[0].len()).map(width).collect();
    let mut text = String::from("Attempts for one request that ends each time with:\n");
    for line in &lines {
        let padded: Vec<String> = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        writeln!(text, "{}", padded.join("  ").trim_end()).expect("a string takes any text");
    }
    text.push_str(
        "told no: a 503 with `x-should-retry: false`; waits 7 s: a 503 with `retry-after: 7`; waits in seconds\n",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_what_the_client_does() {
        let row = Row::of(Profile::by_name("openai-python").expect("it was measured"));
        let attempts: Vec<u32> = FAILURES.iter().map(|(name, _)| row.attempts[name]).collect();
        assert_eq!((attempts, row.told_to_stop, row.waits_as_told), (vec![3; 6], 1, true));
        let row = Row::of(Profile::by_name("seven-by-seven").expect("it is there"));
        assert_eq!((row.attempts["503"], row.waits_as_told), (49, false));
    }
}
