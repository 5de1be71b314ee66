//! How well each number of slots explains when attempts completed.
//!
//! Behind a first-in-first-out line before `c` slots an attempt is served from the moment at which fewer than `c` older
//! ones are left. So every hypothesis `c` turns the same departures into service times of its own: for the right one they
//! do not depend on how many were in flight. Each is judged by the density that its own service times so far gave the
//! next one, over five shapes of a Gamma distribution, from heavy-tailed to constant, whichever does best. An attempt that
//! completes with `c` or more older ones left is next to impossible. The mean follows the last half dozen; that of the
//! narrow shapes is at once where two services alike are, since a server that has become slower shows no spread, and for
//! as long as its mean lags only spread would explain it: as fewer slots with bursts. The age rank (a lower bound on `c`), the change of
//! residence with the window and bursts of completions all enter through this one quantity.
//!
//! The scores are kept as in Page's cumulative sums (Biometrika 1954): never more than a fixed depth below the best, so
//! that a change shows within a few completions however long the past was. Predictive scoring is Dawid's prequential
//! principle (1984).

use crate::id::AttemptId;
use crate::time::Instant;
use alloc::collections::VecDeque;
use libm::log;

/// Hypotheses.
pub(super) const COUNT: usize = 36;
/// The numbers of slots: each up to eight, then steps of a quarter or less, coarser beyond 200.
const SLOTS: [u32; COUNT] = [
    1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 256, 320, 384,
    512, 768, 1_024, 1_536, 2_048, 3_072, 4_096,
];
/// The largest one.
pub(super) const LARGEST: f64 = 4_096.0;
/// Shapes `k` of the Gamma distribution: the coefficient of variation is 1 / sqrt(k).
const SHAPES: [f64; 5] = [0.4, 1.0, 5.0, 40.0, 400.0];
/// k ln k - ln Gamma(k) of each shape.
const NORMS: [f64; 5] = [-1.163_194, 0.0, 4.869_136, 40.923_418, 402.076_585];
/// So many of them are wide; the others are narrow.
const WIDE: usize = 3;
/// Services are alike where neither is more than this times the other: about what the narrow shapes allow.
const ALIKE: f64 = 1.1;
/// How far below the best a score can fall: what the past is worth.
const DEPTH: f64 = 12.0;
/// Completions after which a mean follows the last ones only.
const MEMORY: f64 = 6.0;
/// Completions before a mean says anything.
const FIRST: f64 = 2.0;
/// ln(1/10 / 8): one service in ten is of another kind, spread evenly over eight units of the logarithm.
const OTHER: f64 = -4.382;
/// What an impossible completion costs beyond one of another kind.
const IMPOSSIBLE: f64 = -4.0;

/// What is in flight, oldest first, and when the service of each began under each hypothesis.
#[derive(Clone, Debug, Default)]
pub(super) struct Line(VecDeque<Flight>);

/// An attempt in flight, or one that has just left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    attempt: AttemptId,
    /// When it was sent.
    pub(super) sent: Instant,
    /// [`Instant::MAX`]: not yet.
    begun: [Instant; COUNT],
}

/// All of them.
#[derive(Clone, Debug)]
pub(super) struct Hypotheses([Hypothesis; COUNT]);

#[derive(Clone, Copy, Debug, Default)]
struct Hypothesis {
    /// Of the wide shapes, and of the narrow ones.
    means: [f64; 2],
    last: f64,
    seen: f64,
    scores: [f64; SHAPES.len()],
}

/// What is believed below a window, and of it and all above.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Belief {
    /// The smallest likely number of slots below the window.
    pub(super) lowest: Option<f64>,
    /// The largest one below the window that is not excluded.
    pub(super) highest: Option<f64>,
    /// Whether the window itself or more is likely.
    pub(super) window_or_more: bool,
}

