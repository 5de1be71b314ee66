//! Exit codes, the same for every command.

use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done: 0.
    Done,
    /// It could not do its work: 1.
    Failed,
    /// The command line or the config file is wrong; nothing was started: 2.
    Usage,
    /// It stopped before everything had finished: the drain limit was reached, or it was told twice to stop: 3.
    Cut,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Cut => 3,
        })
    }
}
