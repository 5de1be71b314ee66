//! What came of a replay, for programs: the JSON shapes, and whether everything passed.

use seawall_sim::replay::{CheckResult, Outcome, SeedRuns, Study, Verdict};
use serde::Serialize;
use std::collections::BTreeMap;

/// A case that was replayed.
pub(super) struct Replayed<'a> {
    pub(super) study: &'a Study<'a>,
    pub(super) seeds: Vec<SeedRuns>,
    /// The checks that only several seeds can answer.
    pub(super) over_seeds: Vec<CheckResult>,
}

/// One calibrated value, changed, over the seeds.
pub(super) struct VariedOverSeeds<'a> {
    pub(super) actor: &'a str,
    pub(super) key: &'a str,
    pub(super) factor: f64,
    /// The seeds in which the incident stays.
    pub(super) kept: usize,
    pub(super) seeds: usize,
    /// The range that holds, where the case says that this is a knife edge.
    pub(super) knife_edge: Option<&'a str>,
}

/// A figure over the seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Spread {
    low: f64,
    median: f64,
    high: f64,
    /// The seeds for which it has a value.
    seeds: usize,
}

/// What is told of a case: one seed, or all that were asked for with what they have in common.
#[derive(Serialize)]
#[serde(untagged)]
enum Answer<'a> {
    Seed(&'a SeedRuns),
    Seeds(OverSeeds<'a>),
}

/// A case over several seeds.
#[derive(Serialize)]
struct OverSeeds<'a> {
    case: &'a str,
    runs: &'a [SeedRuns],
    /// By run, then by figure.
    spread: BTreeMap<String, BTreeMap<&'a str, Spread>>,
    checks: &'a [CheckResult],
}

impl<'a> Replayed<'a> {
    pub(super) fn new(study: &'a Study<'a>, seeds: Vec<SeedRuns>) -> Self {
        let over_seeds = study.over_seeds(&seeds);
        Self { study, seeds, over_seeds }
    }

    /// Every result, in order of the seeds.
    pub(super) fn results(&self) -> impl Iterator<Item = &CheckResult> {
        self.seeds.iter().flat_map(|runs| &runs.checks).chain(&self.over_seeds)
    }

    /// What was seen in a run that must never be seen.
    pub(super) fn violations(&self) -> Vec<String> {
        let mut all = Vec::new();
        for runs in &self.seeds {
            for (run, outcome) in outcomes(runs) {
                all.extend(outcome.violations.iter().map(|text| format!("seed {}, {run}: {text}", runs.seed)));
            }
        }
        all
    }

    /// Each calibrated value that was varied, in the order of the scenario.
    pub(super) fn varied(&self) -> Vec<VariedOverSeeds<'_>> {
        let Some(first) = self.seeds.first() else { return Vec::new() };
        let over_seeds = first.varied.iter().enumerate().map(|(index, one)| VariedOverSeeds {
            actor: &one.actor,
            key: &one.key,
            factor: one.factor,
            kept: self.seeds.iter().filter(|runs| runs.varied[index].keeps_incident).count(),
            seeds: self.seeds.len(),
            knife_edge: one.knife_edge.as_deref(),
        });
        over_seeds.collect()
    }

    /// Whether every check passes, nothing was seen that must never be seen, and the incident stayed where a value was
    /// varied.
    pub(super) fn passes(&self) -> bool {
        // A knife edge is known to break: the case says so.
        let stays = self.varied().iter().all(|varied| varied.kept == varied.seeds || varied.knife_edge.is_some());
        stays && self.violations().is_empty() && self.results().all(|check| check.verdict == Verdict::Pass)
    }

    fn answer(&self, several: bool) -> Answer<'_> {
        match self.seeds.as_slice() {
            [runs] if !several => Answer::Seed(runs),
            runs => Answer::Seeds(OverSeeds {
                case: &self.study.case.slug,
                runs,
                spread: spread(runs),
                checks: &self.over_seeds,
            }),
        }
    }
}

/// The JSON answer: an object for one case, an array where all were asked for.
pub(super) fn json(all: &[Replayed<'_>], several: bool, as_array: bool) -> String {
    let answers: Vec<Answer<'_>> = all.iter().map(|replayed| replayed.answer(several)).collect();
    let text = match answers.as_slice() {
        [one] if !as_array => serde_json::to_string(one),
        many => serde_json::to_string(many),
    };
    text.expect("plain data has a JSON form") + "\n"
}

/// The runs of a seed, with their names.
pub(super) fn outcomes(runs: &SeedRuns) -> impl Iterator<Item = (String, &Outcome)> {
    let own =
        [("as_it_happened", &runs.as_it_happened), ("observed", &runs.observed), ("with_seawall", &runs.with_seawall)];
    let others = runs.counterfactuals.iter().map(|(name, outcome)| (format!("counterfactual {name}"), outcome));
    own.into_iter().map(|(name, outcome)| (name.to_owned(), outcome)).chain(others)
}

fn spread(seeds: &[SeedRuns]) -> BTreeMap<String, BTreeMap<&str, Spread>> {
    let mut values: BTreeMap<String, BTreeMap<&str, Vec<f64>>> = BTreeMap::new();
    for (run, outcome) in seeds.iter().flat_map(outcomes) {
        let of_run = values.entry(run).or_default();
        for (name, value) in &outcome.figures {
            of_run.entry(name).or_default().push(*value);
        }
    }
    let of_run = |(run, figures): (String, BTreeMap<_, Vec<f64>>)| {
        (run, figures.into_iter().filter_map(|(name, values)| Some((name, Spread::of(values)?))).collect())
    };
    values.into_iter().map(of_run).collect()
}

impl Spread {
    fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let (low, high) = (*values.first()?, *values.last()?);
        let middle = (values[(values.len() - 1) / 2], values[values.len() / 2]);
        Some(Self { low, median: f64::midpoint(middle.0, middle.1), high, seeds: values.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_has_the_middle_of_the_two_middle_values() {
        assert_eq!(Spread::of(Vec::new()), None);
        assert_eq!(Spread::of(vec![3.0]), Some(Spread { low: 3.0, median: 3.0, high: 3.0, seeds: 1 }));
        let four = Spread::of(vec![4.0, 1.0, 3.0, 2.0]);
        assert_eq!(four, Some(Spread { low: 1.0, median: 2.5, high: 4.0, seeds: 4 }));
    }
}
