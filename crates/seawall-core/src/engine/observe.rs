//! Law 12, observe: forwards at once by plain balancing, and says what enforcing would have done.
//!
//! An observed request goes to one of all deployments that its tenant may use, by the pool's own policy, whatever their
//! health and capacity are and without a slow start. It never waits, is never tried again, and no deadline cuts it. The
//! residency boundary, an unknown model and a process that goes away refuse as ever.
//!
//! Beside it the engine keeps a shadow: which attempts would be in flight where, and who would wait, if every request
//! were enforced. A request that would have waited stands in a shadow line with the same order, bounds and expiry as the
//! real one; it is let go in there when the shadow has room. Health, learned capacity and budgets have no shadow: what
//! upstreams answer is true in both modes, so switching to enforce needs no warm-up, and enforced requests of the same
//! pool find all that is in flight counted.
//!
//! What the shadow cannot know is how long a service would have taken if less had been sent. It assumes that an upstream
//! completes as many requests as it does now. So where a request that would have been refused is served all the same, the
//! end of it frees a place in the shadow: with an upstream that queues what is over its size this is exact, and where
//! the told size is too small it is lenient. How long a service takes is reckoned down to what enforcing would have in
//! flight; whether a wait could be served in time is an estimate from that, so at its edge single verdicts may differ. A wait that nothing but time ends is looked at when the next thing happens in
//! the pool; only its length is not exact then, and no length is told.

use super::pool::{Member, Pool};
use super::route::{Eligibility, Room, Tier};
use super::{Deadline, Engine, Live, Phase, Plan};
use crate::classify::{AttemptEnd, Repeatability};
use crate::engine::io::{Scope, Verdict};
use crate::id::{DeploymentId, PoolId, RequestId};
use crate::outcome::Outcome;
use crate::permit::Payment;
use crate::queue::{Lane, Place, Turn};
use crate::random::Random;
use crate::routing::Candidate;
use crate::settings::Mode;
use crate::time::Instant;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use smallvec::SmallVec;

/// Where a request would stand if every request were enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shadow {
    /// Nowhere: it would have ended, or it waits in the real line.
    Out,
    /// In the line.
    Waits { expires: Instant },
    /// In flight, there.
    Runs { member: usize },
}

/// What enforcing would do with a request that goes to a certain member.
enum Would {
    /// The same. `on_trial`: although the member is not healthy.
    Fit { on_trial: bool },
    /// Send it to that one.
    Move { member: usize, verdict: Verdict },
    /// Make it wait.
    NoRoom,
}

impl Engine {
    /// Steps 5 to 8 for an observed request; `sent_to`: where it goes, where the host has decided that.
    pub(super) fn forward(&mut self, now: Instant, request: RequestId, sent_to: Option<DeploymentId>) {
        let Some(live) = self.requests.get(&request).copied() else { return };
        let who = self.eligibility(&live);
        let pool = &mut self.pools[live.pool.index()];
        let sent_to = sent_to.and_then(|id| pool.members.iter().position(|member| member.id == id));
        let Some(member) = sent_to.or_else(|| pool.pick_any(now, who, &mut self.random)) else {
            return self.finish(now, request, Outcome::NoHealthyDeployment, None, false);
        };
        self.serve_shadow(now, live.pool);
        let on_trial = self.judge(now, request, &live, member);
        self.dispatch(now, request, Plan::new(member, on_trial, Payment::Admission));
    }

    /// Changes a mode. Who waits for a first attempt and is only observed now is let go at once.
    pub(super) fn switch(&mut self, now: Instant, scope: Scope, mode: Mode) {
        let kept = match scope {
            Scope::Pool(id) => self.pools.get_mut(id.index()).map(|pool| &mut pool.settings.mode),
            Scope::Tenant(id) => self.tenants.get_mut(id.index()).map(|tenant| &mut tenant.mode),
        };
        let Some(kept) = kept else { return };
        *kept = mode;
        if mode == Mode::Enforce {
            return;
        }
        let concerns = |live: &Live| match scope {
            Scope::Pool(id) => live.pool == id,
            Scope::Tenant(id) => live.tenant == id,
        };
        let waits = |live: &Live| live.attempts == 0 && live.waits_since().is_some() && concerns(live);
        let waiting: Vec<RequestId> =
            self.requests.iter().filter(|(_, live)| waits(live)).map(|(request, _)| *request).collect();
        for request in waiting {
            let Some(live) = self.requests.get_mut(&request) else { continue };
            live.observed = true;
            let live = *live;
            self.leave_line(request, &live);
            self.forward(now, request, None);
        }
    }

