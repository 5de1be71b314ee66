//! Seawall in the place of a naive router: the same number of processes with the same speed and memory, each with an
//! engine of its own, the engine that serves.
//!
//! This is the engine's second host (`seawall-proxy` is the first). It gives every input with the time of the world,
//! makes exactly one attempt for each dispatch, reports exactly one end for it, and answers every call exactly once. What
//! a host has to read from bytes is known here, and what the simulator does not have is left out: nobody states a
//! deadline or a patience, as the measured clients do not by default, and an answer comes in one piece.

mod forms;
mod replica;
mod series;
mod settings;
mod tap;
mod watch;

use super::Surroundings;
use super::fleet::{self, Fleet};
use crate::Nanos;
use crate::calls::{Call, CallId, Reply};
use crate::checkers::{self, Turn, UnderWay};
use crate::context::{Actor, Context};
use crate::random::{Stream, nanos};
use crate::recorder::Recorder;
use crate::slab::{Place, Slab};
use crate::timeouts::Timeouts;
use replica::{Gate, Replica, Stage};
use seawall_cases::scenario::{Event, Form, Router, WithSeawall};
use seawall_core::advice;
use seawall_core::classify::AttemptEnd;
use seawall_core::engine::{Arrival, Dispatch, Input, Join, Output, Respond};
use seawall_core::id::RequestId;
use seawall_core::outcome::Outcome;
use seawall_core::settings::Mode;
use seawall_core::time::{Duration, Instant};
use series::Series;
use settings::Told;
use std::collections::BTreeMap;
pub(super) use tap::{Tap, Watched};

const DONE: u16 = 0;
const TICK: u16 = 1;
const TIMEOUT: u16 = 2;

#[derive(Clone, Copy, Debug)]
struct Held {
    inbound: CallId,
    replica: u32,
    stage: Stage,
    /// When it is its turn to be let go for the first time; `None`: it has been, it is not at the engine yet, or it is only
    /// observed.
    turn: Option<Turn>,
}

/// What a flight was begun with. It holds its request: whoever sent it may have given up.
#[derive(Clone, Copy, Debug)]
struct Flight {
    call: Call,
    replica: u32,
    /// Attempts that were made.
    made: u32,
}

/// An attempt that is under way. Whoever began its flight may have left.
#[derive(Clone, Copy, Debug)]
struct Attempt {
    outbound: CallId,
    replica: u32,
    number: u32,
}

/// Takes the place of a [`Router`]; see the module.
#[derive(Debug)]
pub struct SeawallActor {
    told: Told,
    service: Nanos,
    refusal: Nanos,
    counts_attempts: bool,
    fleet: Fleet,
    /// The process of each instance that has been up.
    replicas: Vec<Option<Replica>>,
    held: Slab<Held>,
    /// What flights were begun with, until they are forgotten.
    flights: BTreeMap<Place, Flight>,
    /// The attempts that are under way, by the flight that each is for.
    attempts: BTreeMap<Place, Attempt>,
    /// Requests that wait in the engines of all processes.
    waiting: usize,
    /// One line for each length of time in which an answer has to begin, by the marks of their timers.
    timeouts: Vec<Timeouts>,
    balancing: Stream,
    seeds: Stream,
    series: Series,
}

impl SeawallActor {
    /// What takes the place of this router.
    pub fn new(router: &Router, with: &WithSeawall, around: &Surroundings<'_>, recorder: &mut Recorder) -> Self {
        let each = 1e9 / (router.rate_per_second * around.scale);
        Self {
            told: settings::told(router, around, Mode::Enforce),
            service: nanos(each),
            refusal: nanos(each * with.refusal_cost),
            counts_attempts: around.scenario.scenario.attempts_at.contains(&router.name),
            fleet: Fleet::new(router, around, recorder),
            replicas: Vec::new(),
            held: Slab::default(),
            flights: BTreeMap::new(),
            attempts: BTreeMap::new(),
            waiting: 0,
            timeouts: Vec::new(),
            balancing: around.stream(&router.name, "balancing"),
            seeds: around.stream(&router.name, "engines"),
            series: Series::new(&router.name, around, recorder),
        }
    }

