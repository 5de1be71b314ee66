//! One after the other, by deployment, so that a candidate that drops out for a moment does not shift the others. During
//! its slow start a deployment takes only that share of its turns.

use super::{Candidate, RoutingPolicy};
use crate::id::DeploymentId;
use crate::random::Random;
use alloc::collections::BTreeMap;

#[derive(Debug, Default)]
pub(super) struct RoundRobin {
    last: Option<DeploymentId>,
    /// Hundredths of a turn that each slowly starting deployment has saved up.
    saved: BTreeMap<DeploymentId, u32>,
}

impl RoundRobin {
    /// Whether this candidate takes the turn that it is offered.
    fn takes_turn(&mut self, candidate: &Candidate) -> bool {
        if candidate.share_percent >= 100 {
            self.saved.remove(&candidate.deployment);
            return true;
        }
        let saved = self.saved.entry(candidate.deployment).or_insert(0);
        *saved += candidate.share_percent;
        let takes = *saved >= 100;
        if takes {
            *saved -= 100;
        }
        takes
    }
}

impl RoutingPolicy for RoundRobin {
    fn pick(&mut self, candidates: &[Candidate], _: &mut Random) -> usize {
        let next =
            self.last.and_then(|last| candidates.iter().position(|candidate| candidate.deployment > last)).unwrap_or(0);
        // Where nobody takes the turn in a whole round, the first one has to.
        let round = (0..candidates.len()).map(|step| (next + step) % candidates.len());
        let pick = round.into_iter().find(|index| self.takes_turn(&candidates[*index])).unwrap_or(next);
        self.last = Some(candidates[pick].deployment);
        pick
    }
}
