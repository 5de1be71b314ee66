//! A service on nodes with a connection table each, and a health check that restarts its instances.
//!
//! A request goes to a healthy instance at random; where there is none it is refused at once. The instance opens a
//! connection from its node for each tier that it reads. It does not watch its callers: when one has left it goes on,
//! and the place in the table is taken until the tier has answered, and for the hold time after that. A restart closes
//! all connections of an instance; their places are held like those of others.
//!
//! Each instance is checked again and again, all of them at different moments. A check that depends on the database
//! opens a connection from the instance's node like any request; without a place, or without an answer by the next
//! check, it counts as missed. An instance that starts serves after the first check that passes, and is restarted again
//! if it misses as many as a running one may.

mod health;
mod ports;
#[cfg(test)]
mod tests;

use super::{Surroundings, number, part_of};
use crate::calls::{ActorId, Call, CallId, Reply};
use crate::checkers::UnderWay;
use crate::context::{Actor, Context};
use crate::random::{Stream, nanos};
use crate::recorder::{Recorder, SeriesId};
use crate::slab::Slab;
use crate::{Nanos, SECOND};
use ports::PortTables;
use seawall_cases::scenario::{Event, Form, HealthCheck, HealthDependence, Service};

const SAMPLE: u16 = 0;
const CHECK: u16 = 1;
const STARTED: u16 = 2;
const NEW_INSTANCE: u16 = 3;
const CHECK_DATABASE: u16 = 4;
const CHECK_ITSELF: u16 = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Down,
    /// It runs and has passed no check yet.
    Starting,
    Healthy,
}

#[derive(Debug)]
struct Instance {
    node: u32,
    state: State,
    /// Counts its lives: a timer of an earlier one means nothing.
    life: u32,
    /// Checks missed in a row.
    missed: u32,
    depends_on: HealthDependence,
    /// The check that has no answer yet.
    check: Option<u64>,
    /// The requests that it works on.
    members: Vec<u64>,
}

/// What a connection is for.
#[derive(Debug)]
enum Held {
    Request {
        inbound: CallId,
        instance: u32,
        /// Its place among the members of its instance.
        position: u32,
        outbound: Option<CallId>,
        reads_database: bool,
    },
    Check {
        instance: u32,
        outbound: CallId,
    },
}

#[derive(Debug)]
struct Series {
    attempts: SeriesId,
    succeeded: SeriesId,
    refused: SeriesId,
    unreachable: SeriesId,
    lost: SeriesId,
    missed_checks: SeriesId,
    restarts: SeriesId,
    instances: SeriesId,
    healthy: SeriesId,
    ports: SeriesId,
    full_nodes: SeriesId,
}

/// See [`Service`].
#[derive(Debug)]
pub struct ServiceActor {
    to: ActorId,
    database: ActorId,
    database_share: f64,
    own_time: Nanos,
    compute: f64,
    start: Nanos,
    health: HealthCheck,
    ports: PortTables,
    instances: Vec<Instance>,
    /// The healthy ones, in order.
    healthy: Vec<u32>,
    held: Slab<Held>,
    down: bool,
    stopped: bool,
    balancing: Stream,
    reads: Stream,
    checks: Stream,
    restarts: Stream,
    series: Series,
}

impl ServiceActor {
    /// The service that the scenario describes.
    pub fn new(settings: &Service, around: &Surroundings<'_>, recorder: &mut Recorder) -> Self {
        let name = &settings.name;
        let size = around.scaled(settings.ports_per_node);
        let mut built = Self {
            to: around.id(&settings.to),
            database: around.id(&settings.database),
            database_share: settings.database_share,
            own_time: settings.own_time.nanos,
            compute: 1.0,
            start: settings.start.unwrap_or(settings.health.restart).nanos,
            health: settings.health.clone(),
            ports: PortTables::new(settings.nodes, size, settings.port_hold_after.nanos),
            instances: Vec::new(),
            healthy: (0..settings.instances).collect(),
            held: Slab::default(),
            down: false,
            stopped: false,
            balancing: around.stream(name, "balancing"),
            reads: around.stream(name, "reads"),
            checks: around.stream(name, "checks"),
            restarts: around.stream(name, "restarts"),
            series: Series::open(name, recorder),
        };
        for _ in 0..settings.instances {
            built.place_instance(State::Healthy);
        }
        built
    }

    /// Puts an instance on the node that has the fewest.
    fn place_instance(&mut self, state: State) -> u32 {
        let mut counts = vec![0_u32; self.ports.nodes() as usize];
        for instance in &self.instances {
            counts[instance.node as usize] += 1;
        }
        let node = (0..self.ports.nodes()).min_by_key(|node| counts[*node as usize]).unwrap_or(0);
        let depends_on = self.health.depends_on;
        let members = Vec::new();
        self.instances.push(Instance { node, state, life: 0, missed: 0, depends_on, check: None, members });
        u32::try_from(self.instances.len() - 1).unwrap_or(u32::MAX)
    }

