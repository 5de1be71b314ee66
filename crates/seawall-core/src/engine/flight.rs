//! Step 4, join: who asks for the same as somebody else waits for that one's answer, and what a client has left behind
//! lives until it comes back.
//!
//! A flight is one piece of work: its place in the line, or its attempt. It has the id of the request that began it, its
//! *leader*, and goes on under that id when the leader has left. A recognised repeat joins it: it owns a record here
//! and its own exchange at the host, and nothing else (law 2). What counts as a repeat is law 11: the same key, a retry
//! counter of the client's, or the same identity after its twin failed, was refused, or was left.
//!
//! Without this a client that times out and asks again has its work done twice, and an upstream that goes on after its
//! caller has left does nothing else any more: 0.27 of the goodput of a brown-out at 1.2 times the capacity, against 0.98
//! (the prototype of this engine).

use super::{Deadline, Engine, Join, Live, Output, Phase, Respond};
use crate::advice::{self, Form, Wait};
use crate::classify::AttemptEnd;
use crate::cost::Cost;
use crate::engine::io::{Arrival, Identity};
use crate::id::{PoolId, RequestId};
use crate::outcome::Outcome;
use crate::past::{Entry, Past};
use crate::protection::Protection;
use crate::time::{Duration, Instant};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// How long what a client has left behind waits for it.
const HOLD: Duration = Duration::from_secs(3);
/// How long an answer that came when nobody was there is kept.
const KEEP: Duration = Duration::from_secs(10);
/// Who may wait for one answer.
const MOST_WAITERS: u32 = 1_024;
/// Places in the line of a pool, of so many, may be those of clients that have left: a quarter.
const LEFT_DIVISOR: usize = 4;
/// Answers that are kept for somebody to come back, in all pools.
const MOST_KEPT: usize = 1_024;
/// Attempts of one distinct request at the most (law 1).
pub(super) const MOST_ATTEMPTS: u32 = 2;

/// The table of flights.
#[derive(Debug, Default)]
pub(super) struct Flights {
    /// By the key that the client gave.
    keys: BTreeMap<u128, RequestId>,
    /// Those that can be joined, by fingerprint.
    alike: BTreeSet<(u128, RequestId)>,
    /// Those of them that nobody waits for.
    left: BTreeSet<(u128, RequestId)>,
    /// Who waits for whose answer, and since when.
    joined: BTreeMap<RequestId, (RequestId, Instant)>,
    waiters: BTreeSet<(RequestId, RequestId)>,
    /// Complete answers that nobody was there for.
    kept: BTreeMap<RequestId, Kept>,
    past: Past,
    /// Places in lines whose clients have left, by pool.
    left_waiting: BTreeMap<PoolId, usize>,
}

#[derive(Clone, Copy, Debug)]
struct Kept {
    identity: Identity,
    attempts: u32,
    /// What is remembered of it if nobody comes for its answer.
    entry: Entry,
}

/// What an arrival turns out to be.
pub(super) enum Recognised {
    /// One like any other.
    First,
    /// It waits for this flight's answer.
    Joins(RequestId),
    /// It asks for what is under way and cannot be joined.
    Beside,
    /// It has been here before, and ended so.
    Again(Entry),
}

impl Flights {
    pub(super) fn is_waiting(&self, request: RequestId) -> bool {
        self.joined.contains_key(&request)
    }

    pub(super) fn joined(&self) -> usize {
        self.joined.len()
    }

    /// Opens a flight for others to join.
    pub(super) fn open(&mut self, flight: RequestId, identity: Identity) {
        self.alike.insert((identity.fingerprint, flight));
        if let Some(key) = identity.key {
            self.keys.insert(key, flight);
        }
    }

    /// Remembers a request under all by which it would be recognised.
    fn remember(&mut self, identity: Identity, entry: Entry) {
        for known in [Some(identity.fingerprint), identity.key].into_iter().flatten() {
            self.past.remember(known, entry);
        }
    }

    /// Forgets that this attempt has been made: it was of use.
    fn forgive(&mut self, identity: Identity, first_seen: Instant) {
        for known in [Some(identity.fingerprint), identity.key].into_iter().flatten() {
            self.past.forget_of(known, first_seen);
        }
    }

    /// Nobody can join it any more.
    fn close(&mut self, flight: RequestId, identity: Identity) {
        self.alike.remove(&(identity.fingerprint, flight));
        self.left.remove(&(identity.fingerprint, flight));
        if let Some(key) = identity.key
            && self.keys.get(&key) == Some(&flight)
        {
            self.keys.remove(&key);
        }
    }

