//! The runs of a case with one seed.

use super::case::Case;
use super::judge::{CheckResult, judge, judge_incident};
use crate::construct::{Options, Seawall};
use crate::figures::{Summed, figures};
use crate::recorder::{Recorder, Trail};
use crate::world::World;
use seawall_cases::scenario::{Plot, Run, Scenario};
use seawall_core::protection::Protection;
use serde::Serialize;
use std::collections::BTreeMap;

/// What is left of a run once its figures are read.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Outcome {
    /// The figures; one without a value is not among them.
    pub figures: BTreeMap<String, f64>,
    /// What is drawn: values per second, one point a minute.
    pub series: BTreeMap<String, Vec<(f64, f64)>>,
    /// Hash of everything that happened.
    pub trace_hash: String,
    /// How many things happened.
    pub events: u64,
    /// What was seen that must never be seen.
    pub violations: Vec<String>,
    /// What this run needs and what does not exist yet; it was not made then.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<String>,
}

/// The runs of one seed, and what came of the checks.
#[derive(Clone, Debug, Serialize)]
pub struct SeedRuns {
    /// The case.
    pub case: String,
    /// The seed.
    pub seed: u64,
    /// The incident as it happened.
    pub as_it_happened: Outcome,
    /// The same with Seawall's engine looking on.
    pub observed: Outcome,
    /// With Seawall in the place of the naive routers.
    pub with_seawall: Outcome,
    /// With something changed.
    #[serde(skip)]
    pub counterfactuals: BTreeMap<String, Outcome>,
    /// The checks that one seed can answer.
    pub checks: Vec<CheckResult>,
    /// With each calibrated value a tenth less and a tenth more, where that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub varied: Vec<Varied>,
}

/// The incident with one calibrated value changed.
#[derive(Clone, Debug, Serialize)]
pub struct Varied {
    /// The actor.
    pub actor: String,
    /// The key.
    pub key: String,
    /// What it was multiplied with.
    pub factor: f64,
    /// The checks that say what the incident is.
    pub checks: Vec<CheckResult>,
    /// Whether all of them hold.
    pub keeps_incident: bool,
    /// The range that holds, where the case says that this value is a knife edge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub knife_edge: Option<String>,
}

/// What is run of a case.
#[derive(Clone, Debug)]
pub struct Study<'a> {
    /// The case.
    pub case: &'a Case,
    /// Factor of the volumes.
    pub scale: f64,
    /// Whether the counterfactuals are run.
    pub counterfactuals: bool,
    /// Whether the two runs with Seawall are run.
    pub seawall: bool,
    /// Whether each calibrated value is varied by a tenth.
    pub vary: bool,
    /// A protection of Seawall that is switched off.
    pub without: Option<Protection>,
}

/// One run of a study. The runs of a seed need nothing of each other until they are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step<'a> {
    /// One of the three runs.
    Run(Run),
    /// A counterfactual, by its name.
    Counterfactual(&'a str),
    /// The calibrated value at that place of the scenario's list, a tenth less or (`true`) more.
    Varied(usize, bool),
}

const fn factor(more: bool) -> f64 {
    if more { 1.1 } else { 0.9 }
}

/// What came of one step.
#[derive(Clone, Debug)]
pub struct Part {
    outcome: Outcome,
    trail: Trail,
}

impl<'a> Study<'a> {
    /// Everything of a case.
    pub const fn new(case: &'a Case) -> Self {
        Self { case, scale: 1.0, counterfactuals: true, seawall: true, vary: false, without: None }
    }

