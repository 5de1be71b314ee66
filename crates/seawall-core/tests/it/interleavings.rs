//! Every order of what can happen to three arrivals at two endpoints: each of them comes, leaves, or is answered; each
//! attempt begins to answer, succeeds, fails, is silent, is cancelled and ends all the same; time passes; and at every
//! step whatever is late or crosses comes, too, and changes nothing. States that are the same are looked at once.

use crate::world::{at, millis, request, settings};
use seawall_core::Engine;
use seawall_core::classify::AttemptEnd;
use seawall_core::cost::Used;
use seawall_core::engine::{Arrival, Identity, Input, Output, Respond};
use seawall_core::id::RequestId;
use seawall_core::outcome::Outcome;
use seawall_core::settings::{Capacity, Settings};
use seawall_core::time::Instant;
use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{Hash, Hasher};

#[derive(Clone, Copy, Debug)]
enum Step {
    Arrive,
    Gone(u64),
    Headers(u64),
    End(u64, AttemptEnd),
    /// Until the next deadline.
    Pass,
}

#[derive(Debug, Hash)]
struct Running {
    number: u32,
    deployment: usize,
    relaying: bool,
    cancelled: bool,
}

/// What is explored.
struct Plan {
    settings: Settings,
    arrivals: [Arrival; 3],
    /// Whether all of them are one distinct request, and recognised as such.
    is_one: bool,
    /// So often time passes on one path while something else can happen.
    most_passed: u32,
}

/// One path, lived.
struct Life<'a> {
    plan: &'a Plan,
    engine: Engine,
    now: Instant,
    arrived: u64,
    responses: BTreeMap<u64, Outcome>,
    joins: BTreeMap<u64, u64>,
    running: BTreeMap<u64, Running>,
    /// Attempts that have ended, by flight and number.
    ended: BTreeSet<(u64, u32)>,
    /// The attempt of each flight that was answered to its end.
    completed: BTreeMap<u64, u32>,
    forgotten: BTreeSet<u64>,
    /// Attempts since one was last answered by a result.
    attempts: u32,
    passed: u32,
}

impl<'a> Life<'a> {
    fn new(plan: &'a Plan) -> Self {
        Self {
            plan,
            engine: Engine::new(Instant::ZERO, &plan.settings),
            now: Instant::ZERO,
            arrived: 0,
            responses: BTreeMap::new(),
            joins: BTreeMap::new(),
            running: BTreeMap::new(),
            ended: BTreeSet::new(),
            completed: BTreeMap::new(),
            forgotten: BTreeSet::new(),
            attempts: 0,
            passed: 0,
        }
    }

    fn has_identity(&self, id: u64) -> bool {
        self.plan.arrivals[usize::try_from(id).expect("small")].identity.is_some()
    }

