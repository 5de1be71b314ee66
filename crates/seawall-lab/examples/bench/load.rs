//! The load: raw sockets, so that it costs little beside what it measures. Prints one number when it is done.
//!
//! `max`: N connections, one request after the other; prints the requests answered.
//! `open`: N requests a second on a fixed schedule; prints the median latency from the scheduled time, in microseconds.
//! `sse`: N streams of 50 chunks; prints the chunks read.
//! `hold`: N requests that are answered late; prints `N` once all are on their way, then waits for the answers.

use std::io::{Read, Write};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::Instant;

const CHUNKS: u64 = 50;
const OPEN_CONNECTIONS: usize = 64;

pub(crate) async fn run(port: u16, mode: &str, number: u64, seconds: u64) {
    let until = Instant::now() + Duration::from_secs(seconds);
    let printed = match mode {
        "max" => sum((0..number).map(|_| closed_loop(port, until))).await,
        "open" => median(port, number, seconds),
        "sse" => sum((0..number).map(|index| one_stream(port, Duration::from_millis(index * 7 % 1_000)))).await,
        "hold" => hold(port, number, seconds).await,
        _ => super::panic_usage(),
    };
    say(printed);
}

#[expect(clippy::print_stdout, reason = "the result of a program of its own")]
fn say(number: u64) {
    println!("{number}");
}

async fn sum(tasks: impl Iterator<Item = impl Future<Output = u64> + Send + 'static>) -> u64 {
    tasks.collect::<JoinSet<u64>>().join_all().await.into_iter().sum()
}

fn request(control: &str, stream: bool) -> Vec<u8> {
    let words = "the quick brown fox jumps over the lazy dog ".repeat(19);
    let body = format!(
        r#"{{"model":"bench","user":"{control}","stream":{stream},"messages":[{{"role":"user","content":"{words}"}}]}}"#
    );
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer bench-key\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

async fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).await.expect("the proxy listens");
    stream.set_nodelay(true).expect("a socket option");
    stream
}

/// Sends and reads one answer with a stated length.
async fn exchange(stream: &mut TcpStream, request: &[u8], buffer: &mut Vec<u8>) {
    stream.write_all(request).await.expect("the request is sent");
    buffer.clear();
    while !is_complete(buffer) {
        let read = stream.read_buf(buffer).await.expect("an answer");
        assert!(read > 0, "the connection closed: {}", String::from_utf8_lossy(buffer));
    }
}

/// Whether an answer is all there; it must be a 200.
fn is_complete(buffer: &[u8]) -> bool {
    let Some(head) = buffer.windows(4).position(|window| window == b"\r\n\r\n") else { return false };
    assert!(buffer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(buffer));
    let text = String::from_utf8_lossy(&buffer[..head]).to_ascii_lowercase();
    let length = text.split_once("content-length: ").map_or("", |(_, rest)| rest);
    let length: usize = length.split("\r\n").next().unwrap_or("").parse().expect("a stated length");
    buffer.len() >= head + 4 + length
}

async fn closed_loop(port: u16, until: Instant) -> u64 {
    let (mut stream, request, mut buffer) = (connect(port).await, request("max", false), Vec::new());
    let mut answered = 0;
    while Instant::now() < until {
        exchange(&mut stream, &request, &mut buffer).await;
        answered += 1;
    }
    answered
}

/// One blocking thread a connection, each with its own part of the schedule: sleeps of a thread are precise to some 50
/// us and leave the core, which the upstream shares, alone. A late answer makes the next one late, and that counts.
fn median(port: u16, rate: u64, seconds: u64) -> u64 {
    let (start, request) = (Instant::now() + Duration::from_millis(100), request("open", false));
    let until = start + Duration::from_secs(seconds);
    let one = |index: u64| {
        let (mut stream, mut buffer) = (std::net::TcpStream::connect(("127.0.0.1", port)).expect("a listener"), vec![]);
        stream.set_nodelay(true).expect("a socket option");
        let mut latencies = Vec::new();
        let dues =
            (index..).step_by(OPEN_CONNECTIONS).map(|turn| start + Duration::from_nanos(turn * 1_000_000_000 / rate));
        for due in dues.take_while(|due| *due < until) {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            stream.write_all(&request).expect("the request is sent");
            buffer.clear();
            while !is_complete(&buffer) {
                let mut piece = [0; 4_096];
                let read = stream.read(&mut piece).expect("an answer");
                assert!(read > 0, "the connection closed: {}", String::from_utf8_lossy(&buffer));
                buffer.extend_from_slice(&piece[..read]);
            }
            latencies.push(u64::try_from(due.elapsed().as_micros()).unwrap_or(u64::MAX));
        }
        latencies
    };
    let mut latencies: Vec<u64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..OPEN_CONNECTIONS as u64).map(|index| scope.spawn(move || one(index))).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no thread of the load panics")).collect()
    });
    latencies.sort_unstable();
    latencies[latencies.len() / 2]
}

async fn one_stream(port: u16, delay: Duration) -> u64 {
    tokio::time::sleep(delay).await;
    let mut stream = connect(port).await;
    let request = request(&format!("chunks={CHUNKS},gap=100"), true);
    stream.write_all(&request).await.expect("the request is sent");
    let mut buffer = Vec::new();
    while !buffer.ends_with(b"0\r\n\r\n") {
        let read = stream.read_buf(&mut buffer).await.expect("a stream");
        assert!(read > 0, "the stream broke: {}", String::from_utf8_lossy(&buffer));
    }
    buffer.windows(6).filter(|window| *window == b"data: ").count() as u64
}

async fn hold(port: u16, number: u64, seconds: u64) -> u64 {
    let request = request(&format!("delay={}", seconds * 1_000), false);
    let mut streams = Vec::new();
    for _ in 0..number {
        let mut stream = connect(port).await;
        stream.write_all(&request).await.expect("the request is sent");
        streams.push(stream);
    }
    say(number);
    let mut answered = 0;
    for mut stream in streams {
        let mut first = [0; 16];
        stream.read_exact(&mut first).await.expect("an answer");
        answered += u64::from(first.starts_with(b"HTTP/1.1 200"));
    }
    answered
}
