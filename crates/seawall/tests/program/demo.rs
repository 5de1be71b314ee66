//! The first minute: what README shows, and a region that fails.

use crate::process::{Answer, Serve, get, program};
use serde_json::Value;
use std::process::Command;

const HI: &str = r#"{"model":"demo-chat","messages":[{"role":"user","content":"hi"}]}"#;

fn json(answer: &Answer) -> Value {
    serde_json::from_str(&answer.body).unwrap_or_else(|error| panic!("{error}: {}", answer.body))
}

#[test]
fn the_first_minute() {
    let demo = Serve::demo();

    let plain = demo.chat("demo-key", HI);
    assert_eq!(plain.status, 200, "{}", plain.body);
    assert!(json(&plain)["choices"][0]["message"]["content"].as_str().is_some_and(|text| !text.is_empty()));
    assert!(plain.head.contains("x-seawall-outcome: served") && plain.head.contains("x-seawall-attempts: 1"));

    let stream =
        demo.chat("demo-key", &HI.replace('{', "{\"stream\":true,").replacen("{\"stream\":true,\"role", "{\"role", 1));
    assert_eq!(stream.status, 200, "{}", stream.body);
    assert!(stream.body.ends_with("data: [DONE]\n\n"), "{}", stream.body);

    let wrong_key = demo.chat("wrong", HI);
    assert_eq!((wrong_key.status, &json(&wrong_key)["error"]["code"]), (401, &Value::from("invalid_api_key")));

    let unknown = demo.chat("demo-batch-key", &HI.replace("demo-chat", "gpt-0"));
    assert_eq!(unknown.status, 404);
    let message = json(&unknown)["error"]["message"].to_string();
    assert!(message.contains("demo-chat") && message.contains("demo-embed"), "{message}");

    for (path, status) in [("/livez", 200), ("/readyz", 200), ("/statusz", 200), ("/metrics", 200), ("/nothing", 404)] {
        assert_eq!(get(demo.admin, path).status, status, "{path}");
    }
    assert!(get(demo.admin, "/metrics").body.contains(r#"seawall_requests_total{model="demo-chat",tenant="demo""#));
}

#[test]
fn a_failing_region_costs_no_request() {
    let demo = Serve::demo();
    demo.fault(r#"{"server":"eastus","error_percent":100}"#);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let target = format!("http://{}", demo.listen);
    let load = program(&folder)
        .args(["load", "--target", &target, "--rate", "50", "--count", "300", "--profiles", "none", "--json"])
        .output()
        .expect("the load runs");
    assert!(load.status.success(), "{}", String::from_utf8_lossy(&load.stderr));
    let report: Value = serde_json::from_slice(&load.stdout).expect("a report");
    assert_eq!((&report["sent"], &report["succeeded"]), (&Value::from(300), &Value::from(300)), "{report:#}");
    let counters = get(demo.fleet(), "/fleet/counters");
    let attempts = &json(&counters)["attempts"]["by_fingerprint"];
    assert_eq!(attempts["distinct"], 300);
    let total = attempts["attempts"].as_u64().expect("a count");
    // Three failures in a row eject, a probe or two follow: 1.03 attempts a request at the most, as the fleet counts.
    assert!((301..=309).contains(&total), "{total}");
}

#[test]
fn the_admin_port_and_the_fleet_take_changes_only_with_the_token_and_from_this_machine() {
    let demo = Serve::demo();
    let post = |address, path: &str, headers: &str| crate::process::post(address, path, headers, "{}").status;
    assert_eq!(post(demo.admin, "/admin/drain", ""), 401);
    assert_eq!(post(demo.admin, "/admin/drain", "Authorization: Bearer guess\r\n"), 401);
    assert_eq!(post(demo.fleet(), "/fleet/faults", "Authorization: Bearer guess\r\n"), 401);
    let rebound = Command::new("curl")
        .args(["-s", "-o", "/dev/null", "-w", "%{http_code}", "-H", "Host: evil.example"])
        .arg(format!("http://{}/statusz", demo.admin))
        .output()
        .expect("curl runs");
    assert_eq!(String::from_utf8_lossy(&rebound.stdout), "403");
}
