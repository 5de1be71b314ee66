//! What a checked file means. Nothing in here can be built outside this crate, so whoever holds a [`Config`] holds a
//! checked one.

use crate::endpoint::Endpoint;
use crate::keys::KeyTable;
use seawall_core::id::{DeploymentId, PoolId, TenantId};
use seawall_core::settings::Settings;
use secrecy::SecretString;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The name of a model entry that takes every model which no other entry names.
pub const CATCH_ALL: &str = "*";

/// A checked configuration. Cheap to share, never changed: a reload makes a new one.
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) core: Arc<Settings>,
    pub(crate) server: ServerConfig,
    pub(crate) models: Vec<ModelConfig>,
    pub(crate) upstreams: Vec<UpstreamConfig>,
    pub(crate) keys: KeyTable,
    pub(crate) names: HashMap<String, PoolId>,
    pub(crate) anonymous: Option<TenantId>,
}

impl Config {
    /// What the engine is told; ids are indices in here.
    pub fn core(&self) -> &Arc<Settings> {
        &self.core
    }

    /// Listeners, limits and the program's own files.
    pub fn server(&self) -> &ServerConfig {
        &self.server
    }

    /// The models in the order of the file; the index is the [`PoolId`].
    pub fn models(&self) -> &[ModelConfig] {
        &self.models
    }

    /// How each deployment is reached; the index is the [`DeploymentId`].
    pub fn upstreams(&self) -> &[UpstreamConfig] {
        &self.upstreams
    }

    /// How one deployment is reached.
    pub fn upstream(&self, deployment: DeploymentId) -> &UpstreamConfig {
        &self.upstreams[deployment.index()]
    }

    /// One model.
    pub fn model(&self, pool: PoolId) -> &ModelConfig {
        &self.models[pool.index()]
    }

    /// The tenant that owns the key a client presented; `None`: nobody's key.
    pub fn tenant_of(&self, presented_key: &[u8]) -> Option<TenantId> {
        self.keys.tenant_of(presented_key)
    }

    /// The tenant of clients that present any key or none: only where `[server] allow_anonymous = true`.
    pub fn anonymous_tenant(&self) -> Option<TenantId> {
        self.anonymous
    }

    /// The pool of a model's name or alias, or the catch-all pool (`name = "*"`) where there is one.
    pub fn pool_of(&self, model: &str) -> Option<PoolId> {
        self.names.get(model).or_else(|| self.names.get(CATCH_ALL)).copied()
    }

    /// The models that a tenant may use, in the order of the file.
    pub fn models_of(&self, tenant: TenantId) -> impl Iterator<Item = &ModelConfig> {
        self.core.tenants[tenant.index()].pools.iter().map(|pool| self.model(*pool))
    }
}

/// A model that clients may ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelConfig {
    /// Its pool.
    pub pool: PoolId,
    /// Its name, [`CATCH_ALL`] for every other model.
    pub name: String,
    /// More names for it.
    pub aliases: Vec<String>,
    /// Which clients it serves.
    pub family: Family,
}

/// Which clients' API a model serves. OpenAI and Azure OpenAI clients can use each other's upstreams; Anthropic's
/// cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// OpenAI's and Azure OpenAI's API.
    OpenAi,
    /// Anthropic's API.
    Anthropic,
}

/// What an upstream speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// OpenAI's API, as vLLM, SGLang, llama.cpp and many more speak it.
    OpenAi,
    /// Azure OpenAI.
    Azure,
    /// Anthropic's API.
    Anthropic,
}

impl Dialect {
    /// The name in the file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Azure => "azure",
            Self::Anthropic => "anthropic",
        }
    }

    /// The clients it can serve.
    pub const fn family(self) -> Family {
        match self {
            Self::OpenAi | Self::Azure => Family::OpenAi,
            Self::Anthropic => Family::Anthropic,
        }
    }
}

/// How a deployment is reached.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UpstreamConfig {
    /// Where it is.
    pub endpoint: Endpoint,
    /// What it speaks.
    pub dialect: Dialect,
    /// What it calls the model; `None`: the name that the client asked for (a catch-all model only). For Azure this is
    /// the deployment's name in the path.
    pub model: Option<String>,
    /// Azure's `api-version`, only where the dialect is Azure; `None`: Azure's versionless `/openai/v1/` path.
    pub api_version: Option<String>,
    /// How Seawall identifies itself there.
    pub credential: Credential,
    /// Certificates of the private CA to trust there, in PEM, instead of the system's; only with https.
    pub ca_pem: Option<String>,
    /// The path of the page on which the server tells how much it has to do; `None`: it is not asked.
    pub metrics_path: Option<String>,
}

/// How Seawall identifies itself at an upstream. `Debug` shows no secret.
#[derive(Clone, Debug)]
pub enum Credential {
    /// Not at all.
    None,
    /// A key in the dialect's own header.
    Key(SecretString),
    /// Microsoft Entra ID, the flow of client credentials.
    Entra(EntraCredential),
    /// The managed identity of the Azure machine this runs on.
    ManagedIdentity {
        /// The user-assigned identity; `None`: the machine's own.
        client_id: Option<String>,
    },
}

/// An application registered with Microsoft Entra ID.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EntraCredential {
    /// The directory.
    pub tenant_id: String,
    /// The application.
    pub client_id: String,
    /// Its secret.
    pub client_secret: SecretString,
    /// Who gives the tokens.
    pub authority: Endpoint,
}

/// Listeners, limits and the program's own files.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerConfig {
    /// Where clients connect.
    pub listen: SocketAddr,
    /// Where operators connect.
    pub admin: SocketAddr,
    /// The folder of the program's own files.
    pub data_dir: PathBuf,
    /// The file of the token that admin calls which change something must carry; made if it is absent.
    pub admin_token_file: PathBuf,
    /// How long running requests may go on after SIGTERM.
    pub drain_limit: Duration,
    /// The largest request body.
    pub max_body_bytes: u64,
    /// How long a client may take to send a request's head.
    pub header_timeout: Duration,
    /// How long a client may take to send a request's body.
    pub body_timeout: Duration,
    /// Connections of clients at once.
    pub max_connections: u32,
    /// Bytes of request bodies held at once.
    pub buffered_bytes: u64,
    /// The status of a refusal because capacity is exhausted.
    pub overload_status: OverloadStatus,
    /// Whether refusals are worded for each client.
    pub refusal_wording: RefusalWording,
    /// Where the access log goes.
    pub access_log: AccessLog,
}

/// The status of a refusal because capacity is exhausted (contract: `overload_status`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverloadStatus {
    /// 429: every measured client waits as it is told.
    TooManyRequests,
    /// 503: for outer balancers and error budgets that need a 5xx.
    ServiceUnavailable,
    /// 529: Anthropic's "overloaded".
    Overloaded,
}

impl OverloadStatus {
    /// The number.
    pub const fn code(self) -> u16 {
        match self {
            Self::TooManyRequests => 429,
            Self::ServiceUnavailable => 503,
            Self::Overloaded => 529,
        }
    }
}

/// How refusals without a return time are worded (contract: `refusal_wording`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalWording {
    /// The same for all clients.
    Uniform,
    /// The stricter form for the user agents that obey it.
    ByClient,
}

/// Where the access log goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessLog {
    /// Standard output.
    Stdout,
    /// Nowhere.
    Off,
    /// Appended to a file.
    File(PathBuf),
}
