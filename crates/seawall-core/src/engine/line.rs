//! Step 6, queue: who waits, how long, who is let go, who is told to come back.

use super::route::{Eligibility, Room, Routed};
use super::{Deadline, Engine, Live, Phase, Plan};
use crate::capacity::{Allowance, ServerLoad};
use crate::id::{DeploymentId, PoolId, RequestId};
use crate::outcome::Outcome;
use crate::permit::Payment;
use crate::queue::{Bound, Lane, Turn};
use crate::time::{Duration, Instant};
use alloc::collections::BTreeSet;

/// How long a waiting request whose second attempt is not paid for yet waits before the bucket is asked again.
const BUDGET_RECHECK: Duration = Duration::from_secs(1);

impl Engine {
    /// Takes its place in the line, unless the wait cannot succeed: the line is full, every deployment has stated a wait
    /// that ends too late, or even the pool's best rate could not serve who goes before it in time.
    pub(super) fn wait(&mut self, now: Instant, request: RequestId) {
        let Some(live) = self.requests.get_mut(&request) else { return };
        live.place = live.place_in_line(now);
        let live = *live;
        let lane = self.lane(&live);
        let pool = &mut self.pools[live.pool.index()];
        if pool.closed_beyond(now, Eligibility::of(lane)).is_some() && self.spills_over(now, request) {
            return;
        }
        let pool = &mut self.pools[live.pool.index()];
        let opens = pool.closed_beyond(live.place.due, Eligibility::of(lane));
        let ahead = pool.queue.ahead_of(live.place);
        let is_full = pool.queue.len() >= pool.longest_line();
        if opens.is_some() || is_full || !pool.can_serve_in_time(now, live.place, ahead) {
            if self.takes_any_room(now, request) {
                return;
            }
            let wait = opens.map(|opens| opens.since(now));
            return self.refuse_busy(now, request, wait);
        }
        pool.queue.insert(lane, live.place, request, live.account.expected(live.tenant, &pool.ledger));
        let expires = live.place.due - pool.least_left(live.place.bound);
        self.await_expiry(now, request, expires);
        self.wake(now, live.pool, false);
    }

    /// An answer says how much its deployment takes before its limits: that may be less than was thought, or more.
    pub(super) fn note_allowance(&mut self, now: Instant, request: RequestId, number: u32, allowance: Allowance) {
        let Some(live) = self.requests.get(&request).filter(|live| live.attempts == number) else { return };
        let (Phase::Running { member, sent, .. }, id) = (live.phase, live.pool) else { return };
        if self.pools[id.index()].members[member].capacity.allows(now, sent, allowance) {
            self.serve_line(now, id);
        }
    }

    /// A server says how much it has to do. One that is not in the settings is ignored.
    pub(super) fn note_server_load(&mut self, now: Instant, deployment: DeploymentId, load: ServerLoad) {
        let mut pools = self.pools.iter_mut().enumerate();
        let found = pools.find_map(|(index, pool)| {
            let member = pool.members.iter_mut().find(|member| member.id == deployment)?;
            member.capacity.tells(now, load);
            Some(PoolId::from_index(index))
        });
        if let Some(id) = found {
            self.serve_line(now, id);
        }
    }

    pub(super) fn await_expiry(&mut self, now: Instant, request: RequestId, expires: Instant) {
        let Some(live) = self.requests.get_mut(&request) else { return };
        let since = live.waits_since().unwrap_or(now);
        live.phase = Phase::Waiting { since, expires };
        self.deadlines.insert((expires, Deadline::Queue(request)));
    }

    /// Sees to it that the line is looked at when a member opens by itself, or when the bucket is refilled. Any member
    /// counts, not only those of the head: others wait behind it.
    fn wake(&mut self, now: Instant, id: PoolId, unpaid: bool) {
        let pool = &mut self.pools[id.index()];
        let recheck = unpaid.then(|| now + BUDGET_RECHECK);
        let Some(at) = pool.opens_at(now).into_iter().chain(recheck).min() else { return };
        if pool.wake.is_some_and(|wake| wake <= at && wake > now) {
            return;
        }
        if let Some(wake) = pool.wake.replace(at) {
            self.deadlines.remove(&(wake, Deadline::Pool(id)));
        }
        self.deadlines.insert((at, Deadline::Pool(id)));
    }

