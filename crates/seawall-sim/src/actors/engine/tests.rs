use crate::actors::trial::{CLIENT, event, run, seconds, total};

const ENGINE: &str = "
[[engine]]
name = \"door\"
slots = 1
waiting_limit = 1
fixed_service = \"2s\"
";

fn three_at_once() -> String {
    event("three", "10:00:01", "client", r#"burst = { count = 3, apart = "0s" }"#)
}

#[test]
fn what_does_not_fit_is_refused() {
    let seen = run(&[CLIENT, ENGINE, &three_at_once()]);
    assert_eq!(seconds(&seen, "client.succeeded", 7), [0, 0, 0, 1, 0, 1, 0]);
    assert_eq!(seconds(&seen, "door.finished", 7), [0, 0, 0, 1, 0, 1, 0]);
    assert_eq!(seconds(&seen, "door.refused", 3), [0, 1, 0]);
    assert_eq!(seconds(&seen, "door.running", 7), [0, 1, 1, 1, 1, 0, 0]);
    assert_eq!(seconds(&seen, "door.waiting", 7), [0, 1, 1, 0, 0, 0, 0]);
    assert_eq!(total(&seen, "client.failed"), 1);
}

#[test]
fn a_caller_that_leaves_frees_the_slot_or_not() {
    let hasty = CLIENT.replace("to = \"door\"", "to = \"door\"\nattempt_timeout = \"500ms\"");
    let later = event("later", "10:00:02", "client", r#"burst = { count = 1, apart = "0s" }"#);
    let freed = run(&[&hasty, ENGINE, &three_at_once(), &later]);
    assert_eq!(["running", "waiting"].map(|name| seconds(&freed, &format!("door.{name}"), 4)), [[0; 4], [0; 4]]);
    assert_eq!(
        (total(&freed, "door.refused"), total(&freed, "door.wasted"), total(&freed, "client.timeouts")),
        (1, 0, 3)
    );

    let stubborn = format!("{ENGINE}works_on = true\n");
    let kept = run(&[&hasty, &stubborn, &three_at_once(), &later]);
    assert_eq!(seconds(&kept, "door.wasted", 7), [0, 0, 0, 1, 0, 1, 0]);
    assert_eq!((total(&kept, "door.refused"), total(&kept, "door.finished"), total(&kept, "client.failed")), (2, 0, 4));
}

#[test]
fn capacity_changes_and_an_outage_loses_what_it_held() {
    let slow = event("slow", "10:00:02", "door", "capacity_factor = 0.5");
    let down = event("down", "10:00:05", "door", "down = true");
    let more = event("more", "10:00:06", "client", r#"burst = { count = 2, apart = "6s" }"#);
    let up = event("up", "10:00:10", "door", "down = false");
    let seen = run(&[CLIENT, ENGINE, &three_at_once(), &slow, &down, &more, &up]);
    // The first has a second at full speed and two at half; the second is lost; the fourth takes four seconds.
    assert_eq!(seconds(&seen, "client.succeeded", 18), [0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0]);
    assert_eq!(seconds(&seen, "client.failed", 8), [0, 1, 0, 0, 0, 1, 1, 0]);
}

#[test]
fn tokens_take_their_time() {
    let tokens = "
[[engine]]
name = \"door\"
slots = 1
prefill_tokens_per_second = 100
decode_tokens_per_second = 10
";
    let work =
        r#"burst = { count = 1, apart = "0s", work = { mean = "0s", prompt_tokens = 200, output_tokens = 31 } }"#;
    let seen = run(&[CLIENT, tokens, &event("one", "10:00:01", "client", work)]);
    assert_eq!(seconds(&seen, "client.succeeded", 8), [0, 0, 0, 0, 0, 0, 1, 0]);
}

#[test]
fn a_request_may_take_its_own_work_whatever_else_runs() {
    let own = "
[[engine]]
name = \"door\"
slots = 2
takes_work = true
batch_slowdown_percent = 50.0
";
    let one = |name: &str, at: &str, mean: &str| {
        let work = format!(r#"burst = {{ count = 1, apart = "0s", work = {{ mean = "{mean}" }} }}"#);
        event(name, at, "client", &work)
    };
    let seen = run(&[CLIENT, own, &one("long", "10:00:01", "6s"), &one("short", "10:00:02", "2500ms")]);
    assert_eq!(seconds(&seen, "client.succeeded", 9), [0, 0, 0, 0, 1, 0, 0, 1, 0]);
}

#[test]
fn slots_are_added_and_taken_away() {
    let fewer = event("fewer", "10:00:02", "door", "slots = -1");
    let more = event("more", "10:00:05", "door", "slots = 5");
    let two = ENGINE.replace("slots = 1", "slots = 2").replace("waiting_limit = 1", "waiting_limit = 10");
    let six = event("six", "10:00:01", "client", r#"burst = { count = 7, apart = "0s" }"#);
    let seen = run(&[CLIENT, &two, &six, &fewer, &more]);
    // Two run to their end although one slot is gone; then one runs alone until there are six slots.
    assert_eq!(seconds(&seen, "client.succeeded", 8), [0, 0, 0, 2, 0, 1, 0, 4]);
    assert_eq!(seconds(&seen, "door.running", 8), [0, 2, 2, 1, 1, 4, 4, 0]);
    // One stays, whatever is taken away.
    let all = event("all", "10:00:02", "door", "slots = -9");
    let left = run(&[CLIENT, &two, &six, &all]);
    assert_eq!(seconds(&left, "client.succeeded", 8), [0, 0, 0, 2, 0, 1, 0, 1]);
}

#[test]
fn those_that_wait_may_take_turns_at_random() {
    let order = |random: bool| {
        let door = ENGINE.replace("waiting_limit = 1", "waiting_limit = 50");
        let door = format!("{door}random_order = {random}\n");
        let impatient = CLIENT.replace("to = \"door\"", "to = \"door\"\npatience = \"21s\"");
        let ten = |name: &str, at: &str| event(name, at, "client", r#"burst = { count = 10, apart = "0s" }"#);
        seconds(&run(&[&impatient, &door, &ten("ten", "10:00:01"), &ten("more", "10:00:02")]), "client.served", 3)
    };
    // In order of arrival the first ten are served, and all but the last of them at most ten seconds late.
    assert_eq!(order(false), [0, 10, 0]);
    let [_, first, second] = order(true)[..] else { panic!("three seconds") };
    assert!(first < 10 && second > 0, "{first} and {second}");
}

#[test]
fn errors_end_only_what_comes_and_silence_all() {
    let during = |fault: &str| {
        let begins = event("begins", "10:00:02", "door", &format!("fault = \"{fault}\""));
        let one = event("one", "10:00:03", "client", r#"burst = { count = 1, apart = "0s" }"#);
        let ends = event("ends", "10:00:04", "door", "fault = \"none\"");
        let last = event("last", "10:00:05", "client", r#"burst = { count = 1, apart = "0s" }"#);
        let first = event("first", "10:00:01", "client", r#"burst = { count = 1, apart = "0s" }"#);
        run(&[CLIENT, ENGINE, &begins, &one, &ends, &last, &first])
    };
    let errors = during("errors");
    assert_eq!(seconds(&errors, "client.succeeded", 8), [0, 0, 0, 1, 0, 0, 0, 1]);
    assert_eq!(seconds(&errors, "client.failed", 8), [0, 0, 0, 1, 0, 0, 0, 0]);
    assert_eq!(total(&errors, "door.failed"), 1);
    // Nobody tells the second one anything, and it has no limit of its own.
    let silent = during("silent");
    assert_eq!(seconds(&silent, "client.succeeded", 8), [0, 0, 0, 0, 0, 0, 0, 1]);
    assert_eq!(seconds(&silent, "client.failed", 8), [0, 0, 1, 0, 0, 0, 0, 0]);
    assert_eq!(seconds(&silent, "client.open", 8)[7], 1);
}
