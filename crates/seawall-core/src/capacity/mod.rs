//! How much a deployment may have in flight.
//!
//! Four bounds, the smallest wins: what the operator told; a stated or assumed wait, during which nothing is sent, after
//! a throttle answer or where an answer has said that nothing is left ([`Allowance`]); a ceiling where the server itself
//! says that it keeps requests waiting ([`ServerLoad`]); and the window of a [`Discovery`], which learns from what happens
//! to attempts. A method is one file and one line in [`REGISTRY`]. Where a size is told there is nothing to discover:
//! then it is the first of the four, whatever the pool names.
//!
//! A window may err upwards: too small a one costs goodput in proportion, too large a one next to nothing until what is
//! in flight takes about as long to complete as a caller waits.
//!
//! So room inside a window may turn out to be none. Beside it stands what is *known* to fit: what was in flight when
//! the upstream last refused, and whatever was in flight together when an attempt was answered since. A request that
//! cannot be tried again after one more refusal takes only such a place; each attempt that is answered leaves one
//! behind.

mod aimd;
mod allowance;
mod ceiling;
mod first_byte;
mod hypotheses;
mod likelihood;
mod order;
mod pace;
mod server_line;
mod silence;
mod steps;

pub use allowance::{Allowance, Left, Sent};
pub use server_line::ServerLoad;

use crate::classify::AttemptEnd;
use crate::id::AttemptId;
use crate::protection::{Protection, Protections};
use crate::settings::Capacity;
use crate::time::{Duration, Instant};
use alloc::boxed::Box;
use allowance::Allowances;
use core::fmt::Debug;
use server_line::ServerLine;

/// The wait that is assumed after a throttle answer that states none.
pub const UNSTATED_WAIT: Duration = Duration::from_millis(100);

/// What was learned longer ago says nothing: within a day the same machines come back to the same load, and whoever
/// changes them does it more rarely than that; after a day without work nobody knows.
pub const OLDEST_MEMORY: Duration = Duration::from_hours(24);

/// What the deployment looks like while something happens to an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Now.
    pub now: Instant,
    /// Attempts in flight, a starting one included and an ending one not.
    pub in_flight: u32,
    /// Whether work waits that this deployment could take if it had room.
    pub waiting: bool,
    /// When its stated wait is over; in the past where there is none.
    pub closed_until: Instant,
}

/// How an attempt ended, as far as capacity is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The answer reached its end.
    Completed,
    /// The upstream refused it for want of capacity.
    Throttled,
    /// It was answered otherwise, or not at all.
    Failed,
    /// Nobody waits for it any more; the upstream may or may not go on with it.
    Abandoned,
}

impl From<AttemptEnd> for Ending {
    fn from(end: AttemptEnd) -> Self {
        match end {
            AttemptEnd::Completed => Self::Completed,
            AttemptEnd::Throttled { .. } => Self::Throttled,
            AttemptEnd::ClientFault
            | AttemptEnd::ContextExceeded
            | AttemptEnd::CredentialRefused
            | AttemptEnd::NotSent
            | AttemptEnd::StaleConnection
            | AttemptEnd::Failed
            | AttemptEnd::TimedOut
            | AttemptEnd::Truncated
            | AttemptEnd::StreamError => Self::Failed,
            AttemptEnd::DeadlinePassed | AttemptEnd::ClientGone => Self::Abandoned,
        }
    }
}

/// Learns how many attempts a deployment should have in flight. Deterministic: the same calls, the same window.
///
/// More than the window may be in flight: it may have come down, and observed requests and probes do not ask.
pub trait Discovery: Debug + Send {
    /// An attempt was sent.
    fn started(&mut self, _moment: Moment, _attempt: AttemptId) {}

    /// Its answer began. Not every attempt gets there, and for one whose answer does not stream it says little.
    fn first_byte(&mut self, _moment: Moment, _attempt: AttemptId) {}

    /// An attempt that had started is over.
    fn ended(&mut self, moment: Moment, attempt: AttemptId, how: Ending);

    /// The bound on attempts in flight, at least 1; `None`: none.
    fn limit(&self, now: Instant) -> Option<u32>;

    /// When the bound next rises although nothing happens. Later than `now`, where there is such a time.
    fn rises_at(&self, _now: Instant) -> Option<Instant> {
        None
    }

    /// What is worth remembering over a restart; `None` for a method that learns no window.
    fn learned(&self) -> Option<Learned> {
        None
    }

    /// Starts from what an earlier run has learned. It is where the search begins and nothing that is told: the next
    /// completions may correct it, in either direction.
    fn start_from(&mut self, _learned: Learned) {}
}

/// What a method has learned of a deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Learned {
    /// Attempts that it should have in flight, at least 1.
    pub window: u32,
    /// Whether anything has shown that this is large enough; else the method was still growing.
    pub is_proven: bool,
}

/// What is worth remembering of a deployment over a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remembered {
    /// What was learned.
    pub learned: Learned,
    /// How long ago the window was last at work: full while more waited, or refused.
    pub age: Duration,
}

