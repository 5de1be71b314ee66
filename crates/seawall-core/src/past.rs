//! Which requests ended lately without an answer, so that their repeats are recognised.
//!
//! An identity alone tells no repeat: sending the same prompt several times on purpose is none (law 11). It is one where
//! the twin failed, was refused, or was left, and that is what is remembered here, for a minute and within a bound.

use crate::time::{Duration, Instant};
use alloc::collections::{BTreeMap, BTreeSet};

/// For so long attempts count towards the two that one distinct request may have.
pub const REMEMBERED: Duration = Duration::from_mins(1);
/// Who comes back so much before the time it was told is in time: clients round.
const EARLY: Duration = Duration::from_millis(20);
/// Entries at the most; the oldest give way.
const MOST: usize = 65_536;

/// What is remembered of a request that ended without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When it was first sent.
    pub first_seen: Instant,
    /// Attempts that reached an upstream, those of earlier twins included.
    pub attempts: u32,
    /// When it was told to come back, where it was.
    pub booked: Option<Instant>,
    /// Whether the attempt that it was told to come back for has been paid for.
    pub paid: bool,
    ended: Instant,
}

impl Entry {
    /// What is remembered of a request that ends now.
    pub const fn new(first_seen: Instant, attempts: u32, booked: Option<Instant>, ended: Instant) -> Self {
        Self { first_seen, attempts, booked, paid: false, ended }
    }

    /// The same, where the attempt that it was told to come back for has been paid for.
    #[must_use]
    pub const fn paid_for(self, paid: bool) -> Self {
        Self { paid, ..self }
    }

    /// What is remembered of a repeat of this one. Where it reached no upstream, the time of the last attempt stays: who
    /// asks again and again does not put off that it is forgotten.
    #[must_use]
    pub fn followed_by(self, repeat: Self) -> Self {
        let attempts = self.attempts + repeat.attempts;
        let ended = if repeat.attempts > 0 { repeat.ended } else { self.ended };
        Self { attempts, ended, ..repeat }
    }

    /// Whether it comes when it was told to: then it counts as a first attempt.
    pub fn is_in_its_slot(&self, now: Instant) -> bool {
        self.booked.is_some_and(|booked| now + EARLY >= booked)
    }
}

/// The table, by identity.
#[derive(Clone, Debug, Default)]
pub struct Past {
    entries: BTreeMap<u128, Entry>,
    order: BTreeSet<(Instant, u128)>,
}

impl Past {
    /// Remembers a request. What was known under this identity is replaced.
    pub fn remember(&mut self, identity: u128, entry: Entry) {
        self.forget(identity);
        while self.entries.len() >= MOST
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.entries.remove(&oldest);
        }
        self.entries.insert(identity, entry);
        self.order.insert((entry.ended, identity));
    }

    /// Takes out what is known of an identity, if it is not too long ago.
    pub fn take(&mut self, now: Instant, identity: u128) -> Option<Entry> {
        while let Some((ended, oldest)) = self.order.first().copied()
            && now.since(ended) > REMEMBERED
        {
            self.order.remove(&(ended, oldest));
            self.entries.remove(&oldest);
        }
        self.forget(identity)
    }

    /// Forgets what is known of an identity, if it is of a request that was first sent then.
    pub fn forget_of(&mut self, identity: u128, first_seen: Instant) {
        if self.entries.get(&identity).is_some_and(|known| known.first_seen == first_seen) {
            self.forget(identity);
        }
    }

    /// How many requests are remembered.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn forget(&mut self, identity: u128) -> Option<Entry> {
        let known = self.entries.remove(&identity)?;
        self.order.remove(&(known.ended, identity));
        Some(known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::from_millis(seconds * 1_000)
    }

    #[test]
    fn is_remembered_for_a_minute_and_taken_once() {
        let mut past = Past::default();
        past.remember(1, Entry::new(at(0), 1, None, at(10)));
        past.remember(2, Entry::new(at(0), 1, None, at(20)));
        assert_eq!(past.take(at(70), 1).map(|entry| entry.attempts), Some(1));
        assert_eq!((past.take(at(70), 1), past.len()), (None, 1));
        assert_eq!((past.take(at(81), 2), past.is_empty()), (None, true));
    }

    #[test]
    fn the_last_end_counts_and_the_bound_holds() {
        let mut past = Past::default();
        past.remember(1, Entry::new(at(0), 1, None, at(10)));
        past.remember(1, Entry::new(at(0), 2, None, at(60)));
        assert_eq!(past.take(at(100), 1).map(|entry| entry.attempts), Some(2));
        for identity in 0..=MOST as u128 {
            past.remember(identity, Entry::new(at(0), 1, None, at(0)));
        }
        assert_eq!((past.len(), past.order.len()), (MOST, MOST));
        assert_eq!(past.take(at(0), 0), None);
    }

    #[test]
    fn a_repeat_adds_its_attempts_and_asking_alone_adds_no_time() {
        let twin = Entry::new(at(0), 1, None, at(10));
        let refused = twin.followed_by(Entry::new(at(0), 0, Some(at(40)), at(30)));
        assert_eq!(refused, Entry::new(at(0), 1, Some(at(40)), at(10)));
        let tried = refused.followed_by(Entry::new(at(0), 1, None, at(50)));
        assert_eq!(tried, Entry::new(at(0), 2, None, at(50)));
    }

    #[test]
    fn a_slot_begins_when_it_was_told() {
        let told = Entry::new(at(0), 1, Some(at(8)), at(1));
        assert!(!told.is_in_its_slot(at(7)));
        assert!(told.is_in_its_slot(Instant::from_millis(7_985)) && told.is_in_its_slot(at(30)));
        assert!(!Entry::new(at(0), 1, None, at(1)).is_in_its_slot(at(30)));
    }
}
