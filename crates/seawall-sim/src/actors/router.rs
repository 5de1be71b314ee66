//! A naive router: instances that take what comes until their memory is full, and then lose all of it.

use super::fleet::{self, Fleet};
use super::seawall::{Tap, Watched};
use super::{Surroundings, number};
use crate::Nanos;
use crate::calls::{ActorId, Call, CallId, Reply};
use crate::checkers::UnderWay;
use crate::context::{Actor, Context};
use crate::random::{Stream, nanos};
use crate::recorder::{Recorder, SeriesId};
use crate::slab::Slab;
use crate::timeouts::Timeouts;
use seawall_cases::scenario::{Event, Form, Router};
use std::collections::VecDeque;

const SERVED: u16 = 0;
const TIMEOUT: u16 = 1;

/// What one instance of the fleet holds.
#[derive(Debug, Default)]
struct Instance {
    queue: VecDeque<u64>,
    serving: Option<u64>,
    members: Vec<u64>,
}

#[derive(Debug)]
struct Held {
    inbound: CallId,
    instance: u32,
    /// Its place among the members of its instance.
    position: u32,
    outbound: Option<CallId>,
    /// Where its next attempt goes: place in `to`.
    server: Option<usize>,
    made: u32,
    /// As Seawall's engine knows its attempt, where one looks on.
    watched: Option<Watched>,
}

#[derive(Debug)]
struct Series {
    attempts: SeriesId,
    attempts_by_workload: Vec<SeriesId>,
    succeeded_by_workload: Vec<SeriesId>,
    failed: SeriesId,
    crashes: SeriesId,
    unreachable: SeriesId,
    upstream: SeriesId,
    in_flight: SeriesId,
    most_attempts: SeriesId,
    most_upstream: SeriesId,
}

/// See [`Router`].
#[derive(Debug)]
pub struct RouterActor {
    to: Vec<ActorId>,
    /// Which of `to` serve a model.
    serving_models: Vec<Vec<u16>>,
    service: Nanos,
    attempts: u32,
    counts_attempts: bool,
    timeouts: Option<Timeouts>,
    fleet: Fleet,
    /// As many as the fleet had when last asked.
    instances: Vec<Instance>,
    held: Slab<Held>,
    balancing: Stream,
    series: Series,
    tap: Option<Tap>,
}

impl RouterActor {
    /// The router that the scenario describes.
    pub fn new(settings: &Router, around: &Surroundings<'_>, recorder: &mut Recorder) -> Self {
        let name = &settings.name;
        Self {
            to: settings.to.iter().map(|to| around.id(to)).collect(),
            serving_models: settings.to.iter().map(|to| around.models_behind(to)).collect(),
            service: nanos(1e9 / (settings.rate_per_second * around.scale)),
            attempts: settings.attempts,
            counts_attempts: around.scenario.scenario.attempts_at.contains(name),
            timeouts: settings.attempt_timeout.map(|span| Timeouts::new(span.nanos, TIMEOUT)),
            fleet: Fleet::new(settings, around, recorder),
            instances: Vec::new(),
            held: Slab::default(),
            balancing: around.stream(name, "balancing"),
            series: Series {
                attempts: recorder.count(format!("{name}.attempts")),
                attempts_by_workload: around.counts_by_workload(name, "attempts", recorder),
                succeeded_by_workload: around.counts_by_workload(name, "succeeded", recorder),
                failed: recorder.count(format!("{name}.failed")),
                crashes: recorder.count(format!("{name}.crashes")),
                unreachable: recorder.count(format!("{name}.unreachable")),
                upstream: recorder.count(format!("{name}.upstream")),
                in_flight: recorder.level(format!("{name}.in_flight")),
                most_attempts: recorder.mark(format!("{name}.most_attempts")),
                most_upstream: recorder.mark(format!("{name}.most_upstream")),
            },
            tap: None,
        }
    }

    /// The same, and Seawall's engine looks on without an effect.
    pub fn observed(settings: &Router, around: &Surroundings<'_>, recorder: &mut Recorder) -> Self {
        let router = Self::new(settings, around, recorder);
        Self { tap: Some(Tap::new(settings, around, recorder)), ..router }
    }

    /// Draws the server of an attempt; `None`: none has the model.
    fn server(&mut self, model: u16) -> Option<usize> {
        let able = (0..self.to.len()).filter(|index| self.serving_models[*index].contains(&model));
        let able: smallvec::SmallVec<[usize; 8]> = able.collect();
        if able.is_empty() { None } else { Some(able[self.balancing.below(able.len())]) }
    }

