//! `likelihood`: the numbers of slots that explain when attempts completed, and a window a quarter above them.
//!
//! [`Hypotheses`] judges every number of slots with each completion. While none below the window is likely, the window
//! doubles: too large a one costs next to nothing for a moment. Once the window and more are unlikely it comes down to a
//! quarter above the largest number that is not excluded, at most by half at a time. What one window cannot tell, since a
//! constant wait and a constant part of the service look alike until the window moves, is found out by moving it: upwards
//! now and then, and by a dip to half where what is in flight takes long and several sizes stay likely.
//!
//! Every move is checked by the rate of completions. A cut that loses a third of it is taken back. Growth to four times
//! (to twice, where attempts take a tenth of the callers' patience already) has to have raised it: behind a line that is
//! not first in, first out every rank occurs, and ranks would raise the window for ever. Where it has not, ranks are not
//! believed for a while where they ask for more, and half of the window and half as much again are tried by the rate.
//!
//! At start: eight, and more with time as long as nothing ends ([`Silence`]). A refusal bounds the window for ten seconds
//! and longer; the bound rises with what is answered below it ([`Roof`]). A brown-out that only slows the service leaves
//! the number of slots, and so the window, as they are.

use super::hypotheses::{Belief, Hypotheses, LARGEST, Line};
use super::pace::{Pace, Roof, number, seconds, whole};
use super::silence::Silence;
use super::steps::{Cut, Dip, Pause, Proof, Trial};
use super::{Discovery, Ending, Hints, Learned, Moment};
use crate::id::AttemptId;
use crate::time::{Duration, Instant};
use libm::{ceil, floor, log};

const START: f64 = 8.0;
/// Scores, in nats below the best: what is likely, and what is not yet excluded.
const LIKELY: f64 = 3.0;
const POSSIBLE: f64 = 5.0;
/// Shares of the callers' patience. In flight for longer: worth finding out more; growth has to prove itself at twice,
/// not four times; not raised on trial; cut whatever was said before.
const LONG: f64 = 0.05;
const LONGER: f64 = 0.1;
const TOO_LONG: f64 = 0.2;
const FAR_TOO_LONG: f64 = 0.15;
/// Completions at a window before it is judged at all.
const SETTLED: f64 = 8.0;
/// Completions that a rate is taken from.
const RATE: usize = 24;
/// A cut has cost throughput if the logarithm of the rate falls by this.
const LOST: f64 = 0.55;
/// After a cut it is looked upwards again so soon.
const FIRST_RAISE: Duration = Duration::from_millis(500);
const SHORTEST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(64);

/// See the module.
#[derive(Debug)]
pub(super) struct Likelihood {
    patience: f64,
    window: f64,
    /// When the window was set.
    set: Instant,
    /// Completions since then with the window full.
    seen: f64,
    line: Line,
    silence: Silence,
    hypotheses: Hypotheses,
    pace: Pace,
    roof: Roof,
    /// The window before the refusals that the roof is from; it is right again when the roof is lifted.
    unroofed: Option<f64>,
    dip: Option<Dip>,
    dips: Pause,
    /// Completions in a row for which several sizes were likely and attempts took long.
    unsure: f64,
    raises: Pause,
    /// The window without rises that no rank asked for.
    base: f64,
    /// The rate and the residence to compare with, for a rise that no rank shows.
    usual: Option<(f64, f64)>,
    proof: Option<Proof>,
    cut: Option<Cut>,
    cuts_from: Instant,
    keep: Duration,
    ranks_from: Instant,
    bar: Duration,
    trial: Option<Trial>,
    trials: Pause,
}

impl Likelihood {
    pub(super) fn new(hints: Hints) -> Self {
        Self {
            patience: seconds(hints.patience),
            window: START,
            set: Instant::ZERO,
            seen: 0.0,
            line: Line::default(),
            silence: Silence::default(),
            hypotheses: Hypotheses::default(),
            pace: Pace::default(),
            roof: Roof::default(),
            unroofed: None,
            dip: None,
            dips: Pause::new(SHORTEST_PAUSE),
            unsure: 0.0,
            raises: Pause::new(Duration::from_secs(8)),
            base: START,
            usual: None,
            proof: None,
            cut: None,
            cuts_from: Instant::ZERO,
            keep: Duration::from_secs(30),
            ranks_from: Instant::ZERO,
            bar: Duration::from_mins(1),
            trial: None,
            trials: Pause::new(Duration::from_secs(4)),
        }
    }

    fn bound(&self, now: Instant) -> f64 {
        let window = self.dip.map_or_else(|| self.unroofed_window(now), |dip| dip.window);
        let doubled = window * f64::from(1_u32 << self.silence.doublings(now, self.patience));
        let window = doubled.min(1.25 * LARGEST);
        f64::from(whole(window.min(self.roof.at(now))))
    }