    /// Finds out what enforcing would have done at its arrival. Whether the attempt is on trial.
    fn judge(&mut self, now: Instant, request: RequestId, live: &Live, picked: usize) -> bool {
        if live.deadline.is_some_and(|deadline| deadline <= now) {
            self.rule(request, Verdict::Refuse(Outcome::DeadlineUnmeetable), Shadow::Out);
            return false;
        }
        let who = self.eligibility(live);
        match self.pools[live.pool.index()].would_route(now, who, picked) {
            Would::Fit { on_trial } => {
                self.shadow_start(now, request, picked);
                return on_trial;
            }
            Would::Move { member, verdict } => {
                self.rule(request, verdict, Shadow::Out);
                self.shadow_start(now, request, member);
            }
            Would::NoRoom => self.shadow_wait(now, request, live),
        }
        false
    }

    fn rule(&mut self, request: RequestId, verdict: Verdict, shadow: Shadow) {
        if let Some(live) = self.requests.get_mut(&request) {
            (live.verdict, live.shadow) = (Some(verdict), shadow);
        }
    }

    fn shadow_start(&mut self, now: Instant, request: RequestId, member: usize) {
        let Some(live) = self.requests.get_mut(&request) else { return };
        live.shadow = Shadow::Runs { member };
        let pool = &mut self.pools[live.pool.index()];
        pool.members[member].shadow_in_flight += 1;
        pool.pay_in(now, live.tenant);
    }

    /// Takes its place in the shadow line, unless the wait could not have succeeded.
    fn shadow_wait(&mut self, now: Instant, request: RequestId, live: &Live) {
        let lane = self.shadow_lane(live);
        let place = live.place_in_line(now);
        if !self.would_wait(now, live, lane) {
            return self.rule(request, Verdict::Refuse(Outcome::CapacityExhausted), Shadow::Out);
        }
        let pool = &mut self.pools[live.pool.index()];
        pool.shadow_line.insert(lane, place, request, live.account.expected(live.tenant, &pool.ledger));
        let expires = place.due - pool.least_left(place.bound);
        self.deadlines.insert((expires, Deadline::Shadow(request)));
        self.rule(request, Verdict::Wait, Shadow::Waits { expires });
        if let Some(live) = self.requests.get_mut(&request) {
            live.place = place;
        }
    }

    /// Whether a wait that begins now could succeed.
    fn would_wait(&mut self, now: Instant, live: &Live, lane: Lane) -> bool {
        let place = live.place_in_line(now);
        let pool = &mut self.pools[live.pool.index()];
        let fits = pool.queue.len() + pool.shadow_line.len() < pool.longest_line();
        let opens = pool.closed_beyond(place.due, Eligibility::of(lane)).is_none();
        let ahead = pool.queue.ahead_of(place) + pool.shadow_line.ahead_of(place);
        fits && opens && place.due > now && pool.can_serve_in_time(now, place, ahead)
    }

    /// Lets go in the shadow whoever could go, in order.
    pub(super) fn serve_shadow(&mut self, now: Instant, id: PoolId) {
        let pool = &self.pools[id.index()];
        let lanes = pool.shadow_line.lanes();
        let mut heads: BTreeSet<(Turn, Lane)> =
            lanes.filter_map(|lane| Some((pool.shadow_head(now, lane)?.0, lane))).collect();
        while let Some((_, lane)) = heads.pop_first() {
            let pool = &mut self.pools[id.index()];
            let Some((.., request)) = pool.shadow_head(now, lane) else { continue };
            let Some((_, member)) = pool.would_take(now, Eligibility::of(lane), Room::Any) else { continue };
            self.leave_shadow(request);
            self.shadow_start(now, request, member);
            heads.extend(self.pools[id.index()].shadow_head(now, lane).map(|(turn, ..)| (turn, lane)));
        }
    }

