//! What came of a cell.
//!
//! **Goodput** is told by when a request was sent: of those of a second, how many had their answer in the end, however
//! many attempts that took, before their sender lost patience. So the noise of arrivals is not in it.
//!
//! **Expected.** In a window, the servers and the cache could have given the least of what was asked for, and of what the
//! servers can do and the cache had.
//!
//! **Recovered.** From some time on every window has at least 90% of what is expected, up to the end of the run. The map
//! asks for that within 30 s of the trigger's end.
//!
//! **Loss.** The worst window from the trigger on, against what was given before (or asked for, where that is less). More
//! than what the lost capacity explains and 10 points is not accepted.

use super::grid::Cell;
use super::scenario::{Plan, TRIGGER_AT};
use crate::actors::number_of;
use crate::recorder::Recorder;
use crate::{Nanos, SECOND};
use serde::{Deserialize, Serialize};

/// Length of a window in seconds.
const WINDOW: usize = 10;
/// The part of what is expected that counts as recovered.
const ENOUGH: f64 = 0.9;
/// Within so many seconds of the trigger's end.
const IN_TIME: f64 = 30.0;
/// Loss that nothing has to explain.
const TOLERANCE: f64 = 0.1;
/// How long the steady states before the trigger and at the end are looked at, in seconds.
const STEADY: usize = 60;

/// How a cell ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It recovered in time, lost no more than the capacity explains, and its memory was bounded.
    Pass,
    /// It recovered in time, but lost more, or crashed.
    Recovered,
    /// It recovered, too late.
    Late,
    /// It did not recover: the trigger is long gone and the overload goes on.
    Stuck,
}

impl Verdict {
    /// All, from the best to the worst.
    pub const ALL: [Self; 4] = [Self::Pass, Self::Recovered, Self::Late, Self::Stuck];

    /// In a few words.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Recovered => "recovered with harm",
            Self::Late => "late",
            Self::Stuck => "stuck",
        }
    }
}

/// What came of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The cell's name.
    pub cell: String,
    /// How it ended.
    pub verdict: Verdict,
    /// Seconds from the trigger's end until it had recovered; none: it did not.
    pub recovery_seconds: Option<f64>,
    /// Requests a second that were served, before the trigger.
    pub goodput_before: f64,
    /// The same in the last minute, as a part of what was expected then.
    pub goodput_at_end: f64,
    /// The worst loss of goodput, as a part of what was given before.
    pub worst_loss: f64,
    /// The loss that is accepted.
    pub accepted_loss: f64,
    /// Crashes of router instances.
    pub crashes: f64,
    /// The most requests that the router held, as a part of what its memory holds.
    pub most_memory: f64,
    /// Attempts at the router for one request, in the last minute.
    pub attempts_at_end: f64,
    /// How many things happened in the run.
    pub events: u64,
    /// Hash of everything that happened.
    pub trace_hash: String,
    /// What was seen that must never be seen.
    pub violations: Vec<String>,
}

/// The series of a run, by second.
struct Seen<'a> {
    asked: &'a [f32],
    good: &'a [f32],
    hits: Option<&'a [f32]>,
    capacity: f64,
}

impl<'a> Seen<'a> {
    fn new(recorder: &'a Recorder, plan: &Plan) -> Result<Self, String> {
        // Of those that were sent later, some may still wait.
        let judged = second(plan.judged_until);
        let known = |name: &str| recorder.values(name).and_then(|values| values.get(..judged));
        let series = |name: &str| known(name).ok_or_else(|| format!("the map's scenario has no `{name}`"));
        Ok(Self {
            asked: series("clients.requests")?,
            good: series("clients.served")?,
            hits: known("cache.hits"),
            capacity: plan.capacity_per_second,
        })
    }

    /// What the window that ends with this second could have given.
    fn expected(&self, end: usize) -> f64 {
        let hits = self.hits.map_or(0.0, |hits| sum(hits, end, WINDOW));
        sum(self.asked, end, WINDOW).min(self.capacity * crate::actors::number(WINDOW) + hits)
    }

