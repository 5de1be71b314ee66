//! Clients that send requests on their own account.

use super::curve::factor;
use super::rollout::Rollout;
use super::{Surroundings, number_of};
use crate::Nanos;
use crate::calls::{ActorId, Call, CallId, Facts, Reply, RequestId};
use crate::checkers::UnderWay;
use crate::context::{Actor, Context};
use crate::random::{Stream, mix};
use crate::recorder::{Recorder, SeriesId, SpreadId};
use crate::retry::{Progress, RetryRule};
use crate::slab::Slab;
use crate::timeouts::Timeouts;
use seawall_cases::scenario::{Burst, Event, Form, Population, Resubmit, Work};
use std::collections::{BTreeMap, VecDeque};

const BATCH: u16 = 0;
const AGAIN: u16 = 1;
const TIMEOUT: u16 = 2;
const RESUBMIT: u16 = 3;
const BURST: u16 = 4;
const PATIENCE: u16 = 5;

/// The streams of one population, one for each purpose.
#[derive(Debug)]
struct Streams {
    arrivals: Stream,
    work: Stream,
    keys: Stream,
    waits: Stream,
}

#[derive(Debug)]
struct Series {
    requests: SeriesId,
    resubmitted: SeriesId,
    attempts: SeriesId,
    succeeded: SeriesId,
    /// Seconds of work of those that succeeded.
    work_done: SeriesId,
    /// Those that succeeded in the end, counted when they were sent.
    served: SeriesId,
    /// From their first attempt to their answer.
    took: SpreadId,
    failed: SeriesId,
    lost: SeriesId,
    timeouts: SeriesId,
    returns: SeriesId,
    open: SeriesId,
}

/// See [`Population`].
#[derive(Debug)]
pub struct PopulationActor {
    settings: Population,
    name_hash: u64,
    accounts: u32,
    workload: u16,
    models: Vec<u16>,
    to: Rollout<ActorId>,
    targets: BTreeMap<String, ActorId>,
    per_second: f64,
    rate_factor: f64,
    retry: RetryRule,
    timeouts: Option<Timeouts>,
    streams: Streams,
    live: Slab<Live>,
    waiting_to_resubmit: Slab<Later>,
    /// What was answered lately, for those who ask again.
    recent: VecDeque<(Nanos, u64, Nanos)>,
    next_key: u64,
    epoch: u64,
    stopped: bool,
    /// What it may remember at the most: of what was asked for lately, and of what comes again later.
    most_remembered: usize,
    bursts: Slab<(Burst, u32)>,
    series: Series,
}

#[derive(Debug)]
struct Live {
    request: RequestId,
    since: Nanos,
    made: u16,
    progress: Progress,
    outbound: Option<CallId>,
    resubmissions: u32,
    is_repeat: bool,
}

/// A request that failed for good and comes again.
#[derive(Debug)]
struct Later {
    facts: Facts,
    resubmissions: u32,
    is_repeat: bool,
}

impl PopulationActor {
    /// The population that the scenario describes; an error names what it cannot be built with.
    pub fn new(settings: &Population, around: &Surroundings<'_>, recorder: &mut Recorder) -> Result<Self, String> {
        let name = &settings.name;
        let workload = around.workloads.iter().position(|workload| *workload == settings.workload).unwrap_or(0);
        let mut series = |metric: &str| recorder.count(format!("{name}.{metric}"));
        Ok(Self {
            name_hash: name_hash(name),
            accounts: if settings.accounts == 0 { 0 } else { around.scaled(settings.accounts) },
            workload: u16::try_from(workload).unwrap_or(u16::MAX),
            models: around.model_numbers(&settings.models),
            to: Rollout::fixed(around.id(&settings.to)),
            targets: around.ids.iter().map(|(name, id)| ((*name).to_owned(), *id)).collect(),
            per_second: settings.rate_per_second * around.scale,
            rate_factor: 1.0,
            retry: RetryRule::new(&settings.retry)?,
            timeouts: settings.attempt_timeout.map(|span| Timeouts::new(span.nanos, TIMEOUT)),
            streams: Streams {
                arrivals: around.stream(name, "arrivals"),
                work: around.stream(name, "work"),
                keys: around.stream(name, "keys"),
                waits: around.stream(name, "waits"),
            },
            live: Slab::default(),
            waiting_to_resubmit: Slab::default(),
            recent: VecDeque::new(),
            next_key: 0,
            epoch: 0,
            stopped: false,
            most_remembered: most_remembered(settings, around),
            bursts: Slab::default(),
            series: Series {
                requests: series("requests"),
                resubmitted: series("resubmitted"),
                attempts: series("attempts"),
                succeeded: series("succeeded"),
                work_done: series("work_done"),
                failed: series("failed"),
                lost: series("lost"),
                timeouts: series("timeouts"),
                returns: series("returns"),
                served: recorder.count_of_earlier(format!("{name}.served")),
                took: recorder.spread(format!("{name}.took")),
                open: recorder.level(format!("{name}.open")),
            },
            settings: settings.clone(),
        })
    }

