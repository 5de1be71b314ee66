//! What a flight costs: the work of an attempt is in flight as it was reckoned at its start, and settled at its end.
//!
//! A flight is charged once for each of its attempts, to the tenant that began it, whoever waits for its answer. The
//! account of the work that is in flight takes off at an attempt's end what it was given at its start, so that it comes
//! back to nothing whatever has been learned meanwhile.

use super::pool::Pool;
use super::{Engine, Live, Phase};
use crate::classify::AttemptEnd;
use crate::cost::ledger::Ended;
use crate::cost::weight::Timing;
use crate::cost::{Cost, Demand, Ledger, Used, Work};
use crate::id::{RequestId, TenantId};
use crate::time::Instant;

/// The account of a flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Account {
    demand: Demand,
    /// What the attempt that runs was reckoned to cost when it started.
    in_flight: Work,
    /// Others in flight at its deployment then.
    load: u32,
    /// Whether its answer has begun.
    has_begun: bool,
    /// What the host has told of it.
    used: Option<Used>,
    /// What the attempts before it have cost.
    settled: Cost,
}

impl Account {
    pub(super) const fn new(demand: Demand) -> Self {
        let (in_flight, settled) = (Work::ZERO, Cost::NONE);
        Self { demand, in_flight, load: 0, has_begun: false, used: None, settled }
    }

    /// What the next attempt is thought to cost.
    pub(super) fn expected(&self, tenant: TenantId, ledger: &Ledger) -> Work {
        ledger.expected(tenant, &self.demand)
    }

    /// Tokens that the next attempt is thought to need, input and output together.
    pub(super) fn expected_tokens(&self, tenant: TenantId, ledger: &Ledger) -> u64 {
        self.demand.input_tokens.saturating_add(ledger.expected_output(tenant, &self.demand))
    }

    /// What the attempts that have ended have cost.
    pub(super) const fn settled(&self) -> Cost {
        self.settled
    }

    /// An attempt is about to start.
    pub(super) fn begin(&mut self, tenant: TenantId, pool: &mut Pool, member: usize) {
        let expected = self.expected(tenant, &pool.ledger);
        let state = &mut pool.members[member];
        state.work_in_flight = state.work_in_flight.plus(expected);
        let load = state.capacity.in_flight();
        *self = Self { in_flight: expected, load, has_begun: false, used: None, ..*self };
    }

    /// The answer of the running attempt began.
    pub(super) const fn answer_began(&mut self) {
        self.has_begun = true;
    }

    const fn ended(&self, tenant: TenantId, end: AttemptEnd) -> Ended {
        Ended { tenant, demand: self.demand, end, has_begun: self.has_begun, used: self.used }
    }

    /// How long the parts of an attempt took that ends now, where they can be told apart and its input is known.
    fn timing(&self, now: Instant, pool: &Pool, member: usize, started: Instant) -> Option<Timing> {
        let used = self.used?;
        let first_output = used.first_output?;
        Some(Timing {
            deployment: pool.members[member].id,
            load: self.load,
            uncached_input_tokens: used.input_tokens?.saturating_sub(used.cached_input_tokens),
            first_output: first_output.since(started),
            output_tokens: used.output_tokens,
            rest: now.since(first_output),
        })
    }
}

impl Live {
    /// What the flight has cost until now: an attempt that runs as if it ended now because its client left.
    pub(super) fn cost_so_far(&self, ledger: &Ledger) -> Cost {
        match self.phase {
            Phase::Waiting { .. } => self.account.settled,
            Phase::Running { .. } => {
                let running = self.account.ended(self.tenant, AttemptEnd::ClientGone);
                self.account.settled.plus(ledger.cost(&running))
            }
        }
    }
}

impl Engine {
    /// Takes note of what a running attempt has used.
    pub(super) fn note_used(&mut self, request: RequestId, number: u32, used: Used) {
        if let Some(live) = self.requests.get_mut(&request).filter(|live| live.attempts == number)
            && let Phase::Running { .. } = live.phase
        {
            live.account.used = Some(used);
        }
    }

    /// Settles the attempt of a flight that ends now.
    pub(super) fn settle(&mut self, now: Instant, request: RequestId, end: AttemptEnd) {
        let Some(live) = self.requests.get_mut(&request) else { return };
        let Phase::Running { member, started, .. } = live.phase else { return };
        let pool = &mut self.pools[live.pool.index()];
        let account = &mut live.account;
        let state = &mut pool.members[member];
        state.work_in_flight = state.work_in_flight.minus(core::mem::take(&mut account.in_flight));
        let timing = account.timing(now, pool, member, started);
        let cost = pool.ledger.settle(&account.ended(live.tenant, end), timing.as_ref());
        account.settled = account.settled.plus(cost);
    }
}
