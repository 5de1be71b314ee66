//! How fast a deployment completes, and what it refused: what every method with a window needs.

use crate::time::{Duration, Instant};
use alloc::collections::VecDeque;
use libm::floor;

/// Completions that are remembered.
const REMEMBERED: usize = 512;
/// The share of what was in flight at a refusal that is sent until the refusal is old.
const KEPT_AT_REFUSAL: f64 = 0.9;
const FIRST_ROOF: Duration = Duration::from_secs(10);
const LONGEST_ROOF: Duration = Duration::from_secs(320);

/// Completions of late and how long they took.
#[derive(Clone, Debug, Default)]
pub(super) struct Pace {
    done: VecDeque<Instant>,
    residence: f64,
    latest: f64,
}

impl Pace {
    /// An attempt that took `residence` seconds completed.
    pub(super) fn complete(&mut self, now: Instant, residence: f64) {
        let weight = if self.done.is_empty() { 1.0 } else { 1.0 / 12.0 };
        self.residence += (residence - self.residence) * weight;
        self.latest = residence;
        if self.done.len() == REMEMBERED {
            self.done.pop_front();
        }
        self.done.push_back(now);
    }

    /// From sending to the end, in seconds, over about the last dozen.
    pub(super) const fn residence(&self) -> f64 {
        self.residence
    }

    /// That of the last one.
    pub(super) const fn latest(&self) -> f64 {
        self.latest
    }

    /// Completions per second since a window that was set at `set` has shown its effect, which takes a residence; from
    /// at least `least` of them and one and a half residences, as they may come in bursts.
    pub(super) fn rate_since(&self, set: Instant, least: usize) -> Option<f64> {
        let shown = set + Duration::from_secs_f64(self.residence.clamp(0.0, 1e6));
        let from = shown.max(*self.done.front()?);
        let completed = self.done.iter().rev().take_while(|at| **at > from).count();
        let span = seconds(self.done.back()?.since(from));
        let enough = completed >= least && span > 0.0 && span >= 1.5 * self.residence;
        enough.then(|| number(completed) / span)
    }

    /// Completions per second over the last `least`, or more where these span less than one and a half residences.
    pub(super) fn rate_of_last(&self, least: usize) -> Option<f64> {
        let latest = *self.done.back()?;
        let spans = self.done.iter().rev().enumerate().map(|(before, at)| (number(before), seconds(latest.since(*at))));
        let enough = 1.5 * self.residence;
        let (completed, span) = spans.skip(least).find(|(_, span)| *span > 0.0 && *span >= enough)?;
        Some(completed / span)
    }
}

/// After a refusal: a bit less than was in flight then, until nothing has been refused for ten seconds; for twice as
/// long where it is soon needed again.
///
/// One that refuses everything for a while (a quota, a restart) does not say how much it takes at once. So refusals
/// count as one until something that was sent after the first of them is answered, and bring the bound down to half of
/// what the first one said at the least.
#[derive(Clone, Copy, Debug)]
pub(super) struct Roof {
    at: f64,
    least: f64,
    /// When the first refusal came since which nothing has been answered.
    since: Instant,
    /// Whether something that was sent since then has been answered.
    answered: bool,
    until: Instant,
    length: Duration,
}

impl Default for Roof {
    fn default() -> Self {
        let at = f64::INFINITY;
        Self { at, least: 1.0, since: Instant::ZERO, answered: true, until: Instant::ZERO, length: FIRST_ROOF }
    }
}

impl Roof {
    /// Refused with `in_flight` others there. The bound from now on.
    pub(super) fn refuse(&mut self, now: Instant, in_flight: u32) -> f64 {
        let at = floor(KEPT_AT_REFUSAL * f64::from(in_flight)).max(1.0);
        if !core::mem::take(&mut self.answered) {
            self.at = at.max(self.least).min(self.at);
            return self.at(now);
        }
        // What is refused under a roof, too, is refused for its rate: only its end can show that the roof is in the way.
        if now >= self.until {
            let is_again = self.at.is_finite() && now < self.until + self.length;
            self.length = if is_again { (self.length * 2).min(LONGEST_ROOF) } else { FIRST_ROOF };
        }
        (self.at, self.least, self.since) = (at, at / 2.0, now);
        self.until = now + self.length;
        self.at
    }

