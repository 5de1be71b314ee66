//! The runs of a case with one seed.

use super::case::Case;
use super::judge::{CheckResult, judge};
use crate::construct::{Options, Seawall};
use crate::figures::{Summed, figures};
use crate::recorder::Recorder;
use crate::world::World;
use seawall_cases::scenario::{Counterfactual, Plot, Run, Scenario};
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
    /// Whether this run has nothing of Seawall in it because what it needs does not exist yet.
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
    /// A protection of Seawall that is switched off.
    pub without: Option<String>,
}

/// What is being run, for a progress bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// One of the three runs.
    Run(Run),
    /// A counterfactual.
    Counterfactual(&'a str),
}

impl<'a> Study<'a> {
    /// Everything of a case.
    pub const fn new(case: &'a Case) -> Self {
        Self { case, scale: 1.0, counterfactuals: true, seawall: true, without: None }
    }

    /// How many runs one seed takes.
    pub const fn runs(&self) -> usize {
        let counterfactuals = if self.counterfactuals { self.case.scenario.counterfactual.len() } else { 0 };
        1 + counterfactuals + if self.seawall { 2 } else { 0 }
    }

    /// Runs one seed; `begins` is told of each run when it begins.
    pub fn run(&self, seed: u64, mut begins: impl FnMut(Step<'_>)) -> Result<SeedRuns, String> {
        let scenario = &self.case.scenario;
        begins(Step::Run(Run::AsItHappened));
        let (as_it_happened, base) = self.one(scenario, seed, Seawall::Absent, None)?;
        let mut runs = SeedRuns {
            case: self.case.slug.clone(),
            seed,
            as_it_happened,
            observed: Outcome::default(),
            with_seawall: Outcome::default(),
            counterfactuals: BTreeMap::new(),
            checks: Vec::new(),
        };
        if self.seawall {
            begins(Step::Run(Run::Observed));
            runs.observed = self.one(scenario, seed, Seawall::Observing, None)?.0;
            begins(Step::Run(Run::WithSeawall));
            runs.with_seawall = self.enforced(seed)?;
        }
        let mut same_until = BTreeMap::new();
        for counterfactual in scenario.counterfactual.iter().filter(|_| self.counterfactuals) {
            begins(Step::Counterfactual(&counterfactual.name));
            let (outcome, recorder) = self.counterfactual(counterfactual, seed)?;
            same_until.insert(counterfactual.name.clone(), base.same_until(&recorder));
            runs.counterfactuals.insert(counterfactual.name.clone(), outcome);
        }
        runs.checks = judge(self, &runs, &same_until);
        Ok(runs)
    }

    fn enforced(&self, seed: u64) -> Result<Outcome, String> {
        let wanted = self.case.scenario.with_seawall.as_ref();
        let needs = wanted.map_or(&[][..], |with| with.needs.as_slice());
        let absent: Vec<String> = needs.iter().filter(|need| !super::exists(need)).cloned().collect();
        if !absent.is_empty() || wanted.is_none() {
            return Ok(Outcome { absent, ..Outcome::default() });
        }
        Ok(self.one(&self.case.scenario, seed, Seawall::Enforcing, None)?.0)
    }

    /// Runs one counterfactual with one seed.
    pub fn counterfactual(&self, change: &Counterfactual, seed: u64) -> Result<(Outcome, Recorder), String> {
        let scenario = self.case.with(change)?;
        self.one(&scenario, seed, Seawall::Absent, change.end.map(|end| end.nanos))
    }

    /// Runs one scenario with one seed.
    pub fn one(
        &self,
        scenario: &Scenario,
        seed: u64,
        seawall: Seawall,
        end: Option<u64>,
    ) -> Result<(Outcome, Recorder), String> {
        let options = Options { seed, scale: self.scale, end, seawall, without: self.without.clone() };
        let mut world = World::of(scenario, &options).map_err(|error| error.to_string())?;
        world.run_until(end.unwrap_or(scenario.scenario.end.nanos));
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
