//! From a scenario to a world that can be run.

use crate::Nanos;
use crate::actors::{
    EngineActor, LayerActor, LinkActor, LookupCacheActor, ModelPoolActor, PopulationActor, ResultCacheActor,
    RouterActor, SeawallActor, ServiceActor, Surroundings, TierActor, WorkerPoolActor,
};
use crate::calls::ActorId;
use crate::context::Actor;
use crate::world::World;
use seawall_cases::scenario::{Scenario, faults};
use seawall_core::id::{PoolId, TenantId};
use seawall_core::protection::Protection;
use seawall_core::settings::Settings;
use std::collections::{BTreeMap, BTreeSet};

/// How a scenario is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The seed of all random streams.
    pub seed: u64,
    /// Factor of the volumes on top of the scenario's own.
    pub scale: f64,
    /// When the run ends, where it is not to go to the scenario's own end.
    pub end: Option<Nanos>,
    /// What of Seawall takes part.
    pub seawall: Seawall,
    /// A protection of Seawall that is switched off.
    pub without: Option<Protection>,
}

/// What of Seawall takes part in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Seawall {
    /// Nothing: the incident as it happened.
    #[default]
    Absent,
    /// Its engine looks on and acts on nothing.
    Observing,
    /// Its engine takes the place of the naive routers.
    Enforcing,
}

/// Whole settings of Seawall's engine, and what their numbers stand for in a scenario. The router that Seawall stands in
/// the place of then only tells how many processes there are, how fast they are and how much they hold.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// The settings; each engine gets a seed of its own.
    pub settings: Settings,
    /// The actor that each deployment stands for, by the deployment's number.
    pub servers: Vec<String>,
    /// The tenant of each workload.
    pub tenants: BTreeMap<String, TenantId>,
    /// The pool of each model.
    pub pools: BTreeMap<String, PoolId>,
}

impl Default for Options {
    fn default() -> Self {
        Self { seed: 1, scale: 1.0, end: None, seawall: Seawall::Absent, without: None }
    }
}

/// A scenario that cannot be built: what is wrong, one line each.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct Unbuildable(pub Vec<String>);

impl World {
    /// The world of a scenario, at its beginning.
    pub fn of(scenario: &Scenario, options: &Options) -> Result<Self, Unbuildable> {
        Self::given(scenario, options, None)
    }

    /// The same, with whole settings for Seawall where it takes part.
    pub fn given(scenario: &Scenario, options: &Options, given: Option<&Given>) -> Result<Self, Unbuildable> {
        let found = faults(scenario);
        if !found.is_empty() {
            let lines = found.into_iter().map(|fault| format!("{}: {}; {}", fault.key, fault.message, fault.remedy));
            return Err(Unbuildable(lines.collect()));
        }
        let around = Surroundings { given, ..surroundings(scenario, options) };
        let end = options.end.unwrap_or(scenario.scenario.end.nanos);
        let mut world = Self::new(scenario.scenario.start.nanos, end);
        world.name_actors(scenario.actors().map(|(_, name)| name.to_owned()).collect());
        let mut mistakes = Vec::new();
        add_actors(&mut world, &around, options, &mut mistakes);
        if !mistakes.is_empty() {
            return Err(Unbuildable(mistakes));
        }
        for event in scenario.event.iter().filter(|event| event.at.nanos <= end) {
            world.happen(around.id(&event.actor), event.clone());
        }
        world.start();
        Ok(world)
    }
}

fn surroundings<'a>(scenario: &'a Scenario, options: &Options) -> Surroundings<'a> {
    let numbered = scenario.actors().enumerate();
    let ids: BTreeMap<&str, ActorId> =
        numbered.map(|(index, (_, name))| (name, ActorId(u16::try_from(index).unwrap_or(u16::MAX)))).collect();
    let workloads: BTreeSet<&str> = scenario.population.iter().map(|population| population.workload.as_str()).collect();
    let models: BTreeSet<&str> =
        scenario.population.iter().flat_map(|population| &population.models).map(String::as_str).collect();
    Surroundings {
        scenario,
        seed: options.seed,
        scale: scenario.scenario.scale * options.scale,
        ids,
        workloads: workloads.into_iter().collect(),
        models: models.into_iter().collect(),
        without: options.without,
        given: None,
    }
}

/// Adds every actor, in the order of [`Scenario::actors`].
fn add_actors(world: &mut World, around: &Surroundings<'_>, options: &Options, mistakes: &mut Vec<String>) {
    let scenario = around.scenario;
    let mut add = |world: &mut World, name: &str, actor: Result<Box<dyn Actor>, String>| match actor {
        Ok(actor) => drop(world.add(actor)),
        Err(mistake) => mistakes.push(format!("{name}: {mistake}")),
    };
    for settings in &scenario.population {
        let actor = PopulationActor::new(settings, around, world.recorder());
        add(world, &settings.name, actor.map(|actor| Box::new(actor) as Box<dyn Actor>));
    }
    for settings in &scenario.layer {
        let actor = LayerActor::new(settings, around, world.recorder());
        add(world, &settings.name, actor.map(|actor| Box::new(actor) as Box<dyn Actor>));
    }
    for settings in &scenario.router {
        let replaced = scenario.with_seawall.as_ref().filter(|with| with.replaces.contains(&settings.name));
        let actor: Box<dyn Actor> = match replaced {
            Some(with) if options.seawall == Seawall::Enforcing => {
                Box::new(SeawallActor::new(settings, with, around, world.recorder()))
            }
            Some(_) if options.seawall == Seawall::Observing => {
                Box::new(RouterActor::observed(settings, around, world.recorder()))
            }
            _ => Box::new(RouterActor::new(settings, around, world.recorder())),
        };
        add(world, &settings.name, Ok(actor));
    }
    for settings in &scenario.model_pool {
        let actor = ModelPoolActor::new(settings, around, world.recorder());
        add(world, &settings.name, Ok(Box::new(actor)));
    }
    for settings in &scenario.engine {
        let actor = EngineActor::new(settings, around, world.recorder());
        add(world, &settings.name, Ok(Box::new(actor)));
    }
    for settings in &scenario.worker_pool {
        let actor = WorkerPoolActor::new(settings, around, world.recorder());
        add(world, &settings.name, Ok(Box::new(actor)));
    }
    for settings in &scenario.result_cache {
        let actor = ResultCacheActor::new(settings, around, world.recorder());
        add(world, &settings.name, Ok(Box::new(actor)));
    }
    for settings in &scenario.lookup_cache {
        let actor = LookupCacheActor::new(settings, around, world.recorder());
        add(world, &settings.name, actor.map(|actor| Box::new(actor) as Box<dyn Actor>));
    }
    for settings in &scenario.service {
        let actor = ServiceActor::new(settings, around, world.recorder());
        add(world, &settings.name, Ok(Box::new(actor)));
    }
    for settings in &scenario.tier {
        let actor = TierActor::new(settings, around, world.recorder());
        add(world, &settings.name, Ok(Box::new(actor)));
    }
    for settings in &scenario.link {
        add(world, &settings.name, Ok(Box::new(LinkActor::new(settings, around))));
    }
}
