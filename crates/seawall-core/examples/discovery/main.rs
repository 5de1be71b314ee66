//! Judges the methods of capacity discovery and prints the tables of `docs/benchmarks/discovery.md`.
//!
//! `cargo run --release -p seawall-core --example discovery -- SEEDS [METHOD...]`; `cargo xtask evidence discovery`
//! writes the page. Goodput is what was served in time over what a fluid oracle would have served.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "counts and times of a run of minutes"
)]

mod scenarios;
mod world;

use scenarios::{Group, groups, shapes, steps};
use seawall_core::capacity::REGISTRY;
use std::io::{self, Write};
use std::process::ExitCode;
use world::{Scenario, run};

/// How a run is done: the method, and whether the slots are told.
#[derive(Clone, Copy)]
struct Contender<'a> {
    name: &'a str,
    told: bool,
}

fn main() -> io::Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(seeds) = arguments.first().and_then(|text| text.parse().ok()) else {
        writeln!(io::stderr(), "usage: discovery SEEDS [METHOD...]")?;
        return Ok(ExitCode::from(2));
    };
    let chosen = |name: &str| arguments.len() == 1 || arguments[1..].iter().any(|argument| argument == name);
    let methods = REGISTRY.iter().map(|entry| entry.name).filter(|name| chosen(name));
    let mut contenders = vec![Contender { name: "ceiling", told: true }];
    contenders.extend(methods.map(|name| Contender { name, told: false }));
    let mut out = io::stdout().lock();
    shape_table(&mut out, &contenders, seeds)?;
    step_table(&mut out, &contenders[1..], seeds)?;
    other_table(&mut out, &contenders, seeds)?;
    Ok(ExitCode::SUCCESS)
}

/// The mean over the seeds of what was served over what the oracle serves.
fn goodput(scenario: &Scenario, contender: Contender<'_>, seeds: u64) -> f64 {
    let told = contender.told.then_some(scenario.phases[0].slots);
    let ratios = (1..=seeds).map(|seed| run(scenario, contender.name, told, seed).ratio());
    ratios.sum::<f64>() / seeds as f64
}

fn heading(out: &mut impl Write, title: &str, first: &str, contenders: &[Contender<'_>]) -> io::Result<()> {
    let names = contenders.iter().map(|contender| if contender.told { "told" } else { contender.name });
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    writeln!(out, "### {title}\n\n| {first} | {} |", names.join(" | "))?;
    writeln!(out, "| --- |{}", " ---: |".repeat(names.len()))
}

fn shape_table(out: &mut impl Write, contenders: &[Contender<'_>], seeds: u64) -> io::Result<()> {
    heading(out, "The six shapes: the worst of two storms and three loads", "slots x service", contenders)?;
    let mut worst = vec![(f64::INFINITY, 0.0_f64); contenders.len()];
    for Group { name, scenarios } in shapes() {
        let mut row = vec![f64::INFINITY; contenders.len()];
        for scenario in &scenarios {
            let told = goodput(scenario, contenders[0], seeds);
            for (index, contender) in contenders.iter().enumerate() {
                let good = if index == 0 { told } else { goodput(scenario, *contender, seeds) };
                row[index] = row[index].min(good);
                worst[index] = (worst[index].0.min(good), worst[index].1.max(told - good));
            }
        }
        writeln!(out, "| {name} | {} |", cells(&row))?;
    }
    let (least, most): (Vec<f64>, Vec<f64>) = worst.into_iter().unzip();
    writeln!(out, "| **worst of all** | {} |", cells(&least))?;
    writeln!(out, "| largest loss against told | {} |\n", cells(&most))
}

fn cells(values: &[f64]) -> String {
    values.iter().map(|value| format!("{value:.3}")).collect::<Vec<_>>().join(" | ")
}

fn step_table(out: &mut impl Write, contenders: &[Contender<'_>], seeds: u64) -> io::Result<()> {
    let title = "Steps: seconds until the window stays within 0.95 to 3 times the slots, middle and slowest seed";
    heading(out, title, "slots, law", contenders)?;
    for (name, scenario) in steps() {
        let mut row = Vec::new();
        for contender in contenders {
            let settle = |seed| run(&scenario, contender.name, None, seed).settles(&scenario);
            let mut times: Vec<f64> = (1..=seeds).map(settle).collect();
            times.sort_unstable_by(f64::total_cmp);
            let shown = |time: f64| if time.is_finite() { format!("{time:.1}") } else { "never".to_owned() };
            row.push(format!("{}, {}", shown(times[times.len() / 2]), shown(times[times.len() - 1])));
        }
        writeln!(out, "| {name} | {} |", row.join(" | "))?;
    }
    writeln!(out)
}

fn other_table(out: &mut impl Write, contenders: &[Contender<'_>], seeds: u64) -> io::Result<()> {
    heading(out, "Other laws and upstreams: loads 0.8, 1.2, 2", "upstream", contenders)?;
    for Group { name, scenarios } in groups() {
        let of = |contender: &Contender<'_>| {
            let loads = scenarios.iter().map(|scenario| format!("{:.3}", goodput(scenario, *contender, seeds)));
            loads.collect::<Vec<_>>().join(" ")
        };
        writeln!(out, "| {name} | {} |", contenders.iter().map(of).collect::<Vec<_>>().join(" | "))?;
    }
    Ok(())
}
