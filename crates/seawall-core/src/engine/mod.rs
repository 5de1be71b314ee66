//! The engine: the whole life of a request in one `match`.
//!
//! # Drive contract
//!
//! The host calls [`Engine::handle`] with one input, then [`Engine::poll`] until it returns `None`, and sleeps until
//! [`Engine::next_deadline`] or the next input, whichever comes first. `now` never has to be monotonic, but a clock that
//! goes backwards only delays. `handle` does bounded work and never blocks; outputs for one input are bounded by the
//! number of requests that this input lets go.
//!
//! For each [`Output::Dispatch`] the host makes exactly one attempt, says [`Input::AttemptHeaders`] when it begins to
//! relay an answer, [`Input::Allowance`] before that or the end where the answer's head says how much is left,
//! [`Input::Used`] where it knows what the attempt has used, and exactly one of
//! [`Input::AttemptEnded`] and [`Input::ClientGone`] when it is over. Every arrival ends in exactly one
//! [`Output::Respond`]. Inputs about a request that has ended are ignored: the two sides may cross.

mod account;
mod fallback;
mod flight;
mod io;
mod line;
mod live;
mod observe;
mod pool;
mod route;
mod view;

pub use io::{Arrival, Dispatch, Identity, Input, Join, Notice, Output, Respond, Scope, Verdict};
pub use view::{DeploymentView, PoolView, Settled};

use crate::advice::{self, Form, Wait};
use crate::capacity::{CapacityState, Hints};
use crate::classify::{AttemptEnd, Repeatability};
use crate::cost::Work;
use crate::health::Health;
use crate::id::{AttemptId, DeploymentId, PoolId, RequestId};
use crate::load::PeakEwma;
use crate::outcome::Outcome;
use crate::permit::{AttemptPermit, Payment};
use crate::protection::Protection;
use crate::queue::{Bound, Lane, Place};
use crate::random::Random;
use crate::settings::{Criticality, Mode, Settings, TenantSettings};
use crate::time::{Duration, Instant};
use account::Account;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;
use flight::{Flights, Recognised};
use live::{Live, Phase, Plan};
use observe::Shadow;
use pool::{Member, Pool};
use route::{Eligibility, Room, Routed};

/// The steps of a request's life, in order; the same table stands in `ARCHITECTURE.md`. The host does 1 to 3, 8, 9 and
/// 12; joining (4) comes with the flight table.
pub const STEPS: [&str; 12] = [
    "accept",
    "gate",
    "decode",
    "join",
    "admit",
    "queue",
    "route",
    "dispatch",
    "relay",
    "classify and observe",
    "retry",
    "respond",
];

/// The policy engine. See the module's contract.
#[derive(Debug)]
pub struct Engine {
    pools: Vec<Pool>,
    tenants: Vec<Tenant>,
    /// The flights that have not ended, by the request that began each.
    requests: BTreeMap<RequestId, Live>,
    flights: Flights,
    outputs: VecDeque<Output>,
    deadlines: BTreeSet<(Instant, Deadline)>,
    random: Random,
    next_attempt: u64,
    next_sequence: u64,
    draining: bool,
}

