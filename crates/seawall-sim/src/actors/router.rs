//! A naive router: instances that take what comes until their memory is full, and then lose all of it.

use super::{Surroundings, number};
use crate::Nanos;
use crate::calls::{ActorId, Call, CallId, Reply};
use crate::context::{Actor, Context};
use crate::random::{Stream, nanos};
use crate::recorder::{Recorder, SeriesId};
use crate::slab::Slab;
use crate::timeouts::Timeouts;
use seawall_cases::scenario::{Event, Form, Router, RouterScaling};
use std::collections::VecDeque;

const SERVED: u16 = 0;
const BACK: u16 = 1;
const SCALE: u16 = 2;
const TIMEOUT: u16 = 3;

#[derive(Debug, Default)]
struct Instance {
    up: bool,
    /// Counts its lives: a timer of an earlier one means nothing.
    life: u32,
    queue: VecDeque<u64>,
    serving: Option<u64>,
    members: Vec<u64>,
    busy_nanos: Nanos,
}

#[derive(Debug)]
struct Held {
    inbound: CallId,
    instance: u32,
    /// Its place among the members of its instance.
    position: u32,
    outbound: Option<CallId>,
    made: u32,
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
    instances: SeriesId,
    up: SeriesId,
    in_flight: SeriesId,
    most_attempts: SeriesId,
}

/// See [`Router`].
#[derive(Debug)]
pub struct RouterActor {
    to: Vec<ActorId>,
    /// Which of `to` serve a model.
    serving_models: Vec<Vec<u16>>,
    service: Nanos,
    memory: f64,
    features: Vec<(String, f64)>,
    restart: Nanos,
    restart_spread: f64,
    attempts: u32,
    counts_attempts: bool,
    scaling: Option<RouterScaling>,
    timeouts: Option<Timeouts>,
    instances: Vec<Instance>,
    up: Vec<u32>,
    held: Slab<Held>,
    crashed_lately: bool,
    down: bool,
    balancing: Stream,
    restarts: Stream,
    series: Series,
}

impl RouterActor {
    /// The router that the scenario describes.
    pub fn new(settings: &Router, around: &Surroundings<'_>, recorder: &mut Recorder) -> Self {
        let name = &settings.name;
        let count = settings.instances as usize;
        let mut instances: Vec<Instance> = Vec::new();
        instances.resize_with(count, || Instance { up: true, ..Instance::default() });
        Self {
            to: settings.to.iter().map(|to| around.id(to)).collect(),
            serving_models: settings.to.iter().map(|to| models_behind(to, around)).collect(),
            service: nanos(1e9 / (settings.rate_per_second * around.scale)),
            memory: f64::from(settings.memory_in_flight) * around.scale,
            features: settings.feature.iter().map(|feature| (feature.name.clone(), feature.memory_percent)).collect(),
            restart: settings.restart.nanos,
            restart_spread: settings.restart_spread,
            attempts: settings.attempts,
            counts_attempts: around.scenario.scenario.attempts_at.contains(name),
            scaling: settings.autoscaler.clone(),
            timeouts: settings.attempt_timeout.map(|span| Timeouts::new(span.nanos, TIMEOUT)),
            instances,
            up: (0..settings.instances).collect(),
            held: Slab::default(),
            crashed_lately: false,
            down: false,
            balancing: around.stream(name, "balancing"),
            restarts: around.stream(name, "restarts"),
            series: Series {
                attempts: recorder.count(format!("{name}.attempts")),
                attempts_by_workload: by_workload(recorder, around, name, "attempts"),
                succeeded_by_workload: by_workload(recorder, around, name, "succeeded"),
                failed: recorder.count(format!("{name}.failed")),
                crashes: recorder.count(format!("{name}.crashes")),
                unreachable: recorder.count(format!("{name}.unreachable")),
                upstream: recorder.count(format!("{name}.upstream")),
                instances: recorder.level(format!("{name}.instances")),
                up: recorder.level(format!("{name}.up")),
                in_flight: recorder.level(format!("{name}.in_flight")),
                most_attempts: recorder.mark(format!("{name}.most_attempts")),
            },
        }
    }

