//! A service whose instances keep what they looked up.
//!
//! Nothing here says how often a lookup is found: that follows from the number of accounts and instances, the rate and
//! the time for which an entry is kept. An entry is kept for a fixed time from its lookup on. With `a` lookups a second
//! for one account at one instance, one lookup in `1 + a x keeps` is a miss; on any day an entry is there with the
//! probability `a x keeps / (1 + a x keeps)`, and what is left of its time is evenly distributed (a renewal process).
//! That is how full a warm cache is at the start.
//!
//! While an instance bypasses its cache it still stores what it looked up. Two lookups of one account at one instance at
//! the same time both go out.

use super::Surroundings;
use super::curve::factor;
use super::population::account_keys;
use crate::Nanos;
use crate::calls::{ActorId, Call, CallId, Reply};
use crate::checkers::UnderWay;
use crate::context::{Actor, Context};
use crate::random::{Stream, nanos};
use crate::recorder::{Recorder, SeriesId};
use crate::retry::{Progress, RetryRule};
use crate::slab::Slab;
use crate::timeouts::Timeouts;
use hashbrown::HashMap;
use seawall_cases::scenario::{Event, Form, LookupCache, Population};
use std::collections::VecDeque;

const AGAIN: u16 = 0;
const TIMEOUT: u16 = 1;
const CLEAR: u16 = 2;
const BYPASS: u16 = 3;
const USE: u16 = 4;

#[derive(Debug, Default)]
struct Instance {
    /// What it keeps: key, and until when.
    kept: HashMap<u64, Nanos, foldhash::fast::FixedState>,
    bypasses: bool,
}

#[derive(Debug)]
struct Live {
    inbound: CallId,
    instance: u32,
    outbound: Option<CallId>,
    progress: Progress,
    made: u16,
    since: Nanos,
}

#[derive(Debug)]
struct Series {
    lookups: SeriesId,
    hits: SeriesId,
    misses: SeriesId,
    bypassed: SeriesId,
    first_attempts: SeriesId,
    attempts: SeriesId,
    timeouts: SeriesId,
    succeeded: SeriesId,
    failed: SeriesId,
}

/// See [`LookupCache`].
#[derive(Debug)]
pub struct LookupCacheActor {
    to: ActorId,
    keeps: Nanos,
    /// Entries that all instances may keep at the most.
    most_kept: usize,
    instances: Vec<Instance>,
    /// When entries run out, in order: time, instance, key.
    running_out: VecDeque<(Nanos, u32, u64)>,
    retry: RetryRule,
    timeouts: Option<Timeouts>,
    live: Slab<Live>,
    balancing: Stream,
    waits: Stream,
    series: Series,
}

impl LookupCacheActor {
    /// The lookup cache that the scenario describes; an error names what it cannot be built with.
    pub fn new(settings: &LookupCache, around: &Surroundings<'_>, recorder: &mut Recorder) -> Result<Self, String> {
        let name = &settings.name;
        let mut instances = Vec::new();
        instances.resize_with(settings.instances as usize, Instance::default);
        let mut series = |metric: &str| recorder.count(format!("{name}.{metric}"));
        let mut built = Self {
            to: around.id(&settings.to),
            keeps: settings.keeps.nanos,
            most_kept: instances.len() * accounts(around) + around.most_arrivals(settings.keeps.nanos),
            instances,
            running_out: VecDeque::new(),
            retry: RetryRule::new(&settings.retry)?,
            timeouts: settings.attempt_timeout.map(|span| Timeouts::new(span.nanos, TIMEOUT)),
            live: Slab::default(),
            balancing: around.stream(name, "balancing"),
            waits: around.stream(name, "waits"),
            series: Series {
                lookups: series("lookups"),
                hits: series("hits"),
                misses: series("misses"),
                bypassed: series("bypassed"),
                first_attempts: series("first_attempts"),
                attempts: series("attempts"),
                timeouts: series("timeouts"),
                succeeded: series("succeeded"),
                failed: series("failed"),
            },
        };
        if settings.starts_warm {
            built.warm(settings, around);
        }
        Ok(built)
    }

