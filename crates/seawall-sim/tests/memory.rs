//! What a run holds depends on what is under way, not on how long it has lived.

use seawall_cases::scenario::Scenario;
use seawall_sim::{Options, SECOND, World};

/// A steady load with a little of everything that could pile up: retries, time limits, a link, a cache.
const STEADY: &str = r#"
[scenario]
title = "A steady load"
start = "00:00"
end = "24:00"

[[population]]
name = "people"
workload = "people"
to = "lookups"
rate_per_second = 20.0
accounts = 400
retry = { attempts = 3, wait = "1s", wait_most = "5s" }
attempt_timeout = "5s"
patience = "20s"

[[lookup_cache]]
name = "lookups"
to = "link"
instances = 2
keeps = "60s"

[[link]]
name = "link"
to = "router"
delay = "5ms"
loss = 0.05

[[router]]
name = "router"
to = ["server"]
instances = 2
rate_per_second = 100.0
memory_in_flight = 500
restart = "10s"
attempt_timeout = "4s"

[[engine]]
name = "server"
slots = 16
waiting_limit = 50
fixed_service = "1s"

[with_seawall]
replaces = ["router"]
"#;

/// The most that was held at the end of any second: records of actors, calls and requests under way, events to come.
fn most_held(hours: u64) -> usize {
    let scenario = Scenario::parse(STEADY, "steady.toml").expect("a good scenario");
    let end = hours * 3600 * SECOND;
    let mut world = World::of(&scenario, &Options { end: Some(end), ..Options::default() }).expect("it can be built");
    let mut most = 0;
    for second in 1..=hours * 3600 {
        world.run_until(second * SECOND);
        let (calls, requests, events) = world.under_way();
        most = most.max(world.held().into_iter().sum::<usize>() + calls + requests + events);
    }
    assert_eq!(world.violations(), [] as [String; 0]);
    most
}

#[test]
fn a_day_holds_no_more_than_an_hour() {
    let (hour, day) = (most_held(1), most_held(12));
    // The largest of twelve times as many random moments is a little larger.
    assert!(hour > 100 && day < hour * 5 / 4, "an hour holds {hour}, half a day {day}");
}