    /// The window, or that from before a roof that is lifted.
    fn unroofed_window(&self, now: Instant) -> f64 {
        let before = self.unroofed.filter(|_| self.roof.lifts(now).is_none());
        before.map_or(self.window, |before| before.max(self.window))
    }

    /// Whether attempts take more than this share of the patience.
    fn takes(&self, share: f64) -> bool {
        self.pace.residence() > share * self.patience
    }

    fn set_window(&mut self, now: Instant, window: f64) {
        let window = window.clamp(1.0, 1.25 * LARGEST);
        if (window / self.window - 1.0).abs() > 0.01 {
            self.seen = 0.0;
            self.set = now;
        }
        self.window = window;
    }

    /// The rate at the present window.
    fn rate(&self, least: usize) -> Option<f64> {
        self.pace.rate_since(self.set, least)
    }

    /// What the rate of a window is taken from where it alone decides: about a window of completions.
    fn rate_for_judgement(&self) -> Option<f64> {
        self.rate((whole(ceil(self.window)) as usize).clamp(RATE, 2 * RATE))
    }

    fn decide(&mut self, now: Instant, in_flight: u32) {
        if now < self.ranks_from {
            (self.dip, self.cut) = (None, None);
            // A line of another order raises ranks and never lowers them: that it is too much is believed.
            let belief = self.hypotheses.belief(self.window, LIKELY, POSSIBLE);
            return if self.comes_down(now, belief) { self.trial = None } else { self.try_by_rate(now) };
        }
        self.trial = None;
        if self.takes_back(now, in_flight) {
            return;
        }
        let window = self.dip.map_or(self.window, |dip| dip.window);
        let belief = self.hypotheses.belief(window, LIKELY, POSSIBLE);
        if let Some(dip) = self.dip {
            return self.dip_further(now, dip, in_flight, belief);
        }
        if self.looks_up(now, belief) {
            return;
        }
        let most = if belief.window_or_more { window } else { belief.highest.unwrap_or(window) };
        let spread = belief.lowest.is_some_and(|lowest| lowest < 0.6 * most);
        if self.dips_now(now, belief, spread) {
            return;
        }
        if belief.window_or_more {
            self.grow(now, belief, spread);
        } else if belief.highest.is_some() {
            self.proof = self.rate(RATE).map_or(self.proof, |rate| Some(Proof { window: self.window, rate }));
            self.comes_down(now, belief);
        }
    }

    /// Down to a quarter above the largest number of slots that is not excluded, by half at most. Not while attempts take
    /// little of the patience: then more than that costs next to nothing, and one cut too many costs capacity.
    fn comes_down(&mut self, now: Instant, belief: Belief) -> bool {
        let Some(to) = belief.highest.filter(|_| !belief.window_or_more).map(above) else { return false };
        let is_long = self.pace.latest() > LONG * self.patience && self.takes(LONG);
        let comes_down = self.seen >= SETTLED && self.window > 1.15 * to && is_long;
        if comes_down {
            self.cut_to(now, to.max(0.45 * self.window));
        }
        comes_down
    }

    /// No size below the window is likely: more.
    fn grow(&mut self, now: Instant, belief: Belief, spread: bool) {
        let roof = self.roof.at(now);
        if spread || self.window >= roof || self.seen < (self.window / 2.0).max(SETTLED) || !self.may_grow(now) {
            return;
        }
        let sure = belief.lowest.is_none_or(|lowest| lowest >= 0.8 * self.window);
        let to = ceil(self.window * if sure { 2.0 } else { 1.4 });
        self.base = to.min(roof);
        self.set_window(now, self.base);
    }

    /// Whether growth so far has raised the rate.
    fn may_grow(&mut self, now: Instant) -> bool {
        let Some(proof) = self.proof.filter(|proof| proof.window <= self.window) else {
            self.proof = self.rate(8).map(|rate| Proof { window: self.window, rate });
            return self.proof.is_some();
        };
        let long = self.takes(LONGER);
        if self.window < if long { 1.9 } else { 3.9 } * proof.window {
            return true;
        }
        let Some(rate) = self.rate(RATE) else { return false };
        let (change, grown) = (log(rate / proof.rate), log(self.window / proof.window));
        // Less than before, by more than noise: the upstream has changed, and the comparison begins anew.
        if change > 0.5 * grown || change < -0.4 {
            self.proof = Some(Proof { window: self.window, rate });
            return true;
        }
        // Within noise of half the exponent: undecided.
        if change + 0.5 > 0.5 * grown && !long {
            return self.window < 8.0 * proof.window;
        }
        if self.rate(64).is_some() {
            self.ranks_from = now + self.bar;
            self.bar = (self.bar * 4).min(Duration::from_mins(20));
            self.trial_of(now, self.window / 2.0, rate);
        }
        false
    }

