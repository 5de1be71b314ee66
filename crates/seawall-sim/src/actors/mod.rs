//! The kinds of actors, one file each.

mod curve;
mod engine;
mod fleet;
mod layer;
mod link;
mod lookup_cache;
mod model_pool;
mod population;
mod result_cache;
mod rollout;
mod router;
mod seawall;
mod service;
mod sharing;
mod tier;
#[cfg(test)]
mod trial;
mod worker_pool;

pub use engine::EngineActor;
pub use layer::LayerActor;
pub use link::LinkActor;
pub use lookup_cache::LookupCacheActor;
pub use model_pool::ModelPoolActor;
pub use population::PopulationActor;
pub use result_cache::ResultCacheActor;
pub use rollout::Rollout;
pub use router::RouterActor;
pub use seawall::SeawallActor;
pub use service::ServiceActor;
pub use sharing::Sharing;
pub use tier::TierActor;
pub use worker_pool::WorkerPoolActor;

use crate::Nanos;
use crate::calls::ActorId;
use crate::construct::Given;
use crate::recorder::{Recorder, SeriesId};
use seawall_cases::scenario::{Population, Scenario};
use seawall_core::protection::Protection;
use std::collections::BTreeMap;

/// What actors need to know of the rest of the world while they are built.
#[derive(Debug)]
pub struct Surroundings<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// The seed of the run.
    pub seed: u64,
    /// Factor of all volumes.
    pub scale: f64,
    /// Every actor's number by its name.
    pub ids: BTreeMap<&'a str, ActorId>,
    /// The workloads, in order.
    pub workloads: Vec<&'a str>,
    /// The models, in order.
    pub models: Vec<&'a str>,
    /// A protection of Seawall that is switched off.
    pub without: Option<Protection>,
    /// Whole settings for Seawall in the place of a router, instead of those that follow from the router.
    pub given: Option<&'a Given>,
}

impl<'a> Surroundings<'a> {
    /// The number of an actor that the scenario was checked to have.
    pub fn id(&self, name: &str) -> ActorId {
        self.ids.get(name).copied().unwrap_or(ActorId(u16::MAX))
    }

    /// A random stream of this actor for this purpose.
    pub fn stream(&self, actor: &str, purpose: &str) -> crate::Stream {
        crate::Stream::new(self.seed, &format!("{actor}/{purpose}"))
    }

    /// A whole number, scaled; at least 1.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates, which is wanted")]
    pub fn scaled(&self, number: u32) -> u32 {
        (libm::round(f64::from(number) * self.scale) as u32).max(1)
    }

    /// A series name for each workload: `actor.metric.workload`.
    pub fn by_workload(&self, name: &str, metric: &str) -> Vec<String> {
        self.workloads.iter().map(|workload| format!("{name}.{metric}.{workload}")).collect()
    }

    /// A series of counts for each workload, by its number.
    pub(crate) fn counts_by_workload(&self, name: &str, metric: &str, recorder: &mut Recorder) -> Vec<SeriesId> {
        self.by_workload(name, metric).into_iter().map(|name| recorder.count(name)).collect()
    }

    /// Distinct requests that arrive within a span at the most: twice what is to be expected at the highest rate, and
    /// some. For bounds of what is remembered of requests.
    pub fn most_arrivals(&self, span: Nanos) -> usize {
        self.scenario.population.iter().map(|population| self.most_arrivals_of(population, span)).sum()
    }

    /// The same of one population.
    pub fn most_arrivals_of(&self, population: &Population, span: Nanos) -> usize {
        let events = self.scenario.event.iter().filter(|event| event.actor == population.name);
        let factors = events.clone().filter_map(|event| event.change.rate_factor);
        let factor = factors.fold(1.0, f64::max) * population.curve.iter().map(|point| point.1).fold(1.0, f64::max);
        let times = 1 + population.resubmit.map_or(0, |resubmit| resubmit.times);
        let expected = population.rate_per_second * self.scale * factor * (number_of(span) / 1e9 + 1.0);
        let bursts: u32 = events.filter_map(|event| event.change.burst.as_ref()).map(|burst| burst.count).sum();
        let most = 2.0 * (expected + population.batch_mean * 100.0) + f64::from(bursts);
        usize::try_from(crate::random::nanos(most * f64::from(times))).unwrap_or(usize::MAX)
    }

    /// The numbers of these models; all where there are none.
    pub fn model_numbers(&self, names: &[String]) -> Vec<u16> {
        let known = self.models.iter().enumerate();
        let chosen = known.filter(|(_, model)| names.is_empty() || names.iter().any(|name| name == *model));
        chosen.map(|(index, _)| u16::try_from(index).unwrap_or(u16::MAX)).collect()
    }

    /// The models that can be had at an actor, through layers and links too.
    pub fn models_behind(&self, name: &str) -> Vec<u16> {
        let scenario = self.scenario;
        if let Some(pool) = scenario.model_pool.iter().find(|pool| pool.name == name) {
            return self.model_numbers(&pool.models);
        }
        if let Some(engine) = scenario.engine.iter().find(|engine| engine.name == name) {
            return self.model_numbers(&engine.models);
        }
        self.next_of(name).map_or_else(|| self.model_numbers(&[]), |to| self.models_behind(to))
    }

    /// Where a layer or a link sends its requests.
    fn next_of(&self, name: &str) -> Option<&'a str> {
        let layers = self.scenario.layer.iter().map(|layer| (&layer.name, &layer.to));
        let mut all = layers.chain(self.scenario.link.iter().map(|link| (&link.name, &link.to)));
        all.find(|(from, _)| *from == name).map(|(_, to)| to.as_str())
    }
}

/// A count as a level.
#[expect(clippy::cast_precision_loss, reason = "counts of a simulation are far below 2^53")]
pub(crate) const fn number(count: usize) -> f64 {
    count as f64
}

/// A span as a float of nanoseconds.
#[expect(clippy::cast_precision_loss, reason = "spans are far below 2^53 microseconds")]
pub(crate) const fn number_of(span: Nanos) -> f64 {
    span as f64
}

/// So many of so many equal parts of a span.
pub(crate) fn part_of(span: Nanos, part: u64, parts: u64) -> Nanos {
    u64::try_from(u128::from(span) * u128::from(part) / u128::from(parts.max(1))).unwrap_or(u64::MAX)
}
