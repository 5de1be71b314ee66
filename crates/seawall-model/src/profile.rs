//! How measured clients retry: one definition in data for each, and one small interpreter for all of them.
//!
//! A [`Profile`] tells which answers a client retries, how long it waits, which wait headers it reads and with which
//! quirks, and what it says about itself in its requests. A [`Call`] is one call of a user through such a client: it
//! is told each [`Answer`] and says whether the client comes again and when. The load generator sends what a call says
//! on real sockets; the simulator does the same in virtual time.
//!
//! **Source.** The definitions are measurements of the published clients against a fake server (versions in
//! [`Profile::version`]); the tests hold the table of attempts by answer and the exact waits.
//!
//! **Edges.** A client made of two layers (an SDK inside a retrying caller) is two [`Layer`]s: when the inner one gives
//! up the outer one decides, and its next try starts the inner one anew. No profile retries once output has reached
//! its user, so an answer that broke after its first output is not given to a call at all. Not modelled: the LiteLLM
//! Router sleeps once more after its last attempt before it gives up; LangChain JS reads a few more phrases.
//! Time is whole microseconds; nothing here reads a clock or holds a random state of its own.

mod clients;
mod header;
mod layer;
#[cfg(test)]
mod tests;

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;
pub use layer::{Backoff, Faults, Forms, Layer, OnExcess, OnZero, QuotaStop, Statuses, WaitReading};
pub use rand_core::Rng;

/// What an attempt came to: a status, or a fault before the answer was whole.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// The response's status.
    Status(u16),
    /// The connection was refused, or could not be made.
    Refused,
    /// The connection ended before the answer was whole, and before any output.
    Reset,
    /// The client's own time limit passed without an answer.
    ReadTimeout,
    /// Status 200, and a stream whose first event was an error.
    FirstEventError,
}

/// One answer as a client sees it. [`Answer::new`] gives one without headers or error body.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// Status or fault.
    pub outcome: Outcome,
    /// Value of `retry-after`.
    pub retry_after: Option<&'a str>,
    /// Value of `retry-after-ms`.
    pub retry_after_ms: Option<&'a str>,
    /// Value of `x-ms-retry-after-ms`.
    pub x_ms_retry_after_ms: Option<&'a str>,
    /// Value of `x-should-retry`.
    pub should_retry: Option<&'a str>,
    /// `error.type` of the body.
    pub error_type: Option<&'a str>,
    /// `error.code` of the body.
    pub error_code: Option<&'a str>,
    /// `error.message` of the body.
    pub error_message: Option<&'a str>,
    /// Whether the body was JSON.
    pub json_body: bool,
    /// Since the call began.
    pub elapsed: Duration,
    /// Seconds since 1970, to read a date in `retry-after`.
    pub unix_seconds: u64,
}

impl Answer<'_> {
    /// An answer with a JSON body that names no error, without headers, at the call's beginning and the epoch's.
    pub const fn new(outcome: Outcome) -> Self {
        Self {
            outcome,
            retry_after: None,
            retry_after_ms: None,
            x_ms_retry_after_ms: None,
            should_retry: None,
            error_type: None,
            error_code: None,
            error_message: None,
            json_body: true,
            elapsed: Duration::ZERO,
            unix_seconds: 0,
        }
    }
}

/// What the client does after an answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Decision {
    /// It gives up, or has what it wanted.
    Stop,
    /// It comes again.
    RetryAfter {
        /// How long it waits first.
        wait: Duration,
        /// Whether the answer's own words (a wait header or message) gave the wait, rather than the client's backoff.
        told: bool,
    },
}

/// What a client says about itself in its requests.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Identity {
    /// `user-agent`, if it sends one.
    pub user_agent: Option<&'static str>,
    /// How it counts in `x-stainless-retry-count`.
    pub retry_count: RetryCount,
    /// Whether it sends the same `x-ms-client-request-id` on every attempt.
    pub client_request_id: bool,
    /// `x-stainless-read-timeout`, in seconds.
    pub read_timeout_header: Option<&'static str>,
    /// `x-stainless-timeout`, in seconds.
    pub timeout_header: Option<&'static str>,
}

