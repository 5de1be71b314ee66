//! A running `seawall serve`, and a client that is nothing but a socket.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;
use tempfile::TempDir;

/// The longest that anything here may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// The program, to be run in `folder`, with nothing of this machine's environment that it reads.
pub(crate) fn program(folder: &TempDir) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_seawall"));
    command.current_dir(folder.path()).env_remove("SEAWALL_CONFIG").env_remove("SEAWALL_LOG").env("NO_COLOR", "1");
    command
}

/// A running `serve`; killed when dropped.
pub(crate) struct Serve {
    child: Child,
    lines: Receiver<String>,
    /// What it wrote on standard error until it served.
    pub(crate) first_lines: Vec<String>,
    pub(crate) folder: Arc<TempDir>,
    pub(crate) listen: SocketAddr,
    pub(crate) admin: SocketAddr,
    fleet: Option<SocketAddr>,
}

impl Serve {
    /// The demo, on free ports.
    pub(crate) fn demo() -> Self {
        Self::start(Arc::new(tempfile::tempdir().expect("a temporary folder")), &[], "POST http://")
    }

    /// With a config file.
    pub(crate) fn with_config(config: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("seawall.toml"), config).expect("the config file is written");
        Self::with_config_in(&Arc::new(folder))
    }

    /// With the config file that is in this folder.
    pub(crate) fn with_config_in(folder: &Arc<TempDir>) -> Self {
        Self::start(Arc::clone(folder), &["--config", "seawall.toml"], "admin on http://")
    }

    /// Starts the program and reads its banner up to `last_words`.
    fn start(folder: Arc<TempDir>, arguments: &[&str], last_words: &str) -> Self {
        let mut child = program(&folder)
            .args(["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let stderr = BufReader::new(child.stderr.take().expect("standard error is piped"));
        let (sender, lines) = channel();
        // Reads to the end, so that the program never waits for its reader.
        std::thread::spawn(move || stderr.lines().map_while(Result::ok).for_each(|line| drop(sender.send(line))));
        let mut seen: Vec<String> = Vec::new();
        while !seen.last().is_some_and(|line| line.contains(last_words)) {
            seen.push(lines.recv_timeout(PATIENCE).unwrap_or_else(|error| panic!("no banner ({error}): {seen:#?}")));
        }
        let find = |words| seen.iter().find_map(|line| address_after(line, words));
        let found = |words| find(words).unwrap_or_else(|| panic!("no address after {words:?}: {seen:#?}"));
        Self {
            listen: found("serves on http://"),
            admin: found("admin on http://"),
            fleet: find("POST http://"),
            child,
            lines,
            first_lines: seen,
            folder,
        }
    }

    /// Where the demo's fleet answers.
    pub(crate) fn fleet(&self) -> SocketAddr {
        self.fleet.expect("the demo has a fleet")
    }

    pub(crate) fn chat(&self, key: &str, body: &str) -> Answer {
        post(self.listen, "/v1/chat/completions", &format!("Authorization: Bearer {key}\r\n"), body)
    }

    /// Switches faults of the demo's fleet.
    pub(crate) fn fault(&self, body: &str) {
        let token = std::fs::read_to_string(self.folder.path().join("seawall-data/admin-token")).expect("the token");
        let header = format!("Authorization: Bearer {}\r\n", token.trim());
        let answer = post(self.fleet(), "/fleet/faults", &header, body);
        assert_eq!(answer.status, 200, "{}", answer.body);
    }

    /// The number of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(sent.expect("kill runs").success());
    }

    /// Waits for a line on standard error that contains `words`.
    pub(crate) fn wait_for(&self, words: &str) {
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) if line.contains(words) => return,
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => panic!("no line with {words:?}"),
            }
        }
    }

    /// Waits for the end of the process.
    pub(crate) fn end(mut self) -> ExitStatus {
        // Its standard error closes when it ends: nothing is polled.
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("the process does not end"),
            }
        }
        self.child.wait().expect("the process can be waited for")
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        // After `end` there is nothing left to kill.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn address_after(line: &str, words: &str) -> Option<SocketAddr> {
    let rest = &line[line.find(words)? + words.len()..];
    let end = rest.find(|next: char| next == '/' || next.is_whitespace()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// An answer, read to its end.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

pub(crate) fn get(address: SocketAddr, path: &str) -> Answer {
    exchange(address, &format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"))
}

pub(crate) fn post(address: SocketAddr, path: &str, headers: &str, body: &str) -> Answer {
    exchange(address, &request(address, path, headers, body))
}

pub(crate) fn request(address: SocketAddr, path: &str, headers: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n{body}",
        body.len()
    )
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream
}

fn exchange(address: SocketAddr, request: &str) -> Answer {
    let mut stream = connect(address);
    stream.write_all(request.as_bytes()).expect("the request is sent");
    let mut raw = Vec::new();
    stream.read_to_end(&mut raw).expect("an answer");
    parse(&raw)
}

/// Takes an answer apart; a chunked body is put together.
pub(crate) fn parse(raw: &[u8]) -> Answer {
    let text = String::from_utf8(raw.to_vec()).expect("text");
    let (head, rest) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    let chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    let body = if chunked { unchunk(rest) } else { rest.to_owned() };
    Answer { status, head: head.to_owned(), body }
}

fn unchunk(mut rest: &str) -> String {
    let mut body = String::new();
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).expect("a chunk's size");
        if size == 0 {
            return body;
        }
        body.push_str(&after[..size]);
        rest = &after[size + 2..];
    }
    panic!("the last chunk is missing after {body:?}")
}
