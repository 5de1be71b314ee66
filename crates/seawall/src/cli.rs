//! The command line as clap reads it. Its help texts are the reference page.

use crate::commands::{check, drill, fleet, init, load, replay, serve, sim, storm};
use clap::{Parser, Subcommand};

/// The inference router that stays up when everything in front of it retries and everything behind it is full.
#[derive(Debug, Parser)]
#[command(
    name = "seawall",
    version,
    after_help = "Examples:\n  \
        seawall serve                                    a demo: three simulated regions, no key needed\n  \
        seawall serve --config seawall.toml              your deployments\n  \
        seawall check --config seawall.toml              every mistake of a file at once\n  \
        seawall load --rate 50 --duration 10s            a burst of load onto the demo\n  \
        seawall storm a                                  a retry storm on real sockets\n  \
        seawall replay --all                             the incidents of the library, simulated\n  \
        seawall drill --all --config seawall.toml        what they would do to your configuration\n\n\
        Exit codes: 0 done, 1 failed, 2 wrong command line or config file (nothing was started), 3 stopped before\n\
        everything had finished."
)]
pub struct Cli {
    /// What is logged to standard error: `error`, `warn`, `info`, `debug`, or a filter such as `seawall_proxy=debug`.
    #[arg(long, global = true, env = "SEAWALL_LOG", default_value = "info", value_name = "FILTER")]
    pub log: String,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Routes requests over deployments; without a config, over a simulated fleet.
    Serve(serve::Serve),
    /// Checks a config file and reports all of its mistakes at once.
    Check(check::Check),
    /// Writes a commented config file to start from.
    Init(init::Init),
    /// Runs simulated inference servers with faults that can be switched on.
    Fleet(fleet::Fleet),
    /// Sends load at a fixed rate and reports what came of it.
    Load(load::Load),
    /// Replays an incident as it happened and with Seawall, and checks it against what was published.
    Replay(replay::Replay),
    /// Lets an incident's mechanism happen to your configuration and says what would be lost and what decides it.
    Drill(drill::Drill),
    /// Lets a retry storm happen on real sockets, through Seawall or any balancer, and judges what was served.
    Storm(storm::Storm),
    /// Runs the simulator's own studies: the metastability map, the retry profiles, its benchmark.
    Sim(sim::Sim),
}
