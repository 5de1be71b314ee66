//! What the checkers are told of one process of Seawall: they see the engine as its host sees it.

use crate::checkers::{self, Boundaries, ClassOrder, Lane, Turn};
use seawall_core::Engine;
use seawall_core::engine::Arrival;
use seawall_core::id::DeploymentId;
use seawall_core::settings::{Criticality, Mode, Settings};
use seawall_core::time::Instant;

/// How often an engine in which nobody waits is looked at all the same.
const EVERY: u32 = 64;

#[derive(Debug)]
pub(super) struct Watch {
    order: ClassOrder,
    looks: u32,
    /// Of each tenant: its boundary's number, the most that its requests may claim, whether it is only observed.
    tenants: Vec<(usize, Criticality, bool)>,
    /// Which pools are only observed.
    observed: Vec<bool>,
}

impl Watch {
    pub(super) fn new(settings: &Settings) -> Self {
        let boundaries = Boundaries::of(settings);
        let tenants = settings.tenants.iter().map(|tenant| {
            let observed = tenant.mode == Mode::Observe;
            (boundaries.number(tenant.boundary.as_deref()), tenant.priority_ceiling, observed)
        });
        Self {
            order: ClassOrder::default(),
            looks: 0,
            tenants: tenants.collect(),
            observed: settings.pools.iter().map(|pool| pool.mode == Mode::Observe).collect(),
        }
    }

    /// A request is given to the engine, after all that was due before. `None`: it never waits, being observed or unknown.
    pub(super) fn arrives(&mut self, arrival: &Arrival) -> Option<Turn> {
        let (boundary, ceiling, observed) = *self.tenants.get(arrival.tenant.index())?;
        if observed || *self.observed.get(arrival.pool.index())? {
            return None;
        }
        let lane = Lane { pool: arrival.pool.index(), boundary };
        Some(self.order.arrives(lane, arrival.criticality.clamped(ceiling)))
    }

    /// It was not let go at once.
    pub(super) fn waits(&mut self, turn: Turn) {
        self.order.waits(turn);
    }

    /// It has ended, or was let go.
    pub(super) fn leaves(&mut self, turn: Turn) {
        self.order.leaves(turn);
    }

    /// A request is let go for the first time, to this deployment.
    pub(super) fn goes(&self, now: Instant, turn: Turn, engine: &Engine, to: DeploymentId) -> Option<String> {
        let overtakes = self.order.overtakes(turn)?;
        let views = engine.view(now);
        let mut deployments = views.iter().flat_map(|view| &view.deployments);
        let is_trial = deployments.any(|view| view.deployment == to && view.health != "healthy");
        (!is_trial).then_some(overtakes)
    }

    /// All that was due has been done. `admitted`: requests that the engine was given and that have not ended; `running`:
    /// attempts that are under way.
    pub(super) fn look(
        &mut self,
        now: Instant,
        settings: &Settings,
        engine: &Engine,
        admitted: usize,
        running: usize,
    ) -> Option<String> {
        let count = checkers::count(engine.live(), admitted);
        self.looks += 1;
        if count.is_some() || (self.order.is_idle() && !self.looks.is_multiple_of(EVERY)) {
            return count;
        }
        let views = engine.view(now);
        let waits = checkers::work_conservation(settings, &views, &self.order, engine.flights() - running);
        waits.or_else(|| checkers::work_accounts(&views))
    }
}
