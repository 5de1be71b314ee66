//! An upstream that does as the test says, byte by byte, and records what it gets.

use super::{dechunk, head_end, header, in_time};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// The head of a stream.
pub(crate) const STREAM: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
/// The end of a chunked body.
pub(crate) const LAST_CHUNK: &str = "0\r\n\r\n";
/// A good answer in one piece.
pub(crate) const ANSWER: &str = concat!(
    r#"{"id":"c","object":"chat.completion","model":"up-model","choices":[{"index":0,"message":"#,
    r#"{"role":"assistant","content":"ok"},"finish_reason":"stop"}],"#,
    r#""usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}}"#
);

/// One event of a chat stream.
pub(crate) fn delta(text: &str) -> String {
    let text = serde_json::Value::from(text);
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":{text}}},\"finish_reason\":null}}]}}\n\n")
}

/// The event that gives the reason to finish.
pub(crate) const FINISH: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
/// The terminator.
pub(crate) const DONE: &str = "data: [DONE]\n\n";

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// Its head.
    pub(crate) head: String,
    /// Its body, decoded.
    pub(crate) body: Vec<u8>,
    /// Every byte of it.
    pub(crate) raw: Vec<u8>,
    /// The number of its connection, from 0.
    pub(crate) connection: usize,
    /// When its head was there.
    pub(crate) at: Instant,
}

impl Seen {
    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }

    /// The path and query.
    pub(crate) fn target(&self) -> &str {
        self.head.split(' ').nth(1).expect("a request line has three parts")
    }
}

/// A connection of the upstream.
#[derive(Debug)]
pub(crate) struct Wire {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Wire {
    /// Reads more; `false` at the end.
    async fn more(&mut self) -> bool {
        matches!(self.stream.read_buf(&mut self.buffer).await, Ok(count) if count > 0)
    }

    async fn head(&mut self) -> Option<String> {
        loop {
            if let Some(end) = head_end(&self.buffer) {
                return Some(String::from_utf8_lossy(&self.buffer[..end]).into_owned());
            }
            if !self.more().await {
                return None;
            }
        }
    }

    /// Takes the whole request out of the buffer.
    async fn request(&mut self, head: &str) -> Option<(Vec<u8>, Vec<u8>)> {
        let start = head.len();
        if header(head, "transfer-encoding").is_some() {
            loop {
                let decoded = dechunk(&self.buffer[start..]);
                if let Some(length) = decoded.complete {
                    let raw = self.buffer.drain(..start + length).collect();
                    return Some((decoded.body, raw));
                }
                if !self.more().await {
                    return None;
                }
            }
        }
        let length: usize = header(head, "content-length").map_or(0, |text| text.parse().expect("a length"));
        while self.buffer.len() < start + length {
            if !self.more().await {
                return None;
            }
        }
        let raw: Vec<u8> = self.buffer.drain(..start + length).collect();
        Some((raw[start..].to_vec(), raw))
    }
}

/// A request to be answered by the script.
#[derive(Debug)]
pub(crate) struct Call {
    /// The number of this request at this upstream, from 0.
    pub(crate) number: usize,
    /// How many requests came before it on the same connection.
    pub(crate) on_connection: usize,
    /// The request.
    pub(crate) seen: Seen,
    wire: Wire,
    closed: watch::Sender<usize>,
}

impl Call {
    /// Sends bytes as they are. A peer that is gone takes none.
    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        drop(self.wire.stream.write_all(bytes.as_ref()).await);
    }

    /// Sends one chunk of a chunked body.
    pub(crate) async fn chunk(&mut self, data: impl AsRef<[u8]>) {
        self.send(super::chunk(data)).await;
    }

    /// Answers in one piece with these header lines (each ended by CRLF) and keeps the connection.
    pub(crate) async fn answer(mut self, status: u16, headers: &str, body: impl AsRef<[u8]>) -> Option<Wire> {
        let body = body.as_ref();
        let head = format!("HTTP/1.1 {status} X\r\n{headers}content-length: {}\r\n\r\n", body.len());
        self.send([head.as_bytes(), body].concat()).await;
        Some(self.wire)
    }

    /// Answers with JSON and keeps the connection.
    pub(crate) async fn json(self, status: u16, headers: &str, body: impl AsRef<[u8]>) -> Option<Wire> {
        self.answer(status, &format!("content-type: application/json\r\n{headers}"), body).await
    }

    /// Answers with a whole event stream and keeps the connection.
    pub(crate) async fn stream(mut self, events: impl AsRef<[u8]>) -> Option<Wire> {
        self.send([STREAM.as_bytes(), &super::chunk(events), LAST_CHUNK.as_bytes()].concat()).await;
        Some(self.wire)
    }

    /// Answers well, in the form that was asked for.
    pub(crate) async fn good(self) -> Option<Wire> {
        if String::from_utf8_lossy(&self.seen.body).contains("\"stream\":true") {
            return self.stream([&delta("ok"), FINISH, DONE].concat()).await;
        }
        self.json(200, "", ANSWER).await
    }

