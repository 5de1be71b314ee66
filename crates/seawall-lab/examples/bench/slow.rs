//! Three simulated servers with a fixed service time: the model that takes its time in `cargo xtask evidence failover`.

use seawall_lab::fleet::{self, FleetOptions, ServerOptions};
use std::net::{Ipv4Addr, SocketAddr};

/// Serves on `port` and the two after it until the process ends.
pub(crate) async fn serve(port: u16, slots: u32, service_ms: u32) {
    let servers = ["one", "two", "three"].map(|name| ServerOptions::fixed(name, slots, service_ms));
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let _running = fleet::start(FleetOptions::of(listen, servers.into())).await.expect("the ports are free");
    std::future::pending::<()>().await;
}
