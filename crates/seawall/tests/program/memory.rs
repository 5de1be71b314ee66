//! A restart under load: the window that was found is where the next process begins.

use crate::crowd::{Crowd, config, limit};
use crate::process::Serve;
use seawall_lab::fleet::{self, FleetOptions, ServerOptions};
use std::net::SocketAddr;
use std::sync::Arc;

const SLOTS: u32 = 32;

#[test]
fn a_restart_begins_at_the_window_that_was_found() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let server = ServerOptions::fixed("s", SLOTS, 40);
    let options = FleetOptions::of(SocketAddr::from(([127, 0, 0, 1], 0)), vec![server]);
    let upstream = runtime.block_on(fleet::start(options)).expect("the fleet starts");
    let serve = Serve::with_config(&config(&upstream, "", ""));
    assert_eq!(limit(&serve), Some(8));
    let found = Crowd::of(&serve, 3 * SLOTS).until(|| limit(&serve) >= Some(u64::from(SLOTS)));
    assert!(found, "the window is still {:?}", limit(&serve));
    let folder = Arc::clone(&serve.folder);
    serve.signal("TERM");
    assert_eq!(serve.end().code(), Some(0));
    let file = folder.path().join("seawall-data/capacity.json");
    let kept: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&file).expect("it is written")).unwrap();
    let window = kept["deployments"][0]["window"].as_u64().expect("a window");
    assert!(window >= u64::from(SLOTS), "{kept}");

    let serve = Serve::with_config_in(&folder);
    assert_eq!(limit(&serve), Some(window));
    serve.signal("TERM");
    assert_eq!(serve.end().code(), Some(0));

    // Torn: a warning with a remedy, and a start like the first one.
    std::fs::write(&file, &kept.to_string()[..40]).expect("the file is written");
    let serve = Serve::with_config_in(&folder);
    assert_eq!(limit(&serve), Some(8));
    let warned = serve.first_lines.iter().any(|line| line.contains("WARN") && line.contains("delete the file"));
    assert!(warned, "{:#?}", serve.first_lines);
    serve.signal("TERM");
    assert_eq!(serve.end().code(), Some(0));
    runtime.block_on(upstream.shutdown());
}
