//! What the real clients do in each situation of the wire contract that can happen: how often they come, how long they
//! stay away, and what they tell their callers.
//!
//! Not here: rates, quotas, priorities and the account store, which have no cause yet; a slow upload, which none of
//! these clients makes; a twin that is joined, which is tested where a client times out.

use crate::process::{Serve, connect, post, request};
use crate::sdks::DEMO_KEY_SHA256;
use crate::upstream::Upstream;
use crate::{node, python};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// A client, by its place in the last column of the tables.
#[derive(Clone, Copy)]
enum Sdk {
    OpenAiPython,
    OpenAiNode,
    AnthropicPython,
}

impl Sdk {
    const fn dialect(self) -> &'static str {
        match self {
            Self::OpenAiPython | Self::OpenAiNode => "openai",
            Self::AnthropicPython => "anthropic",
        }
    }

    /// It meets these situations, all at once.
    fn meeting(self, listen: SocketAddr, situations: &[&str]) -> Command {
        let host = listen.to_string();
        if matches!(self, Self::OpenAiNode) {
            let mut client = node("contract.mjs");
            client.env("SEAWALL", host).env("SITUATIONS", situations.join(" "));
            return client;
        }
        let mut client = python("contract.py");
        client.args([&host, self.dialect()]).args(situations);
        client
    }

    /// A request of this model about this, as its API has it.
    fn request(self, model: &str, text: &str) -> (&'static str, &'static str, String) {
        let body = format!(r#"{{"model":"{model}","max_tokens":9,"messages":[{{"role":"user","content":"{text}"}}]}}"#);
        match self {
            Self::OpenAiPython | Self::OpenAiNode => {
                ("/v1/chat/completions", "authorization: Bearer demo-key\r\n", body)
            }
            Self::AnthropicPython => ("/v1/messages", "x-api-key: demo-key\r\nanthropic-version: 2023-06-01\r\n", body),
        }
    }
}

/// The situation, its outcome, the form of each answer, the attempts, the least seconds between an answer and the next
/// attempt, and the error that the callers of the three clients see.
type Row = (&'static str, &'static str, &'static str, usize, f64, [&'static str; 3]);

const SAME_RATE_LIMIT: [&str; 3] = ["RateLimitError"; 3];
const SAME_BAD_REQUEST: [&str; 3] = ["BadRequestError"; 3];
const FAILED: [&str; 3] = ["InternalServerError", "InternalServerError", "ServiceUnavailableError"];

