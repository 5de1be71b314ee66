//! A client that leaves before its answer is complete.

use crate::process::{PATIENCE, Serve, get};
use crate::{python, stop};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Stdio};
use std::time::Duration;

/// The OpenAI client, which leaves in the middle of an answer when it is told; killed when dropped.
pub(crate) struct Leaving {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Leaving {
    pub(crate) fn start(address: SocketAddr, model: &str, max_tokens: u64, when: &str) -> Self {
        let mut child = python("openai_leaves.py")
            .args([&address.to_string(), model, &max_tokens.to_string(), when])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the client starts");
        let lines = BufReader::new(child.stdout.take().expect("standard output is piped"));
        Self { child, lines }
    }

    pub(crate) fn wait_for(&mut self, word: &str) {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("the client tells what it does");
        assert_eq!(line.trim_end(), word, "what the client said; an empty line is its end");
    }

    pub(crate) fn say(&mut self, word: &str) {
        let stdin = self.child.stdin.as_mut().expect("standard input is piped");
        writeln!(stdin, "{word}").expect("the client listens");
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// What all servers of the fleet have counted together.
pub(crate) fn counted(fleet: SocketAddr, what: &str) -> u64 {
    let counters: Value = serde_json::from_str(&get(fleet, "/fleet/counters").body).expect("counters");
    counters["total"][what].as_u64().unwrap_or_else(|| panic!("no {what}: {counters:#}"))
}

/// Whether the fleet counts one of these within the time.
fn counts_one_within(fleet: SocketAddr, what: &str, most: Duration) -> bool {
    let (_sender, receiver) = std::sync::mpsc::channel::<()>();
    (0..most.as_millis() / 20).any(|_| {
        // A pause between two polls of a state, not a wait for an event: nothing is ever sent.
        assert!(receiver.recv_timeout(Duration::from_millis(20)).is_err());
        counted(fleet, what) == 1
    })
}

/// Before its first byte, an upstream can learn of a departure by its closed connection alone. A client that counts its
/// attempts is waited for three seconds.
#[test]
fn a_client_that_leaves_before_the_first_byte_and_stays_away_closes_the_upstream_connection() {
    let demo = Serve::demo();
    demo.fault(r#"{"server":"*","hang_before_headers":true}"#);
    let mut client = Leaving::start(demo.listen, "demo-chat", 1_000, "before-first-byte");
    client.wait_for("begun");
    assert!(counts_one_within(demo.fleet(), "requests", PATIENCE), "the upstream is asked");
    assert_eq!(counted(demo.fleet(), "disconnects"), 0, "nobody has left yet");
    client.say("leave");
    client.wait_for("left");
    assert!(counts_one_within(demo.fleet(), "disconnects", Duration::from_secs(5)), "the upstream was left");
    assert_eq!(counted(demo.fleet(), "requests"), 1, "it was asked once");
    stop(demo);
}
