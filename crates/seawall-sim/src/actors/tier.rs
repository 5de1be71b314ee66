//! A single queue with a finite rate: a caching layer, a database.
//!
//! When a request comes in it is known when it will be served, since the queue is served in order and nobody leaves it:
//! one event for each request is enough. A factor of the rate, or an outage, concerns what comes later; what is in the
//! queue by then is served as it was promised.

use super::Surroundings;
use crate::calls::{CallId, Reply};
use crate::checkers::UnderWay;
use crate::context::{Actor, Context};
use crate::random::nanos;
use crate::recorder::{Recorder, SeriesId};
use crate::{Nanos, SECOND};
use seawall_cases::scenario::{Event, Form, Tier};

/// See [`Tier`].
#[derive(Debug)]
pub struct TierActor {
    per_second: f64,
    factor: f64,
    latency: Nanos,
    down: bool,
    stopped: bool,
    /// When the last request of the queue will have been served.
    free_at: Nanos,
    /// Backlog at the last sample.
    backlog: Nanos,
    /// Service time that was taken on since then.
    taken: Nanos,
    served: SeriesId,
    busy_ms: SeriesId,
    queue: SeriesId,
}

impl TierActor {
    /// The tier that the scenario describes.
    pub fn new(settings: &Tier, around: &Surroundings<'_>, recorder: &mut Recorder) -> Self {
        let name = &settings.name;
        Self {
            per_second: settings.rate_per_second * around.scale,
            factor: 1.0,
            latency: settings.latency.nanos,
            down: false,
            stopped: false,
            free_at: 0,
            backlog: 0,
            taken: 0,
            served: recorder.count(format!("{name}.served")),
            busy_ms: recorder.count(format!("{name}.busy_ms")),
            queue: recorder.level(format!("{name}.queue")),
        }
    }

    /// The service time of one request; 0 where the rate is without a bound.
    fn service(&self) -> Nanos {
        if self.per_second > 0.0 { nanos(1e9 / (self.per_second * self.factor).max(1e-9)) } else { 0 }
    }

    /// Once a second: how busy the second was that ends now, and how many requests are waiting or being served.
    #[expect(clippy::cast_precision_loss, reason = "at most a second's milliseconds")]
    fn sample(&mut self, context: &mut Context<'_>) {
        let now = context.now();
        let backlog = self.free_at.saturating_sub(now);
        let busy = (self.backlog + core::mem::take(&mut self.taken)).saturating_sub(backlog);
        self.backlog = backlog;
        context.recorder().add_many(self.busy_ms, now.saturating_sub(1), busy as f64 / 1e6);
        let each = self.service();
        let waiting = backlog.checked_div(each).map_or(0, |whole| whole + u64::from(!backlog.is_multiple_of(each)));
        context.level(self.queue, waiting as f64);
        if !self.stopped {
            context.timer(SECOND, 0, 0);
        }
    }
}

impl Actor for TierActor {
    fn start(&mut self, context: &mut Context<'_>) {
        context.level(self.queue, 0.0);
        context.timer(SECOND, 0, 0);
    }

    fn arrive(&mut self, call: CallId, context: &mut Context<'_>) {
        if self.down {
            return context.reply(call, Reply::failure(Form::ConnectionRefused));
        }
        let now = context.now();
        let each = self.service();
        self.free_at = self.free_at.max(now).saturating_add(each);
        self.taken = self.taken.saturating_add(each);
        let answered = self.free_at.saturating_add(self.latency);
        context.recorder().add(self.served, answered);
        context.reply_after(call, answered - now, Reply::SUCCESS);
    }

    fn timer(&mut self, _: u16, _: u64, context: &mut Context<'_>) {
        self.sample(context);
    }

    fn change(&mut self, event: &Event, _: &mut Context<'_>) {
        self.factor = event.change.capacity_factor.unwrap_or(self.factor);
        self.down = event.change.down.unwrap_or(self.down);
    }

    fn held(&self) -> usize {
        0
    }

    fn bound(&self, _: UnderWay) -> usize {
        0
    }

    fn stop(&mut self) {
        self.stopped = true;
    }
}

#[cfg(test)]
mod tests;
