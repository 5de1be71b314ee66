//! What the engine is told: pools, deployments, tenants and the constants of each method.
//!
//! These are checked values: `seawall-config` makes them from a file and reports every mistake there. The engine takes
//! them as they are. Every default says why it has its value.

use crate::id::{DeploymentId, PoolId};
use crate::protection::Protections;
use crate::time::Duration;
use crate::{capacity, routing};
use alloc::string::String;
use alloc::vec::Vec;

/// Everything the engine is told, one consistent snapshot.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The pools, one for each model; a [`PoolId`] is an index in here.
    pub pools: Vec<PoolSettings>,
    /// All deployments of all pools; a [`DeploymentId`] is an index in here.
    pub deployments: Vec<DeploymentSettings>,
    /// The tenants; a [`crate::id::TenantId`] is an index in here.
    pub tenants: Vec<TenantSettings>,
    /// Seed of the engine's own random choices (jitter, sampling of two candidates).
    pub seed: u64,
}

impl Settings {
    /// Puts everything in `mode`: every pool and every tenant.
    pub fn set_mode(&mut self, mode: Mode) {
        self.pools.iter_mut().for_each(|pool| pool.mode = mode);
        self.tenants.iter_mut().for_each(|tenant| tenant.mode = mode);
    }
}

/// Whether Seawall acts, or only says what it would do (law 12). A request is observed where its pool or its tenant is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// Requests wait, are refused, moved and tried again, and failing deployments are taken out.
    #[default]
    Enforce,
    /// Every request is forwarded at once by plain balancing; what enforcing would have done is recorded.
    Observe,
}

impl Mode {
    /// The name used in configuration, `/statusz` and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Observe => "observe",
        }
    }
}

/// One model and the deployments that serve it.
#[derive(Clone, Debug)]
pub struct PoolSettings {
    /// The model's name, as clients ask for it.
    pub name: String,
    /// Whether requests for it are held back, or only observed.
    pub mode: Mode,
    /// The deployments of this pool.
    pub deployments: Vec<DeploymentId>,
    /// The pools that take over what this one cannot serve, in order; the fallbacks of a fallback follow it. None stands
    /// here twice, nor this one itself.
    pub fallbacks: Vec<PoolId>,
    /// The pools that take a request with more tokens than this one's context holds, in order; the same holds for them.
    pub context_fallbacks: Vec<PoolId>,
    /// Name of the routing policy, one of [`crate::routing::REGISTRY`].
    pub policy: String,
    /// Name of the method that finds out how much a deployment may have in flight where no size is told, one of
    /// [`crate::capacity::REGISTRY`].
    pub discovery: String,
    /// The waiting line.
    pub queue: QueueSettings,
    /// Retries and their budget.
    pub retry: RetrySettings,
    /// Ejection of failing deployments.
    pub ejection: EjectionSettings,
    /// How long the steps of an attempt may take.
    pub timeouts: TimeoutSettings,
    /// Which protections it has.
    pub protections: Protections,
}

impl PoolSettings {
    /// One of that name with these deployments; everything else is the default.
    pub fn new(name: impl Into<String>, deployments: Vec<DeploymentId>) -> Self {
        Self {
            name: name.into(),
            mode: Mode::default(),
            deployments,
            fallbacks: Vec::new(),
            context_fallbacks: Vec::new(),
            policy: String::from(routing::REGISTRY[0].name),
            discovery: String::from(capacity::REGISTRY[0].name),
            queue: QueueSettings::default(),
            retry: RetrySettings::default(),
            ejection: EjectionSettings::default(),
            timeouts: TimeoutSettings::default(),
            protections: Protections::default(),
        }
    }
}

/// One upstream deployment of a model.
#[derive(Clone, Debug)]
pub struct DeploymentSettings {
    /// The deployment's name: unique, a label of metrics and logs.
    pub name: String,
    /// The pool it belongs to.
    pub pool: PoolId,
    /// The region it runs in, as the operator calls it.
    pub region: String,
    /// Where its data may be processed.
    pub kind: DeploymentKind,
    /// The residency boundary it stays inside (for example `eu`); `None`: it gives no such promise.
    pub boundary: Option<String>,
    /// What capacity was bought.
    pub capacity: Capacity,
    /// Share of the traffic among deployments of the same priority group; at least 1.
    pub weight: u32,
    /// Priority group: all deployments of the lowest number that can take the request come first.
    pub priority_group: u32,
    /// Whether closing a request's connection before the first byte of its answer frees the server for others; `None`:
    /// nobody has said so.
    pub cancel_frees: Option<bool>,
}

impl DeploymentSettings {
    /// One of that name in this pool: standard capacity of a size that nobody told, in a region without a name.
    pub fn new(name: impl Into<String>, pool: PoolId) -> Self {
        Self {
            name: name.into(),
            pool,
            region: String::new(),
            kind: DeploymentKind::Regional,
            boundary: None,
            capacity: Capacity::Standard { size: None },
            weight: 1,
            priority_group: 0,
            cancel_frees: None,
        }
    }
}

/// Where a deployment may process data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeploymentKind {
    /// Anywhere.
    Global,
    /// Inside a named data zone.
    DataZone,
    /// Inside one region.
    Regional,
}

/// What capacity a deployment has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capacity {
    /// Reserved: used first, and spilled over from when `size` requests are in flight or it refuses.
    Provisioned {
        /// Requests in flight that the reservation serves; at least 1.
        size: u32,
    },
    /// Paid by use, shared with others.
    Standard {
        /// Requests in flight that it is allowed to have; `None`: not limited by us.
        size: Option<u32>,
    },
}