    /// Fills every instance as full as it is on any day.
    fn warm(&mut self, settings: &LookupCache, around: &Surroundings<'_>) {
        let mut random = around.stream(&settings.name, "warm");
        let start = around.scenario.scenario.start.nanos;
        let mut entries = Vec::new();
        for population in askers(&settings.name, around) {
            let keys: Vec<u64> = account_keys(population, around).collect();
            let per_second = population.rate_per_second * around.scale * factor(&population.curve, start);
            let pairs = super::number(self.instances.len() * keys.len());
            let seen = per_second / pairs.max(1.0) * (super::number_of(self.keeps) / 1e9);
            for index in 0..u32::try_from(self.instances.len()).unwrap_or(u32::MAX) {
                for key in &keys {
                    if random.chance(seen / (1.0 + seen)) {
                        let left = nanos(super::number_of(self.keeps) * (1.0 - random.unit()));
                        entries.push((start + left, index, *key));
                    }
                }
            }
        }
        entries.sort_unstable();
        for (until, index, key) in &entries {
            self.instances[*index as usize].kept.insert(*key, *until);
        }
        self.running_out = entries.into();
    }

    fn forget_old(&mut self, now: Nanos) {
        while let Some((until, index, key)) = self.running_out.front().copied().filter(|(until, ..)| *until <= now) {
            self.running_out.pop_front();
            let kept = &mut self.instances[index as usize].kept;
            // After a clear the same account may be kept again, until later.
            if kept.get(&key) == Some(&until) {
                kept.remove(&key);
            }
        }
    }

    fn keep(&mut self, now: Nanos, index: u32, key: u64) {
        let kept = &mut self.instances[index as usize].kept;
        if self.keeps > 0 && !kept.contains_key(&key) {
            let until = now.saturating_add(self.keeps);
            kept.insert(key, until);
            self.running_out.push_back((until, index, key));
        }
    }

    fn attempt(&mut self, place: u64, context: &mut Context<'_>) {
        let Some(live) = self.live.get_mut(place) else { return };
        let Some(inbound) = context.call(live.inbound).copied() else { return };
        live.made = live.made.saturating_add(1);
        context.count(self.series.attempts);
        if live.made == 1 {
            context.count(self.series.first_attempts);
        }
        let own = self.timeouts.as_ref().map_or(u64::MAX, |timeouts| timeouts.deadline(context.now()));
        let deadline = own.min(inbound.deadline);
        let call = Call { to: self.to, token: place, deadline, told_attempt: live.made, ..inbound };
        let outbound = context.send_call(call);
        live.outbound = Some(outbound);
        if let Some(timeouts) = &mut self.timeouts {
            timeouts.watch(outbound, context);
        }
    }

    fn ended(&mut self, place: u64, reply: Reply, context: &mut Context<'_>) {
        let Some(live) = self.live.get_mut(place) else { return };
        live.outbound = None;
        if !reply.is_success() {
            let elapsed = context.now() - live.since;
            if let Some(wait) = self.retry.next(&mut live.progress, reply, elapsed, &mut self.waits) {
                return if wait == 0 { self.attempt(place, context) } else { context.timer(wait, AGAIN, place) };
            }
        }
        let Some(live) = self.live.remove(place) else { return };
        if reply.is_success()
            && let Some(key) = context.facts_of(live.inbound).map(|facts| facts.key)
        {
            self.keep(context.now(), live.instance, key);
        }
        self.answer(live.inbound, reply, context);
    }

    fn answer(&self, call: CallId, reply: Reply, context: &mut Context<'_>) {
        context.count(if reply.is_success() { self.series.succeeded } else { self.series.failed });
        context.reply(call, reply);
    }

    /// A change that reaches one instance after the other, the last one at the end of `over`.
    fn roll(&self, kind: u16, over: Nanos, context: &mut Context<'_>) {
        let count = self.instances.len() as u64;
        for index in 0..count {
            context.timer(super::part_of(over, index + 1, count), kind, index);
        }
    }
}