    /// Upwards now and then, and when the rate has risen: what is seen at one window can fit several sizes.
    fn looks_up(&mut self, now: Instant, belief: Belief) -> bool {
        let Some(rate) = self.pace.rate_of_last(32) else { return false };
        // It has been looked already, and less is on its way.
        let is_up = belief.highest.is_some_and(|slots| self.window > 1.15 * above(slots));
        if is_up && !belief.window_or_more && self.takes(LONG) || self.seen < (self.window / 2.0).max(SETTLED) {
            return false;
        }
        let residence = self.pace.residence();
        let (usual_rate, usual_residence) = *self.usual.get_or_insert((rate, residence));
        let risen = rate > 1.7 * usual_rate && residence < usual_residence / 1.4;
        if risen || self.seen % ceil(self.window).max(number(RATE)) < 1.0 {
            self.usual = Some((rate, residence));
        }
        if !(risen || now >= self.raises.next) || self.takes(TOO_LONG) || !self.may_grow(now) {
            return false;
        }
        let to = (self.window * 1.4).max(self.window + 1.0).min(self.roof.at(now));
        if to <= self.window || to > rate * TOO_LONG * self.patience {
            return false;
        }
        self.raises.double(now, LONGEST_PAUSE);
        self.set_window(now, to);
        self.usual = None;
        true
    }

    /// Begins a dip where attempts take long and several sizes have been likely for a window of completions.
    fn dips_now(&mut self, now: Instant, belief: Belief, spread: bool) -> bool {
        self.unsure = if spread && self.takes(LONG) { self.unsure + 1.0 } else { 0.0 };
        if self.unsure <= self.window.max(16.0) || now < self.dips.next || self.seen < SETTLED {
            return false;
        }
        let lowest = belief.lowest.unwrap_or(1.0);
        let window = floor((1.2 * lowest).max(self.window / 2.0)).max(1.0);
        let dips = window < self.window;
        if dips {
            self.dip = Some(Dip { window, reached: false, completed: 0.0 });
        }
        dips
    }

    fn dip_further(&mut self, now: Instant, mut dip: Dip, in_flight: u32, belief: Belief) {
        dip.reached |= f64::from(in_flight) <= dip.window;
        dip.completed += f64::from(u32::from(dip.reached));
        self.dip = Some(dip);
        if dip.completed < (dip.window + 2.0).max(4.0) {
            return;
        }
        if !belief.window_or_more {
            self.dip = None;
            self.cut_to(now, dip.window.max(2.0));
            self.seen = SETTLED;
            self.dips.length = SHORTEST_PAUSE;
        } else if belief.lowest.is_none_or(|lowest| lowest >= 0.7 * dip.window)
            || dip.completed >= 2.0 * dip.window + 8.0
        {
            self.dip = None;
            let slots = self.hypotheses.belief(self.window, LIKELY, LIKELY).highest.unwrap_or(self.window);
            self.set_window(now, self.window.min(above(slots)));
            self.dips.double(now, LONGEST_PAUSE);
        }
    }

    fn cut_to(&mut self, now: Instant, window: f64) {
        if now < self.cuts_from && !self.takes(FAR_TOO_LONG) {
            return;
        }
        if let Some(rate) = self.pace.rate_of_last(32) {
            let from = self.cut.map_or(self.window, |cut| cut.from.max(self.window));
            self.cut = Some(Cut { from, rate, at: now, completed: 0.0, drained: false });
        }
        // What has just become slower may be as fast as before in a moment, and a small window would not show it.
        if window < 0.8 * self.base {
            self.raises = Pause { next: now + FIRST_RAISE, length: FIRST_RAISE };
        }
        self.base = window;
        self.unroofed = None;
        self.silence.is_judged = true;
        self.set_window(now, window);
    }

    /// Takes a cut back that has cost throughput. Then nothing is cut for a while.
    fn takes_back(&mut self, now: Instant, in_flight: u32) -> bool {
        let Some(cut) = &mut self.cut else { return false };
        if !cut.drained {
            cut.completed += 1.0;
            if f64::from(in_flight) > self.window {
                return false;
            }
            // What completed while it came down is the same upstream with more in flight.
            cut.drained = true;
            if cut.completed >= SETTLED {
                cut.rate = cut.rate.min(cut.completed / seconds(now.since(cut.at)).max(1e-6));
            }
        }
        let cut = *cut;
        let Some(rate) = self.rate_for_judgement() else { return false };
        self.cut = None;
        let lost = log(rate / cut.rate) < -LOST;
        if lost {
            self.cuts_from = now + self.keep;
            self.keep = (self.keep * 2).min(Duration::from_mins(10));
            self.set_window(now, cut.from.min(1.3 * self.window * cut.rate / rate));
        }
        lost
    }

