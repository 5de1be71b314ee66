//! Node programs: each list of packages a project of its own, installed from its lock file.

use crate::repository::Repository;
use crate::tools::{Stamp, debian};
use crate::{Failure, command, files, report};
use std::path::PathBuf;
use std::process::Command;

/// A project with a lock file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Project {
    /// The folder of `package.json` and `package-lock.json`, relative to the repository.
    pub source: &'static str,
    /// Where it is installed, below the tests' tools.
    pub folder: &'static str,
    /// What misses it, for messages.
    pub purpose: &'static str,
}

/// The clients that the tests run.
pub const CLIENTS: Project = Project { source: "tools/clients", folder: "node", purpose: "running the Node clients" };
/// A balancer that Seawall is measured beside.
pub const PORTKEY: Project =
    Project { source: "tools/peers", folder: "peer-portkey", purpose: "measuring Portkey's gateway" };
/// The first version with the `fetch` that the clients use.
const OLDEST_NODE: u32 = 18;

/// The project's folder, which is made if it is not there or was made from another lock file.
pub fn install(repository: &Repository, project: Project) -> Result<PathBuf, Failure> {
    if !command::works(Command::new("node").arg("--version")) || !command::works(Command::new("npm").arg("--version")) {
        debian::install(&["nodejs", "npm"], project.purpose)?;
    }
    let version = command::output(Command::new("node").arg("--version"))?;
    refuse_old(&version, project.purpose)?;
    let folder = repository.test_tools().join(project.folder);
    let source = repository.path(project.source);
    let (manifest, lock) =
        (files::read(&source.join("package.json"))?, files::read(&source.join("package-lock.json"))?);
    let stamp = Stamp::new(folder.join("installed-from"), format!("{version}{manifest}{lock}"));
    if stamp.holds()? && folder.join("node_modules").is_dir() {
        return Ok(folder);
    }
    report::say(&format!("installing the packages of {}/package.json", project.source));
    stamp.remove()?;
    files::write(&folder.join("package.json"), &manifest)?;
    files::write(&folder.join("package-lock.json"), &lock)?;
    let mut npm = Command::new("npm");
    npm.current_dir(&folder).args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]);
    command::run(&mut npm)?;
    stamp.write()?;
    Ok(folder)
}

fn refuse_old(version: &str, purpose: &str) -> Result<(), Failure> {
    let major = version.trim().trim_start_matches('v').split('.').next().and_then(|major| major.parse::<u32>().ok());
    if major.is_some_and(|major| major >= OLDEST_NODE) {
        return Ok(());
    }
    Err(Failure::Missing(format!(
        "{purpose} needs Node {OLDEST_NODE} or later, found {}; install a later one and try again",
        version.trim()
    )))
}

#[cfg(test)]
mod tests {
    use super::refuse_old;

    #[test]
    fn an_old_or_unknown_node_is_refused() {
        assert!(refuse_old("v18.0.0\n", "it").is_ok());
        assert!(refuse_old("v22.11.0\n", "it").is_ok());
        for version in ["v16.20.2\n", "", "nonsense"] {
            let failure = refuse_old(version, "it").expect_err("too old");
            assert!(failure.to_string().contains("Node 18 or later"), "{failure}");
        }
    }
}
