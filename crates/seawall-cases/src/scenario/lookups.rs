//! Metadata: callers with a cache, a backend on nodes with connection tables, and the tiers behind it.

use super::events::HealthDependence;
use super::units::Span;
use schemars::JsonSchema;
use serde::Deserialize;

/// A service whose instances keep what they looked up.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LookupCache {
    /// Its name.
    pub name: String,
    /// Where it looks up what it does not have.
    pub to: String,
    /// Its instances, each with a cache of its own; a request goes to one at random.
    #[schemars(range(min = 1, max = 10_000))]
    pub instances: u32,
    /// How long an instance keeps what it looked up, from the lookup on; reading it does not make it stay longer.
    pub keeps: Span,
    /// Whether the caches are as full at the start as they are on any day. Only for populations with accounts.
    #[serde(default)]
    pub starts_warm: bool,
    /// How it retries lookups.
    #[serde(default)]
    pub retry: super::Retry,
    /// How long it waits for the answer to one attempt of a lookup.
    pub attempt_timeout: Option<Span>,
}

/// A service on nodes, each with one table of connections that its instances share.
///
/// A request takes one place in the table of its instance's node for each tier that it is read from; without a free
/// place the connection is refused and the request fails. An instance does not notice that a caller has left: it goes
/// on, and the place stays taken until the tier has answered.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// Its name.
    pub name: String,
    /// Nodes.
    #[schemars(range(min = 1, max = 10_000))]
    pub nodes: u32,
    /// Instances, spread evenly over the nodes; requests go to a healthy one at random.
    #[schemars(range(min = 1, max = 10_000))]
    pub instances: u32,
    /// Outbound connections that one node can have. Scales.
    #[schemars(range(min = 1))]
    pub ports_per_node: u32,
    /// How long a connection's place stays taken after the connection is closed.
    pub port_hold_after: Span,
    /// Time that an instance itself spends on a request, without any connection; twice the compute halves it.
    #[serde(default)]
    pub own_time: Span,
    /// Time until a new instance, or one that an event restarts, runs; without it, the `restart` of the health check.
    pub start: Option<Span>,
    /// The tier that every request is read from.
    pub to: String,
    /// The tier that some requests are read from as well.
    pub database: String,
    /// The part of requests that also read the database.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub database_share: f64,
    /// How the health of its instances is judged.
    pub health: HealthCheck,
}

/// A health check that restarts instances. An instance that has started serves from its first check that passes.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HealthCheck {
    /// Time between two checks of one instance.
    pub every: Span,
    /// How far that time varies, as a part of it.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub every_spread: f64,
    /// Checks in a row that have to fail for a restart.
    #[schemars(range(min = 1, max = 100))]
    pub misses: u32,
    /// Time until an instance runs again that the check has restarted, the growing waits of a restart loop included.
    pub restart: Span,
    /// How far that time varies, as a part of it.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub restart_spread: f64,
    /// What the check needs.
    pub depends_on: HealthDependence,
}

/// A single queue with a finite rate. What it has taken it also serves when the caller has left.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tier {
    /// Its name.
    pub name: String,
    /// Requests that it serves a second, one after the other; 0: as many as come. Scales.
    #[serde(default)]
    #[schemars(range(min = 0.0))]
    pub rate_per_second: f64,
    /// Time of one request without a queue.
    pub latency: Span,
}