    /// The largest factor of the curve: arrivals are drawn at that rate and thinned.
    fn peak(&self) -> f64 {
        self.settings
            .curve
            .iter()
            .map(|point| point.1)
            .fold(if self.settings.curve.is_empty() { 1.0 } else { 0.0 }, f64::max)
    }

    fn next_batch(&mut self, context: &mut Context<'_>) {
        let rate = self.per_second * self.rate_factor * self.peak() / self.settings.batch_mean;
        if rate > 0.0 {
            let wait = self.streams.arrivals.exponential(1e9 / rate);
            context.timer(wait, BATCH, self.epoch);
        }
    }

    fn batch(&mut self, context: &mut Context<'_>) {
        let keeps = self.streams.arrivals.unit() * self.peak() < factor(&self.settings.curve, context.now());
        let count = self.streams.arrivals.geometric(self.settings.batch_mean);
        self.next_batch(context);
        if keeps {
            for _ in 0..count {
                self.arrive_one(self.settings.work, context);
            }
        }
    }

    fn arrive_one(&mut self, work: Option<Work>, context: &mut Context<'_>) {
        let now = context.now();
        let drawn = work.map_or(0, |work| draw(&mut self.streams.work, work));
        let (key, work_nanos, is_repeat) = self.key(now, drawn);
        let body = if self.accounts > 0 { self.next_content() } else { key };
        let model = self.models[self.streams.keys.below(self.models.len())];
        let facts = Facts {
            number: 0,
            workload: self.workload,
            model,
            criticality: self.settings.criticality,
            key,
            content: body,
            work: work_nanos,
            prompt_tokens: work.map_or(0, |work| work.prompt_tokens),
            output_tokens: work.map_or(0, |work| work.output_tokens),
            large: self.settings.large,
            arrived: now,
            attempts: 0,
            upstream: 0,
        };
        context.count(self.series.requests);
        self.submit(Later { facts, resubmissions: 0, is_repeat }, context);
    }

    /// What the body of a request says that is like no other's.
    fn next_content(&mut self) -> u64 {
        self.next_key += 1;
        mix(self.name_hash.wrapping_add(self.next_key))
    }

    /// What a request is for, its work, and whether it asks again: the same document has the same work.
    fn key(&mut self, now: Nanos, work: Nanos) -> (u64, Nanos, bool) {
        if self.accounts > 0 {
            let account = self.streams.keys.below(self.accounts as usize) as u64;
            return (account_key(self.name_hash, account), work, false);
        }
        let new = (self.next_content(), work, false);
        if self.settings.repeat_share <= 0.0 {
            return new;
        }
        while self.recent.front().is_some_and(|(at, _, _)| now - at > self.settings.repeat_within.nanos) {
            self.recent.pop_front();
        }
        if self.streams.keys.chance(self.settings.repeat_share) && !self.recent.is_empty() {
            let (_, key, work) = self.recent[self.streams.keys.below(self.recent.len())];
            return (key, work, true);
        }
        new
    }

    fn submit(&mut self, Later { facts, resubmissions, is_repeat }: Later, context: &mut Context<'_>) {
        let request = context.open_request(facts);
        let progress = self.retry.begin();
        let live = Live { request, since: context.now(), made: 0, progress, outbound: None, resubmissions, is_repeat };
        let place = self.live.insert(live);
        context.level(self.series.open, crate::actors::number(self.live.len()));
        if let Some(patience) = self.settings.patience {
            context.timer(patience.nanos, PATIENCE, place);
        }
        self.attempt(place, context);
    }

    fn attempt(&mut self, place: u64, context: &mut Context<'_>) {
        let Some(live) = self.live.get_mut(place) else { return };
        live.made = live.made.saturating_add(1);
        let now = context.now();
        context.count(self.series.attempts);
        if live.made > 1 {
            context.count(self.series.returns);
        }
        let own = self.timeouts.as_ref().map_or(u64::MAX, |timeouts| timeouts.deadline(now));
        let patience = self.settings.patience.map_or(u64::MAX, |patience| live.since.saturating_add(patience.nanos));
        let to = *self.to.of(now, context.facts(live.request).number);
        let outbound = context.send_call(Call {
            request: live.request,
            from: to,
            to,
            token: place,
            state: 0,
            deadline: own.min(patience),
            told_attempt: live.progress.told_attempt(live.made),
            connect_nanos: u64::MAX,
            body: 0,
            abandoned: false,
            answer_at: u64::MAX,
        });
        live.outbound = Some(outbound);
        if let Some(timeouts) = &mut self.timeouts {
            timeouts.watch(outbound, context);
        }
    }

