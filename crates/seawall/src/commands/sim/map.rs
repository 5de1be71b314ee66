//! `seawall sim map`: after which triggers does a system come back by itself?

use super::state::{Header, StateError, StateFile};
use crate::{Exit, console};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use seawall_sim::map::{Cell, Filter, Outcome, Results, Trigger, draw};
use serde::Serialize;
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

/// Sweeps load, triggers, their length and clients, each once with a naive router and once with Seawall, and shows after
/// which of them the system comes back by itself.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    seawall sim map --svg map.svg --resume map.state\n  \
    seawall sim map --cells naive,sdk,0.95\n\n\
    A cell passes if goodput is back at 90% within 30 s of the trigger's end, was never lower than the lost capacity\n\
    explains (and 10 points), and no router crashed. The whole map takes about 15 minutes of one core.")]
pub struct Map {
    /// Only these cells: words of the map with commas between them; words of one axis are alternatives.
    #[arg(long, default_value = "", hide_default_value = true, value_name = "WORDS")]
    pub cells: String,
    /// Print the outcome of each cell as JSON.
    #[arg(long)]
    pub json: bool,
    /// Draw the map into this file.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Keep finished cells in this file, and do not run again those that it holds.
    #[arg(long, value_name = "FILE")]
    pub resume: Option<PathBuf>,
    /// Decides every arrival and every draw.
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    pub seed: u64,
    /// Cells that run at the same time; without it, one for each core.
    #[arg(long, value_name = "NUMBER")]
    pub jobs: Option<NonZeroUsize>,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    seed: u64,
    cells: Vec<&'a Outcome>,
}

pub(super) fn run(map: &Map) -> Exit {
    let filter = match Filter::parse(&map.cells) {
        Ok(filter) => filter,
        Err(error) => {
            console::error(&format!("--cells: {error}"));
            return Exit::Usage;
        }
    };
    let cells: Vec<Cell> = Cell::all().filter(|cell| filter.fits(*cell)).collect();
    let outcomes = match outcomes(map, &cells) {
        Ok(outcomes) => outcomes,
        Err(error) => {
            console::error(&error);
            return Exit::Failed;
        }
    };
    let results: Results = outcomes.into_iter().collect();
    if let Some(path) = &map.svg
        && let Err(error) = std::fs::write(path, draw(&results))
    {
        console::error(&format!("cannot write {}: {error}", path.display()));
        return Exit::Failed;
    }
    if map.json {
        let cells = cells.iter().filter_map(|cell| results.of(*cell)).collect();
        let json = serde_json::to_string_pretty(&Report { seed: map.seed, cells }).expect("plain data has a JSON form");
        console::result(&(json + "\n"));
    } else {
        console::result(&results.render());
    }
    Exit::Done
}

/// The outcomes of these cells: those that are finished already, and the rest run now.
fn outcomes(map: &Map, cells: &[Cell]) -> Result<Vec<Outcome>, String> {
    let told = |error: StateError| error.to_string();
    let (mut state, mut outcomes) = match &map.resume {
        None => (None, Vec::new()),
        Some(path) => {
            let (state, outcomes) = StateFile::open(path, &header(map.seed)?).map_err(told)?;
            (Some(state), outcomes)
        }
    };
    let finished: BTreeSet<&str> = outcomes.iter().map(|outcome| outcome.cell.as_str()).collect();
    let mut pending: Vec<Cell> = cells.iter().copied().filter(|cell| !finished.contains(&*cell.to_string())).collect();
    // Long ones first, so that no core waits at the end.
    pending.sort_by_key(|cell| std::cmp::Reverse(weight(*cell)));
    let bar = progress(cells.len(), cells.len() - pending.len());
    let jobs = map.jobs.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
    let queue = Mutex::new(pending.into_iter());
    let (sender, receiver) = sync_channel(jobs);
    let ended = thread::scope(|scope| {
        for _ in 0..jobs {
            let (queue, sender) = (&queue, sender.clone());
            scope.spawn(move || work(queue, &sender, map.seed));
        }
        drop(sender);
        // At the first error the receiver goes away, and with it the workers after their present cells.
        receiver.into_iter().try_for_each(|outcome| {
            let outcome = outcome?;
            bar.set_message(outcome.cell.clone());
            bar.inc(1);
            if let Some(state) = &mut state {
                state.keep(&outcome).map_err(told)?;
            }
            outcomes.push(outcome);
            Ok::<(), String>(())
        })
    });
    bar.finish_and_clear();
    ended.map(|()| outcomes)
}

/// Runs one cell after the other until there is none left, or nobody listens.
fn work(queue: &Mutex<impl Iterator<Item = Cell>>, outcomes: &SyncSender<Result<Outcome, String>>, seed: u64) {
    loop {
        let cell = queue.lock().expect("nobody panics while taking a cell").next();
        let Some(cell) = cell else { return };
        if outcomes.send(cell.run(seed)).is_err() {
            return;
        }
    }
}

/// How long a cell takes, roughly.
const fn weight(cell: Cell) -> u32 {
    let arrivals = if let Trigger::Arrivals(times) = cell.trigger { times } else { 1 };
    arrivals * cell.length.0 + cell.load.0
}

/// What short runs of this program come to: a file of another version is not gone on with.
fn header(seed: u64) -> Result<Header, String> {
    let probes = Filter::parse("sdk,0.95,loss-90,5s")?;
    let hashes: Result<Vec<String>, String> = Cell::all()
        .filter(|cell| probes.fits(*cell))
        .map(|cell| cell.run(seed).map(|outcome| outcome.trace_hash))
        .collect();
    Ok(Header { seed, program: hashes?.join("-") })
}

/// A line on standard error; nothing at all where that is no terminal.
fn progress(all: usize, finished: usize) -> ProgressBar {
    let bar = ProgressBar::new(all as u64).with_position(finished as u64);
    let style = ProgressStyle::with_template("{bar:24} {pos} of {len} cells, {elapsed} so far, {eta} to go  {msg}");
    bar.with_style(style.expect("the template is valid"))
}