    /// The process of an instance, begun now if there is none yet.
    fn replica(&mut self, index: u32, now: Nanos) -> &mut Replica {
        let place = index as usize;
        if self.replicas.len() <= place {
            self.replicas.resize_with(place + 1, || None);
        }
        let (settings, seeds) = (&self.told.settings, &mut self.seeds);
        self.replicas[place].get_or_insert_with(|| Replica::new(now, settings, seeds.whole()))
    }

    fn refused_at_the_gate(&mut self, place: Place, index: u32, context: &mut Context<'_>) {
        let outcome = Outcome::MemoryFull;
        let random = &mut self.replica(index, context.now()).random;
        let reply = advice::advise(outcome, None, false, random).map_or(Reply::SUCCESS, forms::refusal);
        self.end(place, outcome, 0, reply, context);
    }

    /// Begins with the next request of a process's line.
    fn begin(&mut self, index: u32, context: &mut Context<'_>) {
        let Some(Some(replica)) = self.replicas.get_mut(index as usize) else { return };
        let Some(held) = replica.begin(&self.held).and_then(|place| self.held.get(place)) else { return };
        let span = if held.stage == Stage::Refused { self.refusal } else { self.service };
        self.fleet.worked(index, span);
        context.timer(span, DONE, self.fleet.mark(index));
    }

    fn done(&mut self, mark: u64, context: &mut Context<'_>) {
        let Some(index) = self.fleet.alive(mark) else { return };
        let place = self.replica(index, context.now()).done();
        if let Some((place, stage)) = place.and_then(|place| Some((place, self.held.get(place)?.stage))) {
            match stage {
                Stage::Refused => self.refused_at_the_gate(place, index, context),
                Stage::Arrived | Stage::Admitted => self.admit(place, index, context),
            }
        }
        self.begin(index, context);
    }

    /// Gives a request to the engine.
    fn admit(&mut self, place: Place, index: u32, context: &mut Context<'_>) {
        let Some(held) = self.held.get_mut(place) else { return };
        let Some(call) = context.call(held.inbound).copied() else { return };
        let facts = *context.facts(call.request);
        held.stage = Stage::Admitted;
        let arrival = Arrival {
            request: RequestId(place),
            tenant: self.told.tenant(facts.workload),
            pool: self.told.pool(facts.model),
            criticality: forms::criticality(facts.criticality),
            deadline: None,
            patience: None,
            identity: Some(forms::identity(&facts, &call)),
            demand: forms::demand(&facts),
        };
        context.hold(call.request);
        self.flights.insert(place, Flight { call, replica: index, made: 0 });
        let now = context.now();
        if self.replica(index, now).is_due(now) {
            self.drive(index, &[Input::Tick], context);
        }
        let replica = self.replica(index, now);
        replica.admit();
        let turn = replica.watch.arrives(&arrival);
        if let Some(held) = self.held.get_mut(place) {
            held.turn = turn;
        }
        self.step(index, Input::Arrived(arrival), context);
        if let Some(turn) = self.held.get(place).and_then(|held| held.turn) {
            self.replica(index, now).watch.waits(turn);
        }
        self.settle(index, context);
    }

    /// Gives an engine its inputs and does what it says.
    fn drive(&mut self, index: u32, inputs: &[Input], context: &mut Context<'_>) {
        for input in inputs {
            self.step(index, *input, context);
        }
        self.settle(index, context);
    }

