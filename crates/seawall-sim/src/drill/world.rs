//! The world of a drill: the user's settings behind a scenario that is made for them, and the mechanisms as its events.

use super::ground::{Ground, Setup, scaled};
use super::outcome::{Outcome, Times};
use crate::construct::{Given, Options, Seawall};
use crate::world::World;
use seawall_cases::drill::{Drill, Loss, Mechanism};
use seawall_cases::scenario::{Burst, Change, Clock, EngineFault, Event, Form, Scenario, Span, Work};
use seawall_core::id::{PoolId, TenantId};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The name of what stands for all processes of Seawall.
pub(super) const SEAWALL: &str = "seawall";
/// The name of the population whose requests are very long.
pub(super) const LONG: &str = "long";
const LAYER: &str = "layer";

/// Requests that a process of Seawall handles a second. It is far above what a drill sends it: the drill is about
/// capacity, not about Seawall's own speed.
const HANDLED_PER_SECOND: f64 = 2_000.0;
/// How far service times vary: the standard deviation of their logarithm.
const SERVICE_SIGMA: f64 = 0.5;
/// For how long the last requests may still be answered after the last one was sent.
const DRAIN: Span = Span::from_secs(30 * 60);

pub(super) fn workload(tenant: usize) -> String {
    format!("tenant-{tenant}")
}

pub(super) fn population(tenant: usize, pool: usize) -> String {
    format!("clients-{tenant}-{pool}")
}

fn model(pool: usize) -> String {
    format!("model-{pool}")
}

fn engine(deployment: usize) -> String {
    format!("engine-{deployment}")
}

/// What the mechanisms of a drill ask of the clients.
#[derive(Clone, Debug, Default)]
struct Clients {
    /// Attempts of the layer and of the clients of the tenant that begins.
    storm: Option<(u32, u32)>,
    attempt_timeout: Option<Span>,
    works_on: bool,
}

impl Clients {
    fn of(drill: &Drill) -> Self {
        let mut clients = Self::default();
        for mechanism in &drill.mechanism {
            match mechanism {
                Mechanism::RewordedFailures { layer_attempts, client_attempts, .. }
                | Mechanism::SevenBySeven { layer_attempts, client_attempts, .. } => {
                    let (layer, client) = clients.storm.unwrap_or_default();
                    clients.storm = Some((layer.max(*layer_attempts), client.max(*client_attempts)));
                }
                Mechanism::ColdCaches { attempt_timeout, works_on, .. } => {
                    clients.attempt_timeout = Some(*attempt_timeout);
                    clients.works_on |= works_on;
                }
                Mechanism::HotDocuments { works_on, .. } => clients.works_on |= works_on,
                Mechanism::RegionLost { .. } => {}
            }
        }
        clients
    }
}

/// One run of a drill: the world that is built for it.
struct Builder<'a> {
    ground: &'a Ground<'a>,
    drill: &'a Drill,
    setup: Setup,
    clients: Clients,
    times: Times,
}

impl Ground<'_> {
    /// The pool with the most slots among those of the tenant that begins, the first of equals.
    fn busiest_pool(&self) -> Option<usize> {
        let pools = self.setup.settings.tenants[self.tenant].pools.iter().rev();
        pools.map(|pool| pool.index()).max_by_key(|pool| self.setup.slots_of(*pool))
    }

    /// The pool that very long requests ask for, where the drill has some.
    pub(super) fn long_pool(&self, drill: &Drill) -> Option<usize> {
        let is_long = |mechanism: &Mechanism| matches!(mechanism, Mechanism::HotDocuments { .. });
        drill.mechanism.iter().any(is_long).then(|| self.busiest_pool()).flatten()
    }

    /// Runs a drill with a setup: the ground's own, or a changed one. The arrivals are the same in each.
    pub fn run(&self, drill: &Drill, setup: &Setup) -> Result<Outcome, String> {
        let setup = setup.in_small(self.scale);
        let times = Times::of(drill);
        let builder = Builder { ground: self, drill, setup, clients: Clients::of(drill), times };
        let mut scenario = builder.scenario().map_err(|error| format!("the drill's world cannot be made: {error}"))?;
        scenario.event = builder.events();
        let given = builder.given();
        let options = Options { seed: self.assumptions.seed, seawall: Seawall::Enforcing, ..Options::default() };
        let mut world = World::given(&scenario, &options, Some(&given)).map_err(|error| error.to_string())?;
        world.recorder().spreads_from(times.trigger);
        world.run_until(times.over);
        let (hash, violations) = (world.trace_hash(), world.violations().to_vec());
        Ok(Outcome::read(self, drill, times, &world.into_recorder(), (hash, violations)))
    }
}

