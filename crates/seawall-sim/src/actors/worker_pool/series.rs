//! What a worker pool counts, and what it remembers only to count.

use crate::Nanos;
use crate::actors::Surroundings;
use crate::calls::CallId;
use crate::context::Context;
use crate::recorder::{Recorder, SeriesId};
use hashbrown::HashMap;
use std::collections::VecDeque;

/// Documents that were finished lately, only to count those that are processed again.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) within: Nanos,
    pub(super) until: HashMap<u64, Nanos, foldhash::fast::FixedState>,
    pub(super) line: VecDeque<(Nanos, u64)>,
}

impl Finished {
    /// Whether a document was finished before, and remembers that it is now.
    pub(super) fn again(&mut self, now: Nanos, key: u64) -> bool {
        while let Some((until, key)) = self.line.front().copied().filter(|(until, _)| *until < now) {
            self.line.pop_front();
            if self.until.get(&key) == Some(&until) {
                self.until.remove(&key);
            }
        }
        let until = now.saturating_add(self.within);
        self.line.push_back((until, key));
        self.until.insert(key, until).is_some()
    }
}

/// A count of calls, in all and for each workload.
#[derive(Debug)]
pub(super) struct Counts {
    pub(super) all: SeriesId,
    pub(super) by_workload: Vec<SeriesId>,
}

impl Counts {
    pub(super) fn new(name: &str, metric: &str, around: &Surroundings<'_>, recorder: &mut Recorder) -> Self {
        let names = around.by_workload(name, metric).into_iter();
        let by_workload = names.map(|name| recorder.count(name)).collect();
        Self { all: recorder.count(format!("{name}.{metric}")), by_workload }
    }

    pub(super) fn count(&self, call: CallId, context: &mut Context<'_>) {
        context.count(self.all);
        if let Some(workload) = context.facts_of(call).map(|facts| facts.workload) {
            context.count(self.by_workload[usize::from(workload)]);
        }
    }
}

#[derive(Debug)]
pub(super) struct Series {
    pub(super) attempts: Counts,
    pub(super) refused: Counts,
    pub(super) answered: Counts,
    pub(super) deadline_misses: Counts,
    pub(super) completed: SeriesId,
    pub(super) recomputed: SeriesId,
    /// Waiters whose time in the slot was over before the original ended.
    pub(super) waiters_dropped: SeriesId,
    pub(super) held: SeriesId,
    pub(super) working: SeriesId,
    pub(super) waiting: SeriesId,
    pub(super) duplicates_waiting: SeriesId,
    /// How fast ordinary documents go, as a part of full speed.
    pub(super) speed: SeriesId,
    pub(super) slots: SeriesId,
    pub(super) scaling_steps_left: SeriesId,
    pub(super) most_attempts: SeriesId,
}

impl Series {
    pub(super) fn new(name: &str, around: &Surroundings<'_>, recorder: &mut Recorder) -> Self {
        let mut counts = |metric: &str| Counts::new(name, metric, around, recorder);
        let (attempts, refused) = (counts("attempts"), counts("refused"));
        let (answered, deadline_misses) = (counts("answered"), counts("deadline_misses"));
        let mut count = |metric: &str| recorder.count(format!("{name}.{metric}"));
        let (completed, recomputed, waiters_dropped) =
            (count("completed"), count("recomputed"), count("waiters_dropped"));
        let mut level = |metric: &str| recorder.level(format!("{name}.{metric}"));
        Self {
            attempts,
            refused,
            answered,
            deadline_misses,
            completed,
            recomputed,
            waiters_dropped,
            held: level("held"),
            working: level("working"),
            waiting: level("waiting"),
            duplicates_waiting: level("duplicates_waiting"),
            speed: level("speed"),
            slots: level("slots"),
            scaling_steps_left: level("scaling_steps_left"),
            most_attempts: recorder.mark(format!("{name}.most_attempts")),
        }
    }
}
