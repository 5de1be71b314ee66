//! `seawall sim bench`: how fast the simulator is, and how much memory it takes.

use crate::clock::{Stopwatch, Took};
use crate::{Exit, console};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use seawall_sim::replay::Case;
use seawall_sim::{Options, Stream, World};
use serde::Serialize;
use std::collections::BinaryHeap;
use std::fmt::Write as _;

/// Measures the simulator with a retry storm behind naive routers: events a second on one core beside a plain heap of
/// events, the time of a whole day, and memory over runs of different lengths.
#[derive(Debug, Args)]
#[command(
    after_help = "Times are those of one thread on a processor where the system tells, else the time that passed."
)]
pub struct Bench {
    /// Rounds; each measures the simulator and the heap once, and the medians are told.
    #[arg(long, default_value_t = 5, value_name = "NUMBER")]
    pub rounds: usize,
    /// Print the figures as JSON.
    #[arg(long)]
    pub json: bool,
}

/// The storm that is run.
const CASE: &str = include_str!("../../../../../cases/azure-2026-05-29-retry-storm/scenario.toml");
const CASE_NAME: &str = "azure-2026-05-29-retry-storm";
/// First attempts a second of the run of a whole day.
const DAY_RATE: f64 = 300.0;
/// Events that the yardstick's heap holds: as many as the storm's world does at its worst.
const HEAP_EVENTS: usize = 2_000;
const HEAP_STEPS: u64 = 20_000_000;
const HOUR: u64 = 3_600 * seawall_sim::SECOND;
/// Hours of the runs whose memory is compared.
const HOURS: [u64; 3] = [1, 3, 9];

#[derive(Debug, Serialize)]
struct Report {
    case: &'static str,
    events: u64,
    events_per_second: f64,
    /// A plain binary heap: take the next event, add one.
    heap_steps_per_second: f64,
    /// The clock behind both.
    clock: &'static str,
    day: Day,
    memory: Vec<Length>,
    /// Growth of the resident set between the shortest and the longest of these runs, for a million requests more, the
    /// series left out.
    bytes_per_million_requests: Option<f64>,
}

/// The storm at [`DAY_RATE`], 09:00 to 18:00.
#[derive(Debug, Serialize)]
struct Day {
    first_attempts_per_second: f64,
    requests: u64,
    events: u64,
    seconds: f64,
    wall_seconds: f64,
}

/// A run of a calm day of this length.
#[derive(Debug, Serialize)]
struct Length {
    hours: u64,
    requests: u64,
    events: u64,
    /// The most records that actors held at the end of a minute.
    most_records: usize,
    /// Bytes of the series: they grow with the seconds of the run and not with its requests.
    series_bytes: usize,
    /// The resident set at the end.
    resident_bytes: Option<u64>,
}

pub(super) fn run(bench: &Bench) -> Exit {
    match measure(bench.rounds.max(1)) {
        Ok(report) if bench.json => {
            let json = serde_json::to_string_pretty(&report).expect("plain data has a JSON form");
            console::result(&(json + "\n"));
            Exit::Done
        }
        Ok(report) => {
            console::result(&report.render());
            Exit::Done
        }
        Err(error) => {
            console::error(&error);
            Exit::Failed
        }
    }
}

