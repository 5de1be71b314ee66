//! The draws of a random world: everything follows from one seed.

use crate::random::{Stream, nanos};

/// One stream of a swarm's seed.
#[derive(Debug)]
pub(super) struct Dice(Stream);

impl Dice {
    pub(super) fn new(seed: u64, purpose: &str) -> Self {
        Self(Stream::new(seed, &format!("swarm/{purpose}")))
    }

    /// A whole number, both ends included.
    pub(super) fn whole(&mut self, low: u32, high: u32) -> u32 {
        let range = high.saturating_sub(low) as usize + 1;
        low + u32::try_from(self.0.below(range)).unwrap_or(0)
    }

    /// A number between two.
    pub(super) fn real(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.0.unit()
    }

    /// Whether something is so that is so in this part of worlds.
    pub(super) fn chance(&mut self, part: f64) -> bool {
        self.0.chance(part)
    }

    /// One of several.
    pub(super) fn one<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.0.below(choices.len())]
    }

    /// A seed for something else.
    pub(super) fn seed(&mut self) -> u64 {
        self.0.whole()
    }
}

/// A float as a whole number; at least 1.
pub(super) fn rounded(value: f64) -> u32 {
    u32::try_from(nanos(libm::round(value))).unwrap_or(u32::MAX).max(1)
}
