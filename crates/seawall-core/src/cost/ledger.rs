//! The account of one model: what its requests are thought to cost, and what they have cost.

use super::lengths::Lengths;
use super::weight::{OutputWeight, Timing};
use super::{Cost, Demand, Tokens, Used, Work, settle};
use crate::classify::AttemptEnd;
use crate::id::TenantId;
use alloc::collections::BTreeMap;

/// Work of a tenant that is settled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Where every part was told.
    pub counted: Work,
    /// Where any part is estimated.
    pub estimated: Work,
}

impl Totals {
    /// Both together.
    pub const fn sum(self) -> Work {
        self.counted.plus(self.estimated)
    }
}

/// An attempt that ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// Whose it is.
    pub tenant: TenantId,
    /// What was asked for.
    pub demand: Demand,
    /// How it ended.
    pub end: AttemptEnd,
    /// Whether its answer had begun.
    pub has_begun: bool,
    /// What the host told that it has used.
    pub used: Option<Used>,
}

/// The account. The tenants in it are those of the settings, so it is bounded by these.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    lengths: Lengths,
    weight: OutputWeight,
    totals: BTreeMap<TenantId, Totals>,
}

impl Ledger {
    /// Tokens of all output that a request of this tenant is thought to need.
    pub fn expected_output(&self, tenant: TenantId, demand: &Demand) -> u64 {
        let each = demand.max_output_tokens.unwrap_or(u64::MAX).min(self.lengths.expected(tenant));
        each.saturating_mul(demand.answers())
    }

    /// What a request of this tenant is thought to cost. Nothing of its input is taken to be cached.
    pub fn expected(&self, tenant: TenantId, demand: &Demand) -> Work {
        let output = self.expected_output(tenant, demand);
        Tokens { input: demand.input_tokens, cached_input: 0, output }.work(self.weight.thousandths())
    }

    /// What an attempt costs that ended, or would end now, so. Nothing is booked.
    pub fn cost(&self, ended: &Ended) -> Cost {
        let expected = || self.expected_output(ended.tenant, &ended.demand);
        let settled = settle(&ended.demand, ended.end, ended.has_begun, ended.used, expected);
        settled.map_or(Cost::NONE, |(tokens, is_estimated)| {
            let work = tokens.work(self.weight.thousandths());
            Cost { work, is_estimated }
        })
    }

    /// Books an attempt that ended, by the present weight, and learns from it. `timing`: how long its parts took, where
    /// that is known.
    pub fn settle(&mut self, ended: &Ended, timing: Option<&Timing>) -> Cost {
        let cost = self.cost(ended);
        if cost != Cost::NONE {
            let totals = self.totals.entry(ended.tenant).or_default();
            let kept = if cost.is_estimated { &mut totals.estimated } else { &mut totals.counted };
            *kept = kept.plus(cost.work);
        }
        let makes_output = ended.demand.max_output_tokens != Some(0);
        if let Some(used) = ended.used.filter(|_| ended.end == AttemptEnd::Completed && makes_output) {
            self.lengths.observe(ended.tenant, used.output_tokens.div_ceil(ended.demand.answers()));
            // Several answers are made side by side, and pieces are no tokens: neither tells how long a token takes.
            if let Some(timing) = timing.filter(|_| ended.demand.answers() == 1 && !used.output_is_estimated) {
                self.weight.observe(timing);
            }
        }
        cost
    }

    /// What an output token weighs, in thousandths of an input token.
    pub const fn output_thousandths(&self) -> u64 {
        self.weight.thousandths()
    }

    /// Tokens that an answer is thought to need, whoever asks.
    pub fn usual_output(&self) -> u64 {
        self.lengths.usual()
    }

    /// Tokens that an answer of this tenant is thought to need.
    pub fn usual_output_of(&self, tenant: TenantId) -> u64 {
        self.lengths.expected(tenant)
    }

    /// The settled work of every tenant that has any.
    pub fn totals(&self) -> impl Iterator<Item = (TenantId, Totals)> {
        self.totals.iter().map(|(tenant, totals)| (*tenant, *totals))
    }
}
