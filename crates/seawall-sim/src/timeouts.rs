//! Time limits of equal length: a line instead of a heap, and one timer for all of them.

use crate::Nanos;
use crate::calls::CallId;
use crate::context::Context;
use std::collections::VecDeque;

/// Watches over calls that all get the same time.
#[derive(Debug)]
pub struct Timeouts {
    span: Nanos,
    kind: u16,
    data: u64,
    line: VecDeque<(Nanos, CallId)>,
    /// How long the line may become before those that are over are taken out of it.
    long: usize,
    armed: bool,
}

/// A line that is not longer than this is not worth a look.
const SHORT: usize = 16;

impl Timeouts {
    /// Limits of this length; the owner's timer of this kind is to call [`Timeouts::next_due`].
    pub const fn new(span: Nanos, kind: u16) -> Self {
        Self::marked(span, kind, 0)
    }

    /// The same, for an owner of several lines: its timer carries `data`, which tells them apart.
    pub const fn marked(span: Nanos, kind: u16, data: u64) -> Self {
        Self { span, kind, data, line: VecDeque::new(), long: SHORT, armed: false }
    }

    /// How long they are.
    pub const fn span(&self) -> Nanos {
        self.span
    }

    /// When a call that is made now runs out of time.
    pub const fn deadline(&self, now: Nanos) -> Nanos {
        now.saturating_add(self.span)
    }

    /// Watches over a call that is made now.
    pub fn watch(&mut self, call: CallId, context: &mut Context<'_>) {
        self.line.push_back((self.deadline(context.now()), call));
        if !core::mem::replace(&mut self.armed, true) {
            context.timer(self.span, self.kind, self.data);
        }
        if self.line.len() > self.long {
            self.line.retain(|(at, call)| is_under_way(*at, *call, context));
            self.long = 2 * self.line.len() + SHORT;
        }
    }

    /// The next call that has run out of time and is still under way. Call it until there is none. An answer that
    /// comes at the last moment is in time; one that is on its way then is not.
    pub fn next_due(&mut self, context: &mut Context<'_>) -> Option<CallId> {
        while let Some((at, call)) = self.line.front().copied() {
            let live = is_under_way(at, call, context);
            if live && at > context.now() {
                context.timer(at - context.now(), self.kind, self.data);
                return None;
            }
            self.line.pop_front();
            if live {
                return Some(call);
            }
        }
        self.armed = false;
        None
    }

    /// How many it watches over, those included that are over and not yet forgotten.
    pub fn len(&self) -> usize {
        self.line.len()
    }

    /// How many it may watch over at the most, where no more than `calls` were ever under way.
    pub const fn most(calls: usize) -> usize {
        2 * calls + SHORT + 1
    }

    /// Whether it watches over none.
    pub fn is_empty(&self) -> bool {
        self.line.is_empty()
    }
}

/// Whether a call that runs out of time at `at` is still waited for. An answer at the last moment is in time.
fn is_under_way(at: Nanos, call: CallId, context: &Context<'_>) -> bool {
    context.call(call).is_some_and(|call| !call.abandoned && call.answer_at > at)
}
