//! `seawall storm`: a retry storm on real sockets, through any balancer.

mod choice;
mod drawing;
mod fleet;
mod memory;
mod row;
mod run;
mod table;
mod target;
mod watch;

use crate::commands::signals::StopSignals;
use crate::{Exit, console};
use clap::Args;
use row::{Row, Rows};
use run::Job;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Lets a retry storm happen on real sockets, through Seawall or through any balancer, and holds what was served against
/// what could have been.
///
/// Two simulated servers of 4 slots and 0.2 s (40 requests a second together) run at a quarter of their speed for 10 s,
/// and clients come again as the measured SDKs do. In storm `a` the servers have short lines and refuse the rest with a
/// cheap 503; in storm `b` they queue without bound and work on for clients that have left.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    seawall storm a                                  loads 0.8, 1.2 and 2 through Seawall\n  \
    seawall storm b --load 0.8 --requests 800        a shorter one: half a minute\n  \
    seawall storm all --shape quick --requests 900   seconds, to try it out\n\n\
    Through a balancer that you have started, with its upstreams at 127.0.0.1:9101 and 127.0.0.1:9102:\n\n  \
    seawall storm a --target http://127.0.0.1:8000 --upstreams 127.0.0.1:9101 --pid 4711\n\n\
    Goodput is the requests answered before their client's patience was over, as a part of what an\n\
    oracle would have served: one server as fast as all together that knows what comes. Upstream\n\
    attempts are what the servers counted. `seawall sim storms` runs the same storms simulated.")]
pub struct Storm {
    /// The storms. `a`: the servers have short lines and refuse what does not fit with a cheap 503; `b`: they queue without
    /// bound and work on for clients that have left; `all`: both.
    #[arg(value_name = "SET", required_unless_present = "draw")]
    pub set: Option<String>,
    /// New requests, as multiples of what well servers can do.
    #[arg(long, default_value = "0.8,1.2,2", value_name = "NUMBERS")]
    pub load: String,
    /// Requests of each run; they have to last until after the brown-out.
    #[arg(long, default_value_t = 3000, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub requests: u32,
    /// The servers: a shape of the storm set with a fixed time for each request, or `quick` for trials.
    #[arg(long, default_value = "bench", value_name = "NAME")]
    pub shape: String,
    /// Who sends the requests: `sdk`, `immediate`, `7x7`, `vercel` or `mixed`.
    #[arg(long, default_value = "mixed", value_name = "NAME")]
    pub clients: String,
    /// Send the storm to this balancer, whose upstreams are the servers; without it, to a Seawall that is started for each
    /// run with a default configuration and is not told what the servers can do.
    #[arg(long, value_name = "URL")]
    pub target: Option<String>,
    /// Permit a balancer that is not on this machine.
    #[arg(long, requires = "target")]
    pub allow_remote: bool,
    /// Where the first server answers; the others take the ports after it (0: free ports, which only an own Seawall can
    /// be told).
    #[arg(long, value_name = "ADDRESS")]
    pub upstreams: Option<SocketAddr>,
    /// The balancer's process, to measure its memory and to notice its end.
    #[arg(long, value_name = "NUMBER", requires = "target")]
    pub pid: Option<u32>,
    /// What the rows call it.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// The key that clients present.
    #[arg(long, default_value = "demo-key", value_name = "KEY")]
    pub key: String,
    /// A header of every request, such as `x-team: blue`; may be given several times.
    #[arg(long, value_name = "HEADER", value_parser = choice::header)]
    pub header: Vec<choice::Header>,
    /// Decides the arrivals and the waits of the clients.
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    pub seed: u64,
    /// Print the rows as JSON.
    #[arg(long)]
    pub json: bool,
    /// Add each finished run to this file, one line of JSON each, and do not run again what is in it.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Draw the rows as a picture.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Run nothing: show (and draw) the rows of this file.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["set", "out", "target"])]
    pub draw: Option<PathBuf>,
}

/// Why there is no storm.
#[derive(Debug, thiserror::Error)]
pub(super) enum StormError {
    /// The command line is wrong; nothing was started.
    #[error("{0}")]
    Usage(String),
    /// It could not be done.
    #[error("{0}")]
    Failed(String),
    /// It was told to stop.
    #[error("stopped; runs that were finished are kept where --out names a file")]
    Stopped,
}

pub(crate) async fn run(storm: Storm) -> Exit {
    match rows(&storm).await.and_then(|rows| show(&storm, &rows)) {
        Ok(()) => Exit::Done,
        Err(error) => {
            console::error(&error.to_string());
            match error {
                StormError::Usage(_) => Exit::Usage,
                StormError::Failed(_) => Exit::Failed,
                StormError::Stopped => Exit::Cut,
            }
        }
    }
}

/// Every row that was asked for, those that the file has already among them.
async fn rows(storm: &Storm) -> Result<Vec<Row>, StormError> {
    if let Some(file) = &storm.draw {
        let kept = Rows::open(file)?.kept;
        if kept.is_empty() {
            return Err(StormError::Usage(format!("--draw: {} holds no rows; `--out` writes them", file.display())));
        }
        return Ok(kept);
    }
    let cells = choice::cells(storm)?;
    let mut kept = storm.out.as_deref().map(Rows::open).transpose()?;
    let mut signals =
        StopSignals::listen().map_err(|error| StormError::Failed(format!("cannot listen for signals: {error}")))?;
    let mut rows = Vec::new();
    for cell in cells {
        let job = Job { cell, storm };
        if let Some(row) = kept.as_ref().and_then(|rows| rows.find(&job)) {
            rows.push(row.clone());
            continue;
        }
        let row = tokio::select! {
            row = run::run(job) => row?,
            () = signals.next() => return Err(StormError::Stopped),
        };
        if let Some(kept) = &mut kept {
            kept.keep(&row)?;
        }
        rows.push(row);
    }
    Ok(rows)
}

fn show(storm: &Storm, rows: &[Row]) -> Result<(), StormError> {
    if let Some(file) = &storm.svg {
        write(file, &drawing::svg(rows))?;
    }
    if storm.json {
        console::result(&(serde_json::to_string_pretty(rows).expect("plain data has a JSON form") + "\n"));
    } else {
        console::result(&table::text(rows, console::is_result_coloured()));
    }
    Ok(())
}

fn write(file: &Path, text: &str) -> Result<(), StormError> {
    std::fs::write(file, text).map_err(|error| {
        StormError::Failed(format!("cannot write {}: {error}; name a file in a folder that exists", file.display()))
    })
}
