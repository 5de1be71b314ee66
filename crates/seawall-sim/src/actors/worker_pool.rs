//! A pool of workers that process documents on shared accelerators, and the de-duplication in front of them.
//!
//! A *flight* is the processing of one document: it holds a slot until it ends, whether or not somebody still waits
//! for it. The pool learns from a caller's leaving that a deadline has passed. De-duplication knows a flight by its
//! document; what it does with a second request for it is [`Duplicates`]. When a flight ends, its result is written to
//! the cache first and then given to everybody who waits, so that nobody comes back before it is there.
//!
//! At the bound (every slot is held) a request is refused; nothing is queued. Slots that are taken away while they are
//! held are missing once they come free.

mod series;

use self::series::{Finished, Series};
use super::sharing::Sharing;
use super::{Surroundings, number};
use crate::Nanos;
use crate::calls::{ActorId, CallId, Facts, Reply};
use crate::checkers::UnderWay;
use crate::context::{Actor, Context};
use crate::random::Stream;
use crate::recorder::Recorder;
use crate::slab::{Place, Slab};
use hashbrown::HashMap;
use seawall_cases::scenario::{Autoscaler, Duplicates, Event, Form, WorkerPool};
use smallvec::SmallVec;
use std::collections::VecDeque;

const ENDED: u16 = 0;
const LARGE_ENDED: u16 = 1;
const WAITED: u16 = 2;

/// The processing of one document.
#[derive(Debug)]
struct Flight {
    key: u64,
    large: bool,
    /// Callers that still wait for it.
    callers: u32,
    /// Everybody who asked for it and is remembered; the first one is the original.
    members: SmallVec<[Place; 2]>,
}

/// A call that is remembered.
#[derive(Debug)]
struct Member {
    call: CallId,
    flight: Place,
    role: Role,
    /// Whether its caller is known to have left.
    left: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// It is being processed.
    Original,
    /// It waits for the original in a slot of its own.
    InSlot,
    /// It waits for the original without a slot.
    Joined,
}

/// See [`WorkerPool`].
#[derive(Debug)]
pub struct WorkerPoolActor {
    scale: f64,
    slots: i64,
    units: f64,
    large_units: f64,
    duplicates: Duplicates,
    waiter_limit: Option<Nanos>,
    waiter_limit_spread: f64,
    waiters_leave: bool,
    refusal_wait: Nanos,
    refusal_wait_spread: f64,
    scaling: Option<Autoscaler>,
    steps_left: u32,
    /// Records that it may hold at the most beside those of calls.
    most_remembered: usize,
    next_step_from: Nanos,
    writes_to: Option<ActorId>,
    counts_attempts: bool,
    flights: Slab<Flight>,
    by_key: HashMap<u64, Place, foldhash::fast::FixedState>,
    members: Slab<Member>,
    sharing: Sharing,
    large_running: u32,
    waiting_in_slots: usize,
    joined: usize,
    /// The timer that is set for the next end of an ordinary document: when, and its number.
    due: Option<Nanos>,
    due_number: u64,
    finished: Finished,
    waits: Stream,
    limits: Stream,
    series: Series,
}

impl WorkerPoolActor {
    /// The pool that the scenario describes.
    pub fn new(settings: &WorkerPool, around: &Surroundings<'_>, recorder: &mut Recorder) -> Self {
        let name = &settings.name;
        let scenario = around.scenario;
        Self {
            scale: around.scale,
            slots: i64::from(around.scaled(settings.slots)),
            units: settings.accelerator_units * around.scale,
            large_units: settings.large_units * around.scale,
            duplicates: settings.duplicates,
            waiter_limit: settings.waiter_limit.map(|span| span.nanos),
            waiter_limit_spread: settings.waiter_limit_spread,
            waiters_leave: settings.waiters_leave_at_deadline,
            refusal_wait: settings.refusal_wait.nanos,
            refusal_wait_spread: settings.refusal_wait_spread,
            scaling: settings.autoscaler.clone(),
            steps_left: settings.autoscaler.as_ref().map_or(0, |scaling| scaling.steps),
            next_step_from: 0,
            writes_to: settings.writes_to.as_ref().map(|cache| around.id(cache)),
            counts_attempts: scenario.scenario.attempts_at.contains(name),
            most_remembered: most_remembered(settings, around),
            flights: Slab::default(),
            by_key: HashMap::default(),
            members: Slab::default(),
            sharing: Sharing::new(scenario.scenario.start.nanos),
            large_running: 0,
            waiting_in_slots: 0,
            joined: 0,
            due: None,
            due_number: 0,
            finished: Finished {
                within: settings.recomputed_within.nanos,
                until: HashMap::default(),
                line: VecDeque::new(),
            },
            waits: around.stream(name, "waits"),
            limits: around.stream(name, "limits"),
            series: Series::new(name, around, recorder),
        }
    }

    fn slots_held(&self) -> usize {
        self.flights.len() + self.waiting_in_slots
    }

    fn has_free_slot(&self) -> bool {
        i64::try_from(self.slots_held()).unwrap_or(i64::MAX) < self.slots
    }