    /// Half of the window where attempts take long, else half as much again, judged by the rate alone.
    fn try_by_rate(&mut self, now: Instant) {
        let Some(rate) = self.rate_for_judgement() else { return };
        let Some(trial) = self.trial.take() else {
            let factor = if self.takes(LONG) { 0.5 } else { 1.5 };
            if self.takes(TOO_LONG) || now >= self.trials.next {
                self.trial_of(now, self.window * factor, rate);
            }
            return;
        };
        let exponent = log(rate / trial.rate) / log(self.window / trial.from);
        let is_down = self.window < trial.from;
        if (-0.3..1.5).contains(&exponent) {
            if (exponent > 0.45) != is_down {
                self.trials = Pause { next: now, length: Duration::from_secs(4) };
                return;
            }
            // Half the window, and half the rate: what the ranks had asked for was needed.
            if is_down {
                self.ranks_from = now;
                self.proof = Some(Proof { window: trial.from, rate: trial.rate });
            }
        }
        self.trials.double(now, Duration::from_secs(32));
        self.set_window(now, trial.from);
    }

    fn trial_of(&mut self, now: Instant, window: f64, rate: f64) {
        let to = whole(window.min(self.roof.at(now)));
        if to != whole(self.window) {
            self.trial = Some(Trial { from: self.window, rate });
            self.set_window(now, f64::from(to));
        }
    }
}

/// The window for so many slots: a quarter above them, and at least one, or nothing would ever wait to be seen.
fn above(slots: f64) -> f64 {
    (1.25 * slots + 0.5).max(slots + 1.0)
}

impl Discovery for Likelihood {
    fn started(&mut self, moment: Moment, attempt: AttemptId) {
        if self.unroofed.is_some() && self.roof.lifts(moment.now).is_none() {
            self.set_window(moment.now, self.unroofed_window(moment.now));
            self.unroofed = None;
        }
        self.line.send(moment.now, attempt, moment.in_flight);
        self.silence.judge(moment.now, moment.in_flight);
        if f64::from(moment.in_flight) >= self.bound(moment.now) {
            self.silence.full(moment.now);
        }
    }

    fn first_byte(&mut self, moment: Moment, attempt: AttemptId) {
        self.silence.answers(moment.now, attempt, moment.in_flight);
    }

    fn ended(&mut self, moment: Moment, attempt: AttemptId, how: Ending) {
        let now = moment.now;
        let Some((flight, rank)) = self.line.leave(now, attempt) else { return };
        let stretched = self.bound(now);
        let is_judged = self.silence.is_judged;
        self.silence.over(attempt);
        match how {
            Ending::Completed => {
                if !is_judged && stretched > self.window {
                    self.set_window(now, stretched);
                }
                if self.roof.answer(now, flight.sent, moment.waiting)
                    && let Some(before) = self.unroofed
                {
                    self.set_window(now, self.window.max(before.min(self.roof.at(now))));
                }
                self.pace.complete(now, seconds(now.since(flight.sent)));
                self.hypotheses.complete(now, &flight, rank, self.pace.residence());
                let beside = f64::from(moment.in_flight) + 1.0;
                if !moment.waiting {
                    self.dip = None;
                } else if beside >= 0.8 * self.bound(now) {
                    self.seen += f64::from(u32::from(beside <= 1.1 * self.window + 1.0));
                    self.decide(now, moment.in_flight);
                }
            }
            Ending::Throttled => {
                self.unroofed = self.unroofed.or(Some(self.window));
                let roof = self.roof.refuse(now, moment.in_flight);
                self.dip = None;
                self.silence.is_judged = true;
                self.set_window(now, self.window.min(roof));
            }
            Ending::Failed | Ending::Abandoned => {}
        }
    }

    fn limit(&self, now: Instant) -> Option<u32> {
        Some(whole(self.bound(now)))
    }

    fn rises_at(&self, now: Instant) -> Option<Instant> {
        [self.roof.lifts(now), self.silence.rises_at(now, self.patience)].into_iter().flatten().min()
    }

    fn learned(&self) -> Option<Learned> {
        // Of a trial nothing is known yet.
        let window = whole(self.trial.map_or(self.window, |trial| trial.from));
        Some(Learned { window, is_proven: self.silence.is_judged })
    }

    fn start_from(&mut self, learned: Learned) {
        self.window = f64::from(learned.window).min(LARGEST);
        self.base = self.window;
        self.silence.is_judged = learned.is_proven;
    }
}
