//! Wrong command lines and files: a clear word, exit code 2, nothing started.

use crate::process::program;
use std::fmt::Write as _;
use std::fs;
use std::net::TcpListener;
use tempfile::TempDir;

pub(crate) fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// Exit code, standard output and standard error in one text.
pub(crate) fn session(folder: &TempDir, arguments: &[&str]) -> String {
    let output = program(folder).args(arguments).output().expect("the program runs");
    let mut text = format!("$ seawall {}\nexit code {:?}\n", arguments.join(" "), output.status.code());
    for (name, stream) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
        write!(text, "-- {name}\n{}", String::from_utf8_lossy(stream)).expect("a string takes any text");
    }
    text
}

const FIVE_MISTAKES: &str = r#"
[[models]]
name = "gpt-4o"
policy = "pririty"

[[models.deployments]]
name = "sweden"
url = "htp://example.com"
regoin = "swedencentral"

[[models.deployments]]
name = "sweden"
url = "https://example.com"

[[tenants]]
name = "team"
keys = [{ env = "TEAM_KEY" }]
models = ["gpt-4"]
"#;

#[test]
fn five_mistakes_are_told_in_one_run() {
    let folder = folder();
    fs::write(folder.path().join("seawall.toml"), FIVE_MISTAKES).expect("the file is written");
    insta::assert_snapshot!(session(&folder, &["check", "--config", "seawall.toml"]));
    insta::assert_snapshot!(session(&folder, &["check", "--config", "seawall.toml", "--json"]));
}

#[test]
fn serve_starts_nothing_with_a_wrong_file() {
    let folder = folder();
    let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port();
    let text = format!("[server]\nlisten = \"127.0.0.1:{port}\"\n{FIVE_MISTAKES}");
    fs::write(folder.path().join("seawall.toml"), text).expect("the file is written");
    let session = session(&folder, &["serve", "--config", "seawall.toml"]);
    assert!(session.contains("exit code Some(2)") && session.contains("did you mean `\"priority\"`?"), "{session}");
    assert!(!folder.path().join("seawall-data").exists(), "not even a folder was made");
    TcpListener::bind(("127.0.0.1", port)).expect("nobody listens");
}

#[test]
fn everyones_keys_stay_on_this_machine() {
    insta::assert_snapshot!(session(&folder(), &["serve", "--listen", "0.0.0.0:0"]));
    insta::assert_snapshot!(session(&folder(), &["serve", "--admin", "0.0.0.0:0"]));
}

#[test]
fn init_writes_a_file_that_check_accepts_and_never_overwrites() {
    let folder = folder();
    insta::assert_snapshot!(session(&folder, &["init"]));
    insta::assert_snapshot!(session(&folder, &["check", "--config", "seawall.toml"]));
    insta::assert_snapshot!(session(&folder, &["init"]));
    insta::assert_snapshot!(session(&folder, &["init", "--upstream", "http://127.0.0.1:8000", "--output", "-"]));
}

#[test]
fn mistakes_on_the_command_line_name_their_remedy() {
    let folder = folder();
    insta::assert_snapshot!(session(&folder, &["serve", "--config", "absent.toml"]));
    insta::assert_snapshot!(session(
        &folder,
        &["serve", "--upstream", "http://127.0.0.1:1", "--key-env", "ABSENT_KEY"]
    ));
    insta::assert_snapshot!(session(&folder, &["load", "--target", "http://192.0.2.1:80", "--count", "1"]));
    insta::assert_snapshot!(session(&folder, &["load", "--duration", "10"]));
}

#[test]
fn a_port_in_use_is_named_with_the_flag_that_changes_it() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let session = session(&folder(), &["serve", "--listen", &address, "--admin", "127.0.0.1:0"]);
    assert!(session.contains("exit code Some(1)"), "{session}");
    assert!(session.contains(&address) && session.contains("`--listen`"), "{session}");
}
