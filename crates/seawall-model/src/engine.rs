//! A serving engine with continuous batching, as a pure state machine over integer nanoseconds.
//!
//! **Model.** A [`Job`] waits in order of arrival (or as [`Order`] says) until a slot is free and its prompt and its output together fit into
//! the KV memory. Its uncached prompt is then prefilled: one prompt after the other, at one rate. From then on it
//! decodes at a rate which all decoding sequences share and which drops with their number. The first output token
//! comes at the end of the prefill.
//!
//! **Cost.** All decoding sequences share one virtual clock that counts the tokens each of them has made, so a change
//! of the batch changes only the speed of that clock. A job costs a few tree operations however long its answer is;
//! one event for each token is made only for jobs that ask for it ([`Report::EveryToken`]).
//!
//! **Use.** [`Engine::submit`] and [`Engine::cancel`] change things, [`Engine::advance`] gives what happened up to a
//! time, [`Engine::next_event`] says when to call next. Time never runs backwards: an earlier `now` counts as the
//! latest one seen. The same calls give the same events on every machine: no float, no hash order, no randomness.
//!
//! **Left out.** Preemption (a sequence reserves what it will need), the slowing of decode by prefill, and sharing of
//! KV memory between sequences with a common prefix.

mod cache;
mod settings;
#[cfg(test)]
mod tests;

use crate::mix::mix;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::{Drain, Vec};
use cache::PrefixCache;
pub use settings::{
    Cancelled, Departure, EngineSettings, Event, EventKind, Job, JobId, Nanos, Order, Prefix, Refusal, Report,
    Snapshot, Submitted,
};

/// Parts of a token on the virtual clock: fine enough that whole-number rates lose less than one part in a million.
const PARTS_PER_TOKEN: u128 = 1_000_000_000_000_000;
/// `PARTS_PER_TOKEN` over the nanoseconds of a second: the parts in a nanosecond at one token a second.
const PARTS_PER_NANO: u128 = 1_000_000;
const MILLION: u128 = 1_000_000;

/// Where a sequence is.
#[derive(Clone, Copy, Debug)]
enum Stage {
    Waiting,
    /// Parts of prompt tokens that are still to be read.
    Prefill(u128),
    /// The extra latency between prefill and first token, until this time.
    Settling(Nanos),
    Decode(Decode),
}

/// A stretch of decoding on the virtual clock.
#[derive(Clone, Copy, Debug)]
struct Decode {
    start: u128,
    work: u128,
    /// Tokens that existed at `start`.
    base: u32,
    /// The point of the clock at which the sequence is looked at next: its key in `Engine::decoding`.
    next: u128,
}

#[derive(Debug)]
struct Sequence {
    job: Job,
    stage: Stage,
    reported: u32,
    abandoned: bool,
}

/// The engine. See the module.
#[derive(Debug)]
pub struct Engine {
    settings: EngineSettings,
    now: Nanos,
    capacity_ppm: u32,
    next_id: u64,
    /// Jobs that were taken out of the waiting queue.
    picks: u64,
    sequences: BTreeMap<u64, Sequence>,
    waiting: BTreeSet<u64>,
    prefilling: VecDeque<u64>,
    settling: BTreeSet<(Nanos, u64)>,
    decoding: BTreeSet<(u128, u64)>,
    clock: u128,
    cache: PrefixCache,
    happened: Vec<Event>,
    totals: Snapshot,
}

impl Engine {
    /// An idle engine at time zero.
    pub fn new(settings: EngineSettings) -> Self {
        let cache = PrefixCache::new(settings.prefix_cache_tokens);
        let totals = Snapshot { kv_capacity_tokens: settings.kv_tokens, ..Snapshot::default() };
        Self {
            settings,
            now: 0,
            capacity_ppm: 1_000_000,
            next_id: 0,
            picks: 0,
            sequences: BTreeMap::new(),
            waiting: BTreeSet::new(),
            prefilling: VecDeque::new(),
            settling: BTreeSet::new(),
            decoding: BTreeSet::new(),
            clock: 0,
            cache,
            happened: Vec::new(),
            totals,
        }
    }

