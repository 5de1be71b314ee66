//! Scenario files as people meet them: files in, scenarios or mistakes out.

use seawall_cases::scenario::Scenario;
use std::path::Path;

/// A good scenario; each case changes a piece of it.
const GOOD: &str = r#"[scenario]
title = "a test"
start = "09:00"
end = "10:00"
attempts_at = ["door"]

[[population]]
name = "people"
workload = "people"
to = "door"
rate_per_second = 5
curve = [["09:00", 1], ["09:30", 0.5]]
retry = { attempts = 2, wait = "1s" }

[[layer]]
name = "door"
to = "models"
rewords = { capacity = "unavailable" }

[[model_pool]]
name = "models"
capacity_per_second = 9.5
latency = "3s"
refusal_latency = "200ms"
remembers = "1m"

[[event]]
name = "more"
at = "09:15"
actor = "people"
change = { rate_factor = 2.0 }

[[figure]]
name = "requests"
measure = { sum = { of = ["people.requests"] } }

[[check]]
name = "there are requests"
tag = "assumed"
published = "nothing was"
figure = "requests"
low = 1.0
"#;

/// Line, key, message and remedy of each mistake of [`GOOD`] with `from` replaced by `to`.
fn mistakes(from: &str, to: &str) -> Vec<(usize, String, String, String)> {
    assert!(GOOD.contains(from), "the good scenario has no {from}");
    let errors = Scenario::parse(&GOOD.replacen(from, to, 1), "scenario.toml").expect_err(to);
    let problems = errors.problems().iter().map(|problem| {
        let line = errors.position(problem).map_or(0, |(line, _)| line);
        (line, problem.key.clone(), problem.message.clone(), problem.suggestion.clone().expect("a remedy"))
    });
    problems.collect()
}

fn one(from: &str, to: &str, line: usize, (key, message, remedy): (&str, &str, &str)) {
    let expected = (line, key.to_owned(), message.to_owned(), remedy.to_owned());
    assert_eq!(mistakes(from, to), [expected], "{to}");
}

#[test]
fn the_scenarios_of_the_library_are_read() {
    let scenario = Scenario::parse(GOOD, "scenario.toml").unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!((scenario.population[0].curve[1].1, scenario.model_pool[0].capacity_per_second), (0.5, 9.5));
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cases");
    let mut seen = 0;
    for entry in std::fs::read_dir(cases).expect("the folder of cases") {
        let path = entry.expect("a readable folder").path().join("scenario.toml");
        if path.exists() {
            let text = std::fs::read_to_string(&path).expect("a readable scenario");
            Scenario::parse(&text, &path.display().to_string()).unwrap_or_else(|errors| panic!("{errors}"));
            seen += 1;
        }
    }
    assert!(seen >= 1, "the library has no scenario");
}

#[test]
fn mistakes_that_the_schema_knows() {
    one(
        "rate_per_second = 5",
        "rate_per_secnd = 5",
        11,
        (
            "population[0].rate_per_secnd",
            "unknown key `rate_per_secnd` in `[[population]]`",
            "did you mean `rate_per_second`?",
        ),
    );
    one(
        "start = \"09:00\"",
        "start = \"9:00\"",
        3,
        (
            "scenario.start",
            "`start` is not a time of day",
            "write it as in `12:17`, `09:38:30` or, past midnight, `25:00`",
        ),
    );
    one(
        "latency = \"3s\"",
        "latency = 3",
        23,
        (
            "model_pool[0].latency",
            "`latency` is a whole number; it must be a text",
            "write it as in `latency = \"30s\"`",
        ),
    );
    one(
        "[\"09:30\", 0.5]",
        "[\"09:30\"]",
        12,
        ("population[0].curve[1]", "`curve[1]` has 1 item; it takes exactly 2", "write `[\"12:17\", 0.5]`"),
    );
    one(
        "capacity = \"unavailable\"",
        "capacity = \"unavailible\"",
        18,
        (
            "layer[0].rewords.capacity",
            "`capacity` cannot be `unavailible`",
            "did you mean `\"unavailable\"`? the values are `\"capacity\"`, `\"overloaded\"`, `\"unavailable\"`, `\"error\"`, \
         `\"connection-lost\"`, `\"connection-refused\"`, `\"timeout\"`",
        ),
    );
    one(
        "rate_per_second = 5",
        "rate_per_second = -5",
        11,
        (
            "population[0].rate_per_second",
            "`rate_per_second` is -5; the least is 0",
            "write a number from 0 to 1000000",
        ),
    );
    one("name = \"more\"\n", "", 27, ("event[0]", "`[[event]]` has no `name`", "add `name = \"...\"`"));
    one(
        "rate_factor = 2.0",
        "rate_factor = 2000",
        31,
        ("event[0].change.rate_factor", "`rate_factor` is 2000; the most is 1000", "write a number from 0 to 1000"),
    );
}