fn measure(rounds: usize) -> Result<Report, String> {
    let case = Case::new(CASE_NAME, CASE)?;
    let bar = ProgressBar::new(2 * rounds as u64 + 1 + HOURS.len() as u64);
    let style = ProgressStyle::with_template("{bar:24} {elapsed} {msg}").expect("the template is valid");
    bar.set_style(style);
    // Memory first: later runs leave pages behind that the allocator keeps.
    let mut memory = Vec::new();
    for hours in HOURS {
        bar.set_message(format!("memory of {hours} h"));
        memory.push(length(&case, hours)?);
        bar.inc(1);
    }
    let (mut simulated, mut heap) = (Vec::new(), Vec::new());
    let mut events = 0;
    let mut clock = "processor time";
    for round in 1..=rounds {
        bar.set_message(format!("round {round}: simulator"));
        let (count, took) = storm(&case, 1.0)?;
        if took.processor.is_none() {
            clock = "wall time";
        }
        events = count.events;
        simulated.push(rate(count.events, took));
        bar.inc(1);
        bar.set_message(format!("round {round}: heap"));
        heap.push(rate(HEAP_STEPS, hold()));
        bar.inc(1);
    }
    bar.set_message("a whole day");
    let day = day(&case)?;
    bar.finish_and_clear();
    let bytes_per_million_requests = growth(&memory);
    Ok(Report {
        case: CASE_NAME,
        events,
        events_per_second: median(simulated),
        heap_steps_per_second: median(heap),
        clock,
        day,
        memory,
        bytes_per_million_requests,
    })
}

#[derive(Clone, Copy, Debug)]
struct Counts {
    events: u64,
    requests: u64,
}

/// The storm from its beginning to its end, on this thread.
fn storm(case: &Case, scale: f64) -> Result<(Counts, Took), String> {
    let watch = Stopwatch::start();
    let options = Options { scale, ..Options::default() };
    let mut world = World::of(&case.scenario, &options).map_err(|error| error.to_string())?;
    world.run_until(case.scenario.scenario.end.nanos);
    let (events, took) = (world.events(), watch.took());
    Ok((Counts { events, requests: requests(&world.into_recorder()) }, took))
}

fn day(case: &Case) -> Result<Day, String> {
    let rates = case.scenario.population.iter().map(|population| population.rate_per_second);
    let scale = DAY_RATE / (rates.sum::<f64>() * case.scenario.scenario.scale);
    let (counts, took) = storm(case, scale)?;
    Ok(Day {
        first_attempts_per_second: DAY_RATE,
        requests: counts.requests,
        events: counts.events,
        seconds: took.work().as_secs_f64(),
        wall_seconds: took.wall.as_secs_f64(),
    })
}

/// A calm day: the storm's world without its events, at one level.
fn length(case: &Case, hours: u64) -> Result<Length, String> {
    let mut scenario = case.scenario.clone();
    // What is said of the storm's events goes with them.
    scenario.event.clear();
    scenario.counterfactual.clear();
    scenario.check.clear();
    for population in &mut scenario.population {
        population.curve.clear();
    }
    let start = scenario.scenario.start.nanos;
    let end = start + hours * HOUR;
    scenario.scenario.end.nanos = end;
    let mut world = World::of(&scenario, &Options::default()).map_err(|error| error.to_string())?;
    let mut most_records = 0;
    for minute in 1..=60 * hours {
        world.run_until(start + minute * HOUR / 60);
        most_records = most_records.max(world.held().into_iter().sum());
    }
    let (events, resident_bytes) = (world.events(), resident_bytes());
    let recorder = world.into_recorder();
    let series_bytes = recorder.names().count() * recorder.seconds() * size_of::<f32>();
    Ok(Length { hours, requests: requests(&recorder), events, most_records, series_bytes, resident_bytes })
}

/// Distinct requests of all populations.
fn requests(recorder: &seawall_sim::Recorder) -> u64 {
    let names = recorder.names().filter(|name| name.ends_with(".requests"));
    let total: f64 = names.filter_map(|name| recorder.values(name)).flatten().map(|value| f64::from(*value)).sum();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
    let total = total as u64;
    total
}

