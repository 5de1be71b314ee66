//! Order statistics over the latest values of something.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// The latest `KEPT` values, in the order in which they came and by size.
///
/// Exact quantiles of few values rather than an average or a sketch of many: they follow a change within `KEPT` values,
/// a single extreme one moves none of them, and the same values give the same result on every machine. Takes up memory
/// for what it has seen, at most for `KEPT` values twice.
#[derive(Clone, Debug, Default)]
pub struct Latest<T, const KEPT: usize> {
    latest: VecDeque<T>,
    sorted: Vec<T>,
}

impl<T: Copy + Ord, const KEPT: usize> Latest<T, KEPT> {
    /// Takes a value; the oldest one gives way.
    pub fn observe(&mut self, value: T) {
        if self.latest.len() == KEPT
            && let Some(oldest) = self.latest.pop_front()
            && let Ok(at) = self.sorted.binary_search(&oldest)
        {
            self.sorted.remove(at);
        }
        self.latest.push_back(value);
        let at = self.sorted.partition_point(|other| *other <= value);
        self.sorted.insert(at, value);
    }

    /// How many values it holds.
    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// The smallest value that at least `part` of `of` values do not exceed; `None` where it holds none, or where
    /// `part` is 0 or more than `of`.
    pub fn quantile(&self, part: usize, of: usize) -> Option<T> {
        let rank = (self.sorted.len() * part).div_ceil(of.max(1));
        self.sorted.get(rank.checked_sub(1)?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_latest_values() {
        let mut latest: Latest<u32, 10> = Latest::default();
        assert_eq!((latest.quantile(1, 2), latest.is_empty()), (None, true));
        (1..=10).rev().for_each(|value| latest.observe(value * 10));
        let quantiles = |latest: &Latest<u32, 10>| [1, 5, 8, 10].map(|part| latest.quantile(part, 10));
        assert_eq!(quantiles(&latest), [10, 50, 80, 100].map(Some));
        assert_eq!((latest.quantile(0, 10), latest.quantile(11, 10)), (None, None));
        // The six largest came first, and go first.
        (0..6).for_each(|_| latest.observe(7));
        assert_eq!(quantiles(&latest), [7, 7, 20, 40].map(Some));
        assert_eq!((latest.len(), latest.latest.len()), (10, 10));
    }
}
