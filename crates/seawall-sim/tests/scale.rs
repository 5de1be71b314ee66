//! What a case shows does not depend on the scale at which it is run.

use seawall_sim::replay::{Case, SeedRuns, Study};

const RETRY_STORM: &str = include_str!("../../../cases/azure-2026-05-29-retry-storm/scenario.toml");

/// Figures that volumes take no part in, and how far two scales may lie apart: a part of the value, or minutes.
const SAME: [(&str, f64); 4] = [
    ("attempts_per_distinct_before", 0.05),
    ("wave_1_attempts_per_distinct", 0.15),
    ("wave_2_attempts_per_distinct", 0.05),
    ("wave_2_failed_share", 0.05),
];
const TIMES: [(&str, f64); 4] =
    [("wave_1_begin", 10.0), ("wave_1_end", 20.0), ("wave_2_begin", 10.0), ("wave_2_end", 20.0)];

fn run(case: &Case, scale: f64) -> SeedRuns {
    let study = Study { scale, counterfactuals: false, seawall: false, ..Study::new(case) };
    study.run(1).expect("the case runs")
}

/// The storm has 106 first attempts a second at scale 1. Much smaller, and chance alone fills an instance's memory.
#[test]
fn the_retry_storm_is_the_same_at_twice_the_scale() {
    let case = Case::new("retry-storm", RETRY_STORM).expect("a good case");
    let runs = [1.0, 2.0].map(|scale| run(&case, scale));
    for runs in &runs {
        let failed: Vec<_> = runs.checks.iter().filter(|check| check.run == "as_it_happened" && !check.pass).collect();
        assert!(failed.is_empty() && !runs.checks.is_empty(), "{failed:#?}");
    }
    let [single, double] = runs.map(|runs| runs.as_it_happened);
    assert!(double.events > single.events * 3 / 2, "{} events, then {}", single.events, double.events);
    for (name, part) in SAME {
        let (one, two) = (single.figures[name], double.figures[name]);
        assert!((two / one - 1.0).abs() <= part, "{name}: {one}, then {two}");
    }
    for (name, minutes) in TIMES {
        let (one, two) = (single.figures[name], double.figures[name]);
        assert!((two - one).abs() <= minutes, "{name}: minute {one}, then {two}");
    }
}