/// Waits of 30 s and more stop every client by the header that goes with them; 400, 401, 404 and 413 by themselves.
const TABLE: [Row; 20] = [
    ("busy", "capacity_exhausted", "wait", 3, 1.0, SAME_RATE_LIMIT),
    ("line", "capacity_exhausted", "wait", 3, 0.501, SAME_RATE_LIMIT),
    ("full", "capacity_exhausted", "wait-stop", 1, 0.0, SAME_RATE_LIMIT),
    ("dead", "no_healthy_deployment", "retry-soon", 3, 2.0, FAILED),
    ("recovers", "served", "answer", 1, 0.0, [""; 3]),
    ("fails", "upstream_error", "retry-soon", 2, 2.0, SAME_RATE_LIMIT),
    ("silent", "upstream_timeout", "retry-soon", 2, 2.0, SAME_RATE_LIMIT),
    ("fails-twice", "upstream_error_retried", "wait-stop", 1, 0.0, SAME_RATE_LIMIT),
    ("storm", "upstream_error", "wait-stop", 1, 0.0, SAME_RATE_LIMIT),
    ("locked", "upstream_auth", "retry-soon", 2, 2.0, SAME_RATE_LIMIT),
    ("twin", "duplicate_in_flight", "wait", 3, 0.501, SAME_RATE_LIMIT),
    ("deadline", "deadline_unmeetable", "wait-stop", 1, 0.0, SAME_RATE_LIMIT),
    ("again", "retry_budget_exhausted", "wait-stop", 1, 0.0, SAME_RATE_LIMIT),
    ("too-long", "client_error", "stop-hard", 1, 0.0, SAME_BAD_REQUEST),
    ("unreadable", "client_error", "stop-hard", 1, 0.0, SAME_BAD_REQUEST),
    ("unknown", "model_not_found", "stop-hard", 1, 0.0, ["NotFoundError"; 3]),
    ("too-large", "too_large", "stop-hard", 1, 0.0, ["APIStatusError", "APIError", "ContentTooLargeError"]),
    ("wrong-key", "unauthenticated", "auth", 1, 0.0, ["AuthenticationError"; 3]),
    ("error-first", "upstream_error", "retry-soon", 2, 2.0, SAME_RATE_LIMIT),
    ("breaks", "streaming", "answer", 1, 0.0, ["APIError", "APIError", "APIStatusError"]),
];
/// How the second answer differs, where the one attempt that was paid for failed as well: nobody comes a third time.
const AT_LAST: [(&str, &str, &str); 4] = [
    ("fails", "upstream_error_retried", "wait-stop"),
    ("silent", "upstream_error_retried", "wait-stop"),
    ("locked", "upstream_auth", "wait-stop"),
    ("error-first", "upstream_error_retried", "wait-stop"),
];
/// When nobody has a place in the return calendar any more.
const CROWDED: Row = ("crowded", "capacity_exhausted", "wait-stop", 1, 0.0, SAME_RATE_LIMIT);
/// While the process goes away: then it is gone, and behind one address there may be another.
const DRAINING: Row = ("draining", "draining", "leave", 3, 0.05, ["APIConnectionError"; 3]);
/// What differs with `refusal_wording = "by-client"` and `overload_status = 503`.
const WORDED: [Row; 3] = [
    ("busy", "capacity_exhausted", "wait", 3, 1.0, FAILED),
    ("deadline", "deadline_unmeetable", "stop", 1, 0.0, SAME_RATE_LIMIT),
    ("again", "retry_budget_exhausted", "stop", 1, 0.0, SAME_RATE_LIMIT),
];

/// A config with a model for each situation that an upstream makes.
fn config(upstream: &Upstream, dialect: &str, server: &str) -> String {
    let mut text = format!("[server]\nmax_body = \"64KiB\"\ndrain_limit = \"300ms\"\n{server}");
    for (model, deployments, settings) in [
        ("busy", 1, ""),
        ("line", 1, "queue = { max_waiting = 0 }"),
        ("crowded", 1, "queue = { max_waiting = 0 }"),
        ("full", 1, ""),
        ("dead", 1, ""),
        ("recovers", 2, ""),
        ("fails", 1, ""),
        ("silent", 1, "timeouts = { first_byte = \"300ms\" }"),
        ("fails-twice", 2, ""),
        ("again", 2, ""),
        ("storm", 2, "retry = { budget_percent = 0, floor_per_second = 0 }"),
        ("locked", 1, ""),
        ("twin", 1, ""),
        ("too-long", 1, ""),
        ("unreadable", 1, ""),
        ("error-first", 1, ""),
        ("breaks", 1, ""),
        ("patient", 1, ""),
    ] {
        let _ = writeln!(text, "[[models]]\nname = \"{model}\"\n{settings}");
        // Nobody can listen on port 1 without being root.
        let url = if model == "dead" { "127.0.0.1:1".to_owned() } else { upstream.address.to_string() };
        let capacity = if ["line", "crowded"].contains(&model) { "capacity = { provisioned = 1 }" } else { "" };
        for number in 0..deployments {
            let _ = writeln!(
                text,
                "[[models.deployments]]\nname = \"{model}-{number}\"\nurl = \"http://{url}\"\n\
                 dialect = \"{dialect}\"\n{capacity}"
            );
        }
    }
    text + &format!("[[tenants]]\nname = \"demo\"\nkeys = [{{ sha256 = \"{DEMO_KEY_SHA256}\" }}]\n")
}