/// What is kept of a tenant's settings.
#[derive(Clone, Debug)]
struct Tenant {
    ceiling: Criticality,
    /// The pools it may use.
    pools: Vec<PoolId>,
    /// The boundary's number in the engine's table; 0 for none.
    boundary: u16,
    mode: Mode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Deadline {
    /// This request may not wait any longer.
    Queue(RequestId),
    /// This observed request might not have waited any longer.
    Shadow(RequestId),
    /// The line of this pool has to be looked at.
    Pool(PoolId),
    /// Nobody has come back for this flight.
    Left(RequestId),
    /// Nobody has come for the answer of this flight.
    Kept(RequestId),
}

impl Engine {
    /// An engine that knows `settings` and nothing else.
    pub fn new(now: Instant, settings: &Settings) -> Self {
        let mut boundaries: Vec<String> = Vec::new();
        let mut members: Vec<Vec<Member>> = settings.pools.iter().map(|_| Vec::new()).collect();
        for (index, deployment) in settings.deployments.iter().enumerate() {
            let of = &settings.pools[deployment.pool.index()];
            let hints = Hints { patience: of.queue.patience, protections: of.protections };
            let pool = &mut members[deployment.pool.index()];
            pool.push(Member {
                id: DeploymentId::from_index(index),
                settings: deployment.clone(),
                capacity: CapacityState::new(deployment.capacity, &of.discovery, hints),
                shadow_in_flight: 0,
                work_in_flight: Work::ZERO,
                health: Health::new(&of.ejection),
                latency: PeakEwma::default(),
                boundary: number_of(&mut boundaries, deployment.boundary.as_deref()),
            });
        }
        let pools = settings.pools.iter().zip(members);
        let mut tenant_of = |tenant: &TenantSettings| Tenant {
            ceiling: tenant.priority_ceiling,
            pools: tenant.pools.clone(),
            boundary: number_of(&mut boundaries, tenant.boundary.as_deref()),
            mode: tenant.mode,
        };
        Self {
            pools: pools.map(|(pool, members)| Pool::new(now, pool.clone(), members)).collect(),
            tenants: settings.tenants.iter().map(&mut tenant_of).collect(),
            requests: BTreeMap::new(),
            flights: Flights::default(),
            outputs: VecDeque::new(),
            deadlines: BTreeSet::new(),
            random: Random::new(settings.seed),
            next_attempt: 0,
            next_sequence: 0,
            draining: false,
        }
    }

    /// Takes one input. Deadlines that are due by `now` are handled first.
    pub fn handle(&mut self, now: Instant, input: Input) {
        // Whoever has left takes no place that this very moment frees.
        if let Input::ClientGone(request) = input {
            self.leave_waiting(now, request);
        }
        self.expire(now);
        match input {
            Input::Arrived(arrival) => self.admit(now, &arrival, None),
            Input::Mirrored(arrival, sent_to) => self.admit(now, &arrival, Some(sent_to)),
            Input::AttemptHeaders(request, number) => self.headers(now, request, number),
            Input::Used(request, number, used) => self.note_used(request, number, used),
            Input::Allowance(request, number, allowance) => self.note_allowance(now, request, number, allowance),
            Input::AttemptEnded(request, number, end) => self.attempt_ended(now, request, number, end),
            Input::ClientGone(request) => self.client_gone(now, request),
            Input::ServerLoad(deployment, load) => self.note_server_load(now, deployment, load),
            Input::Sealed(flight) => self.seal(now, flight),
            Input::Switch(scope, mode) => self.switch(now, scope, mode),
            Input::Drain => self.draining = true,
            Input::Tick => {}
        }
    }

    /// The next thing to do, or `None` until the next input.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When [`Input::Tick`] is due, if nothing else comes before.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// Requests that have not ended.
    pub fn live(&self) -> usize {
        self.requests.values().filter(|live| live.leader).count() + self.flights.joined()
    }

    /// Flights that have not ended: what waits in a line or is tried, whoever waits for it.
    pub fn flights(&self) -> usize {
        self.requests.len()
    }

    /// Step 5, admit: refuse, wait, or go on. An arrival under an id that is in use is a mistake of the host and ignored.
    /// `sent_to`: where it goes if it is observed, where the host has decided that.
    fn admit(&mut self, now: Instant, arrival: &Arrival, sent_to: Option<DeploymentId>) {
        let request = arrival.request;
        if self.requests.contains_key(&request) || self.flights.is_waiting(request) {
            return;
        }
        let Some(live) = self.begin(now, arrival) else { return self.refuse_unknown(request) };
        if self.draining {
            self.requests.insert(request, live);
            return self.finish(now, request, Outcome::Draining, None, false);
        }
        if live.observed {
            // Observing joins nobody.
            self.requests.insert(request, Live { is_sealed: true, ..live });
            return self.forward(now, request, sent_to);
        }
        let has_flights = self.pools[live.pool.index()].has(Protection::FlightTable);
        let recognised = if has_flights { self.recognise(now, arrival) } else { Recognised::First };
        match recognised {
            Recognised::Joins(flight) => return self.join(now, arrival, flight),
            Recognised::Beside => return self.refuse_beside(arrival),
            Recognised::First | Recognised::Again(_) => {}
        }
        self.requests.insert(request, Live { is_sealed: !has_flights, ..live });
        if let Some(identity) = live.identity.filter(|_| has_flights) {
            self.flights.open(request, identity);
        }
        match recognised {
            Recognised::Again(known) if known.is_in_its_slot(now) => {}
            _ => self.pools[live.pool.index()].arrived(now),
        }
        if let Recognised::Again(known) = recognised
            && !self.stands_as_repeat(now, arrival, known)
        {
            return self.finish(now, request, Outcome::RetryBudgetExhausted, None, true);
        }
        if arrival.deadline.is_some_and(|deadline| deadline <= now) {
            return self.finish(now, request, Outcome::DeadlineUnmeetable, None, false);
        }
        // This overtakes nobody: the line is served after every input and at every wake-up, so who waits now has no
        // room, or no payment yet, and is not in the way.
        let live = self.requests[&request];
        match self.route(now, &live) {
            Routed::To { member, on_trial: true } if self.avoids_trial(now, request, member) => {}
            Routed::To { member, on_trial } => {
                self.dispatch(now, request, Plan::new(member, on_trial, live.first_payment()));
            }
            Routed::NonePermitted if self.begins_elsewhere(now, request) => {}
            Routed::NonePermitted => self.finish(now, request, Outcome::NoHealthyDeployment, None, false),
            Routed::NoRoom => self.wait(now, request),
        }
    }

