//! The pool of workers in virtual time: sharing, de-duplication, refusals, scaling.
#![expect(clippy::float_cmp, reason = "the floats are whole numbers")]

use seawall_cases::scenario::Scenario;
use seawall_sim::{Options, Recorder, World};

/// A population without a rate that sends bursts to a pool; `pool` and `rest` are written into the scenario.
fn run(pool: &str, rest: &str) -> Recorder {
    let text = format!(
        r#"
        [scenario]
        title = "a pool of workers"
        start = "10:00"
        end = "10:10"

        [[worker_pool]]
        name = "pool"
        refusal_wait = "5s"
        {pool}

        {rest}
        "#
    );
    let value = Scenario::value(&text).expect("the text is TOML");
    let scenario = Scenario::from_value(value).expect("it is a scenario");
    let mut world = World::of(&scenario, &Options::default()).expect("it can be built");
    world.run_until(scenario.scenario.end.nanos);
    assert_eq!(world.violations(), [""; 0]);
    world.into_recorder()
}

const fn second(minute: usize, second: usize) -> usize {
    minute * 60 + second
}

/// The seconds in which a series counted, with the counts.
fn counts(recorder: &Recorder, series: &str) -> Vec<(usize, f32)> {
    let values = recorder.values(series).expect("there is such a series").iter().enumerate();
    values.filter(|(_, count)| **count > 0.0).map(|(second, count)| (second, *count)).collect()
}

/// A level at the end of these seconds.
fn levels<const N: usize>(recorder: &Recorder, series: &str, seconds: [usize; N]) -> [f32; N] {
    let values = recorder.values(series).expect("there is such a series");
    seconds.map(|second| values[second])
}

const ORDINARY: &str = r#"
    [[population]]
    name = "documents"
    workload = "documents"
    to = "pool"
    work = { mean = "4s" }
"#;

/// One very large document at 10:00 that runs for five minutes; its client waits 30 s and comes again.
const LARGE: &str = r#"
    [[population]]
    name = "large"
    workload = "large"
    to = "pool"
    large = true
    attempt_timeout = "30s"
    retry = { attempts = 0, wait = "1ms" }

    [[event]]
    name = "a large document"
    at = "10:00:00"
    actor = "large"
    change = { burst = { count = 1, apart = "1s", work = { mean = "5m" } } }
"#;

fn burst(name: &str, at: &str, count: u32, apart: &str) -> String {
    format!(
        r#"
        [[event]]
        name = "{name}"
        at = "{at}"
        actor = "documents"
        change = {{ burst = {{ count = {count}, apart = "{apart}" }} }}
        "#
    )
}

#[test]
fn documents_share_what_large_ones_leave() {
    let pool = r#"
        slots = 10
        accelerator_units = 4.0
        large_units = 2.0
        duplicates = "join"
    "#;
    // Four documents at once, each with two of four units' worth: half speed.
    let rest = format!("{ORDINARY}{LARGE}{}", burst("four", "10:01", 4, "0s"));
    let recorder = run(pool, &rest);
    assert_eq!(counts(&recorder, "documents.succeeded"), [(second(1, 8), 4.0)]);
    // Without the large one they have all four units: full speed.
    let recorder = run(pool, &format!("{ORDINARY}{}", burst("four", "10:01", 4, "0s")));
    assert_eq!(counts(&recorder, "documents.succeeded"), [(second(1, 4), 4.0)]);
}

#[test]
fn a_duplicate_of_abandoned_work_waits_in_a_slot_until_its_limit() {
    let pool = r#"
        slots = 10
        accelerator_units = 4.0
        duplicates = "wait-in-slot"
        waiter_limit = "100s"
    "#;
    let recorder = run(pool, LARGE);
    // One attempt each 30 s; the waiter of 0:30 leaves at 2:10, and so on: never more than four of them.
    let at = [second(0, 29), second(0, 30), second(1, 0), second(2, 0), second(2, 9), second(2, 10), second(4, 59)];
    assert_eq!(levels(&recorder, "pool.waiting", at), [0.0, 1.0, 2.0, 4.0, 4.0, 3.0, 3.0]);
    assert_eq!(levels(&recorder, "pool.held", at), [1.0, 2.0, 3.0, 5.0, 5.0, 4.0, 4.0]);
    // At its end everything is free; only the one who came last still hears of it.
    assert_eq!(levels(&recorder, "pool.held", [second(5, 0)]), [0.0]);
    assert_eq!(counts(&recorder, "pool.answered"), [(second(5, 0), 1.0)]);
    assert_eq!(counts(&recorder, "pool.completed"), [(second(5, 0), 1.0)]);
    let misses: Vec<usize> = counts(&recorder, "pool.deadline_misses").iter().map(|(second, _)| *second).collect();
    assert_eq!(misses, [30, 60, 90, 120, 150, 180, 210, 240, 270]);
}

