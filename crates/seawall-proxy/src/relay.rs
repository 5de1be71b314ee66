//! Step 9, relay: an upstream's answer to the client, piece by piece as it comes, bytes unchanged.
//!
//! Reading follows the client: nothing is read ahead of what it takes, so a slow client slows its upstream and costs no
//! memory. After the first byte there is no second attempt; what breaks from here on is told in the stream: one error
//! event, flushed, then an abrupt close, because a clean close without a terminator reads as success in most clients.
//!
//! What ends a stream: its terminator (`[DONE]`, `response.completed`, `message_stop`), or the upstream's end of body
//! after a finish reason. Nothing is made up: where the upstream sends no `[DONE]` the client gets none.

use crate::app::RequestGuard;
use crate::clock::Clock;
use crate::upstream::Upstream;
use crate::upstream::pool::Connection;
use bytes::Bytes;
use http_body::{Body, SizeHint};
use hyper::body::Incoming;
use seawall_core::classify::AttemptEnd;
use seawall_core::outcome::Outcome;
use seawall_core::time::Instant;
use seawall_wire::dialect::{Dialect, Endpoint};
use seawall_wire::error_body::ErrorBody;
use seawall_wire::sse::{SseScanner, StreamFacts};
use seawall_wire::usage::BodyTap;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Sleep, sleep_until};
use tokio_util::sync::WaitForCancellationFutureOwned;

/// After the terminator the upstream's own end is awaited for so long; then the answer ends without it.
const LINGER: Duration = Duration::from_millis(250);
/// Between the error event and the abrupt close: the event must have been flushed to the socket.
const FLUSH: Duration = Duration::from_millis(20);

/// The answer was cut off on purpose; its error event, where the form has one, went first.
#[derive(Debug, thiserror::Error)]
#[error("the answer broke off")]
pub struct Cut;

/// A running answer.
#[derive(Debug)]
pub struct Relay {
    held: VecDeque<Bytes>,
    source: Option<Source>,
    guard: Option<RequestGuard>,
    scanner: Option<SseScanner>,
    /// What watches an answer in one piece.
    tap: Option<BodyTap>,
    /// The final facts of a stream that has ended.
    facts: StreamFacts,
    form: EventForm,
    phase: Phase,
    idle: Duration,
    last_progress: Instant,
    deadline: Option<Instant>,
    timer: Pin<Box<Sleep>>,
    cut: Pin<Box<WaitForCancellationFutureOwned>>,
    length: Option<u64>,
    sent: u64,
    clock: Clock,
}

impl Drop for Relay {
    /// A client that closes as soon as it has read the terminator has its whole answer; any other one left early, which
    /// the guard reports when it is dropped.
    fn drop(&mut self) {
        if self.phase == Phase::Ended {
            self.end(AttemptEnd::Completed);
        }
    }
}

/// Where the bytes come from.
#[derive(Debug)]
pub struct Source {
    /// The rest of the upstream's body.
    pub body: Incoming,
    /// Its connection: given back at a clean end, closed otherwise.
    pub connection: Connection,
    /// Whose connection it is.
    pub upstream: Arc<Upstream>,
    /// The keep-alive time that it states.
    pub keep_alive: Option<Duration>,
}

/// What decides how an error event looks.
#[derive(Debug, Clone, Copy)]
pub struct EventForm {
    /// The client's dialect.
    pub dialect: Dialect,
    /// What was asked for.
    pub endpoint: Endpoint,
}

/// What a relay begins with.
#[derive(Debug)]
pub struct Begin {
    /// What was read before the answer was committed to.
    pub held: VecDeque<Bytes>,
    /// The rest.
    pub source: Source,
    /// The scanner that has seen what is held; `None` for an answer in one piece.
    pub scanner: Option<SseScanner>,
    /// The client's form of error events.
    pub form: EventForm,
    /// The longest pause between two pieces.
    pub idle: Duration,
    /// The caller's deadline.
    pub deadline: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Streaming,
    /// The terminator has passed: whatever follows is passed on until the linger time is over.
    Ended,
    /// The error event is on its way; the abrupt close follows.
    Failing,
    Done,
}

impl Relay {
    /// Begins to relay for the request of `guard`.
    pub fn begin(begin: Begin, guard: RequestGuard, length: Option<u64>) -> Pin<Box<Self>> {
        let clock = guard.app.clock();
        let now = clock.now();
        let first = begin.deadline.map_or(now + begin.idle, |deadline| deadline.min(now + begin.idle));
        Box::pin(Self {
            timer: Box::pin(sleep_until(clock.to_tokio(first))),
            cut: Box::pin(guard.app.cut.clone().cancelled_owned()),
            phase: Phase::Streaming,
            held: begin.held,
            source: Some(begin.source),
            guard: Some(guard),
            tap: begin.scanner.is_none().then(BodyTap::new),
            scanner: begin.scanner,
            facts: StreamFacts::default(),
            form: begin.form,
            idle: begin.idle,
            last_progress: now,
            deadline: begin.deadline,
            length,
            sent: 0,
            clock,
        })
    }

    /// The length that the client is told.
    pub fn size_hint(&self) -> SizeHint {
        self.length.map_or_else(SizeHint::default, SizeHint::with_exact)
    }

