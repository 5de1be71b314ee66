//! Simulated inference servers on real ports, with faults that are switched at run time and counters of what came.
//!
//! [`start`] binds one port for each server of [`FleetOptions`] and gives a [`FleetHandle`]. Each server speaks the
//! OpenAI, Azure and Anthropic APIs over HTTP/1.1 and HTTP/2 without TLS, streams at the pace of a
//! [`seawall_model::engine`], and has `GET /health` and `GET /metrics` (vLLM's names). The first address also has the
//! admin endpoints:
//!
//! | call | does |
//! | --- | --- |
//! | `GET /fleet/servers` | names, regions, addresses |
//! | `GET`, `POST /fleet/faults` | tells, switches faults; an unknown key is a 400 that lists all keys |
//! | `GET /fleet/counters` | requests by status, disconnects, attempts by request id and by fingerprint |
//! | `POST /fleet/counters/reset` | sets them to zero |
//!
//! All of them need a loopback `Host`; those that change something need the admin token as well.
//!
//! **Determinism.** Lengths and texts of answers depend on the seed and the request's content alone; which requests
//! fail under an error share depends on the seed and their order at the server. Times are real times.

mod admin;
mod answer;
mod body;
mod counters;
mod errors;
mod faults;
mod host;
mod limit;
mod listen;
mod metrics;
mod options;
mod request;
mod server;
mod socket;

use crate::clock::Clock;
use admin::Admin;
pub use options::{ErrorForm, FleetOptions, Pacing, Rejection, RequestLimit, ServerOptions};
pub use seawall_model::engine::{Departure, EngineSettings, Order};
use server::Server;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Why a fleet did not start.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// There is no server in the options.
    #[error("a fleet needs at least one server")]
    NoServers,
    /// Two servers have one name.
    #[error("two servers of the fleet are named `{0}`; give each a name of its own")]
    SameName(String),
    /// Ports of consecutive servers would go beyond 65535.
    #[error("{count} servers from port {port} on go beyond port 65535; choose a lower port")]
    PortRange {
        /// The first port.
        port: u16,
        /// The number of servers.
        count: usize,
    },
    /// An address could not be bound.
    #[error("cannot listen on {address}: {source}; choose another with --listen, or port 0 for a free one")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
}

/// A server of a running fleet.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FleetServer {
    /// Its name.
    pub name: String,
    /// Its region.
    pub region: String,
    /// Where it answers.
    pub address: SocketAddr,
}

/// What the servers of a fleet have seen and do, together.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct FleetCounts {
    /// Inference requests that came.
    pub requests: u64,
    /// Distinct ones among them, by what they ask for.
    pub distinct: u64,
    /// The most that came of one.
    pub most: u64,
    /// Answers by status; `reset` where the connection was reset before the headers.
    pub by_status: BTreeMap<String, u64>,
    /// Requests in slots.
    pub running: u64,
    /// Requests that wait for one.
    pub waiting: u64,
}

/// A running fleet. Dropping it stops the fleet too, without waiting.
pub struct FleetHandle {
    servers: Vec<FleetServer>,
    admin: Arc<Admin>,
    admin_address: SocketAddr,
    tracker: TaskTracker,
    stop: CancellationToken,
}

impl fmt::Debug for FleetHandle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("FleetHandle").field("servers", &self.servers).finish_non_exhaustive()
    }
}

impl FleetHandle {
    /// Where the admin endpoints and the first server answer.
    pub fn admin_addr(&self) -> SocketAddr {
        self.admin_address
    }

    /// The servers, in the order of the options.
    pub fn servers(&self) -> &[FleetServer] {
        &self.servers
    }

    /// What came to all servers since the start or the last [`FleetHandle::reset_counters`], and what they do now.
    pub fn counts(&self) -> FleetCounts {
        self.admin.counts()
    }

    /// Sets all counters to zero.
    pub fn reset_counters(&self) {
        self.admin.reset_counters();
    }

    /// Changes the speed of every server from now on, in millionths of the full one; faults slow it further. Servers
    /// without an engine have no speed.
    pub fn set_speed_ppm(&self, ppm: u32) {
        self.admin.set_speed_ppm(ppm);
    }

    /// Changes the slots of every server from now on. What runs beyond fewer slots is left to finish.
    pub fn set_slots(&self, slots: u32) {
        self.admin.set_slots(slots);
    }

    /// Closes all listeners and cuts all connections, then waits for their tasks to end.
    pub async fn shutdown(self) {
        self.stop.cancel();
        self.tracker.wait().await;
    }
}

impl Drop for FleetHandle {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Binds all ports and starts the servers. Must be called inside a tokio runtime with timers and I/O.
///
/// Where one address cannot be bound none stays bound.
#[expect(clippy::unused_async, reason = "so that it can only be awaited inside a runtime, which its tasks need")]
pub async fn start(options: FleetOptions) -> Result<FleetHandle, FleetError> {
    check(&options)?;
    let clock = Clock::start();
    let attempts = Arc::default();
    let mut listeners = Vec::new();
    let mut servers = Vec::new();
    for (index, server_options) in options.servers.into_iter().enumerate() {
        let address = address_of(options.listen, index)?;
        let failed = |source| FleetError::Bind { address, source };
        let listener = listen::bind(address).map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        let server = Server::new(index, server_options, options.seed, clock, Arc::clone(&attempts));
        servers.push((Arc::new(server), bound));
        listeners.push(listener);
    }
    let tasks = listen::Tasks {
        tracker: TaskTracker::new(),
        stop: CancellationToken::new(),
        connections: Arc::new(Semaphore::new(options.max_connections.clamp(1, Semaphore::MAX_PERMITS))),
    };
    let admin = Arc::new(Admin {
        servers: servers.clone(),
        attempts,
        token: options.admin_token,
        token_hint: options.token_hint,
    });
    let handle = FleetHandle {
        admin: Arc::clone(&admin),
        admin_address: servers.first().map_or(options.listen, |(_, address)| *address),
        servers: servers.iter().map(|(server, address)| describe(server, *address)).collect(),
        tracker: tasks.tracker.clone(),
        stop: tasks.stop.clone(),
    };
    for ((server, _), listener) in servers.into_iter().zip(listeners) {
        if let Some(host) = server.host.clone() {
            let stop = tasks.stop.clone();
            tasks.tracker.spawn(async move { stop.run_until_cancelled(host.drive()).await });
        }
        let admin = (server.index == 0).then(|| Arc::clone(&admin));
        tasks.tracker.spawn(listen::serve(listener, server, admin, tasks.clone()));
    }
    tasks.tracker.close();
    Ok(handle)
}

fn check(options: &FleetOptions) -> Result<(), FleetError> {
    if options.servers.is_empty() {
        return Err(FleetError::NoServers);
    }
    for (index, server) in options.servers.iter().enumerate() {
        if options.servers.iter().take(index).any(|other| other.name == server.name) {
            return Err(FleetError::SameName(server.name.clone()));
        }
    }
    address_of(options.listen, options.servers.len() - 1).map(|_| ())
}

/// The address of the server with this index.
fn address_of(listen: SocketAddr, index: usize) -> Result<SocketAddr, FleetError> {
    let port = listen.port();
    if port == 0 {
        return Ok(listen);
    }
    let own = u16::try_from(index).ok().and_then(|index| port.checked_add(index));
    let own = own.ok_or(FleetError::PortRange { port, count: index + 1 })?;
    Ok(SocketAddr::new(listen.ip(), own))
}

fn describe(server: &Server, address: SocketAddr) -> FleetServer {
    FleetServer { name: server.options.name.clone(), region: server.options.region.clone(), address }
}
