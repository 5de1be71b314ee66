use crate::actors::trial::{CLIENT, event, run, seconds, total};

const CACHE: &str = "
[[lookup_cache]]
name = \"door\"
to = \"source\"
instances = 1
keeps = \"10s\"

[[tier]]
name = \"source\"
latency = \"100ms\"
";

fn one_account() -> String {
    CLIENT.replace("to = \"door\"", "to = \"door\"\naccounts = 1")
}

/// A lookup in each second from 10:00:00.5 on.
fn lookups(count: u32) -> String {
    let change = format!("burst = {{ count = {count}, apart = \"1s\" }}");
    event("lookups", "10:00:00", "client", &change)
}

#[test]
fn an_entry_is_kept_for_its_time_and_looked_up_again() {
    let seen = run(&[&one_account(), CACHE, &lookups(14)]);
    // Kept from 0.1 to 10.1 seconds, however often it is read.
    assert_eq!(seconds(&seen, "door.misses", 14), [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0]);
    assert_eq!((total(&seen, "door.hits"), total(&seen, "source.served")), (12, 2));
    assert_eq!((total(&seen, "door.lookups"), total(&seen, "client.succeeded")), (14, 14));
}

#[test]
fn a_clear_empties_and_a_bypass_does_not_look() {
    let clear = event("clear", "10:00:04", "door", "clear = true");
    let bypass = event("bypass", "10:00:06", "door", "bypass = true");
    let again = event("again", "10:00:09", "door", "bypass = false");
    let seen = run(&[&one_account(), CACHE, &lookups(14), &clear, &bypass, &again]);
    assert_eq!(seconds(&seen, "door.misses", 14), [1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(seconds(&seen, "door.bypassed", 14), [0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0]);
    assert_eq!(total(&seen, "source.served"), 5);
}

#[test]
fn a_change_over_a_time_reaches_one_instance_after_the_other() {
    let many = CACHE.replace("instances = 1", "instances = 4");
    let bypass = event("bypass", "10:00:10", "door", "bypass = true").replace("actor", "over = \"8s\"\nactor");
    let change = "burst = { count = 24000, apart = \"1ms\" }";
    let seen = run(&[&one_account(), &many, &event("lookups", "10:00:00", "client", change), &bypass]);
    let bypassed = seconds(&seen, "door.bypassed", 24);
    assert_eq!((bypassed[..12].iter().sum::<u64>(), &bypassed[18..24]), (0, [1000; 6].as_slice()));
    for (second, instances) in [(12, 1), (14, 2), (16, 3)] {
        let got = bypassed[second] + bypassed[second + 1];
        assert!(got.abs_diff(500 * instances) < 100, "{got} of 2000 lookups bypass from second {second} on");
    }
}

#[test]
fn failures_are_retried_and_given_up() {
    let retries = CACHE.replace("keeps", "retry = { attempts = 3, wait = \"1s\" }\nkeeps");
    let down = event("down", "10:00:00", "source", "down = true");
    let seen = run(&[&one_account(), &retries, &down, &lookups(1)]);
    assert_eq!(seconds(&seen, "door.attempts", 4), [1, 1, 1, 0]);
    assert_eq!(seconds(&seen, "door.failed", 4), [0, 0, 1, 0]);
    assert_eq!((total(&seen, "door.first_attempts"), total(&seen, "client.failed")), (1, 1));
}

#[test]
fn an_attempt_without_an_answer_ends_at_its_time_limit() {
    let limit = CACHE.replace("keeps", "attempt_timeout = \"2s\"\nkeeps");
    // A service answers when its tier has: only then can a caller leave before.
    let slow = limit.replace(
        "[[tier]]\nname = \"source\"\nlatency = \"100ms\"",
        "
[[service]]
name = \"source\"
nodes = 1
instances = 1
ports_per_node = 10
port_hold_after = \"1s\"
to = \"slow\"
database = \"slow\"
database_share = 0.0
health = { every = \"10s\", misses = 3, restart = \"60s\", depends_on = \"itself\" }

[[tier]]
name = \"slow\"
latency = \"5s\"
",
    );
    let seen = run(&[&one_account(), &slow, &lookups(1)]);
    assert_eq!(seconds(&seen, "door.timeouts", 4), [0, 0, 1, 0]);
    assert_eq!((total(&seen, "door.failed"), total(&seen, "source.succeeded"), total(&seen, "door.hits")), (1, 1, 0));
}

/// 400 lookups a second over 20 x 190 pairs of instance and account, kept for 180 s: 18.9 hits to one miss.
#[test]
fn a_warm_cache_starts_as_it_goes_on() {
    let busy =
        one_account().replace("accounts = 1", "accounts = 190\nrate_per_second = 400.0").replace("10:02", "10:20");
    let warm = CACHE
        .replace("instances = 1", "instances = 20")
        .replace("keeps = \"10s\"", "keeps = \"180s\"\nstarts_warm = true");
    let seen = run(&[&busy, &warm]);
    let share = |name: &str, from: usize, until: usize| {
        let values = &seconds(&seen, name, 1200)[from..until];
        values.iter().sum::<u64>()
    };
    for from in [0, 60, 600] {
        let per_thousand = 1000 * share("door.misses", from, from + 60) / share("door.lookups", from, from + 60);
        assert!((43..=57).contains(&per_thousand), "{per_thousand} of 1000 lookups miss from second {from} on");
    }
    let cold = run(&[&busy, &warm.replace("starts_warm = true", "")]);
    assert!(10 * total(&cold, "door.misses") > 11 * total(&seen, "door.misses"));
}
