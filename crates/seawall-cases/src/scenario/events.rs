//! What happened, in order.

use super::actors::{Form, Work};
use super::units::{Clock, Span};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Something that someone did, or that befell an actor, at a time.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// Its name, for counterfactuals and the plot.
    pub name: String,
    /// When.
    pub at: Clock,
    /// Over how long it spreads, evenly over instances or requests; without it, at once.
    pub over: Option<Span>,
    /// To whom.
    pub actor: String,
    /// What changes.
    pub change: Change,
    /// What was published about it, in our own words; without it the event is an assumption.
    pub published: Option<String>,
}

/// What changes. Exactly one key; which actors take it stands with each.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Change {
    /// Population: so many requests on top, one after the other.
    pub burst: Option<Burst>,
    /// Population: factor of its rate from here on.
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub rate_factor: Option<f64>,
    /// Layer: failures that it passes on in another form from here on; `{}`: none. Over a time: for so many requests.
    pub rewords: Option<BTreeMap<String, Form>>,
    /// Layer or population: attempts for one request, the first included.
    #[schemars(range(min = 1, max = 1000))]
    pub attempts: Option<u32>,
    /// Layer or population: where its requests go from here on. Over a time: so many of them.
    pub to: Option<String>,
    /// Router: the feature of that name is switched off.
    pub feature_off: Option<String>,
    /// Router, service: instances on top (of a service: on the nodes that it has). Of a service, over a time: one by
    /// one.
    pub instances: Option<u32>,
    /// Service: nodes on top, each with a table of its own; instances that come later are put on the emptiest nodes.
    pub nodes: Option<u32>,
    /// Router, service: this part of the instances is restarted.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub restart: Option<f64>,
    /// Model pool: factor of its capacity. Engine: factor of its speed. Tier: factor of its rate, for what comes later.
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub capacity_factor: Option<f64>,
    /// Worker pool, engine: slots on top; less than 0: so many fewer (an engine keeps at least one, and finishes what runs).
    /// Scales.
    pub slots: Option<i32>,
    /// Worker pool: accelerator units on top. Scales.
    pub accelerator_units: Option<f64>,
    /// Lookup cache, result cache: what it keeps is gone. Over a time: instance by instance.
    pub clear: Option<bool>,
    /// Lookup cache: lookups go on without looking at what it keeps. Over a time: instance by instance.
    pub bypass: Option<bool>,
    /// Service: what its health check needs. Over a time: instance by instance.
    pub health_depends_on: Option<HealthDependence>,
    /// Service: factor of the compute of an instance; more does nothing where connections are what is short.
    #[schemars(extend("exclusiveMinimum" = 0.0, "maximum" = 1000.0))]
    pub compute_factor: Option<f64>,
    /// Router, model pool, engine, service, tier: gone (`true`) or back (`false`).
    pub down: Option<bool>,
    /// Engine: how it fails from here on.
    pub fault: Option<EngineFault>,
    /// Link: loss from here on.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub loss: Option<f64>,
    /// Link: time of one way from here on.
    pub delay: Option<Span>,
}

/// Requests on top of a population's rate.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Burst {
    /// How many. Does not scale.
    pub count: u32,
    /// Time between two.
    pub apart: Span,
    /// The work of each, where it is not the population's.
    pub work: Option<Work>,
}

/// How a serving engine fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EngineFault {
    /// Not at all.
    #[default]
    None,
    /// It fails every request that comes, at once; what runs goes on.
    Errors,
    /// It fails every second request that comes, at once.
    HalfErrors,
    /// It refuses every request that comes, and says to come back in two seconds.
    Throttles,
    /// It is gone without a word, and all that it held with it: no connection can be made, and nobody is told so. A
    /// caller gives up when its own time for connecting is over.
    Silent,
}

/// What a health check needs to pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HealthDependence {
    /// A new connection to the database.
    Database,
    /// The instance alone.
    Itself,
}

impl Change {
    /// The keys that are set, each with the kinds of actor that take it.
    pub fn set(&self) -> Vec<(&'static str, &'static [&'static str])> {
        let keys: [(&str, bool, &[&str]); 20] = [
            ("burst", self.burst.is_some(), &["population"]),
            ("rate_factor", self.rate_factor.is_some(), &["population"]),
            ("rewords", self.rewords.is_some(), &["layer"]),
            ("attempts", self.attempts.is_some(), &["layer", "population"]),
            ("to", self.to.is_some(), &["layer", "population"]),
            ("feature_off", self.feature_off.is_some(), &["router"]),
            ("instances", self.instances.is_some(), &["router", "service"]),
            ("nodes", self.nodes.is_some(), &["service"]),
            ("restart", self.restart.is_some(), &["router", "service"]),
            ("capacity_factor", self.capacity_factor.is_some(), &["model_pool", "engine", "tier"]),
            ("slots", self.slots.is_some(), &["worker_pool", "engine"]),
            ("accelerator_units", self.accelerator_units.is_some(), &["worker_pool"]),
            ("clear", self.clear.is_some(), &["lookup_cache", "result_cache"]),
            ("bypass", self.bypass.is_some(), &["lookup_cache"]),
            ("health_depends_on", self.health_depends_on.is_some(), &["service"]),
            ("compute_factor", self.compute_factor.is_some(), &["service"]),
            ("down", self.down.is_some(), &["router", "model_pool", "engine", "service", "tier"]),
            ("fault", self.fault.is_some(), &["engine"]),
            ("loss", self.loss.is_some(), &["link"]),
            ("delay", self.delay.is_some(), &["link"]),
        ];
        keys.into_iter().filter(|(_, set, _)| *set).map(|(key, _, kinds)| (key, kinds)).collect()
    }
}