#[test]
fn a_duplicate_that_leaves_with_its_caller_holds_one_slot_at_a_time() {
    let pool = r#"
        slots = 10
        accelerator_units = 4.0
        duplicates = "wait-in-slot"
        waiters_leave_at_deadline = true
    "#;
    let recorder = run(pool, LARGE);
    assert_eq!(levels(&recorder, "pool.waiting", [second(1, 0), second(3, 0), second(4, 59)]), [1.0; 3]);
}

#[test]
fn a_duplicate_that_joins_holds_nothing() {
    let pool = r#"
        slots = 1
        accelerator_units = 4.0
        duplicates = "join"
    "#;
    let recorder = run(pool, LARGE);
    let at = [second(1, 0), second(4, 59), second(5, 0)];
    assert_eq!(levels(&recorder, "pool.held", at), [1.0, 1.0, 0.0]);
    assert_eq!(levels(&recorder, "pool.duplicates_waiting", at), [1.0, 1.0, 0.0]);
    assert_eq!(counts(&recorder, "pool.refused"), []);
    assert_eq!(counts(&recorder, "large.succeeded"), [(second(5, 0), 1.0)]);
}

#[test]
fn without_de_duplication_each_attempt_is_processed_anew() {
    let pool = r#"
        slots = 2
        accelerator_units = 4.0
        duplicates = "recompute"
    "#;
    let rest = LARGE.replace("attempts = 0", "attempts = 2");
    let recorder = run(pool, &rest);
    assert_eq!(counts(&recorder, "pool.completed"), [(second(5, 0), 1.0), (second(5, 30), 1.0)]);
    assert_eq!(counts(&recorder, "pool.recomputed"), [(second(5, 30), 1.0)]);
    assert_eq!(counts(&recorder, "large.lost"), [(second(1, 0), 1.0)]);
}

#[test]
fn a_full_pool_refuses_and_says_when_to_come_back() {
    let pool = r#"
        slots = 2
        accelerator_units = 4.0
        duplicates = "join"
    "#;
    // Three at once for two slots: the third comes again after five seconds, when both are free.
    let clients = ORDINARY.replace("work =", "retry = { attempts = 2, obeys_advice = true }\n    work =");
    let recorder = run(pool, &format!("{clients}{}", burst("three", "10:01", 3, "0s")));
    assert_eq!(counts(&recorder, "pool.refused"), [(second(1, 0), 1.0)]);
    assert_eq!(counts(&recorder, "pool.attempts"), [(second(1, 0), 3.0), (second(1, 5), 1.0)]);
    assert_eq!(counts(&recorder, "documents.succeeded"), [(second(1, 4), 2.0), (second(1, 9), 1.0)]);
}

#[test]
fn the_pool_scales_by_steps_until_its_ceiling_and_operators_add_to_it() {
    let pool = r#"
        slots = 2
        accelerator_units = 100.0
        duplicates = "join"
        autoscaler = { slots = 1, accelerator_units = 1.0, every = "60s", steps = 2, held_above = 0.85 }
    "#;
    let clients = ORDINARY.replace("4s", "4m");
    let operator = r#"
        [[event]]
        name = "an operator"
        at = "10:03:30"
        actor = "pool"
        change = { slots = 5 }
    "#;
    // One arrival each 10 s, all of them slow.
    let rest = format!("{clients}{}{operator}", burst("many", "10:01", 20, "10s"));
    let recorder = run(pool, &rest);
    let at = [second(1, 9), second(1, 10), second(2, 9), second(2, 10), second(3, 20), second(3, 30), second(9, 0)];
    assert_eq!(levels(&recorder, "pool.slots", at), [2.0, 3.0, 3.0, 4.0, 4.0, 9.0, 9.0]);
    assert_eq!(levels(&recorder, "pool.scaling_steps_left", at), [2.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
}
