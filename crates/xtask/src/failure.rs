//! What goes wrong, with the place and the remedy.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why a task stopped.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A program ended with a failure.
    #[error("`{command}` failed: {status}")]
    Command {
        /// The command line.
        command: String,
        /// How it ended.
        status: String,
    },
    /// A program could not be started.
    #[error("cannot start `{command}`: {source}")]
    Start {
        /// The command line.
        command: String,
        /// The cause.
        source: io::Error,
    },
    /// A file could not be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// "read", "write", "list", ...
        action: &'static str,
        /// Which file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A program printed something that this program does not understand.
    #[error("cannot understand what `{command}` printed: {reason}")]
    Answer {
        /// The command line.
        command: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Something the task needs is not on this machine.
    #[error("{0}")]
    Missing(String),
    /// A check found violations.
    #[error("{} violation(s) of {check}\n{}", list.len(), lines(list))]
    Violations {
        /// Which rules.
        check: &'static str,
        /// All of them.
        list: Vec<Violation>,
    },
    /// A step of the gate failed.
    #[error("the step `{step}` failed: {cause}\nrun it alone with: {again}")]
    Step {
        /// Which step.
        step: &'static str,
        /// Why.
        cause: Box<Self>,
        /// The command that runs only this step.
        again: String,
    },
    /// The task was asked for something it does not know.
    #[error("{0}")]
    Usage(String),
}

impl Failure {
    /// For `map_err` of file operations.
    pub fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::File { action, path, source }
    }

    /// `Ok` for no violations.
    pub fn of(check: &'static str, list: Vec<Violation>) -> Result<(), Self> {
        if list.is_empty() { Ok(()) } else { Err(Self::Violations { check, list }) }
    }
}

/// One place that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// The file (relative to the repository), with a line where there is one, or the crate.
    pub place: String,
    /// What is wrong there, and what to do about it.
    pub message: String,
}

impl Violation {
    /// A violation at a named place.
    pub fn new(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self { place: place.into(), message: message.into() }
    }

    /// A violation at a line, counted from 1.
    pub fn at(file: &str, line: usize, message: impl Into<String>) -> Self {
        Self::new(format!("{file}:{line}"), message)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.place, self.message)
    }
}

fn lines(list: &[Violation]) -> String {
    let lines: Vec<String> = list.iter().map(|violation| format!("  {violation}")).collect();
    lines.join("\n")
}