    /// The flight that an arrival begins; `None`: its pool or tenant is not in the settings.
    fn begin(&mut self, now: Instant, arrival: &Arrival) -> Option<Live> {
        let pool = self.pools.get(arrival.pool.index())?;
        let tenant = self.tenants.get(arrival.tenant.index())?;
        let patience = pool.patience_of(arrival.tenant);
        let place = Place {
            criticality: arrival.criticality.clamped(tenant.ceiling),
            bound: Bound::Patience,
            due: Instant::MAX,
            sequence: self.next_sequence,
        };
        self.next_sequence += 1;
        Some(Live {
            identity: arrival.identity,
            leader: true,
            waiters: 0,
            is_sealed: false,
            left_until: Instant::MAX,
            outlived_hold: false,
            prior: None,
            paid: false,
            tenant: arrival.tenant,
            asked: arrival.pool,
            passed: 0,
            pool: arrival.pool,
            place,
            arrived: now,
            deadline: arrival.deadline,
            patience: arrival.patience.map_or(patience, |told| told.min(patience)),
            attempts: 0,
            unsent: 0,
            last: None,
            exclude: None,
            queued: Duration::ZERO,
            phase: Phase::Waiting { since: now, expires: now },
            observed: [pool.settings.mode, tenant.mode].contains(&Mode::Observe),
            shadow: Shadow::Out,
            verdict: None,
            account: Account::new(arrival.demand),
        })
    }

    /// Answers an arrival whose pool or tenant is not in the settings.
    fn refuse_unknown(&mut self, request: RequestId) {
        let outcome = Outcome::ModelNotFound;
        let form = advice::advise(outcome, None, false, &mut self.random);
        self.respond(Respond { form, ..Respond::plain(request, outcome) });
    }

    /// Step 7, route. Only a first attempt may find out whether there is room: after the refusal of a second one the
    /// request would be over, although it could have waited for the place of an attempt that is answered.
    fn route(&mut self, now: Instant, live: &Live) -> Routed {
        self.route_to(now, live, if live.attempts == 0 { Room::Any } else { Room::Known })
    }

    fn route_to(&mut self, now: Instant, live: &Live, room: Room) -> Routed {
        let who = self.eligibility(live);
        let first_of = (live.attempts == 0).then_some(live.tenant);
        self.pools[live.pool.index()].route(now, who, first_of, room, &mut self.random)
    }

