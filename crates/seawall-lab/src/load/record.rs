//! What one call came to, as the tally takes it.

use serde::Serialize;
use std::time::Duration;

/// Gaps kept for one attempt; further ones are only counted.
pub(super) const MAX_GAPS: usize = 65_536;

/// Why a call failed.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// A status that the client did not retry any more.
    Status,
    /// No connection.
    Refused,
    /// The connection ended before the answer was whole.
    Reset,
    /// Silence for longer than the attempt's time limit.
    ReadTimeout,
    /// The caller's patience ended.
    Patience,
    /// A stream whose first event was an error.
    FirstEventError,
    /// A stream with an error event after others.
    StreamError,
    /// A stream that ended cleanly but never said that it is complete. SDKs take such a torso for a success.
    StreamWithoutDone,
    /// A stream whose connection ended in the middle.
    StreamBroken,
    /// A stream that fell silent.
    StreamSilent,
    /// Status 200 with an error for a body.
    ErrorInSuccess,
}

/// How a call ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Ending {
    /// With a whole answer.
    Success,
    /// Without one.
    Failure {
        /// Why.
        kind: FailureKind,
        /// The last answer's status, if there was one.
        status: Option<u16>,
        /// The error's code, or else its type.
        code: Option<String>,
    },
    /// The run was cancelled.
    Cancelled,
}

/// A wait between two attempts that the client sat out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    pub(super) duration: Duration,
    /// Whether the answer stated it.
    pub(super) told: bool,
}

/// One call.
#[derive(Debug)]
pub(super) struct CallRecord {
    /// The number of its arrival.
    pub(super) number: u64,
    /// When it should have been sent, since the run's start.
    pub(super) scheduled: Duration,
    pub(super) warm_up: bool,
    pub(super) tenant: usize,
    pub(super) profile: usize,
    pub(super) stream: bool,
    pub(super) ending: Ending,
    /// From the scheduled time to the end.
    pub(super) latency: Duration,
    /// From the scheduled time to the start.
    pub(super) lag: Duration,
    /// Attempts begun.
    pub(super) attempts: u32,
    /// Status or fault of each attempt that came to an end.
    pub(super) answers: Vec<AnswerLabel>,
    pub(super) waits: Vec<Wait>,
    /// From the scheduled time to the first output of a stream that succeeded.
    pub(super) first_output: Option<Duration>,
    pub(super) gaps_micros: Vec<u32>,
    pub(super) gaps_not_kept: u64,
    pub(super) bytes: u64,
}

impl CallRecord {
    /// What whoever follows the run call by call is told.
    pub(super) fn told(&self) -> EndedCall<'_> {
        let Self { number, scheduled, ending, latency, lag, attempts, .. } = self;
        EndedCall { number: *number, scheduled: *scheduled, ending, latency: *latency, lag: *lag, attempts: *attempts }
    }
}

/// One call that has ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EndedCall<'a> {
    /// The number of its arrival, from 0.
    pub number: u64,
    /// When it should have been sent, since the run's start.
    pub scheduled: Duration,
    /// How it ended.
    pub ending: &'a Ending,
    /// From `scheduled` to its end.
    pub latency: Duration,
    /// From `scheduled` to its start.
    pub lag: Duration,
    /// Attempts begun.
    pub attempts: u32,
}

/// What an attempt is counted as.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum AnswerLabel {
    Status(u16),
    Fault(&'static str),
}
