//! Step 9, relay, on the upstream's side: an answer piece by piece as it comes, and how it ends.
//!
//! What ends a stream: its terminator (`[DONE]`, `response.completed`, `message_stop`), or the upstream's end of body
//! after a finish reason. Nothing is made up: where the upstream sends no `[DONE]` the client gets none.

use super::tally::Tally;
use super::work::Begun;
use crate::clock::Clock;
use crate::upstream::Upstream;
use crate::upstream::pool::Connection;
use bytes::Bytes;
use http_body::Body;
use hyper::body::Incoming;
use seawall_core::classify::AttemptEnd;
use seawall_core::outcome::Outcome;
use seawall_core::time::Instant;
use seawall_wire::sse::{SseScanner, StreamFacts};
use seawall_wire::usage::BodyTap;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Sleep, sleep_until};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// After the terminator the upstream's own end is awaited for so long; then the answer ends without it.
const LINGER: Duration = Duration::from_millis(250);

/// How an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It is complete.
    Complete,
    /// It broke off.
    Broke(Broke),
    /// There is none.
    Nothing,
}

/// Why an answer broke off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broke {
    /// The word for it in an error event.
    pub outcome: Outcome,
    /// What is told in it.
    pub message: &'static str,
    /// Whether it broke off between two events of a stream; `None`: it is no stream, and nothing can be told.
    pub at_boundary: Option<bool>,
}

/// What comes next.
#[derive(Debug)]
pub enum Step {
    /// A piece, as it came.
    Piece(Bytes),
    /// The end.
    End(AttemptEnd, Ending),
}

/// A running answer.
#[derive(Debug)]
pub struct Pump {
    held: VecDeque<Bytes>,
    source: Option<Source>,
    scanner: Option<SseScanner>,
    /// What watches an answer in one piece.
    tap: Option<BodyTap>,
    /// When the first piece of a stream's output came.
    first_output: Option<Instant>,
    /// The final facts of a stream that has ended.
    facts: StreamFacts,
    /// The terminator has passed: whatever follows is passed on until the linger time is over.
    has_ended: bool,
    idle: Duration,
    last_progress: Instant,
    deadline: Option<Instant>,
    timer: Pin<Box<Sleep>>,
    cut: Pin<Box<WaitForCancellationFutureOwned>>,
    length: Option<u64>,
    sent: u64,
    clock: Clock,
}

/// Where the bytes come from.
#[derive(Debug)]
struct Source {
    body: Incoming,
    /// Given back at a clean end, closed otherwise.
    connection: Connection,
    upstream: Arc<Upstream>,
    /// The keep-alive time that the upstream states.
    keep_alive: Option<Duration>,
}

impl Pump {
    /// Begins with what has been read. `cut`: the process goes away and waits no longer.
    pub fn new(begun: Begun, body: Incoming, connection: Connection, cut: CancellationToken, clock: Clock) -> Self {
        let Begun { answer, upstream, idle, deadline, .. } = begun;
        let now = clock.now();
        let first = deadline.map_or(now + idle, |deadline| deadline.min(now + idle));
        Self {
            timer: Box::pin(sleep_until(clock.to_tokio(first))),
            cut: Box::pin(cut.cancelled_owned()),
            length: answer.content_length(),
            held: answer.held,
            source: Some(Source { body, connection, upstream, keep_alive: answer.keep_alive }),
            tap: answer.scanner.is_none().then(BodyTap::new),
            first_output: answer.scanner.as_ref().filter(|scanner| scanner.facts().outputs > 0).map(|_| now),
            scanner: answer.scanner,
            facts: StreamFacts::default(),
            has_ended: false,
            idle,
            last_progress: now,
            deadline,
            sent: 0,
            clock,
        }
    }

