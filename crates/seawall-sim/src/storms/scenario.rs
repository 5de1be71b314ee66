//! The scenario of a cell: the template, with the cell's servers, clients and trouble.

use super::cell::{Cell, Clients, Length, Router, Storm};
use super::gate;
use super::oracle::{self, Capacity};
use super::shape::{Shape, Trouble};
use crate::actors::number_of;
use crate::construct::Given;
use crate::random::nanos;
use crate::{Nanos, SECOND};
use seawall_cases::scenario::{Change, Clock, Engine, EngineFault, Event, Population, Retry, Scenario, Span, Work};
use seawall_core::capacity;
use seawall_core::id::{DeploymentId, PoolId, TenantId};
use seawall_core::settings::{self, DeploymentSettings, PoolSettings, Settings, TenantSettings};

/// How long a run goes on after the last client is gone, for what is under way.
const TAIL: Nanos = 5 * SECOND;
/// Places in storm B: no number that is ever reached.
const WITHOUT_BOUND: u32 = 10_000_000;
/// The part of its speed that a cold server has, and for how long.
const COLD: f64 = 0.25;
const WARM_UP: Nanos = 10 * SECOND;
/// The milliseconds of a second, which are the tokens of a server that slows with its batch.
const MILLIS: u32 = 1000;

/// A cell's scenario, and what its run is judged by.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The scenario.
    pub scenario: Scenario,
    /// The names of the populations.
    pub populations: Vec<String>,
    /// The names of the servers.
    pub engines: Vec<String>,
    /// The capacity over time, for the oracle.
    pub capacity: Capacity,
    /// How long a client waits.
    pub patience: Nanos,
    /// The mean work of a request.
    pub work: Nanos,
    /// The part of the oracle's good answers from which on goodput counts as back.
    pub enough: f64,
    /// When the servers change, and when they are as before; where they stay so, the time at which they change, twice.
    pub troubles: Vec<(Nanos, Nanos)>,
    /// When the last request is sent.
    pub sent_until: Nanos,
    /// When the run ends.
    pub end: Nanos,
}

/// The template as it is in the file.
fn template() -> Result<Scenario, String> {
    Scenario::parse(include_str!("template.toml"), "template.toml").map_err(|errors| errors.render(false))
}

impl Plan {
    /// The plan of a cell; an error is a mistake in the template.
    pub fn of(cell: Cell) -> Result<Self, String> {
        let shape = cell.shape;
        let mut scenario = template()?;
        let (sent_until, times) = times(cell);
        let end = sent_until + shape.patience + TAIL;
        scenario.scenario.end = Clock { nanos: end };
        set_engines(&mut scenario, cell)?;
        set_clients(&mut scenario, cell)?;
        let populations: Vec<String> = scenario.population.iter().map(|clients| clients.name.clone()).collect();
        let engines: Vec<String> = scenario.engine.iter().map(|engine| engine.name.clone()).collect();
        let stop = Change { rate_factor: Some(0.0), ..Change::default() };
        for population in &populations {
            happens(&mut scenario, population, sent_until, stop.clone());
        }
        let (ill, well) = changes(shape);
        for (from, to) in &times {
            for engine in engines.iter().take(afflicted(shape)) {
                happens(&mut scenario, engine, *from, ill.clone());
                if *to < end {
                    happens(&mut scenario, engine, *to, well.clone());
                }
                if matches!(shape.trouble, Trouble::Cold(_)) && to.saturating_add(WARM_UP) < end {
                    let speed = |factor| Change { capacity_factor: Some(factor), ..Change::default() };
                    happens(&mut scenario, engine, *to, speed(COLD));
                    happens(&mut scenario, engine, *to + WARM_UP, speed(1.0));
                }
            }
        }
        let troubles = times.iter().map(|(from, to)| (*from, if *to < end { *to } else { *from })).collect();
        let capacity = capacity_of(shape, &times);
        let (patience, work, enough) = (shape.patience, shape.service, gate::recovered(cell.law));
        Ok(Self { scenario, populations, engines, capacity, patience, work, enough, troubles, sent_until, end })
    }

    /// What the oracle is asked about: a request of the mean work, since no router can know more of random work.
    pub(super) fn job(&self, sent: Nanos) -> oracle::Job {
        oracle::Job { sent, deadline: sent.saturating_add(self.patience), work: self.work }
    }
}

