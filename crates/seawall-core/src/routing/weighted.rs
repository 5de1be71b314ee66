//! Smooth weighted round robin: in proportion to the weights, interleaved instead of in runs (nginx's method: each turn
//! every candidate earns its weight, the richest is picked and pays the sum).

use super::{Candidate, RoutingPolicy};
use crate::id::DeploymentId;
use crate::random::Random;
use alloc::collections::BTreeMap;

#[derive(Debug, Default)]
pub(super) struct Weighted {
    earned: BTreeMap<DeploymentId, i64>,
}

impl RoutingPolicy for Weighted {
    fn pick(&mut self, candidates: &[Candidate], _: &mut Random) -> usize {
        let weight = |candidate: &Candidate| i64::try_from(candidate.effective_weight()).unwrap_or(i64::MAX / 1_024);
        let total = candidates.iter().map(weight).fold(0, i64::saturating_add);
        let mut best = (0, i64::MIN);
        for (index, candidate) in candidates.iter().enumerate() {
            let earned = self.earned.entry(candidate.deployment).or_insert(0);
            // Bounded: a candidate that was away for long must not return with a fortune.
            *earned = (*earned).saturating_add(weight(candidate)).clamp(-total, total);
            if *earned > best.1 {
                best = (index, *earned);
            }
        }
        if let Some(earned) = self.earned.get_mut(&candidates[best.0].deployment) {
            *earned -= total;
        }
        best.0
    }
}
