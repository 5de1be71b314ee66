//! Turns a config file into checked settings, or into all of its errors at once, each with file, line, column and what
//! to do about it.
//!
//! It reads files and the environment and nothing else: no socket, no clock, no async runtime. A secret is never part
//! of the file; the file names an environment variable or another file, and a [`CredentialSource`] gives the value.

mod config;
mod endpoint;
mod errors;
mod keys;
mod redact;
mod source;

pub use config::{
    AccessLog, CATCH_ALL, Config, Credential, Dialect, EntraCredential, Family, ModelConfig, OverloadStatus,
    RefusalWording, ServerConfig, UpstreamConfig,
};
pub use endpoint::{Endpoint, Scheme};
pub use errors::{Errors, Problem};
pub use source::{CredentialSource, LIMIT_BYTES, SourceError, SystemSource};

use std::net::SocketAddr;
use std::path::PathBuf;

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
