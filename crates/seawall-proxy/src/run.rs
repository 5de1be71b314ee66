//! From a checked configuration to a serving process, and back to nothing.

use crate::access_log::AccessLog;
use crate::admin::Admin;
use crate::admin_token::{AdminToken, TokenError};
use crate::app::App;
use crate::bytes_budget::BytesBudget;
use crate::clock::Clock;
use crate::driver::Driver;
use crate::handler;
use crate::memory::{self, Memory};
use crate::metrics::Metrics;
use crate::notices::Notices;
use crate::server::{self, Connections, ServerLimits};
use crate::upstream::credential::{CredentialError, Credentials, IdentityEnvironment, Surroundings, Timing};
use crate::upstream::poll;
use crate::upstream::pool::ConnectionPool;
use crate::upstream::tls::{self, Connectors, TlsError};
use crate::upstream::{MAX_CONNECTIONS, Upstream};
use http::HeaderValue;
use seawall_config::{Config, Dialect, UpstreamConfig};
use seawall_wire::fingerprint::FingerprintKey;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How often idle connections to upstreams are looked through.
const SWEEP: Duration = Duration::from_secs(1);
/// After the drain limit: time for the error events to be written.
const LAST_WORDS: Duration = Duration::from_millis(500);
const ADMIN_CONNECTIONS: usize = 256;

/// Why the data plane does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An address cannot be listened on.
    #[error("cannot listen on {address} ({what}): {error}. Choose another address with `{flag}`.")]
    Listen {
        /// Which address.
        address: SocketAddr,
        /// What it is for.
        what: &'static str,
        /// The flag that changes it.
        flag: &'static str,
        /// What the system said.
        error: std::io::Error,
    },
    /// The access log's file cannot be opened.
    #[error("cannot open the access log: {0}")]
    AccessLog(std::io::Error),
    /// The admin token cannot be had.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// TLS cannot be set up for an upstream.
    #[error("deployment `{deployment}`: {error}")]
    Tls {
        /// Which deployment.
        deployment: String,
        /// What is wrong.
        error: TlsError,
    },
    /// A credential cannot be used.
    #[error("deployment `{deployment}`: {error}")]
    Credential {
        /// Which deployment.
        deployment: String,
        /// What is wrong.
        error: CredentialError,
    },
}

/// A serving process.
#[derive(Debug)]
pub struct Running {
    app: Arc<App>,
    memory: Arc<Memory>,
    tasks: TaskTracker,
    background: CancellationToken,
    /// Where clients connect.
    pub listen: SocketAddr,
    /// Where operators connect.
    pub admin: SocketAddr,
}

/// How a drain went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drained {
    /// Everything that ran has finished.
    Complete,
    /// This many requests were cut off at the limit.
    Cut(usize),
}

/// Starts to serve. Returns once both listeners accept.
#[expect(clippy::unused_async, reason = "so that it can only be awaited inside a runtime, which its tasks need")]
pub async fn start(config: Config, token: AdminToken, identity: IdentityEnvironment) -> Result<Running, StartError> {
    let server = config.server().clone();
    let (data, listen) = listen_on(server.listen, "data plane", "--listen")?;
    let (control, admin) = listen_on(server.admin, "admin", "--admin")?;
    let settings = Arc::clone(config.core());
    let seed = uuid::Uuid::new_v4().as_u64_pair().0;
    let metrics = Arc::new(Metrics::new(Arc::clone(&settings)));
    let notices = Notices::new(Arc::clone(&settings), Arc::clone(&metrics));
    notices.announce_observed();
    let driver = Driver::new(&settings, seed, notices);
    let memory = Memory::new(&config);
    memory.recall(&driver);
    let tasks = TaskTracker::new();
    let background = CancellationToken::new();
    let upstreams = upstreams(&config, driver.clock, seed, &background, identity)?;
    let app = Arc::new(App {
        metrics,
        access_log: AccessLog::start(&server.access_log, settings).map_err(StartError::AccessLog)?,
        bytes: BytesBudget::new(server.buffered_bytes),
        fingerprint_key: FingerprintKey::new(uuid::Uuid::new_v4().as_u128()),
        connections: Connections::default(),
        draining: CancellationToken::new(),
        cut: CancellationToken::new(),
        upstreams,
        driver,
        config,
    });
    spawn_background(&app, &background);
    poll::spawn(&app, seed, &background);
    spawn_memory(&memory, &app.driver, &background);
    let limits =
        ServerLimits { max_connections: server.max_connections as usize, header_timeout: server.header_timeout };
    let shared = Arc::clone(&app);
    let inference = hyper::service::service_fn(move |request| {
        let app = Arc::clone(&shared);
        async move { Ok::<_, Infallible>(handler::handle(app, request).await) }
    });
    let (connections, draining) = (app.connections.clone(), app.draining.clone());
    tasks.spawn(server::serve(data, inference, limits, connections, tasks.clone(), draining));
    serve_admin(Admin { app: Arc::clone(&app), token, address: admin }, control, limits, &background);
    Ok(Running { app, memory, tasks, background, listen, admin })
}

