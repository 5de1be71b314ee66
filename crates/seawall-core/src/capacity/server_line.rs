//! What an inference server itself says: how many requests it works on, and how many it keeps waiting.
//!
//! It tells once a second or so, and what it tells is a second old by then. So it is no window but a ceiling on one: who
//! keeps more waiting than a small reserve twice in a row is sent less, down to our share of what it works on and that
//! reserve; whose line is empty may have a quarter more each time, until the ceiling is out of the way. In between it
//! stays. What was told a few seconds ago is not heeded any more, and discovery goes on by itself.

use crate::time::{Duration, Instant};

/// After so long without a word it says nothing: three polls that failed.
const STALE: Duration = Duration::from_secs(4);
/// The reserve is an eighth of what is worked on: what ends is replaced before we hear of it.
const RESERVE_DIVISOR: u32 = 8;
/// A quarter more each time.
const GROWTH_DIVISOR: u32 = 4;

/// What a server says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerLoad {
    /// Requests that it works on, whoever sent them.
    pub running: u32,
    /// Requests that it keeps waiting.
    pub waiting: u32,
}

/// The ceiling on what is in flight at one deployment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ServerLine {
    ceiling: Option<u32>,
    /// Whether too many waited when it told last.
    was_long: bool,
    until: Instant,
}

impl ServerLine {
    /// It has told this while `in_flight` attempts were there and discovery would allow `limit` (`None`: any number).
    pub(super) fn tell(&mut self, now: Instant, load: ServerLoad, in_flight: u32, limit: Option<u32>) {
        if now >= self.until {
            (self.ceiling, self.was_long) = (None, false);
        }
        self.until = now + STALE;
        let reserve = (load.running / RESERVE_DIVISOR).max(1);
        // One that works on nothing stands still: that says nothing of how much it takes.
        let is_long = load.waiting > reserve && load.running > 0;
        if is_long && self.was_long {
            let all = u64::from(load.running) + u64::from(load.waiting);
            let share = (u64::from(in_flight) * u64::from(load.running)).div_ceil(all);
            let to = u32::try_from(share).unwrap_or(u32::MAX).saturating_add(reserve);
            self.ceiling = Some(self.ceiling.map_or(to, |ceiling| ceiling.min(to)));
        } else if load.waiting == 0 {
            let grown = self.ceiling.map(|ceiling| ceiling.saturating_add((ceiling / GROWTH_DIVISOR).max(1)));
            self.ceiling = grown.filter(|ceiling| limit.is_none_or(|limit| *ceiling < limit));
        }
        self.was_long = is_long;
    }

    /// The ceiling at `now`, where there is one.
    pub(super) fn limit(&self, now: Instant) -> Option<u32> {
        self.ceiling.filter(|_| now < self.until)
    }

    /// When it is gone if nothing more is told.
    pub(super) fn ends_at(&self, now: Instant) -> Option<Instant> {
        self.limit(now).map(|_| self.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn at(seconds: u64) -> Instant {
        Instant::from_millis(1_000 * seconds)
    }

    fn told(line: &mut ServerLine, second: u64, (running, waiting): (u32, u32), in_flight: u32) -> Option<u32> {
        line.tell(at(second), ServerLoad { running, waiting }, in_flight, Some(100));
        line.limit(at(second))
    }

    #[test]
    fn a_line_that_stays_long_brings_it_down_to_what_is_worked_on_and_a_reserve() {
        let mut line = ServerLine::default();
        assert_eq!(told(&mut line, 1, (32, 28), 60), None, "once may be a burst");
        assert_eq!(told(&mut line, 2, (32, 28), 60), Some(36));
        assert_eq!(told(&mut line, 3, (32, 20), 52), Some(36), "what is in flight drains");
        assert_eq!(told(&mut line, 4, (32, 4), 36), Some(36), "the reserve waits: it stays");
        // The server takes more than before: the reserve is worked on, and it follows.
        assert_eq!(told(&mut line, 5, (36, 0), 36), Some(45));
        // Others take half of it: our share.
        assert_eq!(told(&mut line, 6, (32, 32), 32), Some(45));
        assert_eq!(told(&mut line, 7, (32, 32), 32), Some(20));
    }

    #[test]
    fn an_empty_line_lifts_it_and_silence_ends_it() {
        let mut line = ServerLine::default();
        told(&mut line, 1, (4, 4), 8);
        assert_eq!(told(&mut line, 2, (4, 4), 8), Some(5));
        let mut grown: Vec<_> = (3..20).map(|second| told(&mut line, second, (4, 0), 4)).collect();
        grown.dedup();
        let steps = [6, 7, 8, 10, 12, 15, 18, 22, 27, 33, 41, 51, 63, 78, 97].map(Some);
        assert_eq!(grown, [&steps[..], &[None]].concat());
        told(&mut line, 30, (4, 4), 8);
        assert_eq!(told(&mut line, 31, (4, 4), 8), Some(5));
        assert_eq!((line.limit(at(34)), line.ends_at(at(34))), (Some(5), Some(at(35))));
        assert_eq!((line.limit(at(35)), line.ends_at(at(35))), (None, None));
        assert_eq!(told(&mut line, 36, (4, 4), 8), None, "and begins anew");
    }

    #[test]
    fn one_that_stands_still_says_nothing_and_numbers_have_no_bound() {
        let mut line = ServerLine::default();
        for second in 1..4 {
            assert_eq!(told(&mut line, second, (0, 50), 50), None);
        }
        for second in 4..6 {
            told(&mut line, second, (u32::MAX, u32::MAX), u32::MAX);
        }
        assert_eq!(line.limit(at(5)), Some(2_684_354_559), "half of it, and the reserve");
        told(&mut line, 6, (1, u32::MAX), 0);
        assert_eq!(told(&mut line, 7, (1, u32::MAX), 0), Some(1), "at least one");
    }
}
