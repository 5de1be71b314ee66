//! One process of Seawall: an engine of its own, the line of what it has to handle, and the bound of its memory.
//!
//! It handles one request after the other, like an instance of the naive router. A request that does not fit into its
//! memory is refused at the gate, which costs a part of a request's time and waits its turn in the same line. A tenth of
//! the memory is kept for such refusals, so that they never push it over its bound; where even that is taken, the
//! connection is not accepted, which costs nothing. So everything that it holds is counted, and it never crashes.

use crate::Nanos;
use crate::slab::{Place, Slab};
use seawall_core::Engine;
use seawall_core::random::Random;
use seawall_core::settings::Settings;
use seawall_core::time::Instant;
use std::collections::VecDeque;

/// What it holds of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It waits to be handled.
    Arrived,
    /// It waits to be refused.
    Refused,
    /// The engine has it.
    Admitted,
}

/// Where the gate lets a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gate {
    /// In.
    Open,
    /// In, to be refused.
    Full,
    /// Not even that: the connection is not accepted.
    Shut,
}

#[derive(Debug)]
pub(super) struct Replica {
    pub(super) engine: Engine,
    /// The dice of the gate's own refusals.
    pub(super) random: Random,
    line: VecDeque<Place>,
    serving: Option<Place>,
    /// Requests that it holds to serve them.
    accepted: usize,
    /// Requests that it holds to refuse them.
    refused: usize,
    /// Attempts that it has in flight.
    pub(super) running: usize,
    /// Requests that waited in its engine when last looked at.
    pub(super) waiting: usize,
    /// When its timer is set for.
    armed: Option<Nanos>,
}

impl Replica {
    /// A process that begins now.
    pub(super) fn new(now: Nanos, settings: &Settings, seed: u64) -> Self {
        Self {
            engine: Engine::new(Instant::from_nanos(now), &Settings { seed, ..settings.clone() }),
            random: Random::new(seed ^ 1),
            line: VecDeque::new(),
            serving: None,
            accepted: 0,
            refused: 0,
            running: 0,
            waiting: 0,
            armed: None,
        }
    }

    /// What the gate does with one more request when the memory holds so many.
    pub(super) fn gate(&self, memory: usize) -> Gate {
        let for_refusals = memory / 10;
        if self.accepted < memory - for_refusals {
            Gate::Open
        } else if self.refused < for_refusals {
            Gate::Full
        } else {
            Gate::Shut
        }
    }

    /// Takes a request into its line.
    pub(super) fn take<T>(&mut self, place: Place, stage: Stage, all: &Slab<T>) {
        *self.held(stage) += 1;
        self.line.push_back(place);
        if self.line.len() > 2 * (self.accepted + self.refused) + 16 {
            // Those whose callers have left take no room.
            self.line.retain(|place| all.get(*place).is_some());
        }
    }

    /// A request that it held is over.
    pub(super) fn release(&mut self, stage: Stage) {
        *self.held(stage) -= 1;
    }

    const fn held(&mut self, stage: Stage) -> &mut usize {
        match stage {
            Stage::Refused => &mut self.refused,
            Stage::Arrived | Stage::Admitted => &mut self.accepted,
        }
    }

    /// Begins with the next request of the line, if it is idle; `None`: there is nothing to begin with.
    pub(super) fn begin<T>(&mut self, all: &Slab<T>) -> Option<Place> {
        if self.serving.is_some() {
            return None;
        }
        while let Some(place) = self.line.pop_front() {
            if all.get(place).is_some() {
                self.serving = Some(place);
                return self.serving;
            }
        }
        None
    }

    /// Ends what it began with. The request may be over by now.
    pub(super) fn done(&mut self) -> Option<Place> {
        self.serving.take()
    }

    /// When its timer has to be set for, where it is not set for that time or an earlier one already.
    pub(super) fn arm(&mut self) -> Option<Nanos> {
        let next = self.engine.next_deadline()?.as_nanos();
        if self.armed.is_some_and(|armed| armed <= next) {
            return None;
        }
        self.armed = Some(next);
        self.armed
    }

    /// Its timer rang: it is set no more, unless that was one of an earlier setting.
    pub(super) fn rang(&mut self, now: Nanos) {
        if self.armed.is_some_and(|armed| armed <= now) {
            self.armed = None;
        }
    }

    /// Whether a deadline of its engine has come.
    pub(super) fn is_due(&self, now: Nanos) -> bool {
        self.engine.next_deadline().is_some_and(|at| at.as_nanos() <= now)
    }
}