    fn levels(&self, context: &mut Context<'_>) {
        context.level(self.series.held, number(self.slots_held()));
        context.level(self.series.working, number(self.flights.len()));
        context.level(self.series.waiting, number(self.waiting_in_slots));
        context.level(self.series.duplicates_waiting, number(self.waiting_in_slots + self.joined));
        context.level(self.series.speed, self.sharing.speed());
    }

    #[expect(clippy::cast_precision_loss, reason = "a pool has far fewer than 2^53 slots")]
    fn capacity_levels(&self, context: &mut Context<'_>) {
        context.level(self.series.slots, self.slots as f64);
        context.level(self.series.scaling_steps_left, f64::from(self.steps_left));
    }

    fn refuse(&mut self, call: CallId, context: &mut Context<'_>) {
        self.series.refused.count(call, context);
        let wait = self.waits.around(self.refusal_wait, self.refusal_wait_spread);
        let wait_ms = u32::try_from(wait / 1_000_000).unwrap_or(u32::MAX);
        context.reply(call, Reply { wait_ms, ..Reply::failure(Form::Overloaded) });
    }

    /// Begins to process a document, in a slot.
    fn fly(&mut self, call: CallId, facts: Facts, context: &mut Context<'_>) {
        let flight = Flight { key: facts.key, large: facts.large, callers: 0, members: SmallVec::new() };
        let place = self.flights.insert(flight);
        if self.duplicates != Duplicates::Recompute {
            self.by_key.insert(facts.key, place);
        }
        self.remember(call, place, Role::Original, context);
        if facts.large {
            self.large_running += 1;
            context.timer(facts.work, LARGE_ENDED, place);
        } else {
            self.sharing.begin(context.now(), facts.work, place);
        }
        self.share(context);
    }

    fn remember(&mut self, call: CallId, flight: Place, role: Role, context: &mut Context<'_>) {
        let member = self.members.insert(Member { call, flight, role, left: false });
        if let Some(call) = context.call_mut(call) {
            call.state = member;
        }
        if let Some(flight) = self.flights.get_mut(flight) {
            flight.callers += 1;
            flight.members.push(member);
        }
        match role {
            Role::Original => {}
            Role::Joined => self.joined += 1,
            Role::InSlot => {
                self.waiting_in_slots += 1;
                if let Some(limit) = self.waiter_limit {
                    context.timer(self.limits.around(limit, self.waiter_limit_spread), WAITED, member);
                }
            }
        }
    }

    /// A call is not remembered any more, and what it held is free.
    fn forget(&mut self, place: Place) -> Option<Member> {
        let member = self.members.remove(place)?;
        match member.role {
            Role::Original => {}
            Role::InSlot => self.waiting_in_slots -= 1,
            Role::Joined => self.joined -= 1,
        }
        Some(member)
    }

    /// The same while its flight goes on.
    fn leave(&mut self, place: Place) -> Option<Member> {
        let member = self.forget(place)?;
        if let Some(flight) = self.flights.get_mut(member.flight) {
            flight.members.retain(|other| *other != place);
        }
        Some(member)
    }

    /// Gives the accelerators to what runs now, and sees to it that the next end is not missed. A timer that turns out
    /// to be early is left: it only looks again.
    fn share(&mut self, context: &mut Context<'_>) {
        let left = self.units - self.large_units * f64::from(self.large_running);
        self.sharing.share(context.now(), left);
        let Some(next) = self.sharing.next_due() else { return };
        if self.due.is_none_or(|due| next < due) {
            self.due = Some(next);
            self.due_number += 1;
            context.timer(next - context.now(), ENDED, self.due_number);
        }
    }

    /// A document is finished.
    fn end(&mut self, place: Place, context: &mut Context<'_>) {
        let Some(flight) = self.flights.remove(place) else { return };
        if self.by_key.get(&flight.key) == Some(&place) {
            self.by_key.remove(&flight.key);
        }
        if flight.large {
            self.large_running -= 1;
        }
        context.count(self.series.completed);
        if self.finished.again(context.now(), flight.key) {
            context.count(self.series.recomputed);
        }
        let original = flight.members.first().and_then(|member| self.members.get(*member));
        let request = original.and_then(|original| context.call(original.call)).map(|call| call.request);
        if let (Some(cache), Some(request)) = (self.writes_to, request) {
            context.send(cache, request, 0, u64::MAX);
        }
        for member in flight.members {
            let Some(Member { call, left, .. }) = self.forget(member) else { continue };
            // A caller may leave at this very moment, before the pool has heard of it.
            match (left, context.is_abandoned(call)) {
                (true, _) => {}
                (false, true) => self.series.deadline_misses.count(call, context),
                (false, false) => self.series.answered.count(call, context),
            }
            context.reply(call, Reply::SUCCESS);
        }
    }

