//! Live storms, as people run them.

use crate::arguments::{folder, session};
use crate::process::{Serve, get, program};
use serde_json::Value;
use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Stdio;
use std::time::Duration;
use tempfile::TempDir;

const SHORT: [&str; 7] = ["storm", "a", "--shape", "quick", "--requests", "450", "--load=0.8"];

/// The rows that the program prints as JSON.
fn rows(folder: &TempDir, arguments: &[&str]) -> Vec<Value> {
    let output = program(folder).args(arguments).arg("--json").output().expect("the program runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    let rows: Value = serde_json::from_slice(&output.stdout).expect("it prints JSON");
    rows.as_array().expect("a list of rows").clone()
}

fn sum(counts: &Value) -> u64 {
    counts.as_object().expect("counts by name").values().filter_map(Value::as_u64).sum()
}

/// The first of two ports that nobody has.
fn two_free_ports() -> u16 {
    let port = || TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port();
    let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    (0..100).map(|_| port()).find(|port| *port < u16::MAX && is_free(port + 1)).expect("two free ports in a row")
}

#[test]
fn a_short_storm_through_seawall_adds_up_and_is_kept() {
    let folder = folder();
    let kept = [&SHORT[..], &["--out", "rows.jsonl", "--svg", "storm.svg"]].concat();
    let told = rows(&folder, &kept);
    let row = &told[0];
    assert_eq!((told.len(), &row["name"], &row["storm"]), (1, &Value::from("seawall"), &Value::from("A")));
    // Every request has one outcome, and the good ones are those that were answered.
    assert_eq!((row["requests"].as_u64(), sum(&row["outcomes"])), (Some(450), 450));
    assert_eq!(row["outcomes"]["answered in time"].as_f64(), row["good"].as_f64());
    let float = |name: &str| row[name].as_f64().expect("a number");
    assert!(float("good") > 100.0 && float("goodput") <= 1.05, "{row}");
    // The servers counted every attempt that reached them, and gave no more answers than that; each good request was
    // answered by one of them.
    let attempts = float("upstream_attempts") * 450.0;
    let answers = u32::try_from(sum(&row["server_answers"])).map(f64::from).expect("a small count");
    assert!((attempts - attempts.round()).abs() < 1e-6 && answers <= attempts.round(), "{row}");
    assert!(row["server_answers"]["200"].as_f64() >= Some(float("good")), "{row}");
    assert!(float("client_attempts") >= 1.0 && float("peak_memory_bytes") > 1e6, "{row}");
    assert!(row["simulated"]["requests"].is_u64(), "{row}");
    // The brown-out is there: at a quarter of the speed somebody waits.
    assert!(float("p99_seconds") > 0.4, "{row}");
    // A second call runs nothing: the row is that of the file, to the last digit.
    assert_eq!(rows(&folder, &kept), told);
    let lines = fs::read_to_string(folder.path().join("rows.jsonl")).expect("it was written");
    assert_eq!(lines.lines().count(), 1);
    assert!(fs::read_to_string(folder.path().join("storm.svg")).expect("it was drawn").contains("storm A, load 0.8"));
    let text = session(&folder, &["storm", "--draw", "rows.jsonl"]);
    assert!(text.contains("exit code Some(0)") && text.contains("  in the simulator: goodput "), "{text}");
}

#[test]
fn a_storm_that_cannot_be_is_refused_before_anything_runs() {
    let folder = folder();
    for (arguments, words) in [
        (&["storm", "c"][..], "there is no storm `c`; the live storms are a, b and all"),
        (
            &["storm", "azure-2026-05-29-retry-storm"],
            "comes with issue 5; `seawall replay azure-2026-05-29-retry-storm`",
        ),
        (&["storm", "a", "--load", "much"], "`much` is no load; write numbers from 0.05 to 20"),
        (&["storm", "a", "--shape", "batch"], "there is no live `batch`; there are bench"),
        (&["storm", "a", "--requests", "300"], "ask for 641 or more"),
        (&["storm", "a", "--target", "http://127.0.0.1:1", "--upstreams", "127.0.0.1:0"], "name a port"),
        (&["storm", "a", "--pid", "1"], "--target"),
        (&["storm", "a", "--header", "x"], "write `name: value`"),
    ] {
        let told = session(&folder, arguments);
        assert!(told.contains("exit code Some(2)") && told.contains(words), "{told}");
    }
    let none = session(&folder, &["storm", "--draw", "none.jsonl"]);
    assert!(none.contains("holds no rows"), "{none}");
}

#[test]
fn a_balancer_that_is_not_there_or_leads_elsewhere_is_told_with_the_remedy() {
    let folder = folder();
    let upstreams = format!("127.0.0.1:{}", two_free_ports());
    let through = |target: &str, more: &[&str]| {
        let all = [&SHORT[..], &["--target", target, "--upstreams", &upstreams], more].concat();
        session(&folder, &all)
    };
    let closed = through("http://127.0.0.1:1", &[]);
    let words =
        format!("(connections are refused); start the balancer first, with its upstreams at http://{upstreams}");
    assert!(closed.contains("exit code Some(1)") && closed.contains(&words), "{closed}");
    let gone = through("http://127.0.0.1:1", &["--pid", "4000000000"]);
    assert!(gone.contains("exit code Some(2)") && gone.contains("--pid: there is no process 4000000000"), "{gone}");
    let remote = through("http://192.0.2.1:80", &[]);
    assert!(remote.contains("exit code Some(2)") && remote.contains("is not this machine"), "{remote}");
    let demo = Serve::demo();
    let elsewhere = through(&format!("http://{}", demo.listen), &[]);
    assert!(elsewhere.contains("exit code Some(1)"), "{elsewhere}");
    assert!(elsewhere.contains("answers, but not from the servers of this storm"), "{elsewhere}");
}

#[test]
fn a_balancer_that_dies_ends_the_storm_with_the_remedy() {
    let folder = folder();
    let port = two_free_ports();
    let deployment =
        |port: u16| format!("[[models.deployments]]\nname = \"{port}\"\nurl = \"http://127.0.0.1:{port}/v1\"\n");
    let serve = Serve::with_config(&format!(
        "[server]\nallow_anonymous = true\naccess_log = \"off\"\n[[models]]\nname = \"demo-chat\"\n{}{}",
        deployment(port),
        deployment(port + 1)
    ));
    let (target, process) = (format!("http://{}", serve.listen), serve.id().to_string());
    let upstreams = SocketAddr::from(([127, 0, 0, 1], port));
    let mut storm = program(&folder);
    storm.args(["storm", "a", "--shape", "quick", "--load", "0.8", "--requests", "100000"]);
    storm.args(["--target", &target, "--upstreams", &upstreams.to_string(), "--pid", &process]);
    let storm = storm.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program starts");
    // It has begun when its servers have seen some requests.
    let has_begun = || {
        let seen = TcpStream::connect(upstreams).is_ok().then(|| get(upstreams, "/fleet/counters").body)?;
        let counters: Value = serde_json::from_str(&seen).ok()?;
        (counters["total"]["requests"].as_u64()? > 20).then_some(())
    };
    while has_begun().is_none() {
        std::thread::sleep(Duration::from_millis(20));
    }
    serve.signal("KILL");
    let ended = storm.wait_with_output().expect("it ends by itself");
    let told = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{told}");
    assert!(told.contains(&format!("process {process} ended during the storm; see the balancer's log")), "{told}");
}

#[test]
fn the_help_tells_how_to_storm_any_balancer() {
    insta::assert_snapshot!(session(&folder(), &["storm", "--help"]));
}
