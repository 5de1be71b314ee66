use crate::actors::trial::{CLIENT, event, run, seconds, total};

const SERVICE: &str = "
[[service]]
name = \"door\"
nodes = 1
instances = 1
ports_per_node = 2
port_hold_after = \"4s\"
to = \"cache\"
database = \"database\"
database_share = 0.0

[service.health]
every = \"10s\"
misses = 3
restart = \"20s\"
depends_on = \"itself\"

[[tier]]
name = \"cache\"
latency = \"1s\"

[[tier]]
name = \"database\"
latency = \"1s\"
";

fn burst(name: &str, at: &str, count: u32, apart: &str) -> String {
    event(name, at, "client", &format!("burst = {{ count = {count}, apart = {apart:?} }}"))
}

#[test]
fn a_connection_takes_a_place_until_some_time_after_its_end() {
    let seen = run(&[CLIENT, SERVICE, &burst("three", "10:00:01", 3, "0s"), &burst("later", "10:00:05", 2, "2s")]);
    // Both places are taken from second 1 to second 6.
    assert_eq!(seconds(&seen, "door.refused", 8), [0, 1, 0, 0, 0, 1, 0, 0]);
    assert_eq!(seconds(&seen, "client.succeeded", 9), [0, 0, 2, 0, 0, 0, 0, 0, 1]);
    assert_eq!(seconds(&seen, "door.ports", 9), [0, 0, 2, 2, 2, 2, 0, 0, 1]);
    assert_eq!(seconds(&seen, "door.full_nodes", 7), [0, 0, 1, 1, 1, 1, 0]);
}

