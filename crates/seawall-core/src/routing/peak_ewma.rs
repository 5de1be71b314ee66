//! Least expected latency: the peak-sensitive average times the attempts in flight, the better of two random candidates
//! (Finagle's load balancer of that name). A candidate without a measurement is tried first.

use super::{Candidate, RoutingPolicy, p2c::pick_of_two};
use crate::random::Random;
use core::cmp::Ordering;

#[derive(Debug)]
pub(super) struct PeakEwma;

fn cost(candidate: &Candidate) -> u128 {
    u128::from(candidate.latency_nanos) * u128::from(candidate.in_flight + 1) * 100
        / u128::from(candidate.effective_weight())
}

fn cheaper(first: &Candidate, second: &Candidate) -> Ordering {
    cost(first).cmp(&cost(second)).then_with(|| first.lighter_than(second))
}

impl RoutingPolicy for PeakEwma {
    fn pick(&mut self, candidates: &[Candidate], random: &mut Random) -> usize {
        pick_of_two(candidates, random, cheaper)
    }
}