/// How a client counts its retries in `x-stainless-retry-count`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RetryCount {
    /// The header is not sent.
    Absent,
    /// 0, 1, 2..., from 0 again when an outer layer starts the inner one anew.
    Counts,
    /// Always 0: the retries are made above the SDK.
    AlwaysZero,
}

/// A client's way to retry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Profile {
    /// Name on the command line and in scenarios.
    pub name: &'static str,
    /// What was measured.
    pub version: &'static str,
    /// The layer next to the wire.
    pub inner: Layer,
    /// The layer around it.
    pub outer: Option<Layer>,
    /// What it tells about itself.
    pub identity: Identity,
    /// Its time limit for an attempt (Python: between bytes; Node: to the headers), if it has one.
    pub timeout: Option<Duration>,
}

impl Profile {
    /// Every profile, in the order of the reference.
    pub const ALL: &'static [Self] = clients::ALL;

    /// The profile of that name.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        Self::ALL.iter().find(|profile| profile.name == name)
    }

    /// A caller that repeats a failed call `retries` times at once. [`Profile::ALL`] holds the one with 3.
    pub const fn immediate(retries: u16) -> Self {
        clients::immediate(retries)
    }

    /// Begins a call. Its first attempt is attempt 0.
    pub const fn call(&self) -> Call<'_> {
        Call { profile: self, sent: 0, inner: 0, outer: 0 }
    }

    /// The largest number of attempts for one call.
    pub fn max_attempts(&self) -> u32 {
        u32::from(self.inner.attempts) * self.outer.map_or(1, |outer| u32::from(outer.attempts))
    }
}

/// One call of a user through a client: where it stands in its layers.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    profile: &'a Profile,
    sent: u32,
    inner: u16,
    outer: u16,
}

impl Call<'_> {
    /// Number of retries so far, 0 during the first attempt.
    pub const fn retries(&self) -> u32 {
        self.sent
    }

    /// The number that the client's headers give the current attempt, from 1 on; 0: they do not tell that it may be a
    /// repeat. A client whose counter stands still, or that has only an id for all its attempts, calls each the first.
    pub const fn told_attempt(&self) -> u16 {
        let identity = &self.profile.identity;
        match identity.retry_count {
            RetryCount::Absent if identity.client_request_id => 1,
            RetryCount::Absent => 0,
            RetryCount::Counts => self.inner.saturating_add(1),
            RetryCount::AlwaysZero => 1,
        }
    }

    /// The headers by which the client makes itself known on the current attempt; `request_id` is the call's own id.
    pub fn request_headers(&self, request_id: &str) -> Vec<(&'static str, String)> {
        let identity = &self.profile.identity;
        let mut headers = Vec::new();
        if let Some(agent) = identity.user_agent {
            headers.push(("user-agent", agent.to_string()));
        }
        match identity.retry_count {
            RetryCount::Absent => {}
            RetryCount::Counts => headers.push(("x-stainless-retry-count", self.inner.to_string())),
            RetryCount::AlwaysZero => headers.push(("x-stainless-retry-count", "0".to_string())),
        }
        if identity.client_request_id {
            headers.push(("x-ms-client-request-id", request_id.to_string()));
        }
        if let Some(seconds) = identity.read_timeout_header {
            headers.push(("x-stainless-read-timeout", seconds.to_string()));
        }
        if let Some(seconds) = identity.timeout_header {
            headers.push(("x-stainless-timeout", seconds.to_string()));
        }
        headers
    }

    /// Takes the answer of the current attempt; on [`Decision::RetryAfter`] the call stands at its next attempt.
    /// A status below 400 is a success, and ends the call.
    #[must_use = "the call has already moved to its next attempt"]
    pub fn next(&mut self, answer: &Answer<'_>, random: &mut impl Rng) -> Decision {
        if matches!(answer.outcome, Outcome::Status(status) if status < 400) {
            return Decision::Stop;
        }
        let inner = self.profile.inner.next(self.inner, answer, random);
        if inner != Decision::Stop {
            self.inner += 1;
            self.sent += 1;
            return inner;
        }
        let Some(outer) = &self.profile.outer else {
            return Decision::Stop;
        };
        let decision = outer.next(self.outer, answer, random);
        if decision != Decision::Stop {
            self.inner = 0;
            self.outer += 1;
            self.sent += 1;
        }
        decision
    }
}
