//! `aimd`: additive increase, multiplicative decrease, on a residence learned at low load.
//!
//! The base is the median residence of attempts that were sent while at most half of the window was in flight, over the
//! last 24 of them; without one for fifteen seconds the window dips to half for a moment. While work waits the window
//! grows by one with each window of completions; it shrinks by a tenth, at most once in a residence, when the median of
//! the last eight is above two and a half times the base. Congestion avoidance as in Chiu and Jain (1989), with delay as
//! the signal as in Netflix's concurrency limits. It starts at eight. For comparison: the base rises with the window once
//! that is twice the slots, and a base from before a slow-down cuts the window to nothing.

use super::pace::{Roof, seconds, whole};
use super::{Discovery, Ending, Hints, Learned, Moment};
use crate::id::AttemptId;
use crate::time::{Duration, Instant};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use libm::{ceil, floor};

const START: f64 = 8.0;
const BASE_SAMPLES: usize = 24;
const RECENT: usize = 8;
const DECREASE_ABOVE: f64 = 2.5;
const DECREASE: f64 = 0.9;
const BASE_AGE: Duration = Duration::from_secs(15);

/// See the module.
#[derive(Debug)]
pub(super) struct Aimd {
    window: f64,
    flying: BTreeMap<AttemptId, (Instant, u32)>,
    base: VecDeque<f64>,
    recent: VecDeque<f64>,
    based_at: Instant,
    decreased_at: Instant,
    dips: bool,
    roof: Roof,
}

impl Aimd {
    pub(super) fn new(_hints: Hints) -> Self {
        Self {
            window: START,
            flying: BTreeMap::new(),
            base: VecDeque::new(),
            recent: VecDeque::new(),
            based_at: Instant::ZERO,
            decreased_at: Instant::ZERO,
            dips: false,
            roof: Roof::default(),
        }
    }

    fn bound(&self, now: Instant) -> f64 {
        let window = if self.dips { floor(self.window / 2.0) } else { self.window };
        window.min(self.roof.at(now)).max(1.0)
    }

    fn completed(&mut self, moment: Moment, sent: Instant, load: u32) {
        let now = moment.now;
        let residence = seconds(now.since(sent));
        if f64::from(load) <= ceil(self.window / 2.0) {
            keep(&mut self.base, residence, BASE_SAMPLES);
            self.based_at = now;
            self.dips = false;
        } else if now.since(self.based_at) > BASE_AGE {
            self.dips = true;
        }
        keep(&mut self.recent, residence, RECENT);
        let (Some(base), Some(recent)) = (median(&self.base), median(&self.recent)) else { return };
        if self.recent.len() == RECENT && recent > DECREASE_ABOVE * base {
            if seconds(now.since(self.decreased_at)) > recent {
                self.window = (self.window * DECREASE).max(1.0);
                self.decreased_at = now;
            }
        } else if moment.waiting && f64::from(moment.in_flight + 1) >= 0.8 * self.bound(now) {
            self.window += 1.0 / self.window;
        }
    }
}

fn keep(values: &mut VecDeque<f64>, value: f64, most: usize) {
    if values.len() == most {
        values.pop_front();
    }
    values.push_back(value);
}

fn median(values: &VecDeque<f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().collect();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

impl Discovery for Aimd {
    fn started(&mut self, moment: Moment, attempt: AttemptId) {
        self.flying.insert(attempt, (moment.now, moment.in_flight));
    }

    fn ended(&mut self, moment: Moment, attempt: AttemptId, how: Ending) {
        let Some((sent, load)) = self.flying.remove(&attempt) else { return };
        match how {
            Ending::Completed => {
                self.roof.answer(moment.now, sent, moment.waiting);
                self.completed(moment, sent, load);
            }
            Ending::Throttled => self.window = self.window.min(self.roof.refuse(moment.now, moment.in_flight)),
            Ending::Failed | Ending::Abandoned => {}
        }
    }

    fn limit(&self, now: Instant) -> Option<u32> {
        Some(whole(self.bound(now)))
    }

    fn rises_at(&self, now: Instant) -> Option<Instant> {
        self.roof.lifts(now)
    }

    fn learned(&self) -> Option<Learned> {
        Some(Learned { window: whole(self.window), is_proven: true })
    }

    fn start_from(&mut self, learned: Learned) {
        self.window = f64::from(learned.window);
    }
}