    /// Hands a job in. It starts at once, or waits, or is refused: [`Refusal::QueueFull`] where it would have to wait
    /// and the waiting queue is at its limit, [`Refusal::TooLarge`] where it could never fit the KV memory.
    pub fn submit(&mut self, now: Nanos, job: Job) -> Submitted {
        self.run(now);
        let refusal = if job.kv_tokens() > self.settings.kv_tokens {
            Some(Refusal::TooLarge)
        } else {
            let must_wait = !self.waiting.is_empty() || !self.fits(&job);
            let full = self.settings.waiting_limit.is_some_and(|limit| self.waiting.len() >= limit as usize);
            (must_wait && full).then_some(Refusal::QueueFull)
        };
        if let Some(refusal) = refusal {
            self.totals.refused += 1;
            return Submitted::Refused(refusal);
        }
        let id = self.next_id;
        self.next_id += 1;
        self.sequences.insert(id, Sequence { job, stage: Stage::Waiting, reported: 0, abandoned: false });
        self.waiting.insert(id);
        self.totals.accepted += 1;
        self.fire();
        Submitted::Accepted(JobId(id))
    }

    /// The client of a job has left. What that means is set by [`EngineSettings::departure`]: the job ends here
    /// ([`Cancelled::Freed`], no event follows), or it goes on unseen ([`Cancelled::Continues`], its finish follows).
    pub fn cancel(&mut self, now: Nanos, id: JobId) -> Cancelled {
        self.run(now);
        let Some(sequence) = self.sequences.get_mut(&id.0) else { return Cancelled::Unknown };
        if self.settings.departure == Departure::KeepsRunning {
            sequence.abandoned = true;
            return Cancelled::Continues;
        }
        let tokens = self.tokens(id).unwrap_or(0);
        let stage = self.sequences.remove(&id.0).map(|sequence| {
            if !matches!(sequence.stage, Stage::Waiting) {
                self.totals.kv_used_tokens -= sequence.job.kv_tokens();
            }
            sequence.stage
        });
        match stage {
            Some(Stage::Waiting) | None => {
                self.waiting.remove(&id.0);
            }
            Some(Stage::Prefill(_)) => self.prefilling.retain(|other| *other != id.0),
            Some(Stage::Settling(ready)) => {
                self.settling.remove(&(ready, id.0));
            }
            Some(Stage::Decode(decode)) => {
                self.decoding.remove(&(decode.next, id.0));
            }
        }
        self.totals.cancelled += 1;
        self.totals.generation_tokens += u64::from(tokens);
        self.fire();
        Cancelled::Freed
    }

