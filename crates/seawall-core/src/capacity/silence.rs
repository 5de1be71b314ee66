//! What a full window does while nothing ends.
//!
//! Ranks and rates come with completions; answers of minutes give none for minutes, and what waits behind a window that
//! was set at less work would wait for them in vain. So a window that has been full for a while without an end doubles,
//! and doubles again. As long as nothing has ever shown that the window is large enough, that takes two seconds each, or a
//! sixth of the callers' patience; afterwards a third of it, since a brown-out is silent too. Where nearly all answers have
//! begun, half a second is enough at first; where some have and a good part has not, the others wait upstream: it stays.

use crate::id::AttemptId;
use crate::time::{Duration, Instant};
use alloc::collections::BTreeSet;

/// The first doublings, where patience is long.
const UNJUDGED: Duration = Duration::from_secs(2);
/// The same where nearly all that is in flight is being answered.
const ANSWERED: Duration = Duration::from_millis(500);
/// A good part waits if less than this share of those in flight is being answered.
const NEARLY_ALL: f64 = 0.8;
/// More doublings than any window takes.
const MOST: u32 = 12;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Silence {
    /// Since when the window has been full without an end.
    since: Option<Instant>,
    answering: BTreeSet<AttemptId>,
    /// Whether some wait upstream although others are being answered.
    waits_upstream: bool,
    /// Whether nearly all are being answered.
    is_answered: bool,
    /// Whether anything has shown that a window is large enough.
    pub(super) is_judged: bool,
}

impl Silence {
    /// The window is full.
    pub(super) fn full(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    /// An answer began.
    pub(super) fn answers(&mut self, now: Instant, attempt: AttemptId, in_flight: u32) {
        self.answering.insert(attempt);
        self.judge(now, in_flight);
    }

    /// An attempt was sent as number `in_flight` of those in flight.
    pub(super) fn judge(&mut self, now: Instant, in_flight: u32) {
        let was_answered = self.is_answered;
        let answering = f64::from(u32::try_from(self.answering.len()).unwrap_or(u32::MAX));
        self.is_answered = answering > 0.0 && answering >= NEARLY_ALL * f64::from(in_flight);
        self.waits_upstream = answering > 0.0 && !self.is_answered;
        if self.is_answered && !was_answered {
            // The shorter time begins now: a window never grows at a moment that nobody was told to wake up at.
            self.since = self.since.map(|_| now);
        }
    }

    /// An attempt ended.
    pub(super) fn over(&mut self, attempt: AttemptId) {
        self.answering.remove(&attempt);
        self.since = None;
    }

    /// How often the window has doubled since it was set.
    pub(super) fn doublings(&self, now: Instant, patience: f64) -> u32 {
        let Some(since) = self.since.filter(|_| !self.waits_upstream) else { return 0 };
        let times = now.since(since).as_nanos() / self.each(patience).as_nanos().max(1);
        u32::try_from(times).map_or(MOST, |times| times.min(MOST))
    }

    /// When it is next larger; later than `now`.
    pub(super) fn rises_at(&self, now: Instant, patience: f64) -> Option<Instant> {
        let since = self.since.filter(|_| !self.waits_upstream)?;
        let done = self.doublings(now, patience);
        (done < MOST).then(|| since + self.each(patience) * (done + 1))
    }

    fn each(&self, patience: f64) -> Duration {
        if self.is_judged {
            return Duration::from_secs_f64((patience / 3.0).clamp(0.5, 1e6));
        }
        let longest = if self.is_answered { ANSWERED } else { UNJUDGED };
        longest.min(Duration::from_secs_f64((patience / 6.0).clamp(0.01, 1e6)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: f64 = 30.0;

    fn doubled(silence: &Silence, at_ms: u64) -> u32 {
        silence.doublings(Instant::from_millis(at_ms), PATIENCE)
    }

    #[test]
    fn a_full_window_doubles_each_two_seconds_until_something_ends() {
        let mut silence = Silence::default();
        assert_eq!((doubled(&silence, 9_000), silence.rises_at(Instant::ZERO, PATIENCE)), (0, None));
        silence.full(Instant::from_millis(1_000));
        silence.full(Instant::from_millis(1_400));
        assert_eq!([2_999, 3_000, 5_000, 9_000].map(|at| doubled(&silence, at)), [0, 1, 2, 4]);
        assert_eq!(silence.rises_at(Instant::from_millis(3_000), PATIENCE), Some(Instant::from_millis(5_000)));
        silence.over(AttemptId(1));
        assert_eq!(doubled(&silence, 9_000), 0);
    }

    #[test]
    fn once_judged_it_takes_a_third_of_the_patience() {
        let mut silence = Silence { is_judged: true, ..Silence::default() };
        silence.full(Instant::ZERO);
        assert_eq!([9_999, 10_000, 20_000].map(|at| doubled(&silence, at)), [0, 1, 2]);
    }

    #[test]
    fn it_stays_where_some_are_answered_and_others_wait() {
        let mut silence = Silence::default();
        silence.full(Instant::ZERO);
        for attempt in 0..4 {
            silence.answers(Instant::ZERO, AttemptId(attempt), 8);
        }
        assert_eq!((doubled(&silence, 5_000), silence.rises_at(Instant::ZERO, PATIENCE)), (0, None));
        for attempt in 4..7 {
            silence.answers(Instant::ZERO, AttemptId(attempt), 8);
        }
        assert_eq!([499, 500, 1_000].map(|at| doubled(&silence, at)), [0, 1, 2]);
    }
}
