//! The default: priority groups, reserved capacity before paid by use inside a group, and the less loaded of two random
//! candidates inside that.
//!
//! Only candidates with room reach a policy, so spill-over needs no rule of its own: when the reservation is in use, or
//! closed after a refusal, the next ones are all that is left.

use super::{Candidate, RoutingPolicy, p2c::pick_of_two};
use crate::random::Random;
use smallvec::SmallVec;

#[derive(Debug, Default)]
pub(super) struct Priority {
    best: SmallVec<[(Candidate, usize); 16]>,
}

impl RoutingPolicy for Priority {
    fn pick(&mut self, candidates: &[Candidate], random: &mut Random) -> usize {
        let rank = |candidate: &Candidate| (candidate.priority_group, !candidate.provisioned);
        let Some(lowest) = candidates.iter().map(rank).min() else { return 0 };
        self.best.clear();
        self.best
            .extend(candidates.iter().enumerate().filter(|(_, c)| rank(c) == lowest).map(|(index, c)| (*c, index)));
        let inside: SmallVec<[Candidate; 16]> = self.best.iter().map(|(candidate, _)| *candidate).collect();
        self.best[pick_of_two(&inside, random, Candidate::lighter_than)].1
    }
}
