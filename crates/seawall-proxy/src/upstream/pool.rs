//! Connections to one upstream, pooled by us on `hyper::client::conn`.
//!
//! The stock client retries cancelled requests by itself and has no bound on open connections; both are what Seawall is
//! there to prevent. Ours is a bounded stack of idle HTTP/1.1 connections: the most recently used first, so that spare
//! ones age out; closed below the common keep-alive timeout of inference servers (5 s), or below what the upstream says
//! in `Keep-Alive: timeout=`. HTTP/1.1 on purpose: see `docs/adr/0003`.

use crate::clock::Clock;
use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use seawall_core::time::Instant;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::AbortHandle;
use tokio_rustls::TlsConnector;

/// Idle connections are closed after this: uvicorn, which most inference servers run on, closes at 5 s.
const IDLE: Duration = Duration::from_secs(4);
/// Margin below a keep-alive time that the upstream states.
const STATED_MARGIN: Duration = Duration::from_millis(500);
/// After a connection broke at its reuse, none is reused that was idle for half as long, for this time.
const WARY: Duration = Duration::from_secs(10);
/// A shorter time to keep a connection is not worth keeping it.
const SHORTEST_IDLE: Duration = Duration::from_millis(1);
/// How long a connection may take to finish with its last request before it is reused. It is at once, unless its answer
/// came before the request was fully sent, and then it may never be.
const READY: Duration = Duration::from_millis(100);
/// Read and write buffers of one connection. Streams are small events; large bodies pass in several reads.
const BUFFER_BYTES: usize = 64 * 1024;

/// Why no connection could be had. Not a byte of the request was sent.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The bound on open connections is reached.
    #[error("all {0} connections to this upstream are in use")]
    Full(usize),
    /// It took longer than the connect timeout.
    #[error("no connection within {0:?}")]
    TimedOut(Duration),
    /// Name look-up or TCP failed.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The HTTP handshake failed.
    #[error("{0}")]
    Http(#[from] hyper::Error),
}

/// Where and how to connect.
#[derive(Debug, Clone)]
pub struct Target {
    /// Host name or address.
    pub host: String,
    /// Port.
    pub port: u16,
    /// For `https`: the connector and the name that the certificate must carry.
    pub tls: Option<(TlsConnectorDebug, ServerName<'static>)>,
}

/// A [`TlsConnector`] that can be printed without printing its keys.
#[derive(Clone)]
pub struct TlsConnectorDebug(pub TlsConnector);

impl std::fmt::Debug for TlsConnectorDebug {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("TlsConnector")
    }
}

/// The connections of one upstream.
#[derive(Debug)]
pub struct ConnectionPool {
    target: Target,
    clock: Clock,
    idle: Mutex<IdleConnections>,
    open: Arc<AtomicUsize>,
    max_open: usize,
}

#[derive(Debug, Default)]
struct IdleConnections {
    stack: Vec<Idle>,
    /// The longest time that a connection is kept, and until when that holds: what a broken one has taught.
    wary: Option<(Duration, Instant)>,
}

#[derive(Debug)]
struct Idle {
    connection: Connection,
    since: Instant,
    until: Instant,
}

/// One connection in use. Dropping it closes it, which is what frees the upstream's slot.
#[derive(Debug)]
pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
    task: AbortHandle,
    /// Whether it has carried a request before.
    pub reused: bool,
    idle_for: Duration,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Connection {
    /// The half that sends requests.
    pub fn sender(&mut self) -> &mut SendRequest<Full<Bytes>> {
        &mut self.sender
    }
}

/// Counts one open connection for as long as its task lives.
struct Open(Arc<AtomicUsize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl ConnectionPool {
    /// An empty pool that opens at most `max_open` connections.
    pub fn new(target: Target, clock: Clock, max_open: usize) -> Self {
        Self { target, clock, idle: Mutex::default(), open: Arc::new(AtomicUsize::new(0)), max_open }
    }

    /// Connections that are open now, idle ones included.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Acquire)
    }

    /// A connection that is ready to send: an idle one, unless `fresh` is asked for, or a new one.
    pub async fn get(&self, fresh: bool, timeout: Duration) -> Result<Connection, ConnectError> {
        while !fresh && let Some(mut connection) = self.take_idle() {
            // One that is still finishing its last answer becomes ready at once or turns out to be closed.
            if connection.sender.is_ready()
                || matches!(tokio::time::timeout(READY, connection.sender.ready()).await, Ok(Ok(())))
            {
                connection.reused = true;
                return Ok(connection);
            }
        }
        // Boxed: it is rare, and its state is twice that of all the rest of a request, which every request would carry.
        match tokio::time::timeout(timeout, Box::pin(self.connect())).await {
            Ok(result) => result,
            Err(_) => Err(ConnectError::TimedOut(timeout)),
        }
    }

    /// Gives back a connection whose answer was read to its end. `keep_alive`: the time that the upstream states.
    pub fn put(&self, connection: Connection, keep_alive: Option<Duration>) {
        let now = self.clock.now();
        let mut idle = self.lock();
        let longest = idle.wary.filter(|(_, until)| *until > now).map_or(IDLE, |(longest, _)| longest);
        let keep = keep_alive.map_or(IDLE, |stated| stated.saturating_sub(STATED_MARGIN)).min(longest);
        if connection.sender.is_closed() || keep < SHORTEST_IDLE {
            return;
        }
        idle.stack.push(Idle { connection, since: now, until: now + keep });
    }

    /// A reused connection broke before a byte of its answer came. The others have been idle for longer and fare alike;
    /// for a while connections are kept for less time, so that an upstream which closes early costs few requests a
    /// second connection.
    pub fn broke_when_reused(&self, connection: &Connection) {
        let now = self.clock.now();
        let mut idle = self.lock();
        idle.wary = Some((connection.idle_for / 2, now + WARY));
        idle.stack.clear();
    }

    fn lock(&self) -> MutexGuard<'_, IdleConnections> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes what has been idle for too long. Called from time to time, so that a quiet upstream holds nothing.
    pub fn sweep(&self) {
        let now = self.clock.now();
        self.lock().stack.retain(|entry| entry.until > now && !entry.connection.sender.is_closed());
    }

    fn take_idle(&self) -> Option<Connection> {
        let now = self.clock.now();
        let mut idle = self.lock();
        while let Some(mut entry) = idle.stack.pop() {
            if entry.until > now && !entry.connection.sender.is_closed() {
                entry.connection.idle_for = now.since(entry.since);
                return Some(entry.connection);
            }
        }
        None
    }

    async fn connect(&self) -> Result<Connection, ConnectError> {
        if self.open.fetch_add(1, Ordering::AcqRel) >= self.max_open {
            self.open.fetch_sub(1, Ordering::AcqRel);
            return Err(ConnectError::Full(self.max_open));
        }
        let open = Open(Arc::clone(&self.open));
        let stream = TcpStream::connect((self.target.host.as_str(), self.target.port)).await?;
        stream.set_nodelay(true)?;
        match &self.target.tls {
            None => handshake(stream, open).await,
            Some((connector, name)) => handshake(connector.0.connect(name.clone(), stream).await?, open).await,
        }
    }
}

async fn handshake<S>(stream: S, open: Open) -> Result<Connection, ConnectError>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = http1::Builder::new().max_buf_size(BUFFER_BYTES).handshake(TokioIo::new(stream)).await?;
    let task = tokio::spawn(async move {
        let _open = open;
        // Its errors reach the request that it carries; an idle connection that breaks is found closed.
        drop(connection.await);
    });
    Ok(Connection { sender, task: task.abort_handle(), reused: false, idle_for: Duration::ZERO })
}
