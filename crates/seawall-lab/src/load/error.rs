//! What can be wrong with a run before it starts.

use std::io;

/// A run that cannot start. Nothing has been sent. Faults of the target while the run goes on are results, in the
/// report, and no errors.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// An option's value does not work.
    #[error("{option}: {problem}; {remedy}")]
    Invalid {
        /// The option as the command line names it.
        option: &'static str,
        /// What is wrong, with the value.
        problem: String,
        /// What to write instead.
        remedy: String,
    },
    /// The target's host has no address.
    #[error("target: cannot find the address of `{host}`: {source}; check the name, or write the address itself")]
    Resolve {
        /// Host and port.
        host: String,
        /// The resolver's error.
        source: io::Error,
    },
}

impl LoadError {
    pub(super) fn invalid(option: &'static str, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Invalid { option, problem: problem.into(), remedy: remedy.into() }
    }
}
