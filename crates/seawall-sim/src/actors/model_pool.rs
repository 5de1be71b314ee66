//! Model capacity that is sold by the second: a token bucket of placements, and a memory of who got one.

use super::Surroundings;
use crate::Nanos;
use crate::calls::{CallId, Reply};
use crate::checkers::UnderWay;
use crate::context::{Actor, Context};
use crate::random::nanos;
use crate::recorder::{Recorder, SeriesId};
use hashbrown::HashMap;
use seawall_cases::scenario::{Event, Form, ModelPool};
use std::collections::VecDeque;

/// See [`ModelPool`].
#[derive(Debug)]
pub struct ModelPoolActor {
    per_second: f64,
    factor: f64,
    burst_nanos: Nanos,
    latency: Nanos,
    refusal_latency: Nanos,
    remembers: Nanos,
    limits: Vec<u16>,
    down: bool,
    /// The time up to which placements have been given out; it runs ahead of the clock by the burst at the most.
    given_until: Nanos,
    verdicts: HashMap<u64, bool, foldhash::fast::FixedState>,
    forget: VecDeque<(Nanos, u64)>,
    /// Verdicts that it may remember at the most.
    most_verdicts: usize,
    placed: SeriesId,
    refused: SeriesId,
}

impl ModelPoolActor {
    /// The pool that the scenario describes.
    pub fn new(settings: &ModelPool, around: &Surroundings<'_>, recorder: &mut Recorder) -> Self {
        let workloads = around.workloads.iter().enumerate();
        let limited =
            workloads.filter(|(_, name)| settings.limits.is_empty() || settings.limits.iter().any(|l| l == *name));
        Self {
            per_second: settings.capacity_per_second * around.scale,
            factor: 1.0,
            burst_nanos: settings.burst.nanos,
            latency: settings.latency.nanos,
            refusal_latency: settings.refusal_latency.nanos,
            remembers: settings.remembers.nanos,
            limits: limited.map(|(index, _)| u16::try_from(index).unwrap_or(u16::MAX)).collect(),
            down: false,
            given_until: 0,
            verdicts: HashMap::default(),
            forget: VecDeque::new(),
            most_verdicts: around.most_arrivals(settings.remembers.nanos),
            placed: recorder.count(format!("{}.placed", settings.name)),
            refused: recorder.count(format!("{}.refused", settings.name)),
        }
    }

    /// Whether a request has a placement; decided at its first sight and remembered.
    fn place(&mut self, now: Nanos, number: u64) -> bool {
        while let Some((_, number)) = self.forget.front().copied().filter(|(at, _)| *at <= now) {
            self.forget.pop_front();
            self.verdicts.remove(&number);
        }
        if let Some(verdict) = self.verdicts.get(&number) {
            return *verdict;
        }
        let each = nanos(1e9 / (self.per_second * self.factor).max(1e-9));
        let next = self.given_until.max(now.saturating_sub(self.burst_nanos)).saturating_add(each);
        let verdict = next <= now;
        if verdict {
            self.given_until = next;
        }
        self.verdicts.insert(number, verdict);
        self.forget.push_back((now.saturating_add(self.remembers), number));
        verdict
    }
}

impl Actor for ModelPoolActor {
    fn arrive(&mut self, call: CallId, context: &mut Context<'_>) {
        if self.down {
            return context.reply(call, Reply::failure(Form::ConnectionRefused));
        }
        let Some((workload, number)) = context.facts_of(call).map(|facts| (facts.workload, facts.number)) else {
            return;
        };
        if !self.limits.contains(&workload) || self.place(context.now(), number) {
            context.count(self.placed);
            context.reply_after(call, self.latency, Reply::SUCCESS);
        } else {
            context.count(self.refused);
            context.reply_after(call, self.refusal_latency, Reply::failure(Form::Capacity));
        }
    }

    fn change(&mut self, event: &Event, _: &mut Context<'_>) {
        self.factor = event.change.capacity_factor.unwrap_or(self.factor);
        self.down = event.change.down.unwrap_or(self.down);
    }

    fn held(&self) -> usize {
        self.verdicts.len()
    }

    fn bound(&self, _: UnderWay) -> usize {
        self.most_verdicts
    }
}
