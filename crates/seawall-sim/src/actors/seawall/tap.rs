//! Seawall's engine beside a naive router, in observe mode: it is told of the same calls and of their ends, says what
//! enforcing would have done, and has no effect on anything.
//!
//! It sets no timer and sends nothing. Nothing happens to an engine between two calls of its router but time, so what
//! was due meanwhile is done just before the next call, with the time at which it was due.
//!
//! There is one engine for each instance of the router, as with the processes of Seawall that would stand in its place; an
//! engine outlives the crashes of its instance. An attempt that the router loses before a server has answered says
//! nothing about a server: the engine is told that its client has left.

use super::super::Surroundings;
use super::forms;
use super::settings::Told;
use crate::Nanos;
use crate::calls::{Facts, Reply};
use crate::random::Stream;
use crate::recorder::{Recorder, SeriesId};
use hashbrown::HashMap;
use seawall_cases::scenario::Router;
use seawall_core::Engine;
use seawall_core::classify::AttemptEnd;
use seawall_core::cost::Used;
use seawall_core::engine::{Arrival, Input, Notice, Output, Verdict};
use seawall_core::id::{DeploymentId, PoolId, RequestId};
use seawall_core::outcome::Outcome;
use seawall_core::settings::{Mode, Settings};
use seawall_core::time::Instant;

/// An attempt that is looked at.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Watched {
    engine: u32,
    request: RequestId,
    /// What it uses if it is answered.
    used: Option<Used>,
}

/// See the module.
#[derive(Debug)]
pub(in super::super) struct Tap {
    told: Told,
    seeds: Stream,
    engines: Vec<Engine>,
    /// The deployment of a pool at a server of the router, by the server's place.
    deployments: HashMap<(PoolId, usize), DeploymentId, foldhash::fast::FixedState>,
    next_request: u64,
    verdicts: Vec<(Verdict, SeriesId)>,
    ejected: SeriesId,
}

impl Tap {
    pub(in super::super) fn new(router: &Router, around: &Surroundings<'_>, recorder: &mut Recorder) -> Self {
        let mut told = super::settings::told(router, around, Mode::Observe);
        told.settings.set_mode(Mode::Observe);
        let mut deployments = HashMap::default();
        for (index, deployment) in told.settings.deployments.iter().enumerate() {
            let server = router.to.iter().position(|to| around.id(to) == told.targets[index]);
            deployments.insert((deployment.pool, server.unwrap_or(usize::MAX)), DeploymentId::from_index(index));
        }
        let refusals = Outcome::ALL.into_iter().filter(|outcome| forms::is_refusal(*outcome)).map(Verdict::Refuse);
        let moves = [Verdict::Wait, Verdict::MoveForHealth, Verdict::MoveForCapacity, Verdict::Retry];
        let name = &router.name;
        let mut count = |what: &str| recorder.count(format!("{name}.observed.{what}"));
        Self {
            told,
            seeds: around.stream(name, "engines"),
            engines: Vec::new(),
            deployments,
            next_request: 0,
            verdicts: refusals.chain(moves).map(|verdict| (verdict, count(verdict.label()))).collect(),
            ejected: count("ejected"),
        }
    }

    /// The router takes a call, at one of its instances, and is going to send it to a server: places in its lists. `None`:
    /// it has none for it.
    pub(in super::super) fn arrived(
        &mut self,
        now: Nanos,
        facts: &Facts,
        instance: Option<u32>,
        server: Option<usize>,
        recorder: &mut Recorder,
    ) -> Watched {
        let (settings, seeds) = (&self.told.settings, &mut self.seeds);
        let at_least = instance.map_or(1, |instance| instance as usize + 1);
        while self.engines.len() < at_least {
            let settings = Settings { seed: seeds.whole(), ..settings.clone() };
            self.engines.push(Engine::new(Instant::from_nanos(now), &settings));
        }
        let any = facts.number % self.engines.len() as u64;
        let engine = instance.unwrap_or_else(|| u32::try_from(any).unwrap_or(0));
        self.next_request += 1;
        let request = RequestId(self.next_request);
        let arrival = Arrival {
            request,
            tenant: self.told.tenant(facts.workload),
            pool: self.told.pool(facts.model),
            criticality: forms::criticality(facts.criticality),
            deadline: None,
            patience: None,
            identity: None,
            demand: forms::demand(facts),
        };
        let sent_to = server.and_then(|server| self.deployments.get(&(arrival.pool, server)).copied());
        let input = sent_to.map_or(Input::Arrived(arrival), |sent_to| Input::Mirrored(arrival, sent_to));
        let watched = Watched { engine, request, used: forms::used(facts) };
        self.tell(now, watched, &[input], recorder);
        watched
    }

    /// A server has answered.
    pub(in super::super) fn ended(&mut self, now: Nanos, watched: Watched, reply: Reply, recorder: &mut Recorder) {
        let end = forms::attempt_end(reply);
        // What is observed has one attempt.
        let ended = Input::AttemptEnded(watched.request, 1, end);
        if end == AttemptEnd::Completed {
            let used = watched.used.map(|used| Input::Used(watched.request, 1, used));
            self.tell(now, watched, &[Input::AttemptHeaders(watched.request, 1)], recorder);
            self.tell(now, watched, used.as_slice(), recorder);
        }
        self.tell(now, watched, &[ended], recorder);
    }

    /// No server will answer: the caller has left, or the router has lost the call.
    pub(in super::super) fn left(&mut self, now: Nanos, watched: Watched, recorder: &mut Recorder) {
        self.tell(now, watched, &[Input::ClientGone(watched.request)], recorder);
    }

    fn tell(&mut self, now: Nanos, watched: Watched, inputs: &[Input], recorder: &mut Recorder) {
        let engine = &mut self.engines[watched.engine as usize];
        while let Some(due) = engine.next_deadline().filter(|due| due.as_nanos() <= now) {
            engine.handle(due, Input::Tick);
            note(engine, due.as_nanos(), &self.verdicts, self.ejected, recorder);
            // An engine that leaves a deadline that is due is broken: its own tests find that, not an endless loop here.
            if engine.next_deadline() == Some(due) {
                break;
            }
        }
        for input in inputs {
            engine.handle(Instant::from_nanos(now), *input);
            note(engine, now, &self.verdicts, self.ejected, recorder);
        }
    }

    /// How many attempts it looks at.
    pub(in super::super) fn len(&self) -> usize {
        self.engines.iter().map(Engine::live).sum()
    }
}

/// Records what an engine says. Its orders are not followed.
fn note(engine: &mut Engine, now: Nanos, verdicts: &[(Verdict, SeriesId)], ejected: SeriesId, recorder: &mut Recorder) {
    while let Some(output) = engine.poll() {
        let series = match output {
            Output::Respond(respond) => {
                verdicts.iter().find(|(verdict, _)| Some(*verdict) == respond.observed).map(|(_, series)| *series)
            }
            Output::Notice(Notice::Ejected { .. }) => Some(ejected),
            Output::Dispatch(_) | Output::Notice(_) | Output::Join(_) | Output::Cancel(_) | Output::Forget(_) => None,
        };
        if let Some(series) = series {
            recorder.add(series, now);
        }
    }
}