    /// Sees to an engine's timer and tells how it stands.
    fn settle(&mut self, index: u32, context: &mut Context<'_>) {
        let now = context.now();
        let Some(Some(replica)) = self.replicas.get_mut(index as usize) else { return };
        let waiting = replica.waiting();
        let before = core::mem::replace(&mut replica.was_waiting, waiting);
        let (timer, seen) = (replica.arm(), replica.look(now, &self.told.settings));
        self.waiting = self.waiting + waiting - before;
        if let Some(at) = timer {
            context.timer(at.saturating_sub(now), TICK, self.fleet.mark(index));
        }
        context.violations(seen);
        self.series.levels(self.held.len(), self.waiting, context);
    }

    fn step(&mut self, index: u32, input: Input, context: &mut Context<'_>) {
        let now = context.now();
        self.replica(index, now).engine.handle(Instant::from_nanos(now), input);
        while let Some(output) = self.replica(index, now).engine.poll() {
            match output {
                Output::Dispatch(dispatch) => self.dispatch(index, dispatch, context),
                Output::Respond(respond) => self.respond(&respond, context),
                Output::Join(join) => self.join(index, join, context),
                Output::Cancel(flight) => self.cancel(flight.0, context),
                Output::Forget(flight) => self.forget_flight(flight.0, context),
                // What an operator may want to read; nobody reads here.
                Output::Notice(_) => {}
            }
        }
    }

    /// Makes the attempt that is permitted. Whoever began its flight may have left: then nothing is known of the request
    /// but what the flight was begun with.
    fn dispatch(&mut self, index: u32, dispatch: Dispatch, context: &mut Context<'_>) {
        let permit = dispatch.permit;
        let place = permit.request().0;
        let now = context.now();
        let line = self.line_of(nanos_of(dispatch.timeouts.first_byte));
        let deployment = permit.deployment();
        let to = self.told.targets[deployment.index()];
        if let Some(turn) = self.held.get_mut(place).and_then(|held| held.turn.take()) {
            let seen = self.replica(index, now).goes(now, turn, deployment);
            context.violations(seen);
        }
        let Some(flight) = self.flights.get_mut(&place) else { return };
        flight.made += 1;
        let (call, made) = (flight.call, flight.made);
        context.use_permit(permit, made);
        let facts = context.facts_mut(call.request);
        facts.upstream += 1;
        let upstream = facts.upstream;
        self.series.dispatched(upstream, context);
        let deadline = self.timeouts[line].deadline(now);
        let connect_nanos = nanos_of(dispatch.timeouts.connect);
        let outbound = context.send_call(Call { to, token: place, deadline, connect_nanos, ..call });
        self.attempts.insert(place, Attempt { outbound, replica: index, number: made });
        self.timeouts[line].watch(outbound, context);
        self.replica(index, now).running += 1;
    }

    /// A request waits for the answer of another one's flight.
    fn join(&mut self, index: u32, join: Join, context: &mut Context<'_>) {
        let now = context.now();
        if let Some(turn) = self.held.get_mut(join.request.0).and_then(|held| held.turn.take()) {
            self.replica(index, now).watch.leaves(turn);
        }
        self.forget_flight(join.request.0, context);
        self.series.joined(context);
    }

    fn forget_flight(&mut self, flight: Place, context: &mut Context<'_>) {
        if let Some(flight) = self.flights.remove(&flight) {
            context.release(flight.call.request);
        }
    }

    /// Ends an attempt that nobody waits for.
    fn cancel(&mut self, flight: Place, context: &mut Context<'_>) {
        if let Some(attempt) = self.attempts.get(&flight) {
            context.abandon(attempt.outbound);
            self.attempt_ended(flight, AttemptEnd::ClientGone, context);
        }
    }

    /// The line of attempts whose answers have to begin within this time.
    fn line_of(&mut self, first_byte: Nanos) -> usize {
        let known = self.timeouts.iter().position(|line| line.span() == first_byte);
        known.unwrap_or_else(|| {
            self.timeouts.push(Timeouts::marked(first_byte, TIMEOUT, self.timeouts.len() as u64));
            self.timeouts.len() - 1
        })
    }

