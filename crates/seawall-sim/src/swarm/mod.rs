//! Random worlds from a seed: a topology, faults and settings; safety while the faults last, and life once they are
//! lifted.
//!
//! *Safety*: no checker finds anything in any world, with Seawall or without, and an engine that looks on changes nothing.
//! *Life*: with Seawall, of the requests that are first sent from a minute after the last fault was lifted on, 95% of every
//! population's succeed. Nobody asks for more than three fifths of what the servers can do then, so all could. *End*: once
//! nothing new begins, everything drains: no call, no request and no event is left. Of a naive router no life is asked: that
//! it may stay down after a storm is what the cases show.
//!
//! The same seed gives the same world, the same run and the same report. A change of the generator makes other worlds of
//! old seeds.
//!
//! *Left out*, since today's engine does not live with it: a refusal that sticks to one request for longer than a second.
//! The engine takes it for the deployment's, closes it for everybody, and its retries keep it closed (the case of the
//! retry storm shows that at length). An overload that lasts, and faults of more than half a minute, for which a
//! deployment is rightly left alone for longer than a world is looked at.

mod dice;
mod faults;
mod settings;
mod topology;

use crate::construct::{Given, Options, Seawall};
use crate::world::World;
use crate::{Nanos, SECOND};
use dice::Dice;
use faults::Faults;
use seawall_cases::scenario::{Clock, Scenario};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use topology::Topology;

/// Ten o'clock.
const START: Nanos = 36_000 * SECOND;
/// How long a world may take to live again after its last fault.
const RECOVERY: Nanos = 60 * SECOND;
/// How long it is looked at from then on.
const LOOK: Nanos = 120 * SECOND;
/// Of each population's requests so many have to succeed then.
const LIFE_PERCENT: f64 = 95.0;
/// The longest that anything can take to end: all attempts of the most patient client, one after the other.
const DRAIN: Nanos = 3 * 3600 * SECOND;

/// A random world that can be run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Its seed.
    pub seed: u64,
    /// What of Seawall takes part.
    pub seawall: Seawall,
    /// Its scenario file.
    pub text: String,
    given: Given,
    populations: Vec<String>,
    lifted: Nanos,
    end: Nanos,
    words: String,
}

/// What came of a world.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Its seed.
    pub seed: u64,
    /// What it was, in a few words.
    pub options: String,
    /// Whether Seawall took part, and not only as one that looks on.
    pub with_seawall: bool,
    /// Everything that must not be.
    pub failures: Vec<String>,
    /// Of each population: the percentage of its requests that succeeded once the world had to live again.
    pub succeeded_percent: BTreeMap<String, f64>,
    /// How many things happened.
    pub events: u64,
    /// A hash of everything that happened.
    pub trace_hash: String,
}

impl fmt::Display for Plan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "seed {}: {}", self.seed, self.words)
    }
}

impl Plan {
    /// The world of a seed.
    pub fn new(seed: u64) -> Self {
        let topology = Topology::draw(&mut Dice::new(seed, "topology"));
        let faults = Faults::draw(START, &topology, &mut Dice::new(seed, "faults"));
        let mut dice = Dice::new(seed, "settings");
        let kinds = [Seawall::Enforcing, Seawall::Enforcing, Seawall::Enforcing, Seawall::Observing];
        let seawall = dice.one(&kinds);
        let (given, settings) = settings::draw(&topology, &mut dice);
        let end = faults.lifted + RECOVERY + LOOK;
        let header = format!(
            "[scenario]\ntitle = \"swarm {seed}\"\nstart = \"{}\"\nend = \"{}\"\nattempts_at = [\"router\"]\n\n\
             [with_seawall]\nreplaces = [\"router\"]\n",
            Clock { nanos: START },
            Clock { nanos: end },
        );
        let words = match seawall {
            Seawall::Enforcing => format!("Seawall ({settings}); {}; {}", topology.words, faults.words),
            _ => format!("a naive router; {}; {}", topology.words, faults.words),
        };
        Self {
            seed,
            seawall,
            text: format!("{header}\n{}{}", topology.text, faults.text),
            given,
            populations: topology.populations,
            lifted: faults.lifted,
            end,
            words,
        }
    }

    fn report(&self) -> Report {
        Report {
            seed: self.seed,
            options: self.words.clone(),
            with_seawall: self.seawall == Seawall::Enforcing,
            failures: Vec::new(),
            succeeded_percent: BTreeMap::new(),
            events: 0,
            trace_hash: String::new(),
        }
    }

    /// What is told of it where its run has panicked.
    pub fn panicked(&self) -> Report {
        Report { failures: vec!["it panicked".to_owned()], ..self.report() }
    }

    /// Runs it. A world that cannot be built is a failure like any other.
    pub fn run(&self) -> Report {
        let mut report = self.report();
        match self.scenario().and_then(|scenario| Ok((self.world(&scenario, self.seawall)?, scenario))) {
            Ok((world, scenario)) => self.judge(world, &scenario, &mut report),
            Err(error) => report.failures.push(error),
        }
        report
    }

    fn scenario(&self) -> Result<Scenario, String> {
        let value = Scenario::value(&self.text).map_err(|error| error.to_string())?;
        Scenario::from_value(value).map_err(|error| error.to_string())
    }

    fn world(&self, scenario: &Scenario, seawall: Seawall) -> Result<World, String> {
        let options = Options { seed: self.seed, seawall, ..Options::default() };
        let given = (seawall == Seawall::Enforcing).then_some(&self.given);
        World::given(scenario, &options, given).map_err(|error| error.to_string())
    }

    fn judge(&self, mut world: World, scenario: &Scenario, report: &mut Report) {
        world.run_until(self.end);
        let hash = world.trace_hash();
        world.drain(DRAIN);
        report.events = world.events();
        report.trace_hash = format!("{:016x}", world.trace_hash());
        report.failures.extend(world.violations().iter().cloned());
        let recorder = world.into_recorder();
        let from = usize::try_from((self.lifted + RECOVERY - START) / SECOND).unwrap_or(usize::MAX);
        let until = from + usize::try_from(LOOK / SECOND).unwrap_or(0);
        for name in &self.populations {
            let sum = |metric: &str| {
                let values = recorder.values(&format!("{name}.{metric}")).unwrap_or(&[]);
                values.iter().take(until).skip(from).map(|value| f64::from(*value)).sum::<f64>()
            };
            let percent = 100.0 * sum("served") / sum("requests").max(1.0);
            if self.seawall == Seawall::Enforcing && percent < LIFE_PERCENT {
                report.failures.push(format!("only {percent:.1}% of the requests of {name} succeed after the faults"));
            }
            report.succeeded_percent.insert(name.clone(), percent);
        }
        if self.seawall == Seawall::Observing {
            match self.world(scenario, Seawall::Absent) {
                Ok(mut absent) => {
                    absent.run_until(self.end);
                    if absent.trace_hash() != hash {
                        report.failures.push("an engine that looks on changes the run".to_owned());
                    }
                }
                Err(error) => report.failures.push(error),
            }
        }
    }
}