/// Until when requests are sent, and when the servers are in trouble.
fn times(cell: Cell) -> (Nanos, Vec<(Nanos, Nanos)>) {
    match cell.length {
        Length::Short => (cell.shape.end, vec![cell.shape.times]),
        Length::SentUntil(until) => (until, vec![cell.shape.times]),
        Length::TenMinutes => {
            let troubles = [(60, 30), (150, 60), (300, 120), (510, 30)];
            (600 * SECOND, troubles.map(|(from, lasts)| (from * SECOND, (from + lasts) * SECOND)).to_vec())
        }
    }
}

fn set_engines(scenario: &mut Scenario, cell: Cell) -> Result<(), String> {
    let first = scenario.engine.first().cloned().ok_or("the template has no engine")?;
    let shape = cell.shape;
    let (waiting_limit, works_on) = match cell.storm {
        Storm::A => (2 * shape.slots, false),
        Storm::B => (WITHOUT_BOUND, true),
    };
    let engines = (0..shape.upstreams).map(|index| Engine {
        name: format!("engine-{index}"),
        slots: shape.slots,
        waiting_limit,
        takes_work: shape.batch_slowdown_percent <= 0.0,
        decode_tokens_per_second: MILLIS,
        batch_slowdown_percent: shape.batch_slowdown_percent,
        works_on,
        random_order: shape.random_order,
        ..first.clone()
    });
    scenario.engine = engines.collect();
    for router in &mut scenario.router {
        router.to = scenario.engine.iter().map(|engine| engine.name.clone()).collect();
    }
    Ok(())
}

/// The kinds of clients: their name, their share, and the profile of their retries.
fn kinds(clients: Clients) -> Vec<(&'static str, f64, &'static str)> {
    let sdk = |part| ("sdk", part, "openai-python");
    let immediate = |part| ("immediate", part, "immediate");
    let seven = |part| ("seven-by-seven", part, "seven-by-seven");
    let vercel = |part| ("vercel", part, "vercel-ai");
    match clients {
        Clients::Sdk => vec![sdk(1.0)],
        Clients::Immediate => vec![immediate(1.0)],
        Clients::SevenBySeven => vec![seven(1.0)],
        Clients::Vercel => vec![vercel(1.0)],
        Clients::Mixed => vec![sdk(0.5), immediate(0.2), seven(0.1), vercel(0.2)],
    }
}

fn set_clients(scenario: &mut Scenario, cell: Cell) -> Result<(), String> {
    let first = scenario.population.first().cloned().ok_or("the template has no clients")?;
    let shape = cell.shape;
    let (sigma, stages) = cell.law.parameters();
    let tokens = u32::try_from(shape.service / (SECOND / Nanos::from(MILLIS))).unwrap_or(u32::MAX);
    // The first token comes with the end of the prompt, which is empty.
    let output_tokens = tokens.saturating_add(1);
    let work = Work { mean: Span { nanos: shape.service }, sigma, stages, prompt_tokens: 0, output_tokens };
    let limit = (cell.storm == Storm::B).then_some(Span { nanos: shape.patience / 2 });
    let rate = cell.load.part() * shape.capacity_per_second();
    let kinds = kinds(cell.clients);
    // The Vercel SDK does not try again after a time limit that its caller has set.
    let behind_gateway = |name: &str| name == "vercel" && limit.is_some();
    if kinds.iter().any(|(name, ..)| behind_gateway(name)) {
        for gateway in &mut scenario.layer {
            gateway.attempt_timeout = limit;
        }
    } else {
        scenario.layer.clear();
    }
    let populations = kinds.into_iter().map(|(name, part, profile)| Population {
        name: name.to_owned(),
        to: if behind_gateway(name) { "gateway".to_owned() } else { first.to.clone() },
        rate_per_second: rate * part,
        work: Some(work),
        retry: Retry { profile: Some(profile.to_owned()), ..Retry::default() },
        attempt_timeout: if behind_gateway(name) { None } else { limit },
        patience: Some(Span { nanos: shape.patience }),
        ..first.clone()
    });
    scenario.population = populations.collect();
    Ok(())
}