    /// Step 8, dispatch: mints the permit of an attempt that is paid for.
    fn dispatch(&mut self, now: Instant, request: RequestId, plan: Plan) {
        let Plan { member, on_trial, payment, fresh_connection } = plan;
        if let Some(live) = self.requests.get(&request).filter(|live| live.is_left()) {
            self.count_left_waiting(live.pool, false);
        }
        let Some(live) = self.requests.get_mut(&request) else { return };
        let pool = &mut self.pools[live.pool.index()];
        if !live.observed {
            live.shadow = Shadow::Runs { member };
            pool.members[member].shadow_in_flight += 1;
            if payment == Payment::Admission {
                pool.pay_in(now, live.tenant);
            }
        }
        live.queued += live.waits_since().map_or(Duration::ZERO, |since| now.since(since));
        let attempt = AttemptId(self.next_attempt);
        self.next_attempt += 1;
        let waiting = pool.waits_for(member);
        live.account.begin(live.tenant, pool, member);
        let state = &mut pool.members[member];
        state.capacity.started(now, attempt, waiting);
        let tokens = || live.account.expected_tokens(live.tenant, &pool.ledger);
        let sent = state.capacity.counts(now, tokens);
        if on_trial {
            state.health.probe_started(now);
        }
        live.attempts += 1;
        live.last = Some(state.id);
        live.phase = Phase::Running { member, attempt, sent, started: now, on_trial, relaying: false };
        self.outputs.push_back(Output::Dispatch(Dispatch {
            permit: AttemptPermit::mint(request, attempt, state.id, payment, live.attempts),
            timeouts: pool.settings.timeouts,
            deadline: live.deadline.filter(|_| !live.observed),
            fresh_connection,
        }));
    }

    fn headers(&mut self, now: Instant, request: RequestId, number: u32) {
        let Some(live) = self.requests.get_mut(&request).filter(|live| live.attempts == number) else { return };
        if let Phase::Running { member, attempt, started, relaying, on_trial, .. } = &mut live.phase
            && !*relaying
        {
            *relaying = true;
            live.account.answer_began();
            // A first byte is what a probe asks for: an answer of minutes must not delay the return by minutes.
            let (member, attempt) = (*member, *attempt);
            let (started, on_trial) = (*started, core::mem::take(on_trial));
            let id = live.pool;
            let pool = &mut self.pools[id.index()];
            let waiting = pool.waits_for(member);
            pool.members[member].capacity.first_byte(now, attempt, waiting);
            if let Some(notice) = pool.first_byte(now, member, started, on_trial) {
                self.outputs.push_back(Output::Notice(notice));
                // Who waits may go to what has come back.
                self.serve_line(now, id);
            }
        }
    }

    /// Steps 10 to 12: classify and observe, retry, respond.
    fn attempt_ended(&mut self, now: Instant, request: RequestId, number: u32, end: AttemptEnd) {
        let Some(live) = self.requests.get(&request).copied().filter(|live| live.attempts == number) else { return };
        let Phase::Running { member, started, on_trial, relaying, .. } = live.phase else { return };
        // Once bytes went to the client, whatever ends the attempt has cut its answer short.
        let cut_short = relaying && end.repeatability() != Repeatability::Never;
        let end = if cut_short { AttemptEnd::Truncated } else { end };
        if end == AttemptEnd::Completed {
            let pool = &mut self.pools[live.pool.index()];
            pool.completed(now, member, started);
            if !relaying {
                pool.answered(now, member, started);
            }
        }
        self.shadow_end(request, end);
        self.settle(now, request, end);
        self.observe(now, &live, member, on_trial, end);
        if self.ended_given_up(now, request, &live, end) {
            return self.serve_line(now, live.pool);
        }
        match end.repeatability() {
            Repeatability::Repeatable | Repeatability::NeverStarted if live.observed => {
                self.end_observed(now, &live, request, end);
            }
            Repeatability::Never if end == AttemptEnd::ContextExceeded && self.fits_elsewhere(now, request) => {}
            Repeatability::Never => self.finish(now, request, ended(end, live.tried()), None, false),
            Repeatability::Repeatable => self.retry(now, request, end, on_trial),
            Repeatability::NeverStarted => self.replace(now, request, member, end),
        }
        self.serve_line(now, live.pool);
    }

    fn observe(&mut self, now: Instant, live: &Live, member: usize, on_trial: bool, end: AttemptEnd) {
        let pool = &mut self.pools[live.pool.index()];
        if let Phase::Running { attempt, sent, .. } = live.phase {
            let waiting = pool.waits_for(member);
            let capacity = &mut pool.members[member].capacity;
            capacity.ended(now, attempt, waiting, end);
            if end == AttemptEnd::Completed {
                capacity.served(now, sent);
            }
        }
        if let Some(notice) = pool.observe(now, member, end, on_trial, &mut self.random) {
            self.outputs.push_back(Output::Notice(notice));
        }
    }