    /// The next piece.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Step> {
        loop {
            if let Some(piece) = self.held.pop_front() {
                // The scanner has seen it already.
                self.note_end();
                return Poll::Ready(Step::Piece(self.count(piece)));
            }
            if self.length == Some(self.sent) {
                return Poll::Ready(self.complete(true));
            }
            if !self.has_ended && self.cut.as_mut().poll(context).is_ready() {
                let message = "The service is shutting down.";
                return Poll::Ready(self.fail(AttemptEnd::Truncated, Outcome::Draining, message));
            }
            let Some(source) = &mut self.source else { return Poll::Ready(self.complete(false)) };
            match Pin::new(&mut source.body).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => {
                    // Trailers end here: no client of these APIs reads them.
                    if let Ok(piece) = frame.into_data() {
                        self.scan(&piece);
                        return Poll::Ready(Step::Piece(self.count(piece)));
                    }
                }
                Poll::Ready(None) => return Poll::Ready(self.upstream_ended()),
                Poll::Ready(Some(Err(_))) => return Poll::Ready(self.upstream_broke()),
                Poll::Pending => {
                    ready!(self.timer.as_mut().poll(context));
                    if let Some(end) = self.timer_fired() {
                        return Poll::Ready(end);
                    }
                }
            }
        }
    }

    /// Whether the last byte of a stated length has passed: the answer is complete, and nobody asks for its end.
    pub fn is_over(&self) -> bool {
        self.length == Some(self.sent) && self.held.is_empty()
    }

    /// Whether the terminator has passed and all that was read before it.
    pub fn has_ended(&self) -> bool {
        self.has_ended && self.held.is_empty()
    }

    /// What it has cost until now.
    pub fn tally(&self) -> Tally {
        let facts = self.facts();
        let usage = facts.usage.or_else(|| self.tap.as_ref()?.usage());
        let (outputs, first_output) = (facts.outputs, self.first_output);
        Tally { usage, outputs, first_output, is_stream: self.tap.is_none(), is_whole: facts.finished }
    }

    /// The answer is complete. `clean`: the upstream's body ended too, so its connection can serve again.
    pub fn complete(&mut self, clean: bool) -> Step {
        if let Some(source) = self.source.take().filter(|_| clean) {
            source.upstream.connections.put(source.connection, source.keep_alive);
        }
        let error = self.facts().error.is_some();
        Step::End(if error { AttemptEnd::StreamError } else { AttemptEnd::Completed }, Ending::Complete)
    }

    fn count(&mut self, piece: Bytes) -> Bytes {
        self.sent += piece.len() as u64;
        if let Some(tap) = &mut self.tap {
            tap.push(&piece);
        }
        piece
    }

    /// Looks at a piece as it passes.
    fn scan(&mut self, piece: &Bytes) {
        let now = self.clock.now();
        let Some(scanner) = &mut self.scanner else {
            self.last_progress = now;
            return;
        };
        // Comments keep a connection open; they are no progress.
        if scanner.push(piece) > 0 {
            self.last_progress = now;
            if self.first_output.is_none() && scanner.facts().outputs > 0 {
                self.first_output = Some(now);
            }
        }
        self.note_end();
    }

    /// From the terminator on, the answer is complete whatever comes.
    fn note_end(&mut self) {
        if !self.has_ended && self.facts().end.is_some() {
            self.has_ended = true;
            let at = self.clock.now() + LINGER;
            self.timer.as_mut().reset(self.clock.to_tokio(at));
        }
    }

    fn facts(&self) -> &StreamFacts {
        self.scanner.as_ref().map_or(&self.facts, SseScanner::facts)
    }

    /// The timer fired while nothing came. `None`: it was early, and runs on.
    fn timer_fired(&mut self) -> Option<Step> {
        if self.has_ended {
            return Some(self.complete(false));
        }
        let now = self.clock.now();
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            let message = "The request's own deadline has passed.";
            return Some(self.fail(AttemptEnd::DeadlinePassed, Outcome::DeadlineUnmeetable, message));
        }
        let silent_until = self.last_progress + self.idle;
        if silent_until <= now {
            if self.facts().finished {
                return Some(self.complete(false));
            }
            let message = "The model's server fell silent.";
            return Some(self.fail(AttemptEnd::Truncated, Outcome::UpstreamTimeout, message));
        }
        let next = self.deadline.map_or(silent_until, |deadline| deadline.min(silent_until));
        self.timer.as_mut().reset(self.clock.to_tokio(next));
        None
    }

    fn upstream_ended(&mut self) -> Step {
        let Some(scanner) = self.scanner.take() else { return self.complete(true) };
        let at_boundary = scanner.is_at_boundary();
        self.facts = scanner.finish();
        if self.facts.finished || self.facts.error.is_some() {
            return self.complete(true);
        }
        self.source = None;
        let message = "The model's server ended its answer too early.";
        let broke = Broke { outcome: Outcome::Truncated, message, at_boundary: Some(at_boundary) };
        Step::End(AttemptEnd::Truncated, Ending::Broke(broke))
    }

    fn upstream_broke(&mut self) -> Step {
        if self.facts().finished {
            return self.complete(false);
        }
        let message = "The connection to the model's server broke.";
        self.fail(AttemptEnd::Truncated, Outcome::Truncated, message)
    }

    /// The answer broke off.
    fn fail(&mut self, end: AttemptEnd, outcome: Outcome, message: &'static str) -> Step {
        self.source = None;
        let at_boundary = self.scanner.take().map(|scanner| {
            let at_boundary = scanner.is_at_boundary();
            self.facts = scanner.finish();
            at_boundary
        });
        Step::End(end, Ending::Broke(Broke { outcome, message, at_boundary }))
    }
}