    /// The runs of one seed.
    pub fn steps(&self) -> Vec<Step<'a>> {
        let seawall: &[Run] = if self.seawall { &[Run::Observed, Run::WithSeawall] } else { &[] };
        let runs = std::iter::once(Run::AsItHappened).chain(seawall.iter().copied()).map(Step::Run);
        let counterfactuals = self.case.scenario.counterfactual.iter().filter(|_| self.counterfactuals);
        let calibrated = if self.vary { self.case.scenario.calibrated.len() } else { 0 };
        let varied = (0..calibrated).flat_map(|index| [Step::Varied(index, false), Step::Varied(index, true)]);
        runs.chain(counterfactuals.map(|other| Step::Counterfactual(&other.name))).chain(varied).collect()
    }

    /// Runs all steps of one seed one after the other and judges them.
    pub fn run(&self, seed: u64) -> Result<SeedRuns, String> {
        let parts = self.steps().into_iter().map(|step| Ok((step, self.step(step, seed, |_| {})?)));
        Ok(self.judged(seed, parts.collect::<Result<_, String>>()?))
    }

    /// Runs one step with one seed; `watch` is told now and then which part of the run's time has passed.
    pub fn step(&self, step: Step<'_>, seed: u64, watch: impl FnMut(f64)) -> Result<Part, String> {
        let scenario = &self.case.scenario;
        let (outcome, recorder) = match step {
            Step::Run(Run::AsItHappened) => self.one(scenario, seed, Seawall::Absent, None, watch)?,
            Step::Run(run) => {
                let absent = self.absent(run);
                if !absent.is_empty() {
                    return Ok(Part { outcome: Outcome { absent, ..Outcome::default() }, trail: Trail::default() });
                }
                let seawall = if run == Run::Observed { Seawall::Observing } else { Seawall::Enforcing };
                self.one(scenario, seed, seawall, None, watch)?
            }
            Step::Counterfactual(name) => {
                let change = scenario.counterfactual.iter().find(|other| other.name == name);
                let change = change.ok_or_else(|| format!("there is no counterfactual `{name}`"))?;
                let changed = self.case.with(change)?;
                self.one(&changed, seed, Seawall::Absent, change.end.map(|end| end.nanos), watch)?
            }
            Step::Varied(index, more) => {
                let value = &scenario.calibrated[index];
                let changed = self.case.varied(&value.actor, &value.key, factor(more))?;
                self.one(&changed, seed, Seawall::Absent, None, watch)?
            }
        };
        Ok(Part { outcome, trail: recorder.trail() })
    }

    /// Puts the steps of one seed together and judges every check that they can answer.
    pub fn judged(&self, seed: u64, parts: BTreeMap<Step<'_>, Part>) -> SeedRuns {
        let mut runs = SeedRuns {
            case: self.case.slug.clone(),
            seed,
            as_it_happened: Outcome::default(),
            observed: Outcome::default(),
            with_seawall: Outcome::default(),
            counterfactuals: BTreeMap::new(),
            checks: Vec::new(),
            varied: Vec::new(),
        };
        let mut same_until = BTreeMap::new();
        let base = parts.get(&Step::Run(Run::AsItHappened)).map(|part| part.trail.clone()).unwrap_or_default();
        for (step, part) in parts {
            match step {
                Step::Run(Run::Observed) => runs.observed = part.outcome,
                Step::Run(Run::WithSeawall) => runs.with_seawall = part.outcome,
                Step::Run(_) => runs.as_it_happened = part.outcome,
                Step::Counterfactual(name) => {
                    same_until.insert(name.to_owned(), base.same_until(&part.trail));
                    runs.counterfactuals.insert(name.to_owned(), part.outcome);
                }
                Step::Varied(index, more) => runs.varied.push(self.varied(index, more, &part.outcome)),
            }
        }
        runs.checks = judge(self, &runs, &same_until);
        runs
    }

    fn varied(&self, index: usize, more: bool, outcome: &Outcome) -> Varied {
        let value = &self.case.scenario.calibrated[index];
        let checks = judge_incident(self, outcome);
        Varied {
            actor: value.actor.clone(),
            key: value.key.clone(),
            factor: factor(more),
            keeps_incident: checks.iter().all(|check| check.pass),
            checks,
            knife_edge: value.knife_edge.clone(),
        }
    }

    /// Finds what is wrong with the scenario, with what is read from it and with its variants, without running them.
    pub fn validate(&self) -> Result<(), String> {
        let scenario = &self.case.scenario;
        let read = |scenario: &Scenario| -> Result<(), String> {
            let world = World::of(scenario, &Options { scale: self.scale, ..Options::default() });
            let recorder = world.map_err(|error| error.to_string())?.into_recorder();
            figures(scenario, 1.0, &recorder)?;
            scenario.plot.as_ref().map_or_else(|| Ok(BTreeMap::new()), |plot| drawn(plot, &recorder)).map(drop)
        };
        read(scenario)?;
        for change in scenario.counterfactual.iter().filter(|_| self.counterfactuals) {
            read(&self.case.with(change)?).map_err(|error| format!("counterfactual `{}`: {error}", change.name))?;
        }
        for value in scenario.calibrated.iter().filter(|_| self.vary) {
            for more in [false, true] {
                let varied = self.case.varied(&value.actor, &value.key, factor(more))?;
                read(&varied).map_err(|error| format!("{}.{} varied: {error}", value.actor, value.key))?;
            }
        }
        if self.vary && !scenario.calibrated.is_empty() && scenario.check.iter().all(|check| !check.keeps_incident) {
            return Err("no check says what the incident is; mark some with `keeps_incident = true`".to_owned());
        }
        Ok(())
    }

    /// The names of every series that a run records, for figures and plots.
    pub fn series(&self) -> Result<Vec<String>, String> {
        let mut world = World::of(&self.case.scenario, &Options::default()).map_err(|error| error.to_string())?;
        Ok(world.recorder().names().map(str::to_owned).collect())
    }

    /// What a run with Seawall needs and does not have yet.
    fn absent(&self, run: Run) -> Vec<String> {
        let Some(wanted) = &self.case.scenario.with_seawall else {
            return vec!["a place for Seawall in this scenario".to_owned()];
        };
        let needs = wanted.needs.iter().filter(|_| run == Run::WithSeawall);
        needs.filter(|need| !super::exists(need)).cloned().collect()
    }

    /// Runs one scenario with one seed; `watch` is told now and then which part of the run's time has passed.
    pub fn one(
        &self,
        scenario: &Scenario,
        seed: u64,
        seawall: Seawall,
        end: Option<u64>,
        mut watch: impl FnMut(f64),
    ) -> Result<(Outcome, Recorder), String> {
        let options = Options { seed, scale: self.scale, end, seawall, without: self.without };
        let mut world = World::of(scenario, &options).map_err(|error| error.to_string())?;
        let (start, end) = (scenario.scenario.start.nanos, end.unwrap_or(scenario.scenario.end.nanos));
        #[expect(clippy::cast_precision_loss, reason = "a day has fewer nanoseconds than an f64 can count")]
        world.run_watched(end, |now| watch((now - start) as f64 / end.saturating_sub(start).max(1) as f64));
        let (hash, events, violations) = (world.trace_hash(), world.events(), world.violations().to_vec());
        let recorder = world.into_recorder();
        let all = figures(scenario, scenario.scenario.scale * self.scale, &recorder)?;
        let outcome = Outcome {
            figures: all.into_iter().filter(|(_, value)| !value.is_nan()).collect(),
            series: scenario.plot.as_ref().map_or_else(|| Ok(BTreeMap::new()), |plot| drawn(plot, &recorder))?,
            trace_hash: format!("{hash:016x}"),
            events,
            violations,
            absent: Vec::new(),
        };
        Ok((outcome, recorder))
    }
}

/// What is drawn, one point a minute.
fn drawn(plot: &Plot, recorder: &Recorder) -> Result<BTreeMap<String, Vec<(f64, f64)>>, String> {
    let kinds = [
        ("demand", &plot.demand),
        ("attempts", &plot.attempts),
        ("goodput", &plot.goodput),
        ("failed", &plot.failed),
        ("working", &plot.working),
        ("waiting", &plot.waiting),
    ];
    let mut all = BTreeMap::new();
    for (kind, names) in kinds.into_iter().filter(|(_, names)| !names.is_empty()) {
        let summed = Summed::new(recorder, names, None, None)?;
        let minutes = summed.values.chunks(60).enumerate();
        let points = minutes.map(|(minute, chunk)| {
            let mean = chunk.iter().sum::<f64>() / crate::actors::number(chunk.len());
            (summed.minute(minute * 60), mean)
        });
        all.insert(kind.to_owned(), points.collect());
    }
    Ok(all)
}