/// How long what is back is cold.
const fn warm_up(shape: &Shape) -> Nanos {
    if matches!(shape.trouble, Trouble::Cold(_)) { WARM_UP } else { 0 }
}

/// How many of the servers are in trouble, from the first on.
fn afflicted(shape: &Shape) -> usize {
    let count = match shape.trouble {
        Trouble::Fails(_, count) | Trouble::Cold(count) => count,
        Trouble::Slower(_) | Trouble::Slots(_) => shape.upstreams,
    };
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// What happens to a server when the trouble begins, and when it ends.
fn changes(shape: &Shape) -> (Change, Change) {
    let fails = |fault| Change { fault: Some(fault), ..Change::default() };
    match shape.trouble {
        Trouble::Slower(part) => {
            let factor = |factor| Change { capacity_factor: Some(factor), ..Change::default() };
            (factor(part), factor(1.0))
        }
        Trouble::Slots(slots) => {
            let signed = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
            let more = |more| Change { slots: Some(more), ..Change::default() };
            let change = signed(slots) - signed(shape.slots);
            (more(change), more(-change))
        }
        Trouble::Fails(fault, _) => (fails(fault), fails(EngineFault::None)),
        Trouble::Cold(_) => (fails(EngineFault::Silent), fails(EngineFault::None)),
    }
}

/// The capacity over time of all servers together.
fn capacity_of(shape: &Shape, times: &[(Nanos, Nanos)]) -> Capacity {
    let of = |slots: u32, part: f64| nanos(f64::from(shape.upstreams) * shape.speed(slots) * part * 1e6);
    let well = of(shape.slots, 1.0);
    let without = |count: u32| of(shape.slots, f64::from(shape.upstreams - count) / f64::from(shape.upstreams));
    let ill = match shape.trouble {
        Trouble::Slower(part) => of(shape.slots, part),
        Trouble::Slots(slots) => of(slots, 1.0),
        Trouble::Fails(EngineFault::HalfErrors, _) => well,
        Trouble::Fails(_, count) | Trouble::Cold(count) => without(count),
    };
    let mut steps = vec![(0, well)];
    for (from, to) in times {
        steps.push((*from, ill));
        if let Trouble::Cold(count) = shape.trouble {
            steps.push((*to, without(count) + nanos(f64::from(count) * shape.speed(shape.slots) * COLD * 1e6)));
        }
        steps.push((to.saturating_add(warm_up(shape)), well));
    }
    Capacity::new(steps)
}

fn happens(scenario: &mut Scenario, actor: &str, at: Nanos, change: Change) {
    let name = format!("{actor}-{}", scenario.event.len());
    let at = Clock { nanos: at };
    scenario.event.push(Event { name, at, over: None, actor: actor.to_owned(), change, published: None });
}

/// What Seawall is told in a cell: the servers, and of their sizes what this router is told. Everything else is the
/// default.
pub(super) fn given(plan: &Plan, cell: Cell, router: Router) -> Given {
    let default = capacity::REGISTRY[0].name;
    let discovery = if let Router::Seawall(method) = router { method } else { default }.to_owned();
    let size = match router {
        Router::Naive | Router::Seawall(_) | Router::Without(_) => None,
        Router::Told => Some(cell.shape.healthy_slots()),
        Router::ToldTwice => Some(2 * cell.shape.healthy_slots()),
    };
    let pool = PoolId::from_index(0);
    let deployment = |name: &String| DeploymentSettings {
        capacity: settings::Capacity::Standard { size },
        ..DeploymentSettings::new(name.clone(), pool)
    };
    let model = "model".to_owned();
    let workload = "workload".to_owned();
    let pools = vec![PoolSettings {
        discovery,
        ..PoolSettings::new(model.clone(), (0..plan.engines.len()).map(DeploymentId::from_index).collect())
    }];
    let tenants = vec![TenantSettings::new(workload.clone(), vec![pool])];
    let deployments = plan.engines.iter().map(deployment).collect();
    Given {
        settings: Settings { pools, deployments, tenants, seed: 0 },
        servers: plan.engines.clone(),
        tenants: [(workload, TenantId::from_index(0))].into(),
        pools: [(model, pool)].into(),
    }
}

/// Seconds of a span.
pub(super) fn seconds(span: Nanos) -> f64 {
    number_of(span) / number_of(SECOND)
}
