//! What callers see while a region fails, and while a model takes its time.

use super::cost::{build, need};
use super::processes::{Running, free_port, free_ports, wait_for};
use crate::evidence::{Measurement, Record, Run};
use crate::repository::Repository;
use crate::{Failure, command, files, report};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// The entry of the table.
pub(super) const MEASUREMENT: Measurement = Measurement {
    name: "failover",
    summary: "successes and attempts while one of three regions fails, and refusals of a model that takes 120 s",
    run: Run::Whole(run),
};

const REGION: &str = "eastus";
const BEFORE: Duration = Duration::from_secs(5);
const FAILING_SECONDS: u64 = 60;
const SLOTS: u32 = 20;
const SERVICE_SECONDS: u32 = 120;
/// Half of what three servers of `SLOTS` slots can do.
const SLOW_RATE: f64 = 0.25;

/// What the load reported and the fleet counted.
struct Seen {
    report: Value,
    counters: Value,
}

fn run(repository: &Repository) -> Result<Record, Failure> {
    need(&["curl"], "curl")?;
    let examples = build(repository)?;
    let folder = tempfile::tempdir().map_err(Failure::file("create", "a temporary folder".as_ref()))?;
    report::say("one of three regions fails for 60 s");
    let failing = failing_region(repository, folder.path())?;
    report::say("a model that takes 120 s, at half load: about six minutes");
    let slow = slow_model(repository, &examples, folder.path())?;
    record(&failing, &slow)
}

fn program(repository: &Repository) -> PathBuf {
    repository.target().join("release/seawall")
}