    /// The next piece.
    pub fn poll_data(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Cut>>> {
        loop {
            match self.phase {
                Phase::Done => return Poll::Ready(None),
                Phase::Failing => {
                    ready!(self.timer.as_mut().poll(context));
                    self.phase = Phase::Done;
                    return Poll::Ready(Some(Err(Cut)));
                }
                Phase::Streaming | Phase::Ended => {}
            }
            if let Some(piece) = self.held.pop_front() {
                // The scanner has seen it already.
                self.note_end();
                return Poll::Ready(Some(Ok(self.count(piece))));
            }
            if self.phase == Phase::Streaming && self.cut.as_mut().poll(context).is_ready() {
                return self.fail(AttemptEnd::Truncated, Outcome::Draining, "The service is shutting down.");
            }
            let Some(source) = &mut self.source else { return Poll::Ready(None) };
            match Pin::new(&mut source.body).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => {
                    // Trailers end here: no client of these APIs reads them.
                    if let Ok(piece) = frame.into_data() {
                        self.scan(&piece);
                        return Poll::Ready(Some(Ok(self.count(piece))));
                    }
                }
                Poll::Ready(None) => return self.upstream_ended(),
                Poll::Ready(Some(Err(_))) => return self.upstream_broke(),
                Poll::Pending => {
                    ready!(self.timer.as_mut().poll(context));
                    if let Some(end) = self.timer_fired() {
                        return end;
                    }
                }
            }
        }
    }

    /// Counts a piece on its way out. With the last byte of a stated length the answer is complete: nobody asks for its
    /// end after that.
    fn count(&mut self, piece: Bytes) -> Bytes {
        let length = piece.len() as u64;
        self.sent += length;
        if let Some(tap) = &mut self.tap {
            tap.push(&piece);
        }
        if let Some(guard) = &mut self.guard {
            guard.record().response_bytes += length;
        }
        if self.phase == Phase::Streaming && self.length == Some(self.sent) {
            self.finish(true);
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
        }
        self.note_end();
    }

    /// From the terminator on, the answer is complete whatever comes.
    fn note_end(&mut self) {
        if self.phase == Phase::Streaming && self.facts().end.is_some() {
            self.phase = Phase::Ended;
            self.wake_in(LINGER);
        }
    }

    fn facts(&self) -> &StreamFacts {
        self.scanner.as_ref().map_or(&self.facts, SseScanner::facts)
    }

    fn wake_in(&mut self, span: Duration) {
        let at = self.clock.now() + span;
        self.timer.as_mut().reset(self.clock.to_tokio(at));
    }

    /// The timer fired while nothing came. `None`: it was early, and runs on.
    fn timer_fired(&mut self) -> Option<Poll<Option<Result<Bytes, Cut>>>> {
        if self.phase == Phase::Ended {
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

    fn upstream_ended(&mut self) -> Poll<Option<Result<Bytes, Cut>>> {
        let Some(scanner) = self.scanner.take() else { return self.complete(true) };
        let at_boundary = scanner.is_at_boundary();
        self.facts = scanner.finish();
        if self.facts.finished || self.facts.error.is_some() {
            return self.complete(true);
        }
        self.source = None;
        let message = "The model's server ended its answer too early.";
        self.fail_stream(at_boundary, AttemptEnd::Truncated, Outcome::Truncated, message)
    }

    fn upstream_broke(&mut self) -> Poll<Option<Result<Bytes, Cut>>> {
        if self.facts().finished {
            return self.complete(false);
        }
        let message = "The connection to the model's server broke.";
        self.fail(AttemptEnd::Truncated, Outcome::Truncated, message)
    }

    /// The answer is complete. `clean`: the upstream's body ended too, so its connection can serve again.
    fn complete(&mut self, clean: bool) -> Poll<Option<Result<Bytes, Cut>>> {
        self.finish(clean);
        Poll::Ready(None)
    }

    fn finish(&mut self, clean: bool) {
        self.phase = Phase::Done;
        if let Some(source) = self.source.take().filter(|_| clean) {
            source.upstream.connections.put(source.connection, source.keep_alive);
        }
        let error = self.facts().error.is_some();
        self.end(if error { AttemptEnd::StreamError } else { AttemptEnd::Completed });
    }

    /// The answer broke off: an error event where the form has one, and then the abrupt close.
    fn fail(&mut self, end: AttemptEnd, outcome: Outcome, message: &str) -> Poll<Option<Result<Bytes, Cut>>> {
        self.source = None;
        if let Some(scanner) = self.scanner.take() {
            let at_boundary = scanner.is_at_boundary();
            self.facts = scanner.finish();
            return self.fail_stream(at_boundary, end, outcome, message);
        }
        self.end(end);
        self.phase = Phase::Done;
        Poll::Ready(Some(Err(Cut)))
    }

    fn fail_stream(
        &mut self,
        at_boundary: bool,
        end: AttemptEnd,
        outcome: Outcome,
        message: &str,
    ) -> Poll<Option<Result<Bytes, Cut>>> {
        let Some(id) = self.guard.as_mut().map(|guard| guard.record().id) else { return Poll::Ready(None) };
        self.end(end);
        self.phase = Phase::Failing;
        self.wake_in(FLUSH);
        let (error_type, code) = crate::respond::words(outcome);
        let body = ErrorBody { error_type, code, message, request_id: id.as_str() };
        let event = body.to_event(self.form.dialect, self.form.endpoint);
        if at_boundary {
            return Poll::Ready(Some(Ok(event)));
        }
        // What broke off inside an event must not swallow this one.
        Poll::Ready(Some(Ok([
            b"

",
            event.as_ref(),
        ]
        .concat()
        .into())))
    }

    fn end(&mut self, end: AttemptEnd) {
        let Some(mut guard) = self.guard.take() else { return };
        let usage = self.facts().usage.or_else(|| self.tap.as_ref()?.usage());
        let events = self.facts().events;
        let record = guard.record();
        record.usage = usage;
        record.output_events = events;
        guard.attempt_ended(end);
    }
}
