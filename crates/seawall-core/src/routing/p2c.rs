//! Power of two choices: draw two at random, take the less loaded one (Mitzenmacher 2001).
//!
//! It avoids the herd of "least loaded of all" with stale counts, at nearly its quality, and costs two draws.

use super::Candidate;
use crate::random::Random;
use core::cmp::Ordering;

/// The index of the better of two distinct random candidates, by `better` (`Less`: the first is better).
pub(super) fn pick_of_two(
    candidates: &[Candidate],
    random: &mut Random,
    better: impl Fn(&Candidate, &Candidate) -> Ordering,
) -> usize {
    let count = u32::try_from(candidates.len()).unwrap_or(u32::MAX);
    if count < 2 {
        return 0;
    }
    let first = random.below(count) as usize;
    let second = (first + 1 + random.below(count - 1) as usize) % candidates.len();
    if better(&candidates[second], &candidates[first]) == Ordering::Less { second } else { first }
}