    fn levels(&self, context: &mut Context<'_>) {
        context.level(self.series.instances, number(self.instances.len()));
        context.level(self.series.healthy, number(self.healthy.len()));
    }

    fn sample(&mut self, context: &mut Context<'_>) {
        let (taken, full) = self.ports.in_use(context.now());
        context.level(self.series.ports, f64::from(taken));
        context.level(self.series.full_nodes, number(full));
        if !self.stopped {
            context.timer(SECOND, SAMPLE, 0);
        }
    }

    /// Answers a request that an instance has worked on.
    fn end(&mut self, place: u64, reply: Reply, context: &mut Context<'_>) {
        let Some(Held::Request { inbound, instance, position, .. }) = self.held.remove(place) else { return };
        let members = &mut self.instances[instance as usize].members;
        members.swap_remove(position as usize);
        if let Some(moved) = members.get(position as usize).copied()
            && let Some(Held::Request { position: place, .. }) = self.held.get_mut(moved)
        {
            *place = position;
        }
        if reply.is_success() {
            context.count(self.series.succeeded);
        }
        let own_time = nanos(super::number_of(self.own_time) / self.compute);
        context.reply_after(inbound, own_time, reply);
    }

    /// A tier has answered a request's connection.
    fn read(&mut self, place: u64, reply: Reply, context: &mut Context<'_>) {
        let now = context.now();
        let Some(Held::Request { inbound, instance, outbound, reads_database, .. }) = self.held.get_mut(place) else {
            return;
        };
        *outbound = None;
        let node = self.instances[*instance as usize].node;
        self.ports.close(now, node);
        if !reply.is_success() {
            return self.end(place, Reply::failure(Form::Error), context);
        }
        if !core::mem::take(reads_database) {
            return self.end(place, Reply::SUCCESS, context);
        }
        let Some(inbound) = context.call(*inbound).copied() else { return };
        if self.ports.take(now, node) {
            *outbound = Some(context.send_call(Call { to: self.database, token: place, ..inbound }));
        } else {
            context.count(self.series.refused);
            self.end(place, Reply::failure(Form::Error), context);
        }
    }

    /// An instance is gone, and what it worked on with it.
    fn stop(&mut self, index: u32, context: &mut Context<'_>) {
        let now = context.now();
        self.drop_check(index, context);
        let instance = &mut self.instances[index as usize];
        instance.state = State::Down;
        instance.life += 1;
        instance.missed = 0;
        for place in core::mem::take(&mut instance.members) {
            let Some(Held::Request { inbound, outbound, .. }) = self.held.remove(place) else { continue };
            if let Some(outbound) = outbound {
                context.abandon(outbound);
                self.ports.close(now, instance.node);
            }
            context.count(self.series.lost);
            context.reply(inbound, Reply::failure(Form::ConnectionLost));
        }
        self.healthy.retain(|other| *other != index);
        self.levels(context);
    }

    fn start_after(&self, index: u32, span: Nanos, context: &mut Context<'_>) {
        context.timer(span, STARTED, mark(index, self.instances[index as usize].life));
    }

    /// The instance that a timer was set for, if it still has the same life.
    fn marked(&self, mark: u64) -> Option<u32> {
        let index = u32::try_from(mark & 0xffff_ffff).ok()?;
        (u64::from(self.instances.get(index as usize)?.life) == mark >> 32).then_some(index)
    }

    fn restart_part(&mut self, part: f64, context: &mut Context<'_>) {
        let count = usize::try_from(nanos(libm::round(number(self.healthy.len()) * part))).unwrap_or(usize::MAX);
        let chosen: Vec<u32> = self.healthy.iter().copied().take(count).collect();
        for index in chosen {
            self.stop(index, context);
            self.start_after(index, self.start, context);
        }
    }

    fn set_down(&mut self, down: bool, context: &mut Context<'_>) {
        self.down = down;
        for index in 0..u32::try_from(self.instances.len()).unwrap_or(u32::MAX) {
            self.stop(index, context);
            if !down {
                self.start_after(index, self.start, context);
            }
        }
    }
}