impl Line {
    /// An attempt was sent as number `load` of those in flight.
    pub(super) fn send(&mut self, now: Instant, attempt: AttemptId, load: u32) {
        let begun = SLOTS.map(|slots| if slots >= load { now } else { Instant::MAX });
        self.0.push_back(Flight { attempt, sent: now, begun });
    }

    /// An attempt left: it, and its rank by age, 1 for the oldest. `None` for one that is not there.
    pub(super) fn leave(&mut self, now: Instant, attempt: AttemptId) -> Option<(Flight, u32)> {
        // Attempts are numbered as they are sent.
        let index = self.0.binary_search_by_key(&attempt, |flight| flight.attempt).ok()?;
        let flight = self.0.remove(index)?;
        // Who has moved up into the last slot of a hypothesis begins.
        for (hypothesis, slots) in SLOTS.iter().enumerate() {
            let last = *slots as usize - 1;
            if last < index {
                continue;
            }
            let Some(next) = self.0.get_mut(last) else { break };
            next.begun[hypothesis] = next.begun[hypothesis].min(now);
        }
        Some((flight, u32::try_from(index + 1).unwrap_or(u32::MAX)))
    }
}

impl Default for Hypotheses {
    fn default() -> Self {
        Self([Hypothesis::default(); COUNT])
    }
}

impl Hypotheses {
    /// An attempt completed as number `rank` by age, from 1. `usual`: how many seconds they take of late.
    pub(super) fn complete(&mut self, now: Instant, flight: &Flight, rank: u32, usual: f64) {
        let residence = now.since(flight.sent).as_secs_f64();
        let impossible = OTHER + IMPOSSIBLE - log(usual.max(1e-6));
        for ((hypothesis, begun), slots) in self.0.iter_mut().zip(flight.begun).zip(SLOTS) {
            let service = now.since(begun).as_secs_f64();
            // A slot that has just been left is not left again at once: those two were served side by side.
            if rank <= slots && begun <= now && service > 0.01 * residence {
                hypothesis.serve(service);
            } else {
                hypothesis.scores.iter_mut().for_each(|score| *score += impossible);
            }
        }
        let best = self.0.iter().map(Hypothesis::score).fold(f64::MIN, f64::max);
        for score in self.0.iter_mut().flat_map(|hypothesis| &mut hypothesis.scores) {
            *score = (*score - best).max(-DEPTH);
        }
    }

    /// What is believed with a score of at least `-likely`, and is not excluded with one below `-possible`.
    pub(super) fn belief(&self, window: f64, likely: f64, possible: f64) -> Belief {
        let mut belief = Belief { lowest: None, highest: None, window_or_more: false };
        for (hypothesis, slots) in self.0.iter().zip(SLOTS.map(f64::from)) {
            let score = hypothesis.score();
            if slots >= window {
                belief.window_or_more |= score >= -likely;
                continue;
            }
            if score >= -likely {
                belief.lowest.get_or_insert(slots);
            }
            if score >= -possible {
                belief.highest = Some(slots);
            }
        }
        belief
    }
}

impl Hypothesis {
    fn score(&self) -> f64 {
        self.scores.iter().copied().fold(f64::MIN, f64::max)
    }

    fn serve(&mut self, service: f64) {
        self.seen = (self.seen + 1.0).min(MEMORY);
        let (wide, narrow) = self.scores.split_at_mut(WIDE);
        for (kind, scores) in [wide, narrow].into_iter().enumerate() {
            let mean = &mut self.means[kind];
            if self.seen <= FIRST {
                let spread = log(service.max(1e-9));
                for score in scores {
                    *score -= spread + 1.0;
                }
            } else {
                add_densities(scores, kind * WIDE, service, *mean);
            }
            *mean += (service - *mean) / self.seen;
            // What hardly varies, and is twice the same at another place, has changed.
            if kind > 0 && are_alike(service, self.last) && !are_alike(service, *mean) {
                *mean = f64::midpoint(service, self.last);
            }
        }
        self.last = service;
    }
}

