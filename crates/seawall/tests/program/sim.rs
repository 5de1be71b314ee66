//! `seawall sim`: whole processes on a few cells of the map.

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
fn the_measured_clients_are_listed() {
    insta::assert_snapshot!(session(&folder(), &["sim", "profiles"]));
}