impl Capacity {
    /// The told number of requests in flight, where there is one.
    pub const fn size(self) -> Option<u32> {
        match self {
            Self::Provisioned { size } => Some(size),
            Self::Standard { size } => size,
        }
    }
}

/// A workload with its own keys and rights.
#[derive(Clone, Debug)]
pub struct TenantSettings {
    /// The tenant's name: unique, a label of metrics and logs.
    pub name: String,
    /// Whether its requests are held back, or only observed.
    pub mode: Mode,
    /// The pools it may use, in order.
    pub pools: Vec<PoolId>,
    /// The highest criticality its requests may claim.
    pub priority_ceiling: Criticality,
    /// The residency boundary its requests must stay inside; `None`: anywhere.
    pub boundary: Option<String>,
}

impl TenantSettings {
    /// One of that name which may use these pools, claim any criticality and be served anywhere.
    pub fn new(name: impl Into<String>, pools: Vec<PoolId>) -> Self {
        let priority_ceiling = Criticality::CriticalPlus;
        Self { name: name.into(), mode: Mode::default(), pools, priority_ceiling, boundary: None }
    }
}

/// How much a request matters, from most to least (the classes of Google's "Handling Overload").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Criticality {
    /// Users see its failure at once and it is served first.
    CriticalPlus,
    /// Users see its failure: the default.
    #[default]
    Critical,
    /// A partial outage is expected and retried later.
    SheddablePlus,
    /// Batch work; frequent refusal is expected.
    Sheddable,
}

impl Criticality {
    /// All classes, most important first.
    pub const ALL: [Self; 4] = [Self::CriticalPlus, Self::Critical, Self::SheddablePlus, Self::Sheddable];

    /// The name used in configuration, headers and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CriticalPlus => "critical-plus",
            Self::Critical => "critical",
            Self::SheddablePlus => "sheddable-plus",
            Self::Sheddable => "sheddable",
        }
    }

    /// The class of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }

    /// This class, lowered to `ceiling` where it claims more.
    #[must_use]
    pub fn clamped(self, ceiling: Self) -> Self {
        self.max(ceiling)
    }
}

/// The waiting line of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueSettings {
    /// How long a request without a deadline of its own may wait for a free deployment. It bounds the wait only, never
    /// the service.
    pub patience: Duration,
    /// How many requests may wait at once (law 5).
    pub max_waiting: u32,
}

impl Default for QueueSettings {
    fn default() -> Self {
        // 10 s: measured clients read-time out after 60 to 600 s, people leave after about 10 s.
        // 10,000 waiting: at 24 KB each a quarter of a GiB, the most a default may take.
        Self { patience: Duration::from_secs(10), max_waiting: 10_000 }
    }
}

/// Retries of our own, and the one budget that pays for them (law 1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetrySettings {
    /// Attempts for one request at the most, the first included: 1 or 2.
    pub max_attempts: u32,
    /// Retries allowed for each 100 first attempts of the window.
    pub budget_percent: u32,
    /// The window the budget counts over.
    pub window: Duration,
    /// Retries that are always allowed, per second and pool.
    pub floor_per_second: u32,
    /// Attempts that never started (refused connection, "full"), allowed for each 100 first attempts of the window.
    pub not_sent_percent: u32,
}

impl Default for RetrySettings {
    fn default() -> Self {
        // Two attempts: more only multiplies load when all are failing. 10% over 10 s with a floor of one a second is
        // the field's common retry budget; a never-started attempt costs the upstream next to nothing: 20%.
        Self {
            max_attempts: 2,
            budget_percent: 10,
            window: Duration::from_secs(10),
            floor_per_second: 1,
            not_sent_percent: 20,
        }
    }
}

/// When a failing deployment is taken out, and how it comes back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EjectionSettings {
    /// Failures in a row that eject.
    pub consecutive_failures: u32,
    /// Failures of 100 outcomes in the window that eject, once there are `minimum_outcomes`.
    pub failure_percent: u32,
    /// Outcomes in the window below which the share says nothing.
    pub minimum_outcomes: u32,
    /// The window of the failure share.
    pub window: Duration,
    /// First time out; doubled with each further ejection.
    pub base_time: Duration,
    /// Longest time out.
    pub max_time: Duration,
    /// Share of a pool's deployments that may be out at once (never fewer than one allowed, never the last one).
    pub max_ejected_percent: u32,
    /// Share of healthy deployments below which health is ignored and load is spread over all.
    pub panic_percent: u32,
    /// How long a deployment that came back is given less than its share.
    pub slow_start: Duration,
}

impl Default for EjectionSettings {
    fn default() -> Self {
        // Three in a row: one failure is noise, five lose five users. 30% and 50% are the field's usual caps.
        Self {
            consecutive_failures: 3,
            failure_percent: 50,
            minimum_outcomes: 10,
            window: Duration::from_secs(10),
            base_time: Duration::from_secs(10),
            max_time: Duration::from_mins(5),
            max_ejected_percent: 30,
            panic_percent: 50,
            slow_start: Duration::from_secs(30),
        }
    }
}

/// How long the steps of one attempt may take. The host keeps these times; the engine hands them out with each attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeoutSettings {
    /// Opening a connection, TLS included.
    pub connect: Duration,
    /// From the sent request to the first byte of an answer (of a stream: its first event).
    pub first_byte: Duration,
    /// Between two pieces of a running answer.
    pub idle: Duration,
}

impl Default for TimeoutSettings {
    fn default() -> Self {
        // 600 s is what the OpenAI clients wait for an answer: long work is not an error.
        Self { connect: Duration::from_secs(5), first_byte: Duration::from_mins(10), idle: Duration::from_mins(5) }
    }
}