/// What a method is told when it is made.
#[derive(Clone, Copy, Debug)]
pub struct Hints {
    /// How long callers wait, queue and service together, as far as that is known.
    pub patience: Duration,
    /// Which protections the pool has.
    pub protections: Protections,
}

/// A method of discovery that can be chosen by name.
#[derive(Clone, Copy)]
pub struct Entry {
    /// The name in the configuration.
    pub name: &'static str,
    /// What it does, in one line, for the reference page.
    pub summary: &'static str,
    /// Makes a fresh one.
    pub make: fn(Hints) -> Box<dyn Discovery>,
}

/// Every method of discovery; the first one is the default.
pub const REGISTRY: &[Entry] = &[
    Entry {
        name: "likelihood",
        summary: "the numbers of slots that explain when attempts completed, and a window a quarter above them",
        make: |hints| Box::new(likelihood::Likelihood::new(hints)),
    },
    Entry {
        name: "ceiling",
        summary: "no bound but, for a while after a refusal, what was in flight when it came",
        make: |_| Box::new(ceiling::Ceiling::default()),
    },
    Entry {
        name: "first_byte",
        summary: "for answers that stream, those that have begun and not ended are the slots; else `likelihood`",
        make: |hints| Box::new(first_byte::FirstByte::new(hints)),
    },
    Entry {
        name: "order",
        summary: "the age ranks of completions, with short tests at other windows where these say too little",
        make: |hints| Box::new(order::Order::new(hints)),
    },
    Entry {
        name: "aimd",
        summary: "grows by one, shrinks by a tenth when attempts take 2.5 times as long as at low load",
        make: |hints| Box::new(aimd::Aimd::new(hints)),
    },
];

/// The method of that name.
pub fn by_name(name: &str) -> Option<&'static Entry> {
    REGISTRY.iter().find(|entry| entry.name == name)
}

/// The capacity state of one deployment.
#[derive(Debug)]
pub struct CapacityState {
    told: Option<u32>,
    in_flight: u32,
    closed_until: Instant,
    /// Whether a throttle answer, or one that says that nothing is left, closes it.
    keeps_waits: bool,
    allowances: Allowances,
    /// The most in flight that is known to fit; `None` where it has never refused.
    known: Option<u32>,
    /// How old what is learned was at some time; `None`: nothing is learned yet.
    learned_at: Option<(Instant, Duration)>,
    /// `None` where nothing is to be found out.
    line: Option<ServerLine>,
    discovery: Box<dyn Discovery>,
}

impl CapacityState {
    /// Nothing in flight, nothing learned. `discovery`: a name from [`REGISTRY`]; the default where there is no such.
    pub fn new(capacity: Capacity, discovery: &str, hints: Hints) -> Self {
        let told = capacity.size();
        let chosen = if told.is_some() { by_name("ceiling") } else { by_name(discovery) };
        let is_on = hints.protections.has(Protection::CapacityDiscovery);
        let discovery: Box<dyn Discovery> =
            if is_on { (chosen.unwrap_or(&REGISTRY[0]).make)(hints) } else { Box::new(Unbounded) };
        let keeps_waits = hints.protections.has(Protection::StatedWaits);
        Self {
            told,
            in_flight: 0,
            closed_until: Instant::ZERO,
            keeps_waits,
            allowances: Allowances::default(),
            known: None,
            learned_at: None,
            line: is_on.then(ServerLine::default),
            discovery,
        }
    }

    /// Whether its size was told.
    pub const fn is_told(&self) -> bool {
        self.told.is_some()
    }

    /// Attempts in flight.
    pub const fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// When its stated wait is over, or something is left again; in the past where neither closes it.
    pub fn closed_until(&self) -> Instant {
        self.closed_with(self.in_flight)
    }

    fn closed_with(&self, in_flight: u32) -> Instant {
        self.closed_until.max(self.allowances.opens_at(in_flight))
    }

    /// The bound on attempts in flight at `now`, where there is one.
    pub fn limit(&self, now: Instant) -> Option<u32> {
        let line = self.line.and_then(|line| line.limit(now));
        [self.found(now), line].into_iter().flatten().min()
    }

    /// The bound without what the server itself says.
    fn found(&self, now: Instant) -> Option<u32> {
        [self.told, self.discovery.limit(now)].into_iter().flatten().min()
    }

    /// Whether one more attempt may start now.
    pub fn has_room(&self, now: Instant) -> bool {
        self.takes(now, self.in_flight)
    }

    /// Whether one more attempt might start now if `in_flight` were there.
    pub fn takes(&self, now: Instant, in_flight: u32) -> bool {
        now >= self.closed_with(in_flight) && self.limit(now).is_none_or(|limit| in_flight < limit)
    }

    /// Whether so many in flight and one more are known to fit.
    ///
    /// One alone always is: nothing else in flight could ever prove its place.
    pub fn is_known_to_take(&self, in_flight: u32) -> bool {
        in_flight == 0 || self.known.is_none_or(|known| in_flight < known)
    }

