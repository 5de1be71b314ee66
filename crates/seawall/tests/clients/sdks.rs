//! The SDKs of OpenAI and Anthropic.

use crate::leaving::counted;
use crate::process::Serve;
use crate::{node, python, run, stop, tool};
use std::process::Command;

#[test]
fn openai_python() {
    let demo = Serve::demo();
    let mut client = python("openai_sdk.py");
    client.arg(demo.listen.to_string());
    run(client);
    stop(demo);
}

#[test]
fn openai_node() {
    let demo = Serve::demo();
    let mut client = node("openai_sdk.mjs");
    client.env("SEAWALL", demo.listen.to_string());
    run(client);
    stop(demo);
}

/// The demo's simulated servers speak Anthropic's API too.
#[test]
fn anthropic_python() {
    let demo = Serve::demo();
    let serve = Serve::with_config(&format!(
        r#"
[[models]]
name = "claude-demo"
[[models.deployments]]
name = "claude"
url = "http://{}"
dialect = "anthropic"
[[tenants]]
name = "demo"
keys = [{{ sha256 = "{DEMO_KEY_SHA256}" }}]
"#,
        demo.fleet()
    ));
    let mut client = python("anthropic_sdk.py");
    client.arg(serve.listen.to_string());
    run(client);
    stop(serve);
    stop(demo);
}

/// The SHA-256 of `demo-key`.
pub(crate) const DEMO_KEY_SHA256: &str = "c48a01f49fd0f2cc404bc3cbbc80e91457a3d41bb429a695243de4c61794155c";

/// What a client does with a refusal is what the contract says it does: attempts and waits.
#[test]
fn openai_python_obeys_our_refusals() {
    let demo = Serve::demo();
    demo.fault(r#"{"server":"*","refuse":true,"error_status":429,"retry_after_seconds":20}"#);
    let mut client = python("openai_refused.py");
    client.arg(demo.listen.to_string());
    run(client);
    stop(demo);
}

/// A client that gives up too early and asks again gets the answer of its first attempt.
#[test]
fn openai_python_times_out_and_has_its_work_done_once() {
    let demo = Serve::demo();
    demo.fault(r#"{"server":"*","extra_latency_ms":2500}"#);
    let mut client = python("openai_times_out.py");
    client.arg(demo.listen.to_string());
    run(client);
    assert_eq!(counted(demo.fleet(), "requests"), 1);
    stop(demo);
}

/// A client of this language, built as a program of its own so that its HTTP client stays out of this workspace.
#[test]
fn async_openai() {
    let demo = Serve::demo();
    let mut client = Command::new(tool("SEAWALL_TEST_ASYNC_OPENAI"));
    client.arg(demo.listen.to_string());
    run(client);
    stop(demo);
}

/// The client really stops where it is told to, and really waits as long as it is told while capacity is exhausted.
#[test]
fn openai_python_really_stops_and_really_waits() {
    let demo = Serve::demo();
    let fleet = demo.fleet();
    // Two deployments, so that Seawall has somewhere to retry; no patience, so that a refusal comes at once.
    let serve = Serve::with_config(&format!(
        r#"
[[models]]
name = "demo-chat"
queue = {{ patience = "0s" }}
[[models.deployments]]
name = "one"
url = "http://{fleet}"
[[models.deployments]]
name = "two"
url = "http://{fleet}"
[[tenants]]
name = "demo"
keys = [{{ sha256 = "{DEMO_KEY_SHA256}" }}]
"#
    ));
    for (fault, expected) in [
        (r#"{"server":"*","error_percent":100}"#, "stops"),
        (r#"{"server":"*","clear":true,"refuse":true,"error_status":429,"retry_after_seconds":1}"#, "waits"),
    ] {
        demo.fault(fault);
        let mut client = python("openai_retries.py");
        client.args([&serve.listen.to_string(), expected]);
        run(client);
    }
    stop(serve);
    stop(demo);
}
