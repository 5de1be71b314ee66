//! Owns the engine: the only caller of `handle` and `poll`, and the owner of its timer.
//!
//! One standard mutex for the process, held for one input and its outputs, never over an await. An output for the
//! request that is asking is returned; the others are handed to the tasks that wait for them. A poisoned lock ends the
//! process: a policy engine in an unknown state must not route.

use crate::clock::Clock;
use crate::notices::Notices;
use seawall_core::Engine;
use seawall_core::engine::{Input, Output, PoolView};
use seawall_core::id::RequestId;
use seawall_core::settings::Settings;
use seawall_core::time::Instant;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::{Notify, oneshot};

/// The engine behind its lock, with its clock.
#[derive(Debug)]
pub struct Driver {
    state: Mutex<State>,
    timer: Notify,
    /// The clock that every input is stamped with.
    pub clock: Clock,
    next_request: AtomicU64,
    notices: Notices,
}

#[derive(Debug)]
struct State {
    engine: Engine,
    waiting: HashMap<RequestId, oneshot::Sender<Output>>,
    armed: Option<Instant>,
}

/// The engine's answer to an input.
#[derive(Debug)]
pub enum Reply {
    /// Do this now.
    Now(Output),
    /// It will be told later; a closed channel means that the request has ended by other means.
    Later(oneshot::Receiver<Output>),
}

impl Driver {
    /// A driver around a fresh engine with the random stream of `seed`; replicas must differ in it, or their jitter is
    /// none.
    pub fn new(settings: &Settings, seed: u64, notices: Notices) -> Arc<Self> {
        let clock = Clock::start();
        let engine = Engine::new(clock.now(), &Settings { seed, ..settings.clone() });
        Arc::new(Self {
            state: Mutex::new(State { engine, waiting: HashMap::new(), armed: None }),
            timer: Notify::new(),
            clock,
            next_request: AtomicU64::new(1),
            notices,
        })
    }

    /// A fresh request id.
    pub fn next_request(&self) -> RequestId {
        RequestId(self.next_request.fetch_add(1, Ordering::Relaxed))
    }

    /// Gives the engine an input that this request expects an answer to.
    pub fn ask(&self, request: RequestId, input: Input) -> Reply {
        let mut state = self.lock();
        if let Some(output) = self.step(&mut state, input, Some(request)) {
            return Reply::Now(output);
        }
        let (sender, receiver) = oneshot::channel();
        state.waiting.insert(request, sender);
        Reply::Later(receiver)
    }

    /// Gives the engine an input that ends `request`, or that needs no answer. Returns what it says to that request.
    pub fn tell(&self, request: RequestId, input: Input) -> Option<Output> {
        let mut state = self.lock();
        if matches!(input, Input::ClientGone(_)) {
            state.waiting.remove(&request);
        }
        self.step(&mut state, input, Some(request))
    }

    /// Tells the engine that the process goes away.
    pub fn drain(&self) {
        let mut state = self.lock();
        self.step(&mut state, Input::Drain, None);
    }

    /// Every pool as it stands.
    pub fn view(&self) -> Vec<PoolView> {
        self.lock().engine.view(self.clock.now())
    }

    /// Requests that have not ended.
    pub fn live(&self) -> usize {
        self.lock().engine.live()
    }

    /// Runs the engine's timer; never returns.
    pub async fn run_timer(self: Arc<Self>) {
        loop {
            let next = self.lock().engine.next_deadline();
            let Some(at) = next else {
                self.timer.notified().await;
                continue;
            };
            tokio::select! {
                () = tokio::time::sleep_until(self.clock.to_tokio(at)) => {
                    let mut state = self.lock();
                    self.step(&mut state, Input::Tick, None);
                }
                () = self.timer.notified() => {}
            }
        }
    }

    fn step(&self, state: &mut State, input: Input, own: Option<RequestId>) -> Option<Output> {
        state.engine.handle(self.clock.now(), input);
        let mut answer = None;
        while let Some(output) = state.engine.poll() {
            match output.request() {
                None => {
                    if let Output::Notice(notice) = output {
                        self.notices.take(notice);
                    }
                }
                Some(request) if own == Some(request) => answer = Some(output),
                Some(request) => {
                    // A task that is gone reports its client's departure itself.
                    if let Some(waiter) = state.waiting.remove(&request) {
                        drop(waiter.send(output));
                    }
                }
            }
        }
        let next = state.engine.next_deadline();
        if next != state.armed {
            state.armed = next;
            self.timer.notify_one();
        }
        answer
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|_| {
            tracing::error!("the engine panicked: its state is unknown and must not route, the process ends");
            std::process::abort()
        })
    }
}
