//! Least expected latency: the peak-sensitive average times the attempts in flight, the better of two random candidates
//! (Finagle's load balancer of that name). A candidate without a measurement is tried first, by one attempt: until that one
//! answers it counts as the slowest, so that a deployment that takes long to answer at all is not flooded meanwhile.

use super::{Candidate, RoutingPolicy, p2c::pick_of_two};
use crate::random::Random;
use core::cmp::Ordering;

#[derive(Debug)]
pub(super) struct PeakEwma;

fn cost(candidate: &Candidate) -> u128 {
    if candidate.latency_nanos == 0 && candidate.in_flight > 0 {
        return u128::MAX;
    }
    u128::from(candidate.latency_nanos) * candidate.next_in_flight() * 100 / u128::from(candidate.effective_weight())
}

fn cheaper(first: &Candidate, second: &Candidate) -> Ordering {
    cost(first).cmp(&cost(second)).then_with(|| first.lighter_than(second))
}

impl RoutingPolicy for PeakEwma {
    fn pick(&mut self, candidates: &[Candidate], random: &mut Random) -> usize {
        pick_of_two(candidates, random, cheaper)
    }
}
