//! The world: its inhabitants and the loop that lets things happen to them.

use crate::calls::{ActorId, Calls, Facts};
use crate::checkers::{self, Findings, Permits, UnderWay};
use crate::context::{Actor, Context, Core};
use crate::events::{Event, EventQueue, Message};
use crate::random::mix;
use crate::recorder::Recorder;
use crate::{Nanos, SECOND};
use seawall_cases::scenario::Event as Happening;

/// A world that is being run.
pub struct World {
    actors: Vec<Box<dyn Actor>>,
    happenings: Vec<Happening>,
    core: Core,
    events: u64,
    hash: u64,
    /// When the memory of the actors is looked at next.
    next_look: Nanos,
}

impl World {
    /// An empty world from `start` to `end`.
    pub fn new(start: Nanos, end: Nanos) -> Self {
        let core = Core {
            now: start,
            queue: EventQueue::default(),
            calls: Calls::default(),
            recorder: Recorder::new(start, end),
            next_request: 0,
            opened: None,
            findings: Findings::default(),
            permits: Permits::default(),
        };
        Self { actors: Vec::new(), happenings: Vec::new(), core, events: 0, hash: 0, next_look: start }
    }

    /// The recorder, to open series while the world is built.
    pub const fn recorder(&mut self) -> &mut Recorder {
        &mut self.core.recorder
    }

    /// From now on every request is remembered as it was when it was first sent; memory grows with their number.
    pub fn remember_requests(&mut self) {
        self.core.opened = Some(Vec::new());
    }

    /// The requests that were remembered, in the order in which they were sent; they are given once.
    pub fn take_requests(&mut self) -> Vec<Facts> {
        self.core.opened.take().unwrap_or_default()
    }

    /// Gives the inhabitants their names, in order, for what is told of them.
    pub(crate) fn name_actors(&mut self, names: Vec<String>) {
        self.core.findings.name(names);
    }

    /// Adds an inhabitant; they are numbered in order.
    pub fn add(&mut self, actor: Box<dyn Actor>) -> ActorId {
        self.actors.push(actor);
        ActorId(u16::try_from(self.actors.len() - 1).expect("a scenario has fewer than 65536 actors"))
    }

    /// Something will happen to an actor.
    pub fn happen(&mut self, actor: ActorId, happening: Happening) {
        let at = happening.at.nanos;
        let index = u32::try_from(self.happenings.len()).expect("fewer than 2^32 events");
        self.happenings.push(happening);
        self.core.queue.push(self.core.now, at, actor, Message::Change(index));
    }

    /// Tells every actor that the run begins.
    pub fn start(&mut self) {
        for index in 0..self.actors.len() {
            let me = ActorId(u16::try_from(index).expect("actors are numbered with 16 bits"));
            self.actors[index].start(&mut Context { core: &mut self.core, me });
        }
    }

    /// Lives until `end`.
    pub fn run_until(&mut self, end: Nanos) {
        self.run_watched(end, |_| {});
    }

    /// As [`run_until`](Self::run_until); `watch` is told the time now and then, for a progress bar.
    pub fn run_watched(&mut self, end: Nanos, mut watch: impl FnMut(Nanos)) {
        while let Some(event) = self.core.queue.pop(end) {
            if self.events.is_multiple_of(1 << 16) {
                watch(self.core.now);
            }
            if event.at > end {
                // It was taken from the line of what is due at once, so this is never later than `end`.
                self.core.queue.push(self.core.now, event.at, event.target, event.message);
                break;
            }
            if event.at >= self.next_look {
                self.look(event.at);
            }
            self.core.now = event.at;
            self.deliver(&event);
        }
        self.core.now = self.core.now.max(end);
    }

    /// Lets what is under way come to its end, for this long at the most, while nothing new begins. What is left then is
    /// among the violations.
    pub fn drain(&mut self, span: Nanos) {
        for actor in &mut self.actors {
            actor.stop();
        }
        self.run_until(self.core.now.saturating_add(span));
        self.look(self.core.now);
        let (under_way, events) = (self.core.under_way(), self.core.queue.len());
        if let Some(what) = checkers::drained(under_way, events) {
            self.core.findings.report_world(self.core.now, &what);
        }
    }

    /// Once a second: what the actors hold.
    fn look(&mut self, now: Nanos) {
        self.next_look = (now / SECOND + 1) * SECOND;
        let under_way = self.core.under_way();
        for (index, actor) in self.actors.iter().enumerate() {
            let me = ActorId(u16::try_from(index).expect("actors are numbered with 16 bits"));
            let seen = checkers::memory(actor.as_ref(), under_way);
            self.core.findings.report_some(now, me, seen);
        }
    }

    fn deliver(&mut self, event: &Event) {
        self.events += 1;
        self.hash = fold(self.hash, event);
        let Self { actors, core, happenings, .. } = self;
        let actor = &mut actors[event.target.index()];
        let mut context = Context { core, me: event.target };
        match event.message {
            Message::Arrive(call) => {
                if context.call(call).is_some() {
                    actor.arrive(call, &mut context);
                }
            }
            Message::Reply(call, reply) => {
                if !context.is_abandoned(call) {
                    actor.reply(call, reply, &mut context);
                }
                context.core.calls.close(call);
            }
            Message::Abandoned(call) => {
                if context.call(call).is_some_and(|call| !call.is_answered()) {
                    actor.abandoned(call, &mut context);
                }
            }
            Message::Timer { kind, data } => actor.timer(kind, data, &mut context),
            Message::Change(index) => actor.change(&happenings[index as usize], &mut context),
        }
    }

    /// What time it is.
    pub const fn now(&self) -> Nanos {
        self.core.now
    }

    /// How many things have happened.
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// A hash of everything that happened, in order: two runs with the same one were the same run.
    pub const fn trace_hash(&self) -> u64 {
        self.hash
    }

    /// Calls and requests that are under way, and events to come.
    pub fn under_way(&self) -> (usize, usize, usize) {
        let UnderWay { calls, requests, .. } = self.core.under_way();
        (calls, requests, self.core.queue.len())
    }

    /// Records that each actor holds.
    pub fn held(&self) -> Vec<usize> {
        self.actors.iter().map(|actor| actor.held()).collect()
    }

    /// What was seen that must never be seen.
    pub fn violations(&self) -> &[String] {
        self.core.findings.seen()
    }

    /// Ends the run and gives what it recorded.
    pub fn into_recorder(self) -> Recorder {
        let mut recorder = self.core.recorder;
        recorder.finish();
        recorder
    }
}

const fn fold(hash: u64, event: &Event) -> u64 {
    let what = match event.message {
        Message::Arrive(call) => 1 ^ ((call.index as u64) << 8),
        Message::Reply(call, reply) => {
            2 ^ ((call.index as u64) << 8) ^ ((reply.wait_ms as u64) << 40) ^ ((reply.form.is_some() as u64) << 4)
        }
        Message::Abandoned(call) => 3 ^ ((call.index as u64) << 8),
        Message::Timer { kind, data } => 4 ^ ((kind as u64) << 8) ^ (data << 24),
        Message::Change(index) => 5 ^ ((index as u64) << 8),
    };
    mix(hash ^ event.at ^ what ^ ((event.target.0 as u64) << 48))
}
