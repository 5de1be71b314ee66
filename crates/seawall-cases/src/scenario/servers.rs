//! Routers, model capacity, workers and result caches.

use super::units::Span;
use schemars::JsonSchema;
use serde::Deserialize;

/// A naive router: a fleet of equal instances behind a balancer that picks one at random.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Router {
    /// Its name.
    pub name: String,
    /// The region it runs in.
    #[serde(default)]
    pub region: String,
    /// Where it sends attempts: one of these at random among those that serve the request's model.
    #[schemars(length(min = 1))]
    pub to: Vec<String>,
    /// Instances at the start.
    #[schemars(range(min = 1, max = 10_000))]
    pub instances: u32,
    /// Attempts that one instance handles a second, one after the other. Scales.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub rate_per_second: f64,
    /// Attempts in flight (queued or waiting for a model) that fit into the memory of one instance; one more and the
    /// instance crashes, and all that it held fails. Scales.
    #[schemars(range(min = 1))]
    pub memory_in_flight: u32,
    /// Time until a crashed instance is back.
    pub restart: Span,
    /// How far that time varies, as a part of it.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub restart_spread: f64,
    /// How long it waits for a model.
    pub attempt_timeout: Option<Span>,
    /// Attempts that it makes itself for one request, the first included.
    #[serde(default = "once")]
    #[schemars(range(min = 1, max = 10))]
    pub attempts: u32,
    /// Features that cost memory while they are on.
    #[serde(default)]
    pub feature: Vec<Feature>,
    /// How it scales out.
    pub autoscaler: Option<RouterScaling>,
}

const fn once() -> u32 {
    1
}

/// A feature of a router.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Feature {
    /// Its name, for events.
    pub name: String,
    /// Part of the memory that it takes while it is on, in percent.
    #[schemars(range(min = 0.0, max = 90.0))]
    pub memory_percent: f64,
}

/// Scaling out by whole instances.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RouterScaling {
    /// Instances that the quota allows.
    pub quota: u32,
    /// At most one new instance in this time.
    pub every: Span,
    /// Time until a new instance serves.
    pub start: Span,
    /// It scales out while the instances that are up are busier than this, or one of them crashed since the last look.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub busy_above: f64,
}

/// Model capacity that is sold by the second. A request for which there is none keeps that verdict for a while: its
/// placement does not change within seconds.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelPool {
    /// Its name.
    pub name: String,
    /// The models it serves; empty: all.
    #[serde(default)]
    pub models: Vec<String>,
    /// The region it runs in.
    #[serde(default)]
    pub region: String,
    /// Distinct requests that it places a second. Scales.
    #[schemars(range(min = 0.0))]
    pub capacity_per_second: f64,
    /// How far placements may run ahead of the rate.
    #[serde(default = "one_second")]
    pub burst: Span,
    /// Time to serve a request.
    pub latency: Span,
    /// Time to refuse one.
    pub refusal_latency: Span,
    /// How long a placement, or the lack of one, is remembered.
    pub remembers: Span,
    /// Which workload's requests are told no; empty: all. The others have capacity of their own here.
    #[serde(default)]
    pub limits: Vec<String>,
}

const fn one_second() -> Span {
    Span::from_secs(1)
}

/// A serving engine with continuous batching.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Engine {
    /// Its name.
    pub name: String,
    /// The models it serves; empty: all.
    #[serde(default)]
    pub models: Vec<String>,
    /// The region it runs in.
    #[serde(default)]
    pub region: String,
    /// Requests that run at once. Scales.
    #[schemars(range(min = 1))]
    pub slots: u32,
    /// Requests that may wait inside; more are refused. Scales.
    #[serde(default = "no_waiting")]
    pub waiting_limit: u32,
    /// Service of one request, where it does not depend on its tokens.
    pub fixed_service: Option<Span>,
    /// Whether a request takes as long as its own `work` says. Otherwise its tokens decide, or `fixed_service`.
    #[serde(default)]
    pub takes_work: bool,
    /// Prompt tokens a second.
    #[serde(default = "prefill")]
    #[schemars(range(min = 1))]
    pub prefill_tokens_per_second: u32,
    /// Answer tokens a second for one request that runs alone.
    #[serde(default = "decode")]
    #[schemars(range(min = 1))]
    pub decode_tokens_per_second: u32,
    /// How much each further running request slows the answers of the others, in percent.
    #[serde(default = "batch_slowdown")]
    #[schemars(range(min = 0.0, max = 100.0))]
    pub batch_slowdown_percent: f64,
    /// Whether it goes on with a request whose caller has left.
    #[serde(default)]
    pub works_on: bool,
    /// Whether those that wait take turns at random, not in the order in which they came.
    #[serde(default)]
    pub random_order: bool,
}

