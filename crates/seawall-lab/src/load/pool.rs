//! Connections: HTTP/1.1, kept alive, without any retry of its own.
//!
//! A request goes onto an idle connection or a new one. When an idle connection turns out to be closed *before* the
//! request was written, hyper hands the request back unsent and it goes onto a new connection: nothing was attempted,
//! so nothing is repeated. Every other failure is the caller's to judge. There are never more connections in use than
//! calls at once, so the bound on calls bounds the pool; idle connections have a bound of their own.
//!
//! Dropping a [`Connection`] ends its task and closes the socket at once. That is how a client that loses patience
//! looks to the server.

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

/// How long a connection that has given its answer may take until it is ready for the next request.
const READY_WITHIN: Duration = Duration::from_secs(1);
/// How long connecting may take, as in the measured SDKs.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// One connection and the task that drives it.
pub(super) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    _driver: AbortOnDropHandle<()>,
}

/// Why there is no response.
#[derive(Debug)]
pub(super) enum SendFault {
    /// No connection.
    Refused,
    /// No connection in time.
    ConnectTimeout,
    /// The connection ended before the response's head.
    Reset,
}

/// Counters of the pool.
#[derive(Debug, Default)]
pub(super) struct PoolCounters {
    /// Connections opened.
    pub(super) opened: AtomicU64,
    /// Idle connections that were closed by the time they were wanted.
    pub(super) stale: AtomicU64,
    /// Connections that this machine could not make: out of files or ports.
    pub(super) local_limits: AtomicU64,
}

/// The connections to one target.
pub(super) struct Pool {
    addresses: Vec<SocketAddr>,
    idle: Mutex<Vec<Connection>>,
    max_idle: usize,
    pub(super) counters: PoolCounters,
}

impl Pool {
    pub(super) fn new(addresses: Vec<SocketAddr>, max_idle: usize) -> Arc<Self> {
        Arc::new(Self { addresses, idle: Mutex::new(Vec::new()), max_idle, counters: PoolCounters::default() })
    }

    /// Sends one request and gives the response's head with the connection that its body arrives on.
    pub(super) async fn send(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<(Response<Incoming>, Connection), SendFault> {
        let mut request = request;
        while let Some(mut connection) = self.take_idle() {
            match connection.sender.try_send_request(request).await {
                Ok(response) => return Ok((response, connection)),
                Err(mut error) => {
                    request = error.take_message().ok_or(SendFault::Reset)?;
                    self.counters.stale.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        let mut connection = self.connect().await?;
        let response = connection.sender.try_send_request(request).await.map_err(|_| SendFault::Reset)?;
        Ok((response, connection))
    }

    /// Takes back a connection whose response was read to its end.
    pub(super) fn give_back(self: &Arc<Self>, mut connection: Connection) {
        let pool = Arc::clone(self);
        // A task of its own: the call must not wait for it. It ends by itself within the bound.
        tokio::spawn(async move {
            if matches!(timeout(READY_WITHIN, connection.sender.ready()).await, Ok(Ok(()))) {
                let mut idle = pool.lock();
                if idle.len() < pool.max_idle {
                    idle.push(connection);
                }
            }
        });
    }

    /// The connection used last, so that those not needed stay idle and are closed by the server.
    fn take_idle(&self) -> Option<Connection> {
        let mut idle = self.lock();
        while let Some(connection) = idle.pop() {
            if connection.sender.is_ready() {
                return Some(connection);
            }
            self.counters.stale.fetch_add(1, Ordering::Relaxed);
        }
        None
    }

    async fn connect(&self) -> Result<Connection, SendFault> {
        let connecting = timeout(CONNECT_WITHIN, TcpStream::connect(self.addresses.as_slice()));
        let stream = match connecting.await {
            Err(_) => return Err(SendFault::ConnectTimeout),
            Ok(Err(error)) => {
                if is_local_limit(&error) {
                    self.counters.local_limits.fetch_add(1, Ordering::Relaxed);
                }
                return Err(SendFault::Refused);
            }
            Ok(Ok(stream)) => stream,
        };
        self.counters.opened.fetch_add(1, Ordering::Relaxed);
        // Small requests must not wait for the acknowledgement of others; without the option they are only slower.
        let _ = stream.set_nodelay(true);
        let (sender, driver) = handshake(TokioIo::new(stream)).await.map_err(|_| SendFault::Reset)?;
        let driver = tokio::spawn(async move {
            // Its errors reach the request in hand through the sender.
            let _ = driver.await;
        });
        Ok(Connection { sender, _driver: AbortOnDropHandle::new(driver) })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().expect("no code panics while it holds the idle list")
    }
}

/// Out of file descriptors (of the process or the system) or of local ports.
fn is_local_limit(error: &io::Error) -> bool {
    const TOO_MANY_FILES: [i32; 2] = [24, 23];
    error.kind() == io::ErrorKind::AddrNotAvailable
        || error.raw_os_error().is_some_and(|code| TOO_MANY_FILES.contains(&code))
}