    /// Its wait would be over: it would have been refused, unless there has been room meanwhile.
    pub(super) fn shadow_expired(&mut self, now: Instant, request: RequestId) {
        let Some(id) = self.requests.get(&request).map(|live| live.pool) else { return };
        self.serve_shadow(now, id);
        let waits = |live: &&Live| matches!(live.shadow, Shadow::Waits { .. });
        let Some(live) = self.requests.get(&request).filter(waits) else { return };
        let missed = live.deadline.is_some_and(|deadline| deadline <= now);
        let outcome = if missed { Outcome::DeadlineUnmeetable } else { Outcome::CapacityExhausted };
        self.leave_shadow(request);
        self.rule(request, Verdict::Refuse(outcome), Shadow::Out);
    }

    /// Takes an attempt that ended out of the shadow.
    pub(super) fn shadow_end(&mut self, request: RequestId, end: AttemptEnd) {
        let Some(live) = self.requests.get(&request).copied() else { return };
        let Phase::Running { member, .. } = live.phase else { return };
        let freed = match self.leave_shadow(request) {
            Shadow::Runs { member } => member,
            // It was served although it would have been refused: an enforced one would have been served instead.
            Shadow::Out if end.repeatability() != Repeatability::NeverStarted => member,
            Shadow::Out | Shadow::Waits { .. } => return,
        };
        let freed = &mut self.pools[live.pool.index()].members[freed].shadow_in_flight;
        *freed = freed.saturating_sub(1);
    }

    /// Takes a request out of the shadow. Where it stood.
    fn leave_shadow(&mut self, request: RequestId) -> Shadow {
        let Some(live) = self.requests.get_mut(&request) else { return Shadow::Out };
        let shadow = core::mem::replace(&mut live.shadow, Shadow::Out);
        let live = *live;
        if let Shadow::Waits { expires } = shadow {
            let lane = self.shadow_lane(&live);
            self.pools[live.pool.index()].shadow_line.remove(lane, live.place);
            self.deadlines.remove(&(expires, Deadline::Shadow(request)));
        }
        shadow
    }

    fn shadow_lane(&self, live: &Live) -> Lane {
        Lane { boundary: self.eligibility(live).boundary, exclude: None, payer: None }
    }

    /// Steps 11 and 12 for an observed request whose attempt enforcing might have followed by another one. `live` is the
    /// request as it was when the attempt ended.
    pub(super) fn end_observed(&mut self, now: Instant, live: &Live, request: RequestId, end: AttemptEnd) {
        // What never stood there in the shadow would not have failed there.
        if let Phase::Running { member, .. } = live.phase
            && live.shadow == (Shadow::Runs { member })
            && let Some(verdict) = self.would_repeat(now, live, member, end)
            && let Some(live) = self.requests.get_mut(&request)
        {
            live.verdict.get_or_insert(verdict);
        }
        self.finish_replaced(now, request, end);
    }

    /// What step 11 would have done after this end. It spends what it would have spent.
    fn would_repeat(&mut self, now: Instant, live: &Live, member: usize, end: AttemptEnd) -> Option<Verdict> {
        if !self.may_try_again(now, live) {
            return None;
        }
        let exclude = match end {
            AttemptEnd::Throttled { .. } | AttemptEnd::StaleConnection => None,
            _ => live.last,
        };
        let who = Eligibility { exclude, ..self.eligibility(live) };
        let lane = self.shadow_lane(live);
        let failed_is_healthy = self.is_healthy(live);
        let pool = &mut self.pools[live.pool.index()];
        let found = pool.would_take(now, who, Room::Any);
        if end.repeatability() == Repeatability::Repeatable {
            let useful = failed_is_healthy || pool.members[found?.1].health.is_healthy();
            return (useful && pool.pays_for_repeat(now, live.tenant)).then_some(Verdict::Retry);
        }
        let again = end == AttemptEnd::StaleConnection && pool.would_serve(now, member);
        let known =
            pool.would_take(now, who, Room::Known).filter(|(tier, _)| found.is_some_and(|best| best.0 == *tier));
        if (again || known.is_some()) && pool.not_sent_bucket.withdraw(now, live.tenant) {
            return Some(Verdict::Retry);
        }
        if pool.permits_any(who) && self.would_wait(now, live, lane) {
            return Some(Verdict::Wait);
        }
        let paid = found.is_some() && self.pools[live.pool.index()].not_sent_bucket.withdraw(now, live.tenant);
        paid.then_some(Verdict::Retry)
    }
}

