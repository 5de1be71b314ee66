//! Spelling of code and texts, by typos and `typos.toml`.

use crate::repository::Repository;
use crate::tools::python;
use crate::{Failure, command};

/// Checks every file that git would not ignore.
pub fn check(repository: &Repository) -> Result<(), Failure> {
    let programs = python::install(repository, python::CHECKS)?;
    let mut typos = command::program(&programs.join("typos"));
    command::run(typos.current_dir(repository.root()).args(["--format", "brief"]))
}
