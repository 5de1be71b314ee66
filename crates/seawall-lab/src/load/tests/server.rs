//! A small server on loopback whose answers a test decides.

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream;
use http::{HeaderMap, Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

/// A body of the server; an error in it ends the connection abruptly.
pub(super) type Body = BoxBody<Bytes, io::Error>;

/// What the server saw of one attempt.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Seen {
    /// The id of the call.
    pub(super) fn user(&self) -> String {
        let body: Value = serde_json::from_slice(&self.body).expect("bodies are JSON");
        let user = if body["user"].is_null() { &body["metadata"]["user_id"] } else { &body["user"] };
        user.as_str().expect("bodies name their call").to_owned()
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("headers are ASCII"))
    }
}

/// Answers the n-th attempt, counted from 0.
pub(super) type Answers = dyn Fn(usize) -> BoxFuture<'static, Response<Body>> + Send + Sync;

/// The server; it stops when it is dropped.
pub(super) struct Server {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    accepting: AbortHandle,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Server {
    pub(super) async fn start<F>(answers: F) -> Self
    where
        F: Fn(usize) -> BoxFuture<'static, Response<Body>> + Send + Sync + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let accepting = tokio::spawn(accept(listener, Arc::new(answers), Arc::clone(&seen))).abort_handle();
        Self { address, seen, accepting }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every attempt so far, in order of arrival.
    pub(super) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("nothing panics under the lock").clone()
    }
}

async fn accept(listener: TcpListener, answers: Arc<Answers>, seen: Arc<Mutex<Vec<Seen>>>) {
    // Owned here, so that the connections end with the server.
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (answers, seen) = (Arc::clone(&answers), Arc::clone(&seen));
        connections.spawn(async move {
            let service = service_fn(move |request| answer(request, Arc::clone(&answers), Arc::clone(&seen)));
            // Ends in an error where a test breaks a body off on purpose.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn answer(
    request: Request<Incoming>,
    answers: Arc<Answers>,
    seen: Arc<Mutex<Vec<Seen>>>,
) -> Result<Response<Body>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let number = {
        let mut seen = seen.lock().expect("nothing panics under the lock");
        seen.push(Seen { path: head.uri.path().to_owned(), headers: head.headers, body });
        seen.len() - 1
    };
    Ok(answers(number).await)
}

/// A whole answer with headers.
pub(super) fn whole(status: u16, headers: &[(&'static str, &'static str)], body: &'static str) -> Response<Body> {
    let mut response = Response::new(Full::from(body).map_err(|never| match never {}).boxed());
    *response.status_mut() = http::StatusCode::from_u16(status).expect("tests use valid statuses");
    for (name, value) in headers {
        response.headers_mut().insert(*name, value.parse().expect("tests use valid headers"));
    }
    response
}

/// A stream of chunks; where `broken`, the connection ends abruptly after them.
pub(super) fn streamed(chunks: &'static [&'static str], broken: bool) -> Response<Body> {
    let pieces = chunks.iter().map(|chunk| Ok(Frame::data(Bytes::from_static(chunk.as_bytes()))));
    let end = broken.then(|| Err(io::Error::other("broken off by the test")));
    let body = StreamBody::new(stream::iter(pieces.chain(end)).then(|piece| async {
        // Gives the connection's task time to write each chunk by itself.
        tokio::task::yield_now().await;
        piece
    }));
    let mut response = Response::new(BodyExt::boxed(body));
    response.headers_mut().insert("content-type", "text/event-stream".parse().expect("it is valid"));
    response
}

/// The URL of a server that answers each request and then closes the connection without having said so.
pub(super) async fn closing_after_each_answer() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
    let address = listener.local_addr().expect("a bound socket has an address");
    // Ends with the test's runtime.
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let _ = answer_once(stream).await;
        }
    });
    format!("http://{address}")
}

async fn answer_once(mut stream: TcpStream) -> io::Result<()> {
    let mut read = Vec::new();
    // Bodies are JSON objects and nothing follows them.
    while !read.ends_with(b"}") {
        if stream.read_buf(&mut read).await? == 0 {
            return Ok(());
        }
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await?;
    stream.shutdown().await
}
