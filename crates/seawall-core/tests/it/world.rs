//! A host in virtual time: scripted upstreams, a queue of events, and the drive contract checked at every step.

use seawall_core::Engine;
use seawall_core::classify::AttemptEnd;
use seawall_core::cost::{Demand, Work};
use seawall_core::engine::{Arrival, Input, Notice, Output, Respond, Verdict};
use seawall_core::id::{AttemptId, DeploymentId, PoolId, RequestId, TenantId};
use seawall_core::outcome::Outcome;
use seawall_core::permit::{AttemptPermit, Payment};
use seawall_core::settings::{Capacity, Criticality, DeploymentSettings, Mode, PoolSettings, Settings, TenantSettings};
use seawall_core::time::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};

/// Shorthand for a span.
pub(crate) const fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Shorthand for a point in time.
pub(crate) const fn at(count: u64) -> Instant {
    Instant::from_millis(count)
}

/// The choice that belongs to this number: they repeat in order.
pub(crate) fn choose<T: Copy>(choices: &[T], number: u64) -> T {
    choices[usize::try_from(number % choices.len() as u64).expect("a remainder of a length fits")]
}

/// What an upstream sees of one attempt.
pub(crate) struct Call {
    pub(crate) now: Instant,
    pub(crate) request: RequestId,
    /// Attempts in flight there, without this one.
    pub(crate) running: u32,
}

/// How an upstream answers one attempt.
pub(crate) struct Answer {
    pub(crate) after: Duration,
    pub(crate) end: AttemptEnd,
    /// When the head of an answer that is relayed arrives.
    pub(crate) headers: Option<Duration>,
}

impl Answer {
    /// A complete answer, its head half way.
    pub(crate) fn served(after: Duration) -> Self {
        Self { after, end: AttemptEnd::Completed, headers: Some(after / 2) }
    }

    /// An end without an answer that is relayed.
    pub(crate) fn ended(after: Duration, end: AttemptEnd) -> Self {
        Self { after, end, headers: None }
    }
}

pub(crate) type Upstream = Box<dyn FnMut(&Call) -> Answer>;
type Client = Box<dyn FnMut(Instant, &Respond) -> Option<(Duration, Arrival)>>;

/// One attempt that was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt {
    pub(crate) request: RequestId,
    pub(crate) deployment: usize,
    pub(crate) at: Instant,
    pub(crate) payment: Payment,
    pub(crate) number: u32,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Arrive(Arrival, Option<DeploymentId>),
    Headers(RequestId, AttemptId),
    End(RequestId, AttemptId, AttemptEnd),
    Gone(RequestId),
    Seal(RequestId),
    Drain,
}

struct Running {
    attempt: AttemptId,
    number: u32,
    deployment: usize,
    since: Instant,
    relaying: bool,
}

/// The host, the upstreams and the clients.
pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) now: Instant,
    pub(crate) attempts: Vec<Attempt>,
    pub(crate) responses: BTreeMap<RequestId, (Instant, Respond)>,
    pub(crate) notices: Vec<(Instant, Notice)>,
    /// Time of attempts in flight, all together, for each deployment.
    pub(crate) busy: Vec<Duration>,
    pub(crate) most_running: Vec<u32>,
    pub(crate) arrivals: BTreeMap<RequestId, Arrival>,
    settings: Settings,
    upstreams: Vec<Upstream>,
    client: Option<Client>,
    events: BTreeMap<(Instant, u64), Event>,
    sequence: u64,
    running: BTreeMap<RequestId, Running>,
    in_flight: Vec<u32>,
    relayed: BTreeSet<RequestId>,
    made: BTreeMap<RequestId, u32>,
    /// Who was answered with what somebody else's flight got.
    pub(crate) joins: BTreeMap<RequestId, RequestId>,
    pub(crate) cancelled: Vec<(Instant, RequestId)>,
    pub(crate) forgotten: BTreeSet<RequestId>,
}

impl World {
    /// A world with one upstream for each deployment of `settings`.
    pub(crate) fn new(settings: &Settings, upstreams: Vec<Upstream>) -> Self {
        let count = settings.deployments.len();
        assert_eq!(upstreams.len(), count, "one script for each deployment");
        Self {
            engine: Engine::new(Instant::ZERO, settings),
            now: Instant::ZERO,
            attempts: Vec::new(),
            responses: BTreeMap::new(),
            notices: Vec::new(),
            busy: vec![Duration::ZERO; count],
            most_running: vec![0; count],
            arrivals: BTreeMap::new(),
            settings: settings.clone(),
            upstreams,
            client: None,
            events: BTreeMap::new(),
            sequence: 0,
            running: BTreeMap::new(),
            in_flight: vec![0; count],
            relayed: BTreeSet::new(),
            made: BTreeMap::new(),
            joins: BTreeMap::new(),
            cancelled: Vec::new(),
            forgotten: BTreeSet::new(),
        }
    }