    /// Requests in flight that an instance's memory holds.
    fn memory_in_flight(&self) -> f64 {
        let taken: f64 = self.features.iter().map(|(_, percent)| percent).sum();
        self.memory * (1.0 - taken / 100.0)
    }

    fn levels(&self, context: &mut Context<'_>) {
        context.level(self.series.instances, number(self.instances.len()));
        context.level(self.series.up, number(self.up.len()));
    }

    fn serve_next(&mut self, index: u32, context: &mut Context<'_>) {
        let instance = &mut self.instances[index as usize];
        if instance.serving.is_some() {
            return;
        }
        while let Some(place) = instance.queue.pop_front() {
            if self.held.get(place).is_some() {
                instance.serving = Some(place);
                context.timer(self.service, SERVED, (u64::from(instance.life) << 32) | u64::from(index));
                return;
            }
        }
    }

    fn served(&mut self, data: u64, context: &mut Context<'_>) {
        let (life, index) = (data >> 32, u32::try_from(data & 0xffff_ffff).unwrap_or(u32::MAX));
        let instance = &mut self.instances[index as usize];
        if u64::from(instance.life) != life {
            return;
        }
        instance.busy_nanos += self.service;
        if let Some(place) = instance.serving.take() {
            self.forward(place, context);
        }
        self.serve_next(index, context);
    }

    fn forward(&mut self, place: u64, context: &mut Context<'_>) {
        let Some(held) = self.held.get_mut(place) else { return };
        let Some(inbound) = context.call(held.inbound).copied() else { return };
        let model = context.facts(inbound.request).model;
        let able = (0..self.to.len()).filter(|index| self.serving_models[*index].contains(&model));
        let able: smallvec::SmallVec<[usize; 8]> = able.collect();
        if able.is_empty() {
            return self.end(place, Reply::failure(Form::Error), context);
        }
        let to = self.to[able[self.balancing.below(able.len())]];
        held.made += 1;
        context.count(self.series.upstream);
        context.facts_mut(inbound.request).upstream += 1;
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
        if !reply.is_success() && held.made < self.attempts {
            return self.forward(place, context);
        }
        self.end(place, reply, context);
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
        let instance = &mut self.instances[index as usize];
        instance.up = false;
        instance.life += 1;
        instance.queue.clear();
        instance.serving = None;
        let members = core::mem::take(&mut instance.members);
        self.up.retain(|up| *up != index);
        self.crashed_lately = true;
        for place in members {
            let Some(held) = self.held.remove(place) else { continue };
            if let Some(outbound) = held.outbound {
                context.abandon(outbound);
            }
            context.count(self.series.failed);
            context.reply(held.inbound, Reply::failure(Form::ConnectionLost));
        }
        context.level(self.series.in_flight, number(self.held.len()));
        self.levels(context);
        if !self.down {
            let restart = self.restarts.around(self.restart, self.restart_spread);
            context.timer(restart, BACK, u64::from(index));
        }
    }

    fn back(&mut self, index: u32, context: &mut Context<'_>) {
        let instance = &mut self.instances[index as usize];
        if !instance.up && !self.down {
            instance.up = true;
            self.up.push(index);
            self.up.sort_unstable();
            self.levels(context);
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "spans are far below 2^53 microseconds")]
    fn scale(&mut self, context: &mut Context<'_>) {
        let Some(scaling) = &self.scaling else { return };
        let (every, start, quota, busy_above) =
            (scaling.every.nanos, scaling.start.nanos, scaling.quota, scaling.busy_above);
        context.timer(every, SCALE, 0);
        let busy: Nanos = self.instances.iter_mut().map(|instance| core::mem::take(&mut instance.busy_nanos)).sum();
        let is_busy = busy as f64 > busy_above * every as f64 * number(self.up.len().max(1));
        let crashed = core::mem::take(&mut self.crashed_lately);
        if (is_busy || crashed) && self.instances.len() < quota as usize {
            self.add_instance(start, context);
        }
    }

