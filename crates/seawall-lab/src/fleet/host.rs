//! Runs one engine in real time: a task that sleeps until the engine's next event, and a ticket for each job.

use crate::clock::Clock;
use seawall_model::engine::{Engine, EngineSettings, Event, EventKind, Job, JobId, Refusal, Snapshot, Submitted};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::{Notify, watch};

/// How far a job has come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    pub(super) tokens: u32,
    pub(super) finished: bool,
}

struct Inner {
    engine: Engine,
    watchers: BTreeMap<JobId, watch::Sender<Progress>>,
}

/// One engine, shared by its connections and its driver task.
pub(super) struct EngineHost {
    inner: Mutex<Inner>,
    wake: Notify,
    clock: Clock,
}

impl EngineHost {
    pub(super) fn new(settings: EngineSettings, clock: Clock) -> Arc<Self> {
        let inner = Inner { engine: Engine::new(settings), watchers: BTreeMap::new() };
        Arc::new(Self { inner: Mutex::new(inner), wake: Notify::new(), clock })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("no code panics while it holds the engine")
    }

    /// Hands a job to the engine. The ticket cancels the job when it is dropped before the end.
    pub(super) fn submit(self: &Arc<Self>, job: Job) -> Result<Ticket, Refusal> {
        let mut inner = self.lock();
        match inner.engine.submit(self.clock.now(), job) {
            Submitted::Refused(refusal) => Err(refusal),
            Submitted::Accepted(id) => {
                let (sender, progress) = watch::channel(Progress::default());
                inner.watchers.insert(id, sender);
                drop(inner);
                self.wake.notify_one();
                Ok(Ticket { host: Arc::clone(self), id, progress, done: false })
            }
        }
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        self.lock().engine.snapshot()
    }

    /// Changes how many sequences run at the same time, from now on.
    pub(super) fn set_slots(&self, slots: u32) {
        self.lock().engine.set_slots(self.clock.now(), slots);
        self.wake.notify_one();
    }

    /// Changes the speed from now on, in millionths of the full one.
    pub(super) fn set_capacity_ppm(&self, ppm: u32) {
        self.lock().engine.set_capacity_ppm(self.clock.now(), ppm);
        self.wake.notify_one();
    }

    /// Tells the waiting requests what happened, for as long as the process runs or the task is dropped.
    pub(super) async fn drive(self: Arc<Self>) {
        loop {
            let next = self.lock().step(self.clock.now());
            match next {
                None => self.wake.notified().await,
                Some(at) => tokio::select! {
                    () = self.wake.notified() => {}
                    () = tokio::time::sleep_until(self.clock.to_tokio(at)) => {}
                },
            }
        }
    }
}

impl Inner {
    fn step(&mut self, now: u64) -> Option<u64> {
        for Event { job, kind, .. } in self.engine.advance(now) {
            match kind {
                EventKind::Finished { .. } => {
                    if let Some(watcher) = self.watchers.remove(&job) {
                        watcher.send_modify(|progress| progress.finished = true);
                    }
                }
                EventKind::FirstToken | EventKind::Tokens(_) => {
                    if let Some(watcher) = self.watchers.get(&job) {
                        let tokens = if let EventKind::Tokens(tokens) = kind { tokens } else { 1 };
                        watcher.send_modify(|progress| progress.tokens = progress.tokens.max(tokens));
                    }
                }
            }
        }
        self.engine.next_event()
    }
}

/// A job of one request.
pub(super) struct Ticket {
    host: Arc<EngineHost>,
    id: JobId,
    progress: watch::Receiver<Progress>,
    done: bool,
}

impl Ticket {
    /// Waits until the job has more than `tokens` tokens, or has ended.
    pub(super) async fn beyond(&mut self, tokens: u32) -> Progress {
        let seen = self.progress.wait_for(|progress| progress.finished || progress.tokens > tokens).await;
        // The sender goes with the finish; a value without it cannot come, as the watcher leaves only by the ticket.
        let progress = seen.map_or(Progress { tokens, finished: true }, |progress| *progress);
        self.done = progress.finished;
        progress
    }

    /// Waits until the job has ended.
    pub(super) async fn finished(&mut self) {
        self.beyond(u32::MAX).await;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.done {
            let mut inner = self.host.lock();
            inner.watchers.remove(&self.id);
            inner.engine.cancel(self.host.clock.now(), self.id);
            drop(inner);
            self.host.wake.notify_one();
        }
    }
}
