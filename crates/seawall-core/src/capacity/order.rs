//! `order`: age ranks with paired cohorts.
//!
//! The rank by age of a completing attempt among those in flight never exceeds the slots of a first-in-first-out upstream.
//! Where many of the last ranks are near what is in flight the window follows them up, by a quarter above the largest;
//! where completions overtake each other by more than noise it comes down to them. Where they do not, the service is
//! nearly constant and ranks say too little: then a cohort of attempts at half of the window is compared with the one
//! before it, and, where that says nothing, one at 1.4 times the window. A cohort counts when all of it has completed.
//!
//! It starts at eight and grows by one with each completion until attempts take 1.7 times as long as the first ones. For
//! comparison, after the project's prototype "order plus paired windows": between random and constant service, and behind
//! upstreams that are not first in, first out, `likelihood` is better.

use super::pace::{Roof, number, seconds, whole};
use super::{Discovery, Ending, Hints, Learned, Moment};
use crate::id::AttemptId;
use crate::time::{Duration, Instant};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use libm::{ceil, floor, log};

const START: f64 = 8.0;
const REMEMBERED: usize = 128;
const TRUSTED_OVER: usize = 24;
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(32);

/// See the module.
#[derive(Debug)]
pub(super) struct Order {
    window: f64,
    flying: VecDeque<Flight>,
    /// Completions with the window nearly full and work waiting, latest last.
    done: VecDeque<Done>,
    ramp: Option<Ramp>,
    test: Option<Test>,
    tests_from: Instant,
    pause: Duration,
    next_is_up: bool,
    roof: Roof,
}

#[derive(Clone, Copy, Debug)]
struct Flight {
    attempt: AttemptId,
    sent: Instant,
    in_cohort: bool,
}

#[derive(Clone, Copy, Debug)]
struct Done {
    residence: f64,
    rank: f64,
    beside: f64,
}

#[derive(Clone, Copy, Debug)]
struct Ramp {
    first: f64,
    seen: u32,
}

#[derive(Clone, Copy, Debug)]
struct Test {
    window: f64,
    before: f64,
    size: f64,
    sent: f64,
    done: f64,
    sum: f64,
}

impl Order {
    pub(super) fn new(_hints: Hints) -> Self {
        Self {
            window: START,
            flying: VecDeque::new(),
            done: VecDeque::new(),
            ramp: Some(Ramp { first: 0.0, seen: 0 }),
            test: None,
            tests_from: Instant::ZERO,
            pause: SHORTEST_PAUSE,
            next_is_up: false,
            roof: Roof::default(),
        }
    }

    fn bound(&self, now: Instant) -> f64 {
        self.test.map_or(self.window, |test| test.window).min(self.roof.at(now)).max(1.0)
    }

    /// The last completions at about the present window, latest first.
    fn near(&self, most: usize) -> impl Iterator<Item = &Done> + Clone {
        let least = 0.7 * self.window;
        self.done.iter().rev().filter(move |done| done.beside >= least).take(most)
    }

    fn set_window(&mut self, now: Instant, window: f64) {
        self.window = window.min(self.roof.at(now)).max(1.0);
        self.done.clear();
        self.pause = SHORTEST_PAUSE;
        self.tests_from = now + SHORTEST_PAUSE;
    }

    fn ramp_up(&mut self, now: Instant, mut ramp: Ramp, residence: f64) {
        ramp.first += if ramp.seen < 4 { residence / 4.0 } else { 0.0 };
        ramp.seen += 1;
        self.ramp = Some(ramp);
        let last = self.done.iter().rev().take(4).map(|done| done.residence).sum::<f64>() / 4.0;
        if ramp.seen < 8 || self.done.len() < 4 {
            return;
        }
        if last > 1.7 * ramp.first {
            self.ramp = None;
            self.set_window(now, self.window * (ramp.first / last).max(0.5) * 1.15);
        } else {
            self.window = (self.window + 1.0).min(self.roof.at(now));
        }
    }

    fn follow_ranks_up(&mut self, now: Instant) {
        let least = (whole(self.window / 2.0) as usize).clamp(12, REMEMBERED / 2);
        let near = self.near(least);
        if near.clone().count() < least {
            return;
        }
        let high = number(near.clone().filter(|done| done.rank > 0.8 * done.beside).count()) / number(least);
        let most = near.map(|done| done.rank).fold(0.0, f64::max);
        let to = if high >= 0.18 && most >= self.window - 0.5 {
            2.0 * self.window
        } else if high >= 0.12 {
            (1.25 * most + 0.7).min(2.0 * self.window)
        } else {
            return;
        };
        if to > self.window + 0.5 {
            self.set_window(now, to);
        }
    }

