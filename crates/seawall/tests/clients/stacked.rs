//! Layers that all retry on their own: tenacity over LangChain over the OpenAI client over LiteLLM's proxy.
//!
//! LiteLLM's proxy has two groups, the second one for what the first one cannot serve, and both are the same model here. It
//! takes about ten milliseconds of a processor for each of its attempts, so that few users can be had in a test; what the
//! budget makes of fifty calls a second is tested beside the engine.

use crate::process::{PATIENCE, Serve};
use crate::sdks::DEMO_KEY_SHA256;
use crate::upstream::Upstream;
use crate::{python, stop};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;
use tempfile::TempDir;

/// LiteLLM's proxy in front of a target; killed when dropped.
struct LiteLlm {
    child: Child,
    address: SocketAddr,
    _folder: TempDir,
}

impl LiteLlm {
    fn start(target: SocketAddr) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let model = format!(
            "litellm_params: {{model: openai/fails, api_base: \"http://{target}/v1\", api_key: demo-key, max_retries: 0}}"
        );
        let config = format!(
            "model_list:\n- model_name: first\n  {model}\n- model_name: second\n  {model}\n\
             litellm_settings: {{telemetry: false}}\n\
             router_settings: {{num_retries: 3, disable_cooldowns: true, fallbacks: [{{first: [second]}}]}}\n\
             general_settings: {{master_key: demo-key}}\n"
        );
        std::fs::write(folder.path().join("config.yaml"), config).expect("the config file is written");
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
        let child = python("litellm_proxy.py")
            .args(["--config", "config.yaml", "--host", "127.0.0.1", "--port", &free.port().to_string()])
            .current_dir(folder.path())
            .envs([("LITELLM_LOCAL_MODEL_COST_MAP", "True"), ("LITELLM_MODE", "PRODUCTION"), ("NO_DOCS", "True")])
            .envs([("LITELLM_LOG", "CRITICAL"), ("DISABLE_ADMIN_UI", "True")])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("LiteLLM starts");
        let proxy = Self { child, address: free, _folder: folder };
        proxy.wait();
        proxy
    }

    /// It listens when it is ready.
    fn wait(&self) {
        let (_sender, receiver) = channel::<()>();
        let listens = (0..PATIENCE.as_millis() / 50).any(|_| {
            // A pause between two polls of a state, not a wait for an event: nothing is ever sent.
            assert!(receiver.recv_timeout(Duration::from_millis(100)).is_err());
            TcpStream::connect(self.address).is_ok()
        });
        assert!(listens, "LiteLLM does not listen");
    }

    /// Lets so many users, none of whom can be served, ask once each, all at once. How many minutes began meanwhile.
    fn minutes(&self, users: usize) -> usize {
        let output = python("stacked.py").args([self.address.to_string(), users.to_string()]).output();
        let output = output.expect("the client runs");
        let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let told = out.trim().strip_prefix("0 served, seconds: ").and_then(|seconds| seconds.parse::<usize>().ok());
        told.unwrap_or_else(|| panic!("{out}\n{error}")) / 60 + 1
    }
}

impl Drop for LiteLlm {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Both deployments fail all the time. A user that asks again and again reaches one of them twice a minute at the most; so
/// few users all have a second call, which the floor of the budget pays.
#[test]
fn the_stacked_client_reaches_an_upstream_twice_at_the_most() {
    const USERS: usize = 3;
    let upstream = Upstream::start();
    let serve = Serve::with_config(&format!(
        "[[models]]\nname = \"fails\"\n[[models.deployments]]\nname = \"a\"\nurl = \"http://{0}\"\n\
         [[models.deployments]]\nname = \"b\"\nurl = \"http://{0}\"\n\
         [[tenants]]\nname = \"demo\"\nkeys = [{{ sha256 = \"{DEMO_KEY_SHA256}\" }}]\n",
        upstream.address
    ));
    let proxy = LiteLlm::start(serve.listen);
    let minutes = proxy.minutes(USERS);
    let calls: Vec<usize> = (0..USERS).map(|user| upstream.calls(&format!("user {user}"))).collect();
    println!("upstream calls for each user: {calls:?}");
    assert!(calls.iter().all(|count| (1..=2 * minutes).contains(count)), "{calls:?} in {minutes} minutes");
    stop(serve);
}

/// The same without Seawall.
#[test]
fn the_stacked_client_alone_makes_72_calls_of_one() {
    let upstream = Upstream::start();
    LiteLlm::start(upstream.address).minutes(1);
    assert_eq!(upstream.calls("user 0"), 72);
}
