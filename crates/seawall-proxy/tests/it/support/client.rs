//! A client without any manners of its own: it sends bytes and keeps every byte that comes back.

use super::{contract, dechunk, head_end, header, headers, in_time};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A request for a chat completion of model `m`.
pub(crate) const CHAT: &str = r#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#;
/// The same as a stream.
pub(crate) const CHAT_STREAM: &str = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}"#;
/// Where chat completions are asked for.
pub(crate) const CHAT_PATH: &str = "/v1/chat/completions";

/// The bytes of a POST with these header lines, each ended by CRLF.
pub(crate) fn post(path: &str, headers: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: seawall\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
         {headers}\r\n"
    );
    [head.as_bytes(), body].concat()
}

/// A chat completion.
pub(crate) fn chat() -> Vec<u8> {
    post(CHAT_PATH, "", CHAT)
}

/// A chat completion that is another one for each number.
pub(crate) fn chat_of(number: u32) -> Vec<u8> {
    post(CHAT_PATH, "", CHAT.replace("hi", &number.to_string()))
}

/// A chat stream.
pub(crate) fn chat_stream() -> Vec<u8> {
    post(CHAT_PATH, "", CHAT_STREAM)
}

/// A chat stream that is another one for each number.
pub(crate) fn chat_stream_of(number: u32) -> Vec<u8> {
    post(CHAT_PATH, "", CHAT_STREAM.replace("hi", &number.to_string()))
}

/// A GET.
pub(crate) fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n").into_bytes()
}

/// How an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// By its length or its last chunk.
    Complete,
    /// The connection went before that.
    Broken,
}

/// An answer.
#[derive(Clone)]
pub(crate) struct Response {
    /// Its status.
    pub(crate) status: u16,
    /// Its head as it came.
    pub(crate) head: String,
    /// Its body, decoded.
    pub(crate) body: Vec<u8>,
    /// Every byte of it.
    pub(crate) raw: Vec<u8>,
    /// How it ended.
    pub(crate) end: End,
}

impl std::fmt::Debug for Response {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:?}: {}", self.end, String::from_utf8_lossy(&self.raw))
    }
}

impl Response {
    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }

    /// How often a header stands there.
    pub(crate) fn count(&self, name: &str) -> usize {
        headers(&self.head).filter(|(found, _)| found.eq_ignore_ascii_case(name)).count()
    }

    /// The body as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// `error.code`.
    pub(crate) fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap_or_default().to_owned()
    }

    /// `x-seawall-outcome`.
    pub(crate) fn outcome(&self) -> &str {
        self.header("x-seawall-outcome").unwrap_or_default()
    }

    /// `x-seawall-attempts`.
    pub(crate) fn attempts(&self) -> &str {
        self.header("x-seawall-attempts").unwrap_or_default()
    }

    /// The wait in whole seconds.
    pub(crate) fn retry_after(&self) -> u64 {
        self.header("retry-after").and_then(|text| text.parse().ok()).unwrap_or_default()
    }
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
    ended: bool,
}

impl Client {
    /// Connects.
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let stream = in_time("connect", TcpStream::connect(address)).await.expect("it listens");
        stream.set_nodelay(true).expect("a socket takes the option");
        Self { stream, buffer: Vec::new(), ended: false }
    }

    /// Sends bytes; `false` where the peer does not take them.
    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        in_time("send", self.stream.write_all(bytes.as_ref())).await.is_ok()
    }

    /// Reads more into the buffer; `false` at the end.
    pub(crate) async fn more(&mut self) -> bool {
        let read = in_time("read", self.stream.read_buf(&mut self.buffer)).await;
        self.ended = !matches!(read, Ok(count) if count > 0);
        !self.ended
    }

    /// Reads until what has come is as wanted. Returns all of it; it stays in the buffer.
    pub(crate) async fn until(&mut self, wanted: impl Fn(&[u8]) -> bool) -> &[u8] {
        while !wanted(&self.buffer) {
            assert!(self.more().await, "ended too early: {}", String::from_utf8_lossy(&self.buffer));
        }
        &self.buffer
    }

    /// Reads until so many events have come.
    pub(crate) async fn events(&mut self, count: usize) {
        self.until(|bytes| bytes.windows(2).filter(|window| *window == b"\n\n").count() >= count).await;
    }

    /// Reads one answer and checks it by the contract.
    pub(crate) async fn response(&mut self) -> Response {
        let response = self.unchecked().await;
        contract::check(&response);
        response
    }

    /// Reads one answer that is not ours to form.
    pub(crate) async fn unchecked(&mut self) -> Response {
        self.try_response().await.unwrap_or_else(|| panic!("no answer: {}", String::from_utf8_lossy(&self.buffer)))
    }

    /// Reads one answer; `None` where the connection ends before its head.
    pub(crate) async fn try_response(&mut self) -> Option<Response> {
        loop {
            if let Some((response, length)) = parse(&self.buffer, self.ended) {
                self.buffer.drain(..length);
                return Some(response);
            }
            if self.ended {
                return None;
            }
            self.more().await;
        }
    }

    /// Waits for the end of the connection; nothing more may come.
    pub(crate) async fn closed(&mut self) {
        while self.more().await {}
        assert!(self.buffer.is_empty(), "more came: {}", String::from_utf8_lossy(&self.buffer));
    }

    /// Closes by a reset.
    pub(crate) fn reset(self) {
        let socket = socket2::SockRef::from(&self.stream);
        socket.set_linger(Some(Duration::ZERO)).expect("a socket takes the option");
    }
}

fn parse(bytes: &[u8], ended: bool) -> Option<(Response, usize)> {
    let start = head_end(bytes)?;
    let head = std::str::from_utf8(&bytes[..start]).expect("a head is text").to_owned();
    let status: u16 = head.split(' ').nth(1).and_then(|text| text.parse().ok()).expect("a status");
    if status == 100 {
        let (response, length) = parse(&bytes[start..], ended)?;
        return Some((response, start + length));
    }
    let rest = &bytes[start..];
    let (body, length) = if header(&head, "transfer-encoding").is_some() {
        if !ended && !rest.ends_with(b"0\r\n\r\n") {
            // Decoding it anew with each of thousands of chunks would take long.
            return None;
        }
        let decoded = dechunk(rest);
        (decoded.body, decoded.complete)
    } else {
        let length: usize = header(&head, "content-length").map_or(0, |text| text.parse().expect("a length"));
        (rest[..length.min(rest.len())].to_vec(), (rest.len() >= length).then_some(length))
    };
    let end = match length {
        Some(_) => End::Complete,
        None if ended => End::Broken,
        None => return None,
    };
    let taken = start + length.unwrap_or(rest.len());
    Some((Response { status, head, body, raw: bytes[..taken].to_vec(), end }, taken))
}
