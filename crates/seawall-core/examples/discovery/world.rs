//! A router with the engine's policy in front of upstreams with slots, in virtual time.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;
use seawall_core::capacity::{CapacityState, Hints};
use seawall_core::classify::AttemptEnd;
use seawall_core::id::AttemptId;
use seawall_core::protection::Protections;
use seawall_core::settings::Capacity;
use seawall_core::time::{Duration, Instant};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

/// How long a request is served, as a multiple of the mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Law {
    Fixed,
    Exponential,
    /// Normal with this coefficient of variation.
    Narrow(f64),
    Erlang4,
    LogNormal,
    /// Nine of ten short, one long.
    TwoPhase,
    /// 0.3 to 30 s around a median of 3: long answers of a language model.
    Model,
}

/// In which order an upstream serves what it holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Order {
    Fifo,
    Random,
    Lifo,
}

/// What an upstream is from a time on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Phase {
    pub(crate) from: f64,
    pub(crate) slots: u32,
    /// Service takes this many times as long.
    pub(crate) slow: f64,
}

#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) upstreams: usize,
    pub(crate) phases: Vec<Phase>,
    pub(crate) mean: f64,
    pub(crate) law: Law,
    pub(crate) order: Order,
    /// Service grows with the share of slots in use.
    pub(crate) batching: bool,
    /// Places behind the slots; more is refused.
    pub(crate) places: Option<usize>,
    /// Whether the first byte comes when service begins.
    pub(crate) streams: bool,
    pub(crate) load: f64,
    pub(crate) patience: f64,
    pub(crate) seconds: f64,
}

/// What a run showed.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) good: usize,
    pub(crate) fluid: usize,
    /// The mean window of the upstreams, each 100 ms.
    pub(crate) windows: Vec<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Phase(usize),
    Arrive,
    Finish { upstream: usize, attempt: u64 },
    Wake,
    Sample,
}

struct Job {
    deadline: u64,
    service: f64,
}

struct Upstream {
    running: u32,
    line: VecDeque<u64>,
    state: CapacityState,
}

struct Attempt {
    job: usize,
    sent: u64,
}

struct World<'a> {
    scenario: &'a Scenario,
    now: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    sequence: u64,
    random: Pcg32,
    order_random: Pcg32,
    upstreams: Vec<Upstream>,
    phase: usize,
    jobs: Vec<Job>,
    attempts: BTreeMap<u64, Attempt>,
    next_attempt: u64,
    line: BTreeSet<(u64, usize)>,
    residences: VecDeque<u64>,
    headroom: u64,
    least: u64,
    completions: usize,
    second: (u64, u32),
    best: u32,
    woken: u64,
    good: usize,
    windows: Vec<f64>,
    arrivals: Vec<f64>,
}

const NANOS: f64 = 1e9;

fn nanos(seconds: f64) -> u64 {
    (seconds * NANOS) as u64
}

fn uniform(random: &mut Pcg32) -> f64 {
    (f64::from(random.next_u32()) + 0.5) / 4_294_967_296.0
}

fn exponential(random: &mut Pcg32) -> f64 {
    -uniform(random).ln()
}

fn normal(random: &mut Pcg32) -> f64 {
    (-2.0 * uniform(random).ln()).sqrt() * (std::f64::consts::TAU * uniform(random)).cos()
}

fn draw(law: Law, random: &mut Pcg32) -> f64 {
    match law {
        Law::Fixed => 1.0,
        Law::Exponential => exponential(random),
        Law::Narrow(cv) => (1.0 + cv * normal(random)).max(0.1),
        Law::Erlang4 => (0..4).map(|_| exponential(random)).sum::<f64>() / 4.0,
        Law::LogNormal => (normal(random) - 0.5).exp(),
        Law::TwoPhase => {
            if uniform(random) < 0.9 {
                exponential(random) * 0.5
            } else {
                exponential(random) * 5.5
            }
        }
        Law::Model => (normal(random) * 1.0).exp().clamp(0.1, 10.0) / 1.55,
    }
}

impl Outcome {
    /// What was served over what the oracle serves.
    pub(crate) fn ratio(&self) -> f64 {
        self.good as f64 / self.fluid as f64
    }

    /// Seconds after the scenario's last phase began until the window is within 0.95 to 3 times the slots (3.5 times
    /// one slot), and is so for 95% of the time that is left; infinite for never.
    pub(crate) fn settles(&self, scenario: &Scenario) -> f64 {
        let Some(last) = scenario.phases.last() else { return f64::INFINITY };
        let slots = f64::from(last.slots);
        let most = if last.slots == 1 { 3.5 } else { 3.0 };
        let inside = |window: &f64| *window >= 0.95 * slots && *window <= most * slots;
        let start = (last.from * 10.0) as usize;
        let settled = (start..self.windows.len().saturating_sub(20)).find(|from| {
            let rest = &self.windows[*from..];
            let within = rest.iter().filter(|window| inside(window)).count();
            inside(&rest[0]) && within * 20 >= rest.len() * 19
        });
        settled.map_or(f64::INFINITY, |at| (at - start) as f64 / 10.0)
    }
}

