//! Starts other programs: cargo, git, pip, npm, apt-get.

use crate::Failure;
use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

/// The cargo that started this program, or the one on the path.
pub fn cargo() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")))
}

/// Runs a program to its end; its output goes where ours goes.
pub fn run(command: &mut Command) -> Result<(), Failure> {
    let line = line(command);
    let status =
        command.stdin(Stdio::null()).status().map_err(|source| Failure::Start { command: line.clone(), source })?;
    if status.success() { Ok(()) } else { Err(Failure::Command { command: line, status: status.to_string() }) }
}

/// Runs a program to its end and returns what it printed; its errors are shown only if it fails.
pub fn output(command: &mut Command) -> Result<String, Failure> {
    let line = line(command);
    let output =
        command.stdin(Stdio::null()).output().map_err(|source| Failure::Start { command: line.clone(), source })?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::Command { command: line, status: format!("{}\n{}", output.status, errors.trim_end()) });
    }
    String::from_utf8(output.stdout).map_err(|error| Failure::Answer { command: line, reason: error.to_string() })
}

/// Whether a program runs and ends well; nothing is shown.
pub fn works(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// A program of the tests' tools, by its path.
pub fn program(path: &Path) -> Command {
    Command::new(path)
}

/// The command as a reader would type it.
pub fn line(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|argument| argument.to_string_lossy().into_owned()));
    if let Some(first) = words.first_mut()
        && let Some(name) = Path::new(first.as_str()).file_name()
    {
        *first = name.to_string_lossy().into_owned();
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_program_is_reported_with_its_errors() {
        let failure = output(cargo().arg("no-such-subcommand-here")).expect_err("cargo knows no such subcommand");
        let text = failure.to_string();
        assert!(text.contains("no-such-subcommand-here"), "{text}");
    }

    #[test]
    fn a_missing_program_is_reported_by_name() {
        let failure = run(&mut Command::new("seawall-has-no-such-program")).expect_err("there is no such program");
        assert!(failure.to_string().starts_with("cannot start `seawall-has-no-such-program`"), "{failure}");
        assert!(!works(&mut Command::new("seawall-has-no-such-program")));
    }

    #[test]
    fn the_line_names_the_program_without_its_folder() {
        assert_eq!(line(Command::new("/opt/tools/npm").arg("ci")), "npm ci");
    }
}
