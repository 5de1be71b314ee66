//! What the fleet has seen: requests, outcomes, and attempts by request id and by fingerprint.

use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};

/// Distinct keys of a table; attempts of further keys are counted as untracked.
const MAX_KEYS: usize = 200_000;
/// Rows of a table that are told, those with the most attempts.
const MAX_ROWS: usize = 50;
/// Bytes of a request id that are kept.
const MAX_ID_BYTES: usize = 128;

/// Attempts by a key.
#[derive(Debug, Default)]
struct Table {
    attempts: HashMap<String, u64>,
    tracked: u64,
    untracked: u64,
    most: u64,
}

impl Table {
    fn count(&mut self, key: String) {
        if self.attempts.len() >= MAX_KEYS && !self.attempts.contains_key(&key) {
            self.untracked += 1;
            return;
        }
        let attempts = self.attempts.entry(key).or_insert(0);
        *attempts += 1;
        self.tracked += 1;
        self.most = self.most.max(*attempts);
    }

    fn json(&self) -> Value {
        let distinct = self.attempts.len();
        let mut rows: Vec<(&String, &u64)> = self.attempts.iter().collect();
        rows.sort_by(|one, other| other.1.cmp(one.1).then_with(|| one.0.cmp(other.0)));
        rows.truncate(MAX_ROWS);
        let rows: Vec<Value> =
            rows.into_iter().map(|(key, attempts)| json!({"key": key, "attempts": attempts})).collect();
        let mean = ratio(self.tracked, distinct as u64);
        json!({
            "distinct": distinct,
            "attempts": self.tracked,
            "max_attempts": self.most,
            "mean_attempts": mean,
            "untracked_attempts": self.untracked,
            "rows": rows,
        })
    }
}

/// A ratio for people, to six places; zero over nothing.
fn ratio(part: u64, whole: u64) -> f64 {
    let millionths = part.saturating_mul(1_000_000).checked_div(whole).unwrap_or(0);
    // Counts of requests of one run are far below 2^52 millionths.
    #[expect(clippy::cast_precision_loss, reason = "the mean of attempts needs no more than six places")]
    let ratio = millionths as f64 / 1e6;
    ratio
}

/// Attempts over all servers.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    by_request_id: Table,
    by_fingerprint: Table,
}

impl Attempts {
    pub(super) fn count(&mut self, request_id: Option<&str>, fingerprint: u64) {
        if let Some(id) = request_id {
            let end = id.floor_char_boundary(MAX_ID_BYTES);
            self.by_request_id.count(id[..end].to_owned());
        }
        self.by_fingerprint.count(format!("{fingerprint:016x}"));
    }

    /// Requests with different content, and the most attempts of one of them.
    pub(super) fn distinct_and_most(&self) -> (u64, u64) {
        (self.by_fingerprint.attempts.len() as u64, self.by_fingerprint.most)
    }

    pub(super) fn json(&self) -> Value {
        json!({"by_request_id": self.by_request_id.json(), "by_fingerprint": self.by_fingerprint.json()})
    }
}

/// What one server has seen.
#[derive(Clone, Debug, Default)]
pub(super) struct Counters {
    pub(super) requests: u64,
    /// By status; `reset` where the connection was reset before the headers.
    pub(super) by_status: BTreeMap<String, u64>,
    pub(super) disconnects: u64,
    pub(super) streams: u64,
    pub(super) prompt_tokens: u64,
    pub(super) generation_tokens: u64,
}

impl Counters {
    /// Adds another server's counts.
    pub(super) fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.disconnects += other.disconnects;
        self.streams += other.streams;
        self.prompt_tokens += other.prompt_tokens;
        self.generation_tokens += other.generation_tokens;
        for (status, count) in &other.by_status {
            *self.by_status.entry(status.clone()).or_insert(0) += count;
        }
    }

    pub(super) fn json(&self, running: u64, waiting: u64) -> Value {
        json!({
            "requests": self.requests,
            "by_status": self.by_status,
            "disconnects": self.disconnects,
            "streams": self.streams,
            "prompt_tokens": self.prompt_tokens,
            "generation_tokens": self.generation_tokens,
            "running": running,
            "waiting": waiting,
        })
    }
}
