//! Step 11, fall back: a request that its model cannot serve moves to the next model on that one's list.
//!
//! It moves as it is, to be tried, counted and refused there as if it had asked for that model: its attempts, its deadline
//! and what pays for the next attempt stay. Lists are walked forwards only and each model is visited once, so the walk
//! ends whatever they hold. A request does not leave merely because it has to wait: only where its model cannot be
//! tried, fails, is closed by a wait that it stated, or would refuse it for want of capacity. A second list holds the models
//! for requests with more tokens than their model's context can hold, and serves nothing else.

use super::route::{Eligibility, Room, Routed};
use super::{Engine, Live, Plan};
use crate::id::{PoolId, RequestId};
use crate::permit::Payment;
use crate::settings::Mode;
use crate::time::Instant;

/// Another pool that has room for a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hop {
    pool: PoolId,
    member: usize,
    /// Entries of the list that are behind it then.
    passed: usize,
}

/// A list of models to move to.
#[derive(Clone, Copy, Debug)]
enum List {
    /// Those that take over what the model cannot serve, from this entry on.
    From(usize),
    /// Those with a longer context.
    Context,
}

impl Engine {
    /// The next pool on the request's list that it may use and that has healthy room for it now.
    pub(super) fn hop(&mut self, now: Instant, live: &Live) -> Option<Hop> {
        self.hop_along(now, live, List::From(live.passed))
    }

    fn hop_along(&mut self, now: Instant, live: &Live, list: List) -> Option<Hop> {
        // What nobody waits for is not worth another model.
        if live.observed || live.is_left() {
            return None;
        }
        let tenant = self.tenants.get(live.tenant.index())?;
        let who = Eligibility { boundary: tenant.boundary, exclude: None };
        let first = if let List::From(index) = list { index } else { 0 };
        for index in first.. {
            let settings = &self.pools[live.asked.index()].settings;
            // From a longer context none of the other list leads on.
            let (entries, passed) = match list {
                List::From(_) => (&settings.fallbacks, index + 1),
                List::Context => (&settings.context_fallbacks, settings.fallbacks.len()),
            };
            let pool = *entries.get(index)?;
            // It visits each model once, whichever list it stands on.
            let is_permitted = self.tenants[live.tenant.index()].pools.contains(&pool) && pool != live.pool;
            let Some(next) = self.pools.get_mut(pool.index()).filter(|_| is_permitted) else { continue };
            if next.settings.mode == Mode::Observe {
                continue;
            }
            if let Routed::To { member, on_trial: false } = next.route(now, who, None, Room::Any, &mut self.random) {
                return Some(Hop { pool, member, passed });
            }
        }
        None
    }

    /// Moves a request and makes its next attempt there.
    pub(super) fn take_hop(&mut self, now: Instant, request: RequestId, hop: Hop, payment: Payment) {
        let Some(live) = self.requests.get(&request).copied() else { return };
        self.leave_line(request, &live);
        let Some(live) = self.requests.get_mut(&request) else { return };
        (live.pool, live.passed, live.exclude) = (hop.pool, hop.passed, None);
        self.dispatch(now, request, Plan::new(hop.member, false, payment));
    }

    /// Instead of a first attempt at a deployment that is out of rotation: whether it went elsewhere. Where it is time
    /// to find out whether that one works again, it does not.
    pub(super) fn avoids_trial(&mut self, now: Instant, request: RequestId, member: usize) -> bool {
        let Some(live) = self.requests.get(&request).copied() else { return false };
        let pool = &self.pools[live.pool.index()];
        if pool.members[member].is_probe_due(now, !pool.queue.is_empty()) {
            return false;
        }
        self.begins_elsewhere(now, request)
    }

    /// Instead of a first attempt that cannot be made: whether it went elsewhere.
    pub(super) fn begins_elsewhere(&mut self, now: Instant, request: RequestId) -> bool {
        let Some(live) = self.requests.get(&request).copied() else { return false };
        let Some(hop) = self.hop(now, &live) else { return false };
        self.take_hop(now, request, hop, live.first_payment());
        true
    }

    /// Instead of a second attempt that its own model cannot make: whether it went elsewhere, and was paid for.
    pub(super) fn retries_elsewhere(&mut self, now: Instant, request: RequestId) -> bool {
        let Some(live) = self.requests.get(&request).copied() else { return false };
        let Some(hop) = self.hop(now, &live) else { return false };
        let is_paid = self.pools[live.pool.index()].retry_budget.withdraw(now, live.tenant);
        if is_paid {
            self.take_hop(now, request, hop, Payment::RetryBudget);
        }
        is_paid
    }

    /// Instead of telling the client that its request is too long: whether it went to a model with a longer context, and was
    /// paid for.
    pub(super) fn fits_elsewhere(&mut self, now: Instant, request: RequestId) -> bool {
        let Some(live) = self.requests.get(&request).copied() else { return false };
        if !self.may_try_again(now, &live) {
            return false;
        }
        let Some(hop) = self.hop_along(now, &live, List::Context) else { return false };
        let is_paid = self.pools[live.pool.index()].retry_budget.withdraw(now, live.tenant);
        if is_paid {
            self.take_hop(now, request, hop, Payment::RetryBudget);
        }
        is_paid
    }

    /// Instead of waiting or being refused where there is no capacity: whether it went elsewhere. Where an attempt of it
    /// never started, the small bucket has to pay.
    pub(super) fn spills_over(&mut self, now: Instant, request: RequestId) -> bool {
        let Some(live) = self.requests.get(&request).copied() else { return false };
        if live.attempts == 0 {
            return live.deadline.is_none_or(|deadline| deadline > now) && self.begins_elsewhere(now, request);
        }
        if !self.may_try_again(now, &live) {
            return false;
        }
        let Some(hop) = self.hop(now, &live) else { return false };
        let is_paid = self.pools[live.pool.index()].not_sent_bucket.withdraw(now, live.tenant);
        if is_paid {
            self.take_hop(now, request, hop, Payment::NotSentBucket);
        }
        is_paid
    }
}