    /// What clients do once they are answered: a new arrival after a time, or nothing.
    pub(crate) fn clients(&mut self, client: impl FnMut(Instant, &Respond) -> Option<(Duration, Arrival)> + 'static) {
        self.client = Some(Box::new(client));
    }

    pub(crate) fn arrive(&mut self, at: Instant, arrival: Arrival) {
        self.schedule(at, Event::Arrive(arrival, None));
    }

    /// An arrival at another router, which sends it to this deployment.
    pub(crate) fn mirror(&mut self, at: Instant, arrival: Arrival, deployment: u32) {
        self.schedule(at, Event::Arrive(arrival, Some(DeploymentId(deployment))));
    }

    /// Plain arrivals of tenant 0 at pool 0, evenly spaced: `count` of them, `per_second` a second, from `from`.
    pub(crate) fn arrive_evenly(&mut self, from: Instant, per_second: u64, count: u64) {
        let first = self.next_request();
        for index in 0..count {
            let at = from + Duration::from_nanos(index * 1_000_000_000 / per_second);
            self.arrive(at, request(first + index));
        }
    }

    /// A request id that no arrival has used.
    pub(crate) fn next_request(&self) -> u64 {
        let scheduled = self.events.values().filter_map(|event| match event {
            Event::Arrive(arrival, _) => Some(arrival.request.0 + 1),
            _ => None,
        });
        scheduled.chain(self.arrivals.keys().last().map(|last| last.0 + 1)).max().unwrap_or(0)
    }

    pub(crate) fn leave(&mut self, at: Instant, request: RequestId) {
        self.schedule(at, Event::Gone(request));
    }

    pub(crate) fn seal(&mut self, at: Instant, flight: RequestId) {
        self.schedule(at, Event::Seal(flight));
    }

    pub(crate) fn drain(&mut self, at: Instant) {
        self.schedule(at, Event::Drain);
    }

    /// Lives until `end`, or until nothing is left to happen.
    pub(crate) fn run_until(&mut self, end: Instant) {
        loop {
            let event = self.events.first_key_value().map(|((at, _), _)| *at);
            let deadline = self.engine.next_deadline();
            let Some(next) = event.into_iter().chain(deadline).min().filter(|next| *next <= end) else { break };
            self.now = self.now.max(next);
            if event == Some(next) {
                let (_, event) = self.events.pop_first().expect("it was just seen");
                self.happen(event);
            } else {
                self.engine.handle(self.now, Input::Tick);
                self.follow();
                assert!(
                    self.engine.next_deadline().is_none_or(|later| later > self.now),
                    "a tick leaves no deadline that is already due"
                );
            }
        }
        self.now = self.now.max(end);
    }

