//! The return calendar: when those may come back who could not be served.
//!
//! Measured clients sleep exactly what they are told and add no jitter, so a wait that is the same for all brings all back
//! at once. Here every refused request is given a place in a bucket of one second, as long as there is one in reach of
//! the longest wait that clients obey; who finds none is told not to come back. Buckets hold a part of what the pool can
//! do beyond what arrives anyway, measured by its best rate: by the present one there would be no place during a
//! brown-out, although everything is free after it; by a window that is still looked for there would be several for each
//! that can be served. No tenant has more than its share of a bucket while others ask.

use crate::advice::LONGEST_WAIT;
use crate::id::TenantId;
use crate::random::Random;
use crate::time::{Duration, Instant};
use alloc::collections::BTreeMap;

const SECOND: u64 = 1_000_000_000;
/// What the buckets hold of what is to spare, in percent: the rest is for those who come unasked.
const FILLED_PERCENT: u64 = 80;

/// Who comes back when.
#[derive(Clone, Debug, Default)]
pub struct Calendar {
    buckets: BTreeMap<u64, BTreeMap<TenantId, u64>>,
}

impl Calendar {
    /// Books the first free place that is not before `earliest`, and says how long to wait for it; `None`: there is none
    /// in reach. `spare_per_second`: what the pool can do beyond what arrives anyway.
    pub fn book(
        &mut self,
        now: Instant,
        earliest: Instant,
        spare_per_second: u64,
        tenant: TenantId,
        random: &mut Random,
    ) -> Option<Duration> {
        let present = now.as_nanos() / SECOND;
        self.buckets = self.buckets.split_off(&present);
        // A bucket begins no earlier than asked for and ends no later than a client obeys.
        let first = earliest.max(now).as_nanos().div_ceil(SECOND);
        let last = (now + LONGEST_WAIT).as_nanos() / SECOND;
        let bucket = (first..last).find(|second| self.has_place(*second, spare_per_second, tenant))?;
        *self.buckets.entry(bucket).or_default().entry(tenant).or_default() += 1;
        let begins = Instant::from_nanos(bucket * SECOND);
        Some(begins.since(now) + random.span(Duration::ZERO, Duration::from_millis(999)))
    }

    fn has_place(&self, second: u64, spare_per_second: u64, tenant: TenantId) -> bool {
        // What is less than a whole place in one bucket adds up over several.
        let until = |second: u64| second.saturating_mul(spare_per_second * FILLED_PERCENT) / 100;
        let places = until(second + 1).saturating_sub(until(second));
        let Some(bucket) = self.buckets.get(&second) else { return places > 0 };
        let taken: u64 = bucket.values().sum();
        let own = bucket.get(&tenant).copied().unwrap_or(0);
        let tenants = bucket.len() as u64 + u64::from(own == 0);
        taken < places && (tenants == 1 || own < places.div_ceil(tenants))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const A: TenantId = TenantId(0);
    const B: TenantId = TenantId(1);

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    /// In which second each of `count` bookings at `now` is.
    fn booked(calendar: &mut Calendar, now: Instant, spare: u64, tenant: TenantId, count: usize) -> Vec<Option<u64>> {
        let mut random = Random::new(1);
        let mut book = || Some((now + calendar.book(now, now, spare, tenant, &mut random)?).as_nanos() / SECOND);
        (0..count).map(|_| book()).collect()
    }

    #[test]
    fn four_fifths_of_what_is_to_spare_are_given_second_by_second() {
        let mut calendar = Calendar::default();
        let seconds = booked(&mut calendar, at(500), 5, A, 9);
        assert_eq!(seconds, [1, 1, 1, 1, 2, 2, 2, 2, 3].map(Some));
        // Every other bucket has a place where less than one a second is to spare for it: at four fifths of one a
        // second, four of five have.
        let mut calendar = Calendar::default();
        let seconds = booked(&mut calendar, at(1), 1, A, 5);
        assert_eq!(seconds, [1, 2, 3, 4, 6].map(Some));
    }

    #[test]
    fn there_is_a_place_before_58_seconds_or_none() {
        let mut calendar = Calendar::default();
        assert_eq!(booked(&mut calendar, at(1), 0, A, 1), [None]);
        let seconds = booked(&mut calendar, at(1), 5, A, 58 * 4);
        assert_eq!((seconds[57 * 4], seconds[57 * 4 + 1]), (None, None));
        assert_eq!(seconds[57 * 4 - 1], Some(57));
        let mut random = Random::new(1);
        let wait = Calendar::default().book(at(0), at(20_300), 5, A, &mut random).expect("it is free");
        assert!((Duration::from_secs(21)..Duration::from_secs(22)).contains(&wait), "{wait:?}");
        // What is over makes no room and takes none.
        assert_eq!(booked(&mut calendar, at(57_500), 5, A, 1), [Some(58)]);
        assert_eq!(calendar.buckets.len(), 2);
    }

    #[test]
    fn a_tenant_leaves_others_their_share() {
        let mut calendar = Calendar::default();
        assert_eq!(booked(&mut calendar, at(1), 10, A, 4), [1, 1, 1, 1].map(Some));
        assert_eq!(booked(&mut calendar, at(1), 10, B, 5), [Some(1), Some(1), Some(1), Some(1), Some(2)]);
        // The second is shared by now: four each.
        assert_eq!(booked(&mut calendar, at(1), 10, A, 5), [2, 2, 2, 2, 3].map(Some));
    }
}
