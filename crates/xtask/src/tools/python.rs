//! The Python clients: a virtual environment of their own.

use crate::repository::Repository;
use crate::tools::{Stamp, debian};
use crate::{Failure, command, files, report};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

const REQUIREMENTS: &str = "tools/clients/requirements.txt";

/// The interpreter of the environment, which is made if it is not there or was made from other requirements.
pub fn install(repository: &Repository) -> Result<PathBuf, Failure> {
    if !can_make_environments() {
        debian::install(&["python3", "python3-venv"], "the Python client tests")?;
    }
    let folder = repository.test_tools().join("python");
    let interpreter = folder.join("bin").join("python");
    let requirements = repository.path(REQUIREMENTS);
    let version = command::output(Command::new("python3").arg("--version"))?;
    let stamp = Stamp::new(folder.join("installed-from"), format!("{version}{}", files::read(&requirements)?));
    if stamp.holds()? && command::works(Command::new(&interpreter).arg("--version")) {
        return Ok(interpreter);
    }
    report::say(&format!("installing the Python clients of {REQUIREMENTS}"));
    stamp.remove()?;
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(Failure::file("remove", &folder))?;
    }
    command::run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    let mut pip = Command::new(&interpreter);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"]).arg(&requirements);
    command::run(&mut pip)?;
    stamp.write()?;
    Ok(interpreter)
}

fn can_make_environments() -> bool {
    command::works(Command::new("python3").args(["-c", "import venv, ensurepip"]))
}