    /// Step 11, retry: at most one, on another deployment, in time, not while the pool is saturated, not from one
    /// deployment that is known to fail to another, and paid for. Who has found out for all that a deployment still fails
    /// waits for room like who was never sent.
    fn retry(&mut self, now: Instant, request: RequestId, end: AttemptEnd, was_on_trial: bool) {
        let Some(live) = self.requests.get_mut(&request) else { return };
        live.exclude = live.last;
        let live = *live;
        let outcome = ended(end, live.tried());
        if !self.may_try_again(now, &live) {
            return self.finish(now, request, outcome, None, false);
        }
        // It does not wait, so any room is better than none.
        let known = self.route(now, &live);
        let routed = if known == Routed::NoRoom { self.route_to(now, &live, Room::Any) } else { known };
        // Where there is room, nobody who waits can use it: this is what "not saturated" means for this request.
        let Routed::To { member, on_trial } = routed else {
            if self.retries_elsewhere(now, request) {
                return;
            }
            if was_on_trial && routed == Routed::NoRoom {
                return self.wait(now, request);
            }
            let saturated = !self.pools[live.pool.index()].queue.is_empty();
            return self.finish(now, request, outcome, None, saturated);
        };
        let useless = on_trial && !self.is_healthy(&live);
        if useless && self.retries_elsewhere(now, request) {
            return;
        }
        if useless || !self.pools[live.pool.index()].pays_for_repeat(now, live.tenant) {
            return self.finish(now, request, outcome, None, true);
        }
        self.dispatch(now, request, Plan::new(member, on_trial, Payment::RetryBudget));
    }

    /// Step 11 for an attempt that never started: elsewhere at once where there is room and the bucket pays, else back
    /// to its place in the line.
    fn replace(&mut self, now: Instant, request: RequestId, member: usize, end: AttemptEnd) {
        let Some(live) = self.requests.get_mut(&request) else { return };
        // A refusal for want of capacity closes the deployment by itself; a dead address is not tried twice.
        live.exclude = if end == AttemptEnd::NotSent { live.last } else { None };
        live.unsent += u32::from(!matches!(end, AttemptEnd::Throttled { .. }));
        let live = *live;
        if !self.may_try_again(now, &live) {
            return self.finish_replaced(now, request, end);
        }
        let stale = end == AttemptEnd::StaleConnection;
        let routed = if stale && self.pools[live.pool.index()].serves(now, member) {
            Routed::To { member, on_trial: false }
        } else {
            self.route(now, &live)
        };
        match routed {
            Routed::NonePermitted | Routed::NoRoom if self.spills_over(now, request) => {}
            Routed::NonePermitted => self.finish_replaced(now, request, end),
            Routed::To { member, on_trial } => {
                if self.pools[live.pool.index()].not_sent_bucket.withdraw(now, live.tenant) {
                    let plan = Plan::new(member, on_trial, Payment::NotSentBucket);
                    return self.dispatch(now, request, Plan { fresh_connection: stale, ..plan });
                }
                self.wait(now, request);
            }
            Routed::NoRoom => self.wait(now, request),
        }
    }

    fn finish_replaced(&mut self, now: Instant, request: RequestId, end: AttemptEnd) {
        let Some(live) = self.requests.get(&request) else { return };
        if matches!(end, AttemptEnd::Throttled { .. }) {
            return self.refuse_busy(now, request, None);
        }
        let outcome = ended(end, live.tried());
        self.finish(now, request, outcome, None, false);
    }

    /// Whether the deployment of the last attempt is in rotation.
    fn is_healthy(&self, live: &Live) -> bool {
        let members = &self.pools[live.pool.index()].members;
        members.iter().any(|member| Some(member.id) == live.last && member.health.is_healthy())
    }

    fn may_try_again(&self, now: Instant, live: &Live) -> bool {
        let most = self.pools[live.asked.index()].settings.retry.max_attempts;
        live.tried() < most && live.deadline.is_none_or(|deadline| deadline > now)
    }

    /// A client that waits in the line left.
    fn leave_waiting(&mut self, now: Instant, request: RequestId) {
        let Some(live) = self.requests.get(&request) else { return };
        if live.identity.is_none() && matches!(live.phase, Phase::Waiting { .. }) {
            self.finish(now, request, Outcome::ClientGone, None, false);
        }
    }

