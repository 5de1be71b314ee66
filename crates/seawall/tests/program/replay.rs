//! `seawall replay`: whole processes on a small scenario.

use crate::arguments::{folder, session};
use crate::process::program;
use seawall_sim::replay::TO_COME;
use serde_json::Value;
use std::fs;
use std::io::Read;
use std::process::Stdio;
use tempfile::TempDir;

const SMALL: &str = include_str!("scenarios/small.toml");

/// A folder with the small scenario, changed.
fn with(changes: &[(&str, &str)]) -> TempDir {
    let folder = folder();
    let mut text = SMALL.to_owned();
    for (old, new) in changes {
        assert!(text.contains(old), "the scenario has no {old:?}");
        text = text.replacen(old, new, 1);
    }
    fs::write(folder.path().join("small.toml"), text).expect("the file is written");
    folder
}

/// The text without what changes whenever the simulator draws something else: figures with a fraction, seconds, and the
/// widths that follow from them.
fn masked(text: &str) -> String {
    let word = |word: &str| {
        let is_figure = word.contains('.') && word.parse::<f64>().is_ok();
        let is_clock = word.len() == 8 && word.matches(':').count() == 2;
        match word {
            _ if is_figure => "0.0".to_owned(),
            _ if is_clock => word[..5].to_owned(),
            _ if word.starts_with('─') => "─".to_owned(),
            word => word.to_owned(),
        }
    };
    let line = |line: &str| line.split_whitespace().map(word).collect::<Vec<_>>().join(" ") + "\n";
    text.lines().map(line).collect()
}

/// Exit code and answer of a replay of the small scenario.
fn answer(folder: &TempDir, arguments: &[&str]) -> (Option<i32>, Value) {
    let output = program(folder).args(["replay", "--scenario", "small.toml", "--json"]).args(arguments).output();
    let output = output.expect("the program runs");
    let value = serde_json::from_slice(&output.stdout);
    (output.status.code(), value.unwrap_or_else(|error| panic!("{error}: {output:?}")))
}

/// Removes every check that today's engine cannot meet.
const ONLY_WHAT_PASSES: &[(&str, &str)] = &[
    ("[[check]]\nname = \"storm named\"\nrun = \"observed\"", "[[check]]\nname = \"storm named\""),
    ("needs = \"detection\"", "figure = \"worst_request\"\nlow = 49"),
    ("[[check]]\nname = \"no storm\"\nrun = \"with-seawall\"", "[[check]]\nname = \"no storm\""),
    ("high = 1.1\nneeds = \"fair-queue\"", "low = 1.1"),
];

#[test]
fn a_replay_is_told_run_by_run_and_what_is_absent_does_not_pass() {
    let folder = with(&[]);
    insta::assert_snapshot!(masked(&session(&folder, &["replay", "--scenario", "small.toml"])));
    let told = session(&folder, &["replay", "--scenario", "small.toml", "--seeds", "3"]);
    let range = told.lines().find(|line| line.contains(" attempts multiply ")).unwrap_or_else(|| panic!("{told}"));
    assert!(
        range.contains(" to ") && told.contains("small, seeds 1 to 3: 7 checks: 5 pass, 0 fail, 2 absent"),
        "{told}"
    );
}

#[test]
fn a_calibrated_value_is_varied_by_a_tenth() {
    let told = session(&with(&[]), &["replay", "--scenario", "small.toml", "--seeds", "2", "--vary"]);
    assert!(told.contains("exit code Some(0)"), "{told}");
    for factor in ["0.9", "1.1"] {
        let line = format!("models.capacity_per_second x {factor}: the incident stays for 2 of 2 seeds\n");
        assert!(told.contains(&line), "{told}");
    }
    // Nobody sends more than twelve requests a second: with capacity for more the incident is gone.
    let edge = [("capacity_per_second = 9.0", "capacity_per_second = 11.5"), ("low = 2.0", "low = 1.05")];
    let told = session(&with(&edge), &["replay", "--scenario", "small.toml", "--vary"]);
    assert!(told.contains("exit code Some(1)"), "{told}");
    assert!(told.contains("x 1.1: the incident stays for 0 of 1 seeds\n"), "{told}");
    let named = [edge.as_slice(), &[("a tenth of the demand", "\"\nknife_edge = \"up to 12\"\n#")]].concat();
    let told = session(&with(&named), &["replay", "--scenario", "small.toml", "--vary"]);
    assert!(told.contains("0 of 1 seeds (a knife edge; it holds for up to 12)\n"), "{told}");
    let unmarked: Vec<(&str, &str)> = vec![("keeps_incident = true\n", ""); 2];
    let told = session(&with(&unmarked), &["replay", "--scenario", "small.toml", "--vary"]);
    assert!(told.contains("exit code Some(2)") && told.contains("mark some with `keeps_incident = true`"), "{told}");
}

