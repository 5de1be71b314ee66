//! Routing: which deployments are eligible, then which one of them.
//!
//! A policy is one file and one line in [`REGISTRY`]; the conformance suite runs over all of them.

mod least_request;
mod p2c;
mod peak_ewma;
mod priority;
mod round_robin;
mod weighted;

use crate::id::DeploymentId;
use crate::random::Random;
use alloc::boxed::Box;

/// A deployment that may take the request: it is permitted, healthy enough and has room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Which one.
    pub deployment: DeploymentId,
    /// Attempts in flight there.
    pub in_flight: u32,
    /// Its configured weight, at least 1.
    pub weight: u32,
    /// Its priority group; the lowest goes first.
    pub priority_group: u32,
    /// Whether its capacity is reserved and so used first.
    pub provisioned: bool,
    /// The share of its normal traffic it should get now, 1 to 100 (slow start).
    pub share_percent: u32,
    /// Its peak-sensitive latency average in nanoseconds; 0 where unknown.
    pub latency_nanos: u64,
}

impl Candidate {
    /// Weight under slow start, at least 1, in hundredths.
    fn effective_weight(&self) -> u64 {
        u64::from(self.weight.max(1)) * u64::from(self.share_percent.clamp(1, 100))
    }

    /// Load per effective weight, as a fraction that compares without division: `(in flight + 1) / weight`.
    fn lighter_than(&self, other: &Self) -> core::cmp::Ordering {
        let mine = self.next_in_flight() * u128::from(other.effective_weight());
        let theirs = other.next_in_flight() * u128::from(self.effective_weight());
        mine.cmp(&theirs)
    }

    /// Attempts in flight once this pick is made.
    fn next_in_flight(&self) -> u128 {
        u128::from(self.in_flight) + 1
    }
}

/// Picks one of the candidates. Deterministic for the same sequence of calls and the same random stream.
pub trait RoutingPolicy: core::fmt::Debug + Send {
    /// The index in `candidates` of the pick. `candidates` is never empty, and is in the order of the configuration.
    fn pick(&mut self, candidates: &[Candidate], random: &mut Random) -> usize;
}

/// A policy that can be chosen by name.
#[derive(Clone, Copy)]
pub struct Entry {
    /// The name in the configuration.
    pub name: &'static str,
    /// What it does, in one line, for the reference page.
    pub summary: &'static str,
    /// Makes a fresh one.
    pub make: fn() -> Box<dyn RoutingPolicy>,
}

/// Every routing policy; the first one is the default.
pub const REGISTRY: &[Entry] = &[
    Entry {
        name: "priority",
        summary: "lowest priority group first, reserved capacity before paid by use, the less loaded of two inside",
        make: || Box::new(priority::Priority::default()),
    },
    Entry {
        name: "weighted",
        summary: "in proportion to the weights, smoothly interleaved",
        make: || Box::new(weighted::Weighted::default()),
    },
    Entry {
        name: "least_request",
        summary: "fewest attempts in flight for its weight",
        make: || Box::new(least_request::LeastRequest::default()),
    },
    Entry {
        name: "round_robin",
        summary: "one after the other",
        make: || Box::new(round_robin::RoundRobin::default()),
    },
    Entry {
        name: "peak_ewma",
        summary: "least expected latency: peak-sensitive average times attempts in flight, the better of two",
        make: || Box::new(peak_ewma::PeakEwma),
    },
];

/// The policy of that name.
pub fn by_name(name: &str) -> Option<&'static Entry> {
    REGISTRY.iter().find(|entry| entry.name == name)
}