    /// Lets go whoever can go, in order, until no deployment has room for the head of any lane.
    pub(super) fn serve_line(&mut self, now: Instant, id: PoolId) {
        let mut heads: BTreeSet<(Turn, Lane)> = BTreeSet::new();
        let mut unpaid = false;
        if self.has_room(now, id) {
            let pool = &self.pools[id.index()];
            heads.extend(pool.queue.lanes().filter_map(|lane| Some((pool.head(now, lane)?.0, lane))));
        }
        while let Some((_, lane)) = heads.pop_first() {
            let pool = &self.pools[id.index()];
            let Some((_, place, request)) = pool.head(now, lane) else { continue };
            let Some(live) = self.requests.get(&request).copied() else { continue };
            if place.due < now + pool.least_left(place.bound) {
                self.expired(now, request);
            } else {
                // What is not let go blocks its whole lane: the rest of it would fare alike.
                let Routed::To { member, on_trial } = self.route(now, &live) else { continue };
                let pool = &mut self.pools[id.index()];
                let payment = match lane.payer {
                    None => live.first_payment(),
                    Some(payer) if pool.not_sent_bucket.withdraw(now, payer) => Payment::NotSentBucket,
                    Some(_) => {
                        unpaid = true;
                        continue;
                    }
                };
                self.leave_line(request, &live);
                self.dispatch(now, request, Plan::new(member, on_trial, payment));
            }
            if !self.has_room(now, id) {
                break;
            }
            heads.extend(self.pools[id.index()].head(now, lane).map(|(turn, ..)| (turn, lane)));
        }
        if !self.pools[id.index()].queue.is_empty() {
            self.wake(now, id, unpaid);
        }
        self.serve_shadow(now, id);
    }

    /// Lets a request go whose wait for known room is over, or cannot be, if there is any room: it might be served
    /// there. Whether it went.
    fn takes_any_room(&mut self, now: Instant, request: RequestId) -> bool {
        let Some(live) = self.requests.get(&request).copied().filter(|live| live.attempts > 0) else { return false };
        let Routed::To { member, on_trial } = self.route_to(now, &live, Room::Any) else { return false };
        let paid = self.pools[live.pool.index()].not_sent_bucket.withdraw(now, live.tenant);
        if paid {
            self.leave_line(request, &live);
            self.dispatch(now, request, Plan::new(member, on_trial, Payment::NotSentBucket));
        }
        paid
    }

    fn has_room(&mut self, now: Instant, id: PoolId) -> bool {
        self.pools[id.index()].members.iter_mut().any(|member| member.capacity.has_room(now))
    }

    pub(super) fn leave_line(&mut self, request: RequestId, live: &Live) {
        if let Phase::Waiting { expires, .. } = live.phase {
            let lane = self.lane(live);
            self.pools[live.pool.index()].queue.remove(lane, live.place);
            self.deadlines.remove(&(expires, Deadline::Queue(request)));
        }
    }

    /// Handles every deadline that is due.
    pub(super) fn expire(&mut self, now: Instant) {
        while let Some((at, deadline)) = self.deadlines.first().copied() {
            if at > now {
                return;
            }
            self.deadlines.remove(&(at, deadline));
            match deadline {
                Deadline::Pool(pool) => {
                    self.pools[pool.index()].wake = None;
                    self.serve_line(now, pool);
                }
                Deadline::Shadow(request) => self.shadow_expired(now, request),
                Deadline::Left(flight) => self.hold_is_over(now, flight),
                Deadline::Kept(flight) => self.drop_kept(flight),
                Deadline::Queue(request) => self.look_at_wait(now, request),
            }
        }
    }

    /// A wait seems to be over. By now answers may come faster than when it was reckoned.
    fn look_at_wait(&mut self, now: Instant, request: RequestId) {
        let Some(live) = self.requests.get(&request).copied() else { return };
        let expires = live.place.due - self.pools[live.pool.index()].least_left(live.place.bound);
        if expires > now {
            return self.await_expiry(now, request, expires);
        }
        let is_too_late = live.place.bound == Bound::Deadline && live.place.due <= now;
        if is_too_late || !self.takes_any_room(now, request) {
            self.expired(now, request);
        }
    }

    /// Nothing that begins now would be answered in time.
    fn expired(&mut self, now: Instant, request: RequestId) {
        let Some(live) = self.requests.get(&request) else { return };
        if live.place.bound == Bound::Deadline {
            self.finish(now, request, Outcome::DeadlineUnmeetable, None, false);
        } else {
            self.refuse_busy(now, request, None);
        }
    }

    /// Refuses for want of capacity, unless another model can serve it. The wait is never shorter than what is left of the
    /// waits that upstreams stated.
    pub(super) fn refuse_busy(&mut self, now: Instant, request: RequestId, wait: Option<Duration>) {
        if self.spills_over(now, request) {
            return;
        }
        let Some(live) = self.requests.get(&request).copied() else { return };
        let who = Eligibility { exclude: None, ..self.eligibility(&live) };
        let pool = &mut self.pools[live.pool.index()];
        let ahead = pool.queue.ahead_of(live.place);
        let stated = pool.closed_beyond(now, who).map_or(Duration::ZERO, |opens| opens.since(now));
        let drain = pool.drain_estimate(now, ahead);
        // A line that nobody stands in says nothing about the wait: then the upstreams' own words decide.
        let estimate = if ahead == 0 && !stated.is_zero() { stated } else { stated.max(drain) };
        let least = wait.map_or(estimate, |wait| wait.max(estimate));
        let wait = pool.book(now, least, live.tenant, &mut self.random);
        self.finish(now, request, Outcome::CapacityExhausted, Some(wait), false);
    }
}
