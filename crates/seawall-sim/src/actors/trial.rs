//! Small worlds for the tests of actors: a scenario as text, run to its end.

use crate::{Options, Recorder, World};
use seawall_cases::scenario::Scenario;

/// Ten requests' worth of nobody: arrivals are bursts, so that all times are known.
pub(super) const CLIENT: &str = r#"
[scenario]
title = "a trial"
start = "10:00"
end = "10:02"

[[population]]
name = "client"
workload = "client"
to = "door"
"#;

/// Runs a scenario to its end.
pub(super) fn run(parts: &[&str]) -> Recorder {
    let value = Scenario::value(&parts.concat()).expect("the text is TOML");
    let scenario = Scenario::from_value(value).expect("the text is a scenario");
    let mut world = World::of(&scenario, &Options::default()).expect("the scenario can be built");
    world.run_until(scenario.scenario.end.nanos);
    assert_eq!(world.violations(), [""; 0]);
    world.into_recorder()
}

/// The text of an event.
pub(super) fn event(name: &str, at: &str, actor: &str, change: &str) -> String {
    format!("\n[[event]]\nname = {name:?}\nat = {at:?}\nactor = {actor:?}\nchange = {{ {change} }}\n")
}

/// The sum of a series.
pub(super) fn total(recorder: &Recorder, name: &str) -> u64 {
    let values = recorder.values(name).expect("there is such a series");
    crate::random::nanos(values.iter().map(|value| f64::from(*value)).sum())
}

/// The values of a series in its first seconds.
pub(super) fn seconds(recorder: &Recorder, name: &str, count: usize) -> Vec<u64> {
    let values = recorder.values(name).expect("there is such a series");
    values[..count].iter().map(|value| crate::random::nanos(f64::from(*value))).collect()
}
