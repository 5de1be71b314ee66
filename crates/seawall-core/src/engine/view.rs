//! What the engine shows of itself: plain copies for `/statusz` and metrics.

use super::Engine;
use crate::id::{DeploymentId, PoolId};
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
    /// Its deployments, in the order of the configuration.
    pub deployments: Vec<DeploymentView>,
}

/// One deployment as it stands.
#[derive(Clone, Debug)]
pub struct DeploymentView {
    /// Which one.
    pub deployment: DeploymentId,
    /// Attempts in flight.
    pub in_flight: u32,
    /// Attempts that would be in flight if every request were enforced.
    pub would_run: u32,
    /// The bound on them, where there is one.
    pub limit: Option<u32>,
    /// Whether one more attempt may start there now, as far as its capacity is concerned.
    pub has_room: bool,
    /// `healthy`, `failing`, `ejected` or `probing`.
    pub health: &'static str,
    /// What is left of a wait that it stated.
    pub closed_for: Duration,
    /// The share of its normal traffic it gets, in percent: below 100 during a slow start.
    pub share_percent: u32,
    /// Peak-sensitive average of the time to the first byte.
    pub latency: Duration,
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
                deployments: pool
                    .members
                    .iter()
                    .map(|member| DeploymentView {
                        deployment: member.id,
                        in_flight: member.capacity.in_flight(),
                        would_run: member.shadow_in_flight,
                        limit: member.capacity.limit(now),
                        has_room: member.capacity.has_room(now),
                        health: member.health.state().label(),
                        closed_for: member.capacity.closed_until().since(now),
                        share_percent: member.health.slow_start_percent(now, &pool.settings.ejection),
                        latency: Duration::from_nanos(member.latency.nanos()),
                    })
                    .collect(),
            })
            .collect()
    }

    /// The windows that the deployments' methods of discovery have learned and that are worth remembering.
    pub fn windows(&self) -> Vec<(DeploymentId, u32)> {
        let members = self.pools.iter().flat_map(|pool| &pool.members);
        members.filter_map(|member| Some((member.id, member.capacity.window()?))).collect()
    }

    /// Starts a deployment from a window that an earlier run has learned. An unknown one is ignored.
    pub fn remember_window(&mut self, deployment: DeploymentId, window: u32) {
        let members = self.pools.iter_mut().flat_map(|pool| &mut pool.members);
        members.filter(|member| member.id == deployment).for_each(|member| member.capacity.remember(window));
    }
}
