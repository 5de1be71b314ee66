//! The SDKs of OpenAI and Anthropic.

use crate::process::Serve;
use crate::{node, python, run};

#[test]
fn openai_python() {
    let demo = Serve::demo();
    let mut client = python("openai_sdk.py");
    client.arg(demo.listen.to_string());
    run(client);
}

#[test]
fn openai_node() {
    let demo = Serve::demo();
    let mut client = node("openai_sdk.mjs");
    client.env("SEAWALL", demo.listen.to_string());
    run(client);
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
}
