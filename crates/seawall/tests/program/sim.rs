//! `seawall sim`: whole processes on a few cells of the map, and on a few random worlds.

use crate::arguments::{folder, session};
use crate::process::program;
use serde_json::Value;
use std::fs;
use tempfile::TempDir;

/// Two quick cells: one that passes and one that stays stuck.
const CELLS: &str = "naive,sdk,0.95,loss-50,5s,30s";

fn map(folder: &TempDir, arguments: &[&str]) -> Value {
    let output = program(folder).args(["sim", "map", "--json"]).args(arguments).output().expect("the program runs");
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("it prints JSON")
}

#[test]
fn a_map_is_drawn_and_goes_on_where_it_was_stopped() {
    let folder = folder();
    let first = map(&folder, &["--cells", "naive,sdk,0.95,loss-50,5s", "--resume", "map.state"]);
    let all = map(&folder, &["--cells", CELLS, "--resume", "map.state", "--svg", "map.svg", "--jobs", "2"]);
    let verdicts = |value: &Value| {
        let cells = value["cells"].as_array().expect("a list of cells").iter();
        cells.map(|cell| (cell["cell"].clone(), cell["verdict"].clone())).collect::<Vec<_>>()
    };
    let pass = (Value::from("naive/sdk/0.95/loss-50/5s"), Value::from("pass"));
    let stuck = (Value::from("naive/sdk/0.95/loss-50/30s"), Value::from("stuck"));
    assert_eq!(verdicts(&first), std::slice::from_ref(&pass));
    assert_eq!(verdicts(&all), [pass, stuck]);
    // One line for what the file is about and one for each cell: none was run twice, and none differs without the file.
    let state = fs::read_to_string(folder.path().join("map.state")).expect("it was written");
    assert_eq!(state.lines().count(), 3);
    assert_eq!(all, map(&folder, &["--cells", CELLS, "--jobs", "1"]));
    let drawing = fs::read_to_string(folder.path().join("map.svg")).expect("it was written");
    assert_eq!(drawing.matches("<title>naive/sdk/0.95/loss-50").count(), 2);
    let other = session(&folder, &["sim", "map", "--cells", CELLS, "--resume", "map.state", "--seed", "2"]);
    assert!(other.contains("exit code Some(1)") && other.contains("map.state holds cells of another seed"), "{other}");
}

#[test]
fn a_map_is_told_as_text_and_wrong_words_name_the_right_ones() {
    insta::assert_snapshot!(session(&folder(), &["sim", "map", "--cells", CELLS]));
    insta::assert_snapshot!(session(&folder(), &["sim", "map", "--cells", "naive,0.96"]));
}

#[test]
fn the_storm_set_is_held_against_its_gates() {
    let folder = folder();
    let told = |arguments: &[&str]| {
        let output = program(&folder).args(["sim", "storms"]).args(arguments).output().expect("the program runs");
        (output.status.code(), String::from_utf8(output.stdout).expect("text"))
    };
    let one = ["--storm", "B", "--load", "0.8", "--seeds", "2", "--naive", "--jobs", "2"];
    let (code, text) = told(&[&one[..], &["--json"]].concat());
    let report: Value = serde_json::from_str(&text).expect("it prints JSON");
    let rows = report["rows"].as_array().expect("a list of rows");
    let names: Vec<(&Value, &Value)> = rows.iter().map(|row| (&row["cell"], &row["router"])).collect();
    assert!(rows[0]["router"].as_str().is_some_and(|router| router.starts_with("seawall ")), "{rows:?}");
    let cell = Value::from("bench/fixed/B/0.8/mixed");
    assert_eq!(names, [(&cell, &rows[0]["router"]), (&cell, &Value::from("naive"))]);
    // The exit status says what the rows say, and only Seawall has gates.
    assert_eq!(code, Some(i32::from(!report["passed"].as_bool().expect("a verdict"))));
    let gates = |row: &Value| row["gates"].as_array().map(Vec::len);
    assert_eq!((gates(&rows[0]), gates(&rows[1])), (Some(3), Some(0)));
    assert!(rows[1]["goodput"].as_f64().is_some_and(|goodput| goodput < 0.4), "{rows:?}");
    // The same rows for people.
    let (same, table) = told(&one);
    assert_eq!(same, code);
    assert!(table.starts_with("bench, fixed, mixed\n") && table.contains("of 1 cells pass"), "{table}");
    // A shape whose gate is what Seawall does where it is told the slots.
    let (_, told_too) = told(&["--shape", "2x3x0.5", "--load", "0.5", "--storm", "A", "--seeds", "1", "--json"]);
    let report: Value = serde_json::from_str(&told_too).expect("it prints JSON");
    assert_eq!(report["rows"].as_array().map(Vec::len), Some(1));
    assert!(report["rows"][0]["of_told"].is_number(), "{report}");
}

#[test]
fn a_storm_that_there_is_not_is_refused_with_what_there_is() {
    let folder = folder();
    for wrong in [["--shape", "3x3"], ["--law", "fixd"], ["--law", "heavy-tail"], ["--load", "3"]] {
        insta::assert_snapshot!(session(&folder, &[&["sim", "storms"][..], &wrong].concat()));
    }
}

#[test]
fn the_measured_clients_are_listed() {
    insta::assert_snapshot!(session(&folder(), &["sim", "profiles"]));
}

#[test]
fn random_worlds_are_told_before_they_run_and_each_is_the_same_again() {
    let folder = folder();
    let told = session(&folder, &["sim", "swarm", "--seeds", "3..6"]);
    assert!(told.contains("exit code Some(0)") && told.contains("\n3 worlds, "), "{told}");
    let lines: Vec<&str> = told.lines().collect();
    for seed in 3..6 {
        let at = lines.iter().position(|line| line.starts_with(&format!("seed {seed}: "))).expect("each seed is told");
        assert!(lines[at + 1].starts_with("  lives: ") && lines[at + 1].contains(", trace "), "{told}");
        assert_eq!(session(&folder, &["sim", "swarm", "--seed", &seed.to_string()]).lines().nth(3), Some(lines[at]));
    }
    let json = session(&folder, &["sim", "swarm", "--seeds", "3..5", "--json"]);
    let (stdout, stderr) = json.split_once("-- stderr\n").expect("both streams are told");
    let reports = stdout.lines().filter(|line| line.starts_with('{'));
    let reports: Vec<Value> = reports.map(|line| serde_json::from_str(line).expect("a line is JSON")).collect();
    let seeds: Vec<&Value> = reports.iter().map(|report| &report["seed"]).collect();
    assert_eq!(seeds, [3, 4]);
    assert_eq!(reports[0]["failures"], Value::Array(Vec::new()));
    for report in &reports {
        let hash = report["trace_hash"].as_str().expect("a report has a hash");
        assert!(told.contains(&format!("trace {hash}\n")), "the same run: {hash} in {told}");
        assert!(stderr.contains(report["options"].as_str().expect("a report tells its options")), "{stderr}");
    }
}

#[test]
fn seeds_that_are_none_are_refused_before_anything_runs() {
    let folder = folder();
    for (arguments, word) in [
        (&["--seeds", "6..6"][..], "the second number has to be larger than 6"),
        (&["--seeds", "6"], "`0..100`"),
        (&["--seed", "1", "--seeds", "1..2"], "cannot be used with"),
        (&["--minutes", "0"], "0 is not in 1.."),
    ] {
        let told = session(&folder, &[&["sim", "swarm"], arguments].concat());
        assert!(told.contains("exit code Some(2)") && told.contains(word), "{told}");
    }
}
