//! Step 1, accept: connections, their limits, and their end.
//!
//! At the bound on connections a new one is told so and closed. When the process drains, the listener closes first (new
//! connections are refused by the system), idle connections are closed, and running ones finish their answer with
//! `Connection: close`.

use crate::record::RequestName;
use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::Service;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use socket2::{Domain, Protocol, Socket, Type};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Connections that the system holds for us until they are accepted.
const BACKLOG: i32 = 4_096;
/// A pause after an accept error such as "too many open files", so that the loop does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);
/// Header lines of a request, and the buffer that they must fit into.
const MAX_HEADERS: usize = 128;
const HEAD_BYTES: usize = 64 * 1024;
const HTTP2_STREAMS: u32 = 100;

/// What a listener needs to know.
#[derive(Debug, Clone, Copy)]
pub struct ServerLimits {
    /// Connections at once.
    pub max_connections: usize,
    /// How long a client may take to send a request's head.
    pub header_timeout: Duration,
}

/// Counts connections.
#[derive(Debug, Default, Clone)]
pub struct Connections(Arc<AtomicUsize>);

impl Connections {
    /// How many are open.
    pub fn open(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn enter(&self) -> Counted {
        self.0.fetch_add(1, Ordering::AcqRel);
        Counted(self.clone())
    }
}

struct Counted(Connections);

impl Drop for Counted {
    fn drop(&mut self) {
        (self.0).0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Binds `address` with a long backlog.
pub fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// Serves `service` on `listener` until `stop`; every connection is a task of `tasks`.
pub async fn serve<S, B>(
    listener: TcpListener,
    service: S,
    limits: ServerLimits,
    connections: Connections,
    tasks: TaskTracker,
    stop: CancellationToken,
) where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let builder = builder(&limits);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => return,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        if connections.open() >= limits.max_connections {
            tasks.spawn(turn_away(stream));
            continue;
        }
        // A socket that broke between accept and here fails at its first read.
        drop(stream.set_nodelay(true));
        let counted = connections.enter();
        let first = CancellationToken::new();
        let service = NoticesFirst { inner: service.clone(), first: first.clone() };
        let (builder, stop) = (builder.clone(), stop.clone());
        tasks.spawn(async move {
            let connection = builder.serve_connection(TokioIo::new(stream), service);
            tokio::pin!(connection);
            let result = tokio::select! {
                result = connection.as_mut() => result,
                () = stop.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    connection.as_mut().await
                }
                () = silence(first, limits.header_timeout) => return,
            };
            if let Err(error) = result {
                tracing::debug!(%error, "a client's connection ended early");
            }
            drop(counted);
        });
    }
}

/// Notes that the first request of a connection has come.
#[derive(Clone)]
struct NoticesFirst<S> {
    inner: S,
    first: CancellationToken,
}

impl<S: Service<Request<Incoming>>> Service<Request<Incoming>> for NoticesFirst<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn call(&self, request: Request<Incoming>) -> S::Future {
        self.first.cancel();
        self.inner.call(request)
    }
}

/// Ends when no request has come within `limit`. The library's own limit only begins with the first bytes that are no
/// HTTP/2: a client that sends none, or half of the preface, would hold its connection for ever.
async fn silence(first: CancellationToken, limit: Duration) {
    if tokio::time::timeout(limit, first.cancelled()).await.is_ok() {
        std::future::pending::<()>().await;
    }
}

fn builder(limits: &ServerLimits) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_headers(MAX_HEADERS)
        .max_buf_size(HEAD_BYTES)
        .pipeline_flush(false);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(HTTP2_STREAMS)
        .max_header_list_size(64 * 1024)
        .keep_alive_interval(Duration::from_secs(30));
    builder
}

/// The refusal at the bound on connections, before anything is read: it costs one write, and the time for the client to
/// take it.
async fn turn_away(mut stream: TcpStream) {
    const BODY: &str = concat!(
        r#"{"error":{"message":"Too many connections. Please try again in 2s.","#,
        r#""type":"server_error","param":null,"code":"too_many_connections"}}"#,
    );
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 2\r\n\
         retry-after-ms: 2000\r\nx-ms-retry-after-ms: 2000\r\nx-request-id: {}\r\nx-seawall-outcome: memory_full\r\n\
         x-seawall-attempts: 0\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{BODY}",
        RequestName::fresh().as_str(),
        BODY.len(),
    );
    let write = async {
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await?;
        // Closed with something unread, the connection would be reset, and the answer lost.
        let mut unread = [0; 4096];
        while stream.read(&mut unread).await? > 0 {}
        Ok::<_, std::io::Error>(())
    };
    // A client that does not read its refusal has none.
    drop(tokio::time::timeout(Duration::from_secs(1), write).await);
}
