//! Seawall's engine beside a naive router: it has no effect, and it says what it would have done.
#![expect(clippy::float_cmp, reason = "the floats are whole numbers")]

use seawall_cases::scenario::Scenario;
use seawall_sim::{Options, Recorder, Seawall, World};

fn read(text: &str) -> Scenario {
    let value = Scenario::value(text).expect("the text is TOML");
    Scenario::from_value(value).expect("it is a scenario")
}

fn run(scenario: &Scenario, seed: u64, seawall: Seawall) -> (Recorder, u64) {
    let options = Options { seed, seawall, ..Options::default() };
    let mut world = World::of(scenario, &options).expect("it can be built");
    world.run_until(scenario.scenario.end.nanos);
    assert_eq!(world.violations(), [""; 0]);
    let hash = world.trace_hash();
    (world.into_recorder(), hash)
}

fn total(recorder: &Recorder, series: &str) -> f32 {
    recorder.values(series).expect("there is such a series").iter().sum()
}

/// A storm with all that can befall a router: crashes, restarts, clients that leave, servers that refuse or are gone, own
/// attempts.
const STORM: &str = r#"
    [scenario]
    title = "a storm"
    start = "10:00"
    end = "10:06"
    attempts_at = ["router"]

    [with_seawall]
    replaces = ["router"]

    [[population]]
    name = "internal"
    workload = "internal"
    to = "layer"
    models = ["large", "small"]
    rate_per_second = 20.0
    retry = { attempts = 7 }

    [[layer]]
    name = "layer"
    to = "router"
    retry = { attempts = 7 }
    rewords = { capacity = "unavailable" }

    [[population]]
    name = "external"
    workload = "external"
    to = "router"
    models = ["large"]
    rate_per_second = 10.0
    attempt_timeout = "4s"
    retry = { attempts = 3, wait = "1s", doubles = true }

    [[router]]
    name = "router"
    to = ["one", "two", "three"]
    instances = 3
    rate_per_second = 20.0
    memory_in_flight = 60
    restart = "20s"
    restart_spread = 0.2
    attempt_timeout = "10s"
    attempts = 2
    autoscaler = { quota = 5, every = "1m", start = "20s", busy_above = 0.8 }

    [[model_pool]]
    name = "one"
    capacity_per_second = 12.0
    latency = "2s"
    refusal_latency = "100ms"
    remembers = "1m"

    [[model_pool]]
    name = "two"
    models = ["large"]
    capacity_per_second = 10.0
    latency = "2s"
    refusal_latency = "100ms"
    remembers = "1m"

    [[model_pool]]
    name = "three"
    capacity_per_second = 10.0
    latency = "2s"
    refusal_latency = "100ms"
    remembers = "1m"

    [[event]]
    name = "gone"
    at = "10:01:30"
    actor = "three"
    change = { down = true }

    [[event]]
    name = "back"
    at = "10:02"
    actor = "three"
    change = { down = false }

    [[event]]
    name = "less"
    at = "10:03"
    actor = "one"
    change = { capacity_factor = 0.5 }

    [[event]]
    name = "restart"
    at = "10:05"
    actor = "router"
    change = { restart = 0.5 }
"#;

#[test]
fn an_engine_that_looks_on_changes_nothing() {
    let scenario = read(STORM);
    for seed in 1..=2 {
        let (absent, hash) = run(&scenario, seed, Seawall::Absent);
        let (observed, observed_hash) = run(&scenario, seed, Seawall::Observing);
        assert!(total(&absent, "router.crashes") > 10.0, "it is a storm");
        assert_eq!(hash, observed_hash);
        for name in absent.names() {
            assert_eq!(absent.values(name), observed.values(name), "{name}");
            assert_eq!(absent.mark_value(name), observed.mark_value(name), "{name}");
        }
        let own = observed.names().filter(|name| !absent.names().any(|other| other == *name));
        assert!(own.into_iter().all(|name| name.starts_with("router.observed.")));
        assert!(total(&observed, "router.observed.wait") > 100.0);
        assert!(total(&observed, "router.observed.ejected") >= 1.0);
    }
}

/// Two servers of which one is gone from 10:01 to 10:02, one request a second.
const GONE: &str = r#"
    [scenario]
    title = "a server is gone"
    start = "10:00"
    end = "10:03"

    [with_seawall]
    replaces = ["router"]

    [[population]]
    name = "clients"
    workload = "clients"
    to = "router"

    [[router]]
    name = "router"
    to = ["one", "two"]
    instances = 1
    rate_per_second = 1000.0
    memory_in_flight = 100
    restart = "20s"

    [[model_pool]]
    name = "one"
    capacity_per_second = 100.0
    latency = "100ms"
    refusal_latency = "100ms"
    remembers = "1m"

    [[model_pool]]
    name = "two"
    capacity_per_second = 100.0
    latency = "100ms"
    refusal_latency = "100ms"
    remembers = "1m"

    [[event]]
    name = "clients"
    at = "10:00"
    actor = "clients"
    change = { burst = { count = 170, apart = "1s" } }

    [[event]]
    name = "gone"
    at = "10:01"
    actor = "two"
    change = { down = true }

    [[event]]
    name = "back"
    at = "10:02"
    actor = "two"
    change = { down = false }
"#;

#[test]
fn its_verdicts_are_what_enforcing_would_have_done_to_these_very_attempts() {
    let (recorder, _) = run(&read(GONE), 1, Seawall::Observing);
    let failed = total(&recorder, "clients.failed");
    let moved = total(&recorder, "router.observed.move_for_health");
    let retried = total(&recorder, "router.observed.retry");
    assert!(failed > 20.0, "half of the attempts of a minute");
    // After three failures the server would have been out. What is sent there all the same would have gone elsewhere,
    // but for a probe now and then, which would have been made again elsewhere.
    assert!(retried >= 3.0 && moved >= 10.0, "{retried} {moved} {failed}");
    let during = |series: &str, from: usize, until: usize| {
        recorder.values(series).expect("there is such a series")[from..until].iter().sum::<f32>()
    };
    assert_eq!(during("router.observed.move_for_health", 0, 60), 0.0);
    assert_eq!(during("router.observed.retry", 0, 60), 0.0);
    assert_eq!(
        during("router.observed.retry", 60, 120) + during("router.observed.move_for_health", 60, 120),
        during("clients.failed", 60, 120)
    );
    assert!(total(&recorder, "router.observed.ejected") >= 2.0);
    for nothing in ["capacity_exhausted", "wait", "move_for_capacity", "memory_full", "draining"] {
        assert_eq!(total(&recorder, &format!("router.observed.{nothing}")), 0.0, "{nothing}");
    }
}