#[test]
fn a_read_of_the_database_takes_a_second_place() {
    let both = SERVICE.replace("database_share = 0.0", "database_share = 1.0");
    let seen = run(&[CLIENT, &both, &burst("two", "10:00:01", 2, "500ms"), &burst("third", "10:00:10", 1, "0s")]);
    // The two take both places; neither finds one for the database. The third takes one after the other.
    assert_eq!(seconds(&seen, "client.failed", 4), [0, 0, 2, 0]);
    assert_eq!(seconds(&seen, "client.succeeded", 13), [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    assert_eq!((total(&seen, "door.refused"), total(&seen, "database.served")), (2, 1));
}

#[test]
fn more_compute_shortens_its_own_time_and_frees_no_place() {
    let own = SERVICE.replace("database_share", "own_time = \"4s\"\ndatabase_share");
    let more = event("more", "10:00:10", "door", "compute_factor = 4.0");
    let seen = run(&[CLIENT, &own, &burst("three", "10:00:01", 3, "0s"), &more, &burst("again", "10:00:11", 3, "0s")]);
    assert_eq!(seconds(&seen, "client.succeeded", 14), [0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 2]);
    assert_eq!((seconds(&seen, "door.refused", 12)[1], seconds(&seen, "door.refused", 12)[11]), (1, 1));
}

/// A check opens a connection every ten seconds; the only place is taken for good from 10:00:15 on.
fn starved() -> String {
    SERVICE
        .replace("ports_per_node = 2", "ports_per_node = 1")
        .replace("port_hold_after = \"4s\"", "port_hold_after = \"1s\"")
        .replace("depends_on = \"itself\"", "depends_on = \"database\"")
        .replace("[[tier]]\nname = \"cache\"\nlatency = \"1s\"", "[[tier]]\nname = \"cache\"\nlatency = \"1h\"")
}

#[test]
fn checks_that_find_no_connection_restart_the_instance() {
    let idle = run(&[CLIENT, &starved()]);
    assert_eq!((total(&idle, "door.restarts"), total(&idle, "door.missed_checks")), (0, 0));
    assert_eq!(total(&idle, "database.served"), 12);

    // One try each second: one of them finds the place free, and keeps it.
    let seen = run(&[CLIENT, &starved(), &burst("blocks", "10:00:15", 5, "1s"), &burst("later", "10:00:55", 1, "0s")]);
    let restarts = seconds(&seen, "door.restarts", 120);
    let at = restarts.iter().position(|count| *count == 1).expect("three checks are missed");
    assert!((35..=46).contains(&at), "the third check is missed in second {at}");
    // The restart gives the place back, so that the instance is healthy 20 seconds later.
    let healthy = seconds(&seen, "door.healthy", 120);
    assert_eq!((&healthy[..at], &healthy[at..at + 21], healthy[at + 22]), (&vec![1; at][..], &[0; 21][..], 1));
    assert_eq!((total(&seen, "door.restarts"), total(&seen, "door.lost"), total(&seen, "door.unreachable")), (1, 1, 1));
}

#[test]
fn a_check_without_an_answer_is_missed_and_a_start_needs_one_too() {
    let down = event("down", "10:00:00", "database", "down = true");
    let up = event("up", "10:01:00", "database", "down = false");
    let seen = run(&[CLIENT, &SERVICE.replace("\"itself\"", "\"database\""), &down, &up]);
    // Missed three times in the first half minute, restarted for 20 s, then one or two misses until the database is up.
    let healthy = seconds(&seen, "door.healthy", 120);
    let gone = healthy.iter().position(|count| *count == 0).expect("it is restarted");
    let back = gone + healthy[gone..].iter().position(|count| *count == 1).expect("it comes back");
    assert!((20..=30).contains(&gone) && (60..=72).contains(&back), "gone at {gone}, back at {back}");
    assert_eq!(total(&seen, "door.restarts"), 1);

    // The same with a database that takes longer than the next check.
    let slow = SERVICE
        .replace("\"itself\"", "\"database\"")
        .replace("name = \"database\"\nlatency = \"1s\"", "name = \"database\"\nlatency = \"11s\"");
    let seen = run(&[CLIENT, &slow]);
    assert!(total(&seen, "door.restarts") >= 2);
    assert_eq!(seconds(&seen, "door.healthy", 120)[119], 0);
}

#[test]
fn a_check_that_depends_on_nothing_restarts_nothing() {
    let itself = event("itself", "10:00:30", "door", "health_depends_on = \"itself\"");
    let seen = run(&[CLIENT, &starved(), &burst("blocks", "10:00:15", 5, "1s"), &itself]);
    assert_eq!(total(&seen, "door.restarts"), 0);
    assert!(total(&seen, "door.missed_checks") >= 1);
}

#[test]
fn instances_and_nodes_are_added_and_restarted() {
    let two = SERVICE.replace("nodes = 1\ninstances = 1", "nodes = 2\ninstances = 4\nstart = \"5s\"");
    let add = event("add", "10:00:10", "door", "instances = 3").replace("actor", "over = \"30s\"\nactor");
    let half = event("half", "10:01:00", "door", "restart = 0.5");
    let down = event("down", "10:01:10", "door", "down = true");
    let up = event("up", "10:01:20", "door", "down = false");
    let seen = run(&[CLIENT, &two, &add, &half, &down, &up]);
    let at = |name: &str, second: usize| seconds(&seen, &format!("door.{name}"), 120)[second];
    assert_eq!([9, 11, 21, 31].map(|second| at("instances", second)), [4, 5, 6, 7]);
    assert_eq!([14, 15, 25, 35].map(|second| at("healthy", second)), [4, 5, 6, 7]);
    assert_eq!([60, 64, 65, 70, 80, 84, 85].map(|second| at("healthy", second)), [3, 3, 7, 0, 0, 0, 7]);
    assert_eq!(total(&seen, "door.restarts"), 0);
}

#[test]
fn new_instances_share_the_tables_unless_there_are_new_nodes() {
    let add = event("add", "10:00:10", "door", "instances = 1");
    let nodes = event("nodes", "10:00:05", "door", "nodes = 1");
    let four = burst("four", "10:00:40", 4, "0s");
    let shared = run(&[CLIENT, SERVICE, &add, &four]);
    assert_eq!((total(&shared, "client.succeeded"), total(&shared, "door.refused")), (2, 2));
    let twenty = burst("twenty", "10:00:40", 20, "0s");
    let apart = run(&[CLIENT, SERVICE, &add, &nodes, &twenty]);
    assert_eq!((total(&apart, "client.succeeded"), total(&apart, "door.refused")), (4, 16));
}
