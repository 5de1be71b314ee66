//! How much a deployment may have in flight.
//!
//! Three bounds, the smallest wins: what the operator told; a stated or assumed wait after a throttle answer, during
//! which nothing is sent; and a ceiling learned from throttle answers. The ceiling starts at what was in flight when the
//! upstream refused, grows by a quarter for each half second without a refusal, and is forgotten at four times its
//! start: it errs upwards, because too small a window costs goodput and too large a one costs a refusal.

use crate::settings::Capacity;
use crate::time::{Duration, Instant};

/// The wait that is assumed after a throttle answer that states none.
pub const UNSTATED_WAIT: Duration = Duration::from_millis(100);
const GROWTH_INTERVAL: Duration = Duration::from_millis(500);
/// A quarter, each interval.
const GROWTH_DIVISOR: u32 = 4;
const FORGET_FACTOR: u32 = 4;

/// The capacity state of one deployment.
#[derive(Clone, Debug)]
pub struct CapacityState {
    told: Option<u32>,
    in_flight: u32,
    closed_until: Instant,
    ceiling: Option<Ceiling>,
}

#[derive(Clone, Copy, Debug)]
struct Ceiling {
    start: u32,
    current: u32,
    grows_at: Instant,
}

impl CapacityState {
    /// Nothing in flight, nothing learned.
    pub fn new(capacity: Capacity) -> Self {
        Self { told: capacity.size(), in_flight: 0, closed_until: Instant::ZERO, ceiling: None }
    }

    /// Attempts in flight.
    pub const fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// When its stated wait is over; in the past where there is none.
    pub const fn closed_until(&self) -> Instant {
        self.closed_until
    }

    /// The present bound on attempts in flight, where there is one.
    pub fn limit(&self) -> Option<u32> {
        let learned = self.ceiling.map(|ceiling| ceiling.current);
        self.told.into_iter().chain(learned).min()
    }

    /// Whether one more attempt may start now.
    pub fn has_room(&mut self, now: Instant) -> bool {
        self.takes(now, self.in_flight)
    }

    /// Whether one more attempt might start now if `in_flight` were there.
    pub fn takes(&mut self, now: Instant, in_flight: u32) -> bool {
        self.grow(now);
        now >= self.closed_until && self.limit().is_none_or(|limit| in_flight < limit)
    }

    /// When room may appear without an attempt ending: the end of a stated wait, or the ceiling's next step.
    ///
    /// Always later than `now`.
    pub fn opens_at(&mut self, now: Instant) -> Option<Instant> {
        self.grow(now);
        if self.closed_until > now {
            return Some(self.closed_until);
        }
        let ceiling = self.ceiling?;
        let told_has_room = self.told.is_none_or(|told| self.in_flight < told);
        (told_has_room && self.in_flight >= ceiling.current).then_some(ceiling.grows_at)
    }

    /// An attempt started.
    pub fn started(&mut self) {
        self.in_flight += 1;
    }

    /// An attempt ended, whatever its result.
    pub fn ended(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// The upstream refused for want of capacity. Call it after [`Self::ended`]: what is still in flight is what it had.
    pub fn throttled(&mut self, now: Instant, wait: Option<Duration>) {
        self.closed_until = self.closed_until.max(now + wait.unwrap_or(UNSTATED_WAIT));
        let start = self.in_flight.max(1);
        self.ceiling = Some(Ceiling { start, current: start, grows_at: self.closed_until + GROWTH_INTERVAL });
    }

    fn grow(&mut self, now: Instant) {
        while let Some(ceiling) = &mut self.ceiling {
            if ceiling.grows_at > now {
                return;
            }
            ceiling.current += (ceiling.current / GROWTH_DIVISOR).max(1);
            ceiling.grows_at = ceiling.grows_at + GROWTH_INTERVAL;
            if ceiling.current >= ceiling.start.saturating_mul(FORGET_FACTOR) {
                self.ceiling = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ceiling_that_has_grown_meanwhile_opens_at_its_next_step() {
        let mut state = CapacityState::new(Capacity::Standard { size: None });
        for _ in 0..6 {
            state.started();
        }
        state.throttled(Instant::ZERO, Some(Duration::ZERO));
        // Grown to 7 by now, with 8 in flight: the next step, not the one that has passed.
        state.started();
        state.started();
        assert_eq!(state.opens_at(Instant::from_millis(700)), Some(Instant::from_millis(1_000)));
        assert_eq!(state.opens_at(Instant::from_millis(1_200)), Some(Instant::from_millis(1_500)));
        // Where time itself ends there is no later step.
        state.throttled(Instant::MAX, None);
        assert_eq!(state.opens_at(Instant::MAX), None);
    }

    #[test]
    fn told_size_bounds() {
        let mut state = CapacityState::new(Capacity::Provisioned { size: 2 });
        let now = Instant::ZERO;
        state.started();
        assert!(state.has_room(now));
        state.started();
        assert!(!state.has_room(now));
        assert_eq!(state.opens_at(now), None);
        state.ended();
        assert!(state.has_room(now));
    }

    #[test]
    fn a_throttle_closes_for_its_wait_and_leaves_a_ceiling_that_grows_and_is_forgotten() {
        let mut state = CapacityState::new(Capacity::Standard { size: None });
        for _ in 0..6 {
            state.started();
        }
        state.ended();
        state.throttled(Instant::from_millis(1_000), Some(Duration::from_millis(80)));
        assert!(!state.has_room(Instant::from_millis(1_079)));
        assert_eq!(state.opens_at(Instant::from_millis(1_000)), Some(Instant::from_millis(1_080)));
        // Five were served when it refused: no sixth until the ceiling grows.
        assert!(!state.has_room(Instant::from_millis(1_080)));
        assert_eq!(state.limit(), Some(5));
        assert_eq!(state.opens_at(Instant::from_millis(1_080)), Some(Instant::from_millis(1_580)));
        assert!(state.has_room(Instant::from_millis(1_580)));
        assert_eq!(state.limit(), Some(6));
        // 5 6 7 8 10 12 15 18 (22 >= 20: forgotten at the eighth step).
        assert!(state.has_room(Instant::from_millis(1_080 + 500 * 7)));
        assert_eq!(state.limit(), Some(18));
        assert!(state.has_room(Instant::from_millis(1_080 + 500 * 8)));
        assert_eq!(state.limit(), None);
    }

    #[test]
    fn an_unstated_wait_is_100_ms_and_a_shorter_one_never_shortens() {
        let mut state = CapacityState::new(Capacity::Standard { size: None });
        state.throttled(Instant::ZERO, Some(Duration::from_secs(2)));
        state.throttled(Instant::ZERO, None);
        assert!(!state.has_room(Instant::from_millis(1_999)));
        assert!(state.has_room(Instant::from_millis(2_000)));
    }
}