/// What a client's script tells of each situation.
fn told(client: &mut Command) -> BTreeMap<String, Value> {
    let output = client.stderr(Stdio::piped()).output().expect("the client runs");
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{error}");
    let line = |text: &str| {
        let told: Value = serde_json::from_str(text).unwrap_or_else(|_| panic!("{out}\n{error}"));
        (told["situation"].as_str().expect("a name").to_owned(), told)
    };
    out.lines().map(line).collect()
}

/// The form that an answer has, and the wait that it tells in seconds.
fn form(answer: &Value) -> (&'static str, f64) {
    let header = |name: &str| answer["headers"][name].as_str();
    let number = |name: &str| header(name).map(|value| value.parse::<u32>().expect("a whole number"));
    let waits = ["retry-after", "retry-after-ms", "x-ms-retry-after-ms"].map(number);
    let wait = waits[1].map_or(0.0, |wait| f64::from(wait) / 1_000.0);
    let stops = header("x-should-retry").map(|value| value == "false");
    let form = match (answer["status"].as_u64(), waits, stops) {
        (Some(200), [None, None, None], None) => "answer",
        (Some(503), [Some(1), Some(50..=500), Some(_)], None) => "leave",
        (Some(503), [Some(_), Some(501..), Some(_)], None)
            if header("x-seawall-outcome") == Some("capacity_exhausted") =>
        {
            "wait"
        }
        (Some(503 | 504), [Some(2..=8), Some(_), Some(_)], None) => "retry-soon",
        (Some(429), [Some(1..=58), Some(501..), Some(_)], None) => "wait",
        (Some(429), [Some(30..=58), Some(_), Some(_)], Some(true)) => "wait-stop",
        (Some(429), [None, None, None], Some(true)) => "stop",
        (Some(400 | 404 | 413), [None, None, None], Some(true)) => "stop-hard",
        (Some(401), [None, None, None], None) => "auth",
        _ => panic!("a form that does not exist: {answer}"),
    };
    assert_eq!(waits[1], waits[2], "{answer}");
    assert!(form == "leave" || waits[0] == waits[1].map(|wait| wait.div_ceil(1_000)), "the waits agree: {answer}");
    (form, wait)
}

/// Node's timers may be a millisecond early.
const EARLY: f64 = 0.002;

/// Compares what a client did with the rows of these tables.
fn check(sdk: Sdk, found: &BTreeMap<String, Value>, rows: &[Row]) {
    for (situation, outcome, expected, attempts, least_gap, errors) in rows {
        let told = &found[*situation];
        let error = told["error"].as_str().unwrap_or_default();
        let attempts = u64::try_from(*attempts).ok();
        assert_eq!((told["attempts"].as_u64(), error), (attempts, errors[sdk as usize]), "{told:#}");
        let answers = told["answers"].as_array().expect("a list");
        assert!(!answers.is_empty(), "{told:#}");
        let at_last = AT_LAST.iter().find(|row| row.0 == *situation).map(|row| (row.2, Some(row.1)));
        for (index, answer) in answers.iter().enumerate() {
            let (form, wait) = form(answer);
            let first = (*expected, Some(*outcome));
            let expected = at_last.filter(|_| index + 1 == answers.len()).unwrap_or(first);
            assert_eq!((form, answer["headers"]["x-seawall-outcome"].as_str()), expected, "{told:#}");
            if let Some(gap) = answer["gap"].as_f64() {
                assert!(wait >= *least_gap && gap + EARLY >= wait, "{situation}: {gap} s after {answer}");
            }
        }
    }
    assert_eq!(found.len(), rows.len(), "{found:#?}");
}

/// Lets a client meet the situations of these rows, and compares what it did with them.
fn meet(sdk: Sdk, listen: SocketAddr, rows: &[Row]) -> BTreeMap<String, Value> {
    let situations: Vec<&str> = rows.iter().map(|row| row.0).collect();
    let found = told(&mut sdk.meeting(listen, &situations));
    check(sdk, &found, rows);
    found
}

/// A client that waits for an answer until it is dropped.
struct Waiting(Child);