#[test]
fn mistakes_that_only_the_whole_file_shows() {
    one(
        "actor = \"people\"",
        "actor = \"poeple\"",
        30,
        ("event[0].actor", "there is no actor `poeple`", "the actors are `door`, `models`, `people`"),
    );
    one(
        "figure = \"requests\"",
        "figure = \"answers\"",
        41,
        ("check[0].figure", "there is no figure `answers`", "the figures are requests"),
    );
    one(
        "at = \"09:15\"",
        "at = \"11:15\"",
        29,
        (
            "event[0].at",
            "`more` happens at 11:15, outside the run from 09:00 to 10:00",
            "write a time inside the run, or start the run earlier",
        ),
    );
}

#[test]
fn an_event_before_the_start_is_told() {
    one(
        "at = \"09:15\"",
        "at = \"08:45\"",
        29,
        (
            "event[0].at",
            "`more` happens at 08:45, outside the run from 09:00 to 10:00",
            "write a time inside the run, or start the run earlier",
        ),
    );
}

#[test]
fn both_kinds_are_told_together_and_consequences_are_not() {
    let text =
        GOOD.replacen("rate_per_second = 5", "rate_per_second = -5", 1).replacen("\"door\"\nrate", "\"dor\"\nrate", 1);
    let errors = Scenario::parse(&text, "scenario.toml").expect_err("two mistakes");
    let keys: Vec<_> = errors.problems().iter().map(|problem| problem.key.as_str()).collect();
    assert_eq!(keys, ["population[0].to", "population[0].rate_per_second"], "{errors}");
    let text = GOOD.replacen("rate_per_second = 5", "rate_per_second = -5", 1).replacen("09:15", "11:15", 1);
    let errors = Scenario::parse(&text, "scenario.toml").expect_err("two mistakes");
    let keys: Vec<_> = errors.problems().iter().map(|problem| problem.key.as_str()).collect();
    assert_eq!(keys, ["population[0].rate_per_second", "event[0].at"], "{errors}");
    // Whatever names the pool says nothing of its own.
    assert_eq!(mistakes("[[model_pool]]", "[[model_poll]]").len(), 1);
    assert_eq!(mistakes("rate_factor = 2.0", "rate_facter = 2.0").len(), 1);
}

#[test]
fn time_has_to_pass() {
    one(
        "attempts = 2, wait = \"1s\"",
        "attempts = 0",
        13,
        (
            "population[0].retry",
            "attempts without end and without a wait between them never let time pass",
            "write a number of `attempts`, or a `wait`",
        ),
    );
    let service = r#"[[service]]
name = "backend"
nodes = 1
instances = 1
ports_per_node = 1
port_hold_after = "1s"
to = "models"
database = "models"
database_share = 0.0
health = { every = "0s", misses = 1, restart = "1s", depends_on = "itself" }

[[event]]
"#;
    let found = mistakes("[[event]]\n", service);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].1, "service[0].health.every");
}
