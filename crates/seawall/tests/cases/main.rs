//! The library's cases in the simulator: what was published is replayed on every seed, the cause is the cause, and what
//! had nothing to do with it changes nothing. No case is named here: the library says which there are.
#![expect(clippy::panic, reason = "what a test helper does not find fails the test that asked for it")]

use seawall_cases::library;
use seawall_cases::scenario::{Role, Run};
use seawall_sim::replay::{Case, CheckResult, Outcome, Part, SeedRuns, Step, Study};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

fn cases() -> Vec<Case> {
    let read = |slug, text| Case::new(slug, text).unwrap_or_else(|error| panic!("{slug}: {error}"));
    let cases: Vec<Case> = library().iter().filter_map(|case| Some(read(case.slug, case.scenario?))).collect();
    assert!(!cases.is_empty(), "the library has cases");
    cases
}

/// What `work` makes of each item, in order; over all cores.
fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let results: Vec<Mutex<Option<R>>> = items.iter().map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    let threads = thread::available_parallelism().map_or(1, usize::from).min(items.len());
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((item, result)) = {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    items.get(index).zip(results.get(index))
                } {
                    *result.lock().expect("no worker panics while it holds this") = Some(work(item));
                }
            });
        }
    });
    let done = results.into_iter().map(|result| result.into_inner().ok().flatten());
    done.map(|result| result.expect("a worker that panics fails the test before")).collect()
}

/// The steps of several cases and seeds, judged.
fn judged<'a>(studies: &'a [Study<'a>], seeds: std::ops::RangeInclusive<u64>) -> Vec<Vec<SeedRuns>> {
    let steps = |study: &'a Study<'a>, seed: u64| study.steps().into_iter().map(move |step| (study, seed, step));
    let jobs: Vec<(&Study<'_>, u64, Step<'_>)> =
        studies.iter().flat_map(|study| seeds.clone().flat_map(move |seed| steps(study, seed))).collect();
    let run = |(study, seed, step): &(&Study<'_>, u64, Step<'_>)| -> Part {
        let part = study.step(*step, *seed, |_| {});
        part.unwrap_or_else(|error| panic!("{}, seed {seed}, {step:?}: {error}", study.case.slug))
    };
    let mut parts = jobs.iter().map(|job| job.2).zip(in_parallel(&jobs, run));
    let of_study = |study: &Study<'_>| -> Vec<SeedRuns> {
        let count = study.steps().len();
        seeds.clone().map(|seed| study.judged(seed, parts.by_ref().take(count).collect::<BTreeMap<_, _>>())).collect()
    };
    studies.iter().map(of_study).collect()
}

fn told(runs: &SeedRuns, check: &CheckResult) -> String {
    let (low, high) = (check.low, check.high);
    format!("{}, seed {}, {}: got {:?}, wanted {low:?} to {high:?}", runs.case, runs.seed, check.name, check.got)
}

/// The checks that fail, and what was seen that must never be seen.
fn failures(seeds: &[SeedRuns]) -> Vec<String> {
    let of_seed = |runs: &SeedRuns| {
        let counts = |check: &&CheckResult| check.tag != "assumed" && !check.pass;
        let failed = runs.checks.iter().filter(counts).map(|check| told(runs, check));
        let outcomes = runs.counterfactuals.values().chain([&runs.as_it_happened]);
        let violations = outcomes.flat_map(|outcome| &outcome.violations);
        failed.chain(violations.map(|text| format!("{}, seed {}: {text}", runs.case, runs.seed))).collect::<Vec<_>>()
    };
    seeds.iter().flat_map(of_seed).collect()
}

fn plain(case: &Case) -> Study<'_> {
    Study { counterfactuals: false, seawall: false, ..Study::new(case) }
}

/// The case with only the counterfactuals of one kind, each to the end of the run.
fn only(case: &Case, role: Role) -> Case {
    let mut case = case.clone();
    case.scenario.counterfactual.retain(|other| other.role == Some(role));
    let kept: Vec<String> = case.scenario.counterfactual.iter().map(|other| other.name.clone()).collect();
    case.scenario.check.retain(|check| check.counterfactual.as_ref().is_none_or(|name| kept.contains(name)));
    case.scenario.counterfactual.iter_mut().for_each(|other| other.end = None);
    case
}

