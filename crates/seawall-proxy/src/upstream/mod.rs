//! Step 8: one attempt at one deployment, paid for by a permit.

pub mod attempt;
pub mod credential;
pub mod poll;
pub mod pool;
pub mod tls;

use credential::CredentialSource;
use http::HeaderValue;
use pool::ConnectionPool;
use seawall_config::UpstreamConfig;
use seawall_wire::dialect::Dialect;
use std::sync::Arc;

/// Connections to one upstream at the most: a bound, not a policy; capacity is the engine's.
pub const MAX_CONNECTIONS: usize = 4_096;

/// How one deployment is reached.
#[derive(Debug)]
pub struct Upstream {
    /// As configured.
    pub config: UpstreamConfig,
    /// What it speaks.
    pub dialect: Dialect,
    /// The `Host` header.
    pub host: HeaderValue,
    /// Its connections.
    pub connections: ConnectionPool,
    /// What identifies us there.
    pub credential: Arc<CredentialSource>,
}
