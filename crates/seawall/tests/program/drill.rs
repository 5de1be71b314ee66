//! `seawall drill`: whole processes on configurations that differ in one setting.

use crate::arguments::{folder, session};
use crate::process::program;
use serde_json::Value;
use std::fs;
use tempfile::TempDir;

/// Two regions with room for a load of 40% each; `MODE` and the second deployment are replaced.
const CONFIG: &str = r#"[[models]]
name = "chat"
MODE

[[models.deployments]]
name = "chat-north"
url = "https://north.example.com/v1"
region = "north"
capacity = { standard = 40 }

[[models.deployments]]
name = "chat-south"
url = "https://south.example.com/v1"
region = "SOUTH"
capacity = { standard = 40 }

[[tenants]]
name = "search"
keys = [{ env = "NOBODY_HAS_THIS_KEY" }]
"#;

/// Short versions of two mechanisms.
const MECHANISMS: &str = r#"[[drill]]
name = "region-lost"
about = "The largest region is gone for two minutes."
remedy = "another region"
after = "3m"

[[drill.mechanism]]
kind = "region-lost"
lasts = "2m"

[[drill]]
name = "seven-by-seven"
about = "A deployment fails for two minutes, and clients retry 7 x 7 times."
remedy = "a limit of attempts"
after = "3m"

[[drill.mechanism]]
kind = "seven-by-seven"
lasts = "2m"
"#;

/// A folder with the configuration and the mechanisms.
fn with(mode: &str, south: &str) -> TempDir {
    let folder = folder();
    let config = CONFIG.replace("MODE", mode).replace("SOUTH", south);
    fs::write(folder.path().join("seawall.toml"), config).expect("the file is written");
    fs::write(folder.path().join("mine.toml"), MECHANISMS).expect("the file is written");
    folder
}

const CALL: &[&str] = &["drill", "--mechanisms", "mine.toml", "--config", "seawall.toml", "--load", "40"];

/// Exit code and answer of a drill.
fn answer(folder: &TempDir, arguments: &[&str]) -> (Option<i32>, Value) {
    let output = program(folder).args(CALL).arg("--json").args(arguments).output().expect("the program runs");
    let value = serde_json::from_slice(&output.stdout);
    (output.status.code(), value.unwrap_or_else(|error| panic!("{error}: {output:?}")))
}

/// The drill of that name.
fn of<'a>(answer: &'a Value, name: &str) -> &'a Value {
    let drills = answer["drills"].as_array().into_iter().flatten();
    drills.into_iter().find(|drill| drill["name"] == name).unwrap_or_else(|| panic!("no {name}: {answer:#}"))
}

fn lost(drill: &Value) -> f64 {
    drill["outcome"]["lost_percent"].as_f64().unwrap_or_else(|| panic!("no loss: {drill:#}"))
}

#[test]
fn the_setting_in_which_two_files_differ_is_named_with_its_line() {
    let (code, enforced) = answer(&with("", "south"), &[]);
    assert_eq!(code, Some(0));
    let (code, observed) = answer(&with("mode = \"observe\"", "south"), &[]);
    assert_eq!(code, Some(0), "a drill that ran is no failure, whatever was lost");
    let (code, one_region) = answer(&with("", "north"), &[]);
    assert_eq!(code, Some(0));

    // A mode decides about a deployment that fails.
    let (holds, loses) = (of(&enforced, "seven-by-seven"), of(&observed, "seven-by-seven"));
    assert!(lost(holds) < 1.0 && lost(loses) > 20.0, "{} {}", lost(holds), lost(loses));
    assert_eq!((&loses["verdict"], &loses["setting"]), (&Value::from("decides"), &Value::from("mode")));
    let all = loses["tried"].as_array().expect("a list of what was tried");
    let named = all.iter().find(|tried| tried["setting"] == "mode").expect("the mode is tried");
    let place = &named["places"][0];
    assert_eq!((&named["to"], &place["from"]), (&Value::from("enforce"), &Value::from("observe")));
    assert_eq!((&place["key"], &place["line"]), (&Value::from("models[0].mode"), &Value::from(3)));
    assert_eq!((&holds["verdict"], &holds["setting"]), (&Value::from("holds"), &Value::from("mode")));

    // A second region decides about a region that is lost.
    let (two, one) = (of(&enforced, "region-lost"), of(&one_region, "region-lost"));
    assert!(lost(two) < 2.0 && lost(one) > 25.0, "{} {}", lost(two), lost(one));
    assert_eq!((&one["verdict"], &one["setting"]), (&Value::from("decides"), &Value::from("deployments")));
    assert_eq!(one["outcome"]["sent"], two["outcome"]["sent"], "the arrivals are the same");
}

