//! Fewest attempts in flight for its weight; ties go round.

use super::{Candidate, RoutingPolicy};
use crate::random::Random;
use core::cmp::Ordering;

#[derive(Debug, Default)]
pub(super) struct LeastRequest {
    turn: usize,
}

impl RoutingPolicy for LeastRequest {
    fn pick(&mut self, candidates: &[Candidate], _: &mut Random) -> usize {
        self.turn = self.turn.wrapping_add(1);
        let start = self.turn % candidates.len();
        let mut best = start;
        for step in 1..candidates.len() {
            let index = (start + step) % candidates.len();
            if candidates[index].lighter_than(&candidates[best]) == Ordering::Less {
                best = index;
            }
        }
        best
    }
}
