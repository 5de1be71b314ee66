//! What the driver tells a flight, and who is woken by it.
//!
//! Its lock is a leaf: it is taken under the engine's and under the flight's, and nothing is called while it is held
//! but wakers. It is the waker of all that the flight does, too: who is waiting may be a client that takes nothing
//! more, and its connection would sleep on what it is woken for. So everybody is.

use crate::upstream::attempt::Failure;
use seawall_core::engine::Dispatch;
use seawall_core::id::DeploymentId;
use seawall_core::permit::Payment;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// The letter box of a flight.
#[derive(Debug, Default)]
pub struct Mail {
    state: Mutex<State>,
}

/// An attempt that is being made.
#[derive(Debug, Clone, Copy)]
pub struct Made {
    /// Where.
    pub deployment: DeploymentId,
    /// Its number in the flight, from 1.
    pub number: u32,
    /// What paid for it.
    pub payment: Payment,
}

impl Made {
    /// What a dispatch says.
    pub fn of(dispatch: &Dispatch) -> Self {
        let permit = &dispatch.permit;
        Self { deployment: permit.deployment(), number: permit.number(), payment: permit.payment() }
    }
}

#[derive(Debug, Default)]
struct State {
    dispatch: Option<Dispatch>,
    /// The attempt, from its dispatch to its end.
    at: Option<Made>,
    failure: Option<Arc<Failure>>,
    cancelled: bool,
    forgotten: bool,
    /// Who waits for something to happen, by the number of its reader.
    wakers: BTreeMap<u64, Waker>,
}

impl Mail {
    /// An attempt to make.
    pub fn dispatch(&self, dispatch: Dispatch) {
        let mut state = self.lock();
        state.at = Some(Made::of(&dispatch));
        state.dispatch = Some(dispatch);
        wake(state);
    }

    /// Nobody waits for the attempt any more: it ends.
    pub fn cancel(&self) {
        let mut state = self.lock();
        state.cancelled = true;
        wake(state);
    }

    /// Nothing more will come.
    pub fn forget(&self) {
        let mut state = self.lock();
        state.forgotten = true;
        wake(state);
    }

    /// Whether the attempt is to end.
    pub fn is_cancelled(&self) -> bool {
        self.lock().cancelled
    }

    /// Waits for the next attempt to make; `None`: there is none any more. Whoever polls this is registered already.
    pub async fn next(&self) -> Option<Dispatch> {
        std::future::poll_fn(|_| {
            let mut state = self.lock();
            match state.dispatch.take() {
                Some(dispatch) => Poll::Ready(Some(dispatch)),
                None if state.forgotten => Poll::Ready(None),
                None => Poll::Pending,
            }
        })
        .await
    }

    /// The attempt that is being made.
    pub fn made(&self) -> Option<Made> {
        self.lock().at
    }

    /// The attempt has ended; returns which it was. `None`: its end has been told already.
    pub fn ended(&self) -> Option<Made> {
        self.lock().at.take()
    }

    /// The attempt has ended in this.
    pub fn failed(&self, failure: Failure) {
        let mut state = self.lock();
        state.at = None;
        state.failure = Some(Arc::new(failure));
    }

    /// How the last attempt that failed did so.
    pub fn failure(&self) -> Option<Arc<Failure>> {
        self.lock().failure.clone()
    }

    /// Wakes this reader when something happens.
    pub fn register(&self, reader: u64, context: &Context<'_>) {
        let mut state = self.lock();
        let waker = context.waker();
        match state.wakers.get_mut(&reader) {
            Some(known) => known.clone_from(waker),
            None => drop(state.wakers.insert(reader, waker.clone())),
        }
    }

    /// This reader is gone.
    pub fn unregister(&self, reader: u64) {
        self.lock().wakers.remove(&reader);
    }

    /// Wakes everybody but the reader that has made it happen.
    pub fn wake_others(&self, reader: u64) {
        let mut state = self.lock();
        if state.wakers.keys().any(|other| *other != reader) {
            let own = state.wakers.remove(&reader);
            let others = std::mem::take(&mut state.wakers);
            state.wakers.extend(own.map(|own| (reader, own)));
            drop(state);
            others.into_values().for_each(Waker::wake);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wake(mut state: MutexGuard<'_, State>) {
    let all = std::mem::take(&mut state.wakers);
    drop(state);
    all.into_values().for_each(Waker::wake);
}

impl Wake for Mail {
    fn wake(self: Arc<Self>) {
        wake(self.lock());
    }

    fn wake_by_ref(self: &Arc<Self>) {
        wake(self.lock());
    }
}
