//! Runs a scenario file with several seeds and prints its figures and checks: for whoever calibrates a case.
//!
//! `cargo run --release -p seawall-sim --example figures -- cases/CASE/scenario.toml [--seeds N] [--from N] [--scale X]
//! [--counterfactuals] [--only NAME] [--seawall] [--series]
//! [--vary ACTOR KEY FACTOR]`
#![expect(clippy::print_stdout, reason = "an example talks to the terminal")]
#![expect(clippy::disallowed_methods, reason = "an example says how long it took; nothing depends on it")]

use seawall_cases::scenario::Clock;
use seawall_sim::replay::{Case, SeedRuns, Study};
use seawall_sim::{Options, World};
use std::collections::BTreeMap;

fn main() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| {
        let position = arguments.iter().position(|argument| argument == name)?;
        arguments.get(position + 1).cloned()
    };
    let flag = |name: &str| arguments.iter().any(|argument| argument == name);
    let path = arguments.first().ok_or("name a scenario file")?;
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let mut case = Case::new(path, &text)?;
    if flag("--series") {
        let mut world = World::of(&case.scenario, &Options::default()).map_err(|error| error.to_string())?;
        return {
            world.recorder().names().for_each(|name| println!("{name}"));
            Ok(())
        };
    }
    if let Some(only) = value("--only") {
        case.scenario.counterfactual.retain(|counterfactual| counterfactual.name == only);
    }
    if let Some(position) = arguments.iter().position(|argument| argument == "--vary") {
        let [actor, key, factor] =
            [1, 2, 3].map(|offset| arguments.get(position + offset).cloned().unwrap_or_default());
        let factor: f64 = factor.parse().map_err(|_| "write --vary ACTOR KEY FACTOR")?;
        case.scenario = case.varied(&actor, &key, factor)?;
    }
    let number = |name: &str, default: u64| value(name).map_or(Ok(default), |text| text.parse().map_err(|_| text));
    let (first, count) = (number("--from", 1)?, number("--seeds", 1)?);
    let study = Study {
        counterfactuals: flag("--counterfactuals") || flag("--only"),
        seawall: flag("--seawall"),
        scale: value("--scale").map_or(1.0, |text| text.parse().unwrap_or(1.0)),
        ..Study::new(&case)
    };
    let mut seeds = Vec::new();
    for seed in first..first + count {
        let begin = std::time::Instant::now();
        let runs = study.run(seed)?;
        let seconds = begin.elapsed().as_secs_f64();
        println!(
            "seed {seed}: {} events, {seconds:.1} s, {:?}",
            runs.as_it_happened.events, runs.as_it_happened.violations
        );
        seeds.push(runs);
    }
    print_figures(&seeds);
    print_checks(&study, &seeds);
    Ok(())
}

fn print_figures(seeds: &[SeedRuns]) {
    let mut columns: BTreeMap<(String, &str), Vec<f64>> = BTreeMap::new();
    for runs in seeds {
        let others = runs.counterfactuals.iter().map(|(name, outcome)| (name.clone(), outcome));
        let own = [("-".to_owned(), &runs.as_it_happened), ("seawall".to_owned(), &runs.with_seawall)];
        for (run, outcome) in own.into_iter().chain(others) {
            for (name, value) in &outcome.figures {
                columns.entry((run.clone(), name)).or_default().push(*value);
            }
        }
    }
    for ((run, name), values) in columns {
        let (low, high) = range(&values);
        println!("{run:24} {name:44} {low:12.3} {high:12.3}   ({} of {})", values.len(), seeds.len());
    }
}

fn range(values: &[f64]) -> (f64, f64) {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    (low, values.iter().copied().fold(f64::NEG_INFINITY, f64::max))
}

/// How many passed, what came out, least and greatest value that pass, whether it is a time.
type Told = (usize, Vec<f64>, Option<f64>, Option<f64>, bool);

fn print_checks(study: &Study<'_>, seeds: &[SeedRuns]) {
    let mut names: BTreeMap<(&str, String, String), Told> = BTreeMap::new();
    let over = study.over_seeds(seeds);
    for check in seeds.iter().flat_map(|runs| &runs.checks).chain(&over) {
        let key = (check.run, check.counterfactual.clone().unwrap_or_default(), check.name.clone());
        let entry = names.entry(key).or_insert((0, Vec::new(), check.low, check.high, check.is_time));
        entry.0 += usize::from(check.pass);
        entry.1.extend(check.got);
    }
    for ((run, counterfactual, name), (passed, got, low, high, is_time)) in names {
        let shown = |value: f64| if is_time { clock(value) } else { format!("{value:.3}") };
        let (least, most) = range(&got);
        let bounds = [low, high].map(|bound| bound.map_or("-".to_owned(), shown));
        println!(
            "{} {passed:3} {run:15} {counterfactual:20} {name:44} {} to {}  wanted {} to {}",
            if passed == seeds.len() { "ok  " } else { "FAIL" },
            shown(least),
            shown(most),
            bounds[0],
            bounds[1],
        );
    }
}

fn clock(minutes: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates")]
    Clock { nanos: (minutes * 60.0) as u64 * 1_000_000_000 }.to_string()
}
