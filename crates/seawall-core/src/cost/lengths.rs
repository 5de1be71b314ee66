//! How long the answers of a model usually are, for each tenant.
//!
//! What a request will get is not known before: the limit that it states is rarely reached, and mostly there is none.
//! Tenants differ far more than the requests of one tenant do (one asks for labels, another for reports), so the
//! estimate is the eighth decile of the tenant's own latest answers: four of five stay below it, and one long answer
//! does not move it. A tenant that has had too few answers is given that of all answers of the model, and 256 tokens
//! stand for a model that has had too few.
//!
//! Lengths are of one answer: a request for several asks for so many times as much. Only complete answers teach; of
//! those that broke off only a part is known, and left out they do not make the estimate short. What the limits of
//! requests have cut counts as it was: the next request has its own limit.

use crate::id::TenantId;
use crate::latest::Latest;
use alloc::collections::BTreeMap;

/// What an answer is thought to need before anything is known.
const AT_START: u64 = 256;
/// Answers that are remembered, for a tenant and for the model: the eighth decile of so many is between the seventh and
/// the ninth of them all in nineteen of twenty cases.
const KEPT: usize = 64;
/// Below so many answers a tenant's own say too little.
const FEWEST: usize = 8;
/// Tenants that are told apart for one model; those that come later are given the model's estimate.
const MOST_TENANTS: usize = 1_024;

type LatestLengths = Latest<u32, KEPT>;

/// The latest lengths of a model's answers. Takes at most 600 KiB.
#[derive(Clone, Debug, Default)]
pub struct Lengths {
    all: LatestLengths,
    tenants: BTreeMap<TenantId, LatestLengths>,
}

impl Lengths {
    /// A tenant was given answers of this length each.
    pub fn observe(&mut self, tenant: TenantId, tokens: u64) {
        let tokens = u32::try_from(tokens).unwrap_or(u32::MAX);
        self.all.observe(tokens);
        if self.tenants.len() < MOST_TENANTS || self.tenants.contains_key(&tenant) {
            self.tenants.entry(tenant).or_default().observe(tokens);
        }
    }

    /// What the tenant's next answer is thought to need.
    pub fn expected(&self, tenant: TenantId) -> u64 {
        let own = self.tenants.get(&tenant).and_then(known);
        own.unwrap_or_else(|| self.usual())
    }

    /// What an answer of the model is thought to need, whoever asks.
    pub fn usual(&self) -> u64 {
        known(&self.all).unwrap_or(AT_START)
    }
}

fn known(latest: &LatestLengths) -> Option<u64> {
    if latest.len() < FEWEST { None } else { latest.quantile(4, 5).map(u64::from) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: TenantId = TenantId(0);
    const B: TenantId = TenantId(1);

    #[test]
    fn a_tenants_own_answers_count_once_there_are_eight_of_them() {
        let mut lengths = Lengths::default();
        (1..=7).for_each(|tokens| lengths.observe(A, tokens * 10));
        assert_eq!((lengths.expected(A), lengths.usual()), (256, 256));
        lengths.observe(B, 2_000);
        // Of 10, 20, .. 70, 2000 seven do not exceed 70, and that is more than four of five.
        assert_eq!((lengths.expected(A), lengths.expected(B), lengths.usual()), (70, 70, 70));
        lengths.observe(A, 80);
        assert_eq!((lengths.expected(A), lengths.expected(B)), (70, 80));
        (0..7).for_each(|_| lengths.observe(B, 2_000));
        assert_eq!((lengths.expected(A), lengths.expected(B), lengths.usual()), (70, 2_000, 2_000));
    }

    #[test]
    fn it_follows_a_change_and_one_long_answer_does_not_move_it() {
        let mut lengths = Lengths::default();
        (0..64).for_each(|_| lengths.observe(A, 100));
        lengths.observe(A, u64::MAX);
        assert_eq!(lengths.expected(A), 100);
        (0..12).for_each(|_| lengths.observe(A, 300));
        assert_eq!(lengths.expected(A), 300, "a fifth of the latest are longer");
    }

    #[test]
    fn at_the_bound_a_new_tenant_has_the_models_estimate() {
        let mut lengths = Lengths::default();
        let most = u32::try_from(MOST_TENANTS).unwrap();
        (0..most).for_each(|tenant| (0..8).for_each(|_| lengths.observe(TenantId(tenant), 50)));
        (0..64).for_each(|_| lengths.observe(TenantId(most), 900));
        assert_eq!((lengths.expected(A), lengths.expected(TenantId(most)), lengths.usual()), (50, 900, 900));
        (0..64).for_each(|_| lengths.observe(A, 70));
        assert_eq!((lengths.expected(A), lengths.expected(TenantId(most))), (70, 70), "it has none of its own");
        assert_eq!(lengths.tenants.len(), MOST_TENANTS);
    }
}
