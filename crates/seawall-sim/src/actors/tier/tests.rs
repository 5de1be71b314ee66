use crate::actors::trial::{CLIENT, event, run, seconds, total};

const TIER: &str = "
[[tier]]
name = \"door\"
rate_per_second = 0.5
latency = \"100ms\"
";

fn three_at_once() -> String {
    event("three", "10:00:01", "client", r#"burst = { count = 3, apart = "0s" }"#)
}

#[test]
fn requests_are_served_one_after_the_other() {
    let seen = run(&[CLIENT, TIER, &three_at_once()]);
    assert_eq!(seconds(&seen, "client.succeeded", 9), [0, 0, 0, 1, 0, 1, 0, 1, 0]);
    assert_eq!(seconds(&seen, "door.served", 9), [0, 0, 0, 1, 0, 1, 0, 1, 0]);
    assert_eq!(seconds(&seen, "door.busy_ms", 9), [0, 1000, 1000, 1000, 1000, 1000, 1000, 0, 0]);
    // Looked at when each second begins.
    assert_eq!(seconds(&seen, "door.queue", 9), [0, 0, 3, 2, 2, 1, 1, 0, 0]);
}

#[test]
fn a_factor_and_an_outage_concern_what_comes_later() {
    let twice = event("twice", "10:00:02", "door", "capacity_factor = 2.0");
    let down = event("down", "10:00:10", "door", "down = true");
    let up = event("up", "10:00:12", "door", "down = false");
    let more = event("more", "10:00:08", "client", r#"burst = { count = 6, apart = "1s" }"#);
    let seen = run(&[CLIENT, TIER, &three_at_once(), &twice, &more, &down, &up]);
    assert_eq!(seconds(&seen, "client.succeeded", 15), [0, 0, 0, 1, 0, 1, 0, 1, 0, 1, 1, 0, 0, 1, 1]);
    assert_eq!(seconds(&seen, "client.failed", 15), [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0]);
}

#[test]
fn a_rate_of_zero_is_no_bound() {
    let unbounded = TIER.replace("rate_per_second = 0.5", "");
    let seen = run(&[CLIENT, &unbounded, &three_at_once()]);
    assert_eq!(seconds(&seen, "client.succeeded", 3), [0, 3, 0]);
    assert_eq!((total(&seen, "door.busy_ms"), total(&seen, "door.queue")), (0, 0));
}