    fn serve_next(&mut self, index: u32, context: &mut Context<'_>) {
        let instance = &mut self.instances[index as usize];
        if instance.serving.is_some() {
            return;
        }
        while let Some(place) = instance.queue.pop_front() {
            if self.held.get(place).is_some() {
                instance.serving = Some(place);
                context.timer(self.service, SERVED, self.fleet.mark(index));
                return;
            }
        }
    }

    fn served(&mut self, data: u64, context: &mut Context<'_>) {
        let Some(index) = self.fleet.alive(data) else { return };
        self.fleet.worked(index, self.service);
        if let Some(place) = self.instances[index as usize].serving.take() {
            self.forward(place, context);
        }
        self.serve_next(index, context);
    }

    fn forward(&mut self, place: u64, context: &mut Context<'_>) {
        let Some(held) = self.held.get_mut(place) else { return };
        let Some(inbound) = context.call(held.inbound).copied() else { return };
        let Some(to) = held.server.map(|server| self.to[server]) else {
            return self.end(place, Reply::failure(Form::Error), context);
        };
        held.made += 1;
        context.count(self.series.upstream);
        let facts = context.facts_mut(inbound.request);
        facts.upstream += 1;
        let upstream = facts.upstream;
        context.raise(self.series.most_upstream, f64::from(upstream));
        let own = self.timeouts.as_ref().map_or(u64::MAX, |timeouts| timeouts.deadline(context.now()));
        let deadline = own.min(inbound.deadline);
        let outbound = context.send_call(Call { to, token: place, deadline, ..inbound });
        held.outbound = Some(outbound);
        if let Some(timeouts) = &mut self.timeouts {
            timeouts.watch(outbound, context);
        }
    }

    fn attempt_ended(&mut self, place: u64, reply: Reply, context: &mut Context<'_>) {
        let Some(held) = self.held.get_mut(place) else { return };
        held.outbound = None;
        let (inbound, instance, made, watched) = (held.inbound, held.instance, held.made, held.watched.take());
        if let (Some(tap), Some(watched)) = (&mut self.tap, watched) {
            tap.ended(context.now(), watched, reply, context.recorder());
        }
        if reply.is_success() || made >= self.attempts {
            return self.end(place, reply, context);
        }
        let server = context.facts_of(inbound).map(|facts| facts.model).and_then(|model| self.server(model));
        let watched = self.look_on(inbound, Some(instance), server, context);
        if let Some(held) = self.held.get_mut(place) {
            (held.server, held.watched) = (server, watched);
        }
        self.forward(place, context);
    }

    /// Tells the engine that looks on of an attempt to come.
    fn look_on(
        &mut self,
        inbound: CallId,
        instance: Option<u32>,
        server: Option<usize>,
        context: &mut Context<'_>,
    ) -> Option<Watched> {
        let tap = self.tap.as_mut()?;
        let facts = *context.facts_of(inbound)?;
        Some(tap.arrived(context.now(), &facts, instance, server, context.recorder()))
    }

    /// Tells the engine that looks on that no server will answer.
    fn look_away(&mut self, watched: Option<Watched>, context: &mut Context<'_>) {
        if let (Some(tap), Some(watched)) = (&mut self.tap, watched) {
            tap.left(context.now(), watched, context.recorder());
        }
    }

    fn end(&mut self, place: u64, reply: Reply, context: &mut Context<'_>) {
        let Some(held) = self.forget(place, context) else { return };
        if reply.is_success() {
            let workload = context.facts_of(held.inbound).map_or(0, |facts| facts.workload);
            context.count(self.series.succeeded_by_workload[usize::from(workload)]);
        } else {
            context.count(self.series.failed);
        }
        context.reply(held.inbound, reply);
    }

    /// Takes an attempt out of the memory of its instance.
    fn forget(&mut self, place: u64, context: &mut Context<'_>) -> Option<Held> {
        let held = self.held.remove(place)?;
        let members = &mut self.instances[held.instance as usize].members;
        members.swap_remove(held.position as usize);
        if let Some(moved) = members.get(held.position as usize).copied()
            && let Some(moved) = self.held.get_mut(moved)
        {
            moved.position = held.position;
        }
        context.level(self.series.in_flight, number(self.held.len()));
        Some(held)
    }

