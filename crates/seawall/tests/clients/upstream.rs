//! An upstream that does what the model's name says, and knows which texts it has been asked about.

use crate::process::PATIENCE;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// How long the first answer of the model `crowded` takes: at one at a time, less than two a second.
const CROWDED: Duration = Duration::from_millis(600);
/// OpenAI's form and Anthropic's in one.
const SERVED: &str = concat!(
    r#"{"id":"a","object":"chat.completion","type":"message","role":"assistant","model":"m","#,
    r#""content":[{"type":"text","text":"a"}],"usage":{"input_tokens":1,"output_tokens":1},"#,
    r#""choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"a"}}]}"#
);
const FAILED: &str = r#"{"type":"error","error":{"type":"server_error","code":"x","message":"no"}}"#;
const TOO_LONG: &str = concat!(
    r#"{"type":"error","error":{"type":"invalid_request_error","code":"context_length_exceeded","#,
    r#""message":"This model's maximum context length is 4 tokens."}}"#
);
const BEGUN: &str = concat!(
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"type\":\"message\",",
    "\"role\":\"assistant\",\"model\":\"m\",\"content\":[],\"usage\":{\"input_tokens\":1,\"output_tokens\":1}},",
    "\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":null}]}\n\n"
);

/// It listens until the test's process ends.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    calls: Arc<Calls>,
}

/// The texts of the calls so far.
#[derive(Default)]
struct Calls {
    texts: Mutex<Vec<String>>,
    changed: Condvar,
}

impl Calls {
    /// How often it has been asked about this before; this time counts from now on.
    fn add(&self, text: String) -> usize {
        let mut texts = self.texts.lock().expect("no test panics with it");
        let before = texts.iter().filter(|known| **known == text).count();
        texts.push(text);
        self.changed.notify_all();
        before
    }
}

impl Upstream {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let calls = Arc::<Calls>::default();
        let counted = Arc::clone(&calls);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let calls = Arc::clone(&counted);
                std::thread::spawn(move || drop(serve(&stream, &calls)));
            }
        });
        Self { address, calls }
    }

    /// How often it has been asked about this.
    pub(crate) fn calls(&self, text: &str) -> usize {
        self.calls.texts.lock().expect("no thread panics with it").iter().filter(|known| *known == text).count()
    }

    /// Waits until it has been asked about this.
    pub(crate) fn wait_for(&self, text: &str) {
        let texts = self.calls.texts.lock().expect("no thread panics with it");
        let waited =
            self.calls.changed.wait_timeout_while(texts, PATIENCE, |texts| !texts.iter().any(|one| one == text));
        assert!(!waited.expect("no thread panics with it").1.timed_out(), "nobody asks about {text:?}");
    }
}

/// Answers one request and closes.
fn serve(mut stream: &TcpStream, calls: &Calls) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line == "\r\n" {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let text = body["messages"][0]["content"].as_str().unwrap_or_default();
    let before = calls.add(text.to_owned());
    match answer(body["model"].as_str().unwrap_or_default(), text, before) {
        Some(answer) => stream.write_all(answer.as_bytes()),
        // Until the caller leaves.
        None => reader.read_to_end(&mut Vec::new()).map(drop),
    }
}

/// What it says to a call about this after so many before; `None`: nothing.
fn answer(model: &str, text: &str, before: usize) -> Option<String> {
    Some(match model {
        "busy" => whole("429 Too Many Requests", "retry-after: 1\r\n", FAILED),
        "full" => whole("429 Too Many Requests", "retry-after: 120\r\n", FAILED),
        "locked" => whole("401 Unauthorized", "", FAILED),
        "too-long" => whole("400 Bad Request", "retry-after: 3\r\n", TOO_LONG),
        "unreadable" => whole("422 Unprocessable Entity", "", FAILED),
        "recovers" if before > 0 => whole("200 OK", "", SERVED),
        "crowded" if text == "served" => {
            let (_sender, receiver) = channel::<()>();
            // The time that its work takes: nothing is ever sent.
            assert!(receiver.recv_timeout(CROWDED).is_err());
            whole("200 OK", "", SERVED)
        }
        "silent" | "line" | "twin" | "patient" | "crowded" => return None,
        "error-first" => format!("{STREAM}{}", chunk(&format!("event: error\ndata: {FAILED}\n\n"))),
        "breaks" => format!("{STREAM}{}", chunk(BEGUN)),
        _ => whole("500 Internal Server Error", "", FAILED),
    })
}

const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

fn chunk(event: &str) -> String {
    format!("{:x}\r\n{event}\r\n", event.len())
}

fn whole(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\n{headers}content-type: application/json\r\ncontent-length: {length}\r\n\
         connection: close\r\n\r\n{body}"
    )
}