const fn no_waiting() -> u32 {
    0
}

const fn prefill() -> u32 {
    8_000
}

const fn decode() -> u32 {
    50
}

const fn batch_slowdown() -> f64 {
    1.0
}

/// A pool of workers that process documents on shared accelerators.
///
/// An ordinary document runs at the speed min(1, (accelerator units - those of running large documents) / running
/// ordinary documents). A large one takes its units for a fixed time.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkerPool {
    /// Its name.
    pub name: String,
    /// Units of worker capacity. Scales.
    #[schemars(range(min = 1))]
    pub slots: u32,
    /// Accelerator units: ordinary documents that run at full speed together. Scales.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub accelerator_units: f64,
    /// Units that one large document takes. Scales.
    #[serde(default)]
    #[schemars(range(min = 0.0))]
    pub large_units: f64,
    /// What happens to a request whose document is being processed already.
    pub duplicates: Duplicates,
    /// How long a duplicate that waits in a slot waits at the most; without it, until the original ends.
    pub waiter_limit: Option<Span>,
    /// How far that limit varies, as a part of it.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub waiter_limit_spread: f64,
    /// Whether a duplicate leaves its slot when its own caller leaves, at that caller's deadline.
    #[serde(default)]
    pub waiters_leave_at_deadline: bool,
    /// The wait that a refusal states.
    pub refusal_wait: Span,
    /// How far that wait varies, as a part of it.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub refusal_wait_spread: f64,
    /// How it scales.
    pub autoscaler: Option<Autoscaler>,
    /// The result cache that it writes the result of each finished document to, whether or not somebody still waits.
    pub writes_to: Option<String>,
    /// A document counts as recomputed if it was finished before within this time. It is only counted, nothing else.
    #[serde(default = "one_hour")]
    pub recomputed_within: Span,
}

const fn one_hour() -> Span {
    Span::from_secs(3600)
}

/// What happens to a request whose document is being processed already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Duplicates {
    /// It waits without a slot while somebody else still waits for that document. Once all of those have left, the
    /// work counts as abandoned although it goes on: the request then takes a slot of its own and waits there for the
    /// result.
    WaitInSlot,
    /// It waits for the result without a slot, always.
    Join,
    /// It is processed a second time.
    Recompute,
}

/// Scaling of a pool of workers.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Autoscaler {
    /// Slots of one step. Scales.
    pub slots: u32,
    /// Accelerator units of one step. Scales.
    pub accelerator_units: f64,
    /// At most one step in this time.
    pub every: Span,
    /// Steps until the ceiling.
    pub steps: u32,
    /// It scales while more than this part of the slots is held.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub held_above: f64,
}

/// A cache of results in front of a pool of workers.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResultCache {
    /// Its name.
    pub name: String,
    /// Where it asks for what it does not have.
    pub to: String,
    /// How long it keeps a result.
    pub keeps: Span,
    /// Results that it has room for. Scales.
    pub limit: u32,
    /// What it does with a result it has no room for.
    pub at_limit: AtLimit,
    /// Whether it is full when the run begins, as after weeks of the same load.
    #[serde(default)]
    pub starts_full: bool,
    /// Whether results of large documents have room of their own.
    #[serde(default)]
    pub large_have_room: bool,
}

/// What a cache does with a result it has no room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AtLimit {
    /// It says that it stored the result, and drops it.
    AcknowledgeAndDiscard,
    /// It drops its oldest result.
    EvictOldest,
}

/// What Seawall replaces in the run with it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WithSeawall {
    /// The routers that it replaces, each with the same number of instances, rate and memory.
    #[serde(default)]
    pub replaces: Vec<String>,
    /// Protections without which this run has no meaning; one that does not exist yet makes every check of the run
    /// fail as absent.
    #[serde(default)]
    pub needs: Vec<String>,
    /// Part of an instance's time for one request that a refusal at the gate takes.
    #[serde(default = "tenth")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub refusal_cost: f64,
}

const fn tenth() -> f64 {
    0.1
}
