//! A sliding count over a fixed span, in ten buckets.

use crate::time::{Duration, Instant};

const BUCKETS: usize = 10;

/// Counts events over the last `span`, forgetting them a tenth of the span at a time.
///
/// Memory is constant; an idle gap of any length costs one clearing, not a loop over the gap.
#[derive(Clone, Debug)]
pub struct Window {
    bucket_nanos: u64,
    /// Number of the newest bucket since the origin.
    newest: u64,
    counts: [u32; BUCKETS],
}

impl Window {
    /// An empty window over `span`; a span below ten nanoseconds counts as ten.
    pub fn new(span: Duration) -> Self {
        let bucket_nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX) / BUCKETS as u64;
        Self { bucket_nanos: bucket_nanos.max(1), newest: 0, counts: [0; BUCKETS] }
    }

    /// Adds `count` events at `now`.
    pub fn add(&mut self, now: Instant, count: u32) {
        self.advance(now);
        let slot = Self::slot(self.newest);
        self.counts[slot] = self.counts[slot].saturating_add(count);
    }

    /// Events in the window that ends at `now`.
    pub fn sum(&mut self, now: Instant) -> u32 {
        self.advance(now);
        self.counts.iter().fold(0, |total, count| total.saturating_add(*count))
    }

    /// The middle one of the ten parts of the window that ends at `now`: what is usual, whatever a burst adds.
    pub fn median(&mut self, now: Instant) -> u32 {
        self.advance(now);
        let mut sorted = self.counts;
        sorted.sort_unstable();
        sorted[BUCKETS / 2]
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.counts = [0; BUCKETS];
    }

    fn advance(&mut self, now: Instant) {
        let current = now.as_nanos() / self.bucket_nanos;
        let passed = current.saturating_sub(self.newest).min(BUCKETS as u64);
        for step in 0..passed {
            self.counts[Self::slot(current - step)] = 0;
        }
        self.newest = self.newest.max(current);
    }

    fn slot(bucket: u64) -> usize {
        usize::try_from(bucket % BUCKETS as u64).expect("a remainder of ten fits")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forgets_a_tenth_at_a_time() {
        let mut window = Window::new(Duration::from_secs(10));
        for second in 0..10 {
            window.add(Instant::from_millis(second * 1_000), 1);
        }
        assert_eq!(window.sum(Instant::from_millis(9_999)), 10);
        assert_eq!(window.sum(Instant::from_millis(10_000)), 9);
        assert_eq!(window.sum(Instant::from_millis(15_500)), 4);
        assert_eq!(window.sum(Instant::from_millis(1_000_000)), 0);
    }

    #[test]
    fn a_burst_does_not_move_the_median() {
        let mut window = Window::new(Duration::from_secs(10));
        for second in 0..10 {
            window.add(Instant::from_millis(second * 1_000), 3);
        }
        window.add(Instant::from_millis(9_500), 1_000);
        assert_eq!(window.median(Instant::from_millis(9_900)), 3);
        assert_eq!(window.median(Instant::from_millis(15_000)), 0);
    }

    #[test]
    fn time_going_backwards_counts_as_now() {
        let mut window = Window::new(Duration::from_secs(10));
        window.add(Instant::from_millis(9_000), 2);
        window.add(Instant::from_millis(1_000), 1);
        assert_eq!(window.sum(Instant::from_millis(9_000)), 3);
    }
}
