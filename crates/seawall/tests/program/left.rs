//! What becomes of a request whose client has left before its answer began, by what its server does about it.

use crate::process::{PATIENCE, Serve, connect, get, request};
use serde_json::Value;
use std::io::Write as _;
use std::sync::mpsc::channel;
use std::time::Duration;

/// The SHA-256 of `demo-key`.
const DEMO_KEY_SHA256: &str = "c48a01f49fd0f2cc404bc3cbbc80e91457a3d41bb429a695243de4c61794155c";

/// What the servers of the fleet have counted together: requests, disconnects, answers.
fn counted(demo: &Serve) -> [u64; 3] {
    let counters: Value = serde_json::from_str(&get(demo.fleet(), "/fleet/counters").body).expect("counters");
    let total = &counters["total"];
    [&total["requests"], &total["disconnects"], &total["by_status"]["200"]].map(|count| count.as_u64().unwrap_or(0))
}

fn wait_until(demo: &Serve, holds: impl Fn([u64; 3]) -> bool) {
    let (_sender, receiver) = channel::<()>();
    let held = (0..PATIENCE.as_millis() / 20).any(|_| {
        // A pause between two polls of a state, not a wait for an event: nothing is ever sent.
        assert!(receiver.recv_timeout(Duration::from_millis(20)).is_err());
        holds(counted(demo))
    });
    assert!(held, "{:?}", counted(demo));
}

/// A client that never repeats leaves while its server works for two seconds before it answers.
#[test]
fn a_request_that_was_left_is_cancelled_where_that_frees_its_server_and_else_goes_on() {
    for (setting, expected) in
        [("", [1, 1, 0]), ("cancel_frees = true", [1, 1, 0]), ("cancel_frees = false", [1, 0, 1])]
    {
        let demo = Serve::demo();
        demo.fault(r#"{"server":"*","extra_latency_ms":2000}"#);
        let serve = Serve::with_config(&format!(
            "[[models]]\nname = \"demo-chat\"\n[[models.deployments]]\nname = \"one\"\nurl = \"http://{}\"\n{setting}\n\
             [[tenants]]\nname = \"demo\"\nkeys = [{{ sha256 = \"{DEMO_KEY_SHA256}\" }}]\n",
            demo.fleet()
        ));
        let body = r#"{"model":"demo-chat","max_tokens":1,"messages":[{"role":"user","content":"hi"}]}"#;
        let mut client = connect(serve.listen);
        let head = "Authorization: Bearer demo-key\r\n";
        let sent = client.write_all(request(serve.listen, "/v1/chat/completions", head, body).as_bytes());
        sent.expect("the request is sent");
        wait_until(&demo, |[requests, ..]| requests == 1);
        drop(client);
        wait_until(&demo, |[_, disconnects, answers]| disconnects + answers > 0);
        assert_eq!(counted(&demo), expected, "{setting}");
        for process in [serve, demo] {
            process.signal("TERM");
            assert_eq!(process.end().code(), Some(0), "{setting}");
        }
    }
}
