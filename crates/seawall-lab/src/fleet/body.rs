//! Bodies of answers: whole ones, and streams that go at the engine's pace and break where a fault says so.

use super::answer::Answer;
use super::errors::ApiError;
use super::host::Ticket;
use super::server::Visit;
use bytes::Bytes;
use futures_util::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;

/// The connection is to be cut here.
#[derive(Debug, thiserror::Error)]
#[error("the fleet cuts this connection, as a fault tells it to")]
pub(super) struct Cut;

/// The body of every response of the fleet.
pub(super) type FleetBody = UnsyncBoxBody<Bytes, Cut>;

/// A body that is there at once.
pub(super) fn full(body: impl Into<Bytes>) -> FleetBody {
    Full::new(body.into()).map_err(|never| match never {}).boxed_unsync()
}

/// How a body ends too early.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Break {
    /// Nothing more comes, the connection stays.
    Hang,
    /// The connection is reset.
    Reset,
    /// A clean end in the middle.
    Truncate,
    /// An error event, then an abrupt close.
    ErrorEvent,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Step {
    Padding,
    Opening,
    Tokens,
    Ending,
    /// The last bytes are out: give the connection a turn to send them, then break.
    Breaking(Break),
    Done,
}

/// A stream that is under way. Dropping it cancels the job.
pub(super) struct Reply {
    pub(super) answer: Answer,
    /// `None` in a server without an engine: all tokens are there at once.
    pub(super) ticket: Option<Ticket>,
    pub(super) visit: Visit,
    pub(super) breaks: Option<Break>,
    pub(super) padding: usize,
    sent: u32,
    ready: u32,
    step: Step,
}

impl Reply {
    pub(super) fn new(answer: Answer, ticket: Option<Ticket>, visit: Visit) -> Self {
        let ready = if ticket.is_none() { answer.ask.output_tokens } else { 0 };
        Self { answer, ticket, visit, breaks: None, padding: 0, sent: 0, ready, step: Step::Padding }
    }

    /// The body of this stream.
    pub(super) fn into_body(self) -> FleetBody {
        let frames = stream::unfold(self, |mut reply| async move {
            let item = reply.next().await?;
            Some((item.map(Frame::data), reply))
        });
        StreamBody::new(frames).boxed_unsync()
    }

    async fn next(&mut self) -> Option<Result<Bytes, Cut>> {
        loop {
            match self.step {
                Step::Padding => {
                    self.step = Step::Opening;
                    if self.padding > 0 {
                        return Some(Ok(Bytes::from(format!(":{}\n\n", " ".repeat(self.padding)))));
                    }
                }
                Step::Opening => {
                    self.step = Step::Tokens;
                    let frames = self.answer.opening();
                    if !frames.is_empty() {
                        return Some(Ok(frames));
                    }
                }
                Step::Tokens => {
                    if let Some(frames) = self.token().await {
                        return Some(Ok(frames));
                    }
                }
                Step::Ending => {
                    self.step = Step::Done;
                    self.visit.done();
                    return Some(Ok(self.answer.ending()));
                }
                Step::Breaking(how) => return self.broken(how).await,
                Step::Done => return None,
            }
        }
    }

    /// The next token, or what a fault puts in its place; `None` after a change of step.
    async fn token(&mut self) -> Option<Bytes> {
        let total = self.answer.ask.output_tokens;
        if let Some(how) = self.breaks.filter(|_| self.sent >= total.div_ceil(2)) {
            self.step = Step::Breaking(how);
            if how == Break::ErrorEvent {
                let error = ApiError::new(500, "The server had an error while it made this answer.");
                return Some(Bytes::from(error.event(self.answer.ask.dialect, &self.visit.request_id())));
            }
            return None;
        }
        if self.sent >= self.ready && self.sent < total {
            let progress = match &mut self.ticket {
                Some(ticket) => ticket.beyond(self.sent).await,
                None => return None,
            };
            self.ready = if progress.finished { total } else { progress.tokens.min(total) };
        }
        if self.sent >= total {
            if let Some(ticket) = &mut self.ticket {
                ticket.finished().await;
            }
            self.step = Step::Ending;
            return None;
        }
        let index = self.sent;
        self.sent += 1;
        self.visit.made(self.answer.ask.choices);
        Some(self.answer.token(index))
    }

    async fn broken(&mut self, how: Break) -> Option<Result<Bytes, Cut>> {
        match how {
            Break::Hang => std::future::pending().await,
            Break::Truncate => {
                self.step = Step::Done;
                self.visit.done();
                None
            }
            Break::Reset | Break::ErrorEvent => {
                // hyper writes out what it holds when the body is not ready; without this turn the bytes before the
                // cut could be lost.
                tokio::task::yield_now().await;
                self.step = Step::Done;
                self.visit.done();
                if how == Break::Reset {
                    self.visit.reset_connection();
                }
                Some(Err(Cut))
            }
        }
    }
}

/// A whole body that breaks in the middle.
pub(super) fn broken_whole(body: &Bytes, how: Break, visit: Visit) -> FleetBody {
    let half = body.slice(..body.len() / 2);
    let start = (Some(half), visit);
    let frames = stream::unfold(start, move |(first, mut visit)| async move {
        if let Some(first) = first {
            return Some((Ok(Frame::data(first)), (None, visit)));
        }
        match how {
            Break::Hang => std::future::pending().await,
            Break::Truncate => {
                visit.done();
                None
            }
            Break::Reset | Break::ErrorEvent => {
                tokio::task::yield_now().await;
                visit.done();
                if how == Break::Reset {
                    visit.reset_connection();
                }
                Some((Err(Cut), (None, visit)))
            }
        }
    });
    StreamBody::new(frames).boxed_unsync()
}
