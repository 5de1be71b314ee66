//! An upstream that tells on its metrics page how much it has to do, as vLLM does.

use crate::crowd::{Crowd, config, limit};
use crate::process::Serve;
use seawall_lab::fleet::{self, FleetOptions, ServerOptions};
use std::net::SocketAddr;

const SLOTS: u32 = 8;

/// Without a bound of its own this method sends whatever comes; the page says that four of five wait.
#[test]
fn a_server_that_says_that_it_keeps_requests_waiting_gets_fewer() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let options = FleetOptions::of(SocketAddr::from(([127, 0, 0, 1], 0)), vec![ServerOptions::fixed("s", SLOTS, 100)]);
    let upstream = runtime.block_on(fleet::start(options)).expect("the fleet starts");
    let serve = Serve::with_config(&config(&upstream, "discovery = \"ceiling\"", "metrics_path = \"/metrics\""));
    assert_eq!(limit(&serve), None);
    let most = u64::from(SLOTS) + 4;
    // What was sent before has to drain.
    let found = Crowd::of(&serve, 5 * SLOTS)
        .until(|| limit(&serve).is_some_and(|limit| limit <= most) && upstream.counts().waiting <= 4);
    assert!(found, "{:?}, {:?}", limit(&serve), upstream.counts());
    runtime.block_on(upstream.shutdown());
}