/// The populations whose requests come to an actor, through layers and links too.
fn askers<'a>(name: &str, around: &Surroundings<'a>) -> impl Iterator<Item = &'a Population> {
    let scenario = around.scenario;
    let layers = scenario.layer.iter().map(|layer| (layer.name.as_str(), layer.to.as_str()));
    let links = scenario.link.iter().map(|link| (link.name.as_str(), link.to.as_str()));
    let mut doors = vec![name.to_owned()];
    let passed: Vec<(&str, &str)> = layers.chain(links).collect();
    // No request goes in a circle, so after as many rounds as there are layers and links all are found.
    for _ in 0..passed.len() {
        for (from, to) in &passed {
            if doors.iter().any(|door| door == to) && doors.iter().all(|door| door != from) {
                doors.push((*from).to_owned());
            }
        }
    }
    scenario.population.iter().filter(move |population| doors.contains(&population.to))
}

/// All accounts of the world.
fn accounts(around: &Surroundings<'_>) -> usize {
    around.scenario.population.iter().map(|population| population.accounts as usize).sum()
}

impl Actor for LookupCacheActor {
    fn arrive(&mut self, call: CallId, context: &mut Context<'_>) {
        let now = context.now();
        self.forget_old(now);
        let Some(key) = context.facts_of(call).map(|facts| facts.key) else { return };
        context.count(self.series.lookups);
        let index = self.balancing.below(self.instances.len());
        let instance = &self.instances[index];
        if instance.bypasses {
            context.count(self.series.bypassed);
        } else if instance.kept.contains_key(&key) {
            context.count(self.series.hits);
            return self.answer(call, Reply::SUCCESS, context);
        } else {
            context.count(self.series.misses);
        }
        let instance = u32::try_from(index).unwrap_or(u32::MAX);
        let progress = self.retry.begin();
        let place = self.live.insert(Live { inbound: call, instance, outbound: None, progress, made: 0, since: now });
        if let Some(call) = context.call_mut(call) {
            call.state = place;
        }
        self.attempt(place, context);
    }

    fn reply(&mut self, call: CallId, reply: Reply, context: &mut Context<'_>) {
        let place = context.call(call).map_or(u64::MAX, |call| call.token);
        self.ended(place, reply, context);
    }

    fn abandoned(&mut self, call: CallId, context: &mut Context<'_>) {
        let place = context.call(call).map_or(u64::MAX, |call| call.state);
        if let Some(outbound) = self.live.remove(place).and_then(|live| live.outbound) {
            context.abandon(outbound);
        }
        context.close(call);
    }

    fn timer(&mut self, kind: u16, data: u64, context: &mut Context<'_>) {
        let instance = usize::try_from(data).unwrap_or(usize::MAX);
        match kind {
            AGAIN => self.attempt(data, context),
            CLEAR => self.instances[instance].kept.clear(),
            BYPASS => self.instances[instance].bypasses = true,
            USE => self.instances[instance].bypasses = false,
            _ => {
                while let Some(call) = self.timeouts.as_mut().and_then(|timeouts| timeouts.next_due(context)) {
                    let place = context.call(call).map_or(u64::MAX, |call| call.token);
                    context.abandon(call);
                    context.count(self.series.timeouts);
                    self.ended(place, Reply::failure(Form::Timeout), context);
                }
            }
        }
    }

    fn change(&mut self, event: &Event, context: &mut Context<'_>) {
        let over = event.over.map_or(0, |over| over.nanos);
        if event.change.clear == Some(true) {
            self.roll(CLEAR, over, context);
        }
        if let Some(bypass) = event.change.bypass {
            self.roll(if bypass { BYPASS } else { USE }, over, context);
        }
    }

    fn held(&self) -> usize {
        self.live.len() + self.running_out.len() + self.timeouts.as_ref().map_or(0, Timeouts::len)
    }

    fn bound(&self, under_way: UnderWay) -> usize {
        under_way.calls + self.most_kept + Timeouts::most(under_way.most_calls)
    }
}

#[cfg(test)]
mod tests;