    /// Ends the attempts of a line whose time is over.
    fn time_out(&mut self, line: u64, context: &mut Context<'_>) {
        let line = usize::try_from(line).unwrap_or(usize::MAX);
        while let Some(call) = self.timeouts.get_mut(line).and_then(|line| line.next_due(context)) {
            let place = context.call(call).map_or(u64::MAX, |call| call.token);
            context.abandon(call);
            self.attempt_ended(place, AttemptEnd::TimedOut, context);
        }
    }

    fn respond(&mut self, respond: &Respond, context: &mut Context<'_>) {
        if self.held.get(respond.request.0).is_none() {
            return context.violations(checkers::unknown_end(respond.outcome == Outcome::ClientGone));
        }
        if matches!(respond.outcome, Outcome::DuplicateInFlight | Outcome::ModelNotFound) {
            // It has begun no flight.
            self.forget_flight(respond.request.0, context);
        }
        self.series.settled(respond.cost, context);
        let waited = nanos_of(respond.queued);
        self.end(respond.request.0, respond.outcome, waited, forms::told(respond), context);
    }

    /// Answers a call; one whose caller has left is forgotten already.
    fn end(&mut self, place: Place, outcome: Outcome, waited: Nanos, reply: Reply, context: &mut Context<'_>) {
        let Some(held) = self.forget(place, context.now()) else { return };
        let workload = context.facts_of(held.inbound).map_or(0, |facts| facts.workload);
        self.series.ended(outcome, workload, waited, context);
        self.series.levels(self.held.len(), self.waiting, context);
        context.reply(held.inbound, reply);
    }

    fn forget(&mut self, place: Place, now: Nanos) -> Option<Held> {
        let held = self.held.remove(place)?;
        let replica = self.replica(held.replica, now);
        replica.release(held.stage);
        if let Some(turn) = held.turn {
            replica.watch.leaves(turn);
        }
        Some(held)
    }

    /// The attempt of a request ended.
    fn attempt_ended(&mut self, place: Place, end: AttemptEnd, context: &mut Context<'_>) {
        let Some(attempt) = self.attempts.remove(&place) else { return };
        let (index, request) = (attempt.replica, RequestId(place));
        self.replica(index, context.now()).running -= 1;
        let ended = Input::AttemptEnded(request, attempt.number, end);
        if end != AttemptEnd::Completed {
            return self.drive(index, &[ended], context);
        }
        let facts = self.flights.get(&place).map(|flight| *context.facts(flight.call.request));
        self.step(index, Input::AttemptHeaders(request, attempt.number), context);
        if let Some(used) = facts.as_ref().and_then(forms::used) {
            self.step(index, Input::Used(request, attempt.number, used), context);
        }
        self.drive(index, &[ended], context);
        if let Some(facts) = facts {
            let (pool, tenant) = (self.told.pool(facts.model), self.told.tenant(facts.workload));
            let tokens = self.replica(index, context.now()).engine.expected_output_tokens(pool, tenant);
            self.series.expects(facts.workload, tokens, context);
        }
    }

    /// A process is gone, and all that it held with it.
    fn lose(&mut self, index: u32, context: &mut Context<'_>) {
        if let Some(replica) = self.replicas.get_mut(index as usize).and_then(Option::take) {
            self.waiting -= replica.was_waiting;
        }
        let lost: Vec<Place> = self.held.places().filter(|(_, held)| held.replica == index).map(|(at, _)| at).collect();
        for place in lost {
            let Some(held) = self.held.remove(place) else { continue };
            self.series.lost(context);
            context.reply(held.inbound, Reply::failure(Form::ConnectionLost));
        }
        let flights: Vec<Place> =
            self.flights.iter().filter(|(_, flight)| flight.replica == index).map(|(at, _)| *at).collect();
        for flight in flights {
            if let Some(attempt) = self.attempts.remove(&flight) {
                context.abandon(attempt.outbound);
            }
            self.forget_flight(flight, context);
        }
        self.series.levels(self.held.len(), self.waiting, context);
        self.fleet.lose(index, context);
    }