    /// When room may appear without an attempt ending: the end of a stated wait, or the next rise of the window.
    ///
    /// Always later than `now`.
    pub fn opens_at(&self, now: Instant) -> Option<Instant> {
        let closed_until = self.closed_until();
        if closed_until > now {
            return Some(closed_until);
        }
        let told_has_room = self.told.is_none_or(|told| self.in_flight < told);
        let window_is_full = self.discovery.limit(now).is_some_and(|limit| self.in_flight >= limit);
        let rises_at = self.discovery.rises_at(now).filter(|_| window_is_full);
        let line = self.line.filter(|line| line.limit(now).is_some_and(|limit| self.in_flight >= limit));
        let times = [rises_at, line.and_then(|line| line.ends_at(now))].into_iter().flatten();
        times.filter(|at| *at > now && told_has_room).min()
    }

    /// An attempt started. `waiting`: whether work still waits that could go here.
    pub fn started(&mut self, now: Instant, attempt: AttemptId, waiting: bool) {
        self.in_flight += 1;
        self.discovery.started(self.moment(now, waiting), attempt);
    }

    /// Counts what an attempt that started takes of the upstream's limits. `tokens`: what it is thought to need; only asked
    /// where they are limited. What is returned goes with the attempt.
    pub fn counts(&mut self, now: Instant, tokens: impl FnOnce() -> u64) -> Sent {
        self.allowances.send(now, tokens)
    }

    /// The answer to the attempt that was counted as `sent` says how much is left. Whether that is heeded.
    pub fn allows(&mut self, now: Instant, sent: Sent, allowance: Allowance) -> bool {
        if self.keeps_waits {
            self.allowances.tell(now, sent, allowance);
        }
        self.keeps_waits
    }

    /// The attempt that was counted as `sent` was served.
    pub fn served(&mut self, now: Instant, sent: Sent) {
        self.allowances.serve(now, sent);
    }

    /// The server itself says how much it has to do.
    pub fn tells(&mut self, now: Instant, load: ServerLoad) {
        let limit = self.found(now);
        if let Some(line) = &mut self.line {
            line.tell(now, load, self.in_flight, limit);
        }
    }

    /// The answer of an attempt began.
    pub fn first_byte(&mut self, now: Instant, attempt: AttemptId, waiting: bool) {
        self.known = self.known.map(|known| known.max(self.in_flight));
        self.discovery.first_byte(self.moment(now, waiting), attempt);
    }

    /// An attempt ended, and how.
    pub fn ended(&mut self, now: Instant, attempt: AttemptId, waiting: bool, end: AttemptEnd) {
        if end == AttemptEnd::Completed {
            self.known = self.known.map(|known| known.max(self.in_flight));
        }
        if matches!(end, AttemptEnd::Throttled { .. }) || (end == AttemptEnd::Completed && waiting && self.is_full(now))
        {
            self.learned_at = Some((now, Duration::ZERO));
        }
        self.in_flight = self.in_flight.saturating_sub(1);
        if matches!(end, AttemptEnd::Throttled { .. }) {
            self.known = Some(self.in_flight);
        }
        if let AttemptEnd::Throttled { wait } = end
            && self.keeps_waits
        {
            self.closed_until = self.closed_until.max(now + wait.unwrap_or(UNSTATED_WAIT));
            if wait.is_some() {
                self.allowances.forget();
            }
        }
        self.discovery.ended(self.moment(now, waiting), attempt, Ending::from(end));
    }

    /// What is worth remembering over a restart, where there is something: a window that was never at work says nothing.
    pub fn learned(&self, now: Instant) -> Option<Remembered> {
        let (at, age) = self.learned_at?;
        self.discovery.learned().map(|learned| Remembered { learned, age: age + now.since(at) })
    }

    /// Starts from what an earlier run has learned, unless that is older than [`OLDEST_MEMORY`] or something has been
    /// learned already. A told size needs none. Returns whether it does.
    pub fn remember(&mut self, now: Instant, remembered: Remembered) -> bool {
        let Remembered { learned, age } = remembered;
        let is_of_use = age <= OLDEST_MEMORY && self.learned_at.is_none() && self.discovery.learned().is_some();
        if is_of_use {
            self.learned_at = Some((now, age));
            self.discovery.start_from(Learned { window: learned.window.max(1), ..learned });
        }
        is_of_use
    }

    /// Whether nearly all of the window is in flight.
    fn is_full(&self, now: Instant) -> bool {
        let least = |limit: u32| u64::from(limit) * 4;
        self.discovery.limit(now).is_some_and(|limit| u64::from(self.in_flight) * 5 >= least(limit))
    }

    const fn moment(&self, now: Instant, waiting: bool) -> Moment {
        Moment { now, in_flight: self.in_flight, waiting, closed_until: self.closed_until }
    }
}

/// No bound, where discovery is switched off.
#[derive(Debug)]
struct Unbounded;

impl Discovery for Unbounded {
    fn ended(&mut self, _moment: Moment, _attempt: AttemptId, _how: Ending) {}

    fn limit(&self, _now: Instant) -> Option<u32> {
        None
    }
}

#[cfg(test)]
mod tests;