impl Drop for Waiting {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A request under way, for as long as its connection is kept.
fn begin(sdk: Sdk, listen: SocketAddr, model: &str, text: &str) -> TcpStream {
    let (path, headers, body) = sdk.request(model, text);
    let mut stream = connect(listen);
    stream.write_all(request(listen, path, headers, &body).as_bytes()).expect("the request is sent");
    stream
}

/// Asks four times a second for what can be done once a second, until it is told to stop: then it is known that nobody
/// has a place in the return calendar.
fn crowd(sdk: Sdk, listen: SocketAddr, upstream: &Upstream, stop: &Receiver<()>) {
    let ask = |text: &str| {
        let (path, headers, body) = sdk.request("crowded", text);
        post(listen, path, headers, &body).status
    };
    assert_eq!(ask("served"), 200);
    let _taken = begin(sdk, listen, "crowded", "taken");
    upstream.wait_for("taken");
    let mut number = 0;
    while stop.recv_timeout(Duration::from_millis(250)) == Err(RecvTimeoutError::Timeout) {
        number += 1;
        assert_eq!(ask(&number.to_string()), 429);
    }
}

/// One client in all situations of one program, from its start to its end.
fn every_situation(sdk: Sdk) {
    let upstream = Upstream::start();
    let serve = Serve::with_config(&config(&upstream, sdk.dialect(), ""));
    let (listen, upstream) = (serve.listen, &upstream);
    std::thread::scope(|scope| {
        let (stop, stopped) = channel();
        let crowd = scope.spawn(move || crowd(sdk, listen, upstream, &stopped));
        meet_all(sdk, listen, upstream);
        meet(sdk, listen, &[CROWDED]);
        drop(stop);
        crowd.join().expect("the crowd is refused");
        let client = scope.spawn(move || meet(sdk, listen, &[DRAINING]));
        upstream.wait_for("draining");
        serve.signal("TERM");
        client.join().expect("the client goes elsewhere");
    });
    // It has cut a request off.
    assert_eq!(serve.end().code(), Some(3));
}

/// The situations that last.
fn meet_all(sdk: Sdk, listen: SocketAddr, upstream: &Upstream) {
    let _line = begin(sdk, listen, "line", "held");
    upstream.wait_for("held");
    let twin = sdk.meeting(listen, &["twin-first"]).stdout(Stdio::null()).spawn().expect("the client starts");
    let _twin = Waiting(twin);
    upstream.wait_for("twin");
    let found = meet(sdk, listen, &TABLE);
    // A client's mistake is told in the upstream's words; what has failed twice is not asked a third time.
    if sdk.dialect() == "openai" {
        assert_eq!(found["too-long"]["code"], "context_length_exceeded");
    }
    for (text, calls) in [("recovers", 2), ("fails-twice", 2), ("again", 2), ("storm", 1), ("fails", 2), ("twin", 1)] {
        assert_eq!(upstream.calls(text), calls, "{text}");
    }
}

#[test]
fn openai_python_in_every_situation() {
    every_situation(Sdk::OpenAiPython);
}

#[test]
fn openai_node_in_every_situation() {
    every_situation(Sdk::OpenAiNode);
}

#[test]
fn anthropic_python_in_every_situation() {
    every_situation(Sdk::AnthropicPython);
}

/// The settings that choose the wording and the status change neither attempts nor waits of these clients.
fn worded_by_client(sdk: Sdk) {
    let upstream = Upstream::start();
    let server = "refusal_wording = \"by-client\"\noverload_status = 503\n";
    let serve = Serve::with_config(&config(&upstream, sdk.dialect(), server));
    meet(sdk, serve.listen, &WORDED);
    crate::stop(serve);
}

#[test]
fn openai_python_is_told_in_its_own_words() {
    worded_by_client(Sdk::OpenAiPython);
}

#[test]
fn openai_node_is_told_in_its_own_words() {
    worded_by_client(Sdk::OpenAiNode);
}

#[test]
fn anthropic_python_is_told_in_its_own_words() {
    worded_by_client(Sdk::AnthropicPython);
}
