//! `seawall load`: an open-loop load generator that is free of coordinated omission.
//!
//! Calls arrive on a schedule that is decided before the run ([`LoadOptions`] and a seed), whether or not earlier ones
//! have been answered, and every time in the [`Report`] counts from the *scheduled* start. So a target that stalls is
//! seen by all the calls that would have come in the meantime, not only by the ones that happened to be open (the
//! fault of closed-loop generators, described by Gil Tene as coordinated omission).
//!
//! Each call belongs to a caller: a tenant's key, a size, a model, perhaps a stream, and a client with a measured retry
//! profile. The client makes attempts until it succeeds, gives up, or the caller's patience ends. All retries are the
//! profile's; the HTTP layer has none.
//!
//! **Bounds.** Arrivals beyond `max_in_flight` are counted as not sent. Answers are read within bounds. A run ends at
//! the latest one patience after its last arrival. **Not done.** No https; no HTTP/2. Timers have a resolution of a
//! millisecond, which the report's lag shows.
//!
//! ```no_run
//! # async fn example() -> Result<(), seawall_lab::load::LoadError> {
//! use seawall_lab::load::{LoadOptions, ProgressLine, run};
//! let mut options = LoadOptions::new("http://127.0.0.1:8080");
//! options.rate_per_second = 50.0;
//! options.profiles = "openai-python:50,immediate:20,none:30".parse()?;
//! let line = ProgressLine::stderr();
//! let report = run(options, std::future::pending(), |progress| line.update(progress)).await?;
//! line.finish();
//! let text = report.render();
//! # drop(text); Ok(())
//! # }
//! ```

mod answer;
mod attempt;
mod body;
mod client;
mod clock;
mod error;
mod mix;
mod options;
mod pool;
mod progress;
mod record;
mod report;
mod schedule;
mod tally;
mod target;
#[cfg(test)]
mod tests;

pub use error::LoadError;
pub use mix::{Client, Mix, MixItem, Model, Size, Tenant};
pub use options::{Arrivals, Endpoint, Limit, LoadOptions};
pub use progress::{Progress, ProgressLine};
pub use record::{EndedCall, Ending};
pub use report::{FailureCount, FailureKind, GroupReport, Quantiles, Report, StreamReport, WaitReport, name_of};

use body::Bodies;
use client::{World, call};
use pool::Pool;
use record::CallRecord;
use schedule::{Arrival, Schedule};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tally::Tally;
use target::Target;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};
use tokio_util::sync::CancellationToken;

/// How often the progress callback is called.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);
/// Idle connections kept at most.
const MAX_IDLE: usize = 1_024;

/// Runs a load to its end, or until `cancel` resolves: then no more calls are sent, open ones are dropped and counted
/// as cancelled, and the report tells what there was. Must be called within a tokio runtime.
pub async fn run(
    options: LoadOptions,
    cancel: impl Future<Output = ()>,
    progress: impl FnMut(&Progress),
) -> Result<Report, LoadError> {
    run_each(options, cancel, progress, |_| {}).await
}

/// The same, and `each` is told every sent call when it has ended, warm-up included.
pub async fn run_each(
    options: LoadOptions,
    cancel: impl Future<Output = ()>,
    mut progress: impl FnMut(&Progress),
    mut each: impl FnMut(EndedCall<'_>),
) -> Result<Report, LoadError> {
    options.check()?;
    let target = Target::resolve(&options).await?;
    let pool = Pool::new(target.addresses.clone(), options.max_in_flight.min(MAX_IDLE));
    let bodies = Bodies::new(&options);
    let schedule_options = options.clone();
    let world = Arc::new(World { options, target, bodies, pool, cancelled: CancellationToken::new() });
    let mut run = Run::new(&world, &schedule_options);
    let mut ticker = interval(PROGRESS_EVERY);
    ticker.set_missed_tick_behavior(MissedTickBehavior::Skip);
    tokio::pin!(cancel);
    while !run.is_over() {
        let due = run.due();
        tokio::select! {
            biased;
            () = &mut cancel, if !run.is_cancelled() => run.cancel(),
            () = sleep_until(due.unwrap_or(run.start)), if due.is_some() => run.launch_due(&mut each),
            Some(ended) = run.calls.join_next() => run.ended(ended, &mut each),
            _ = ticker.tick() => progress(&run.progress()),
        }
    }
    progress(&run.progress());
    Ok(run.finish())
}

/// A run under way.
struct Run<'a> {
    world: &'a Arc<World>,
    schedule: std::iter::Peekable<Schedule<'a>>,
    calls: JoinSet<CallRecord>,
    tally: Tally,
    start: Instant,
    /// When arrivals ended, once they have.
    arrivals_ended: Option<Duration>,
}