    /// The slots as ranks have them, where they can be trusted.
    fn slots_by_rank(&self) -> Option<f64> {
        let near = self.near(TRUSTED_OVER);
        let overtaking = near.clone().filter(|done| done.rank >= 2.0).count();
        if near.clone().count() < TRUSTED_OVER || 5 * overtaking < TRUSTED_OVER {
            return None;
        }
        let pairs = near.clone().zip(near.clone().skip(1));
        let mut differences: Vec<f64> = pairs.map(|(one, next)| (one.residence - next.residence).abs()).collect();
        differences.sort_unstable_by(f64::total_cmp);
        let mean = near.clone().map(|done| done.residence).sum::<f64>() / number(TRUSTED_OVER);
        let most = near.map(|done| done.rank).fold(0.0, f64::max);
        (differences[differences.len() / 2] > 0.14 * mean).then_some(1.125 * most)
    }

    fn steady(&mut self, now: Instant) {
        self.follow_ranks_up(now);
        if let Some(slots) = self.slots_by_rank() {
            if self.window > 1.7 * slots + 2.5 {
                self.set_window(now, 1.3 * slots + 2.5);
            }
            return;
        }
        let least = (whole(self.window) as usize).clamp(8, REMEMBERED / 2);
        if now < self.tests_from || self.near(least).count() < least {
            return;
        }
        let before = self.near(least).map(|done| done.residence).sum::<f64>() / number(least);
        let window = if self.next_is_up { ceil(1.4 * self.window) } else { floor(self.window / 2.0).max(1.0) };
        if (window - self.window).abs() < 0.5 || window > self.roof.at(now) {
            self.next_is_up = !self.next_is_up;
            return;
        }
        let size = window.clamp(6.0, 64.0);
        self.test = Some(Test { window, before, size: floor(size), sent: 0.0, done: 0.0, sum: 0.0 });
    }

    fn judge(&mut self, now: Instant, test: Test) {
        self.test = None;
        self.done.clear();
        let after = test.sum / test.done;
        self.tests_from = now + self.pause;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        if test.window > self.window {
            self.next_is_up = false;
            if log(after / test.before) < 0.7 * log(test.window / self.window) {
                self.set_window(now, test.window);
            }
            return;
        }
        let slots = self.window * after / test.before;
        self.next_is_up = true;
        if 1.2 * slots + 0.5 < 0.85 * self.window && slots > 0.7 * test.window {
            self.set_window(now, 1.2 * slots + 0.5);
            self.next_is_up = false;
        }
    }
}

impl Discovery for Order {
    fn started(&mut self, moment: Moment, attempt: AttemptId) {
        let mut in_cohort = false;
        let up = self.test.is_some_and(|test| test.window > self.window);
        if let Some(test) = &mut self.test {
            let load = f64::from(moment.in_flight);
            let reached = if up { load >= 0.9 * test.window } else { load <= test.window };
            in_cohort = reached && test.sent < test.size;
            test.sent += f64::from(u32::from(in_cohort));
        }
        if !moment.waiting {
            self.test = None;
        }
        self.flying.push_back(Flight { attempt, sent: moment.now, in_cohort });
    }

    fn ended(&mut self, moment: Moment, attempt: AttemptId, how: Ending) {
        let now = moment.now;
        // Attempts are numbered as they are sent.
        let Ok(index) = self.flying.binary_search_by_key(&attempt, |flight| flight.attempt) else { return };
        let Some(flight) = self.flying.remove(index) else { return };
        if how == Ending::Throttled {
            let roof = self.roof.refuse(now, moment.in_flight);
            (self.test, self.ramp) = (None, None);
            return self.set_window(now, self.window.min(roof));
        }
        if how != Ending::Completed {
            if flight.in_cohort {
                self.test = None;
            }
            return;
        }
        self.roof.answer(now, flight.sent, moment.waiting);
        let residence = seconds(now.since(flight.sent));
        let beside = f64::from(moment.in_flight) + 1.0;
        if let Some(test) = &mut self.test {
            if flight.in_cohort {
                test.done += 1.0;
                test.sum += residence;
            }
            let test = *test;
            if test.done >= test.size {
                self.judge(now, test);
            }
            return;
        }
        if !moment.waiting || beside < 0.7 * self.bound(now) {
            return;
        }
        if self.done.len() == REMEMBERED {
            self.done.pop_front();
        }
        self.done.push_back(Done { residence, rank: number(index) + 1.0, beside });
        match self.ramp {
            Some(ramp) => self.ramp_up(now, ramp, residence),
            None => self.steady(now),
        }
    }

    fn limit(&self, now: Instant) -> Option<u32> {
        Some(whole(self.bound(now)))
    }

    fn rises_at(&self, now: Instant) -> Option<Instant> {
        self.roof.lifts(now)
    }

    fn learned(&self) -> Option<Learned> {
        Some(Learned { window: whole(self.window), is_proven: self.ramp.is_none() })
    }

    fn start_from(&mut self, learned: Learned) {
        self.window = f64::from(learned.window);
        self.ramp = self.ramp.filter(|_| !learned.is_proven);
    }
}
