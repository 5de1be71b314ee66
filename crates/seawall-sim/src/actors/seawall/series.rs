//! What is recorded of Seawall in the place of a router: the router's series, so that the same figures can be read, and
//! its own.

use super::super::{Surroundings, number};
use super::forms::is_refusal;
use crate::Nanos;
use crate::context::Context;
use crate::recorder::{Recorder, SeriesId, SpreadId};
use seawall_core::cost::Cost;
use seawall_core::outcome::Outcome;

#[derive(Debug)]
pub(super) struct Series {
    attempts: SeriesId,
    attempts_by_workload: Vec<SeriesId>,
    succeeded_by_workload: Vec<SeriesId>,
    failed: SeriesId,
    unreachable: SeriesId,
    upstream: SeriesId,
    in_flight: SeriesId,
    most_attempts: SeriesId,
    most_upstream: SeriesId,
    refused: SeriesId,
    refused_by_outcome: Vec<(Outcome, SeriesId)>,
    turned_away: SeriesId,
    joined: SeriesId,
    waiting: SeriesId,
    /// How long those that were served had waited in the line.
    waited_by_workload: Vec<SpreadId>,
    /// Units of work that were settled.
    work: SeriesId,
    /// Tokens that an answer is thought to need, by the process that had the last one.
    expected_output_by_workload: Vec<SeriesId>,
}

impl Series {
    pub(super) fn new(name: &str, around: &Surroundings<'_>, recorder: &mut Recorder) -> Self {
        // Always nothing: it holds what fits into its memory. It is there to be compared.
        recorder.count(format!("{name}.crashes"));
        let refusals = Outcome::ALL.into_iter().filter(|outcome| is_refusal(*outcome));
        Self {
            attempts: recorder.count(format!("{name}.attempts")),
            attempts_by_workload: around.counts_by_workload(name, "attempts", recorder),
            succeeded_by_workload: around.counts_by_workload(name, "succeeded", recorder),
            failed: recorder.count(format!("{name}.failed")),
            unreachable: recorder.count(format!("{name}.unreachable")),
            upstream: recorder.count(format!("{name}.upstream")),
            in_flight: recorder.level(format!("{name}.in_flight")),
            most_attempts: recorder.mark(format!("{name}.most_attempts")),
            most_upstream: recorder.mark(format!("{name}.most_upstream")),
            refused: recorder.count(format!("{name}.refused")),
            refused_by_outcome: refusals
                .map(|outcome| (outcome, recorder.count(format!("{name}.refused.{}", outcome.label()))))
                .collect(),
            turned_away: recorder.count(format!("{name}.turned_away")),
            joined: recorder.count(format!("{name}.joined")),
            waiting: recorder.level(format!("{name}.waiting")),
            waited_by_workload: around
                .by_workload(name, "waited")
                .into_iter()
                .map(|name| recorder.spread(name))
                .collect(),
            work: recorder.count(format!("{name}.work")),
            expected_output_by_workload: around
                .by_workload(name, "expected_output")
                .into_iter()
                .map(|name| recorder.level(name))
                .collect(),
        }
    }

    pub(super) fn arrived(&self, workload: u16, context: &mut Context<'_>) {
        context.count(self.attempts);
        context.count(self.attempts_by_workload[usize::from(workload)]);
    }

    pub(super) fn attempts_of_one(&self, attempts: u32, context: &mut Context<'_>) {
        context.raise(self.most_attempts, f64::from(attempts));
    }

    /// No process is up.
    pub(super) fn unreachable(&self, context: &mut Context<'_>) {
        context.count(self.unreachable);
        context.count(self.failed);
    }

    /// A connection was not accepted.
    pub(super) fn turned_away(&self, context: &mut Context<'_>) {
        context.count(self.turned_away);
        context.count(self.failed);
    }

    /// A process went away with a request.
    pub(super) fn lost(&self, context: &mut Context<'_>) {
        context.count(self.failed);
    }

    /// A repeat waits for an answer that is under way, or has it.
    pub(super) fn joined(&self, context: &mut Context<'_>) {
        context.count(self.joined);
    }

    /// One attempt at a server; `upstream`: how many its request has had.
    pub(super) fn dispatched(&self, upstream: u32, context: &mut Context<'_>) {
        context.count(self.upstream);
        context.raise(self.most_upstream, f64::from(upstream));
    }

    /// The end of a request that had waited so long in the line.
    pub(super) fn ended(&self, outcome: Outcome, workload: u16, waited: Nanos, context: &mut Context<'_>) {
        if outcome == Outcome::Served {
            context.span(self.waited_by_workload[usize::from(workload)], waited);
            return context.count(self.succeeded_by_workload[usize::from(workload)]);
        }
        context.count(self.failed);
        if let Some((_, series)) = self.refused_by_outcome.iter().find(|(known, _)| *known == outcome) {
            context.count(self.refused);
            context.count(*series);
        }
    }

    /// What a request has cost.
    pub(super) fn settled(&self, cost: Cost, context: &mut Context<'_>) {
        let units = number(usize::try_from(cost.work.units()).unwrap_or(usize::MAX));
        context.count_many(self.work, units);
    }

    /// What an answer of this workload is thought to need.
    pub(super) fn expects(&self, workload: u16, tokens: u64, context: &mut Context<'_>) {
        let tokens = number(usize::try_from(tokens).unwrap_or(usize::MAX));
        context.level(self.expected_output_by_workload[usize::from(workload)], tokens);
    }

    pub(super) fn levels(&self, in_flight: usize, waiting: usize, context: &mut Context<'_>) {
        context.level(self.in_flight, number(in_flight));
        context.level(self.waiting, number(waiting));
    }
}
