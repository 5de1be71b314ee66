//! What is remembered of one request, from its head to its end: the source of its log line and its metrics.

use crate::clock::unix_time;
use crate::flight::tally::Tally;
use seawall_core::cost::Cost;
use seawall_core::engine::Verdict;
use seawall_core::id::{DeploymentId, PoolId, TenantId};
use seawall_core::outcome::Outcome;
use seawall_core::settings::Settings;
use seawall_core::time::{Duration, Instant};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

/// One request, as far as it is known.
#[derive(Clone, Debug)]
pub struct Record {
    /// Our own id, told to the client as `x-request-id`.
    pub id: RequestName,
    /// When its head had been read.
    pub arrived: Instant,
    /// Whose it is, once the key is known.
    pub tenant: Option<TenantId>,
    /// What it asked for, once the body is understood.
    pub pool: Option<PoolId>,
    /// The model's name as the client wrote it, cut to a bound.
    pub model: Option<Arc<str>>,
    /// The endpoint's name.
    pub endpoint: &'static str,
    /// Whether a stream was asked for.
    pub stream: bool,
    /// Bytes of the body.
    pub request_bytes: u64,
    /// The client's own counter of its retries.
    pub client_retry: Option<u32>,
    /// The request whose flight it joined.
    pub joined: Option<RequestName>,
    /// Attempts made.
    pub attempts: u32,
    /// Where the last attempt went.
    pub deployment: Option<DeploymentId>,
    /// How long it waited for a deployment.
    pub queued: Duration,
    /// What enforcing would have done to it, where it was only observed.
    pub observed: Option<Verdict>,
    /// When the first byte of the answer went to the client.
    pub first_byte: Option<Instant>,
    /// Status told to the client.
    pub status: u16,
    /// The last upstream's status, where it answered.
    pub upstream_status: Option<u16>,
    /// The last upstream's own words on a failure, cut to a bound.
    pub upstream_error: Option<String>,
    /// Tokens of the answer, as far as they are known.
    pub tally: Tally,
    /// What its attempts have cost.
    pub cost: Cost,
    /// Bytes of the answer.
    pub response_bytes: u64,
}

/// The longest piece of an upstream's words that is kept for the log.
pub const UPSTREAM_WORDS_BYTES: usize = 1_024;

impl Record {
    /// A record of a request whose head was just read.
    pub fn new(id: RequestName, arrived: Instant) -> Self {
        Self {
            id,
            arrived,
            tenant: None,
            pool: None,
            model: None,
            endpoint: "unknown",
            stream: false,
            request_bytes: 0,
            client_retry: None,
            joined: None,
            attempts: 0,
            deployment: None,
            queued: Duration::ZERO,
            observed: None,
            first_byte: None,
            status: 0,
            upstream_status: None,
            upstream_error: None,
            tally: Tally::default(),
            cost: Cost::NONE,
            response_bytes: 0,
        }
    }

    /// The model that was tried last, where it is not the one that was asked for.
    pub fn fallback<'a>(&self, settings: &'a Settings) -> Option<&'a str> {
        self.fallback_at(self.deployment, settings)
    }

    /// The same, where this deployment was tried last.
    pub fn fallback_at<'a>(&self, deployment: Option<DeploymentId>, settings: &'a Settings) -> Option<&'a str> {
        let pool = settings.deployments[deployment?.index()].pool;
        (self.pool? != pool).then(|| settings.pools[pool.index()].name.as_str())
    }

    /// Keeps the upstream's own words, cut.
    pub fn keep_upstream_words(&mut self, words: &[u8]) {
        let cut = &words[..words.len().min(UPSTREAM_WORDS_BYTES)];
        self.upstream_error = Some(String::from_utf8_lossy(cut).into_owned());
    }
}

/// The name of a request, unique over restarts: `req_` and 32 hexadecimal digits of a version 7 UUID.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RequestName([u8; 36]);

impl RequestName {
    /// A fresh one. The random part is drawn once for the process and counted on from there: an id has to be unique,
    /// not secret, and a system call for each request would buy nothing.
    pub fn fresh() -> Self {
        static START: LazyLock<u128> = LazyLock::new(|| uuid::Uuid::new_v4().as_u128());
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let random = START.wrapping_add(u128::from(COUNT.fetch_add(1, Ordering::Relaxed))).to_be_bytes();
        let millis = u64::try_from(unix_time().as_millis()).unwrap_or(u64::MAX);
        let tail = random[6..].try_into().expect("ten of sixteen bytes");
        let name = uuid::Builder::from_unix_timestamp_millis(millis, tail).into_uuid();
        let mut text = *b"req_00000000000000000000000000000000";
        let mut digits = [0; uuid::fmt::Simple::LENGTH];
        name.as_simple().encode_lower(&mut digits);
        text[4..].copy_from_slice(&digits);
        Self(text)
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("hexadecimal digits are text")
    }
}

impl std::fmt::Debug for RequestName {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A finished request: what the log and the metrics are made from.
#[derive(Clone, Debug)]
pub struct Finished {
    /// What is known of it.
    pub record: Record,
    /// How it ended.
    pub outcome: Outcome,
    /// When.
    pub ended: Instant,
}
