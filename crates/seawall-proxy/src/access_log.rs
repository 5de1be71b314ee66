//! One JSON line a request, written by a thread of its own from a bounded queue.
//!
//! A sink that stalls must not stall requests: at the bound lines are dropped and counted, and the counter is a metric.
//! The writer wakes for a batch, not for a line: at high rates waking a thread costs more than writing what it wrote.
//! No secret can get in here: the record holds no header, no key and no body.

use crate::clock::unix_time;
use crate::record::{Finished, RequestName};
use seawall_config::AccessLog as Sink;
use seawall_core::engine::Verdict;
use seawall_core::settings::Settings;
use serde::Serialize;
use std::fs::OpenOptions;
use std::io::{BufWriter, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Lines that may wait for the sink.
const QUEUE_LINES: usize = 8_192;
/// After the first line the writer waits this long for more.
const GATHER: Duration = Duration::from_millis(50);
/// What is written to the sink at once.
const WRITE_BYTES: usize = 64 * 1024;

/// The writing end.
#[derive(Debug)]
pub struct AccessLog {
    queue: Option<Arc<Queue>>,
    dropped: AtomicU64,
    settings: Arc<Settings>,
    thread: Option<JoinHandle<()>>,
}

/// Lines on their way to the writer.
#[derive(Debug, Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    lines: Vec<Line>,
    closed: bool,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a line in; `false` at the bound.
    fn push(&self, line: Line) -> bool {
        let mut state = self.lock();
        if state.lines.len() >= QUEUE_LINES {
            return false;
        }
        state.lines.push(line);
        let first = state.lines.len() == 1;
        drop(state);
        if first {
            self.changed.notify_one();
        }
        true
    }

    fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_one();
    }

    /// Swaps the next batch into `batch`; `false` once the queue is closed and empty.
    fn next(&self, batch: &mut Vec<Line>) -> bool {
        let idle = |state: &mut State| state.lines.is_empty() && !state.closed;
        let state = self.changed.wait_while(self.lock(), idle).unwrap_or_else(PoisonError::into_inner);
        let gathering = |state: &mut State| !state.closed && state.lines.len() < QUEUE_LINES;
        let gathered = self.changed.wait_timeout_while(state, GATHER, gathering);
        let (mut state, _) = gathered.unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut state.lines, batch);
        !batch.is_empty()
    }
}

#[derive(Debug)]
struct Line {
    finished: Finished,
    unix_millis: u64,
}

impl AccessLog {
    /// Starts the writer for `sink`.
    pub fn start(sink: &Sink, settings: Arc<Settings>) -> std::io::Result<Self> {
        let writer: Option<Box<dyn Write + Send>> = match sink {
            Sink::Off => None,
            Sink::Stdout => Some(Box::new(std::io::stdout())),
            Sink::File(path) => Some(Box::new(OpenOptions::new().create(true).append(true).open(path)?)),
        };
        let mut log = Self { queue: None, dropped: AtomicU64::new(0), settings, thread: None };
        if let Some(writer) = writer {
            let queue = Arc::new(Queue::default());
            let (settings, lines) = (Arc::clone(&log.settings), Arc::clone(&queue));
            let thread = std::thread::Builder::new().name("access-log".into());
            log.thread = Some(
                thread.spawn(move || write_lines(&lines, BufWriter::with_capacity(WRITE_BYTES, writer), &settings))?,
            );
            log.queue = Some(queue);
        }
        Ok(log)
    }

