//! The cache of results in virtual time: what it keeps, what it drops without a word, and what that costs.
#![expect(clippy::float_cmp, reason = "the floats are whole numbers")]

use seawall_cases::scenario::Scenario;
use seawall_sim::{Options, Recorder, World};

fn run(cache: &str, end: &str, rest: &str) -> Recorder {
    let text = format!(
        r#"
        [scenario]
        title = "a cache of results"
        start = "10:00"
        end = "{end}"

        [[worker_pool]]
        name = "pool"
        slots = 1000
        accelerator_units = 1000.0
        refusal_wait = "5s"
        duplicates = "wait-in-slot"
        writes_to = "cache"

        [[result_cache]]
        name = "cache"
        to = "pool"
        {cache}

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

fn sum(recorder: &Recorder, series: &str) -> f32 {
    recorder.values(series).expect("there is such a series").iter().sum()
}

/// One account, so one document, that is asked for at 10:01 and then each minute.
const SAME: &str = r#"
    [[population]]
    name = "documents"
    workload = "documents"
    to = "cache"
    accounts = 1
    work = { mean = "4s" }

    [[event]]
    name = "the same again and again"
    at = "10:01"
    actor = "documents"
    change = { burst = { count = 5, apart = "60s" } }
"#;

#[test]
fn a_result_is_kept_for_its_time_and_then_computed_again() {
    let cache = r#"
        limit = 10
        keeps = "130s"
        at_limit = "acknowledge-and-discard"
    "#;
    // Written at 1:04, read at 2:00 and 3:00, gone at 3:14, computed again from 4:00.
    let recorder = run(cache, "10:10", SAME);
    assert_eq!((sum(&recorder, "cache.hits"), sum(&recorder, "cache.misses")), (3.0, 2.0));
    assert_eq!((sum(&recorder, "pool.completed"), sum(&recorder, "pool.recomputed")), (2.0, 1.0));
    let held = recorder.values("cache.held").expect("there is such a series");
    assert_eq!([held[63], held[64], held[300], held[304]], [0.0, 1.0, 1.0, 1.0]);
}

#[test]
fn a_full_cache_acknowledges_and_discards_until_something_expires() {
    let cache = r#"
        limit = 2
        keeps = "400s"
        at_limit = "acknowledge-and-discard"
        starts_full = true
    "#;
    // Old results expire at 3:20 and at 6:40: those of 1:04, 2:04 and 3:04 are dropped, that of 4:04 is kept.
    let recorder = run(cache, "10:10", SAME);
    assert_eq!((sum(&recorder, "cache.writes"), sum(&recorder, "cache.discarded")), (4.0, 3.0));
    assert_eq!(sum(&recorder, "cache.hits"), 1.0);
    assert_eq!(sum(&recorder, "pool.recomputed"), 3.0);
    assert_eq!(sum(&recorder, "documents.succeeded"), 5.0);
}

#[test]
fn a_cache_that_evicts_keeps_what_it_acknowledged_last() {
    let cache = r#"
        limit = 2
        keeps = "400s"
        at_limit = "evict-oldest"
        starts_full = true
    "#;
    let recorder = run(cache, "10:10", SAME);
    assert_eq!((sum(&recorder, "cache.writes"), sum(&recorder, "cache.discarded")), (1.0, 0.0));
    assert_eq!(sum(&recorder, "cache.hits"), 4.0);
}

#[test]
fn a_large_result_has_room_of_its_own_where_it_is_said() {
    let large = SAME.replace("accounts = 1", "accounts = 1\n    large = true");
    let stored = |own: bool| {
        let cache = format!(
            r#"
            limit = 1
            keeps = "1h"
            at_limit = "acknowledge-and-discard"
            starts_full = true
            large_have_room = {own}
            "#
        );
        let recorder = run(&cache, "10:10", &large);
        sum(&recorder, "cache.hits")
    };
    assert_eq!((stored(true), stored(false)), (4.0, 0.0));
}

#[test]
fn the_result_of_work_whose_caller_has_left_is_written_too() {
    let cache = r#"
        limit = 10
        keeps = "1h"
        at_limit = "acknowledge-and-discard"
    "#;
    // The caller leaves after one second and does not come again; who asks a minute later finds the result.
    let impatient = SAME.replace("accounts = 1", "accounts = 1\n    attempt_timeout = \"1s\"");
    let recorder = run(cache, "10:10", &impatient);
    assert_eq!((sum(&recorder, "pool.deadline_misses"), sum(&recorder, "documents.timeouts")), (1.0, 1.0));
    assert_eq!((sum(&recorder, "cache.writes"), sum(&recorder, "cache.hits")), (1.0, 4.0));
}

#[test]
fn what_is_stored_settles_at_the_rate_at_which_room_comes_free() {
    let cache = r#"
        limit = 1200
        keeps = "10m"
        at_limit = "acknowledge-and-discard"
        starts_full = true
    "#;
    // Four new documents a second for an hour, room for two: half of the writes are dropped.
    let new = r#"
        [[population]]
        name = "documents"
        workload = "documents"
        to = "cache"
        rate_per_second = 4.0
        work = { mean = "4s" }
    "#;
    let recorder = run(cache, "11:00", new);
    let discarded = sum(&recorder, "cache.discarded") / sum(&recorder, "cache.writes");
    assert!((0.48..0.52).contains(&discarded), "{discarded}");
}

#[test]
fn a_result_that_is_cleared_is_computed_again() {
    let cache = r#"
        limit = 10
        keeps = "1h"
        at_limit = "acknowledge-and-discard"
        starts_full = true
    "#;
    let clear = r#"
        [[event]]
        name = "clear"
        at = "10:02:30"
        actor = "cache"
        change = { clear = true }
    "#;
    let recorder = run(cache, "10:10", &format!("{SAME}{clear}"));
    // Nothing has room before; from the next write at 3:04 on everything has.
    assert_eq!((sum(&recorder, "cache.discarded"), sum(&recorder, "cache.hits")), (2.0, 2.0));
}
