//! The Node clients: a project of their own, installed from its lock file.

use crate::repository::Repository;
use crate::tools::{Stamp, debian};
use crate::{Failure, command, files, report};
use std::path::PathBuf;
use std::process::Command;

const MANIFEST: &str = "tools/clients/package.json";
const LOCK: &str = "tools/clients/package-lock.json";
/// The first version with the `fetch` that the clients use.
const OLDEST_NODE: u32 = 18;

/// The project's folder, which is made if it is not there or was made from another lock file.
pub fn install(repository: &Repository) -> Result<PathBuf, Failure> {
    if !command::works(Command::new("node").arg("--version")) || !command::works(Command::new("npm").arg("--version")) {
        debian::install(&["nodejs", "npm"], "running the Node clients")?;
    }
    let version = command::output(Command::new("node").arg("--version"))?;
    refuse_old(&version)?;
    let folder = repository.test_tools().join("node");
    let (manifest, lock) = (files::read(&repository.path(MANIFEST))?, files::read(&repository.path(LOCK))?);
    let stamp = Stamp::new(folder.join("installed-from"), format!("{version}{manifest}{lock}"));
    if stamp.holds()? && folder.join("node_modules").is_dir() {
        return Ok(folder);
    }
    report::say(&format!("installing the Node clients of {MANIFEST}"));
    stamp.remove()?;
    files::write(&folder.join("package.json"), &manifest)?;
    files::write(&folder.join("package-lock.json"), &lock)?;
    let mut npm = Command::new("npm");
    npm.current_dir(&folder).args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]);
    command::run(&mut npm)?;
    stamp.write()?;
    Ok(folder)
}

fn refuse_old(version: &str) -> Result<(), Failure> {
    let major = version.trim().trim_start_matches('v').split('.').next().and_then(|major| major.parse::<u32>().ok());
    if major.is_some_and(|major| major >= OLDEST_NODE) {
        return Ok(());
    }
    Err(Failure::Missing(format!(
        "running the Node clients needs Node {OLDEST_NODE} or later, found {}; install a later one and try again",
        version.trim()
    )))
}

#[cfg(test)]
mod tests {
    use super::refuse_old;

    #[test]
    fn an_old_or_unknown_node_is_refused() {
        assert!(refuse_old("v18.0.0\n").is_ok());
        assert!(refuse_old("v22.11.0\n").is_ok());
        for version in ["v16.20.2\n", "", "nonsense"] {
            let failure = refuse_old(version).expect_err("too old");
            assert!(failure.to_string().contains("Node 18 or later"), "{failure}");
        }
    }
}