    /// What can happen now.
    fn enabled(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        if self.arrived < 3 {
            steps.push(Step::Arrive);
        }
        steps.extend((0..self.arrived).filter(|id| !self.responses.contains_key(id)).map(Step::Gone));
        for (flight, running) in &self.running {
            let ends: &[AttemptEnd] = match running {
                Running { cancelled: true, .. } => &[AttemptEnd::ClientGone, AttemptEnd::Completed, AttemptEnd::Failed],
                Running { relaying: true, .. } => &[AttemptEnd::Completed, AttemptEnd::Truncated],
                Running { .. } => &[AttemptEnd::Completed, AttemptEnd::Failed, AttemptEnd::TimedOut],
            };
            if !running.cancelled && !running.relaying {
                steps.push(Step::Headers(*flight));
            }
            steps.extend(ends.iter().map(|end| Step::End(*flight, *end)));
        }
        // Once nothing else can happen, time passes until nothing is left of it all.
        if self.engine.next_deadline().is_some() && (self.passed < self.plan.most_passed || steps.is_empty()) {
            steps.push(Step::Pass);
        }
        steps
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Arrive => {
                let index = usize::try_from(self.arrived).expect("small");
                self.arrived += 1;
                self.engine.handle(self.now, Input::Arrived(self.plan.arrivals[index]));
            }
            Step::Gone(id) => {
                // Without an identity the host ends the attempt itself.
                if !self.has_identity(id)
                    && let Some(running) = self.running.remove(&id)
                {
                    self.ended.insert((id, running.number));
                }
                self.engine.handle(self.now, Input::ClientGone(RequestId(id)));
            }
            Step::Headers(flight) => {
                let running = self.running.get_mut(&flight).expect("it runs");
                running.relaying = true;
                self.engine.handle(self.now, Input::AttemptHeaders(RequestId(flight), running.number));
            }
            Step::End(flight, end) => {
                let running = self.running.remove(&flight).expect("it runs");
                self.ended.insert((flight, running.number));
                if end == AttemptEnd::Completed {
                    self.completed.insert(flight, running.number);
                }
                self.engine.handle(self.now, Input::AttemptEnded(RequestId(flight), running.number, end));
            }
            Step::Pass => {
                self.passed += 1;
                self.now = self.now.max(self.engine.next_deadline().expect("there is one"));
                self.engine.handle(self.now, Input::Tick);
            }
        }
        self.follow();
        if let Step::Gone(id) = step {
            assert_eq!(self.responses.get(&id), Some(&Outcome::ClientGone), "who leaves is let go at once");
        }
    }

    fn follow(&mut self) {
        while let Some(output) = self.engine.poll() {
            match output {
                Output::Dispatch(dispatch) => {
                    let (flight, number) = (dispatch.permit.request().0, dispatch.permit.number());
                    assert!(!self.joins.contains_key(&flight), "who waits for another one has no attempt");
                    let deployment = dispatch.permit.deployment().index();
                    let running = Running { number, deployment, relaying: false, cancelled: false };
                    assert!(self.running.insert(flight, running).is_none(), "one attempt of a flight at a time");
                    self.attempts += 1;
                }
                Output::Respond(respond) => self.respond(&respond),
                Output::Join(join) => {
                    assert!(self.joins.insert(join.request.0, join.flight.0).is_none(), "it joins one flight");
                    assert!(!self.forgotten.contains(&join.flight.0), "nobody joins what is forgotten");
                }
                Output::Cancel(flight) => {
                    let running = self.running.get_mut(&flight.0).expect("what is cancelled runs");
                    assert!(!std::mem::replace(&mut running.cancelled, true), "it is cancelled once");
                }
                Output::Forget(flight) => assert!(self.forgotten.insert(flight.0), "it is forgotten once"),
                Output::Notice(_) => {}
            }
        }
    }

    fn respond(&mut self, respond: &Respond) {
        let id = respond.request.0;
        assert!(self.responses.insert(id, respond.outcome).is_none(), "one outcome for one arrival");
        let flight = self.joins.get(&id).copied().unwrap_or(id);
        if respond.outcome == Outcome::Served {
            assert_eq!(self.completed.get(&flight), Some(&respond.attempts), "the result is that of the last attempt");
            self.attempts = 0;
        }
        if respond.outcome != Outcome::ClientGone {
            assert!(!self.running.contains_key(&flight), "nobody is answered while an attempt runs");
        }
    }

    /// What holds in every state.
    fn check(&self) {
        let view = &self.engine.view(self.now)[0];
        for (index, deployment) in view.deployments.iter().enumerate() {
            let running = self.running.values().filter(|running| running.deployment == index).count();
            assert_eq!(deployment.in_flight as usize, running, "an attempt that runs holds credit, and nothing else");
            let work = deployment.work_in_flight.thousandths();
            assert_eq!(work, EXPECTED * running as u64, "and its work is in flight");
        }
        assert_eq!(view.work_waiting.thousandths(), EXPECTED * view.waiting as u64);
        let unanswered = (0..self.arrived).filter(|id| !self.responses.contains_key(id)).count();
        assert_eq!(self.engine.live(), unanswered);
        if self.plan.is_one {
            let wanted = self.running.values().filter(|running| !running.cancelled).count();
            assert!(wanted <= 1, "one distinct request runs once");
            assert!(self.attempts <= 2, "it is tried twice at the most");
        }
    }

    /// Whatever is told late, or crosses what the engine said, changes nothing.
    fn check_late(&mut self) {
        let before = self.key();
        for (flight, number) in self.ended.clone() {
            let flight = RequestId(flight);
            for late in [AttemptEnd::Completed, AttemptEnd::Failed] {
                self.engine.handle(self.now, Input::AttemptEnded(flight, number, late));
            }
            self.engine.handle(self.now, Input::AttemptHeaders(flight, number));
            self.engine.handle(self.now, Input::Used(flight, number, USED));
        }
        for id in self.responses.keys() {
            self.engine.handle(self.now, Input::ClientGone(RequestId(*id)));
        }
        assert_eq!(self.engine.poll(), None, "what is late is told to nobody");
        assert_eq!(self.key(), before, "what is late changes nothing");
    }

    /// Nothing more can happen.
    fn check_end(&self) {
        let begun: BTreeSet<u64> = (0..3)
            .filter(|id| self.has_identity(*id) && !self.joins.contains_key(id))
            .filter(|id| self.responses[id] != Outcome::DuplicateInFlight)
            .collect();
        assert_eq!(self.forgotten, begun, "every flight is forgotten");
        assert_eq!(self.engine.flights(), 0);
        let state = format!("{:?}", self.engine);
        let empty =
            "requests: {}, flights: Flights { keys: {}, alike: {}, left: {}, joined: {}, waiters: {}, kept: {},";
        assert!(state.contains(empty), "nothing is left in the tables: {state}");
    }

    /// Everything but what pools have learned, which no two paths have in common: of them, what they show.
    fn key(&self) -> u64 {
        let mut key = DefaultHasher::new();
        let state = format!("{:?}", self.engine);
        let tables =
            state.find("requests: {").expect("the engine's requests")..state.find("random: ").expect("its chance");
        state[tables].hash(&mut key);
        for deployment in &self.engine.view(self.now)[0].deployments {
            (deployment.in_flight, deployment.has_room, deployment.health).hash(&mut key);
        }
        (&self.responses, &self.joins, &self.running).hash(&mut key);
        (self.now.as_nanos(), self.arrived, &self.ended, &self.completed, self.attempts).hash(&mut key);
        key.finish()
    }
}