    /// A duplicate has waited in its slot for as long as it may.
    fn drop_waiter(&mut self, place: Place, context: &mut Context<'_>) {
        let Some(Member { call, flight, left, .. }) = self.leave(place) else { return };
        context.count(self.series.waiters_dropped);
        if !left {
            if context.is_abandoned(call) {
                self.series.deadline_misses.count(call, context);
            }
            if let Some(flight) = self.flights.get_mut(flight) {
                flight.callers -= 1;
            }
        }
        context.reply(call, Reply::failure(Form::Unavailable));
    }

    /// One step, where more than the wanted part of the slots is held and the last step is long enough ago.
    #[expect(clippy::cast_precision_loss, reason = "a pool has far fewer than 2^53 slots")]
    fn scale_out(&mut self, context: &mut Context<'_>) {
        let Some(scaling) = &self.scaling else { return };
        let is_busy = number(self.slots_held()) > scaling.held_above * self.slots as f64;
        if self.steps_left == 0 || context.now() < self.next_step_from || !is_busy {
            return;
        }
        self.steps_left -= 1;
        self.next_step_from = context.now().saturating_add(scaling.every.nanos);
        let (slots, units) = (f64::from(scaling.slots), scaling.accelerator_units);
        self.add(slots, units, context);
    }

    /// Slots and units on top, before scaling.
    #[expect(clippy::cast_possible_truncation, reason = "`as` saturates, which is wanted")]
    fn add(&mut self, slots: f64, units: f64, context: &mut Context<'_>) {
        self.slots = self.slots.saturating_add(libm::round(slots * self.scale) as i64);
        self.units = (self.units + units * self.scale).max(0.0);
        self.share(context);
        self.capacity_levels(context);
    }
}

/// Flights in all slots that there may ever be, and documents that were finished lately, some of them several times.
fn most_remembered(settings: &WorkerPool, around: &Surroundings<'_>) -> usize {
    let scaling = settings.autoscaler.as_ref().map_or(0, |scaling| scaling.slots * scaling.steps);
    let events = around.scenario.event.iter().filter(|event| event.actor == settings.name);
    let added: u32 = events.filter_map(|event| u32::try_from(event.change.slots?).ok()).sum();
    let slots = around.scaled(settings.slots + scaling + added) as usize;
    slots + 10 * around.most_arrivals(settings.recomputed_within.nanos)
}

impl Actor for WorkerPoolActor {
    fn start(&mut self, context: &mut Context<'_>) {
        self.levels(context);
        self.capacity_levels(context);
    }

    fn arrive(&mut self, call: CallId, context: &mut Context<'_>) {
        let Some(request) = context.call(call).map(|call| call.request) else { return };
        self.series.attempts.count(call, context);
        if self.counts_attempts {
            let facts = context.facts_mut(request);
            facts.attempts += 1;
            let attempts = f64::from(facts.attempts);
            context.raise(self.series.most_attempts, attempts);
        }
        let facts = *context.facts(request);
        let running = self.by_key.get(&facts.key).copied();
        let callers = running.and_then(|place| self.flights.get(place)).map(|flight| flight.callers);
        let joins = callers.is_some_and(|callers| self.duplicates == Duplicates::Join || callers > 0);
        match running {
            Some(place) if joins => self.remember(call, place, Role::Joined, context),
            _ if !self.has_free_slot() => self.refuse(call, context),
            Some(place) => self.remember(call, place, Role::InSlot, context),
            None => self.fly(call, facts, context),
        }
        self.scale_out(context);
        self.levels(context);
    }

    fn abandoned(&mut self, call: CallId, context: &mut Context<'_>) {
        let place = context.call(call).map_or(u64::MAX, |call| call.state);
        let Some(member) = self.members.get_mut(place) else { return context.close(call) };
        member.left = true;
        self.series.deadline_misses.count(call, context);
        if let Some(flight) = self.flights.get_mut(member.flight) {
            flight.callers -= 1;
        }
        let goes = match member.role {
            Role::Original => false,
            Role::InSlot => self.waiters_leave,
            Role::Joined => true,
        };
        if goes {
            self.leave(place);
            context.close(call);
            self.levels(context);
        }
    }

    fn timer(&mut self, kind: u16, data: u64, context: &mut Context<'_>) {
        match kind {
            ENDED if data == self.due_number => {
                self.due = None;
                while let Some(place) = self.sharing.next_ended(context.now()) {
                    self.end(place, context);
                }
                self.share(context);
            }
            LARGE_ENDED => {
                self.end(data, context);
                self.share(context);
            }
            WAITED => self.drop_waiter(data, context),
            _ => return,
        }
        self.levels(context);
    }

    fn change(&mut self, event: &Event, context: &mut Context<'_>) {
        let change = &event.change;
        if change.slots.is_some() || change.accelerator_units.is_some() {
            let slots = f64::from(change.slots.unwrap_or(0));
            self.add(slots, change.accelerator_units.unwrap_or(0.0), context);
        }
    }

    fn held(&self) -> usize {
        self.members.len() + self.flights.len() + self.finished.line.len()
    }

    fn bound(&self, under_way: UnderWay) -> usize {
        2 * under_way.most_calls + self.most_remembered
    }
}
