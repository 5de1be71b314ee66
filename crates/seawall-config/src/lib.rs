//! Turns a config file into checked settings, or into all of its errors at once, each with file, line, column and what
//! to do about it.
//!
//! The way of a file: the parser of `toml`, which recovers and tells several syntax errors → a tree in which every value
//! knows its place → [the walk](mod@walk), which compares the tree with the schema and leaves out what is wrong → the
//! [raw types](mod@raw) → [the checks](mod@check) → a [`Config`], or [`Errors`].
//!
//! It reads files and the environment and nothing else: no socket, no clock, no async runtime. A secret is never part
//! of the file; the file names an environment variable or another file, and a [`CredentialSource`] gives the value.

mod check;
mod config;
mod endpoint;
mod errors;
mod keys;
mod node;
mod raw;
mod redact;
mod reference;
mod schema;
mod source;
mod template;
mod units;
mod walk;

pub use config::{
    AccessLog, CATCH_ALL, Config, Credential, Dialect, EntraCredential, Family, ModelConfig, OverloadStatus,
    RefusalWording, ServerConfig, UpstreamConfig,
};
pub use endpoint::{Endpoint, Scheme};
pub use errors::{Errors, Problem};
pub use reference::reference_markdown;
pub use schema::schema_json;
pub use source::{CredentialSource, LIMIT_BYTES, SourceError, SystemSource};
pub use template::{DEMO_BATCH_KEY, DEMO_KEY, DEMO_MODELS, SingleUpstream, demo, dialect_of, single_upstream};

use node::{Node, Report};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use toml::de::DeTable;

/// What the command line says instead of the file. It is checked together with the file.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// `--listen`.
    pub listen: Option<SocketAddr>,
    /// `--admin`.
    pub admin: Option<SocketAddr>,
    /// `--data-dir`.
    pub data_dir: Option<PathBuf>,
    /// `--admin-token-file`.
    pub admin_token_file: Option<PathBuf>,
}

/// Reads and checks a file, and looks its secrets up.
pub fn load(path: &Path, sources: &dyn CredentialSource, overrides: &Overrides) -> Result<Config, Errors> {
    let file = path.display().to_string();
    parse(&read(path, &file)?, &file, sources, overrides)
}

/// Reads and checks a file without looking its secrets up: it may be checked on a machine that does not have them.
pub fn check_file(path: &Path, overrides: &Overrides) -> Result<(), Errors> {
    let file = path.display().to_string();
    check_text(&read(path, &file)?, &file, overrides)
}

/// Checks a file's text, named `file` in errors, and looks its secrets up.
pub fn parse(text: &str, file: &str, sources: &dyn CredentialSource, overrides: &Overrides) -> Result<Config, Errors> {
    examine(text, file, Some(sources), overrides)
}

/// Checks a file's text without looking its secrets up.
pub fn check_text(text: &str, file: &str, overrides: &Overrides) -> Result<(), Errors> {
    // Without its secrets a config cannot serve, so nobody gets it.
    examine(text, file, None, overrides).map(drop)
}

fn read(path: &Path, file: &str) -> Result<String, Errors> {
    source::read_text(path).map_err(|error| {
        let remedy = "name a readable file with `--config FILE`; `seawall init` writes an example";
        Errors::without_text(file, format!("the config file cannot be read: {error}"), remedy)
    })
}

fn examine(
    text: &str,
    file: &str,
    sources: Option<&dyn CredentialSource>,
    overrides: &Overrides,
) -> Result<Config, Errors> {
    let mut report = Report::default();
    let config = examine_into(&mut report, text, sources, overrides);
    match config {
        Some(config) if report.problems.is_empty() => Ok(config),
        _ => Err(Errors::new(file, text, &report.secrets, report.problems)),
    }
}

/// `None`: something was reported.
fn examine_into(
    report: &mut Report,
    text: &str,
    sources: Option<&dyn CredentialSource>,
    overrides: &Overrides,
) -> Option<Config> {
    let (table, syntax_errors) = DeTable::parse_recoverable(text);
    let syntax_is_broken = !syntax_errors.is_empty();
    let mut a_header_is_broken = false;
    for error in syntax_errors {
        let span = error.span();
        a_header_is_broken |= span.as_ref().is_none_or(|span| is_in_header(text, span.start));
        let remedy = if error.message() == "duplicate key" {
            "remove one of the two; a section that repeats is written in double brackets, such as `[[tenants]]`"
        } else {
            "correct the syntax: `name = \"text\"`, `name = 20`, `[section]` or `[[list of sections]]`"
        };
        report.push(String::new(), span, error.message().to_owned(), remedy.to_owned());
    }
    if a_header_is_broken {
        // Everything below that header was read into the wrong section: more about it would mislead.
        return None;
    }
    let root = walk::fitting(Node::root(&table), report, syntax_is_broken);
    let Ok(raw) = serde_json::from_value::<raw::Raw>(root.to_json()) else {
        // The deserialiser's own message may repeat a value; where the walk let one pass, this is our mistake.
        let message = "the file fits the schema and still cannot be read: this is a mistake of Seawall";
        report.push(String::new(), None, message.to_owned(), "report it with the file, secrets removed".to_owned());
        return None;
    };
    Some(check::config(&raw, &root, &mut check::Context { report, sources, overrides }))
}

/// Whether a place is in the line of a section's header.
fn is_in_header(text: &str, position: usize) -> bool {
    let position = (0..=position.min(text.len())).rev().find(|position| text.is_char_boundary(*position)).unwrap_or(0);
    let line_start = text[..position].rfind('\n').map_or(0, |newline| newline + 1);
    text[line_start..].trim_start().starts_with('[')
}