/// What an attempt is thought to cost here: nothing is said of its input, and nothing is learned.
const EXPECTED: u64 = 512_000;
const USED: Used = Used {
    input_tokens: Some(1),
    cached_input_tokens: 0,
    output_tokens: 1,
    output_is_estimated: false,
    first_output: None,
};

/// Lives every path; there are at least so many states, or the plan does not do what it says.
fn explore(plan: &Plan, at_least: usize) {
    let mut seen = HashSet::new();
    let mut paths: Vec<Vec<Step>> = vec![Vec::new()];
    while let Some(path) = paths.pop() {
        let lived = std::panic::catch_unwind(|| {
            let mut life = Life::new(plan);
            for step in &path {
                life.take(*step);
            }
            life.check();
            life.check_late();
            let enabled = life.enabled();
            if enabled.is_empty() {
                life.check_end();
            }
            (life.key(), enabled)
        });
        assert!(lived.is_ok(), "on this path: {path:?}");
        let Ok((key, enabled)) = lived else { continue };
        if !seen.insert(key) {
            continue;
        }
        paths.extend(enabled.into_iter().map(|step| [&path[..], &[step]].concat()));
    }
    assert!(seen.len() >= at_least, "{} states", seen.len());
}

fn says(id: u64, content: u128, key: Option<u128>, previous_attempts: u32) -> Arrival {
    let identity = Identity { fingerprint: content, key, previous_attempts, may_repeat: true };
    Arrival { identity: Some(identity), ..request(id) }
}

/// Two endpoints of so many places each.
fn endpoints(size: u32) -> Settings {
    settings(&[Capacity::Provisioned { size }; 2])
}

#[test]
fn a_request_and_its_repeats() {
    let arrivals = [says(0, 1, None, 0), says(1, 1, None, 1), says(2, 1, None, 2)];
    explore(&Plan { settings: endpoints(1), arrivals, is_one: true, most_passed: 4 }, 2_000);
}

#[test]
fn one_key_three_times() {
    let arrivals = [says(0, 1, Some(7), 0), says(1, 1, Some(7), 0), says(2, 1, Some(7), 0)];
    explore(&Plan { settings: endpoints(1), arrivals, is_one: true, most_passed: 4 }, 2_000);
}

#[test]
fn a_request_its_repeat_and_another_one() {
    let mut settings = endpoints(1);
    settings.pools[0].queue.patience = millis(5_000);
    let arrivals = [says(0, 1, None, 0), says(1, 2, None, 0), says(2, 1, None, 1)];
    explore(&Plan { settings, arrivals, is_one: false, most_passed: 1 }, 20_000);
}

#[test]
fn three_of_the_same_that_say_nothing() {
    let arrivals = [says(0, 1, None, 0), says(1, 1, None, 0), says(2, 1, None, 0)];
    explore(&Plan { settings: endpoints(1), arrivals, is_one: false, most_passed: 0 }, 1_000);
}

#[test]
fn three_that_nobody_can_join_one_with_a_deadline() {
    let arrivals = [request(0), Arrival { deadline: Some(at(2_000)), ..request(1) }, request(2)];
    explore(&Plan { settings: endpoints(1), arrivals, is_one: false, most_passed: 1 }, 3_000);
}
