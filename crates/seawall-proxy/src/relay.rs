//! Step 9, relay, on the client's side: an answer to one client, bytes unchanged.
//!
//! Reading follows the clients: nothing is read ahead of what the fastest of them takes, so a slow client slows its
//! upstream and costs no memory. After the first byte there is no second attempt; what breaks from here on is told in
//! the stream: one error event, flushed, then an abrupt close, because a clean close without a terminator reads as
//! success in most clients.

use crate::app::RequestGuard;
use crate::clock::Clock;
use crate::flight::pump::{Broke, Ending};
use crate::flight::tally::Tally;
use crate::flight::{Head, Piece};
use bytes::Bytes;
use http_body::SizeHint;
use seawall_core::outcome::Outcome;
use seawall_core::time::Instant;
use seawall_wire::dialect::{Dialect, Endpoint};
use seawall_wire::error_body::ErrorBody;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Sleep, sleep_until};

/// Between the error event and the abrupt close: the event must have been flushed to the socket.
const FLUSH: Duration = Duration::from_millis(20);

/// The answer was cut off on purpose; its error event, where the form has one, went first.
#[derive(Debug, thiserror::Error)]
#[error("the answer broke off")]
pub struct Cut;

/// A running answer to one client.
#[derive(Debug)]
pub struct Relay {
    guard: Option<RequestGuard>,
    form: EventForm,
    phase: Phase,
    /// Whether an error can be told in the answer.
    is_stream: bool,
    /// Its own deadline, or the end of the flush.
    timer: Option<Pin<Box<Sleep>>>,
    length: Option<u64>,
    sent: u64,
    clock: Clock,
}

impl Drop for Relay {
    /// A client that closes as soon as it has read the terminator has its whole answer; any other one left early, which
    /// the guard reports when it is dropped.
    fn drop(&mut self) {
        if let Some(tally) = self.guard.as_ref().and_then(RequestGuard::has_all) {
            self.end(tally, Some(Outcome::Served));
        }
    }
}

/// What decides how an error event looks.
#[derive(Debug, Clone, Copy)]
pub struct EventForm {
    /// The client's dialect.
    pub dialect: Dialect,
    /// What was asked for.
    pub endpoint: Endpoint,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Streaming,
    /// The error event is on its way; the abrupt close follows.
    Failing,
    Done,
}

impl Relay {
    /// Begins to relay the answer with this head to the client of `guard`. `deadline`: its own, where the flight is not
    /// bounded by it.
    pub fn begin(guard: RequestGuard, form: EventForm, head: &Head, deadline: Option<Instant>) -> Self {
        let clock = guard.app.clock();
        Self {
            timer: deadline.map(|deadline| Box::pin(sleep_until(clock.to_tokio(deadline)))),
            is_stream: head.is_stream,
            phase: Phase::Streaming,
            guard: Some(guard),
            form,
            length: head.length,
            sent: 0,
            clock,
        }
    }

    /// The length that the client is told.
    pub fn size_hint(&self) -> SizeHint {
        self.length.map_or_else(SizeHint::default, SizeHint::with_exact)
    }

    /// The next piece.
    pub fn poll_data(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Cut>>> {
        match self.phase {
            Phase::Done => return Poll::Ready(None),
            Phase::Failing => {
                if let Some(timer) = &mut self.timer {
                    ready!(timer.as_mut().poll(context));
                }
                self.phase = Phase::Done;
                return Poll::Ready(Some(Err(Cut)));
            }
            Phase::Streaming => {}
        }
        let Some(reader) = self.guard.as_ref().and_then(RequestGuard::reader) else { return Poll::Ready(None) };
        match reader.poll_piece(context) {
            Poll::Ready(Piece::Data(piece)) => Poll::Ready(Some(Ok(self.count(piece)))),
            Poll::Ready(Piece::End(Ending::Complete, tally)) => {
                self.end(tally, None);
                self.phase = Phase::Done;
                Poll::Ready(None)
            }
            Poll::Ready(Piece::End(Ending::Broke(broke), tally)) => self.fail(broke, tally, None),
            // Whoever is here has not left, and so its flight is not given up; who is too slow is cut off.
            Poll::Ready(Piece::End(Ending::Nothing, _) | Piece::Lost) => {
                self.guard = None;
                self.phase = Phase::Done;
                Poll::Ready(Some(Err(Cut)))
            }
            Poll::Pending => {
                let Some(timer) = &mut self.timer else { return Poll::Pending };
                ready!(timer.as_mut().poll(context));
                let (outcome, message) = (Outcome::DeadlineUnmeetable, "The request's own deadline has passed.");
                // Where the last piece ended is known to its scanner only: a blank line too many does no harm.
                let broke = Broke { outcome, message, at_boundary: self.is_stream.then_some(false) };
                self.fail(broke, Tally::default(), Some(outcome))
            }
        }
    }

    /// Counts a piece on its way out. With the last byte of a stated length the answer is complete: nobody asks for its
    /// end after that.
    fn count(&mut self, piece: Bytes) -> Bytes {
        let length = piece.len() as u64;
        self.sent += length;
        if let Some(guard) = &mut self.guard {
            guard.record().response_bytes += length;
        }
        if self.length == Some(self.sent)
            && let Some(tally) = self.guard.as_ref().and_then(RequestGuard::has_all)
        {
            self.end(tally, None);
            self.phase = Phase::Done;
        }
        piece
    }

    /// The answer broke off: an error event where the form has one, and then the abrupt close.
    fn fail(&mut self, broke: Broke, tally: Tally, outcome: Option<Outcome>) -> Poll<Option<Result<Bytes, Cut>>> {
        let Some(id) = self.guard.as_mut().map(|guard| guard.record().id) else { return Poll::Ready(None) };
        self.end(tally, outcome);
        let Some(at_boundary) = broke.at_boundary else {
            self.phase = Phase::Done;
            return Poll::Ready(Some(Err(Cut)));
        };
        self.phase = Phase::Failing;
        let at = self.clock.now() + FLUSH;
        self.timer = Some(Box::pin(sleep_until(self.clock.to_tokio(at))));
        let (error_type, code) = crate::respond::words(broke.outcome);
        let body = ErrorBody { error_type, code, message: broke.message, request_id: id.as_str() };
        let event = body.to_event(self.form.dialect, self.form.endpoint);
        if at_boundary {
            return Poll::Ready(Some(Ok(event)));
        }
        // What broke off inside an event must not swallow this one.
        Poll::Ready(Some(Ok([b"\n\n", event.as_ref()].concat().into())))
    }

    fn end(&mut self, tally: Tally, outcome: Option<Outcome>) {
        let Some(mut guard) = self.guard.take() else { return };
        guard.record().tally = tally;
        guard.answered(outcome);
    }
}