    /// The flight that an arrival repeats.
    fn twin(&self, identity: Identity) -> Option<RequestId> {
        let by_key = identity.key.and_then(|key| self.keys.get(&key).copied());
        let all = (identity.fingerprint, RequestId(0))..=(identity.fingerprint, RequestId(u64::MAX));
        let first_of = |set: &BTreeSet<(u128, RequestId)>| set.range(all.clone()).next().map(|(_, flight)| *flight);
        let left = || first_of(&self.left);
        // Only who says that it asks again may wait for somebody else who still waits.
        let under_way = || (identity.previous_attempts > 0).then(|| first_of(&self.alike)).flatten();
        by_key.or_else(left).or_else(under_way)
    }
}

impl Engine {
    /// Finds out whether an arrival repeats another one.
    pub(super) fn recognise(&mut self, now: Instant, arrival: &Arrival) -> Recognised {
        let Some(identity) = arrival.identity else { return Recognised::First };
        if let Some(flight) = self.flights.twin(identity) {
            return if self.can_join(arrival, flight) { Recognised::Joins(flight) } else { Recognised::Beside };
        }
        let past = &mut self.flights.past;
        let known = identity.key.and_then(|key| past.take(now, key));
        let alike = past.take(now, identity.fingerprint);
        known.or(alike).map_or(Recognised::First, Recognised::Again)
    }

    fn can_join(&self, arrival: &Arrival, flight: RequestId) -> bool {
        let Some(live) = self.requests.get(&flight) else { return self.flights.kept.contains_key(&flight) };
        let bounds = |deadline| arrival.deadline.is_some_and(|own| own <= deadline);
        let lasts = live.deadline.is_none_or(bounds) || matches!(live.phase, Phase::Waiting { .. });
        !live.is_sealed && live.waiters < MOST_WAITERS && lasts
    }

    /// Waits for the answer of a flight, or has it at once where it is kept.
    pub(super) fn join(&mut self, now: Instant, arrival: &Arrival, flight: RequestId) {
        let request = arrival.request;
        self.outputs.push_back(Output::Join(Join { request, flight }));
        if let Some(kept) = self.flights.kept.get(&flight).copied() {
            return self.respond(Respond { attempts: kept.attempts, ..Respond::plain(request, Outcome::Served) });
        }
        self.flights.joined.insert(request, (flight, now));
        self.flights.waiters.insert((flight, request));
        let Some(live) = self.requests.get_mut(&flight) else { return };
        live.waiters += 1;
        let was_left = !live.leader && live.waiters == 1;
        if was_left && let Some(identity) = live.identity {
            self.flights.left.remove(&(identity.fingerprint, flight));
            self.deadlines.remove(&(live.left_until, Deadline::Left(flight)));
        }
        let live = *live;
        if was_left && live.waits_since().is_some() {
            self.count_left_waiting(live.pool, false);
        }
        self.extend_wait(now, flight, arrival.deadline);
    }

    /// Whoever joined has more time than the leader: the flight has it, too.
    fn extend_wait(&mut self, now: Instant, flight: RequestId, deadline: Option<Instant>) {
        let Some(live) = self.requests.get(&flight).copied() else { return };
        let Some(own) = live.deadline else { return };
        if live.waits_since().is_none() || deadline.is_some_and(|deadline| deadline <= own) {
            return;
        }
        let lane = self.lane(&live);
        self.leave_line(flight, &live);
        let Some(live) = self.requests.get_mut(&flight) else { return };
        live.deadline = deadline;
        live.place = live.place_in_line(now);
        let place = live.place;
        let pool = &mut self.pools[live.pool.index()];
        pool.queue.insert(lane, place, flight, live.account.expected(live.tenant, &pool.ledger));
        let expires = place.due - pool.least_left(place.bound);
        self.await_expiry(now, flight, expires);
    }

    /// A client that waits for somebody else's answer left.
    pub(super) fn leave_flight(&mut self, now: Instant, request: RequestId) {
        let Some((flight, since)) = self.flights.joined.remove(&request) else { return };
        self.flights.waiters.remove(&(flight, request));
        self.respond(Respond { queued: now.since(since), ..Respond::plain(request, Outcome::ClientGone) });
        if let Some(live) = self.requests.get_mut(&flight) {
            live.waiters -= 1;
            self.is_left(now, flight);
        }
    }

    /// The client that began a flight left.
    pub(super) fn leader_left(&mut self, now: Instant, flight: RequestId) {
        let Some(live) = self.requests.get_mut(&flight).filter(|live| live.leader) else { return };
        live.leader = false;
        let queued = live.queued + live.waits_since().map_or(Duration::ZERO, |since| now.since(since));
        let (attempts, deployment) = (live.attempts, live.last);
        let cost = live.cost_so_far(&self.pools[live.pool.index()].ledger);
        let respond = Respond { attempts, deployment, queued, cost, ..Respond::plain(flight, Outcome::ClientGone) };
        self.respond(respond);
        self.is_left(now, flight);
    }

