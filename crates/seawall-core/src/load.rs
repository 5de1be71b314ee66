//! What a deployment's answers say about its speed: moving averages for the routing policies.

use crate::time::{Duration, Instant};

/// How long a latency is remembered: after this span about a third of its weight is left.
const DECAY: Duration = Duration::from_secs(10);

/// Peak-sensitive moving average of the time to the first byte (the "peak EWMA" of Finagle): it jumps to a latency above
/// it at once and comes down slowly, so that a deployment that turned slow is left quickly and trusted again gradually.
///
/// Integers only: the decay is `elapsed / (elapsed + DECAY)`, the first-order form of the exponential.
#[derive(Clone, Copy, Debug, Default)]
pub struct PeakEwma {
    nanos: u64,
    updated: Instant,
}

impl PeakEwma {
    /// Takes a measured latency.
    pub fn observe(&mut self, now: Instant, latency: Duration) {
        let measured = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.nanos = if measured >= self.nanos { measured } else { self.blend(now, measured) };
        self.updated = now;
    }

    /// The present estimate in nanoseconds; 0 where nothing was measured yet.
    pub const fn nanos(&self) -> u64 {
        self.nanos
    }

    fn blend(&self, now: Instant, measured: u64) -> u64 {
        let elapsed = now.since(self.updated).as_nanos();
        let decay = DECAY.as_nanos();
        let drop = u128::from(self.nanos - measured) * elapsed / (elapsed + decay);
        self.nanos - u64::try_from(drop).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_up_and_comes_down_slowly() {
        let mut ewma = PeakEwma::default();
        ewma.observe(Instant::ZERO, Duration::from_nanos(100));
        ewma.observe(Instant::from_millis(1), Duration::from_nanos(1_100));
        assert_eq!(ewma.nanos(), 1_100);
        // Half of the way down after one decay span.
        ewma.observe(Instant::from_millis(10_001), Duration::from_nanos(100));
        assert_eq!(ewma.nanos(), 600);
    }
}