impl Times {
    fn of(drill: &Drill) -> Self {
        let trigger = drill.quiet.nanos;
        let end = trigger + drill.lasts().nanos + drill.after.nanos;
        Self { trigger, end, over: end + DRAIN.nanos }
    }
}

impl Builder<'_> {
    fn scenario(&self) -> Result<Scenario, serde_json::Error> {
        let engines: Vec<String> = (0..self.setup.slots.len()).map(engine).collect();
        let router = json!({
            "name": SEAWALL,
            "to": engines,
            "instances": self.ground.assumptions.replicas,
            "rate_per_second": HANDLED_PER_SECOND,
            "memory_in_flight": self.setup.connections,
            "restart": "10s",
        });
        let mut scenario = Scenario::from_value(json!({
            "scenario": { "title": self.drill.name, "start": "00:00", "end": "00:00", "attempts_at": [SEAWALL] },
            "population": self.populations(),
            "layer": self.layers(),
            "router": [router],
            "engine": self.engines(),
            "with_seawall": { "replaces": [SEAWALL] },
        }))?;
        scenario.scenario.end = Clock { nanos: self.times.over };
        Ok(scenario)
    }

    fn populations(&self) -> Vec<Value> {
        let ordinary = self.ground.flows.iter().map(|flow| {
            let storms = self.clients.storm.filter(|_| flow.tenant == self.ground.tenant);
            json!({
                "name": population(flow.tenant, flow.pool),
                "workload": workload(flow.tenant),
                "to": if storms.is_some() { LAYER } else { SEAWALL },
                "models": [model(flow.pool)],
                "rate_per_second": flow.simulated_per_second,
                "work": { "mean": self.ground.assumptions.service_text(), "sigma": SERVICE_SIGMA },
                "retry": storms.map_or_else(|| self.retry(), |(_, attempts)| at_once(attempts, false)),
                "attempt_timeout": self.attempt_timeout(self.clients.attempt_timeout),
            })
        });
        ordinary.chain(self.long_requests()).collect()
    }

    /// Those whose requests are very long; they come as a burst.
    fn long_requests(&self) -> Option<Value> {
        let pool = self.ground.busiest_pool()?;
        let (_, attempt_timeout) = self.burst()?;
        Some(json!({
            "name": LONG,
            "workload": workload(self.ground.tenant),
            "to": SEAWALL,
            "models": [model(pool)],
            "retry": self.retry(),
            "attempt_timeout": self.attempt_timeout(attempt_timeout),
        }))
    }

    /// How long clients wait for the answer to one attempt: what a mechanism says, or what the client does.
    fn attempt_timeout(&self, told: Option<Span>) -> Option<String> {
        let own = self
            .ground
            .profile
            .timeout
            .map(|timeout| Span { nanos: u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX) });
        told.or(own).map(|span| span.to_string())
    }

    fn retry(&self) -> Value {
        json!({ "profile": self.ground.profile.name })
    }

    fn layers(&self) -> Vec<Value> {
        let layer = self.clients.storm.map(|(attempts, _)| {
            json!({
                "name": LAYER,
                "to": SEAWALL,
                "retry": at_once(attempts, true),
                "drops_advice": true,
                "drops_counters": true,
            })
        });
        layer.into_iter().collect()
    }

    fn engines(&self) -> Vec<Value> {
        let deployments = self.setup.settings.deployments.iter().enumerate();
        let engine = |(index, deployment): (usize, &seawall_core::settings::DeploymentSettings)| {
            json!({
                "name": engine(index),
                "models": [model(deployment.pool.index())],
                "region": self.setup.regions[index],
                "slots": self.setup.slots[index],
                "takes_work": true,
                "works_on": self.clients.works_on,
            })
        };
        deployments.map(engine).collect()
    }

    fn given(&self) -> Given {
        let settings = self.setup.settings.clone();
        let tenants = (0..settings.tenants.len()).map(|tenant| (workload(tenant), TenantId::from_index(tenant)));
        let pools = (0..settings.pools.len()).map(|pool| (model(pool), PoolId::from_index(pool)));
        Given {
            servers: (0..settings.deployments.len()).map(engine).collect(),
            tenants: tenants.collect(),
            pools: pools.collect(),
            settings,
        }
    }

    /// The long requests, where the drill has some, and how long their clients wait.
    fn burst(&self) -> Option<(Burst, Option<Span>)> {
        let pool = self.ground.busiest_pool()?;
        self.drill.mechanism.iter().find_map(|mechanism| {
            let Mechanism::HotDocuments { work, within, capacity_percent, attempt_timeout, .. } = mechanism else {
                return None;
            };
            // A part of the capacity as it is: a change that adds to it does not add long requests.
            let ground = self.ground.setup.in_small(self.ground.scale);
            let count = scaled(ground.slots_of(pool), f64::from(*capacity_percent) / 100.0);
            let apart = Span { nanos: within.nanos / u64::from(count) };
            let work = Work { mean: *work, sigma: 0.0, stages: None, prompt_tokens: 0, output_tokens: 0 };
            Some((Burst { count, apart, work: Some(work) }, *attempt_timeout))
        })
    }

    fn events(&self) -> Vec<Event> {
        let mut events = Vec::new();
        for mechanism in &self.drill.mechanism {
            let ends = self.times.trigger + mechanism.lasts().nanos;
            let mut acts = |actor: String, begin: Change, end: Option<Change>| {
                events.push(event(mechanism.kind(), self.times.trigger, &actor, begin));
                events.extend(end.map(|change| event(mechanism.kind(), ends, &actor, change)));
            };
            match mechanism {
                Mechanism::RewordedFailures { demand_percent, .. } => {
                    let factor = f64::from(*demand_percent) / 100.0;
                    for flow in self.ground.flows.iter().filter(|flow| flow.tenant == self.ground.tenant) {
                        acts(population(flow.tenant, flow.pool), rate(factor), Some(rate(1.0)));
                    }
                    let words = [("capacity", Form::Unavailable), ("overloaded", Form::Unavailable)];
                    let words = words.map(|(from, to)| (from.to_owned(), to)).into();
                    acts(LAYER.to_owned(), rewords(words), Some(rewords(BTreeMap::new())));
                }
                Mechanism::HotDocuments { .. } => {
                    let burst = self.burst().map(|(burst, _)| burst);
                    acts(LONG.to_owned(), Change { burst, ..Change::default() }, None);
                }
                Mechanism::RegionLost { seen_as, .. } => {
                    let (begin, end) = lost(*seen_as);
                    let region = self.ground.setup.largest_region();
                    for index in
                        (0..self.setup.regions.len()).filter(|i| Some(self.setup.regions[*i].as_str()) == region)
                    {
                        acts(engine(index), begin.clone(), Some(end.clone()));
                    }
                }
                Mechanism::ColdCaches { slowdown, .. } => {
                    for index in 0..self.setup.slots.len() {
                        acts(engine(index), speed(1.0 / slowdown), Some(speed(1.0)));
                    }
                }
                Mechanism::SevenBySeven { .. } => {
                    let failing = self.ground.busiest_pool().and_then(|pool| self.ground.setup.largest_of(pool));
                    if let Some(deployment) = failing {
                        let end = fault(EngineFault::None);
                        acts(engine(deployment.index()), fault(EngineFault::Errors), Some(end));
                    }
                }
            }
        }
        // Nobody sends anything new while the last answers are waited for.
        let silence = self
            .ground
            .flows
            .iter()
            .map(|flow| event("end", self.times.end, &population(flow.tenant, flow.pool), rate(0.0)));
        events.extend(silence);
        // The names of events differ, and nobody reads these.
        for (index, event) in events.iter_mut().enumerate() {
            event.name = format!("{} {index}", event.name);
        }
        events
    }
}