#[test]
fn people_read_who_loses_how_much_and_where_the_setting_stands() {
    let text = session(&with("mode = \"observe\"", "south"), CALL);
    for words in [
        "exit code Some(0)",
        "seawall.toml: 1 model, 2 deployments, 1 tenant\n",
        "assumed: 40% of each model's capacity in use, evenly over its tenants; 4s a request; 2 processes of Seawall",
        "note: each of the 2 processes keeps to a told size by itself",
        "mine.toml: seven-by-seven\n",
        "decided by mode: enforce instead of observe lowers the loss from ",
        "\n  seawall.toml:3: models[0].mode = observe\n",
    ] {
        assert!(text.contains(words), "no {words:?} in {text}");
    }
}

#[test]
fn a_loss_above_the_limit_ends_with_one() {
    let folder = with("mode = \"observe\"", "south");
    let (code, value) = answer(&folder, &["--max-loss", "5"]);
    assert_eq!((code, &value["pass"]), (Some(1), &Value::from(false)));
    let (code, value) = answer(&folder, &["--max-loss", "90"]);
    assert_eq!((code, &value["pass"]), (Some(0), &Value::from(true)));
    let text = session(&folder, &[CALL, &["--max-loss", "5"]].concat());
    assert!(text.contains("seven-by-seven loses more than the 5.0% of --max-loss"), "{text}");
}

#[test]
fn wrong_files_and_calls_are_told_before_anything_runs() {
    let folder = with("max_attempts = 3", "south");
    let text = session(&folder, CALL);
    assert!(text.contains("exit code Some(2)") && text.contains("seawall.toml: 1 error"), "{text}");
    assert!(text.contains("unknown key `max_attempts`"), "{text}");
    let folder = with("", "south");
    fs::write(folder.path().join("mine.toml"), MECHANISMS.replace("region-lost\"\nlasts", "region-lots\"\nlasts"))
        .expect("the file is written");
    let text = session(&folder, CALL);
    assert!(text.contains("exit code Some(2)") && text.contains("did you mean `\"region-lost\"`?"), "{text}");
    let wrong = |arguments: &[&str], words: &str| {
        let text = session(&folder, &[&["drill"], arguments].concat());
        assert!(text.contains("exit code Some(2)") && text.contains(words), "{text}");
    };
    wrong(&[], "error: name a case, or give --all or --mechanisms FILE\ncases:\n  azure-2026-05-29-retry-storm\n");
    wrong(&["metadata"], "did you mean `azure-2026-09-29-metadata`?");
    wrong(&["--all", "--config", "absent.toml"], "the config file cannot be read");
    wrong(&["--mechanisms", "absent.toml"], "the drill file `absent.toml` cannot be read");
    wrong(
        &["--all", "--tenant", "nobody"],
        "error: there is no tenant `nobody`; the tenants of the file are `demo`, `batch`",
    );
    wrong(&["--all", "--profile", "curl"], "there is no retry profile `curl`");
    wrong(&["--all", "--load", "0"], "it must lie between 1 and 1000");
    wrong(&["--all", "--service", "2h"], "it must lie between 1ms and 1h");
}