    /// What was sent then has been answered.
    pub(super) fn answer(&mut self, sent: Instant) {
        self.answered |= sent > self.since;
    }

    /// The bound at `now`; infinite for none.
    pub(super) fn at(&self, now: Instant) -> f64 {
        if now < self.until { self.at } else { f64::INFINITY }
    }

    /// When the bound is lifted, if there is one.
    pub(super) fn lifts(&self, now: Instant) -> Option<Instant> {
        (now < self.until).then_some(self.until)
    }
}

/// A span in seconds.
pub(super) const fn seconds(span: Duration) -> f64 {
    span.as_secs_f64()
}

/// A count as a number.
pub(super) fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// A number as a window: its whole part, at least 1.
pub(super) fn whole(window: f64) -> u32 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is between 1 and 2^31")]
    let whole = floor(window + 1e-6).clamp(1.0, 2_147_483_648.0) as u32;
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_known_after_enough_and_long_enough() {
        let mut pace = Pace::default();
        for step in 1..=20 {
            pace.complete(Instant::from_millis(100 * step), 0.2);
        }
        assert!((pace.residence() - 0.2).abs() < 1e-9);
        assert_eq!(pace.rate_of_last(10), Some(10.0));
        assert_eq!(pace.rate_of_last(20), None);
        // Set at 1 s, shown at 1.2 s: 8 completions in 0.8 s since.
        let rate = pace.rate_since(Instant::from_millis(1_000), 8).unwrap();
        assert!((rate - 10.0).abs() < 1e-9, "{rate}");
        assert_eq!(pace.rate_since(Instant::from_millis(1_000), 9), None);
    }

    #[test]
    fn a_roof_lasts_longer_where_it_is_soon_needed_again() {
        let mut roof = Roof::default();
        assert!(roof.at(Instant::ZERO).is_infinite());
        assert_eq!(whole(roof.refuse(Instant::ZERO, 72)), 64);
        assert_eq!(roof.lifts(Instant::ZERO), Some(Instant::from_millis(10_000)));
        assert!(roof.at(Instant::from_millis(10_000)).is_infinite());
        assert_eq!(whole(roof.refuse(Instant::ZERO, 60)), 54, "another one of the same");
        assert_eq!(whole(roof.refuse(Instant::ZERO, 1)), 32, "half of what the first one said");
        assert_eq!(roof.lifts(Instant::ZERO), Some(Instant::from_millis(10_000)), "for no longer");
        roof.answer(Instant::ZERO);
        assert_eq!(whole(roof.refuse(Instant::ZERO, 1)), 32, "it was sent before");
        roof.answer(Instant::from_millis(1));
        assert_eq!(whole(roof.refuse(Instant::from_millis(2_000), 60)), 54);
        assert_eq!(
            roof.lifts(Instant::from_millis(2_000)),
            Some(Instant::from_millis(12_000)),
            "no longer under a roof"
        );
        roof.answer(Instant::from_millis(2_001));
        assert_eq!(whole(roof.refuse(Instant::from_millis(13_000), 1)), 1);
        assert_eq!(roof.lifts(Instant::from_millis(13_000)), Some(Instant::from_millis(33_000)), "needed again soon");
        roof.answer(Instant::from_millis(13_001));
        roof.refuse(Instant::from_millis(60_000), 1);
        assert_eq!(roof.lifts(Instant::from_millis(60_000)), Some(Instant::from_millis(70_000)), "something new");
    }

    #[test]
    fn a_window_is_whole_and_at_least_one() {
        assert_eq!([0.0, 1.9, 5.5, f64::INFINITY].map(whole), [1, 1, 5, 2_147_483_648]);
    }
}
