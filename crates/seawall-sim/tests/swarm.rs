//! Random worlds: a hundred fixed seeds, and those that have failed once.
//!
//! Each world is told before it runs, so that a panic or a hang names it; `seawall sim swarm --seed N` runs it again.

use seawall_sim::swarm::{Plan, Report};
use std::ops::Range;

/// Seeds that have failed once.
const KEPT: &str = include_str!("data/swarm_seeds.txt");

fn kept() -> Vec<u64> {
    let text = KEPT.lines().map(|line| line.split('#').next().unwrap_or("").trim());
    text.filter(|seed| !seed.is_empty()).map(|seed| seed.parse().expect("a line begins with a seed")).collect()
}

/// The reports of these worlds, and that none of them has failed.
#[expect(clippy::print_stdout, reason = "the runner shows it where a test fails or hangs")]
fn live(seeds: impl IntoIterator<Item = u64>) -> Vec<Report> {
    let run = |seed| {
        let plan = Plan::new(seed);
        println!("{plan}");
        plan.run()
    };
    let reports: Vec<Report> = seeds.into_iter().map(run).collect();
    let failed = reports.iter().filter(|report| !report.failures.is_empty());
    let told: Vec<String> =
        failed.map(|report| format!("seed {}: {}", report.seed, report.failures.join("; "))).collect();
    assert_eq!(told, [] as [String; 0]);
    reports
}

/// The worlds of these seeds are safe and live again; and worlds they are.
fn quarter(seeds: Range<u64>) {
    let reports = live(seeds);
    assert!(reports.iter().all(|report| report.events > 1_000), "something happens in each");
    let with_seawall = reports.iter().filter(|report| report.with_seawall).count();
    assert!((10..25).contains(&with_seawall), "most are with Seawall, some with a naive router: {with_seawall}");
}

#[test]
fn the_first_quarter_of_a_hundred_worlds_lives() {
    quarter(0..25);
}

#[test]
fn the_second_quarter_of_a_hundred_worlds_lives() {
    quarter(25..50);
}

#[test]
fn the_third_quarter_of_a_hundred_worlds_lives() {
    quarter(50..75);
}

#[test]
fn the_last_quarter_of_a_hundred_worlds_lives() {
    quarter(75..100);
}

#[test]
fn worlds_that_have_failed_once_live() {
    let seeds = kept();
    assert!(!seeds.is_empty());
    live(seeds);
}

#[test]
fn the_same_seed_gives_the_same_world_and_the_same_run() {
    let (one, other) = (Plan::new(3), Plan::new(3));
    assert_eq!((one.to_string(), &one.text), (other.to_string(), &other.text));
    let hashes = |plan: &Plan| (plan.run().trace_hash, plan.run().trace_hash);
    let (first, second) = hashes(&one);
    assert_eq!((first.len(), &first, &first), (16, &second, &hashes(&other).0));
    assert_ne!(first, Plan::new(4).run().trace_hash);
}

/// A judge that never finds anything would let every world live.
#[test]
fn a_world_that_does_not_live_again_is_told() {
    let mut plan = Plan::new(671);
    let lasts = plan.text.replace("change = { down = false }", "change = { down = true }");
    assert_ne!(plan.text, lasts);
    plan.text = lasts;
    let report = plan.run();
    assert_eq!(report.seed, 671);
    assert!(report.failures.iter().any(|failure| failure.contains("succeed after the faults")), "{report:?}");
}
