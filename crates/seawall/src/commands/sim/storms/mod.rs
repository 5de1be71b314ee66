//! `seawall sim storms`: how much of what was possible is served in a retry storm?

mod choice;
mod table;

use crate::parallel::{cores, side_by_side};
use crate::{Exit, console};
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use seawall_sim::storms::{Bound, Cell, Gate, Outcome, Router, Row};
use serde::Serialize;
use std::num::NonZeroUsize;

/// Runs the storm set: servers in a brown-out, clients that come again, and Seawall between them. Holds the requests
/// that were served in time against those that could have been served at all.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    seawall sim storms\n  \
    seawall sim storms --shape set --law fixed,exponential --seeds 8\n  \
    seawall sim storms --storm B --load 0.8,2 --clients all --naive --told --method all\n  \
    seawall sim storms --ten-minutes --load 0.8,1.2,2 --seeds 2\n\n\
    Goodput is the requests answered before their client's patience was over, as a part of what an oracle would have\n\
    served: one server as fast as all together that knows what comes. The exit status is 0 only if every gate holds.")]
pub struct Storms {
    /// Servers behind the router, with commas between them: names of shapes, `set` for the six of the gates, or `all`.
    #[arg(long, default_value = "bench", value_name = "NAMES")]
    pub shape: String,
    /// Laws of the time that a request takes: `fixed`, `exponential`, `lognormal`, `erlang-4`, `cv-0.1`, `heavy-tail` or
    /// `all`; without it, each shape's usual one. A shape is run only with the laws that it has.
    #[arg(long, value_name = "NAMES")]
    pub law: Option<String>,
    /// `A`: servers refuse what does not fit, and notice who leaves. `B`: they queue without bound and work on.
    #[arg(long, default_value = "A,B", value_name = "NAMES")]
    pub storm: String,
    /// New requests, as multiples of what well servers can do: `0.5`, `0.8`, `0.95`, `1.2`, `2`, `10` or `all`.
    #[arg(long, default_value = "all", value_name = "NUMBERS")]
    pub load: String,
    /// Who sends them: `sdk`, `immediate`, `7x7`, `vercel`, `mixed` or `all`.
    #[arg(long, default_value = "mixed", value_name = "NAMES")]
    pub clients: String,
    /// How Seawall finds the slots that it is not told: names of methods, or `all`; without it, the default one.
    #[arg(long, value_name = "NAMES")]
    pub method: Option<String>,
    /// How many seeds each cell is run with.
    #[arg(long, default_value_t = 3, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub seeds: u64,
    /// The first of them.
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    pub first_seed: u64,
    /// Also run Seawall without a protection: names of protections with commas between them, or `all`.
    #[arg(long, value_name = "NAMES")]
    pub without: Option<String>,
    /// Also run Seawall told the slots of the servers, and told twice as many.
    #[arg(long)]
    pub told: bool,
    /// Also run a naive router.
    #[arg(long)]
    pub naive: bool,
    /// Ten minutes with brown-outs of 30, 60, 120 and 30 s, instead of each shape's short run with one.
    #[arg(long)]
    pub ten_minutes: bool,
    /// Print each row as JSON.
    #[arg(long)]
    pub json: bool,
    /// Runs at the same time; without it, one for each core.
    #[arg(long, value_name = "NUMBER")]
    pub jobs: Option<NonZeroUsize>,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    seeds: [u64; 2],
    rows: &'a [Row],
    passed: bool,
}

/// One run of a cell.
struct Job {
    cell: Cell,
    router: Router,
    seed: u64,
}

pub(super) fn run(storms: &Storms) -> Exit {
    let (cells, chosen) = match choice::cells(storms).and_then(|cells| Ok((cells, choice::routers(storms)?))) {
        Ok(chosen) => chosen,
        Err(error) => {
            console::error(&error);
            return Exit::Usage;
        }
    };
    let rows = match rows(storms, &chosen, &cells) {
        Ok(rows) => rows,
        Err(error) => {
            console::error(&error);
            return Exit::Failed;
        }
    };
    let passed = rows.iter().all(Row::passes);
    if storms.json {
        let last = storms.first_seed + storms.seeds - 1;
        let report = Report { seeds: [storms.first_seed, last], rows: &rows, passed };
        console::result(&(serde_json::to_string_pretty(&report).expect("plain data has a JSON form") + "\n"));
    } else {
        console::result(&table::text(&rows, storms.seeds, console::is_result_coloured()));
    }
    if passed { Exit::Done } else { Exit::Failed }
}

/// The routers that a cell is run with: those of which a row is shown, and then those that one is compared with.
fn routers(storms: &Storms, chosen: &[Router], cell: Cell) -> (Vec<Router>, bool) {
    let mut shown = chosen.to_vec();
    if storms.told {
        shown.extend([Router::Told, Router::ToldTwice]);
    }
    if storms.naive {
        shown.push(Router::Naive);
    }
    let is_compared = Gate::of(cell).iter().any(|gate| gate.figure == Bound::OfTold);
    (shown, is_compared && !storms.told)
}

/// Runs everything; a row for each cell and router.
fn rows(storms: &Storms, chosen: &[Router], cells: &[Cell]) -> Result<Vec<Row>, String> {
    let seeds = || storms.first_seed..storms.first_seed.saturating_add(storms.seeds);
    let mut jobs = Vec::new();
    for cell in cells {
        let (shown, adds_told) = routers(storms, chosen, *cell);
        for router in shown.into_iter().chain(adds_told.then_some(Router::Told)) {
            jobs.extend(seeds().map(|seed| Job { cell: *cell, router, seed }));
        }
    }
    let bar = bar(jobs.len());
    let outcomes = side_by_side(&jobs, storms.jobs.unwrap_or_else(cores), |job| {
        let outcome = job.cell.run(job.router, job.seed);
        bar.set_message(format!("{} {}", job.cell, job.router));
        bar.inc(1);
        outcome
    })?;
    bar.finish_and_clear();
    let count = usize::try_from(storms.seeds).expect("the number of seeds is bounded by the command line");
    let mut runs = outcomes.chunks(count);
    let mut rows = Vec::new();
    for cell in cells {
        let (shown, adds_told) = routers(storms, chosen, *cell);
        let all: Vec<(Router, &[Outcome])> =
            shown.iter().copied().chain(adds_told.then_some(Router::Told)).zip(runs.by_ref()).collect();
        let told = all.iter().find(|(router, _)| *router == Router::Told).map(|(_, runs)| *runs);
        rows.extend(all.iter().take(shown.len()).map(|(router, runs)| Row::of(*cell, *router, runs, told)));
    }
    Ok(rows)
}

/// A bar on standard error; nothing at all where that is no terminal.
fn bar(runs: usize) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(runs as u64), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{bar:24} {pos} of {len} runs {elapsed:>4}, {eta} left  {wide_msg}");
    bar.set_style(style.expect("the template is valid"));
    bar
}
