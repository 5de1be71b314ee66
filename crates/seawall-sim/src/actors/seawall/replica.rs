//! One process of Seawall: an engine of its own, the line of what it has to handle, and the bound of its memory.
//!
//! It handles one request after the other, like an instance of the naive router. A request that does not fit into its
//! memory is refused at the gate, which costs a part of a request's time and waits its turn in the same line. A tenth of
//! the memory is kept for such refusals, so that they never push it over its bound; where even that is taken, the
//! connection is not accepted, which costs nothing. So everything that it holds is counted, and it never crashes.

use super::watch::Watch;
use crate::Nanos;
use crate::checkers::Turn;
use crate::slab::{Place, Slab};
use seawall_core::Engine;
use seawall_core::id::DeploymentId;
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
    /// Requests that it holds, by stage: those that wait to be handled, those that wait to be refused, and those that
    /// its engine has.
    arrived: usize,
    refused: usize,
    admitted: usize,
    /// Attempts that it has in flight.
    pub(super) running: usize,
    /// Requests that waited in its engine when last looked at.
    pub(super) was_waiting: usize,
    /// When its timer is set for.
    armed: Option<Nanos>,
    pub(super) watch: Watch,
}

impl Replica {
    /// A process that begins now.
    pub(super) fn new(now: Nanos, settings: &Settings, seed: u64) -> Self {
        Self {
            engine: Engine::new(Instant::from_nanos(now), &Settings { seed, ..settings.clone() }),
            random: Random::new(seed ^ 1),
            line: VecDeque::new(),
            serving: None,
            arrived: 0,
            refused: 0,
            admitted: 0,
            running: 0,
            was_waiting: 0,
            armed: None,
            watch: Watch::new(settings),
        }
    }

    /// What the gate does with one more request when the memory holds so many.
    pub(super) fn gate(&self, memory: usize) -> Gate {
        let for_refusals = memory / 10;
        if self.arrived + self.admitted < memory - for_refusals {
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
        if self.line.len() > 2 * self.holds() + 16 {
            // Those whose callers have left take no room.
            self.line.retain(|place| all.get(*place).is_some());
        }
    }

    /// A request that it held is over.
    pub(super) fn release(&mut self, stage: Stage) {
        *self.held(stage) -= 1;
    }

    /// A request has been handled and goes to the engine.
    pub(super) fn admit(&mut self) {
        self.arrived -= 1;
        self.admitted += 1;
    }

    /// How many requests it holds.
    pub(super) const fn holds(&self) -> usize {
        self.arrived + self.refused + self.admitted
    }

    const fn held(&mut self, stage: Stage) -> &mut usize {
        match stage {
            Stage::Arrived => &mut self.arrived,
            Stage::Refused => &mut self.refused,
            Stage::Admitted => &mut self.admitted,
        }
    }

    /// Requests that wait in its engine.
    pub(super) fn waiting(&self) -> usize {
        self.engine.flights() - self.running
    }

    /// What the checkers see after all that was due has been done.
    pub(super) fn look(&mut self, now: Nanos, settings: &Settings) -> Option<String> {
        let Self { watch, engine, admitted, running, .. } = self;
        watch.look(Instant::from_nanos(now), settings, engine, *admitted, *running)
    }

    /// What they see when a request is let go.
    pub(super) fn goes(&mut self, now: Nanos, turn: Turn, to: DeploymentId) -> Option<String> {
        let seen = self.watch.goes(Instant::from_nanos(now), turn, &self.engine, to);
        self.watch.leaves(turn);
        seen
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