/// Runs `method`; `told`: the upstream's slots, where they are told.
pub(crate) fn run(scenario: &Scenario, method: &str, told: Option<u32>, seed: u64) -> Outcome {
    let hints = Hints { patience: Duration::from_secs_f64(scenario.patience), protections: Protections::default() };
    let capacity = Capacity::Standard { size: told };
    let upstream =
        || Upstream { running: 0, line: VecDeque::new(), state: CapacityState::new(capacity, method, hints) };
    let mut world = World {
        scenario,
        now: 0,
        events: BinaryHeap::new(),
        sequence: 0,
        random: Pcg32::seed_from_u64(seed),
        order_random: Pcg32::seed_from_u64(seed ^ 0x5eed),
        upstreams: (0..scenario.upstreams).map(|_| upstream()).collect(),
        phase: 0,
        jobs: Vec::new(),
        attempts: BTreeMap::new(),
        next_attempt: 0,
        line: BTreeSet::new(),
        residences: VecDeque::new(),
        headroom: 50_000_000,
        least: 0,
        completions: 0,
        second: (0, 0),
        best: 0,
        woken: u64::MAX,
        good: 0,
        windows: Vec::new(),
        arrivals: Vec::new(),
    };
    world.go();
    Outcome { good: world.good, fluid: world.fluid(), windows: world.windows }
}