impl Series {
    fn open(name: &str, recorder: &mut Recorder) -> Self {
        Self {
            attempts: recorder.count(format!("{name}.attempts")),
            succeeded: recorder.count(format!("{name}.succeeded")),
            refused: recorder.count(format!("{name}.refused")),
            unreachable: recorder.count(format!("{name}.unreachable")),
            lost: recorder.count(format!("{name}.lost")),
            missed_checks: recorder.count(format!("{name}.missed_checks")),
            restarts: recorder.count(format!("{name}.restarts")),
            instances: recorder.level(format!("{name}.instances")),
            healthy: recorder.level(format!("{name}.healthy")),
            ports: recorder.level(format!("{name}.ports")),
            full_nodes: recorder.level(format!("{name}.full_nodes")),
        }
    }
}

const fn mark(index: u32, life: u32) -> u64 {
    ((life as u64) << 32) | index as u64
}

impl Actor for ServiceActor {
    fn start(&mut self, context: &mut Context<'_>) {
        self.levels(context);
        self.sample(context);
        for index in 0..u32::try_from(self.instances.len()).unwrap_or(u32::MAX) {
            let first = self.checks.between(0, self.health.every.nanos);
            context.timer(first, CHECK, mark(index, 0));
        }
    }

    fn arrive(&mut self, call: CallId, context: &mut Context<'_>) {
        context.count(self.series.attempts);
        let Some(inbound) = context.call(call).copied() else { return };
        if self.healthy.is_empty() {
            context.count(self.series.unreachable);
            return context.reply(call, Reply::failure(Form::ConnectionRefused));
        }
        let index = self.healthy[self.balancing.below(self.healthy.len())];
        let instance = &mut self.instances[index as usize];
        if !self.ports.take(context.now(), instance.node) {
            context.count(self.series.refused);
            return context.reply(call, Reply::failure(Form::Error));
        }
        let position = u32::try_from(instance.members.len()).unwrap_or(u32::MAX);
        let reads_database = self.reads.chance(self.database_share);
        let held = Held::Request { inbound: call, instance: index, position, outbound: None, reads_database };
        let place = self.held.insert(held);
        instance.members.push(place);
        let sent = context.send_call(Call { to: self.to, token: place, ..inbound });
        if let Some(Held::Request { outbound, .. }) = self.held.get_mut(place) {
            *outbound = Some(sent);
        }
    }

    fn reply(&mut self, call: CallId, reply: Reply, context: &mut Context<'_>) {
        let place = context.call(call).map_or(u64::MAX, |call| call.token);
        match self.held.get(place) {
            Some(Held::Request { .. }) => self.read(place, reply, context),
            Some(Held::Check { .. }) => self.check_answered(place, reply, context),
            None => {}
        }
    }

    fn abandoned(&mut self, _: CallId, _: &mut Context<'_>) {
        // It does not watch its callers: the work goes on, and the answer goes to nobody.
    }

    fn timer(&mut self, kind: u16, data: u64, context: &mut Context<'_>) {
        match kind {
            SAMPLE => self.sample(context),
            CHECK => {
                if let Some(index) = self.marked(data) {
                    self.check(index, context);
                }
            }
            STARTED => {
                if let Some(index) = self.marked(data).filter(|_| !self.down) {
                    self.instances[index as usize].state = State::Starting;
                    self.check(index, context);
                }
            }
            NEW_INSTANCE => {
                let index = self.place_instance(State::Down);
                self.start_after(index, self.start, context);
                self.levels(context);
            }
            CHECK_DATABASE => self.set_dependence(data, HealthDependence::Database),
            _ => self.set_dependence(data, HealthDependence::Itself),
        }
    }

    fn change(&mut self, event: &Event, context: &mut Context<'_>) {
        let change = &event.change;
        let over = event.over.map_or(0, |over| over.nanos);
        self.compute = change.compute_factor.unwrap_or(self.compute);
        self.ports.add_nodes(change.nodes.unwrap_or(0));
        let added = u64::from(change.instances.unwrap_or(0));
        for nth in 0..added {
            context.timer(part_of(over, nth, added), NEW_INSTANCE, 0);
        }
        if let Some(depends_on) = change.health_depends_on {
            self.health.depends_on = depends_on;
            let kind = if depends_on == HealthDependence::Itself { CHECK_ITSELF } else { CHECK_DATABASE };
            let count = self.instances.len() as u64;
            for index in 0..count {
                context.timer(part_of(over, index + 1, count), kind, index);
            }
        }
        if let Some(part) = change.restart {
            self.restart_part(part, context);
        }
        if let Some(down) = change.down {
            self.set_down(down, context);
        }
    }

    fn held(&self) -> usize {
        self.held.len() + self.ports.len()
    }

    fn bound(&self, under_way: UnderWay) -> usize {
        under_way.calls + self.instances.len() + self.ports.most()
    }

    fn stop(&mut self) {
        self.stopped = true;
    }
}