    /// What it gave, as a part of that.
    fn part(&self, end: usize) -> f64 {
        sum(self.good, end, WINDOW) / self.expected(end).max(1.0)
    }

    /// The second from which on every window gives enough; none: the last one does not.
    fn recovered_from(&self, trigger_end: usize) -> Option<usize> {
        let first = trigger_end + WINDOW;
        let ill = (first..=self.good.len()).rev().find(|end| self.part(*end) < ENOUGH);
        match ill {
            None => Some(trigger_end),
            Some(end) if end == self.good.len() => None,
            // The next window is the first of all that are well; it is so from its own beginning on.
            Some(end) => Some(end + 1 - WINDOW),
        }
    }

    /// The worst loss from the trigger on, where `before` was given a second.
    fn worst_loss(&self, trigger: usize, before: f64) -> f64 {
        let losses = (trigger + 1..=self.good.len()).map(|end| {
            let asked = sum(self.asked, end, WINDOW);
            1.0 - sum(self.good, end, WINDOW) / asked.min(before * crate::actors::number(WINDOW)).max(1.0)
        });
        losses.fold(0.0, f64::max)
    }
}

/// The sum of the `length` seconds before `end`.
fn sum(values: &[f32], end: usize, length: usize) -> f64 {
    let end = end.min(values.len());
    values[end.saturating_sub(length)..end].iter().map(|value| f64::from(*value)).sum()
}

fn greatest(values: Option<&[f32]>) -> f64 {
    values.unwrap_or_default().iter().fold(0.0, |greatest, value| f64::max(greatest, f64::from(*value)))
}

/// Seconds since midnight, where every run begins.
fn second(at: Nanos) -> usize {
    usize::try_from(at / SECOND).unwrap_or(usize::MAX)
}

/// What is read from the world, beside its series.
#[derive(Clone, Debug)]
pub(super) struct Trace {
    pub(super) events: u64,
    pub(super) hash: u64,
    pub(super) violations: Vec<String>,
}

/// Judges the run of a cell.
pub(super) fn judge(cell: Cell, plan: &Plan, recorder: &Recorder, trace: Trace) -> Result<Outcome, String> {
    let seen = Seen::new(recorder, plan)?;
    let (trigger, trigger_end) = (second(TRIGGER_AT), second(plan.trigger_end));
    let end = seen.good.len();
    let before = sum(seen.good, trigger, STEADY) / crate::actors::number(STEADY);
    let recovered = seen.recovered_from(trigger_end);
    let recovery_seconds = recovered.map(|from| number_of(from.saturating_sub(trigger_end) as Nanos));
    let crashes = recorder.values("router.crashes").map_or(0.0, |crashes| sum(crashes, end, end));
    let most_memory = greatest(recorder.values("router.in_flight")) / plan.memory;
    let (worst_loss, accepted_loss) = (seen.worst_loss(trigger, before), (plan.explained_loss + TOLERANCE).min(1.0));
    let is_clean = worst_loss <= accepted_loss && crashes <= 0.0 && most_memory <= 1.0 && trace.violations.is_empty();
    let verdict = match recovery_seconds {
        None => Verdict::Stuck,
        Some(seconds) if seconds > IN_TIME => Verdict::Late,
        Some(_) if is_clean => Verdict::Pass,
        Some(_) => Verdict::Recovered,
    };
    let attempts = recorder.values("router.attempts").map_or(0.0, |attempts| sum(attempts, end, STEADY));
    let late: f64 = (0..STEADY / WINDOW).map(|back| seen.expected(end - back * WINDOW)).sum();
    Ok(Outcome {
        cell: cell.to_string(),
        verdict,
        recovery_seconds,
        goodput_before: before,
        goodput_at_end: sum(seen.good, end, STEADY) / late.max(1.0),
        worst_loss,
        accepted_loss,
        crashes,
        most_memory,
        attempts_at_end: attempts / sum(seen.asked, end, STEADY).max(1.0),
        events: trace.events,
        trace_hash: format!("{:016x}", trace.hash),
        violations: trace.violations,
    })
}