fn failing_region(repository: &Repository, folder: &Path) -> Result<Seen, Failure> {
    let (listen, admin, fleet) = (free_port()?, free_port()?, free_ports(3)?);
    let data = folder.join("demo");
    let mut serve = Command::new(program(repository));
    serve.current_dir(folder).arg("serve").arg("--data-dir").arg(&data);
    serve.args(["--listen", &local(listen), "--admin", &local(admin), "--fleet-listen", &local(fleet)]);
    let _serve = Running::start(&mut serve)?;
    wait_for(listen)?;
    wait_for(fleet)?;
    let token = files::read(&data.join("admin-token"))?;
    let seconds = FAILING_SECONDS + 2 * BEFORE.as_secs();
    let mut load = load(repository, listen, &["--rate", "50", "--duration", &format!("{seconds}s")])?;
    thread::sleep(BEFORE);
    let order = format!(r#"{{"server":"{REGION}","error_percent":100,"seconds":{FAILING_SECONDS}}}"#);
    let authorization = format!("Authorization: Bearer {}", token.trim());
    let mut switch = Command::new("curl");
    switch.args(["-sSf", "-H", &authorization, "-d", &order, &format!("http://{}/fleet/faults", local(fleet))]);
    if let Err(failure) = command::output(&mut switch) {
        drop(load.kill());
        drop(load.wait());
        return Err(failure);
    }
    Ok(Seen { report: reported(load)?, counters: counters(fleet)? })
}

fn slow_model(repository: &Repository, bench: &Path, folder: &Path) -> Result<Seen, Failure> {
    let (listen, admin, fleet) = (free_port()?, free_port()?, free_ports(3)?);
    let mut slow = Command::new(bench);
    slow.args(["fleet", &fleet.to_string(), &SLOTS.to_string(), &(SERVICE_SECONDS * 1_000).to_string()]);
    let _fleet = Running::start(&mut slow)?;
    wait_for(fleet)?;
    let config = folder.join("slow.toml");
    files::write(&config, &slow_config(listen, admin, fleet, folder))?;
    let mut serve = Command::new(program(repository));
    let _serve = Running::start(serve.arg("serve").arg("--config").arg(&config).env("BENCH_KEY", "demo-key"))?;
    wait_for(listen)?;
    let rate = SLOW_RATE.to_string();
    // Half of them stream; nobody states a deadline, and the callers wait for as long as it takes.
    let load = load(
        repository,
        listen,
        &[
            "--rate",
            &rate,
            "--duration",
            "240s",
            "--patience",
            "600s",
            "--attempt-timeout",
            "600s",
            "--stream-share",
            "0.5",
        ],
    )?;
    Ok(Seen { report: reported(load)?, counters: counters(fleet)? })
}

fn slow_config(listen: u16, admin: u16, fleet: u16, folder: &Path) -> String {
    let folder = folder.display();
    let deployment = |index: u16| {
        format!("[[models.deployments]]\nname = \"slow-{index}\"\nurl = \"http://127.0.0.1:{}/v1\"\n", fleet + index)
    };
    let deployments: String = (0..3).map(deployment).collect();
    format!(
        "[server]\nlisten = \"127.0.0.1:{listen}\"\nadmin = \"127.0.0.1:{admin}\"\ndata_dir = \"{folder}/slow\"\n\
         [[models]]\nname = \"demo-chat\"\n{deployments}[[tenants]]\nname = \"demo\"\nkeys = [{{ env = \"BENCH_KEY\" }}]\n"
    )
}

fn local(port: u16) -> String {
    format!("127.0.0.1:{port}")
}

/// Starts the load: clients that never retry, so that every failure and every attempt is Seawall's.
fn load(repository: &Repository, port: u16, arguments: &[&str]) -> Result<Child, Failure> {
    let mut load = Command::new(program(repository));
    load.args(["load", "--json", "--profiles", "none", "--target", &format!("http://{}", local(port))]).args(arguments);
    let line = command::line(&load);
    let started = load.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    started.map_err(|source| Failure::Start { command: line, source })
}

fn reported(load: Child) -> Result<Value, Failure> {
    let ended = load.wait_with_output().map_err(Failure::file("read", "the load's report".as_ref()))?;
    parsed("seawall load", &ended.stdout)
}

fn counters(fleet: u16) -> Result<Value, Failure> {
    let text =
        command::output(Command::new("curl").args(["-sSf", &format!("http://{}/fleet/counters", local(fleet))]))?;
    parsed("curl /fleet/counters", text.as_bytes())
}

fn parsed(command: &str, text: &[u8]) -> Result<Value, Failure> {
    serde_json::from_slice(text)
        .map_err(|error| Failure::Answer { command: command.to_owned(), reason: error.to_string() })
}

/// A number of a report; a missing one is a mistake of this file.
fn number(value: &Value, pointer: &str) -> Result<f64, Failure> {
    value.pointer(pointer).and_then(Value::as_f64).ok_or_else(|| Failure::Answer {
        command: "seawall load or GET /fleet/counters".to_owned(),
        reason: format!("there is no number at `{pointer}`"),
    })
}

fn record(failing: &Seen, slow: &Seen) -> Result<Record, Failure> {
    let row = |seen: &Seen, name: &str| {
        let sent = number(&seen.report, "/sent")?;
        let succeeded = number(&seen.report, "/succeeded")?;
        let attempts = number(&seen.counters, "/total/requests")?;
        let (share, ratio) = (100.0 * succeeded / sent, attempts / sent);
        let failed = sent - succeeded;
        let row = format!("| {name} | {sent} | {failed} | {share:.3}% | {attempts} | {ratio:.4} |");
        Ok::<_, Failure>((row, share, ratio, failed))
    };
    let (first, share, ratio, _) = row(failing, "one of three regions answers only errors for 60 s")?;
    let (second, _, _, refused) = row(slow, "answers take 120 s, half load")?;
    let held = if share >= 99.9 && ratio <= 1.03 { "Both hold" } else { "They do not both hold" };
    let none = if refused == 0.0 { "None was refused" } else { "Some failed" };
    Ok(Record {
        title: "What callers see of a failing region and of a slow model".to_owned(),
        method: format!(
            "`seawall load` with clients that never retry; attempts are what the fleet's own counters say.\n\n\
             First row: `seawall serve` without a config (three simulated regions), 50 requests a second for {} s; after \
             {} s `POST /fleet/faults` makes every request to {REGION} fail for {FAILING_SECONDS} s.\n\n\
             Second row: three simulated servers with {SLOTS} slots and a fixed service time of {SERVICE_SECONDS} s, {SLOW_RATE} \
             requests a second for 240 s (half of what they can do), half of them streams, no deadline headers, default \
             configuration.",
            FAILING_SECONDS + 2 * BEFORE.as_secs(),
            BEFORE.as_secs(),
        ),
        result: format!(
            "| situation | requests | failed | succeeded | attempts at the fleet | attempts per request |\n\
             | --- | --- | --- | --- | --- | --- |\n{first}\n{second}"
        ),
        reading: format!(
            "Asked of the first: at least 99.9% succeed with at most 1.03 attempts per request. {held}: {share:.3}% and \
             {ratio:.4}. Asked of the second: no refusal. {none}."
        ),
    })
}
