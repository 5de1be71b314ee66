//! How long the callers of a tenant wait, learned from those who left and did not come back.
//!
//! A client that hangs up at its own attempt timeout and asks again has not lost its patience: only who stays away counts.
//! The first decile is taken: an answer that most callers no longer wait for is capacity that somebody else needed
//! (of three deciles tried in the prototype of this engine it lost least).

use crate::time::Duration;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

const KEPT: usize = 64;
/// Below so many departures nothing is learned: single ones say nothing.
const FEWEST: usize = 16;
/// What is learned is never less: who leaves at once has not waited for us.
const LEAST: Duration = Duration::from_secs(1);

/// The last departures of a tenant's callers.
#[derive(Clone, Debug, Default)]
pub struct Patience {
    latest: VecDeque<Duration>,
    learned: Option<Duration>,
}

impl Patience {
    /// A caller left after this time for good.
    pub fn observe(&mut self, after: Duration) {
        if self.latest.len() == KEPT {
            self.latest.pop_front();
        }
        self.latest.push_back(after);
        if self.latest.len() >= FEWEST {
            let mut sorted: Vec<Duration> = self.latest.iter().copied().collect();
            sorted.sort_unstable();
            self.learned = sorted.get(sorted.len() / 10).map(|tenth| (*tenth).max(LEAST));
        }
    }

    /// How long nine of ten who left had waited; `None` while too few have left.
    pub const fn learned(&self) -> Option<Duration> {
        self.learned
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_decile_of_the_last_departures() {
        let mut patience = Patience::default();
        (1..16).for_each(|second| patience.observe(Duration::from_secs(second)));
        assert_eq!(patience.learned(), None);
        patience.observe(Duration::from_secs(16));
        assert_eq!(patience.learned(), Some(Duration::from_secs(2)));
        (0..64).for_each(|_| patience.observe(Duration::from_millis(10)));
        assert_eq!((patience.learned(), patience.latest.len()), (Some(Duration::from_secs(1)), 64));
    }
}
