//! `seawall sim`: studies that the simulator does on its own, without an incident.

mod bench;
mod map;
mod profiles;
mod state;
mod storms;
mod swarm;

use crate::Exit;
use clap::{Args, Subcommand};

/// Runs the simulator's own studies.
#[derive(Debug, Args)]
pub struct Sim {
    /// The study.
    #[command(subcommand)]
    pub command: Study,
}

/// The studies.
#[derive(Debug, Subcommand)]
pub enum Study {
    /// Sweeps load, triggers and clients, and shows after which the system comes back by itself.
    Map(map::Map),
    /// Runs the storm set, and holds Seawall against the best that could have been done.
    Storms(storms::Storms),
    /// Runs random worlds with random faults, and looks whether they are safe and live again.
    Swarm(swarm::Swarm),
    /// Lists the measured clients and how each of them retries.
    Profiles(profiles::Profiles),
    /// Measures the simulator: events a second on one core, and memory.
    Bench(bench::Bench),
}

pub(crate) fn run(sim: &Sim) -> Exit {
    match &sim.command {
        Study::Map(map) => map::run(map),
        Study::Storms(storms) => storms::run(storms),
        Study::Swarm(swarm) => swarm::run(swarm),
        Study::Profiles(profiles) => profiles::run(profiles),
        Study::Bench(bench) => bench::run(bench),
    }
}
