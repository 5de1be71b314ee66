//! A scenario: who calls whom in an incident, what happened when, and what the run has to show.
//!
//! The file is data for the simulator: actors of a dozen kinds, wired by name, a timeline of events, figures that are
//! read from the run, and checks of those figures. An event sets arrivals, capacities, policies and faults; there is no
//! way to set a failure ratio, a hit ratio or a count of attempts: those come out of the run.

mod actors;
mod check;
mod events;
mod figures;
mod load;
mod lookups;
mod read;
mod servers;
mod units;

pub use actors::{Criticality, Form, Layer, Link, Population, RampPoint, Resubmit, Retry, Work};
pub use check::{Fault, faults};
pub use events::{Burst, Change, EngineFault, Event, HealthDependence};
pub use figures::{
    Aggregate, Autocorrelation, Check, Counterfactual, Figure, First, Measure, Move, Nth, OverSeeds, Pick, Role,
    Rolling, Run, Setting, Tag, Wave, WavePart, Window,
};
pub(crate) use load::FORMATS;
pub use load::{reference_markdown, schema_json};
pub use lookups::{HealthCheck, LookupCache, Service, Tier};
pub use servers::{
    AtLimit, Autoscaler, Duplicates, Engine, Feature, ModelPool, ResultCache, Router, RouterScaling, WithSeawall,
    WorkerPool,
};
pub use units::{Clock, Span};

use schemars::JsonSchema;
use serde::Deserialize;

/// A scenario file.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What it is and when it runs.
    pub scenario: Header,
    /// Clients that send requests on their own account.
    #[serde(default)]
    pub population: Vec<Population>,
    /// Layers between clients and servers that retry, reword failures or drop what they do not know.
    #[serde(default)]
    pub layer: Vec<Layer>,
    /// Naive routers: fleets of instances with a memory bound.
    #[serde(default)]
    pub router: Vec<Router>,
    /// Model capacity that is sold by the second.
    #[serde(default)]
    pub model_pool: Vec<ModelPool>,
    /// Serving engines with continuous batching.
    #[serde(default)]
    pub engine: Vec<Engine>,
    /// Pools of workers that process documents, with de-duplication.
    #[serde(default)]
    pub worker_pool: Vec<WorkerPool>,
    /// Caches of results in front of a pool of workers.
    #[serde(default)]
    pub result_cache: Vec<ResultCache>,
    /// Services whose instances keep what they looked up.
    #[serde(default)]
    pub lookup_cache: Vec<LookupCache>,
    /// Services on nodes with a connection table each, and a health check that restarts.
    #[serde(default)]
    pub service: Vec<Service>,
    /// Single queues with a finite rate: a caching layer, a database.
    #[serde(default)]
    pub tier: Vec<Tier>,
    /// Networks with delay and loss; an actor without one is reached at once.
    #[serde(default)]
    pub link: Vec<Link>,
    /// What happened, in order.
    #[serde(default)]
    pub event: Vec<Event>,
    /// What Seawall replaces in the third run; without it that run has nothing of Seawall in it.
    pub with_seawall: Option<WithSeawall>,
    /// What is read from a run.
    #[serde(default)]
    pub figure: Vec<Figure>,
    /// Runs with something changed.
    #[serde(default)]
    pub counterfactual: Vec<Counterfactual>,
    /// What the figures have to be.
    #[serde(default)]
    pub check: Vec<Check>,
    /// What is drawn.
    pub plot: Option<Plot>,
    /// The assumed values that carry the result; each is varied by a tenth to see whether it is a knife edge.
    #[serde(default)]
    pub calibrated: Vec<Calibrated>,
}

/// What a scenario is and when it runs.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// One line for people.
    pub title: String,
    /// When the run begins, on the post-mortem's clock.
    pub start: Clock,
    /// When the run ends.
    pub end: Clock,
    /// Volume of the run as a part of the volume written in this file: rates, capacities and bounds are multiplied by
    /// it, numbers of instances and nodes are not.
    #[serde(default = "one")]
    #[schemars(extend("exclusiveMinimum" = 0.0, "maximum" = 1000.0))]
    pub scale: f64,
    /// The actors at whose door attempts are counted for one request.
    #[serde(default)]
    pub attempts_at: Vec<String>,
}

const fn one() -> f64 {
    1.0
}

/// What is drawn: names of series, as `actor.metric`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Plot {
    /// Distinct requests.
    pub demand: Vec<String>,
    /// Attempts.
    pub attempts: Vec<String>,
    /// Requests that ended well.
    pub goodput: Vec<String>,
    /// Requests that failed.
    pub failed: Vec<String>,
    /// Capacity in use by work.
    pub working: Vec<String>,
    /// Capacity in use by waiting.
    pub waiting: Vec<String>,
    /// What that capacity is, in a few words for the caption.
    pub capacity_is: String,
}

/// An assumed value that carries the result.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Calibrated {
    /// The actor it belongs to.
    pub actor: String,
    /// The key there, for example `memory_in_flight`.
    pub key: String,
    /// Why it has its value, and how it was found.
    pub reason: String,
    /// Where the incident does not survive a tenth more or less: the range that holds, in words.
    pub knife_edge: Option<String>,
}

impl Scenario {
    /// The name of every actor with its kind, in the order in which they are built.
    pub fn actors(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let populations = self.population.iter().map(|actor| ("population", actor.name.as_str()));
        let layers = self.layer.iter().map(|actor| ("layer", actor.name.as_str()));
        let routers = self.router.iter().map(|actor| ("router", actor.name.as_str()));
        let model_pools = self.model_pool.iter().map(|actor| ("model_pool", actor.name.as_str()));
        let engines = self.engine.iter().map(|actor| ("engine", actor.name.as_str()));
        let worker_pools = self.worker_pool.iter().map(|actor| ("worker_pool", actor.name.as_str()));
        let result_caches = self.result_cache.iter().map(|actor| ("result_cache", actor.name.as_str()));
        let lookup_caches = self.lookup_cache.iter().map(|actor| ("lookup_cache", actor.name.as_str()));
        let services = self.service.iter().map(|actor| ("service", actor.name.as_str()));
        let tiers = self.tier.iter().map(|actor| ("tier", actor.name.as_str()));
        let links = self.link.iter().map(|actor| ("link", actor.name.as_str()));
        populations
            .chain(layers)
            .chain(routers)
            .chain(model_pools)
            .chain(engines)
            .chain(worker_pools)
            .chain(result_caches)
            .chain(lookup_caches)
            .chain(services)
            .chain(tiers)
            .chain(links)
    }
}