#[test]
fn only_a_replay_whose_checks_all_pass_ends_with_zero() {
    assert_eq!(answer(&with(ONLY_WHAT_PASSES), &[]).0, Some(0));
    let failing = [ONLY_WHAT_PASSES, &[("low = 49\nhigh = 49", "low = 50\nhigh = 50")]].concat();
    let (code, value) = answer(&with(&failing), &[]);
    assert_eq!(code, Some(1));
    let failed: Vec<&Value> =
        value["checks"].as_array().into_iter().flatten().filter(|check| check["pass"] == false).collect();
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert_eq!((&failed[0]["name"], &failed[0]["got"]), (&Value::from("worst request"), &Value::from(49.0)));
    insta::assert_snapshot!(masked(&session(&with(&failing), &["replay", "--scenario", "small.toml"])));
}

#[test]
fn a_scenario_without_a_check_tells_its_figures() {
    let folder = folder();
    let (until_checks, _) = SMALL.split_once("[[check]]").expect("the scenario has checks");
    fs::write(folder.path().join("small.toml"), until_checks).expect("the file is written");
    insta::assert_snapshot!(masked(&session(&folder, &["replay", "--scenario", "small.toml"])));
}

#[test]
fn one_seed_is_one_object() {
    let (code, value) = answer(&with(&[]), &["--seed", "7"]);
    assert_eq!(code, Some(1), "two checks are absent");
    let mut keys: Vec<&str> = value.as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["as_it_happened", "case", "checks", "observed", "seed", "with_seawall"]);
    assert_eq!((&value["case"], &value["seed"]), (&Value::from("small"), &Value::from(7)));
    let run = &value["as_it_happened"];
    assert_eq!(run["figures"]["worst_request"], 49.0);
    let demand = run["series"]["demand"].as_array().expect("a series");
    assert_eq!((demand.len(), &demand[14][0]), (15, &Value::from(554.0)), "a point a minute, on the clock");
    assert_eq!(value["with_seawall"]["figures"], serde_json::json!({}), "it was not run, and it says why");
    assert!(value["with_seawall"]["absent"].as_array().is_some_and(|absent| !absent.is_empty()), "{value}");
    let check = &value["checks"][2];
    for key in ["run", "name", "tag", "published", "low", "high", "got", "pass"] {
        assert!(!check[key].is_null(), "{key} of {check}");
    }
    assert_eq!((&check["run"], &check["low"]), (&Value::from("as_it_happened"), &Value::from(545.0)));
}

#[test]
fn several_seeds_have_a_spread_and_the_checks_that_need_them() {
    let median = "[[check]]\nname = \"median\"\ntag = \"derived\"\npublished = \"a median\"\n\
                  figure = \"worst_request\"\nlow = 49\nover_seeds = \"median\"\n\n[[calibrated]]";
    let folder = with(&[("[[calibrated]]", median)]);
    let (_, one) = answer(&folder, &[]);
    assert!(!one.to_string().contains("a median"), "one seed has no median");
    let (_, several) = answer(&folder, &["--seeds", "5"]);
    let seeds: Vec<u64> =
        several["runs"].as_array().into_iter().flatten().filter_map(|run| run["seed"].as_u64()).collect();
    assert_eq!(seeds, [1, 2, 3, 4, 5]);
    assert_eq!(several["runs"][0], one, "the first of several seeds is that seed alone");
    assert_eq!(several["checks"].as_array().map(Vec::len), Some(1), "{}", several["checks"]);
    assert_eq!(several["checks"][0]["pass"], true);
    let spread = &several["spread"]["as_it_happened"]["attempts_per_request"];
    assert!(spread["low"].as_f64() < spread["median"].as_f64(), "{spread}");
    assert!(spread["median"].as_f64() < spread["high"].as_f64() && spread["seeds"] == 5, "{spread}");
}

#[test]
fn volumes_scale_and_series_are_listed() {
    let sum = |value: &Value| -> f64 {
        let demand = value["as_it_happened"]["series"]["demand"].as_array();
        demand.into_iter().flatten().filter_map(|point| point[1].as_f64()).sum()
    };
    let folder = with(&[]);
    let ratio = sum(&answer(&folder, &["--scale", "4"]).1) / sum(&answer(&folder, &[]).1);
    assert!((3.9..4.1).contains(&ratio), "{ratio}");
    let told = session(&folder, &["replay", "--scenario", "small.toml", "--series"]);
    assert!(told.contains("exit code Some(0)\n-- stdout\nclients.requests\n"), "{told}");
    let (code, listed) = answer(&folder, &["--series"]);
    let listed: Vec<&str> = listed.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    assert_eq!(code, Some(0));
    assert!(listed.contains(&"router.most_attempts") && listed.iter().all(|name| told.contains(name)), "{told}");
}