    /// Decides what becomes of a flight when nobody waits for it: its place and its attempt are held for who comes back;
    /// what had begun to answer, or can be asked for anew at no cost, ends.
    fn is_left(&mut self, now: Instant, flight: RequestId) {
        let Some(live) = self.requests.get_mut(&flight).filter(|live| !live.leader && live.waiters == 0) else {
            return;
        };
        let Some(identity) = live.identity else { return };
        live.left_until = now + HOLD;
        live.outlived_hold = false;
        let live = *live;
        let pool = &self.pools[live.pool.index()];
        let holds = match live.phase {
            Phase::Waiting { .. } => {
                let left = self.flights.left_waiting.get(&live.pool).copied().unwrap_or(0);
                !live.is_sealed && left < pool.longest_line().div_ceil(LEFT_DIVISOR)
            }
            Phase::Running { member, relaying, .. } => {
                !relaying && !live.is_sealed && (identity.may_repeat || pool.keeps_left(member))
            }
        };
        if live.waits_since().is_some() {
            self.count_left_waiting(live.pool, true);
        }
        if !holds {
            return self.give_up(now, flight);
        }
        self.flights.left.insert((identity.fingerprint, flight));
        self.deadlines.insert((live.left_until, Deadline::Left(flight)));
    }

    pub(super) fn count_left_waiting(&mut self, pool: PoolId, more: bool) {
        let count = self.flights.left_waiting.entry(pool).or_default();
        *count = if more { *count + 1 } else { count.saturating_sub(1) };
    }

    /// Nobody has come back for a flight. What waits is dropped. What runs goes on where cancelling frees nothing, and
    /// where that is not known while the pool is full: the upstream may work on whatever we do, and a credit that is free
    /// too early is spent on top of that. It is looked at again, so that what hangs ends when nobody waits any more.
    pub(super) fn hold_is_over(&mut self, now: Instant, flight: RequestId) {
        let Some(live) = self.requests.get_mut(&flight) else { return };
        let is_first = !core::mem::replace(&mut live.outlived_hold, true);
        let pool = &mut self.pools[live.pool.index()];
        if is_first {
            pool.has_left(live.tenant, now.since(live.arrived).saturating_sub(HOLD));
        }
        let goes_on = matches!(live.phase, Phase::Running { member, .. } if pool.keeps_left(member));
        if !goes_on {
            return self.give_up(now, flight);
        }
        live.left_until = now + HOLD;
        self.deadlines.insert((live.left_until, Deadline::Left(flight)));
    }

    /// Ends a flight that nobody waits for.
    fn give_up(&mut self, now: Instant, flight: RequestId) {
        let Some(live) = self.requests.get_mut(&flight) else { return };
        if let Phase::Running { .. } = live.phase {
            // Its end is still to be reported, and frees what it holds.
            self.outputs.push_back(Output::Cancel(flight));
            return self.close_running(now, flight);
        }
        self.finish(now, flight, Outcome::ClientGone, None, false);
    }

    /// Its answer is longer than what is kept for others: nobody can join any more, and what nobody waits for ends.
    pub(super) fn seal(&mut self, now: Instant, flight: RequestId) {
        let Some(live) = self.requests.get_mut(&flight) else { return };
        if live.is_left() && !live.is_sealed {
            self.deadlines.remove(&(live.left_until, Deadline::Left(flight)));
            return self.give_up(now, flight);
        }
        self.close_running(now, flight);
    }

    /// Nobody can join what runs any more. Who asks for the same is served anew, and what has been tried counts, although
    /// it has not ended.
    fn close_running(&mut self, now: Instant, flight: RequestId) {
        let Some(live) = self.requests.get_mut(&flight).filter(|live| !live.is_sealed) else { return };
        live.is_sealed = true;
        let live = *live;
        if let Some(identity) = live.identity {
            self.flights.close(flight, identity);
            self.flights.remember(identity, live.remembered(now, None));
        }
    }