    /// Queues the line of a finished request, or counts it as dropped.
    pub fn write(&self, finished: Finished) {
        let Some(queue) = &self.queue else { return };
        let unix_millis = u64::try_from(unix_time().as_millis()).unwrap_or(u64::MAX);
        if !queue.push(Line { finished, unix_millis }) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Lines dropped because the sink was too slow.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

impl Drop for AccessLog {
    /// Writes what is queued.
    fn drop(&mut self) {
        if let Some(queue) = self.queue.take() {
            queue.close();
        }
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

fn write_lines(queue: &Queue, mut writer: impl Write, settings: &Settings) {
    let mut batch = Vec::new();
    while queue.next(&mut batch) {
        for line in batch.drain(..) {
            // A sink that is gone (a closed pipe) loses lines; requests go on.
            drop(serde_json::to_writer(&mut writer, &Shown::new(&line, settings)));
            drop(writer.write_all(b"\n"));
        }
        drop(writer.flush());
    }
}

/// The fields of a line, in order.
#[derive(Serialize)]
struct Shown<'a> {
    time: String,
    request_id: &'a str,
    outcome: &'static str,
    status: u16,
    tenant: Option<&'a str>,
    model: Option<&'a str>,
    endpoint: &'static str,
    stream: bool,
    attempts: u32,
    deployment: Option<&'a str>,
    /// The model that was tried last, where it is not the one that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    fallback_model: Option<&'a str>,
    region: Option<&'a str>,
    queued_ms: f64,
    first_byte_ms: Option<f64>,
    duration_ms: f64,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    /// `true` where the upstream reported no usage, or the answer broke off, and the output was counted in pieces.
    tokens_estimated: bool,
    /// What all its attempts have cost; of an answer whose client left, until then.
    work_units: u64,
    /// `true` where any part of that was not told.
    work_is_estimated: bool,
    request_bytes: u64,
    response_bytes: u64,
    /// The request whose answer this one got, too; attempts and tokens are those of that answer, and its work is that
    /// one's.
    #[serde(skip_serializing_if = "Option::is_none")]
    joined: Option<&'a str>,
    /// What enforcing would have done first, where the request was only observed.
    #[serde(skip_serializing_if = "Option::is_none")]
    observed: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_retry: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream_status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream_error: Option<&'a str>,
}

impl<'a> Shown<'a> {
    fn new(line: &'a Line, settings: &'a Settings) -> Self {
        let Finished { record, outcome, ended } = &line.finished;
        let milliseconds = |span: Duration| (span.as_secs_f64() * 1e6).round() / 1e3;
        let deployment = record.deployment.map(|id| &settings.deployments[id.index()]);
        let (tally, cost) = (record.tally, record.cost);
        Self {
            time: timestamp(line.unix_millis),
            request_id: record.id.as_str(),
            outcome: outcome.label(),
            status: record.status,
            tenant: record.tenant.map(|id| settings.tenants[id.index()].name.as_str()),
            model: record.model.as_deref(),
            endpoint: record.endpoint,
            stream: record.stream,
            attempts: record.attempts,
            deployment: deployment.map(|deployment| deployment.name.as_str()),
            fallback_model: record.fallback(settings),
            region: deployment.map(|deployment| deployment.region.as_str()),
            queued_ms: milliseconds(record.queued),
            first_byte_ms: record.first_byte.map(|at| milliseconds(at.since(record.arrived))),
            duration_ms: milliseconds(ended.since(record.arrived)),
            input_tokens: tally.usage.map(|usage| usage.input_tokens),
            output_tokens: tally.output_tokens(),
            tokens_estimated: tally.is_estimated(),
            work_units: cost.work.units(),
            work_is_estimated: cost.is_estimated,
            request_bytes: record.request_bytes,
            response_bytes: record.response_bytes,
            joined: record.joined.as_ref().map(RequestName::as_str),
            observed: record.observed.map(Verdict::label),
            client_retry: record.client_retry,
            upstream_status: record.upstream_status,
            upstream_error: record.upstream_error.as_deref(),
        }
    }
}

/// RFC 3339 in UTC, to the millisecond.
fn timestamp(unix_millis: u64) -> String {
    let millis = i64::try_from(unix_millis).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(millis).map_or_else(|_| String::new(), |time| format!("{time:.3}"))
}
