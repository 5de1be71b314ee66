//! What is going to happen, in order of time and then of decision.

use crate::Nanos;
use crate::calls::{ActorId, CallId, Reply};
use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

/// What happens to an actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// A call comes in.
    Arrive(CallId),
    /// A call of its own is answered.
    Reply(CallId, Reply),
    /// Whoever made this call does not wait any more.
    Abandoned(CallId),
    /// A time that it set has come.
    Timer { kind: u16, data: u64 },
    /// Something changes: place in the list of events.
    Change(u32),
}

/// A message, for whom and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) at: Nanos,
    pub(crate) sequence: u64,
    pub(crate) target: ActorId,
    pub(crate) message: Message,
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Event {}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    /// The earliest is the greatest: the heap gives the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.sequence).cmp(&(self.at, self.sequence))
    }
}

/// The events that are to come.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    later: BinaryHeap<Event>,
    /// What is due at once waits here: most messages do, and a line is cheaper than a heap.
    now: VecDeque<Event>,
    sequence: u64,
}

impl EventQueue {
    pub(crate) fn push(&mut self, now: Nanos, at: Nanos, target: ActorId, message: Message) {
        self.sequence += 1;
        let event = Event { at: at.max(now), sequence: self.sequence, target, message };
        if at <= now {
            self.now.push_back(event);
        } else {
            self.later.push(event);
        }
    }

    /// The next event that is due by `end`.
    pub(crate) fn pop(&mut self, end: Nanos) -> Option<Event> {
        let first = self.now.front();
        let is_later = match (first, self.later.peek()) {
            (Some(first), Some(later)) => (later.at, later.sequence) < (first.at, first.sequence),
            (None, Some(later)) => later.at <= end,
            (Some(_), None) => false,
            (None, None) => return None,
        };
        if is_later { self.later.pop() } else { self.now.pop_front() }
    }

    pub(crate) fn len(&self) -> usize {
        self.later.len() + self.now.len()
    }
}
