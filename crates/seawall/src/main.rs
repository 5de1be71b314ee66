//! The `seawall` program: parses the command line, runs one command, returns its exit code.

use clap::Parser;
use seawall::cli::Cli;
use std::process::ExitCode;

// Many small allocations on several threads, and memory that goes back after a burst.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    seawall::run(Cli::parse()).into()
}
