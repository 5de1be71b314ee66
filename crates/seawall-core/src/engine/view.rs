//! What the engine shows of itself: plain copies for `/statusz` and metrics.

use super::Engine;
use crate::capacity::Remembered;
use crate::cost::ledger::Totals;
use crate::cost::{Ledger, Work};
use crate::id::{DeploymentId, PoolId, TenantId};
use crate::time::{Duration, Instant};
use alloc::vec::Vec;

/// One pool as it stands.
#[derive(Clone, Debug)]
pub struct PoolView {
    /// Which one.
    pub pool: PoolId,
    /// Requests that wait.
    pub waiting: usize,
    /// Observed requests that would wait if they were enforced.
    pub would_wait: usize,
    /// What they are thought to cost.
    pub work_waiting: Work,
    /// Tokens that an answer is thought to need, whoever asks.
    pub expected_output_tokens: u64,
    /// What an output token weighs, in thousandths of an input token.
    pub output_thousandths: u64,
    /// Its deployments, in the order of the configuration.
    pub deployments: Vec<DeploymentView>,
}

impl PoolView {
    /// What its attempts in flight were thought to cost when they started.
    pub fn work_in_flight(&self) -> Work {
        self.deployments.iter().fold(Work::ZERO, |sum, deployment| sum.plus(deployment.work_in_flight))
    }
}

/// One deployment as it stands.
#[derive(Clone, Debug)]
pub struct DeploymentView {
    /// Which one.
    pub deployment: DeploymentId,
    /// Attempts in flight.
    pub in_flight: u32,
    /// What they were thought to cost when they started.
    pub work_in_flight: Work,
    /// Attempts that would be in flight if every request were enforced.
    pub would_run: u32,
    /// The bound on them, where there is one.
    pub limit: Option<u32>,
    /// Whether one more attempt may start there now, as far as its capacity is concerned.
    pub has_room: bool,
    /// `healthy`, `failing`, `ejected` or `probing`.
    pub health: &'static str,
    /// Whether it answers at all: one that is not healthy and does nothing but fail gets probes while others answer.
    pub answers: bool,
    /// What is left of a wait that it stated.
    pub closed_for: Duration,
    /// The share of its normal traffic it gets, in percent: below 100 during a slow start.
    pub share_percent: u32,
    /// Peak-sensitive average of the time to the first byte.
    pub latency: Duration,
}

/// What a tenant's requests have cost at one model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// Which model.
    pub pool: PoolId,
    /// Whose.
    pub tenant: TenantId,
    /// How much, since the start.
    pub work: Totals,
    /// Tokens that an answer of theirs is thought to need.
    pub expected_output_tokens: u64,
}

impl Engine {
    /// Every pool as it stands at `now`.
    pub fn view(&self, now: Instant) -> Vec<PoolView> {
        let pools = self.pools.iter().enumerate();
        pools
            .map(|(index, pool)| PoolView {
                pool: PoolId::from_index(index),
                waiting: pool.queue.len(),
                would_wait: pool.shadow_line.len(),
                work_waiting: pool.queue.work(),
                expected_output_tokens: pool.ledger.usual_output(),
                output_thousandths: pool.ledger.output_thousandths(),
                deployments: pool
                    .members
                    .iter()
                    .map(|member| DeploymentView {
                        deployment: member.id,
                        in_flight: member.capacity.in_flight(),
                        work_in_flight: member.work_in_flight,
                        would_run: member.shadow_in_flight,
                        limit: member.capacity.limit(now),
                        has_room: member.capacity.has_room(now),
                        health: member.health.state().label(),
                        answers: member.health.answers(),
                        closed_for: member.capacity.closed_until().since(now),
                        share_percent: member.health.slow_start_percent(now, &pool.settings.ejection),
                        latency: Duration::from_nanos(member.latency.nanos()),
                    })
                    .collect(),
            })
            .collect()
    }

    /// What is learned of the deployments' capacities and worth remembering over a restart.
    pub fn learned(&self, now: Instant) -> Vec<(DeploymentId, Remembered)> {
        let members = self.pools.iter().flat_map(|pool| &pool.members);
        members.filter_map(|member| Some((member.id, member.capacity.learned(now)?))).collect()
    }

    /// Starts a deployment from what an earlier run has learned of it. Returns whether it does: see
    /// [`CapacityState::remember`](crate::capacity::CapacityState::remember). One that is unknown does not.
    pub fn remember(&mut self, now: Instant, deployment: DeploymentId, remembered: Remembered) -> bool {
        let mut members = self.pools.iter_mut().flat_map(|pool| &mut pool.members);
        let member = members.find(|member| member.id == deployment);
        member.is_some_and(|member| member.capacity.remember(now, remembered))
    }

    /// What is settled, for every model and tenant that anything is settled for.
    pub fn settled(&self) -> Vec<Settled> {
        let pools = self.pools.iter().enumerate().map(|(index, pool)| (PoolId::from_index(index), &pool.ledger));
        let of = |(pool, ledger): (PoolId, &'_ Ledger)| {
            let settled = |(tenant, work)| {
                let expected_output_tokens = ledger.usual_output_of(tenant);
                Settled { pool, tenant, work, expected_output_tokens }
            };
            ledger.totals().map(settled).collect::<Vec<_>>()
        };
        pools.flat_map(of).collect()
    }

    /// Tokens that an answer of a tenant is thought to need; 0 where there is no such pool.
    pub fn expected_output_tokens(&self, pool: PoolId, tenant: TenantId) -> u64 {
        self.pools.get(pool.index()).map_or(0, |pool| pool.ledger.usual_output_of(tenant))
    }
}
