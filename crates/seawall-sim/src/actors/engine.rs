//! A serving engine with continuous batching, as an actor: `seawall_model::engine::Engine` in virtual time.

use super::Surroundings;
use crate::calls::{CallId, Reply};
use crate::checkers::UnderWay;
use crate::context::{Actor, Context};
use crate::random::nanos;
use crate::recorder::{Recorder, SeriesId};
use crate::{Nanos, SECOND};
use hashbrown::HashMap;
use seawall_cases::scenario::{Engine, EngineFault, Event, Form};
use seawall_model::engine::{
    Departure, Engine as Model, EngineSettings, EventKind, Job, JobId, Order, Report, Submitted,
};

/// Room for what runs and waits: the scenario bounds it by slots, not by memory.
const KV_TOKENS: u64 = u64::MAX / 4;

/// The answer to a request that takes its own work has a token for each of these.
const WORK_STEP: Nanos = 10_000;

/// The wait that a throttle answer states.
const THROTTLED_MS: u32 = 2_000;

/// The mark of a call that is no job.
const NO_JOB: u64 = u64::MAX;

/// See [`Engine`].
#[derive(Debug)]
pub struct EngineActor {
    settings: EngineSettings,
    engine: Model,
    ppm: u32,
    scale: f64,
    takes_work: bool,
    calls: HashMap<u64, CallId, foldhash::fast::FixedState>,
    down: bool,
    fault: EngineFault,
    /// Whether the last request that could fail did not.
    spared: bool,
    /// The timer that counts; those set before mean nothing.
    armed: (u64, Option<Nanos>),
    series: Series,
}

#[derive(Debug)]
struct Series {
    finished: SeriesId,
    failed: SeriesId,
    refused: SeriesId,
    wasted: SeriesId,
    running: SeriesId,
    waiting: SeriesId,
}

impl EngineActor {
    /// The engine that the scenario describes.
    pub fn new(settings: &Engine, around: &Surroundings<'_>, recorder: &mut Recorder) -> Self {
        let name = &settings.name;
        let waiting = if settings.waiting_limit == 0 { 0 } else { around.scaled(settings.waiting_limit) };
        let slowdown = u32::try_from(nanos(settings.batch_slowdown_percent * 10_000.0)).unwrap_or(u32::MAX);
        let built = EngineSettings {
            slots: around.scaled(settings.slots),
            prefill_tokens_per_second: settings.prefill_tokens_per_second,
            decode_tokens_per_second: if settings.takes_work {
                steps(SECOND)
            } else {
                settings.decode_tokens_per_second
            },
            batch_slowdown_ppm: if settings.takes_work { 0 } else { slowdown },
            kv_tokens: KV_TOKENS,
            waiting_limit: Some(waiting),
            prefix_cache_tokens: 0,
            departure: if settings.works_on { Departure::KeepsRunning } else { Departure::FreesSlot },
            extra_latency: 0,
            fixed_service: settings.fixed_service.map(|service| service.nanos),
            order: if settings.random_order {
                Order::Random { seed: around.stream(name, "order").whole() }
            } else {
                Order::Arrival
            },
        };
        Self {
            engine: Model::new(built.clone()),
            settings: built,
            ppm: 1_000_000,
            scale: around.scale,
            takes_work: settings.takes_work,
            calls: HashMap::default(),
            down: false,
            fault: EngineFault::None,
            spared: false,
            armed: (0, None),
            series: Series {
                finished: recorder.count(format!("{name}.finished")),
                failed: recorder.count(format!("{name}.failed")),
                refused: recorder.count(format!("{name}.refused")),
                wasted: recorder.count(format!("{name}.wasted")),
                running: recorder.level(format!("{name}.running")),
                waiting: recorder.level(format!("{name}.waiting")),
            },
        }
    }

    /// Lets the engine live until now, answers what it has finished, and sets when to look again.
    fn advance(&mut self, context: &mut Context<'_>) {
        let now = context.now();
        for event in self.engine.advance(now) {
            let EventKind::Finished { abandoned } = event.kind else { continue };
            let Some(call) = self.calls.remove(&event.job.0) else { continue };
            context.count(if abandoned { self.series.wasted } else { self.series.finished });
            context.reply(call, Reply::SUCCESS);
        }
        let state = self.engine.snapshot();
        context.level(self.series.running, f64::from(state.running));
        context.level(self.series.waiting, f64::from(state.waiting));
        let next = self.engine.next_event();
        if self.armed.1 != next {
            self.armed = (self.armed.0 + 1, next);
            if let Some(at) = next {
                context.timer(at.saturating_sub(now), 0, self.armed.0);
            }
        }
    }