    /// Runs until `now` and gives what happened since the last call, in order of time.
    pub fn advance(&mut self, now: Nanos) -> Drain<'_, Event> {
        self.run(now);
        self.happened.drain(..)
    }

    /// When [`Engine::advance`] has something to tell or to do next, if nothing is submitted or cancelled before;
    /// `None` while nothing moves (idle, or at zero capacity).
    pub fn next_event(&self) -> Option<Nanos> {
        if self.happened.is_empty() { self.next_internal() } else { Some(self.now) }
    }

    /// Slows all rates down to `percent` of the settings' from now on (a brown-out); 0 stops all progress.
    pub fn set_capacity_percent(&mut self, now: Nanos, percent: u32) {
        self.set_capacity_ppm(now, percent.saturating_mul(10_000));
    }

    /// The same, in millionths of the settings' rates.
    pub fn set_capacity_ppm(&mut self, now: Nanos, ppm: u32) {
        self.run(now);
        self.capacity_ppm = ppm;
    }

    /// Changes the number of slots from now on. Sequences that run above a lowered number are left to finish.
    pub fn set_slots(&mut self, now: Nanos, slots: u32) {
        self.run(now);
        self.settings.slots = slots;
        self.fire();
    }

    /// Changes the extra latency of jobs whose prefill ends from now on.
    pub fn set_extra_latency(&mut self, now: Nanos, latency: Nanos) {
        self.run(now);
        self.settings.extra_latency = latency;
    }

    /// Output tokens a job has made by the latest `now`; `None` for a job that has ended.
    pub fn tokens(&self, id: JobId) -> Option<u32> {
        let sequence = self.sequences.get(&id.0)?;
        let Stage::Decode(decode) = sequence.stage else { return Some(0) };
        Some(decode.tokens(self.clock, sequence.job.output_tokens))
    }

    /// What runs, waits and is held now, and totals since the start.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot { running: self.running(), waiting: count(self.waiting.len()), ..self.totals }
    }

    fn running(&self) -> u32 {
        count(self.prefilling.len() + self.settling.len() + self.decoding.len())
    }

    fn fits(&self, job: &Job) -> bool {
        self.running() < self.settings.slots && self.totals.kv_used_tokens + job.kv_tokens() <= self.settings.kv_tokens
    }

    /// Parts of a token in a nanosecond, for each decoding sequence. Fixed service has a clock without batch effect.
    fn decode_rate(&self) -> u128 {
        let ppm = u128::from(self.capacity_ppm);
        if self.settings.fixed_service.is_some() {
            return PARTS_PER_NANO * ppm / MILLION;
        }
        let others = self.decoding.len().saturating_sub(1) as u128;
        let slowed = MILLION + u128::from(self.settings.batch_slowdown_ppm) * others;
        u128::from(self.settings.decode_tokens_per_second) * PARTS_PER_NANO * ppm / slowed
    }

    fn prefill_rate(&self) -> u128 {
        u128::from(self.settings.prefill_tokens_per_second) * PARTS_PER_NANO * u128::from(self.capacity_ppm) / MILLION
    }

    fn prefill_head(&self) -> Option<(u64, u128)> {
        let id = *self.prefilling.front()?;
        match self.sequences.get(&id)?.stage {
            Stage::Prefill(left) => Some((id, left)),
            _ => None,
        }
    }

    fn next_internal(&self) -> Option<Nanos> {
        let prefill = self.prefill_head().and_then(|(_, left)| self.after(left, self.prefill_rate()));
        let settled = self.settling.first().map(|(ready, _)| *ready);
        let decoded =
            self.decoding.first().and_then(|(next, _)| self.after(next.saturating_sub(self.clock), self.decode_rate()));
        [prefill, settled, decoded].into_iter().flatten().min()
    }

    /// The time at which `parts` are done at `rate`.
    fn after(&self, parts: u128, rate: u128) -> Option<Nanos> {
        if parts == 0 {
            return Some(self.now);
        }
        if rate == 0 {
            return None;
        }
        Some(self.now.saturating_add(Nanos::try_from(parts.div_ceil(rate)).unwrap_or(Nanos::MAX)))
    }

    fn run(&mut self, now: Nanos) {
        while let Some(at) = self.next_internal().filter(|at| *at <= now) {
            self.pass_time(at);
            self.fire();
        }
        self.pass_time(now);
    }

    fn pass_time(&mut self, to: Nanos) {
        let passed = u128::from(to.saturating_sub(self.now));
        if passed == 0 {
            return;
        }
        if !self.decoding.is_empty() {
            self.clock += self.decode_rate() * passed;
        }
        if let Some((id, left)) = self.prefill_head() {
            self.set_stage(id, Stage::Prefill(left.saturating_sub(self.prefill_rate() * passed)));
        }
        self.now = to;
    }

    /// Does all that is due now; finished sequences make room before waiting ones are looked at.
    fn fire(&mut self) {
        loop {
            if let Some((next, id)) = self.decoding.first().copied().filter(|(next, _)| *next <= self.clock) {
                self.decoding.remove(&(next, id));
                self.decoded(id);
            } else if let Some((ready, id)) = self.settling.first().copied().filter(|(ready, _)| *ready <= self.now) {
                self.settling.remove(&(ready, id));
                self.start_decode(id);
            } else if let Some((id, _)) = self.prefill_head().filter(|(_, left)| *left == 0) {
                self.prefilling.pop_front();
                self.prefilled(id);
            } else if !self.admit_one() {
                return;
            }
        }
    }

    /// The job whose turn it is.
    fn next_waiting(&self) -> Option<u64> {
        match self.settings.order {
            Order::Arrival => self.waiting.first().copied(),
            Order::Random { seed } => {
                let drawn = u128::from(mix(seed ^ mix(self.picks))) * self.waiting.len() as u128;
                self.waiting.iter().nth(usize::try_from(drawn >> 64).unwrap_or(0)).copied()
            }
        }
    }

    fn admit_one(&mut self) -> bool {
        let Some(id) = self.next_waiting() else { return false };
        let Some(job) = self.sequences.get(&id).map(|sequence| sequence.job) else { return false };
        if !self.fits(&job) {
            return false;
        }
        self.waiting.remove(&id);
        self.picks += 1;
        self.totals.kv_used_tokens += job.kv_tokens();
        let cached = job.prefix.map_or(0, |prefix| self.cache.touch(prefix)).min(job.prompt_tokens);
        self.totals.prefix_queried_tokens += u64::from(job.prefix.map_or(0, |prefix| prefix.tokens));
        self.totals.prefix_hit_tokens += u64::from(cached);
        let uncached = if self.settings.fixed_service.is_some() { 0 } else { job.prompt_tokens - cached };
        self.set_stage(id, Stage::Prefill(u128::from(uncached) * PARTS_PER_TOKEN));
        self.prefilling.push_back(id);
        true
    }

    fn prefilled(&mut self, id: u64) {
        if let Some(sequence) = self.sequences.get(&id) {
            self.totals.prompt_tokens += u64::from(sequence.job.prompt_tokens);
        }
        if self.settings.extra_latency == 0 {
            self.start_decode(id);
        } else {
            let ready = self.now.saturating_add(self.settings.extra_latency);
            self.set_stage(id, Stage::Settling(ready));
            self.settling.insert((ready, id));
        }
    }

    fn start_decode(&mut self, id: u64) {
        let Some(job) = self.sequences.get(&id).map(|sequence| sequence.job) else { return };
        let (base, work) = match self.settings.fixed_service {
            Some(service) => (0, u128::from(service) * PARTS_PER_NANO),
            None => (job.output_tokens.min(1), u128::from(job.output_tokens.saturating_sub(1)) * PARTS_PER_TOKEN),
        };
        self.set_stage(id, Stage::Decode(Decode { start: self.clock, work, base, next: self.clock }));
        self.decoded(id);
    }

    /// Tells what a decoding sequence has made by now, and ends it or sets when it is looked at next.
    fn decoded(&mut self, id: u64) {
        let (now, clock) = (self.now, self.clock);
        let Some(sequence) = self.sequences.get_mut(&id) else { return };
        let Stage::Decode(decode) = &mut sequence.stage else { return };
        let output = sequence.job.output_tokens;
        let made = decode.tokens(clock, output);
        let mut tell = |kind| self.happened.push(Event { at: now, job: JobId(id), kind });
        if sequence.job.report != Report::Finish && sequence.reported == 0 && made > 0 {
            tell(EventKind::FirstToken);
            sequence.reported = 1;
        }
        if sequence.job.report == Report::EveryToken && made > sequence.reported {
            tell(EventKind::Tokens(made));
        }
        sequence.reported = made;
        if clock >= decode.start + decode.work {
            tell(EventKind::Finished { abandoned: sequence.abandoned });
            self.finish(id);
            return;
        }
        decode.next = match sequence.job.report {
            Report::EveryToken => decode.point_of(made + 1, output),
            Report::FirstToken if made == 0 => decode.point_of(1, output),
            Report::FirstToken | Report::Finish => decode.start + decode.work,
        };
        let next = decode.next;
        self.decoding.insert((next, id));
    }

    fn finish(&mut self, id: u64) {
        if let Some(sequence) = self.sequences.remove(&id) {
            self.totals.kv_used_tokens -= sequence.job.kv_tokens();
            self.totals.generation_tokens += u64::from(sequence.job.output_tokens);
            self.totals.finished += 1;
        }
    }

    fn set_stage(&mut self, id: u64, stage: Stage) {
        if let Some(sequence) = self.sequences.get_mut(&id) {
            sequence.stage = stage;
        }
    }
}

impl Decode {
    /// Tokens made when the clock stands at `clock`.
    fn tokens(&self, clock: u128, output: u32) -> u32 {
        let rest = u128::from(output.saturating_sub(self.base));
        let done = clock.saturating_sub(self.start).min(self.work);
        let made = (rest * done).checked_div(self.work).unwrap_or(rest);
        self.base + u32::try_from(made).unwrap_or(u32::MAX)
    }

    /// The point of the clock at which the token with this number is there.
    fn point_of(&self, token: u32, output: u32) -> u128 {
        let rest = u128::from(output.saturating_sub(self.base)).max(1);
        let steps = u128::from(token.saturating_sub(self.base)).min(rest);
        self.start + (self.work * steps).div_ceil(rest)
    }
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