#[test]
fn every_published_and_derived_fact_is_replayed_on_every_seed() {
    let cases = cases();
    let studies: Vec<Study<'_>> = cases.iter().map(plain).collect();
    let all = judged(&studies, 1..=3);
    for (study, seeds) in studies.iter().zip(&all) {
        let facts = seeds.iter().flat_map(|runs| &runs.checks).filter(|check| check.tag != "assumed").count();
        assert!(facts > 0, "{} has no published fact", study.case.slug);
    }
    let failed: Vec<String> = all.iter().flat_map(|seeds| failures(seeds)).collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn what_is_changed_does_what_the_case_says() {
    let cases = cases();
    let studies: Vec<Study<'_>> = cases.iter().map(|case| Study { seawall: false, ..Study::new(case) }).collect();
    let failed: Vec<String> = judged(&studies, 1..=1).iter().flat_map(|seeds| failures(seeds)).collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn without_its_cause_there_is_no_incident() {
    let cases: Vec<Case> = cases().iter().map(|case| only(case, Role::Cause)).collect();
    let studies: Vec<Study<'_>> = cases.iter().map(|case| Study { seawall: false, ..Study::new(case) }).collect();
    let mut stays = Vec::new();
    for (study, seeds) in studies.iter().zip(judged(&studies, 1..=3)) {
        let incident: Vec<_> = study.case.scenario.check.iter().filter(|check| check.keeps_incident).collect();
        assert!(!incident.is_empty(), "{} says what its incident is", study.case.slug);
        assert!(!study.case.scenario.counterfactual.is_empty(), "{} names its cause", study.case.slug);
        for (runs, check) in seeds.iter().flat_map(|runs| incident.iter().map(move |check| (runs, check))) {
            let with = runs.checks.iter().find(|other| other.name == check.name && other.run == "as_it_happened");
            assert!(with.is_some_and(|with| with.pass), "{}: the incident is there in the first place", runs.case);
            for (name, outcome) in &runs.counterfactuals {
                if holds(check, outcome) {
                    stays.push(format!("{}, seed {}, {name}: {}", runs.case, runs.seed, check.name));
                }
            }
        }
    }
    assert!(stays.is_empty(), "{stays:#?}");
}

fn holds(check: &seawall_cases::scenario::Check, outcome: &Outcome) -> bool {
    let low = check.low.or(check.earliest.map(seawall_cases::scenario::Clock::minutes));
    let high = check.high.or(check.latest.map(seawall_cases::scenario::Clock::minutes));
    let got = check.figure.as_ref().and_then(|figure| outcome.figures.get(figure));
    match got {
        Some(got) => !check.none && low.is_none_or(|low| *got >= low) && high.is_none_or(|high| *got <= high),
        None => check.none,
    }
}

#[test]
fn what_was_irrelevant_changes_nothing_beyond_the_spread_of_the_seeds() {
    let cases: Vec<Case> = cases().iter().map(|case| only(case, Role::Irrelevant)).collect();
    let cases: Vec<Case> = cases.into_iter().filter(|case| !case.scenario.counterfactual.is_empty()).collect();
    assert!(!cases.is_empty(), "some case names what was irrelevant");
    let studies: Vec<Study<'_>> = cases.iter().map(|case| Study { seawall: false, ..Study::new(case) }).collect();
    let mut moved = Vec::new();
    for (study, seeds) in studies.iter().zip(judged(&studies, 1..=5)) {
        moved.extend(failures(&seeds));
        let over_seeds = study.over_seeds(&seeds);
        moved.extend(over_seeds.iter().filter(|check| !check.pass).map(|check| told(&seeds[0], check)));
        for name in seeds[0].counterfactuals.keys() {
            moved.extend(moved_figures(study.case, &seeds, name));
        }
    }
    assert!(moved.is_empty(), "{moved:#?}");
}

/// The figures of the published facts whose median leaves what they are over the seeds, with half of that as room.
fn moved_figures(case: &Case, seeds: &[SeedRuns], counterfactual: &str) -> Vec<String> {
    let facts = case.scenario.check.iter().filter(|check| check.run == Run::AsItHappened);
    let told = case.scenario.counterfactual.iter().filter(|other| other.name == counterfactual);
    let told: Vec<&String> = told.flat_map(|other| &other.moves).collect();
    let mut moved = Vec::new();
    for figure in facts.filter_map(|check| check.figure.as_ref()).filter(|figure| !told.contains(figure)) {
        let values = |outcome: &dyn Fn(&SeedRuns) -> Option<f64>| -> Vec<f64> {
            let mut values: Vec<f64> = seeds.iter().filter_map(outcome).collect();
            values.sort_by(f64::total_cmp);
            values
        };
        let with = values(&|runs| runs.as_it_happened.figures.get(figure).copied());
        let without = values(&|runs| runs.counterfactuals[counterfactual].figures.get(figure).copied());
        let (Some(least), Some(most)) = (with.first(), with.last()) else { continue };
        let room = (most - least) / 2.0;
        let stays = without.get(without.len() / 2).is_some_and(|median| (least - room..=most + room).contains(median));
        if !stays {
            moved.push(format!("{}, {counterfactual}: {figure} was {with:?}, is {without:?}", case.slug));
        }
    }
    moved
}
