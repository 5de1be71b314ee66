//! A cache of results in front of a pool of workers: it answers what it has, asks for what it has not, and takes what
//! the pool writes.
//!
//! A write is a call from the pool, and it is acknowledged. Whether the result is then there to be read is another
//! matter: at its limit the cache drops something, by [`AtLimit`], and says nothing. How much it drops is not set
//! anywhere: room comes free as results expire, and more writes than that find none.
//!
//! Results expire in the order in which they were written. What the cache holds at the start is about documents that
//! nobody asks for any more; it is a number, not records.

use super::{Surroundings, number};
use crate::Nanos;
use crate::calls::{ActorId, Call, CallId, Facts, Reply};
use crate::checkers::UnderWay;
use crate::context::{Actor, Context};
use crate::recorder::{Recorder, SeriesId};
use crate::slab::Slab;
use hashbrown::HashMap;
use seawall_cases::scenario::{AtLimit, Event, ResultCache};
use std::collections::VecDeque;

/// Results that are kept for a fixed time.
#[derive(Debug, Default)]
struct Room {
    until: HashMap<u64, Nanos, foldhash::fast::FixedState>,
    line: VecDeque<(Nanos, u64)>,
}

impl Room {
    /// Forgets what has expired.
    fn expire(&mut self, now: Nanos) {
        while self.line.front().is_some_and(|(until, _)| *until <= now) {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        if let Some((until, key)) = self.line.pop_front()
            && self.until.get(&key) == Some(&until)
        {
            self.until.remove(&key);
        }
    }

    fn store(&mut self, until: Nanos, key: u64) {
        self.line.push_back((until, key));
        self.until.insert(key, until);
    }
}

/// What the cache holds at the start: it expires evenly over the time for which results are kept.
#[derive(Debug)]
struct Old {
    count: u64,
    gone: u64,
    since: Nanos,
    keeps: Nanos,
}

impl Old {
    fn expire(&mut self, now: Nanos) {
        let share = u128::from(now - self.since) * u128::from(self.count) / u128::from(self.keeps.max(1));
        self.gone = self.gone.max(u64::try_from(share).unwrap_or(u64::MAX).min(self.count));
    }

    const fn left(&self) -> u64 {
        self.count - self.gone
    }
}

#[derive(Debug)]
struct Series {
    attempts: SeriesId,
    hits: SeriesId,
    misses: SeriesId,
    writes: SeriesId,
    discarded: SeriesId,
    held: SeriesId,
    most_attempts: SeriesId,
}

/// See [`ResultCache`].
#[derive(Debug)]
pub struct ResultCacheActor {
    to: ActorId,
    writers: Vec<ActorId>,
    keeps: Nanos,
    limit: u64,
    /// Results that its lines may hold at the most, those included that were written anew since.
    most_results: usize,
    at_limit: AtLimit,
    large_have_room: bool,
    counts_attempts: bool,
    old: Old,
    room: Room,
    large_room: Room,
    asked: Slab<Asked>,
    series: Series,
}

/// A call that the cache could not answer.
#[derive(Debug)]
struct Asked {
    inbound: CallId,
    outbound: Option<CallId>,
}

impl ResultCacheActor {
    /// The cache that the scenario describes.
    pub fn new(settings: &ResultCache, around: &Surroundings<'_>, recorder: &mut Recorder) -> Self {
        let name = &settings.name;
        let scenario = around.scenario;
        let pools = scenario.worker_pool.iter().filter(|pool| pool.writes_to.as_ref() == Some(name));
        let limit = u64::from(around.scaled(settings.limit));
        let mut count = |metric: &str| recorder.count(format!("{name}.{metric}"));
        Self {
            to: around.id(&settings.to),
            writers: pools.map(|pool| around.id(&pool.name)).collect(),
            keeps: settings.keeps.nanos,
            limit,
            most_results: 2 * around.scaled(settings.limit) as usize + around.most_arrivals(settings.keeps.nanos),
            at_limit: settings.at_limit,
            large_have_room: settings.large_have_room,
            counts_attempts: scenario.scenario.attempts_at.contains(name),
            old: Old {
                count: if settings.starts_full { limit } else { 0 },
                gone: 0,
                since: scenario.scenario.start.nanos,
                keeps: settings.keeps.nanos,
            },
            room: Room::default(),
            large_room: Room::default(),
            asked: Slab::default(),
            series: Series {
                attempts: count("attempts"),
                hits: count("hits"),
                misses: count("misses"),
                writes: count("writes"),
                discarded: count("discarded"),
                held: recorder.level(format!("{name}.held")),
                most_attempts: recorder.mark(format!("{name}.most_attempts")),
            },
        }
    }

