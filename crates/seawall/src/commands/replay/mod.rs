//! `seawall replay`: an incident as it happened, observed, and with Seawall, checked against what was published.

mod choice;
mod drawing;
mod report;
mod runner;
mod table;

use crate::{Exit, console};
use clap::Args;
use report::Replayed;
use seawall_core::protection::Protection;
use seawall_sim::replay::{Case, Study};
use std::path::PathBuf;

/// Replays an incident in the simulator and checks it against what was published.
///
/// The same arrivals are run as it happened, with Seawall looking on, and with Seawall in the routers' place; then with
/// one thing changed, to see what was the cause. Ends with 0 only if every check passes: what today's Seawall cannot do
/// yet is shown as absent or failing.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    seawall replay --all                                       every case of the library\n  \
    seawall replay azure-2026-05-29-retry-storm --seeds 5      five seeds, and the spread of the figures\n  \
    seawall replay azure-2026-05-29-retry-storm --json         for programs\n  \
    seawall replay azure-2026-05-29-retry-storm --without retry-budget\n  \
    seawall replay --scenario my-incident.toml --series        the series that figures can be read from")]
pub struct Replay {
    /// The case: the name of a folder of the case library.
    #[arg(value_name = "CASE", conflicts_with = "all")]
    pub case: Option<String>,
    /// Every case of the library.
    #[arg(long)]
    pub all: bool,
    /// A scenario file of your own instead of a case.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["case", "all"])]
    pub scenario: Option<PathBuf>,
    /// The seed of everything that is drawn.
    #[arg(long, default_value_t = 1, value_name = "NUMBER", value_parser = seed)]
    pub seed: u64,
    /// How many seeds to run, from --seed on; more than one: the spread is told too.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub seeds: Option<u64>,
    /// Print runs, series and checks as JSON.
    #[arg(long)]
    pub json: bool,
    /// Draw the runs over one another into this SVG file; with --all, into this folder, a file for each case.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Switch one protection of Seawall off, to see what it buys.
    #[arg(long, value_name = "NAME")]
    pub without: Option<String>,
    /// Factor of all volumes: rates, capacities, bounds.
    #[arg(long, default_value_t = 1.0, value_name = "FACTOR", value_parser = scale)]
    pub scale: f64,
    /// Only see whether the incident stays with each calibrated value a tenth less and a tenth more.
    #[arg(long, conflicts_with_all = ["svg", "without"])]
    pub vary: bool,
    /// Run nothing; list the series that a scenario's figures and plots can be made of.
    #[arg(long, conflicts_with_all = ["seeds", "vary", "without", "svg"])]
    pub series: bool,
}

fn seed(text: &str) -> Result<u64, String> {
    let seed: Option<u64> = text.parse().ok().filter(|seed| *seed < 1 << 62);
    seed.ok_or_else(|| "a seed is a whole number from 0 on, such as `1`".to_owned())
}

fn scale(text: &str) -> Result<f64, String> {
    let scale: f64 = text.parse().map_err(|_| "not a number: write for example `0.5`".to_owned())?;
    if (0.001..=1000.0).contains(&scale) { Ok(scale) } else { Err("it must lie between 0.001 and 1000".to_owned()) }
}

/// A replay that was not made: of a wrong call, or of something that broke.
struct Refused(Exit, String);

pub(crate) fn run(replay: &Replay) -> Exit {
    match replayed(replay) {
        Ok(exit) => exit,
        Err(Refused(exit, message)) => {
            console::message(&message);
            exit
        }
    }
}

fn replayed(replay: &Replay) -> Result<Exit, Refused> {
    let wrong_call = |message| Refused(Exit::Usage, message);
    let without = replay.without.as_deref().map(choice::protection).transpose().map_err(wrong_call)?;
    let cases = choice::cases(replay).map_err(wrong_call)?;
    let studies: Vec<Study<'_>> = cases.iter().map(|case| study(case, replay, without)).collect();
    for study in &studies {
        study.validate().map_err(|error| Refused(Exit::Usage, format!("error: {}: {error}", study.case.slug)))?;
    }
    if replay.series {
        return series(&studies, replay.json).map_err(|error| wrong_call(format!("error: {error}")));
    }
    for study in studies.iter().filter(|_| replay.svg.is_some()) {
        drawing::check(&study.case.scenario, &study.case.slug).map_err(wrong_call)?;
    }
    let seeds = replay.seed..replay.seed + replay.seeds.unwrap_or(1);
    let results = runner::run(&studies, seeds).map_err(|error| Refused(Exit::Failed, format!("error: {error}")))?;
    let all: Vec<Replayed<'_>> =
        studies.iter().zip(results).map(|(study, seeds)| Replayed::new(study, seeds)).collect();
    if let Some(into) = &replay.svg {
        drawing::write(&all, into, replay.all).map_err(|error| Refused(Exit::Failed, error))?;
    }
    if replay.json {
        console::result(&report::json(&all, replay.seeds.is_some(), replay.all));
    } else {
        let texts: Vec<String> = all.iter().map(|one| table::text(one, console::is_result_coloured())).collect();
        console::result(&texts.join("\n"));
    }
    Ok(if all.iter().all(Replayed::passes) { Exit::Done } else { Exit::Failed })
}

fn study<'a>(case: &'a Case, replay: &Replay, without: Option<Protection>) -> Study<'a> {
    let (all, vary) = (!replay.vary, replay.vary);
    Study { counterfactuals: all, seawall: all, scale: replay.scale, vary, without, ..Study::new(case) }
}

fn series(studies: &[Study<'_>], json: bool) -> Result<Exit, String> {
    for study in studies {
        let names = study.series()?;
        if json {
            console::result(&(serde_json::to_string(&names).expect("names have a JSON form") + "\n"));
        } else {
            console::result(&(names.join("\n") + "\n"));
        }
    }
    Ok(Exit::Done)
}