/// The yardstick: a heap of the standard library that always holds as many events, each as large as one of the
/// simulator's. The next one is taken, and one is added at a time after it ("hold", as it is called).
fn hold() -> Took {
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    struct Event {
        at: std::cmp::Reverse<u64>,
        sequence: std::cmp::Reverse<u64>,
        payload: [u64; 3],
    }
    let mut random = Stream::new(1, "yardstick");
    let mut heap = BinaryHeap::with_capacity(HEAP_EVENTS + 1);
    let mut sequence = 0;
    let event = |now: u64, delay: usize, sequence: u64| Event {
        at: std::cmp::Reverse(now + delay as u64),
        sequence: std::cmp::Reverse(sequence),
        payload: [sequence; 3],
    };
    for _ in 0..HEAP_EVENTS {
        sequence += 1;
        heap.push(event(0, random.below(1_000_000), sequence));
    }
    let watch = Stopwatch::start();
    for _ in 0..HEAP_STEPS {
        let Some(next) = heap.pop() else { break };
        sequence += 1;
        heap.push(event(next.at.0, random.below(1_000_000), std::hint::black_box(sequence)));
    }
    watch.took()
}

/// The resident set of this process; Linux only.
fn resident_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kibibytes| kibibytes * 1024)
}

#[expect(clippy::cast_precision_loss, reason = "figures for people")]
fn rate(count: u64, took: Took) -> f64 {
    count as f64 / took.work().as_secs_f64()
}

#[expect(clippy::cast_precision_loss, reason = "figures for people")]
fn growth(memory: &[Length]) -> Option<f64> {
    let (short, long) = (memory.first()?, memory.last()?);
    let own = |length: &Length| Some(length.resident_bytes? as f64 - length.series_bytes as f64);
    let requests = long.requests.checked_sub(short.requests).filter(|more| *more > 0)?;
    Some((own(long)? - own(short)?) / requests as f64 * 1e6)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

impl Report {
    fn render(&self) -> String {
        let mut text = format!(
            "{}: {} events, {:.1} million a second on one core ({})\n\
             a plain heap of {HEAP_EVENTS} events: {:.1} million steps a second\n\
             {:.0} first attempts a second, 09:00 to 18:00: {} requests, {} events in {:.1} s (wall {:.1} s)\n",
            self.case,
            self.events,
            self.events_per_second / 1e6,
            self.clock,
            self.heap_steps_per_second / 1e6,
            self.day.first_attempts_per_second,
            self.day.requests,
            self.day.events,
            self.day.seconds,
            self.day.wall_seconds,
        );
        for length in &self.memory {
            let resident = length.resident_bytes.map_or_else(|| "?".to_owned(), mebibytes);
            let series = mebibytes(length.series_bytes as u64);
            writeln!(
                text,
                "a calm day of {} h: {} requests, at most {} records held, resident {resident} MiB, of which series {series} MiB",
                length.hours, length.requests, length.most_records
            )
            .expect("a string takes any text");
        }
        if let Some(bytes) = self.bytes_per_million_requests {
            writeln!(text, "a million requests more: {:.2} MiB more, the series left out", bytes / f64::from(1 << 20))
                .expect("a string takes any text");
        }
        text
    }
}

#[expect(clippy::cast_precision_loss, reason = "figures for people")]
fn mebibytes(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / f64::from(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn length(hours: u64, requests: u64, series_bytes: usize, resident_bytes: Option<u64>) -> Length {
        Length { hours, requests, events: 0, most_records: 10, series_bytes, resident_bytes }
    }

    #[test]
    fn growth_leaves_the_series_out() {
        let memory = [length(1, 1_000_000, 2_000, Some(12_000)), length(3, 3_000_000, 6_000, Some(26_000))];
        assert!((growth(&memory).expect("it was measured") - 5_000.0).abs() < 1e-6);
        assert_eq!(growth(&[length(1, 10, 0, None), length(3, 30, 0, None)]), None);
        assert_eq!(growth(&memory[..1]), None);
    }

    #[test]
    fn the_storm_is_there_and_a_calm_hour_has_its_requests() {
        let case = Case::new(CASE_NAME, CASE).expect("a good case");
        let hour = super::length(&case, 1).expect("it runs");
        // 106 first attempts a second; a random day is within a few parts in a thousand.
        assert!((376_000..388_000).contains(&hour.requests), "{hour:?}");
        assert!(hour.most_records > 100 && hour.series_bytes > 0, "{hour:?}");
        assert!((median(vec![3.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
    }
}
