//! Programs for cargo: taken from the path if they are there, else built in a pinned version below the build folder.

use crate::repository::Repository;
use crate::{Failure, command, report};
use std::path::PathBuf;
use std::process::Command;

/// A program that cargo can build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    /// Package and program, which have the same name.
    pub name: &'static str,
    /// The version that is built where the program is missing.
    pub version: &'static str,
}

/// Runs the tests.
pub const NEXTEST: Program = Program { name: "cargo-nextest", version: "0.9.143" };
/// Judges licences, bans and sources.
pub const DENY: Program = Program { name: "cargo-deny", version: "0.20.2" };

/// The program's path.
pub fn install(repository: &Repository, program: Program) -> Result<PathBuf, Failure> {
    let on_the_path = PathBuf::from(program.name);
    let folder = repository.test_tools().join("cargo");
    let own = folder.join("bin").join(program.name);
    for found in [on_the_path, own.clone()] {
        if command::works(&mut version(program, &found)) {
            return Ok(found);
        }
    }
    let package = format!("{}@{}", program.name, program.version);
    report::say(&format!("building {package}, once; this takes some minutes"));
    command::run(command::cargo().args(["install", "--locked", "--quiet", "--root"]).arg(folder).arg(package))?;
    Ok(own)
}

/// A cargo program wants to be called as cargo calls it: with its own subcommand first.
pub fn start(program: Program, path: &PathBuf) -> Command {
    let mut command = Command::new(path);
    if program == NEXTEST {
        command.arg("nextest");
    }
    command
}

fn version(program: Program, path: &PathBuf) -> Command {
    let mut command = start(program, path);
    command.arg("--version");
    command
}
