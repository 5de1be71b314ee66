//! The command line of Seawall: one module a command, one place for exit codes and one for what people read.

pub mod cli;
mod clock;
mod commands;
mod console;
mod durations;
mod exit;
mod figures;
mod nearest;
mod parallel;
mod plot;
mod tables;

pub use exit::Exit;

use cli::{Cli, Command};
use tracing_subscriber::EnvFilter;

/// Runs the command that was asked for.
pub fn run(cli: Cli) -> Exit {
    let filter = EnvFilter::try_new(&cli.log).unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false).init();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            console::error(&format!("cannot start the runtime: {error}"));
            return Exit::Failed;
        }
    };
    let exit = runtime.block_on(async {
        match cli.command {
            Command::Serve(serve) => commands::serve::run(serve).await,
            Command::Check(check) => commands::check::run(&check),
            Command::Init(init) => commands::init::run(&init),
            Command::Fleet(fleet) => commands::fleet::run(fleet).await,
            Command::Load(load) => commands::load::run(load).await,
            Command::Drill(drill) => commands::drill::run(&drill),
            Command::Replay(replay) => commands::replay::run(&replay),
            Command::Storm(storm) => commands::storm::run(storm).await,
            Command::Sim(sim) => commands::sim::run(&sim),
        }
    });
    // Tasks that still wait for somebody else must not hold the process.
    runtime.shutdown_background();
    exit
}
