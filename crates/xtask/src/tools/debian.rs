//! Debian's packages: installed when we are root and `apt-get` is there; otherwise the reader is told the command.

use crate::{Failure, command, report};
use std::process::Command;

/// Installs `packages`. `purpose` says what misses them.
pub fn install(packages: &[&str], purpose: &str) -> Result<(), Failure> {
    if !is_root() || !command::works(Command::new("apt-get").arg("--version")) {
        return Err(Failure::Missing(remedy(packages, purpose)));
    }
    report::say(&format!("installing {} for {purpose}", packages.join(", ")));
    command::run(apt_get().arg("update").arg("--quiet"))?;
    command::run(apt_get().args(["install", "--quiet", "--yes", "--no-install-recommends"]).args(packages))
}

/// What a reader without root's rights has to do.
fn remedy(packages: &[&str], purpose: &str) -> String {
    format!(
        "{purpose} needs what is not installed: {what}; run: sudo apt-get install {what}\n\
         (on another system: its packages of the same names), then try again",
        what = packages.join(" ")
    )
}

fn apt_get() -> Command {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive");
    command
}

fn is_root() -> bool {
    command::output(Command::new("id").arg("-u")).is_ok_and(|user| user.trim() == "0")
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_remedy_is_a_command_to_run() {
        let text = super::remedy(&["nodejs", "npm"], "running the Node clients");
        assert!(text.contains("sudo apt-get install nodejs npm\n"), "{text}");
        assert!(text.starts_with("running the Node clients needs what is not installed: nodejs npm"), "{text}");
    }
}