    /// Requests that the memory of a process holds; at least one.
    fn memory(&self) -> usize {
        usize::try_from(nanos(self.fleet.memory_in_flight())).unwrap_or(usize::MAX).max(1)
    }
}

impl Actor for SeawallActor {
    fn start(&mut self, context: &mut Context<'_>) {
        context.needs_permits();
        self.fleet.start(context);
    }

    fn arrive(&mut self, call: CallId, context: &mut Context<'_>) {
        let Some(request) = context.call(call).map(|call| call.request) else { return };
        self.series.arrived(context.facts(request).workload, context);
        if self.counts_attempts {
            let facts = context.facts_mut(request);
            facts.attempts += 1;
            let attempts = facts.attempts;
            self.series.attempts_of_one(attempts, context);
        }
        let Some(index) = self.fleet.pick(&mut self.balancing) else {
            self.series.unreachable(context);
            return context.reply(call, Reply::failure(Form::ConnectionRefused));
        };
        let memory = self.memory();
        let stage = match self.replica(index, context.now()).gate(memory) {
            Gate::Open => Stage::Arrived,
            Gate::Full => Stage::Refused,
            Gate::Shut => {
                self.series.turned_away(context);
                return context.reply(call, Reply::failure(Form::ConnectionRefused));
            }
        };
        let place = self.held.insert(Held { inbound: call, replica: index, stage, turn: None });
        if let Some(call) = context.call_mut(call) {
            call.state = place;
        }
        if let Some(Some(replica)) = self.replicas.get_mut(index as usize) {
            replica.take(place, stage, &self.held);
            let seen = checkers::process_memory(replica.holds(), memory);
            context.violations(seen);
        }
        self.series.levels(self.held.len(), self.waiting, context);
        self.begin(index, context);
    }

    fn reply(&mut self, call: CallId, reply: Reply, context: &mut Context<'_>) {
        let place = context.call(call).map_or(u64::MAX, |call| call.token);
        self.attempt_ended(place, forms::attempt_end(reply), context);
    }

    fn abandoned(&mut self, call: CallId, context: &mut Context<'_>) {
        let place = context.call(call).map_or(u64::MAX, |call| call.state);
        if let Some(held) = self.forget(place, context.now()).filter(|held| held.stage == Stage::Admitted) {
            self.drive(held.replica, &[Input::ClientGone(RequestId(place))], context);
        }
        context.close(call);
    }

    fn timer(&mut self, kind: u16, data: u64, context: &mut Context<'_>) {
        match kind {
            DONE => self.done(data, context),
            TICK => {
                if let Some(index) = self.fleet.alive(data) {
                    self.replica(index, context.now()).rang(context.now());
                    self.drive(index, &[Input::Tick], context);
                }
            }
            fleet::FIRST_KIND.. => self.fleet.timer(kind, data, context),
            _ => self.time_out(data, context),
        }
    }

    fn change(&mut self, event: &Event, context: &mut Context<'_>) {
        for index in self.fleet.change(&event.change, context) {
            self.lose(index, context);
        }
    }

    fn held(&self) -> usize {
        self.held.len() + self.attempts.len() + self.timeouts.iter().map(Timeouts::len).sum::<usize>()
    }

    fn bound(&self, under_way: UnderWay) -> usize {
        // What clients have left behind is held beside what they wait for.
        2 * self.fleet.most_held() + self.timeouts.len() * Timeouts::most(under_way.most_calls)
    }

    fn stop(&mut self) {
        self.fleet.stop();
    }
}

/// A span of the engine in the world's time.
fn nanos_of(span: Duration) -> Nanos {
    Nanos::try_from(span.as_nanos()).unwrap_or(Nanos::MAX)
}