#[test]
fn the_runs_are_drawn_with_their_events() {
    let folder = with(&[]);
    let told = session(&folder, &["replay", "--scenario", "small.toml", "--svg", "small.svg"]);
    let drawing = fs::read_to_string(folder.path().join("small.svg")).unwrap_or_else(|error| panic!("{error}: {told}"));
    for words in ["A small storm", "09:05 change", "09:10 nothing &amp; &lt;more&gt;", "not there yet: it needs "] {
        assert!(drawing.contains(&format!(">{words}")), "{words}: {drawing}");
    }
    assert!(drawing.contains("capacity in use: attempts in the router&#39;s memory</text>"), "{drawing}");
    let told = session(&folder, &["replay", "--scenario", "small.toml", "--svg", "absent/small.svg"]);
    assert!(told.contains("exit code Some(1)") && told.contains("cannot write absent/small.svg: "), "{told}");
    let undrawn = with(&[]);
    let text = fs::read_to_string(undrawn.path().join("small.toml")).expect("it was written");
    let (before, after) = text.split_once("[plot]").expect("a plot");
    let (_, after) = after.split_once("\n[[figure]]").expect("a figure after the plot");
    fs::write(undrawn.path().join("small.toml"), format!("{before}[[figure]]{after}")).expect("the file is written");
    let told = session(&undrawn, &["replay", "--scenario", "small.toml", "--svg", "small.svg"]);
    assert!(told.contains("exit code Some(2)") && told.contains("there is nothing to draw"), "{told}");
}

#[test]
fn wrong_calls_name_what_there_is() {
    let folder = with(&[]);
    let told = session(&folder, &["replay", "--scenario", "small.toml", "--without", "retry-bugdet"]);
    assert!(told.contains("error: there is no protection `retry-bugdet`; did you mean `retry-budget`?\n"), "{told}");
    for absent in TO_COME {
        let told = session(&folder, &["replay", "--scenario", "small.toml", "--without", absent]);
        assert!(told.contains("exit code Some(2)"), "{told}");
        assert!(told.contains(&format!("the protection `{absent}` does not exist in this version")), "{told}");
    }
    insta::assert_snapshot!(session(&folder, &["replay", "--scenario", "absent.toml"]));
    insta::assert_snapshot!(session(&folder, &["replay", "--all", "--seed", "minus-one"]));
    insta::assert_snapshot!(session(&folder, &["replay", "--all", "--seeds", "0"]));
    insta::assert_snapshot!(session(&folder, &["replay", "--all", "--scale", "0"]));
    // Which cases there are changes with the library.
    for (arguments, words) in [
        (&["replay"][..], "error: name a case, or give --all or --scenario FILE\ncases:\n  "),
        (&["replay", "no-such-incident"], "error: there is no case `no-such-incident`\ncases:\n  "),
        (&["replay", "retry-storm"], "error: there is no case `retry-storm`; did you mean `"),
    ] {
        let told = session(&folder, arguments);
        assert!(told.contains("exit code Some(2)\n-- stdout\n-- stderr\n") && told.contains(words), "{told}");
    }
}

#[test]
fn a_wrong_scenario_is_refused_before_anything_runs() {
    let mistakes = [
        ("actor = \"layer\"", "actor = \"lyaer\""),
        ("at = \"09:05\"", "at = \"08:05\""),
        ("rate_per_second = 10.0", "rate_per_second = -10.0"),
    ];
    insta::assert_snapshot!(session(&with(&mistakes), &["replay", "--scenario", "small.toml"]));
    for (change, words) in [
        (("router.most_attempts", "router.most_calls"), "there is no series `router.most_calls`"),
        (("without = [\"change\"]", "without = [\"other\"]"), "there is no event `other`"),
    ] {
        let told = session(&with(&[change]), &["replay", "--scenario", "small.toml"]);
        assert!(told.contains("exit code Some(2)\n-- stdout\n-- stderr\n") && told.contains(words), "{told}");
    }
}

#[test]
fn a_reader_that_leaves_early_is_no_reason_to_break() {
    let folder = with(ONLY_WHAT_PASSES);
    let mut child = program(&folder)
        .args(["replay", "--scenario", "small.toml", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let mut told = String::new();
    child.stderr.take().expect("standard error is piped").read_to_string(&mut told).expect("text");
    assert_eq!((child.wait().expect("it ends").code(), told.as_str()), (Some(0), ""));
}
