//! Processor sharing in virtual time: what runs at the same speed as all the others ends in a fixed order.
//!
//! A virtual clock goes at the common speed. Work that begins when it shows `v` and takes `w` ends when it shows
//! `v + w`, whatever the speed does in between, so that a change of speed touches the clock alone (the method of
//! weighted fair queueing: Demers, Keshav and Shenker 1989; Parekh and Gallager 1993). A begin and an end each cost
//! the logarithm of what runs. At speed 0 the clock stands still and nothing is due.

use crate::Nanos;
use crate::random::nanos;
use crate::slab::Place;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// An end, as the bits of a float that is never negative (their order is the order of the numbers), then a sequence
/// number, then whose it is.
type End = Reverse<(u64, u64, Place)>;

/// Work that shares one machine.
#[derive(Debug)]
pub struct Sharing {
    /// What the virtual clock shows, in nanoseconds.
    virtual_nanos: f64,
    at: Nanos,
    speed: f64,
    sequence: u64,
    ends: BinaryHeap<End>,
}

impl Sharing {
    /// A machine without work at a time.
    pub const fn new(now: Nanos) -> Self {
        Self { virtual_nanos: 0.0, at: now, speed: 1.0, sequence: 0, ends: BinaryHeap::new() }
    }

    /// How much runs.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether nothing runs.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The speed of each, as a part of full speed.
    pub const fn speed(&self) -> f64 {
        self.speed
    }

    /// Work of this length at full speed begins.
    #[expect(clippy::cast_precision_loss, reason = "spans are far below 2^53 microseconds")]
    pub fn begin(&mut self, now: Nanos, work: Nanos, whose: Place) {
        self.advance(now);
        self.sequence += 1;
        let end = self.virtual_nanos + work as f64;
        self.ends.push(Reverse((end.to_bits(), self.sequence, whose)));
    }

    /// From now on the machine is worth so many pieces of work at full speed, shared by all that runs.
    pub fn share(&mut self, now: Nanos, units: f64) {
        self.advance(now);
        self.speed = (units.max(0.0) / super::number(self.len().max(1))).min(1.0);
    }

    /// When the next end is due at the present speed; `None`: never.
    pub fn next_due(&self) -> Option<Nanos> {
        let Reverse((end, _, _)) = self.ends.peek()?;
        let left = (f64::from_bits(*end) - self.virtual_nanos).max(0.0);
        (self.speed > 0.0).then(|| self.at.saturating_add(nanos(libm::ceil(left / self.speed))))
    }

    /// Takes the next piece of work that has come to its end, to half a nanosecond. Call it until there is none.
    pub fn next_ended(&mut self, now: Nanos) -> Option<Place> {
        self.advance(now);
        let Reverse((end, _, _)) = self.ends.peek()?;
        if f64::from_bits(*end) > self.virtual_nanos + 0.5 {
            return None;
        }
        self.ends.pop().map(|Reverse((_, _, whose))| whose)
    }

    #[expect(clippy::cast_precision_loss, reason = "spans are far below 2^53 microseconds")]
    fn advance(&mut self, now: Nanos) {
        self.virtual_nanos += (now - self.at) as f64 * self.speed;
        self.at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SECOND;

    #[test]
    fn two_that_share_one_unit_take_twice_as_long() {
        let mut sharing = Sharing::new(0);
        sharing.begin(0, 2 * SECOND, 1);
        sharing.share(0, 1.0);
        assert_eq!(sharing.next_due(), Some(2 * SECOND));
        // The first has one second left when the second comes; from then on each goes at half speed.
        sharing.begin(SECOND, 4 * SECOND, 2);
        sharing.share(SECOND, 1.0);
        assert_eq!(sharing.next_due(), Some(3 * SECOND));
        assert_eq!(sharing.next_ended(3 * SECOND), Some(1));
        assert_eq!(sharing.next_ended(3 * SECOND), None);
        // One second of the other's work is done; alone it goes at full speed.
        sharing.share(3 * SECOND, 1.0);
        assert_eq!(sharing.next_due(), Some(6 * SECOND));
        assert_eq!((sharing.next_ended(6 * SECOND), sharing.is_empty()), (Some(2), true));
    }

    #[test]
    fn nobody_is_faster_than_alone_and_nothing_moves_without_units() {
        let mut sharing = Sharing::new(0);
        sharing.begin(0, SECOND, 1);
        sharing.share(0, 100.0);
        assert_eq!(sharing.next_due(), Some(SECOND));
        sharing.share(SECOND / 2, -3.0);
        assert_eq!(sharing.next_due(), None);
        assert_eq!(sharing.next_ended(100 * SECOND), None);
        sharing.share(100 * SECOND, 0.5);
        assert_eq!(sharing.next_due(), Some(101 * SECOND));
    }

    #[test]
    fn what_began_first_ends_first_where_both_end_at_once() {
        let mut sharing = Sharing::new(0);
        for whose in [7, 3, 5] {
            sharing.begin(0, SECOND, whose);
        }
        sharing.share(0, 3.0);
        let ended: Vec<Place> = std::iter::from_fn(|| sharing.next_ended(SECOND)).collect();
        assert_eq!(ended, [7, 3, 5]);
    }
}
