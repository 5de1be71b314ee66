//! The best rate at which a pool has completed requests lately.
//!
//! What arrives during a brown-out is served after it: measured by the present rate most of it would be refused although
//! its callers wait long enough (8% of the goodput of a ten-second brown-out in the prototype of this engine). The best
//! second of the last ten minutes says what the pool can do.

use crate::time::Instant;
use alloc::collections::VecDeque;

const SECOND: u64 = 1_000_000_000;
const REMEMBERED_SECONDS: u64 = 600;

/// Completions in the best second of the last ten minutes.
#[derive(Clone, Debug, Default)]
pub struct BestRate {
    /// The running second, and its completions so far.
    current: (u64, u32),
    /// Earlier seconds, each with more completions than all later ones: the first one is the best.
    best: VecDeque<(u64, u32)>,
}

impl BestRate {
    /// A request was completed.
    pub fn add(&mut self, now: Instant) {
        self.advance(now);
        self.current.1 = self.current.1.saturating_add(1);
    }

    /// Completions in the best second; 0: there were none.
    pub fn per_second(&mut self, now: Instant) -> u32 {
        self.advance(now);
        self.best.front().map_or(0, |(_, count)| *count).max(self.current.1)
    }

    fn advance(&mut self, now: Instant) {
        let second = now.as_nanos() / SECOND;
        if second <= self.current.0 {
            return;
        }
        if self.current.1 > 0 {
            while self.best.back().is_some_and(|(_, count)| *count <= self.current.1) {
                self.best.pop_back();
            }
            self.best.push_back(self.current);
        }
        self.current = (second, 0);
        while self.best.front().is_some_and(|(at, _)| at + REMEMBERED_SECONDS < second) {
            self.best.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_second_counts_for_ten_minutes() {
        let mut rate = BestRate::default();
        let at = |second: u64| Instant::from_millis(second * 1_000);
        assert_eq!(rate.per_second(at(0)), 0);
        let second = |rate: &mut BestRate, second: u64, count: u32| (0..count).for_each(|_| rate.add(at(second)));
        second(&mut rate, 1, 40);
        second(&mut rate, 2, 10);
        second(&mut rate, 300, 20);
        assert_eq!(rate.per_second(at(301)), 40);
        assert_eq!((rate.per_second(at(601)), rate.per_second(at(602))), (40, 20));
        assert_eq!(rate.best.len(), 1);
        assert_eq!((rate.per_second(at(900)), rate.per_second(at(901))), (20, 0));
        // The running second counts as far as it has come.
        second(&mut rate, 901, 50);
        assert_eq!(rate.per_second(at(901)), 50);
    }
}