    fn ended(&mut self, place: u64, reply: Reply, context: &mut Context<'_>) {
        let Some(live) = self.live.get_mut(place) else { return };
        live.outbound = None;
        if reply.is_success() {
            context.count(self.series.succeeded);
            let Facts { arrived: sent, work, .. } = *context.facts(live.request);
            let now = context.now();
            context.recorder().add_many(self.series.work_done, now, number_of(work) / 1e9);
            context.recorder().add(self.series.served, sent);
            context.recorder().span(self.series.took, now, now - sent);
            if self.settings.repeat_share > 0.0 && !live.is_repeat {
                let facts = context.facts(live.request);
                self.recent.push_back((context.now(), facts.key, facts.work));
            }
            return self.finish(place, context);
        }
        let elapsed = context.now() - live.since;
        match self.retry.next(&mut live.progress, reply, elapsed, &mut self.streams.waits) {
            Some(0) => self.attempt(place, context),
            Some(wait) => context.timer(wait, AGAIN, place),
            None => self.give_up(place, context),
        }
    }

    fn give_up(&mut self, place: u64, context: &mut Context<'_>) {
        let Some(live) = self.live.get(place) else { return };
        context.count(self.series.failed);
        if let Some(Resubmit { after, spread, times }) = self.settings.resubmit
            && live.resubmissions < times
        {
            #[expect(clippy::cast_precision_loss, reason = "spans are far below 2^53 microseconds")]
            let extra = self.streams.waits.exponential(spread.nanos as f64);
            let facts = *context.facts(live.request);
            let later = Later { facts, resubmissions: live.resubmissions + 1, is_repeat: live.is_repeat };
            context.timer(after.nanos + extra, RESUBMIT, self.waiting_to_resubmit.insert(later));
        } else {
            context.count(self.series.lost);
        }
        self.finish(place, context);
    }

    fn finish(&mut self, place: u64, context: &mut Context<'_>) {
        if let Some(live) = self.live.remove(place) {
            context.release(live.request);
            context.level(self.series.open, crate::actors::number(self.live.len()));
        }
    }

    /// The next one of a burst.
    fn burst(&mut self, place: u64, context: &mut Context<'_>) {
        if self.stopped {
            self.bursts.remove(place);
            return;
        }
        let Some((burst, sent)) = self.bursts.get_mut(place) else { return };
        *sent += 1;
        let (work, apart, is_last) = (burst.work, burst.apart.nanos, *sent >= burst.count);
        if is_last {
            self.bursts.remove(place);
        } else {
            context.timer(apart, BURST, place);
        }
        self.arrive_one(work.or(self.settings.work), context);
    }
}

/// The work of one request.
fn draw(random: &mut Stream, work: Work) -> Nanos {
    match work.stages {
        Some(stages) => random.erlang(work.mean.nanos, stages),
        None => random.lognormal(work.mean.nanos, work.sigma),
    }
}

fn name_hash(name: &str) -> u64 {
    name.bytes().fold(0, |hash, byte| mix(hash ^ u64::from(byte)))
}

const fn account_key(name_hash: u64, account: u64) -> u64 {
    mix(name_hash ^ account)
}

/// The keys of a population's accounts; none where each of its requests is for something new.
pub(super) fn account_keys(settings: &Population, around: &Surroundings<'_>) -> impl Iterator<Item = u64> + use<> {
    let hash = name_hash(&settings.name);
    let count = if settings.accounts == 0 { 0 } else { around.scaled(settings.accounts) };
    (0..u64::from(count)).map(move |account| account_key(hash, account))
}

/// What a population may remember at the most. Hardly anybody comes again later than after twenty times the spread.
fn most_remembered(settings: &Population, around: &Surroundings<'_>) -> usize {
    let lately = if settings.repeat_share > 0.0 { settings.repeat_within.nanos } else { 0 };
    let later = settings.resubmit.map_or(0, |resubmit| resubmit.after.nanos + 20 * resubmit.spread.nanos);
    [lately, later].iter().filter(|span| **span > 0).map(|span| around.most_arrivals_of(settings, *span)).sum()
}

impl Actor for PopulationActor {
    fn start(&mut self, context: &mut Context<'_>) {
        self.next_batch(context);
    }

    fn arrive(&mut self, call: CallId, context: &mut Context<'_>) {
        // Nobody may send requests here; the scenario is checked for it.
        context.reply(call, Reply::failure(Form::ConnectionRefused));
    }

    fn reply(&mut self, call: CallId, reply: Reply, context: &mut Context<'_>) {
        let place = context.call(call).map_or(u64::MAX, |call| call.token);
        self.ended(place, reply, context);
    }

