//! Owns the engine: the only caller of `handle` and `poll`, and the owner of its timer.
//!
//! One standard mutex for the process, held for one input and its outputs, never over an await. What the engine says
//! to a request is sent to the task that waits for it, what it says to a flight is put into that one's letter box. A
//! poisoned lock ends the process: a policy engine in an unknown state must not route.

use crate::clock::Clock;
use crate::flight::Flight;
use crate::notices::Notices;
use seawall_core::Engine;
use seawall_core::capacity::Remembered;
use seawall_core::engine::{Arrival, Input, Output, PoolView, Respond, Settled};
use seawall_core::id::{DeploymentId, RequestId};
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
    /// Who waits for the engine's last word on a request.
    waiting: HashMap<RequestId, oneshot::Sender<Respond>>,
    /// What can be joined, or has to be told of an attempt.
    flights: HashMap<RequestId, Arc<Flight>>,
    armed: Option<Instant>,
}

/// How an arrival goes on.
#[derive(Debug)]
pub struct Arrived {
    /// The flight that it joins; `None`: its own.
    pub joined: Option<Arc<Flight>>,
    /// The engine's last word on it comes here.
    pub told: oneshot::Receiver<Respond>,
}

/// Flights of the process.
#[derive(Clone, Copy, Debug)]
pub struct FlightCounts {
    /// Those that wait or run.
    pub live: usize,
    /// Complete answers that are kept for a client to come back.
    pub kept: usize,
}

impl Driver {
    /// A driver around a fresh engine with the random stream of `seed`; replicas must differ in it, or their jitter is
    /// none.
    pub fn new(settings: &Settings, seed: u64, notices: Notices) -> Arc<Self> {
        let clock = Clock::start();
        let engine = Engine::new(clock.now(), &Settings { seed, ..settings.clone() });
        Arc::new(Self {
            state: Mutex::new(State { engine, waiting: HashMap::new(), flights: HashMap::new(), armed: None }),
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

    /// Tells the engine of a request, and of the flight that it begins unless it joins another one.
    pub fn arrive(&self, arrival: Arrival, flight: &Arc<Flight>) -> Arrived {
        let request = arrival.request;
        let (sender, told) = oneshot::channel();
        let mut state = self.lock();
        state.waiting.insert(request, sender);
        state.flights.insert(request, Arc::clone(flight));
        let joined = self.step(&mut state, Input::Arrived(arrival));
        if joined.is_some() || !state.waiting.contains_key(&request) {
            state.flights.remove(&request);
        }
        Arrived { joined, told }
    }

    /// Gives the engine an input.
    pub fn tell(&self, input: Input) {
        let mut state = self.lock();
        self.step(&mut state, input);
    }

    /// Gives the engine inputs that belong together.
    pub fn tell_all(&self, inputs: impl IntoIterator<Item = Input>) {
        let mut state = self.lock();
        for input in inputs {
            self.step(&mut state, input);
        }
    }

    /// What is settled, for each model and tenant.
    pub fn settled(&self) -> Vec<Settled> {
        self.lock().engine.settled()
    }

    /// What is learned of capacities and worth remembering over a restart.
    pub fn learned(&self) -> Vec<(DeploymentId, Remembered)> {
        self.lock().engine.learned(self.clock.now())
    }

    /// Starts a deployment from what an earlier run has learned of it. Returns whether it does.
    pub fn remember(&self, deployment: DeploymentId, remembered: Remembered) -> bool {
        self.lock().engine.remember(self.clock.now(), deployment, remembered)
    }

    /// Tells the engine that the process goes away.
    pub fn drain(&self) {
        let mut state = self.lock();
        self.step(&mut state, Input::Drain);
    }

    /// Every pool as it stands.
    pub fn view(&self) -> Vec<PoolView> {
        self.lock().engine.view(self.clock.now())
    }

    /// Requests that have not ended.
    pub fn live(&self) -> usize {
        self.lock().engine.live()
    }

    /// Flights by what they are.
    pub fn flights(&self) -> FlightCounts {
        let state = self.lock();
        let live = state.engine.flights();
        FlightCounts { live, kept: state.flights.len().saturating_sub(live) }
    }

    /// Ends all flights: the process goes away.
    pub fn abandon(&self) {
        let flights: Vec<Arc<Flight>> = std::mem::take(&mut self.lock().flights).into_values().collect();
        for flight in flights {
            flight.abandon();
        }
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
                    self.step(&mut state, Input::Tick);
                }
                () = self.timer.notified() => {}
            }
        }
    }

    /// One input and its outputs. Returns the flight that somebody joined: only an arrival does, and it is that.
    fn step(&self, state: &mut State, input: Input) -> Option<Arc<Flight>> {
        state.engine.handle(self.clock.now(), input);
        let mut joined = None;
        while let Some(output) = state.engine.poll() {
            match output {
                Output::Notice(notice) => self.notices.take(notice),
                Output::Join(join) => joined = state.flights.get(&join.flight).cloned(),
                Output::Respond(respond) => {
                    if let Some(waiter) = state.waiting.remove(&respond.request) {
                        // A task that is gone reports its client's departure itself.
                        let _ = waiter.send(respond);
                    }
                }
                Output::Dispatch(dispatch) => {
                    if let Some(flight) = state.flights.get(&dispatch.permit.request()) {
                        flight.mail.dispatch(dispatch);
                    }
                }
                Output::Cancel(flight) => {
                    if let Some(flight) = state.flights.get(&flight) {
                        flight.mail.cancel();
                    }
                }
                Output::Forget(flight) => {
                    if let Some(flight) = state.flights.remove(&flight) {
                        flight.mail.forget();
                    }
                }
            }
        }
        let next = state.engine.next_deadline();
        if next != state.armed {
            state.armed = next;
            self.timer.notify_one();
        }
        joined
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|_| {
            tracing::error!("the engine panicked: its state is unknown and must not route, the process ends");
            std::process::abort()
        })
    }
}
