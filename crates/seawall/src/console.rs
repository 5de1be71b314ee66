//! What people and machines read: results on standard output, everything else on standard error.

use std::io::{IsTerminal, Write};

/// Writes a result for a pipe or a file. A reader that is gone wants no more.
pub(crate) fn result(text: &str) {
    drop(std::io::stdout().lock().write_all(text.as_bytes()));
}

/// Writes a message for people.
pub(crate) fn message(text: &str) {
    drop(writeln!(std::io::stderr().lock(), "{text}"));
}

/// Writes an error for people.
pub(crate) fn error(text: &str) {
    message(&format!("error: {text}"));
}

/// Whether standard output takes colour.
pub(crate) fn is_result_coloured() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// Whether standard error takes colour.
pub(crate) fn is_coloured() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}
