//! What came of a check.

use super::run::{Outcome, SeedRuns, Study};
use seawall_cases::scenario::{Check, OverSeeds, Run, Tag};
use serde::Serialize;
use std::collections::BTreeMap;

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The figure is as it has to be.
    Pass,
    /// It is not.
    Fail,
    /// What it is about does not exist yet: it does not count as passing.
    Absent,
}

/// One check of one run.
#[derive(Clone, Debug, Serialize)]
pub struct CheckResult {
    /// Which run.
    pub run: &'static str,
    /// The counterfactual, where it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counterfactual: Option<String>,
    /// Its name.
    pub name: String,
    /// Where the fact comes from.
    pub tag: &'static str,
    /// What was published, or the reason.
    pub published: String,
    /// The least value that passes; times in minutes since midnight.
    pub low: Option<f64>,
    /// The greatest value that passes.
    pub high: Option<f64>,
    /// What came out; `None`: nothing of the kind happened, or it is not measured.
    pub got: Option<f64>,
    /// Whether the figure is a time of day.
    pub is_time: bool,
    /// Whether it passes.
    pub pass: bool,
    /// How it ended.
    pub verdict: Verdict,
    /// What is missing, where something is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needs: Option<String>,
}

pub(super) const fn run_name(run: Run) -> &'static str {
    match run {
        Run::AsItHappened => "as_it_happened",
        Run::Observed => "observed",
        Run::WithSeawall => "with_seawall",
        Run::Counterfactual => "counterfactual",
    }
}

const fn tag_name(tag: Tag) -> &'static str {
    match tag {
        Tag::Published => "published",
        Tag::Derived => "derived",
        Tag::Assumed => "assumed",
    }
}

impl CheckResult {
    fn of(study: &Study<'_>, check: &Check, got: Option<f64>, absent: Option<String>) -> Self {
        let figures = &study.case.scenario.figure;
        let is_time = figures.iter().any(|figure| Some(&figure.name) == check.figure.as_ref() && figure.is_time);
        let low = check.low.or(check.earliest.map(seawall_cases::scenario::Clock::minutes));
        let high = check.high.or(check.latest.map(seawall_cases::scenario::Clock::minutes));
        let fits = |value: f64| low.is_none_or(|low| value >= low) && high.is_none_or(|high| value <= high);
        let pass = absent.is_none() && if check.none { got.is_none() } else { got.is_some_and(fits) };
        let verdict = match (pass, &absent) {
            (true, _) => Verdict::Pass,
            (false, Some(_)) => Verdict::Absent,
            (false, None) => Verdict::Fail,
        };
        Self {
            run: run_name(check.run),
            counterfactual: check.counterfactual.clone(),
            name: check.name.clone(),
            tag: tag_name(check.tag),
            published: check.published.clone(),
            low,
            high,
            got,
            is_time: is_time && !check.against_as_it_happened,
            pass,
            verdict,
            needs: absent,
        }
    }
}

/// Judges every check that one seed can answer and that was run.
pub(super) fn judge(study: &Study<'_>, runs: &SeedRuns, same_until: &BTreeMap<String, f64>) -> Vec<CheckResult> {
    let checks = study.case.scenario.check.iter().filter(|check| check.over_seeds == OverSeeds::Each);
    checks.filter_map(|check| one(study, check, runs, same_until)).collect()
}

/// Judges the checks that say what the incident is, for a run that is not one of the three.
pub(super) fn judge_incident(study: &Study<'_>, outcome: &Outcome) -> Vec<CheckResult> {
    let checks = study.case.scenario.check.iter().filter(|check| check.keeps_incident);
    checks
        .map(|check| {
            let got = check.figure.as_ref().and_then(|name| outcome.figures.get(name).copied());
            CheckResult::of(study, check, got, None)
        })
        .collect()
}

fn one(study: &Study<'_>, check: &Check, runs: &SeedRuns, same_until: &BTreeMap<String, f64>) -> Option<CheckResult> {
    let outcome = outcome(study, check, runs)?;
    let missing = check.needs.clone().filter(|need| !super::exists(need));
    let absent = missing.or_else(|| outcome.absent.first().cloned());
    let absent =
        absent.or_else(|| (check.figure.is_none() && check.same_until.is_none()).then(|| "a measure".to_owned()));
    if absent.is_some() {
        return Some(CheckResult::of(study, check, None, absent));
    }
    if let Some(until) = check.same_until {
        let same = same_until.get(check.counterfactual.as_deref()?).copied();
        let mut result = CheckResult::of(study, check, same, None);
        result.low = Some(until.minutes());
        result.is_time = true;
        result.pass = same.is_some_and(|same| same >= until.minutes());
        result.verdict = if result.pass { Verdict::Pass } else { Verdict::Fail };
        return Some(result);
    }
    Some(CheckResult::of(study, check, value(check, outcome, runs), None))
}

fn outcome<'a>(study: &Study<'_>, check: &Check, runs: &'a SeedRuns) -> Option<&'a Outcome> {
    match check.run {
        Run::AsItHappened => Some(&runs.as_it_happened),
        Run::Observed => study.seawall.then_some(&runs.observed),
        Run::WithSeawall => study.seawall.then_some(&runs.with_seawall),
        Run::Counterfactual => runs.counterfactuals.get(check.counterfactual.as_deref()?),
    }
}

fn value(check: &Check, outcome: &Outcome, runs: &SeedRuns) -> Option<f64> {
    let name = check.figure.as_ref()?;
    let got = outcome.figures.get(name).copied()?;
    if !check.against_as_it_happened {
        return Some(got);
    }
    Some(got - runs.as_it_happened.figures.get(name).copied()?)
}

impl Study<'_> {
    /// Judges the checks that need several seeds; with fewer than five they are not told.
    pub fn over_seeds(&self, seeds: &[SeedRuns]) -> Vec<CheckResult> {
        if seeds.len() < 5 {
            return Vec::new();
        }
        let checks = self.case.scenario.check.iter().filter(|check| check.over_seeds == OverSeeds::Median);
        checks
            .filter_map(|check| {
                let plain = Check { against_as_it_happened: false, ..check.clone() };
                let of_run: Vec<f64> =
                    seeds.iter().filter_map(|runs| value(&plain, outcome(self, check, runs)?, runs)).collect();
                let mut got = median(of_run);
                if check.against_as_it_happened {
                    let name = check.figure.as_ref()?;
                    let base = seeds.iter().filter_map(|runs| runs.as_it_happened.figures.get(name).copied());
                    got = Some(got? - median(base.collect())?);
                }
                Some(CheckResult::of(self, check, got, None))
            })
            .collect()
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.is_empty() {
        return None;
    }
    Some(if values.len() % 2 == 1 { values[middle] } else { f64::midpoint(values[middle - 1], values[middle]) })
}
