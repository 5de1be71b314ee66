//! How fast the simulator is, and how much memory it takes.

use super::cost::build_program;
use crate::evidence::{Measurement, Record, Run};
use crate::repository::Repository;
use crate::{Failure, command};
use serde_json::Value;
use std::fmt::Write as _;
use std::process::Command;

/// The entry of the table.
pub(super) const MEASUREMENT: Measurement = Measurement {
    name: "simulator",
    summary: "events a second on one core, the time of a whole day, memory over runs of different lengths",
    run: Run::Whole(run),
};

/// Events a second that are asked for.
const GOAL: f64 = 2e6;
/// Longest time of the whole day, in seconds.
const DAY_LIMIT: f64 = 600.0;

fn run(repository: &Repository) -> Result<Record, Failure> {
    let program = build_program(repository)?;
    let text = command::output(Command::new(program).args(["sim", "bench", "--json"]))?;
    let answer =
        |reason: &str| Failure::Answer { command: "seawall sim bench --json".to_owned(), reason: reason.to_owned() };
    let report: Value = serde_json::from_str(&text).map_err(|error| answer(&error.to_string()))?;
    record(&report).ok_or_else(|| answer("a figure is missing"))
}

fn record(report: &Value) -> Option<Record> {
    let number = |pointer: &str| report.pointer(pointer).and_then(Value::as_f64);
    let (rate, heap) = (number("/events_per_second")?, number("/heap_steps_per_second")?);
    let (requests, events) = (number("/day/requests")?, number("/day/events")?);
    let (seconds, wall) = (number("/day/seconds")?, number("/day/wall_seconds")?);
    let (case, clock) = (report["case"].as_str()?, report["clock"].as_str()?);
    let mut result = format!(
        "| what | value | asked for |\n| --- | --- | --- |\n\
         | events a second on one core | {:.1} million | at least {:.0} million |\n\
         | a plain binary heap: take the next event, add one | {:.1} million a second | - |\n\
         | {case}, 300 first attempts a second, 09:00 to 18:00 | {seconds:.1} s | at most {DAY_LIMIT:.0} s |\n\
         | the same, wall time | {wall:.1} s | - |\n\
         | its requests, and events | {:.2} million, {:.0} million | - |\n\n\
         | calm day of | requests | events | most records held | series | resident |\n\
         | --- | --- | --- | --- | --- | --- |\n",
        rate / 1e6,
        GOAL / 1e6,
        heap / 1e6,
        requests / 1e6,
        events / 1e6
    );
    for length in report["memory"].as_array()? {
        let number = |key: &str| length[key].as_f64();
        let resident =
            number("resident_bytes").map_or_else(|| "not told".to_owned(), |bytes| format!("{} MiB", mebibytes(bytes)));
        writeln!(
            result,
            "| {} h | {} | {} | {} | {} MiB | {resident} |",
            number("hours")?,
            number("requests")?,
            number("events")?,
            number("most_records")?,
            mebibytes(number("series_bytes")?)
        )
        .expect("a string takes any text");
    }
    let growth = number("/bytes_per_million_requests")
        .map_or_else(|| "not measured on this system".to_owned(), |bytes| format!("{} MiB", mebibytes(bytes)));
    let holds = |holds: bool| if holds { "holds" } else { "does not hold" };
    Some(Record {
        title: "The simulator: speed and memory".to_owned(),
        method: format!(
            "`seawall sim bench`: the retry storm of `{case}` with its naive routers, from beginning to end, on one thread \
             and with the checkers that look on in every run; five rounds, each followed by the yardstick, medians. \
             The yardstick is a binary heap of the standard library with 2,000 events of the same size: the next one is \
             taken, and one is added at a later time. Times are {clock} of the thread. Memory: the same world without \
             the storm's events for one, three and nine hours, one after the other in one process."
        ),
        result: result.trim_end().to_owned(),
        reading: format!(
            "The goal of {:.0} million events a second {}; the limit of ten minutes for the day {}. A million requests more \
             in a longer run take {growth} more, the series left out: those grow with the seconds of a run and the number \
             of its actors, never with its requests.",
            GOAL / 1e6,
            holds(rate >= GOAL),
            holds(seconds <= DAY_LIMIT)
        ),
    })
}

fn mebibytes(bytes: f64) -> String {
    format!("{:.1}", bytes / f64::from(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_says_whether_the_goals_hold() {
        let report = |rate: f64| {
            serde_json::json!({
                "case": "a-storm", "events": 10, "events_per_second": rate, "heap_steps_per_second": 9e6,
                "clock": "processor time",
                "day": { "requests": 5_000_000, "events": 200_000_000, "seconds": 20.5, "wall_seconds": 41.0 },
                "memory": [{ "hours": 1, "requests": 1000, "events": 5000, "most_records": 70,
                             "series_bytes": 1_048_576, "resident_bytes": 4_194_304 }],
                "bytes_per_million_requests": 524_288.0
            })
        };
        let record = record(&report(3.24e6)).expect("every figure is there");
        assert!(record.result.contains("| 3.2 million | at least 2 million |"), "{}", record.result);
        assert!(record.result.contains("| 1 h | 1000 | 5000 | 70 | 1.0 MiB | 4.0 MiB |"), "{}", record.result);
        assert!(record.reading.contains("events a second holds; the limit of ten minutes for the day holds"));
        assert!(record.reading.contains("take 0.5 MiB more"), "{}", record.reading);
        let slow = super::record(&report(1e6)).expect("every figure is there");
        assert!(slow.reading.contains("events a second does not hold"), "{}", slow.reading);
        assert_eq!(super::record(&serde_json::json!({})), None);
    }
}