    fn add_instance(&mut self, start: Nanos, context: &mut Context<'_>) {
        self.instances.push(Instance::default());
        self.levels(context);
        context.timer(start, BACK, self.instances.len() as u64 - 1);
    }
}

/// The models that can be had at an actor, through layers and links too.
fn models_behind(name: &str, around: &Surroundings<'_>) -> Vec<u16> {
    let scenario = around.scenario;
    if let Some(pool) = scenario.model_pool.iter().find(|pool| pool.name == name) {
        return around.model_numbers(&pool.models);
    }
    if let Some(engine) = scenario.engine.iter().find(|engine| engine.name == name) {
        return around.model_numbers(&engine.models);
    }
    let next = scenario.layer.iter().map(|layer| (&layer.name, &layer.to));
    let next = next.chain(scenario.link.iter().map(|link| (&link.name, &link.to)));
    next.into_iter()
        .find(|(from, _)| *from == name)
        .map_or_else(|| around.model_numbers(&[]), |(_, to)| models_behind(to, around))
}

fn by_workload(recorder: &mut Recorder, around: &Surroundings<'_>, name: &str, metric: &str) -> Vec<SeriesId> {
    around.by_workload(name, metric).into_iter().map(|name| recorder.count(name)).collect()
}

impl Actor for RouterActor {
    fn start(&mut self, context: &mut Context<'_>) {
        self.levels(context);
        if let Some(scaling) = &self.scaling {
            context.timer(scaling.every.nanos, SCALE, 0);
        }
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
        if self.up.is_empty() {
            context.count(self.series.unreachable);
            context.count(self.series.failed);
            return context.reply(call, Reply::failure(Form::ConnectionRefused));
        }
        let index = self.up[self.balancing.below(self.up.len())];
        let members = &mut self.instances[index as usize].members;
        let held = Held {
            inbound: call,
            instance: index,
            position: u32::try_from(members.len()).unwrap_or(u32::MAX),
            outbound: None,
            made: 0,
        };
        let place = self.held.insert(held);
        members.push(place);
        let count = members.len();
        if let Some(call) = context.call_mut(call) {
            call.state = place;
        }
        if number(count) > self.memory_in_flight() {
            context.count(self.series.crashes);
            return self.crash(index, context);
        }
        context.level(self.series.in_flight, number(self.held.len()));
        self.instances[index as usize].queue.push_back(place);
        self.serve_next(index, context);
    }

    fn reply(&mut self, call: CallId, reply: Reply, context: &mut Context<'_>) {
        let place = context.call(call).map_or(u64::MAX, |call| call.token);
        self.attempt_ended(place, reply, context);
    }

    fn abandoned(&mut self, call: CallId, context: &mut Context<'_>) {
        let place = context.call(call).map_or(u64::MAX, |call| call.state);
        if let Some(outbound) = self.forget(place, context).and_then(|held| held.outbound) {
            context.abandon(outbound);
        }
        context.close(call);
    }

    fn timer(&mut self, kind: u16, data: u64, context: &mut Context<'_>) {
        match kind {
            SERVED => self.served(data, context),
            BACK => self.back(u32::try_from(data).unwrap_or(u32::MAX), context),
            SCALE => self.scale(context),
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
        let change = &event.change;
        if let Some(feature) = &change.feature_off {
            self.features.retain(|(name, _)| name != feature);
        }
        for _ in 0..change.instances.unwrap_or(0) {
            self.add_instance(self.restart, context);
        }
        if let Some(part) = change.restart {
            let count = nanos(libm::round(number(self.up.len()) * part));
            for index in self.up.clone().into_iter().take(usize::try_from(count).unwrap_or(usize::MAX)) {
                self.crash(index, context);
            }
        }
        if let Some(down) = change.down {
            self.down = down;
            if down {
                for index in self.up.clone() {
                    self.crash(index, context);
                }
            } else {
                for index in 0..self.instances.len() {
                    context.timer(self.restart, BACK, index as u64);
                }
            }
        }
    }

    fn held(&self) -> usize {
        self.held.len() + self.timeouts.as_ref().map_or(0, Timeouts::len)
    }
}
