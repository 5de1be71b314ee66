//! The Rust client that the tests run: a cargo project of its own, built from its lock file.
//!
//! It is no dependency of the workspace, not even of tests: it brings reqwest, a second HTTP client, which `deny.toml`
//! bans and which would turn on features of crates that the product shares with it.

use crate::repository::Repository;
use crate::{Failure, command};
use std::path::PathBuf;

const MANIFEST: &str = "tools/clients/async-openai/Cargo.toml";
const PROGRAM: &str = "async-openai-surface";

/// The program's path. Cargo itself knows whether it has to be built again.
pub fn install(repository: &Repository) -> Result<PathBuf, Failure> {
    let folder = repository.test_tools().join("async-openai");
    let mut build = command::cargo();
    build.args(["build", "--locked", "--quiet", "--manifest-path"]).arg(repository.path(MANIFEST));
    command::run(build.arg("--target-dir").arg(&folder))?;
    Ok(folder.join("debug").join(PROGRAM))
}