    /// An instance is gone, and all that it held with it.
    fn crash(&mut self, index: u32, context: &mut Context<'_>) {
        let instance = core::mem::take(&mut self.instances[index as usize]);
        for place in instance.members {
            let Some(held) = self.held.remove(place) else { continue };
            if let Some(outbound) = held.outbound {
                context.abandon(outbound);
            }
            self.look_away(held.watched, context);
            context.count(self.series.failed);
            context.reply(held.inbound, Reply::failure(Form::ConnectionLost));
        }
        context.level(self.series.in_flight, number(self.held.len()));
        self.fleet.lose(index, context);
    }
}

impl Actor for RouterActor {
    fn start(&mut self, context: &mut Context<'_>) {
        self.fleet.start(context);
    }

    fn arrive(&mut self, call: CallId, context: &mut Context<'_>) {
        let Some(request) = context.call(call).map(|call| call.request) else { return };
        let workload = usize::from(context.facts(request).workload);
        context.count(self.series.attempts);
        context.count(self.series.attempts_by_workload[workload]);
        if self.counts_attempts {
            let facts = context.facts_mut(request);
            facts.attempts += 1;
            let attempts = facts.attempts;
            context.raise(self.series.most_attempts, f64::from(attempts));
        }
        let Some(index) = self.fleet.pick(&mut self.balancing) else {
            let watched = self.look_on(call, None, None, context);
            self.look_away(watched, context);
            context.count(self.series.unreachable);
            context.count(self.series.failed);
            return context.reply(call, Reply::failure(Form::ConnectionRefused));
        };
        self.instances.resize_with(self.fleet.len(), Instance::default);
        let server = self.server(context.facts(request).model);
        let watched = self.look_on(call, Some(index), server, context);
        let members = &mut self.instances[index as usize].members;
        let held = Held {
            inbound: call,
            instance: index,
            position: u32::try_from(members.len()).unwrap_or(u32::MAX),
            outbound: None,
            server,
            made: 0,
            watched,
        };
        let place = self.held.insert(held);
        members.push(place);
        let count = members.len();
        if let Some(call) = context.call_mut(call) {
            call.state = place;
        }
        if number(count) > self.fleet.memory_in_flight() {
            context.count(self.series.crashes);
            return self.crash(index, context);
        }
        context.level(self.series.in_flight, number(self.held.len()));
        let instance = &mut self.instances[index as usize];
        instance.queue.push_back(place);
        if instance.queue.len() > 2 * count + 16 {
            // Those whose callers have left take no room.
            instance.queue.retain(|place| self.held.get(*place).is_some());
        }
        self.serve_next(index, context);
    }

    fn reply(&mut self, call: CallId, reply: Reply, context: &mut Context<'_>) {
        let place = context.call(call).map_or(u64::MAX, |call| call.token);
        self.attempt_ended(place, reply, context);
    }

    fn abandoned(&mut self, call: CallId, context: &mut Context<'_>) {
        let place = context.call(call).map_or(u64::MAX, |call| call.state);
        if let Some(held) = self.forget(place, context) {
            if let Some(outbound) = held.outbound {
                context.abandon(outbound);
            }
            self.look_away(held.watched, context);
        }
        context.close(call);
    }

    fn timer(&mut self, kind: u16, data: u64, context: &mut Context<'_>) {
        match kind {
            SERVED => self.served(data, context),
            fleet::FIRST_KIND.. => self.fleet.timer(kind, data, context),
            _ => {
                while let Some(call) = self.timeouts.as_mut().and_then(|timeouts| timeouts.next_due(context)) {
                    let place = context.call(call).map_or(u64::MAX, |call| call.token);
                    context.abandon(call);
                    self.attempt_ended(place, Reply::failure(Form::Timeout), context);
                }
            }
        }
    }

    fn change(&mut self, event: &Event, context: &mut Context<'_>) {
        for index in self.fleet.change(&event.change, context) {
            self.instances.resize_with(self.fleet.len(), Instance::default);
            self.crash(index, context);
        }
    }

    fn held(&self) -> usize {
        self.held.len() + self.timeouts.as_ref().map_or(0, Timeouts::len) + self.tap.as_ref().map_or(0, Tap::len)
    }

    fn bound(&self, under_way: UnderWay) -> usize {
        self.fleet.most_held() * if self.tap.is_some() { 2 } else { 1 } + Timeouts::most(under_way.most_calls)
    }

    fn stop(&mut self) {
        self.fleet.stop();
    }
}
