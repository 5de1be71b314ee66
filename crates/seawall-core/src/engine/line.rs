//! Step 6, queue: who waits, how long, who is let go, who is told to come back.

use super::pool::{Eligibility, Routed};
use super::{Deadline, Engine, Live, Phase, Plan};
use crate::id::{PoolId, RequestId};
use crate::outcome::Outcome;
use crate::permit::Payment;
use crate::queue::{Lane, Place};
use crate::time::{Duration, Instant};
use alloc::collections::BTreeSet;

/// How long a waiting request whose second attempt is not paid for yet waits before the bucket is asked again.
const BUDGET_RECHECK: Duration = Duration::from_secs(1);

impl Engine {
    /// Takes its place in the line, unless the wait cannot succeed.
    pub(super) fn wait(&mut self, now: Instant, request: RequestId) {
        let Some(live) = self.requests.get(&request).copied() else { return };
        let lane = self.lane(&live);
        let expires = live.expires(now);
        let pool = &mut self.pools[live.pool.index()];
        let opens = pool.closed_beyond(expires, Eligibility::of(lane));
        if opens.is_some() || pool.queue.len() >= pool.longest_line() {
            let wait = opens.map(|opens| opens.since(now));
            return self.refuse_busy(now, request, wait);
        }
        pool.queue.insert(lane, live.place, request);
        self.deadlines.insert((expires, Deadline::Queue(request)));
        if let Some(live) = self.requests.get_mut(&request) {
            live.phase = Phase::Waiting { since: now, expires };
        }
        self.wake(now, live.pool, false);
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
        let mut heads: BTreeSet<(Place, Lane)> = BTreeSet::new();
        let mut unpaid = false;
        if self.has_room(now, id) {
            heads.extend(self.pools[id.index()].queue.heads());
        }
        while let Some((_, lane)) = heads.pop_first() {
            let Some((_, request)) = self.pools[id.index()].queue.head(lane) else { continue };
            let Some(live) = self.requests.get(&request).copied() else { continue };
            // What is not let go blocks its whole lane: the rest of it would fare alike.
            let Routed::To { member, on_trial } = self.route(now, &live) else { continue };
            let pool = &mut self.pools[id.index()];
            let payment = match lane.payer {
                None => Payment::Admission,
                Some(payer) if pool.not_sent_bucket.withdraw(now, payer) => Payment::NotSentBucket,
                Some(_) => {
                    unpaid = true;
                    continue;
                }
            };
            self.leave_line(request, &live);
            self.dispatch(now, request, Plan::new(member, on_trial, payment));
            if !self.has_room(now, id) {
                break;
            }
            heads.extend(self.pools[id.index()].queue.head(lane).map(|(place, _)| (place, lane)));
        }
        if !self.pools[id.index()].queue.is_empty() {
            self.wake(now, id, unpaid);
        }
        self.serve_shadow(now, id);
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
                Deadline::Queue(request) => {
                    let missed = self.requests.get(&request).and_then(|live| live.deadline).is_some_and(|d| d <= now);
                    if missed {
                        self.finish(now, request, Outcome::DeadlineUnmeetable, None, false);
                    } else {
                        self.refuse_busy(now, request, None);
                    }
                }
            }
        }
    }

    /// Refuses for want of capacity. The wait is never shorter than what is left of the waits that upstreams stated.
    pub(super) fn refuse_busy(&mut self, now: Instant, request: RequestId, wait: Option<Duration>) {
        let Some(live) = self.requests.get(&request).copied() else { return };
        let who = Eligibility { exclude: None, ..self.eligibility(&live) };
        let pool = &mut self.pools[live.pool.index()];
        let ahead = pool.queue.ahead_of(live.place);
        let stated = pool.closed_beyond(now, who).map_or(Duration::ZERO, |opens| opens.since(now));
        let drain = pool.drain_estimate(now, ahead);
        // A line that nobody stands in says nothing about the wait: then the upstreams' own words decide.
        let estimate = if ahead == 0 && !stated.is_zero() { stated } else { stated.max(drain) };
        let wait = wait.map_or(estimate, |wait| wait.max(estimate));
        self.finish(now, request, Outcome::CapacityExhausted, Some(wait), false);
    }
}