fn listen_on(
    address: SocketAddr,
    what: &'static str,
    flag: &'static str,
) -> Result<(TcpListener, SocketAddr), StartError> {
    let failed = |error| StartError::Listen { address, what, flag, error };
    let listener = server::bind(address).map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok((listener, bound))
}

/// The admin port outlives the drain: liveness stays green and readiness red until the end.
fn serve_admin(admin: Admin, listener: TcpListener, limits: ServerLimits, stop: &CancellationToken) {
    let admin = Arc::new(admin);
    let service = hyper::service::service_fn(move |request| {
        let admin = Arc::clone(&admin);
        async move { Ok::<_, Infallible>(admin.handle(&request)) }
    });
    let limits = ServerLimits { max_connections: ADMIN_CONNECTIONS, ..limits };
    tokio::spawn(server::serve(listener, service, limits, Connections::default(), TaskTracker::new(), stop.clone()));
}

fn spawn_background(app: &Arc<App>, stop: &CancellationToken) {
    let (timer, sweeper) = (Arc::clone(app), Arc::clone(app));
    let stopped = stop.clone();
    tokio::spawn(async move { stopped.run_until_cancelled(Arc::clone(&timer.driver).run_timer()).await });
    let stopped = stop.clone();
    tokio::spawn(async move {
        while stopped.run_until_cancelled(tokio::time::sleep(SWEEP)).await.is_some() {
            for upstream in &sweeper.upstreams {
                upstream.connections.sweep();
            }
        }
    });
}

fn spawn_memory(memory: &Arc<Memory>, driver: &Arc<Driver>, stop: &CancellationToken) {
    let (memory, driver, stopped) = (Arc::clone(memory), Arc::clone(driver), stop.clone());
    tokio::spawn(async move {
        while stopped.run_until_cancelled(tokio::time::sleep(memory::INTERVAL)).await.is_some() {
            Arc::clone(&memory).write(&driver).await;
        }
    });
}

fn upstreams(
    config: &Config,
    clock: Clock,
    seed: u64,
    stop: &CancellationToken,
    identity: IdentityEnvironment,
) -> Result<Vec<Arc<Upstream>>, StartError> {
    let connectors = Arc::new(Connectors::new());
    let credentials = Credentials::new(Surroundings {
        clock,
        connectors: Arc::clone(&connectors),
        tasks: TaskTracker::new(),
        stop: stop.clone(),
        seed,
        identity,
        timing: Timing::default(),
    });
    let deployments = &config.core().deployments;
    let make = |(upstream, deployment): (&UpstreamConfig, &seawall_core::settings::DeploymentSettings)| {
        let name = || deployment.name.clone();
        let target = tls::target(&upstream.endpoint, upstream.ca_pem.as_deref(), &connectors)
            .map_err(|error| StartError::Tls { deployment: name(), error })?;
        let credential =
            credentials.source(upstream).map_err(|error| StartError::Credential { deployment: name(), error })?;
        let host = HeaderValue::from_str(&upstream.endpoint.authority()).expect("a checked address is a header value");
        Ok(Arc::new(Upstream {
            config: upstream.clone(),
            dialect: dialect(upstream.dialect),
            host,
            connections: ConnectionPool::new(target, clock, MAX_CONNECTIONS),
            credential,
        }))
    };
    config.upstreams().iter().zip(deployments).map(make).collect()
}

const fn dialect(dialect: Dialect) -> seawall_wire::dialect::Dialect {
    match dialect {
        Dialect::OpenAi => seawall_wire::dialect::Dialect::OpenAi,
        Dialect::Azure => seawall_wire::dialect::Dialect::Azure,
        Dialect::Anthropic => seawall_wire::dialect::Dialect::Anthropic,
    }
}

impl Running {
    /// The shared state.
    pub fn app(&self) -> &Arc<App> {
        &self.app
    }

    /// Done when someone asks for a drain over the admin port.
    pub async fn drain_asked(&self) {
        self.app.draining.cancelled().await;
    }

    /// From here on nothing new is taken: readiness is red, the listener closes.
    pub fn begin_drain(&self) {
        self.app.draining.cancel();
        self.app.driver.drain();
    }

    /// Takes nothing new, lets what runs finish within the drain limit, then cuts what is left with an error event.
    pub async fn drain(self) -> Drained {
        let limit = self.app.config.server().drain_limit;
        self.begin_drain();
        // What is learned until now: from here on less and less is there to learn from.
        let (memory, driver) = (Arc::clone(&self.memory), Arc::clone(&self.app.driver));
        let written = tokio::spawn(async move { memory.write(&driver).await });
        self.tasks.close();
        let complete = tokio::time::timeout(limit, self.tasks.wait()).await.is_ok();
        let cut = self.app.driver.live();
        if !complete {
            self.app.cut.cancel();
            // Whoever does not take its last words in time has none.
            drop(tokio::time::timeout(LAST_WORDS, self.tasks.wait()).await);
        }
        self.background.cancel();
        // A disk that is stuck keeps nothing but what was learned.
        drop(tokio::time::timeout(LAST_WORDS, written).await);
        self.app.driver.abandon();
        if complete { Drained::Complete } else { Drained::Cut(cut) }
    }
}
