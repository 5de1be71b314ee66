//! Turns a config file into checked settings, or into all of its errors at once, each with file, line, column and what
//! to do about it.
//!
//! The way of a file: [`seawall_document`], which compares its text with the schema and leaves out what is wrong → the
//! [raw types](mod@raw) → [the checks](mod@check) → a [`Config`], or [`Errors`].
//!
//! It reads files and the environment and nothing else: no socket, no clock, no async runtime. A secret is never part
//! of the file; the file names an environment variable or another file, and a [`CredentialSource`] gives the value.

mod check;
mod config;
mod endpoint;
mod keys;
mod plan;
mod raw;
mod reference;
mod schema;
mod source;
mod template;
mod units;

pub use config::{
    AccessLog, CATCH_ALL, Config, Credential, Dialect, EntraCredential, Family, ModelConfig, OverloadStatus,
    RefusalWording, ServerConfig, UpstreamConfig,
};
pub use endpoint::{Endpoint, Scheme};
pub use plan::{KeyPlace, Plan};
pub use reference::reference_markdown;
pub use schema::schema_json;
pub use seawall_document::{Errors, Problem};
pub use source::{CredentialSource, LIMIT_BYTES, SourceError, SystemSource};
pub use template::{DEMO_BATCH_KEY, DEMO_KEY, DEMO_MODELS, SingleUpstream, demo, dialect_of, single_upstream};

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

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
    let (raw, mut places) = seawall_document::read::<raw::Raw>(text, file, schema::schema())?;
    let (root, report) = places.parts();
    let config = check::config(&raw, root, &mut check::Context { report, sources, overrides });
    places.finish(config)
}
