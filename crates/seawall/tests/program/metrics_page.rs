//! An upstream that tells on its metrics page how much it has to do, as vLLM does.

use crate::process::{PATIENCE, Serve, get, post};
use seawall_lab::fleet::{self, FleetOptions, ServerOptions};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const SLOTS: u32 = 8;

fn limit(admin: SocketAddr) -> Option<u64> {
    let status: serde_json::Value = serde_json::from_str(&get(admin, "/statusz").body).expect("JSON");
    status["models"][0]["deployments"][0]["limit"].as_u64()
}

/// Without a bound of its own this method sends whatever comes; the page says that four of five wait.
#[test]
fn a_server_that_says_that_it_keeps_requests_waiting_gets_fewer() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let options = FleetOptions::of(SocketAddr::from(([127, 0, 0, 1], 0)), vec![ServerOptions::fixed("s", SLOTS, 100)]);
    let upstream = runtime.block_on(fleet::start(options)).expect("the fleet starts");
    let serve = Serve::with_config(&format!(
        "[server]\nallow_anonymous = true\naccess_log = \"off\"\n[[models]]\nname = \"m\"\ndiscovery = \"ceiling\"\n\
         [[models.deployments]]\nname = \"d\"\nurl = \"http://{}\"\nmetrics_path = \"/metrics\"\n",
        upstream.servers()[0].address
    ));
    assert_eq!(limit(serve.admin), None);
    let stop = Arc::new(AtomicBool::new(false));
    let listen = serve.listen;
    let clients: Vec<_> = (0..5 * SLOTS)
        .map(|client| {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || {
                for number in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let body =
                        format!(r#"{{"model":"m","messages":[{{"role":"user","content":"{client} {number}"}}]}}"#);
                    assert_eq!(post(listen, "/v1/chat/completions", "", &body).status, 200);
                }
            })
        })
        .collect();
    let most = u64::from(SLOTS) + 4;
    let found = (0..PATIENCE.as_millis() / 50).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        // What was sent before has to drain.
        limit(serve.admin).is_some_and(|limit| limit <= most) && upstream.counts().waiting <= 4
    });
    let counts = upstream.counts();
    stop.store(true, Ordering::Relaxed);
    for client in clients {
        client.join().expect("every request is served");
    }
    assert!(found, "{:?}, {counts:?}", limit(serve.admin));
    runtime.block_on(upstream.shutdown());
}
