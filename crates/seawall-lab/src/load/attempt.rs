//! One attempt on the wire: send, read to the end, say what it came to.

use super::answer::{ErrorFacts, Kept, StreamReader, error_in_success};
use super::clock;
use super::pool::{Pool, SendFault};
use super::record::{FailureKind, MAX_GAPS};
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use seawall_model::profile::Outcome;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// What an attempt came to.
#[derive(Debug)]
pub(super) enum Verdict {
    /// The caller has what it wanted.
    Success,
    /// A refusal or fault that the client's profile judges.
    Judge(Outcome),
    /// A fault after the answer had begun: no client repeats those.
    Final(FailureKind),
}

/// An attempt's story.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) verdict: Verdict,
    pub(super) status: Option<u16>,
    pub(super) headers: HeaderMap,
    pub(super) error: ErrorFacts,
    /// When the first output of a stream came.
    pub(super) first_output: Option<Instant>,
    /// Microseconds between chunks with events.
    pub(super) gaps_micros: Vec<u32>,
    pub(super) gaps_not_kept: u64,
    pub(super) is_stream: bool,
    pub(super) bytes: u64,
}

impl Attempt {
    fn faulted(outcome: Outcome) -> Self {
        Self {
            verdict: Verdict::Judge(outcome),
            status: None,
            headers: HeaderMap::new(),
            error: ErrorFacts { json: true, ..ErrorFacts::default() },
            first_output: None,
            gaps_micros: Vec::new(),
            gaps_not_kept: 0,
            is_stream: false,
            bytes: 0,
        }
    }
}

/// Waits for `step` at most as long as the client bears silence.
async fn within<T>(silence: Option<Duration>, step: impl Future<Output = T>) -> Option<T> {
    match silence {
        Some(limit) => timeout(limit, step).await.ok(),
        None => Some(step.await),
    }
}

/// Makes one attempt. `silence` is the longest time without a byte.
pub(super) async fn attempt(pool: &Arc<Pool>, request: Request<Full<Bytes>>, silence: Option<Duration>) -> Attempt {
    let (response, connection) = match within(silence, pool.send(request)).await {
        None | Some(Err(SendFault::ConnectTimeout)) => return Attempt::faulted(Outcome::ReadTimeout),
        Some(Err(SendFault::Refused)) => return Attempt::faulted(Outcome::Refused),
        Some(Err(SendFault::Reset)) => return Attempt::faulted(Outcome::Reset),
        Some(Ok(answered)) => answered,
    };
    let status = response.status();
    let is_stream = status.is_success()
        && response
            .headers()
            .get(http::header::CONTENT_TYPE)
            .is_some_and(|value| value.as_bytes().to_ascii_lowercase().starts_with(b"text/event-stream"));
    let mut attempt = Attempt::faulted(Outcome::Status(status.as_u16()));
    attempt.status = Some(status.as_u16());
    attempt.headers = response.headers().clone();
    attempt.is_stream = is_stream;
    let complete = if is_stream {
        read_stream(&mut attempt, response, silence).await
    } else {
        read_whole(&mut attempt, response, silence).await
    };
    if complete {
        pool.give_back(connection);
    }
    attempt
}

/// How the next piece of a body came.
enum Piece {
    Data(Bytes),
    End,
    Broken,
    Silent,
}

async fn next_piece(body: &mut Incoming, silence: Option<Duration>) -> Piece {
    loop {
        match within(silence, body.frame()).await {
            None => return Piece::Silent,
            Some(None) => return Piece::End,
            Some(Some(Err(_))) => return Piece::Broken,
            Some(Some(Ok(frame))) => {
                if let Ok(data) = frame.into_data() {
                    return Piece::Data(data);
                }
            }
        }
    }
}

/// Returns whether the body was read to its end.
async fn read_whole(attempt: &mut Attempt, response: Response<Incoming>, silence: Option<Duration>) -> bool {
    let success = response.status().is_success();
    let mut body = response.into_body();
    let mut kept = Kept::new();
    loop {
        match next_piece(&mut body, silence).await {
            Piece::Data(data) => {
                attempt.bytes += data.len() as u64;
                kept.add(&data);
            }
            Piece::End => break,
            Piece::Broken => {
                attempt.verdict = Verdict::Judge(Outcome::Reset);
                return false;
            }
            Piece::Silent => {
                attempt.verdict = Verdict::Judge(Outcome::ReadTimeout);
                return false;
            }
        }
    }
    if !success {
        attempt.error = ErrorFacts::of_body(&kept.bytes);
        // A redirect is no answer that any of these clients could use.
        if attempt.status.is_some_and(|status| status < 400) {
            attempt.verdict = Verdict::Final(FailureKind::Status);
        }
        return true;
    }
    attempt.verdict = match error_in_success(&kept.bytes).filter(|_| kept.whole) {
        None => Verdict::Success,
        Some(error) => {
            attempt.error = error;
            Verdict::Final(FailureKind::ErrorInSuccess)
        }
    };
    true
}

/// Returns whether the body was read to its end.
async fn read_stream(attempt: &mut Attempt, response: Response<Incoming>, silence: Option<Duration>) -> bool {
    let mut body = response.into_body();
    let mut reader = StreamReader::default();
    let mut last_events: Option<Instant> = None;
    let end = loop {
        let data = match next_piece(&mut body, silence).await {
            Piece::Data(data) => data,
            end => break end,
        };
        attempt.bytes += data.len() as u64;
        if !reader.feed(&data) {
            continue;
        }
        let now = clock::now();
        if let Some(last) = last_events.replace(now) {
            if attempt.gaps_micros.len() < MAX_GAPS {
                let micros = now.duration_since(last).as_micros();
                attempt.gaps_micros.push(u32::try_from(micros).unwrap_or(u32::MAX));
            } else {
                attempt.gaps_not_kept += 1;
            }
        }
        if reader.has_output && attempt.first_output.is_none() {
            attempt.first_output = Some(now);
        }
    };
    let complete = matches!(end, Piece::End);
    attempt.verdict = match (reader.error, end) {
        (Some((error, first)), _) => {
            attempt.error = error;
            if first { Verdict::Judge(Outcome::FirstEventError) } else { Verdict::Final(FailureKind::StreamError) }
        }
        // A break after the closing event loses nothing.
        (None, _) if reader.done => Verdict::Success,
        (None, Piece::End) => Verdict::Final(FailureKind::StreamWithoutDone),
        (None, Piece::Silent) => Verdict::Final(FailureKind::StreamSilent),
        (None, _) => Verdict::Final(FailureKind::StreamBroken),
    };
    complete
}
