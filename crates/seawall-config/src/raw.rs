//! The file as it is written. The comments in here are for operators: the schema and the reference page are made from
//! them.

mod credentials;
mod mode;
mod models;
mod pools;
mod server;
mod tenants;

pub(crate) use credentials::{Credential, Entra, KeySource, SecretSource};
pub(crate) use mode::ModeName;
pub(crate) use models::{Capacity, Deployment, DialectName, KindName, Model, ToldCapacity};
pub(crate) use pools::{Ejection, Queue, Retry, Timeouts};
pub(crate) use server::{RefusalWordingText, Server};
pub(crate) use tenants::Tenant;

use schemars::JsonSchema;
use serde::Deserialize;

/// A Seawall config file, in TOML.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Seawall configuration")]
pub(crate) struct Raw {
    /// Listeners, limits and the program's own files.
    #[serde(default)]
    pub(crate) server: Server,
    /// The models that clients may ask for, each a pool of deployments.
    #[serde(default)]
    pub(crate) models: Vec<Model>,
    /// The workloads that may call, each with its own keys and rights.
    #[serde(default)]
    pub(crate) tenants: Vec<Tenant>,
}