impl Live {
    /// The verdict on an observed request that went on after its deadline.
    pub(super) fn overrun(&self, now: Instant) -> Option<Verdict> {
        let late = self.attempts > 0 && self.deadline.is_some_and(|deadline| deadline < now);
        (self.observed && late).then_some(Verdict::Refuse(Outcome::DeadlineUnmeetable))
    }
}

impl Pool {
    /// Step 7 for an observed request: the policy picks among all that are permitted.
    fn pick_any(&mut self, now: Instant, who: Eligibility, random: &mut Random) -> Option<usize> {
        let ejection = &self.settings.ejection;
        let permitted = self.members.iter().enumerate().filter(|(_, member)| who.permits(member));
        let plain = |member: &Member| Candidate { share_percent: 100, ..member.candidate(now, ejection) };
        let candidates: SmallVec<[(Candidate, usize); 16]> =
            permitted.map(|(index, member)| (plain(member), index)).collect();
        (!candidates.is_empty()).then(|| candidates[self.pick(&candidates, random)].1)
    }

    /// What enforcing would do with a request that goes to `picked`.
    fn would_route(&mut self, now: Instant, who: Eligibility, picked: usize) -> Would {
        if self.would_serve(now, picked) {
            return Would::Fit { on_trial: false };
        }
        let member = &mut self.members[picked];
        let takes = member.would_have_room(now);
        // Its probe comes from this request as well as from another one.
        if takes && member.health.probe_due(now, false) {
            return Would::Fit { on_trial: true };
        }
        let standing = self.standing(who);
        let member = &mut self.members[picked];
        let (healthy, tier) = (member.health.is_healthy(), standing.tier(member));
        match self.would_take(now, who, Room::Any) {
            None => Would::NoRoom,
            Some((best, _)) if takes && tier == best => Would::Fit { on_trial: !healthy },
            Some((best, member)) if tier > best => Would::Move { member, verdict: Verdict::MoveForHealth },
            Some((_, member)) => Would::Move { member, verdict: Verdict::MoveForCapacity },
        }
    }

    /// Whose turn it would be in a lane.
    fn shadow_head(&self, now: Instant, lane: Lane) -> Option<(Turn, Place, RequestId)> {
        self.shadow_line.head(now, self.headroom(), lane)
    }

    /// Whether `member` would take another attempt now without being on trial.
    fn would_serve(&mut self, now: Instant, member: usize) -> bool {
        let member = &mut self.members[member];
        member.health.is_healthy() && member.would_have_room(now)
    }

    /// Where a request could go in the shadow, and its tier: the lightest one of the first tier with room. What is out is
    /// asked only where all that is permitted is out, as in [`Pool::route`].
    fn would_take(&mut self, now: Instant, who: Eligibility, room: Room) -> Option<(Tier, usize)> {
        let standing = self.standing(who);
        let lighter = |member: &Member, other: &Member| {
            let next = |member: &Member| u64::from(member.shadow_in_flight) + 1;
            next(member) * u64::from(other.settings.weight) < next(other) * u64::from(member.settings.weight)
        };
        let mut best: Option<(Tier, usize)> = None;
        for index in 0..self.members.len() {
            let member = &mut self.members[index];
            let tier = standing.tier(member);
            let has_room = member.would_have_room(now) && (room == Room::Any || member.would_have_known_place());
            if !who.permits(member) || (tier == Tier::Out && standing.any_kept) || !has_room {
                continue;
            }
            let better = |(other, at): (Tier, usize)| {
                tier < other || (tier == other && lighter(&self.members[index], &self.members[at]))
            };
            if best.is_none_or(better) {
                best = Some((tier, index));
            }
        }
        best
    }
}