    /// A flight has ended: tells everybody who waits for it, and remembers it, or keeps its answer, for who comes back.
    pub(super) fn land(&mut self, now: Instant, flight: RequestId, live: &Live, respond: Respond) {
        if live.waiters > 0 {
            self.tell_waiters(now, flight, &respond);
        }
        let Some(identity) = live.identity else { return };
        self.flights.close(flight, identity);
        if live.is_left() {
            self.deadlines.remove(&(live.left_until, Deadline::Left(flight)));
            if live.waits_since().is_some() {
                self.count_left_waiting(live.pool, false);
            }
        }
        match respond.outcome {
            Outcome::Served if live.is_left() && !live.is_sealed => {
                let entry = live.remembered(now, None);
                if self.flights.kept.len() < MOST_KEPT {
                    self.flights.kept.insert(flight, Kept { identity, attempts: live.attempts, entry });
                    self.flights.open(flight, identity);
                    self.flights.left.insert((identity.fingerprint, flight));
                    self.deadlines.insert((now + KEEP, Deadline::Kept(flight)));
                    return;
                }
                self.flights.remember(identity, entry);
            }
            Outcome::Served if live.is_sealed && !live.is_left() => self.flights.forgive(identity, live.arrived),
            Outcome::Served | Outcome::ClientError => {}
            // What is sealed has been remembered when it was, and its repeat may have ended since.
            _ if live.is_sealed => {}
            _ => {
                let booked = match respond.form {
                    Some(Form::Wait(wait) | Form::RetrySoon(wait)) => Some(now + wait),
                    _ => None,
                };
                let paid = booked.is_some() && respond.outcome.is_failure_that_may_pass();
                self.flights.remember(identity, live.remembered(now, booked).paid_for(paid));
            }
        }
        self.outputs.push_back(Output::Forget(flight));
    }

    fn tell_waiters(&mut self, now: Instant, flight: RequestId, respond: &Respond) {
        let all = (flight, RequestId(0))..=(flight, RequestId(u64::MAX));
        let waiters: Vec<RequestId> = self.flights.waiters.range(all).map(|(_, request)| *request).collect();
        for request in waiters {
            self.flights.waiters.remove(&(flight, request));
            let since = self.flights.joined.remove(&request).map_or(now, |(_, since)| since);
            self.respond(Respond { request, queued: now.since(since), cost: Cost::NONE, ..*respond });
        }
    }

    /// Nobody has come for an answer in time.
    pub(super) fn drop_kept(&mut self, flight: RequestId) {
        if let Some(kept) = self.flights.kept.remove(&flight) {
            self.flights.close(flight, kept.identity);
            self.flights.remember(kept.identity, kept.entry);
            self.outputs.push_back(Output::Forget(flight));
        }
    }

    /// Takes note of what is known of a repeat: its time began with the first one, and a request that reached an upstream
    /// before has its next attempt paid for while the pool has trouble. Who comes when told to is let in as if it came
    /// first: what its attempt costs has been paid when it was told. `false`: it is not let in.
    pub(super) fn stands_as_repeat(&mut self, now: Instant, arrival: &Arrival, known: Entry) -> bool {
        let (request, tenant) = (arrival.request, arrival.tenant);
        let pool = &mut self.pools[arrival.pool.index()];
        if !pool.has(Protection::RepeatStanding) {
            return true;
        }
        if known.is_in_its_slot(now) {
            if let Some(live) = self.requests.get_mut(&request) {
                (live.prior, live.paid) = (Some(known), known.paid);
            }
            return true;
        }
        let has_trouble = pool.has_trouble(now);
        let says_so = arrival.identity.is_some_and(|identity| identity.previous_attempts > 0 || identity.key.is_some());
        let is_spent = known.attempts >= MOST_ATTEMPTS && (says_so || has_trouble);
        let is_unpaid = known.attempts > 0 && has_trouble && !is_spent && !pool.pays_for_repeat(now, tenant);
        let Some(live) = self.requests.get_mut(&request) else { return true };
        if known.first_seen + live.patience > now {
            live.arrived = known.first_seen;
        }
        live.prior = Some(known);
        live.paid = known.attempts > 0 && has_trouble && !is_spent && !is_unpaid;
        !is_spent && !is_unpaid
    }

    /// Answers an arrival.
    pub(super) fn respond(&mut self, respond: Respond) {
        self.outputs.push_back(Output::Respond(respond));
    }

    /// Refuses an arrival whose twin is under way and cannot be joined.
    pub(super) fn refuse_beside(&mut self, arrival: &Arrival) {
        let expected = self.pools[arrival.pool.index()].expected_answer();
        let outcome = Outcome::DuplicateInFlight;
        let form = advice::advise(outcome, Some(Wait::AtLeast(expected)), false, &mut self.random);
        self.respond(Respond { form, ..Respond::plain(arrival.request, outcome) });
    }

    /// Whether the end of an attempt is that of a flight which was given up: its credit is free and nothing else follows.
    pub(super) fn ended_given_up(&mut self, now: Instant, flight: RequestId, live: &Live, end: AttemptEnd) -> bool {
        if !live.is_left() || end == AttemptEnd::Completed {
            return false;
        }
        self.finish(now, flight, Outcome::ClientGone, None, false);
        true
    }
}
