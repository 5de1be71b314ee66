//! Licences, banned crates and sources of the dependencies, by cargo-deny and `deny.toml`.
//!
//! The database of advisories is fetched from a host of its own and changes by the hour, so it is no part of the gate:
//! the same commit must give the same answer. Run `cargo deny check advisories` where the network allows it.

use crate::repository::Repository;
use crate::tools::rust;
use crate::{Failure, command};

/// Runs the checks.
pub fn check(repository: &Repository) -> Result<(), Failure> {
    let deny = rust::install(repository, rust::DENY)?;
    let mut checks = rust::start(rust::DENY, &deny);
    checks.current_dir(repository.root()).args(["--log-level", "warn", "check", "--hide-inclusion-graph"]);
    command::run(checks.args(["licenses", "bans", "sources"]))
}