/// A rule that retries at once; for want of capacity too, or only what looks transient.
fn at_once(attempts: u32, capacity_too: bool) -> Value {
    let mut on = vec!["overloaded", "unavailable", "error", "connection-lost", "connection-refused", "timeout"];
    if capacity_too {
        on.push("capacity");
    }
    json!({ "attempts": attempts, "on": on })
}

fn event(name: &str, at: u64, actor: &str, change: Change) -> Event {
    let (name, actor) = (name.to_owned(), actor.to_owned());
    Event { name, at: Clock { nanos: at }, over: None, actor, change, published: None }
}

fn rate(factor: f64) -> Change {
    Change { rate_factor: Some(factor), ..Change::default() }
}

fn rewords(words: BTreeMap<String, Form>) -> Change {
    Change { rewords: Some(words), ..Change::default() }
}

fn speed(factor: f64) -> Change {
    Change { capacity_factor: Some(factor), ..Change::default() }
}

fn fault(fault: EngineFault) -> Change {
    Change { fault: Some(fault), ..Change::default() }
}

/// How a region goes and how it comes back.
fn lost(seen_as: Loss) -> (Change, Change) {
    match seen_as {
        Loss::Silence => (fault(EngineFault::Silent), fault(EngineFault::None)),
        Loss::Refusal => {
            let down = |down| Change { down: Some(down), ..Change::default() };
            (down(true), down(false))
        }
    }
}