    /// Goes on with the next request on this connection.
    #[expect(clippy::unnecessary_wraps, reason = "the form that every script returns")]
    pub(crate) fn keep(self) -> Option<Wire> {
        Some(self.wire)
    }

    /// Ends the connection by a reset.
    pub(crate) fn reset(self) -> Option<Wire> {
        let socket = socket2::SockRef::from(&self.wire.stream);
        socket.set_linger(Some(Duration::ZERO)).expect("a socket takes the option");
        None
    }

    /// Ends the connection in order.
    pub(crate) async fn finish(mut self) -> Option<Wire> {
        drop(self.wire.stream.shutdown().await);
        None
    }

    /// Waits until the peer has closed, says nothing, and notes it.
    pub(crate) async fn hang(mut self) -> Option<Wire> {
        while self.wire.more().await {}
        self.closed.send_modify(|count| *count += 1);
        None
    }
}

/// The upstream.
#[derive(Debug)]
pub(crate) struct Upstream {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
    closed: watch::Receiver<usize>,
    accepting: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    seen: Mutex<Vec<Seen>>,
    number: AtomicUsize,
    calls: watch::Sender<usize>,
    connections: AtomicUsize,
    reads_body: bool,
}

impl Shared {
    fn seen(&self) -> MutexGuard<'_, Vec<Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Upstream {
    /// Answers every request, its body read, by `script`. What that returns is the connection, where it goes on.
    pub(crate) async fn start<F, A>(script: F) -> Self
    where
        F: Fn(Call) -> A + Send + Sync + 'static,
        A: Future<Output = Option<Wire>> + Send + 'static,
    {
        Self::with(true, script).await
    }

    /// As [`Upstream::start`], but the script runs before the body is read, and the body stays unread.
    pub(crate) async fn at_head<F, A>(script: F) -> Self
    where
        F: Fn(Call) -> A + Send + Sync + 'static,
        A: Future<Output = Option<Wire>> + Send + 'static,
    {
        Self::with(false, script).await
    }

    /// One that answers everything well.
    pub(crate) async fn good() -> Self {
        Self::start(Call::good).await
    }

    /// One that gives this answer to everything.
    pub(crate) async fn always(status: u16, headers: &'static str, body: &'static str) -> Self {
        Self::start(move |call| call.json(status, headers, body)).await
    }

    async fn with<F, A>(reads_body: bool, script: F) -> Self
    where
        F: Fn(Call) -> A + Send + Sync + 'static,
        A: Future<Output = Option<Wire>> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared {
            seen: Mutex::default(),
            number: AtomicUsize::new(0),
            calls: watch::Sender::new(0),
            connections: AtomicUsize::new(0),
            reads_body,
        });
        let (closing, closed) = watch::channel(0);
        let (script, accepted) = (Arc::new(script), Arc::clone(&shared));
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).expect("a socket takes the option");
                let wire = Wire { stream, buffer: Vec::new() };
                tokio::spawn(serve(wire, Arc::clone(&accepted), Arc::clone(&script), closing.clone()));
            }
        });
        Self { address, shared, closed, accepting }
    }

    /// Every request so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.shared.seen().clone()
    }

    /// How many requests came.
    pub(crate) fn count(&self) -> usize {
        self.shared.number.load(Ordering::SeqCst)
    }

    /// How many connections were opened.
    pub(crate) fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// Waits until so many requests have come.
    pub(crate) async fn called(&self, count: usize) {
        let mut calls = self.shared.calls.subscribe();
        in_time("calls", calls.wait_for(|seen| *seen >= count)).await.expect("it lives");
    }

    /// Waits until so many hanging connections were closed by the peer.
    pub(crate) async fn hung_up(&self, count: usize) {
        let mut closed = self.closed.clone();
        in_time("closing", closed.wait_for(|seen| *seen >= count)).await.expect("it lives");
    }
}

async fn serve<F, A>(mut wire: Wire, shared: Arc<Shared>, script: Arc<F>, closed: watch::Sender<usize>)
where
    F: Fn(Call) -> A + Send + Sync + 'static,
    A: Future<Output = Option<Wire>> + Send + 'static,
{
    let connection = shared.connections.fetch_add(1, Ordering::SeqCst);
    let mut on_connection = 0;
    while let Some(head) = wire.head().await {
        let at = Instant::now();
        let (body, raw) = if shared.reads_body {
            let Some(request) = wire.request(&head).await else { return };
            request
        } else {
            (Vec::new(), Vec::new())
        };
        let seen = Seen { head, body, raw, connection, at };
        shared.seen().push(seen.clone());
        let number = shared.number.fetch_add(1, Ordering::SeqCst);
        shared.calls.send_modify(|count| *count += 1);
        let call = Call { number, on_connection, seen, wire, closed: closed.clone() };
        on_connection += 1;
        match script(call).await {
            Some(next) => wire = next,
            None => return,
        }
    }
}