    /// It is gone, and all that it held with it.
    fn fail_all(&mut self, context: &mut Context<'_>) {
        let mut held: Vec<(u64, CallId)> = self.calls.drain().collect();
        held.sort_unstable();
        for (_, call) in held {
            context.reply(call, Reply::failure(Form::ConnectionLost));
        }
        self.engine = Model::new(self.settings.clone());
        self.engine.set_capacity_ppm(context.now(), self.ppm);
    }
}

impl Actor for EngineActor {
    fn arrive(&mut self, call: CallId, context: &mut Context<'_>) {
        if self.down {
            return context.reply(call, Reply::failure(Form::ConnectionRefused));
        }
        match self.fault {
            EngineFault::None => {}
            EngineFault::Errors => {
                context.count(self.series.failed);
                return context.reply(call, Reply::failure(Form::Error));
            }
            EngineFault::HalfErrors => {
                self.spared = !self.spared;
                if !self.spared {
                    context.count(self.series.failed);
                    return context.reply(call, Reply::failure(Form::Error));
                }
            }
            EngineFault::Throttles => {
                context.count(self.series.refused);
                return context.reply(call, Reply { wait_ms: THROTTLED_MS, ..Reply::failure(Form::Capacity) });
            }
            EngineFault::Silent => {
                let Some(call_mut) = context.call_mut(call) else { return };
                call_mut.state = NO_JOB;
                let connect = call_mut.connect_nanos;
                // Who never gives up connecting is never answered; its call ends when it leaves.
                if connect < Nanos::MAX {
                    context.reply_after(call, connect, Reply::failure(Form::ConnectionRefused));
                }
                return;
            }
        }
        self.advance(context);
        let Some(facts) = context.facts_of(call) else { return };
        let (prompt_tokens, output_tokens) = if self.takes_work {
            (0, steps(facts.work).saturating_add(1))
        } else {
            (facts.prompt_tokens, facts.output_tokens)
        };
        let job = Job { prompt_tokens, output_tokens, prefix: None, report: Report::Finish };
        match self.engine.submit(context.now(), job) {
            Submitted::Accepted(JobId(job)) => {
                self.calls.insert(job, call);
                if let Some(call) = context.call_mut(call) {
                    call.state = job;
                }
            }
            Submitted::Refused(_) => {
                context.count(self.series.refused);
                context.reply(call, Reply::failure(Form::Capacity));
            }
        }
        self.advance(context);
    }

    fn abandoned(&mut self, call: CallId, context: &mut Context<'_>) {
        let job = context.call(call).map_or(NO_JOB, |call| call.state);
        self.advance(context);
        self.engine.cancel(context.now(), JobId(job));
        if job == NO_JOB || self.settings.departure == Departure::FreesSlot {
            self.calls.remove(&job);
            context.close(call);
        }
        self.advance(context);
    }

    fn timer(&mut self, _: u16, armed: u64, context: &mut Context<'_>) {
        if armed == self.armed.0 {
            self.armed.1 = None;
            self.advance(context);
        }
    }

    fn change(&mut self, event: &Event, context: &mut Context<'_>) {
        self.advance(context);
        if let Some(factor) = event.change.capacity_factor {
            self.ppm = u32::try_from(nanos(libm::round(factor * 1e6))).unwrap_or(u32::MAX);
            self.engine.set_capacity_ppm(context.now(), self.ppm);
        }
        if let Some(more) = event.change.slots {
            let slots = f64::from(self.settings.slots) + libm::round(f64::from(more) * self.scale);
            self.settings.slots = u32::try_from(nanos(slots)).unwrap_or(u32::MAX).max(1);
            self.engine.set_slots(context.now(), self.settings.slots);
        }
        if let Some(down) = event.change.down {
            self.down = down;
            if down {
                self.fail_all(context);
            }
        }
        if let Some(fault) = event.change.fault {
            self.fault = fault;
            if fault == EngineFault::Silent {
                self.fail_all(context);
            }
        }
        self.advance(context);
    }

    fn held(&self) -> usize {
        self.calls.len()
    }

    fn bound(&self, under_way: UnderWay) -> usize {
        under_way.calls
    }
}

/// The tokens that stand for so much work, after the first one, which costs none.
fn steps(work: Nanos) -> u32 {
    u32::try_from(work.div_ceil(WORK_STEP)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
