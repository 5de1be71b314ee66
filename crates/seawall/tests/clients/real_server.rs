//! A real inference server (llama.cpp, with a tiny generated model) behind the program.

use crate::leaving::Leaving;
use crate::process::{PATIENCE, Serve, get};
use crate::sdks::DEMO_KEY_SHA256;
use crate::{python, run, stop};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// An answer of this length takes the server more than ten seconds on a fast machine, some thirty on a common one: five
/// times the two seconds in which a departure must free its slot, so that no slot is free because its answer has ended.
const LONG_ANSWER_TOKENS: u64 = 30_000;

/// llama.cpp's server; it ends when its standard input closes, and is killed when dropped.
struct Llama {
    child: Child,
    address: SocketAddr,
    _folder: TempDir,
}

fn tool(script: &str) -> Command {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tools/llama");
    let mut command = python(script);
    // `python` has put the script of the tests' own folder first: the tool stands elsewhere.
    let program = command.get_program().to_owned();
    command = Command::new(program);
    command.arg(folder.join(script)).env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

impl Llama {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let model = folder.path().join("tiny.gguf");
        let mut made = tool("tiny_model.py");
        made.arg(&model);
        run(made);
        let mut child = tool("serve.py")
            .arg(&model)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server starts");
        let lines = BufReader::new(child.stdout.take().expect("standard output is piped")).lines();
        let address = lines.map_while(Result::ok).find_map(|line| {
            let address = line.strip_prefix("listening ")?.trim_start_matches("http://").to_owned();
            address.trim_end_matches('/').parse().ok()
        });
        Self { address: address.expect("the server says where it listens"), child, _folder: folder }
    }

    /// Slots that are working.
    fn busy(&self) -> usize {
        let slots = get(self.address, "/slots");
        assert_eq!(slots.status, 200, "{}", slots.body);
        let slots: Value = serde_json::from_str(&slots.body).expect("a list of slots");
        let list = slots.as_array().expect("a list of slots");
        list.iter().filter(|slot| slot["is_processing"] == true).count()
    }

    /// Tokens made since the start, which the server counts when a slot is released.
    fn tokens_made(&self) -> u64 {
        let metrics = get(self.address, "/metrics").body;
        let count = metrics.lines().find_map(|line| line.strip_prefix("llamacpp:tokens_predicted_total "));
        count.and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("no count of tokens: {metrics}"))
    }

    /// Polls until so many slots are working; how long it took in polls of 20 ms.
    fn wait_until_busy(&self, slots: usize, most: Duration) -> bool {
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let polls = most.as_millis() / 20;
        let reached = (0..polls).any(|_| {
            // A pause between two polls of a state, not a wait for an event: nothing is ever sent.
            assert!(receiver.recv_timeout(Duration::from_millis(20)).is_err());
            self.busy() == slots
        });
        drop(sender);
        reached
    }
}

impl Drop for Llama {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn llama_serves_streams_and_gets_its_slot_back_when_the_client_leaves() {
    let llama = Llama::start();
    let serve = Serve::with_config(&format!(
        r#"
[[models]]
name = "tiny"
[[models.deployments]]
name = "llama"
url = "http://{}/v1"
[[tenants]]
name = "demo"
keys = [{{ sha256 = "{DEMO_KEY_SHA256}" }}]
"#,
        llama.address
    ));
    let mut client = python("llama_chat.py");
    client.arg(serve.listen.to_string());
    run(client);
    assert!(llama.wait_until_busy(0, PATIENCE), "the slots are free after the answers");

    // Only in the middle of a stream: this server looks for its client when it writes. Asked directly, it works on for
    // clients that left an answer that does not stream, or left before the first token; `leaving.rs` has those cases.
    let mut client = Leaving::start(serve.listen, "tiny", LONG_ANSWER_TOKENS, "mid-stream");
    client.wait_for("begun");
    assert!(llama.wait_until_busy(1, PATIENCE), "the server works");
    client.say("leave");
    client.wait_for("left");
    assert!(llama.wait_until_busy(0, Duration::from_secs(2)), "the slot is free again");
    // The departure freed it, not the end of the answer.
    let made = llama.tokens_made();
    assert!(made < LONG_ANSWER_TOKENS, "{made} tokens were made in all");
    assert!(get(serve.admin, "/metrics").body.contains(r#"outcome="client_gone",cause="caller"} 1"#));
    stop(serve);
}
