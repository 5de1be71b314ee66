//! A restart under load: the window that was found is where the next process begins.

use crate::process::{PATIENCE, Serve, get, post};
use seawall_lab::fleet::{self, FleetOptions, ServerOptions};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const SLOTS: u32 = 32;

fn limit(admin: SocketAddr) -> u64 {
    let status: serde_json::Value = serde_json::from_str(&get(admin, "/statusz").body).expect("JSON");
    status["models"][0]["deployments"][0]["limit"].as_u64().expect("a window")
}

/// Asks from many threads at once, again and again, until the window is at least the slots.
fn learn(serve: &Serve) {
    let stop = Arc::new(AtomicBool::new(false));
    let listen = serve.listen;
    let clients: Vec<_> = (0..3 * SLOTS)
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
    let polls = PATIENCE.as_millis() / 50;
    let found = (0..polls).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        limit(serve.admin) >= u64::from(SLOTS)
    });
    stop.store(true, Ordering::Relaxed);
    for client in clients {
        client.join().expect("every request is served");
    }
    assert!(found, "the window is still {}", limit(serve.admin));
}

#[test]
fn a_restart_begins_at_the_window_that_was_found() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let server = ServerOptions::fixed("s", SLOTS, 40);
    let options = FleetOptions::of(SocketAddr::from(([127, 0, 0, 1], 0)), vec![server]);
    let upstream = runtime.block_on(fleet::start(options)).expect("the fleet starts");
    let config = format!(
        "[server]\nallow_anonymous = true\naccess_log = \"off\"\n[[models]]\nname = \"m\"\n\
         [[models.deployments]]\nname = \"d\"\nurl = \"http://{}\"\n",
        upstream.servers()[0].address
    );
    let serve = Serve::with_config(&config);
    assert_eq!(limit(serve.admin), 8);
    learn(&serve);
    let folder = Arc::clone(&serve.folder);
    serve.signal("TERM");
    assert_eq!(serve.end().code(), Some(0));
    let file = folder.path().join("seawall-data/capacity.json");
    let kept: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&file).expect("it is written")).unwrap();
    let window = kept["deployments"][0]["window"].as_u64().expect("a window");
    assert!(window >= u64::from(SLOTS), "{kept}");

    let serve = Serve::with_config_in(&folder);
    assert_eq!(limit(serve.admin), window);
    serve.signal("TERM");
    assert_eq!(serve.end().code(), Some(0));

    // Torn: a warning with a remedy, and a start like the first one.
    std::fs::write(&file, &kept.to_string()[..40]).expect("the file is written");
    let serve = Serve::with_config_in(&folder);
    assert_eq!(limit(serve.admin), 8);
    let warned = serve.first_lines.iter().any(|line| line.contains("WARN") && line.contains("delete the file"));
    assert!(warned, "{:#?}", serve.first_lines);
    serve.signal("TERM");
    assert_eq!(serve.end().code(), Some(0));
    runtime.block_on(upstream.shutdown());
}
