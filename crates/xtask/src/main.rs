//! `cargo xtask`: checks, generators, tests and recorded measurements of this repository.

use clap::{Parser, Subcommand};
use std::process::ExitCode;
use xtask::{
    Failure, ci, deny, evidence, generate, layers, purity, report, repository::Repository, spelling, test, tidy,
};

/// Checks, generators, tests and recorded measurements of this repository.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Run every test, after installing the pinned tools that they need
    Test(test::Options),
    /// Run the whole gate: format, lints, documentation, layers, tidiness, licences, tests
    Ci,
    /// Write the reference pages under `docs/reference/`
    Generate {
        /// Write nothing; fail and list the pages that are out of date
        #[arg(long)]
        check: bool,
    },
    /// Check which crate may reach which, on the dependency graph
    Layers,
    /// Check that the pure crates stay free of the standard library
    Purity,
    /// Check the rules about files: sizes, module documentation, Markdown, change notes
    Tidy,
    /// Check licences, banned crates and sources of the dependencies
    Deny,
    /// Check the spelling of code and texts
    Spelling,
    /// Run long measurements and record them in `docs/benchmarks/`
    Evidence {
        /// The measurements to run; `list` names them
        #[arg(required = true)]
        names: Vec<String>,
        #[command(flatten)]
        choice: evidence::Choice,
    },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(arguments.task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            report::problem(&failure.to_string());
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> Result<(), Failure> {
    let repository = Repository::here();
    match task {
        Task::Test(options) => test::run(&repository, &options),
        Task::Ci => ci::run(&repository),
        Task::Generate { check: true } => generate::check(&repository),
        Task::Generate { check: false } => generate::write(&repository),
        Task::Layers => layers::check(&repository),
        Task::Purity => purity::check(&repository),
        Task::Tidy => tidy::check(&repository),
        Task::Deny => deny::check(&repository),
        Task::Spelling => spelling::check(&repository),
        Task::Evidence { names, choice } => evidence::run(&repository, &names, &choice),
    }
}
