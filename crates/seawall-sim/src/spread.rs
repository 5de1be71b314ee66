//! How values are spread: a histogram of spans whose buckets are a thirty-second of their size wide.
//!
//! A span is counted in whole microseconds, 32 buckets for each doubling (the layout of HdrHistogram, G. Tene), so a
//! quantile is at most 3.2% too large and never too small. The size depends on the longest span, not on their number.

use crate::Nanos;

/// Buckets of each doubling, as a power of two.
const BITS: u32 = 5;

/// Spans, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    counts: Vec<u32>,
    total: u64,
}

impl Spread {
    /// Counts one.
    pub fn add(&mut self, span: Nanos) {
        let bucket = bucket(span / 1000);
        if self.counts.len() <= bucket {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] = self.counts[bucket].saturating_add(1);
        self.total += 1;
    }

    /// Counts all that another has counted.
    pub fn merge(&mut self, other: &Self) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine = mine.saturating_add(*theirs);
        }
        self.total += other.total;
    }

    /// How many were counted.
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// The span that so many of a thousand do not exceed (nearest rank); `None`: nothing was counted.
    pub fn quantile(&self, of_thousand: u64) -> Option<Nanos> {
        let rank = (self.total * of_thousand).div_ceil(1000).max(1);
        let mut seen = 0;
        let place = self.counts.iter().position(|count| {
            seen += u64::from(*count);
            seen >= rank
        });
        place.map(|place| largest(place) * 1000)
    }
}

/// The bucket of a number of microseconds.
fn bucket(micros: u64) -> usize {
    let doublings = (u64::BITS - micros.leading_zeros()).saturating_sub(BITS + 1);
    let within = micros >> doublings;
    usize::try_from((u64::from(doublings) << BITS) + within).unwrap_or(usize::MAX)
}

/// The greatest number of microseconds in a bucket.
const fn largest(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let doublings = (bucket >> BITS).saturating_sub(1);
    let within = bucket - (doublings << BITS);
    ((within + 1) << doublings) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_in_the_bucket_whose_greatest_is_at_most_a_thirty_second_more() {
        for micros in (0..5000).chain([65_535, 65_536, 1_000_000, 3_600_000_000, u64::MAX / 1000]) {
            let most = largest(bucket(micros));
            assert!(most >= micros && most - micros <= micros / 32, "{micros}: {most}");
            assert!(bucket(most + 1) == bucket(micros) + 1, "{micros}");
        }
    }

    #[test]
    fn quantiles_are_nearest_ranks() {
        let mut spread = Spread::default();
        assert_eq!((spread.quantile(500), spread.total()), (None, 0));
        for millis in 1..=100 {
            spread.add(millis * 1_000_000);
        }
        let near = |of_thousand, millis: u64| {
            let got = spread.quantile(of_thousand).expect("spans were counted");
            got >= millis * 1_000_000 && got - millis * 1_000_000 <= millis * 1_000_000 / 31
        };
        assert!(near(10, 1) && near(500, 50) && near(990, 99) && near(1000, 100));
        let mut twice = spread.clone();
        twice.merge(&spread);
        assert_eq!((twice.total(), twice.quantile(500)), (200, spread.quantile(500)));
        let mut zeros = Spread::default();
        zeros.add(0);
        assert_eq!(zeros.quantile(990), Some(0));
    }
}