    fn schedule(&mut self, at: Instant, event: Event) {
        self.sequence += 1;
        self.events.insert((at, self.sequence), event);
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrive(arrival, sent_to) => {
                self.arrivals.insert(arrival.request, arrival);
                let plain = Input::Arrived(arrival);
                self.engine.handle(self.now, sent_to.map_or(plain, |sent_to| Input::Mirrored(arrival, sent_to)));
            }
            Event::Headers(request, attempt) => {
                if let Some(running) = self.running.get_mut(&request).filter(|running| running.attempt == attempt) {
                    running.relaying = true;
                    let number = running.number;
                    self.relayed.insert(request);
                    self.engine.handle(self.now, Input::AttemptHeaders(request, number));
                }
            }
            Event::End(request, attempt, end) => {
                let running = self.running.get(&request).filter(|running| running.attempt == attempt);
                if let Some(number) = running.map(|running| running.number) {
                    self.stop(request);
                    self.engine.handle(self.now, Input::AttemptEnded(request, number, end));
                }
            }
            Event::Gone(request) => {
                // What can be joined goes on until the engine says otherwise.
                if self.arrivals.get(&request).is_none_or(|arrival| arrival.identity.is_none()) {
                    self.stop(request);
                }
                self.engine.handle(self.now, Input::ClientGone(request));
            }
            Event::Seal(flight) => self.engine.handle(self.now, Input::Sealed(flight)),
            Event::Drain => self.engine.handle(self.now, Input::Drain),
        }
        self.follow();
    }

    fn stop(&mut self, request: RequestId) {
        if let Some(running) = self.running.remove(&request) {
            self.in_flight[running.deployment] -= 1;
            self.busy[running.deployment] += self.now.since(running.since);
        }
    }

    fn follow(&mut self) {
        while let Some(output) = self.engine.poll() {
            match output {
                Output::Dispatch(dispatch) => {
                    let permit = &dispatch.permit;
                    self.dispatch(permit, dispatch.deadline);
                    let deployment = permit.deployment().index();
                    let (request, payment, number) = (permit.request(), permit.payment(), permit.number());
                    *self.made.entry(request).or_default() += 1;
                    assert_eq!(self.made[&request], number, "attempts are numbered");
                    self.attempts.push(Attempt { request, deployment, at: self.now, payment, number });
                }
                Output::Respond(respond) => self.respond(respond),
                Output::Join(join) => {
                    assert!(self.joins.insert(join.request, join.flight).is_none(), "one flight for one request");
                }
                Output::Cancel(flight) => {
                    let number = self.running.get(&flight).expect("what is cancelled runs").number;
                    self.cancelled.push((self.now, flight));
                    self.stop(flight);
                    self.engine.handle(self.now, Input::AttemptEnded(flight, number, AttemptEnd::ClientGone));
                }
                Output::Forget(flight) => assert!(self.forgotten.insert(flight), "a flight is forgotten once"),
                Output::Notice(notice) => self.notices.push((self.now, notice)),
            }
        }
    }

    fn dispatch(&mut self, permit: &AttemptPermit, deadline: Option<Instant>) {
        let (request, attempt, deployment) = (permit.request(), permit.attempt(), permit.deployment());
        let left = |(_, respond): &(Instant, Respond)| respond.outcome == Outcome::ClientGone;
        assert!(self.responses.get(&request).is_none_or(left), "no attempt after the answer");
        assert!(!self.relayed.contains(&request), "no attempt after the first byte");
        assert!(!self.running.contains_key(&request), "one attempt at a time");
        let arrival = &self.arrivals[&request];
        if is_observed(&self.settings, arrival) {
            assert_eq!(deadline, None, "no deadline cuts what is observed");
            assert!(!self.made.contains_key(&request), "one attempt for what is observed");
        } else {
            assert!(deadline.is_none_or(|deadline| deadline > self.now), "no attempt past the deadline");
            assert_eq!(deadline, arrival.deadline, "the caller's deadline travels with every attempt");
        }
        let deployment = deployment.index();
        let call = Call { now: self.now, request, running: self.in_flight[deployment] };
        let answer = self.upstreams[deployment](&call);
        let running = Running { attempt, number: permit.number(), deployment, since: self.now, relaying: false };
        self.running.insert(request, running);
        self.in_flight[deployment] += 1;
        self.most_running[deployment] = self.most_running[deployment].max(self.in_flight[deployment]);
        let ends = self.now + answer.after;
        let late = deadline.is_some_and(|deadline| deadline < ends);
        if let Some(headers) = answer.headers
            && deadline.is_none_or(|deadline| self.now + headers < deadline)
        {
            self.schedule(self.now + headers, Event::Headers(request, attempt));
        }
        let (ends, end) =
            if late { (deadline.expect("it is late"), AttemptEnd::DeadlinePassed) } else { (ends, answer.end) };
        self.schedule(ends, Event::End(request, attempt, end));
    }

    fn respond(&mut self, respond: Respond) {
        let flight = self.joins.get(&respond.request).copied().unwrap_or(respond.request);
        if respond.outcome != Outcome::ClientGone {
            assert!(!self.running.contains_key(&flight), "no answer while an attempt runs");
            let made = self.made.get(&flight).copied().unwrap_or(0);
            assert_eq!(made, respond.attempts, "the attempts are what was dispatched");
        }
        assert!(respond.observed.is_none() || is_observed(&self.settings, &self.arrivals[&respond.request]));
        let before = self.responses.insert(respond.request, (self.now, respond));
        assert!(before.is_none(), "one answer for one request");
        if let Some(client) = &mut self.client
            && let Some((after, arrival)) = client(self.now, &respond)
        {
            self.arrive(self.now + after, arrival);
        }
    }

    // What came of it.

    pub(crate) fn outcome(&self, request: u64) -> Outcome {
        self.responses[&RequestId(request)].1.outcome
    }

    pub(crate) fn response(&self, request: u64) -> &Respond {
        &self.responses[&RequestId(request)].1
    }

    pub(crate) fn responded_at(&self, request: u64) -> Instant {
        self.responses[&RequestId(request)].0
    }

    pub(crate) fn count(&self, outcome: Outcome) -> usize {
        self.responses.values().filter(|(_, respond)| respond.outcome == outcome).count()
    }

    /// How many observed requests this would have happened to.
    pub(crate) fn verdicts(&self, verdict: Verdict) -> usize {
        self.responses.values().filter(|(_, respond)| respond.observed == Some(verdict)).count()
    }

    pub(crate) fn attempts_at(&self, deployment: usize) -> usize {
        self.attempts.iter().filter(|attempt| attempt.deployment == deployment).count()
    }

    pub(crate) fn attempts_of(&self, request: u64) -> Vec<Attempt> {
        self.attempts.iter().filter(|attempt| attempt.request == RequestId(request)).copied().collect()
    }

    /// Every arrival was answered and nothing is left anywhere.
    pub(crate) fn assert_settled(&self) {
        assert_eq!(self.responses.len(), self.arrivals.len(), "every arrival ends");
        assert_eq!((self.engine.live(), self.engine.flights()), (0, 0));
        for pool in self.engine.view(self.now) {
            assert_eq!((pool.waiting, pool.would_wait), (0, 0));
            let work = pool.deployments.iter().map(|deployment| deployment.work_in_flight);
            assert!(work.chain([pool.work_waiting]).all(|work| work == Work::ZERO));
            assert!(pool.deployments.iter().all(|deployment| (deployment.in_flight, deployment.would_run) == (0, 0)));
        }
    }

    pub(crate) fn health(&self, deployment: usize) -> &'static str {
        let views = self.engine.view(self.now);
        let mut all = views.iter().flat_map(|pool| &pool.deployments);
        all.find(|view| view.deployment.index() == deployment).expect("every deployment is in a view").health
    }
}