    fn timer(&mut self, kind: u16, data: u64, context: &mut Context<'_>) {
        match kind {
            BATCH if data == self.epoch => self.batch(context),
            AGAIN => self.attempt(data, context),
            RESUBMIT => {
                if let Some(later) = self.waiting_to_resubmit.remove(data).filter(|_| !self.stopped) {
                    context.count(self.series.resubmitted);
                    let facts = Facts { arrived: context.now(), attempts: 0, upstream: 0, ..later.facts };
                    self.submit(Later { facts, ..later }, context);
                }
            }
            BURST => self.burst(data, context),
            PATIENCE => {
                if let Some(live) = self.live.get(data) {
                    context.count(self.series.timeouts);
                    if let Some(outbound) = live.outbound {
                        context.abandon(outbound);
                    }
                    self.give_up(data, context);
                }
            }
            TIMEOUT => {
                while let Some(call) = self.timeouts.as_mut().and_then(|timeouts| timeouts.next_due(context)) {
                    let place = context.call(call).map_or(u64::MAX, |call| call.token);
                    context.count(self.series.timeouts);
                    context.abandon(call);
                    self.ended(place, Reply::failure(Form::Timeout), context);
                }
            }
            _ => {}
        }
    }

    fn change(&mut self, event: &Event, context: &mut Context<'_>) {
        let over = event.over.map_or(0, |over| over.nanos);
        if let Some(burst) = &event.change.burst {
            let place = self.bursts.insert((burst.clone(), 0));
            self.burst(place, context);
        }
        if let Some(factor) = event.change.rate_factor {
            self.rate_factor = factor;
            self.epoch += 1;
            self.next_batch(context);
        }
        if let Some(attempts) = event.change.attempts {
            self.retry.attempts = attempts;
        }
        if let Some(to) = event.change.to.as_ref().and_then(|name| self.targets.get(name)) {
            self.to.change(context.now(), *to, over);
        }
    }

    fn held(&self) -> usize {
        self.live.len()
            + self.waiting_to_resubmit.len()
            + self.recent.len()
            + self.timeouts.as_ref().map_or(0, Timeouts::len)
    }

    fn bound(&self, under_way: UnderWay) -> usize {
        under_way.requests + self.most_remembered + Timeouts::most(under_way.most_calls)
    }

    fn stop(&mut self) {
        self.epoch += 1;
        self.stopped = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actors::number_of;
    use crate::actors::trial::{CLIENT, event, run, total};
    use seawall_cases::scenario::Span;

    #[test]
    fn an_answer_is_good_only_while_somebody_waits_for_it() {
        let client = CLIENT.replace("to = \"door\"", "to = \"door\"\npatience = \"10s\"");
        let door = "[[engine]]\nname = \"door\"\nslots = 9\ntakes_work = true\nworks_on = true\n";
        let one = |name: &str, mean: &str| {
            let burst = format!(r#"burst = {{ count = 1, apart = "0s", work = {{ mean = "{mean}" }} }}"#);
            event(name, "10:00:01", "client", &burst)
        };
        let seen = run(&[&client, door, &one("in-time", "9s"), &one("at-the-end", "10s"), &one("late", "11s")]);
        assert_eq!((total(&seen, "client.served"), total(&seen, "client.succeeded")), (1, 1));
        assert_eq!((total(&seen, "client.lost"), total(&seen, "door.wasted")), (2, 1));
        let took = seen.spread_of("client.took").expect("it is recorded");
        assert_eq!((took.total(), took.quantile(500).map(|span| span / 1_000_000_000)), (1, Some(9)));
    }

    #[test]
    fn work_is_drawn_from_its_law() {
        let mut random = Stream::new(1, "work");
        let mean_and_deviation = |work: Work, random: &mut Stream| {
            let drawn: Vec<f64> = (0..20_000).map(|_| number_of(draw(random, work))).collect();
            let mean = drawn.iter().sum::<f64>() / 20_000.0;
            let square = drawn.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / 20_000.0;
            (mean / 1e9, libm::sqrt(square) / mean)
        };
        let mean = Span::from_secs(1);
        let of = |sigma, stages| Work { mean, sigma, stages, prompt_tokens: 0, output_tokens: 0 };
        for (work, deviation) in [(of(0.0, Some(1)), 1.0), (of(0.0, Some(4)), 0.5), (of(0.099_751_345, None), 0.1)] {
            let (mean, got) = mean_and_deviation(work, &mut random);
            assert!((mean - 1.0).abs() < 0.03 && (got - deviation).abs() < 0.03, "{mean} {got} {deviation}");
        }
        assert_eq!(draw(&mut random, of(0.0, None)), 1_000_000_000);
    }
}
