//! The engine's own random stream: seeded, the same on every machine.

use crate::time::Duration;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;

/// A seeded generator (PCG XSH RR 64/32, O'Neill 2014) with the few draws that the engine needs.
#[derive(Clone, Debug)]
pub struct Random(Pcg32);

impl Random {
    /// The stream of `seed`.
    pub fn new(seed: u64) -> Self {
        Self(Pcg32::seed_from_u64(seed))
    }

    /// A whole number in `0..bound`; 0 where `bound` is 0. Lemire's multiply-shift: the bias is below 2^-32 x bound.
    pub fn below(&mut self, bound: u32) -> u32 {
        let product = u64::from(self.0.next_u32()) * u64::from(bound);
        u32::try_from(product >> 32).expect("the high half fits")
    }

    /// A span in `low..=high`, in whole milliseconds; `low` where the range is empty.
    pub fn span(&mut self, low: Duration, high: Duration) -> Duration {
        let range = u32::try_from(high.saturating_sub(low).as_millis()).unwrap_or(u32::MAX).min(u32::MAX - 1);
        low.saturating_add(Duration::from_millis(u64::from(self.below(range + 1))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_stay_in_range_and_repeat() {
        let (mut first, mut second) = (Random::new(7), Random::new(7));
        for _ in 0..1_000 {
            let drawn = first.span(Duration::from_secs(2), Duration::from_secs(8));
            assert!(drawn >= Duration::from_secs(2) && drawn <= Duration::from_secs(8));
            assert_eq!(drawn, second.span(Duration::from_secs(2), Duration::from_secs(8)));
        }
        assert_eq!(first.below(0), 0);
        assert_eq!(first.span(Duration::from_secs(3), Duration::ZERO), Duration::from_secs(3));
    }
}