/// Whether this request is only observed.
pub(crate) fn is_observed(settings: &Settings, arrival: &Arrival) -> bool {
    let modes = [settings.pools[arrival.pool.index()].mode, settings.tenants[arrival.tenant.index()].mode];
    modes.contains(&Mode::Observe)
}

/// A plain request of tenant 0 for pool 0.
pub(crate) fn request(id: u64) -> Arrival {
    Arrival {
        request: RequestId(id),
        tenant: TenantId(0),
        pool: PoolId(0),
        criticality: Criticality::Critical,
        deadline: None,
        patience: None,
        identity: None,
        demand: Demand::default(),
    }
}

/// One pool with these deployments, and one tenant.
pub(crate) fn settings(capacities: &[Capacity]) -> Settings {
    let deployments = capacities.iter().enumerate().map(|(index, capacity)| deployment(index, *capacity)).collect();
    Settings {
        pools: vec![PoolSettings {
            discovery: "ceiling".into(),
            ..PoolSettings::new("m", (0..capacities.len()).map(DeploymentId::from_index).collect())
        }],
        deployments,
        tenants: vec![tenant("t0")],
        seed: 7,
    }
}

/// `count` equal deployments of unknown size.
pub(crate) fn equal(count: usize) -> Settings {
    settings(&vec![Capacity::Standard { size: None }; count])
}

fn deployment(index: usize, capacity: Capacity) -> DeploymentSettings {
    DeploymentSettings {
        region: format!("r{index}"),
        capacity,
        ..DeploymentSettings::new(format!("d{index}"), PoolId(0))
    }
}

/// A tenant that may claim every class and go anywhere.
pub(crate) fn tenant(name: &str) -> TenantSettings {
    TenantSettings::new(name, vec![PoolId(0)])
}

/// An upstream that serves everything in this time.
pub(crate) fn serves(after: Duration) -> Upstream {
    Box::new(move |_| Answer::served(after))
}

/// An upstream that ends every attempt like this.
pub(crate) fn ends(after: Duration, end: AttemptEnd) -> Upstream {
    Box::new(move |_| Answer::ended(after, end))
}

/// An upstream by a script.
pub(crate) fn script(answer: impl FnMut(&Call) -> Answer + 'static) -> Upstream {
    Box::new(answer)
}