    fn client_gone(&mut self, now: Instant, request: RequestId) {
        self.leave_flight(now, request);
        let Some(live) = self.requests.get(&request).copied() else { return };
        if live.identity.is_some() {
            return self.leader_left(now, request);
        }
        if let Phase::Running { member, on_trial, .. } = live.phase {
            self.shadow_end(request, AttemptEnd::ClientGone);
            self.settle(now, request, AttemptEnd::ClientGone);
            self.observe(now, &live, member, on_trial, AttemptEnd::ClientGone);
        }
        self.finish(now, request, Outcome::ClientGone, None, false);
        self.serve_line(now, live.pool);
    }

    /// Step 12, respond: exactly once for each request.
    fn finish(&mut self, now: Instant, request: RequestId, outcome: Outcome, wait: Option<Wait>, storm: bool) {
        let Some(live) = self.requests.remove(&request) else { return };
        self.leave_line(request, &live);
        let queued = live.queued + live.waits_since().map_or(Duration::ZERO, |since| now.since(since));
        let storm = storm || !self.pays_for_return(now, &live, outcome);
        let form: Option<Form> = advice::advise(outcome, wait, storm, &mut self.random);
        let respond = Respond {
            request,
            outcome,
            form,
            attempts: live.attempts,
            deployment: live.last,
            queued,
            observed: live.verdict.or_else(|| live.overrun(now)),
            cost: live.account.settled(),
        };
        if live.leader {
            self.respond(respond);
        }
        if live.identity.is_some() {
            self.land(now, request, &live, respond);
        }
    }

    /// Whether a client whose request failed may be told to come back soon. What it then makes is one attempt more, and is
    /// paid for like one of ours; where that cannot be, it is told to stay away.
    fn pays_for_return(&mut self, now: Instant, live: &Live, outcome: Outcome) -> bool {
        if live.observed || !outcome.is_failure_that_may_pass() {
            return true;
        }
        let pool = &mut self.pools[live.pool.index()];
        !pool.has(Protection::RepeatStanding)
            || (live.tried() < flight::MOST_ATTEMPTS && pool.pays_for_repeat(now, live.tenant))
    }

    fn eligibility(&self, live: &Live) -> Eligibility {
        Eligibility { boundary: self.tenants[live.tenant.index()].boundary, exclude: live.exclude }
    }

    fn lane(&self, live: &Live) -> Lane {
        let Eligibility { boundary, exclude } = self.eligibility(live);
        Lane { boundary, exclude, payer: (live.attempts > 0).then_some(live.tenant) }
    }
}

/// The ending that an attempt's end means where nothing more is tried.
const fn ended(end: AttemptEnd, attempts: u32) -> Outcome {
    match end {
        AttemptEnd::Completed => Outcome::Served,
        AttemptEnd::ClientFault | AttemptEnd::ContextExceeded => Outcome::ClientError,
        AttemptEnd::Truncated => Outcome::Truncated,
        AttemptEnd::StreamError => Outcome::StreamError,
        AttemptEnd::DeadlinePassed => Outcome::DeadlineUnmeetable,
        AttemptEnd::ClientGone => Outcome::ClientGone,
        AttemptEnd::CredentialRefused => Outcome::UpstreamAuth,
        AttemptEnd::Throttled { .. } => Outcome::CapacityExhausted,
        AttemptEnd::NotSent | AttemptEnd::StaleConnection | AttemptEnd::Failed | AttemptEnd::TimedOut
            if attempts > 1 =>
        {
            Outcome::UpstreamErrorRetried
        }
        AttemptEnd::NotSent => Outcome::NoHealthyDeployment,
        AttemptEnd::StaleConnection | AttemptEnd::Failed => Outcome::UpstreamError,
        AttemptEnd::TimedOut => Outcome::UpstreamTimeout,
    }
}

/// The number of a boundary's name, from 1; 0 for none.
fn number_of(names: &mut Vec<String>, name: Option<&str>) -> u16 {
    let Some(name) = name else { return 0 };
    let index = names.iter().position(|known| known == name).unwrap_or_else(|| {
        names.push(String::from(name));
        names.len() - 1
    });
    u16::try_from(index + 1).unwrap_or(u16::MAX)
}
