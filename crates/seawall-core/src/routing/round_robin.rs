//! One after the other, by deployment, so that a candidate that drops out for a moment does not shift the others.

use super::{Candidate, RoutingPolicy};
use crate::id::DeploymentId;
use crate::random::Random;

#[derive(Debug, Default)]
pub(super) struct RoundRobin {
    last: Option<DeploymentId>,
}

impl RoutingPolicy for RoundRobin {
    fn pick(&mut self, candidates: &[Candidate], _: &mut Random) -> usize {
        let next =
            self.last.and_then(|last| candidates.iter().position(|candidate| candidate.deployment > last)).unwrap_or(0);
        self.last = Some(candidates[next].deployment);
        next
    }
}
