//! The health check: a connection to the database from the instance's own node, or nothing at all.

use super::{CHECK, Held, ServiceActor, State, mark};
use crate::Nanos;
use crate::calls::{Facts, Reply};
use crate::context::Context;
use seawall_cases::scenario::{Criticality, HealthDependence};

impl ServiceActor {
    /// Checks an instance, and sets when it is checked next.
    pub(super) fn check(&mut self, index: u32, context: &mut Context<'_>) {
        let now = context.now();
        if (self.drop_check(index, context) && self.missed(index, context)) || self.stopped {
            return;
        }
        let next = self.checks.around(self.health.every.nanos, self.health.every_spread);
        let instance = &mut self.instances[index as usize];
        context.timer(next, CHECK, mark(index, instance.life));
        if instance.depends_on == HealthDependence::Itself {
            return self.passed(index, context);
        }
        if !self.ports.take(now, instance.node) {
            self.missed(index, context);
            return;
        }
        let request = context.open_request(facts_of_a_check(now));
        let outbound = context.send(self.database, request, 0, now.saturating_add(next));
        context.release(request);
        instance.check = Some(self.held.insert(Held::Check { instance: index, outbound }));
        if let Some(call) = context.call_mut(outbound) {
            call.token = instance.check.unwrap_or(u64::MAX);
        }
    }

    pub(super) fn check_answered(&mut self, place: u64, reply: Reply, context: &mut Context<'_>) {
        let Some(Held::Check { instance: index, .. }) = self.held.remove(place) else { return };
        let instance = &mut self.instances[index as usize];
        instance.check = None;
        self.ports.close(context.now(), instance.node);
        if reply.is_success() {
            self.passed(index, context);
        } else {
            self.missed(index, context);
        }
    }

    /// Stops waiting for the answer to a check; `false`: there is none under way.
    pub(super) fn drop_check(&mut self, index: u32, context: &mut Context<'_>) -> bool {
        let instance = &mut self.instances[index as usize];
        let check = instance.check.take().and_then(|place| self.held.remove(place));
        let Some(Held::Check { outbound, .. }) = check else { return false };
        context.abandon(outbound);
        self.ports.close(context.now(), instance.node);
        true
    }

    fn passed(&mut self, index: u32, context: &mut Context<'_>) {
        let instance = &mut self.instances[index as usize];
        instance.missed = 0;
        if instance.state == State::Starting {
            instance.state = State::Healthy;
            let position = self.healthy.partition_point(|other| *other < index);
            self.healthy.insert(position, index);
            self.levels(context);
        }
    }

    /// Whether that was one too many, so that the instance is restarted.
    fn missed(&mut self, index: u32, context: &mut Context<'_>) -> bool {
        context.count(self.series.missed_checks);
        let instance = &mut self.instances[index as usize];
        instance.missed += 1;
        let is_restarted = instance.missed >= self.health.misses;
        if is_restarted {
            context.count(self.series.restarts);
            self.stop(index, context);
            let restart = self.restarts.around(self.health.restart.nanos, self.health.restart_spread);
            self.start_after(index, restart, context);
        }
        is_restarted
    }

    pub(super) fn set_dependence(&mut self, index: u64, depends_on: HealthDependence) {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        if let Some(instance) = self.instances.get_mut(index) {
            instance.depends_on = depends_on;
        }
    }
}

/// A check is a request that nobody sent.
const fn facts_of_a_check(now: Nanos) -> Facts {
    Facts {
        number: 0,
        workload: 0,
        model: 0,
        criticality: Criticality::Critical,
        key: 0,
        content: 0,
        work: 0,
        prompt_tokens: 0,
        output_tokens: 0,
        large: false,
        arrived: now,
        attempts: 0,
        upstream: 0,
    }
}