fn are_alike(one: f64, other: f64) -> bool {
    one < ALIKE * other && other < ALIKE * one
}

/// Adds to the scores of the shapes from `first` on what density each gave to `service`.
fn add_densities(scores: &mut [f64], first: usize, service: f64, mean: f64) {
    let ratio = service / mean;
    let (scale, spread) = (log(mean), log(ratio));
    let other = OTHER - scale - spread.max(-2.3);
    for ((score, shape), norm) in scores.iter_mut().zip(&SHAPES[first..]).zip(&NORMS[first..]) {
        let gamma = norm + (shape - 1.0) * spread - shape * ratio - scale;
        // -0.1: nine in ten are of this kind.
        *score += (gamma - 0.1).max(other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// Two slots of 100 ms, three in flight all the time: two complete together, the third 100 ms later with the next.
    #[test]
    fn bursts_tell_the_number_of_slots() {
        let (mut hypotheses, mut line) = (Hypotheses::default(), Line::default());
        for id in 0..3 {
            line.send(Instant::ZERO, AttemptId(id), u32::try_from(id).unwrap() + 1);
        }
        for id in 0..40 {
            let now = Instant::from_millis(100 * (1 + id / 2));
            let (flight, rank) = line.leave(now, AttemptId(id)).unwrap();
            assert_eq!(rank, 1);
            hypotheses.complete(now, &flight, rank, 0.15);
            line.send(now, AttemptId(id + 3), 3);
        }
        let belief = hypotheses.belief(3.0, 3.0, 5.0);
        assert_eq!(belief, Belief { lowest: Some(2.0), highest: Some(2.0), window_or_more: false });
    }

    /// Three slots, not in step, five in flight all the time: 500 ms each, then 1,500 ms.
    #[test]
    fn a_slower_service_is_not_fewer_slots() {
        let (mut hypotheses, mut line) = (Hypotheses::default(), Line::default());
        for id in 0..5 {
            line.send(Instant::ZERO, AttemptId(id), u32::try_from(id).unwrap() + 1);
        }
        let mut slots = [500_u64, 600, 690];
        let mut complete = |id: u64, service_ms: u64| {
            let slot = &mut slots[usize::try_from(id % 3).unwrap()];
            let now = Instant::from_millis(*slot);
            *slot += service_ms;
            let (flight, rank) = line.leave(now, AttemptId(id)).unwrap();
            hypotheses.complete(now, &flight, rank, 0.8);
            line.send(now, AttemptId(id + 5), 5);
            hypotheses.belief(5.0, 3.0, 5.0)
        };
        let three = Belief { lowest: Some(3.0), highest: Some(3.0), window_or_more: false };
        let before: Vec<Belief> = (0..30).map(|id| complete(id, if id < 27 { 500 } else { 1_500 })).collect();
        assert_eq!(before[29], three);
        let after: Vec<Belief> = (30..48).map(|id| complete(id, 1_500)).collect();
        let again = after.iter().position(|belief| *belief == three).unwrap();
        assert!(again <= 8 && after[again..].iter().all(|belief| *belief == three), "{again}: {after:?}");
    }

    #[test]
    fn who_completes_before_older_ones_rules_small_numbers_out() {
        let (mut hypotheses, mut line) = (Hypotheses::default(), Line::default());
        for id in 0..40 {
            line.send(Instant::ZERO, AttemptId(id), u32::try_from(id).unwrap() + 1);
        }
        for id in (5..40).step_by(2) {
            let now = Instant::from_millis(id);
            let (flight, rank) = line.leave(now, AttemptId(id)).unwrap();
            assert!(rank >= 6);
            hypotheses.complete(now, &flight, rank, 0.09);
        }
        assert!(line.leave(Instant::ZERO, AttemptId(5)).is_none());
        let belief = hypotheses.belief(6.0, 3.0, 5.0);
        assert_eq!(belief, Belief { lowest: None, highest: None, window_or_more: true });
    }
}
