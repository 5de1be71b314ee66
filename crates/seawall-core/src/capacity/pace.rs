//! How fast a deployment completes, and what it refused: what every method with a window needs.

use crate::time::{Duration, Instant};
use alloc::collections::VecDeque;
use libm::{floor, round};

/// Completions that are remembered.
const REMEMBERED: usize = 512;
/// The share of what was in flight at a refusal that is sent until the refusal is old; of up to five all are.
const KEPT_AT_REFUSAL: f64 = 0.9;
const FIRST_ROOF: Duration = Duration::from_secs(10);
/// Answers below a bound, with work waiting, before it rises; the second where the last rise was refused.
const FIRST_RISE: u32 = 8;
const LATER_RISE: u32 = 16;
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
///
/// Where others send to the same upstream, what was in flight from here says little about what it takes: one refused alone
/// may have met a full house. So the bound rises by a tenth, or one, with every eight answers below it while work waits;
/// a refusal that follows a rise makes the next one wait for twice as many.
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
    /// Answers below the bound since it was set or last rose, and after how many of them it rises.
    answers: u32,
    rises_after: u32,
    has_risen: bool,
}

impl Default for Roof {
    fn default() -> Self {
        let at = f64::INFINITY;
        let (since, until) = (Instant::ZERO, Instant::ZERO);
        let (answers, rises_after, has_risen) = (0, FIRST_RISE, false);
        Self { at, least: 1.0, since, answered: true, until, length: FIRST_ROOF, answers, rises_after, has_risen }
    }
}

impl Roof {
    /// Refused with `in_flight` others there. The bound from now on.
    pub(super) fn refuse(&mut self, now: Instant, in_flight: u32) -> f64 {
        let at = round(KEPT_AT_REFUSAL * f64::from(in_flight)).max(1.0);
        if !core::mem::take(&mut self.answered) {
            self.at = at.max(self.least).min(self.at);
            return self.at(now);
        }
        // What is refused under a roof, too, is refused for its rate: only its end can show that the roof is in the way.
        if now >= self.until {
            let is_again = self.at.is_finite() && now < self.until + self.length;
            self.length = if is_again { (self.length * 2).min(LONGEST_ROOF) } else { FIRST_ROOF };
        }
        self.rises_after = if core::mem::take(&mut self.has_risen) { LATER_RISE } else { FIRST_RISE };
        self.answers = 0;
        (self.at, self.least, self.since) = (at, at / 2.0, now);
        self.until = now + self.length;
        self.at
    }

    /// What was sent at `sent` has been answered; `waiting`: while work waits. Whether the bound has risen.
    pub(super) fn answer(&mut self, now: Instant, sent: Instant, waiting: bool) -> bool {
        let says_something = sent > self.since;
        self.answered |= says_something;
        self.answers += u32::from(says_something && waiting && now < self.until);
        let rises = self.answers >= self.rises_after;
        if rises {
            (self.answers, self.has_risen) = (0, true);
            self.at += (self.at / 10.0).max(1.0);
        }
        rises
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
        assert_eq!(whole(roof.refuse(Instant::ZERO, 72)), 65);
        assert_eq!(roof.lifts(Instant::ZERO), Some(Instant::from_millis(10_000)));
        assert!(roof.at(Instant::from_millis(10_000)).is_infinite());
        assert_eq!(whole(roof.refuse(Instant::ZERO, 60)), 54, "another one of the same");
        assert_eq!(whole(roof.refuse(Instant::ZERO, 1)), 32, "half of what the first one said");
        assert_eq!(roof.lifts(Instant::ZERO), Some(Instant::from_millis(10_000)), "for no longer");
        roof.answer(Instant::ZERO, Instant::ZERO, false);
        assert_eq!(whole(roof.refuse(Instant::ZERO, 1)), 32, "it was sent before");
        roof.answer(Instant::from_millis(1), Instant::from_millis(1), false);
        assert_eq!(whole(roof.refuse(Instant::from_millis(2_000), 60)), 54);
        assert_eq!(
            roof.lifts(Instant::from_millis(2_000)),
            Some(Instant::from_millis(12_000)),
            "no longer under a roof"
        );
        roof.answer(Instant::from_millis(2_001), Instant::from_millis(2_001), false);
        assert_eq!(whole(roof.refuse(Instant::from_millis(13_000), 1)), 1);
        assert_eq!(roof.lifts(Instant::from_millis(13_000)), Some(Instant::from_millis(33_000)), "needed again soon");
        roof.answer(Instant::from_millis(13_001), Instant::from_millis(13_001), false);
        roof.refuse(Instant::from_millis(60_000), 1);
        assert_eq!(roof.lifts(Instant::from_millis(60_000)), Some(Instant::from_millis(70_000)), "something new");
    }

    #[test]
    fn a_roof_rises_with_what_is_answered_below_it() {
        let at = Instant::from_millis;
        let rises = |roof: &mut Roof, from_ms: u64, answers: u64, waiting: bool| {
            (from_ms..from_ms + answers).filter(|ms| roof.answer(at(*ms), at(*ms), waiting)).count()
        };
        let mut roof = Roof::default();
        roof.refuse(Instant::ZERO, 1);
        assert_eq!(rises(&mut roof, 10, 8, false), 0, "nothing waits");
        assert_eq!(rises(&mut roof, 20, 7, true), 0);
        assert_eq!((rises(&mut roof, 27, 1, true), whole(roof.at(at(30)))), (1, 2));
        roof.refuse(at(100), 2);
        assert_eq!(whole(roof.at(at(100))), 2);
        assert_eq!((rises(&mut roof, 101, 15, true), rises(&mut roof, 116, 1, true)), (0, 1), "that rise was refused");
        // Refused twice with no rise between: the room is shared.
        roof.refuse(at(200), 2);
        assert_eq!(rises(&mut roof, 201, 1, true), 0);
        roof.refuse(at(300), 30);
        assert_eq!((rises(&mut roof, 290, 11, true), whole(roof.at(at(301)))), (0, 27), "sent before it");
        assert_eq!((rises(&mut roof, 301, 16, true), whole(roof.at(at(320)))), (2, 32), "27 x 1.1 x 1.1");
    }

    #[test]
    fn a_window_is_whole_and_at_least_one() {
        assert_eq!([0.0, 1.9, 5.5, f64::INFINITY].map(whole), [1, 1, 5, 2_147_483_648]);
    }
}