impl<'a> Run<'a> {
    fn new(world: &'a Arc<World>, options: &'a LoadOptions) -> Self {
        Self {
            world,
            schedule: Schedule::new(options).peekable(),
            calls: JoinSet::new(),
            tally: Tally::new(options),
            start: clock::now(),
            arrivals_ended: None,
        }
    }

    fn is_cancelled(&self) -> bool {
        self.world.cancelled.is_cancelled()
    }

    /// When the next call is to be sent.
    fn due(&mut self) -> Option<Instant> {
        if self.is_cancelled() {
            return None;
        }
        self.schedule.peek().map(|arrival| self.start + arrival.at)
    }

    fn is_over(&mut self) -> bool {
        self.calls.is_empty() && self.due().is_none()
    }

    /// Sends every call whose time has come.
    fn launch_due(&mut self, each: &mut impl FnMut(EndedCall<'_>)) {
        while let Some(ended) = self.calls.try_join_next() {
            self.ended(ended, each);
        }
        let elapsed = self.elapsed();
        while let Some(arrival) = self.schedule.next_if(|arrival| arrival.at <= elapsed) {
            self.launch(arrival);
        }
        if self.schedule.peek().is_none() {
            self.arrivals_ended.get_or_insert(elapsed);
        }
    }

    fn launch(&mut self, arrival: Arrival) {
        let has_room = self.calls.len() < self.world.options.max_in_flight;
        self.tally.arrived(arrival.warm_up, has_room);
        if has_room {
            let scheduled = self.start + arrival.at;
            self.calls.spawn(call(Arc::clone(self.world), arrival, scheduled));
        }
    }

    fn ended(&mut self, ended: Result<CallRecord, tokio::task::JoinError>, each: &mut impl FnMut(EndedCall<'_>)) {
        let record = ended.expect("calls neither panic nor are aborted");
        each(record.told());
        self.tally.add(&record);
    }

    fn cancel(&mut self) {
        self.world.cancelled.cancel();
        let elapsed = self.elapsed();
        self.arrivals_ended.get_or_insert(elapsed);
    }

    fn elapsed(&self) -> Duration {
        clock::now().saturating_duration_since(self.start)
    }

    fn progress(&self) -> Progress {
        let options = &self.world.options;
        let (planned, planned_arrivals) = match options.limit {
            Limit::Duration(duration) => (Some(options.warm_up + duration), None),
            Limit::Count(count) => (None, Some(count)),
        };
        let so_far = self.tally.so_far();
        let elapsed = self.elapsed();
        Progress {
            elapsed,
            planned,
            planned_arrivals,
            warm_up: elapsed < options.warm_up,
            arrivals: so_far.arrivals,
            in_flight: self.calls.len(),
            succeeded: so_far.succeeded,
            failed: so_far.failed,
            not_sent: so_far.not_sent,
            attempts: so_far.attempts,
        }
    }

    fn finish(self) -> Report {
        let elapsed = self.elapsed();
        let options = &self.world.options;
        // A run of a set duration had it for arrivals, although its last arrival came one gap before the end.
        let arriving = match options.limit {
            Limit::Duration(duration) if !self.is_cancelled() => duration,
            _ => self.arrivals_ended.unwrap_or(elapsed).saturating_sub(options.warm_up),
        };
        let was_cancelled = self.is_cancelled();
        let counters = &self.world.pool.counters;
        let mut report = self.tally.finish(elapsed, arriving);
        report.was_cancelled = was_cancelled;
        report.connections_opened = counters.opened.load(Ordering::Relaxed);
        report.stale_connections = counters.stale.load(Ordering::Relaxed);
        report.local_limit_faults = counters.local_limits.load(Ordering::Relaxed);
        report
    }
}
