//! What [`Likelihood`](super::likelihood::Likelihood) does with its window for a while to see what comes of it.

use crate::time::{Duration, Instant};

/// When something may be done next, and how long the pause after that is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pause {
    pub(super) next: Instant,
    pub(super) length: Duration,
}

/// A smaller window for a moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dip {
    pub(super) window: f64,
    pub(super) reached: bool,
    pub(super) completed: f64,
}

/// The window at which growth by ranks began, and the rate there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Proof {
    pub(super) window: f64,
    pub(super) rate: f64,
}

/// A cut whose effect on the rate is not known yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    pub(super) from: f64,
    pub(super) rate: f64,
    pub(super) at: Instant,
    pub(super) completed: f64,
    pub(super) drained: bool,
}

/// Another window, tried by the rate alone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trial {
    pub(super) from: f64,
    pub(super) rate: f64,
}

impl Pause {
    pub(super) const fn new(length: Duration) -> Self {
        Self { next: Instant::ZERO, length }
    }

    /// It was done in vain: the next pause is twice as long.
    pub(super) fn double(&mut self, now: Instant, longest: Duration) {
        self.next = now + self.length;
        self.length = (self.length * 2).min(longest);
    }
}
