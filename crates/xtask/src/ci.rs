//! `cargo xtask ci`: the whole gate, one step after the other, the quick ones first.

use crate::clock::Stopwatch;
use crate::repository::Repository;
use crate::{Failure, command, deny, generate, layers, purity, report, spelling, test, tidy};

/// One step of the gate.
struct Step {
    name: &'static str,
    /// The command that runs this step alone.
    again: &'static str,
    run: fn(&Repository) -> Result<(), Failure>,
}

/// In this order. What takes seconds comes first; the tests, which print their own closing lines, come last.
const STEPS: &[Step] = &[
    Step { name: "format", again: "cargo fmt --all -- --check", run: format },
    Step { name: "tidy", again: "cargo xtask tidy", run: tidy::check },
    Step { name: "spelling", again: "cargo xtask spelling", run: spelling::check },
    Step { name: "purity", again: "cargo xtask purity", run: purity::check },
    Step { name: "layers", again: "cargo xtask layers", run: layers::check },
    Step { name: "clippy", again: "cargo clippy --workspace --all-targets -- -D warnings", run: clippy },
    Step {
        name: "documentation",
        again: "RUSTDOCFLAGS='-D warnings' cargo doc --no-deps --workspace",
        run: documentation,
    },
    Step { name: "generated pages", again: "cargo xtask generate --check", run: generate::check },
    Step { name: "dependencies", again: "cargo xtask deny", run: deny::check },
    Step { name: "tests", again: "cargo xtask test", run: tests },
];

/// Runs the steps until one fails.
pub fn run(repository: &Repository) -> Result<(), Failure> {
    let whole = Stopwatch::start();
    for step in STEPS {
        report::say(&format!("== {}: {}", step.name, step.again));
        let watch = Stopwatch::start();
        (step.run)(repository).map_err(|cause| Failure::Step {
            step: step.name,
            cause: Box::new(cause),
            again: step.again.to_owned(),
        })?;
        report::say(&format!("== {}: passed in {:.1} s", step.name, watch.elapsed().as_secs_f64()));
    }
    report::say(&format!("== the gate passed in {:.1} s", whole.elapsed().as_secs_f64()));
    Ok(())
}

fn format(repository: &Repository) -> Result<(), Failure> {
    cargo(repository, &["fmt", "--all", "--", "--check"])
}

fn clippy(repository: &Repository) -> Result<(), Failure> {
    cargo(repository, &["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"])
}

fn documentation(repository: &Repository) -> Result<(), Failure> {
    let mut command = command::cargo();
    command.current_dir(repository.root()).env("RUSTDOCFLAGS", "-D warnings");
    command::run(command.args(["doc", "--quiet", "--no-deps", "--workspace"]))
}

fn tests(repository: &Repository) -> Result<(), Failure> {
    test::run(repository, &test::Options::default())
}

fn cargo(repository: &Repository, arguments: &[&str]) -> Result<(), Failure> {
    command::run(command::cargo().current_dir(repository.root()).args(arguments))
}
