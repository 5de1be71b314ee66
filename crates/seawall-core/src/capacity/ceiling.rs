//! `ceiling`: no window, only what refusals say.
//!
//! The ceiling starts at what was in flight when the upstream refused, grows by a quarter for each half second without a
//! refusal, and is forgotten at four times its start: too small a window costs goodput and too large a one a refusal.

use super::{Discovery, Ending, Moment};
use crate::id::AttemptId;
use crate::time::{Duration, Instant};

const GROWTH_INTERVAL: Duration = Duration::from_millis(500);
/// A quarter, each interval.
const GROWTH_DIVISOR: u32 = 4;
const FORGET_FACTOR: u32 = 4;

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ceiling {
    refused: Option<Refused>,
}

#[derive(Clone, Copy, Debug)]
struct Refused {
    in_flight: u32,
    grows_at: Instant,
}

impl Ceiling {
    /// The ceiling at `now` and its next step, where there still is one. Fewer than ten steps are ever counted.
    fn present(&self, now: Instant) -> Option<(u32, Instant)> {
        let Refused { in_flight, mut grows_at } = self.refused?;
        let mut current = in_flight;
        while grows_at <= now {
            current += (current / GROWTH_DIVISOR).max(1);
            grows_at = grows_at + GROWTH_INTERVAL;
            if current >= in_flight.saturating_mul(FORGET_FACTOR) {
                return None;
            }
        }
        Some((current, grows_at))
    }
}

impl Discovery for Ceiling {
    fn ended(&mut self, moment: Moment, _attempt: AttemptId, how: Ending) {
        if how == Ending::Throttled {
            // What is still in flight is what it had when it refused.
            let in_flight = moment.in_flight.max(1);
            self.refused = Some(Refused { in_flight, grows_at: moment.closed_until + GROWTH_INTERVAL });
        }
    }

    fn limit(&self, now: Instant) -> Option<u32> {
        self.present(now).map(|(current, _)| current)
    }

    fn rises_at(&self, now: Instant) -> Option<Instant> {
        self.present(now).map(|(_, grows_at)| grows_at)
    }
}