impl World<'_> {
    fn at(&mut self, time: u64, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse((time, self.sequence, event)));
    }

    fn go(&mut self) {
        for index in 1..self.scenario.phases.len() {
            self.at(nanos(self.scenario.phases[index].from), Event::Phase(index));
        }
        self.at(0, Event::Sample);
        self.next_arrival();
        let end = nanos(self.scenario.seconds + 2.0 * self.scenario.patience);
        while let Some(Reverse((time, _, event))) = self.events.pop() {
            if time > end {
                break;
            }
            self.now = time;
            match event {
                Event::Phase(index) => {
                    self.phase = index;
                    (0..self.upstreams.len()).for_each(|upstream| self.fill(upstream));
                }
                Event::Arrive => {
                    self.arrive();
                    self.next_arrival();
                }
                Event::Finish { upstream, attempt } => self.finish(upstream, attempt),
                Event::Wake => self.woken = u64::MAX,
                Event::Sample => {
                    if time < nanos(self.scenario.seconds) {
                        self.at(time + 100_000_000, Event::Sample);
                        let now = Instant::from_nanos(self.now);
                        let limit = |upstream: &Upstream| upstream.state.limit(now).map_or(9_999.0, f64::from);
                        let sum: f64 = self.upstreams.iter().map(limit).sum();
                        self.windows.push(sum / self.upstreams.len() as f64);
                    }
                    continue;
                }
            }
            self.serve();
        }
    }

    fn rate(&self, phase: &Phase) -> f64 {
        self.scenario.upstreams as f64 * f64::from(phase.slots) / (self.scenario.mean * phase.slow)
    }

    fn next_arrival(&mut self) {
        let rate = self.scenario.load * self.rate(&self.scenario.phases[0]);
        let at = self.now + nanos(exponential(&mut self.random) / rate);
        if at < nanos(self.scenario.seconds) {
            self.at(at, Event::Arrive);
        }
    }

    fn arrive(&mut self) {
        let service = draw(self.scenario.law, &mut self.random) * self.scenario.mean;
        let deadline = self.now + nanos(self.scenario.patience);
        self.jobs.push(Job { deadline, service });
        self.arrivals.push(self.now as f64 / NANOS);
        while self.line.first().is_some_and(|key| key.0 < self.now + self.least) {
            self.line.pop_first();
        }
        let unsafe_ones = self.line.range(..(self.now + self.headroom, 0)).count();
        let ahead = (self.line.len() - unsafe_ones) as f64 / f64::from(self.best.max(1));
        let late = self.now + nanos(ahead) + self.headroom > deadline;
        if !late || self.now < 4_000_000_000 {
            self.line.insert((deadline, self.jobs.len() - 1));
        }
    }

    /// Sends what can be sent.
    fn serve(&mut self) {
        let now = Instant::from_nanos(self.now);
        while !self.line.is_empty() {
            let room = |upstream: &&Upstream| upstream.state.has_room(now);
            let Some(least) = self.upstreams.iter().filter(room).map(|u| u.state.in_flight()).min() else { break };
            let equal: Vec<usize> = (0..self.upstreams.len())
                .filter(|i| self.upstreams[*i].state.in_flight() == least && self.upstreams[*i].state.has_room(now))
                .collect();
            let pick = equal[(self.order_random.next_u32() as usize) % equal.len()];
            let Some(job) = self.next_job() else { break };
            self.dispatch(pick, job);
        }
        if self.line.is_empty() {
            return;
        }
        let opens = self.upstreams.iter().filter_map(|upstream| upstream.state.opens_at(now)).min();
        if let Some(at) = opens.map(Instant::as_nanos)
            && at < self.woken
        {
            self.woken = at;
            self.at(at, Event::Wake);
        }
    }

    /// The earliest deadline that is safe, else the most time left, unless that is hopeless.
    fn next_job(&mut self) -> Option<usize> {
        let safe = self.line.range((self.now + self.headroom, 0)..).next();
        let key = *safe.or_else(|| self.line.last())?;
        if key.0 < self.now + self.least {
            self.line.clear();
            return None;
        }
        self.line.remove(&key);
        Some(key.1)
    }

    fn dispatch(&mut self, index: usize, job: usize) {
        let attempt = self.next_attempt;
        self.next_attempt += 1;
        let slots = self.scenario.phases[self.phase].slots;
        let waiting = !self.line.is_empty();
        let now = Instant::from_nanos(self.now);
        let upstream = &mut self.upstreams[index];
        upstream.state.started(now, AttemptId(attempt), waiting);
        self.attempts.insert(attempt, Attempt { job, sent: self.now });
        if upstream.running < slots {
            self.start(index, attempt);
        } else if self.scenario.places.is_none_or(|places| upstream.line.len() < places) {
            upstream.line.push_back(attempt);
        } else {
            self.attempts.remove(&attempt);
            upstream.state.ended(now, AttemptId(attempt), waiting, AttemptEnd::Throttled { wait: None });
            self.line.insert((self.jobs[job].deadline, job));
        }
    }

    fn start(&mut self, index: usize, attempt: u64) {
        let phase = self.scenario.phases[self.phase];
        let upstream = &mut self.upstreams[index];
        upstream.running += 1;
        let share = f64::from(upstream.running) / f64::from(phase.slots.max(1));
        let batch = if self.scenario.batching { 0.4 + 0.6 * share.min(1.0) } else { 1.0 };
        let service = self.jobs[self.attempts[&attempt].job].service * phase.slow * batch;
        if self.scenario.streams {
            let waiting = !self.line.is_empty();
            upstream.state.first_byte(Instant::from_nanos(self.now), AttemptId(attempt), waiting);
        }
        self.at(self.now + nanos(service).max(1), Event::Finish { upstream: index, attempt });
    }

    fn fill(&mut self, index: usize) {
        let slots = self.scenario.phases[self.phase].slots;
        while self.upstreams[index].running < slots && !self.upstreams[index].line.is_empty() {
            let line = &mut self.upstreams[index].line;
            let next = match self.scenario.order {
                Order::Fifo => line.pop_front(),
                Order::Lifo => line.pop_back(),
                Order::Random => {
                    let at = self.order_random.next_u32() as usize % line.len();
                    line.remove(at)
                }
            };
            if let Some(attempt) = next {
                self.start(index, attempt);
            }
        }
    }

    fn finish(&mut self, index: usize, attempt: u64) {
        let Some(Attempt { job, sent }) = self.attempts.remove(&attempt) else { return };
        self.upstreams[index].running -= 1;
        let waiting = !self.line.is_empty();
        let now = Instant::from_nanos(self.now);
        self.upstreams[index].state.ended(now, AttemptId(attempt), waiting, AttemptEnd::Completed);
        self.good += usize::from(self.now <= self.jobs[job].deadline);
        self.learn(self.now - sent);
        self.fill(index);
    }

    fn learn(&mut self, residence: u64) {
        self.residences.push_back(residence);
        if self.residences.len() > 64 {
            self.residences.pop_front();
        }
        self.completions += 1;
        if self.completions.is_multiple_of(4) {
            let mut sorted: Vec<u64> = self.residences.iter().copied().collect();
            sorted.sort_unstable();
            self.headroom = sorted[sorted.len() * 9 / 10] + 50_000_000;
            self.least = sorted[sorted.len() / 4];
        }
        let second = self.now / 1_000_000_000;
        if second != self.second.0 {
            self.best = self.best.max(self.second.1);
            self.second = (second, 0);
        }
        self.second.1 += 1;
    }

    /// What one fast server that knows each deadline would have served in time.
    fn fluid(&self) -> usize {
        let phases = &self.scenario.phases;
        let (mut clock, mut served) = (0.0_f64, 0);
        for &arrival in &self.arrivals {
            let mut time = clock.max(arrival);
            let mut left = 1.0;
            loop {
                let index = phases.iter().rposition(|phase| phase.from <= time).unwrap_or(0);
                let rate = self.rate(&phases[index]);
                let until = phases.get(index + 1).map_or(f64::INFINITY, |phase| phase.from);
                if time + left / rate <= until {
                    time += left / rate;
                    break;
                }
                left -= (until - time) * rate;
                time = until;
            }
            if time <= arrival + self.scenario.patience {
                clock = time;
                served += 1;
            }
        }
        served
    }
}