    fn expire(&mut self, now: Nanos) {
        self.old.expire(now);
        self.room.expire(now);
        self.large_room.expire(now);
    }

    fn kept(&self) -> usize {
        usize::try_from(self.old.left()).unwrap_or(usize::MAX).saturating_add(self.room.until.len())
    }

    fn level(&self, context: &mut Context<'_>) {
        context.level(self.series.held, number(self.kept()));
    }

    /// A result comes in.
    fn write(&mut self, facts: Facts, context: &mut Context<'_>) {
        let until = context.now().saturating_add(self.keeps);
        context.count(self.series.writes);
        if facts.large && self.large_have_room {
            return self.large_room.store(until, facts.key);
        }
        let is_full = self.kept() as u64 >= self.limit && !self.room.until.contains_key(&facts.key);
        match self.at_limit {
            _ if !is_full => self.room.store(until, facts.key),
            AtLimit::AcknowledgeAndDiscard => context.count(self.series.discarded),
            AtLimit::EvictOldest => {
                if self.old.left() > 0 {
                    self.old.gone += 1;
                } else {
                    self.evict_oldest();
                }
                self.room.store(until, facts.key);
            }
        }
    }

    /// Drops the oldest result that is still kept: the line also has what was written anew since.
    fn evict_oldest(&mut self) {
        let before = self.room.until.len();
        while self.room.until.len() == before && before > 0 {
            self.room.drop_oldest();
        }
    }

    fn ask(&mut self, call: CallId, inbound: Call, context: &mut Context<'_>) {
        let place = self.asked.insert(Asked { inbound: call, outbound: None });
        if let Some(call) = context.call_mut(call) {
            call.state = place;
        }
        let outbound = context.send_call(Call { to: self.to, token: place, ..inbound });
        if let Some(asked) = self.asked.get_mut(place) {
            asked.outbound = Some(outbound);
        }
    }
}

impl Actor for ResultCacheActor {
    fn start(&mut self, context: &mut Context<'_>) {
        self.level(context);
    }

    fn arrive(&mut self, call: CallId, context: &mut Context<'_>) {
        let Some(inbound) = context.call(call).copied() else { return };
        self.expire(context.now());
        let facts = *context.facts(inbound.request);
        if self.writers.contains(&inbound.from) {
            self.write(facts, context);
            self.level(context);
            return context.reply(call, Reply::SUCCESS);
        }
        context.count(self.series.attempts);
        if self.counts_attempts {
            context.facts_mut(inbound.request).attempts += 1;
            context.raise(self.series.most_attempts, f64::from(facts.attempts + 1));
        }
        if self.room.until.contains_key(&facts.key) || self.large_room.until.contains_key(&facts.key) {
            context.count(self.series.hits);
            return context.reply(call, Reply::SUCCESS);
        }
        context.count(self.series.misses);
        self.ask(call, inbound, context);
    }

    fn reply(&mut self, call: CallId, reply: Reply, context: &mut Context<'_>) {
        let place = context.call(call).map_or(u64::MAX, |call| call.token);
        if let Some(asked) = self.asked.remove(place) {
            context.reply(asked.inbound, reply);
        }
    }

    fn abandoned(&mut self, call: CallId, context: &mut Context<'_>) {
        let place = context.call(call).map_or(u64::MAX, |call| call.state);
        if let Some(outbound) = self.asked.remove(place).and_then(|asked| asked.outbound) {
            context.abandon(outbound);
        }
        context.close(call);
    }

    fn change(&mut self, event: &Event, context: &mut Context<'_>) {
        if event.change.clear == Some(true) {
            self.expire(context.now());
            self.old.gone = self.old.count;
            self.room = Room::default();
            self.large_room = Room::default();
            self.level(context);
        }
    }

    fn held(&self) -> usize {
        self.asked.len() + self.room.line.len() + self.large_room.line.len()
    }

    fn bound(&self, under_way: UnderWay) -> usize {
        under_way.calls + self.most_results
    }
}
