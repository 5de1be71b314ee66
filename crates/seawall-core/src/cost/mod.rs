//! What a request costs an upstream: work units, before it is served and after.
//!
//! A request counts for little where it asks for a word and for much where it asks for a book, so counting requests
//! says little about load, and less about who causes it. Work is counted in *units*: an input token that is read anew
//! is 1, one that comes out of a cache a tenth, an output token as much as it takes longer than an input token (2 until
//! that has been measured, see [`weight`]).
//!
//! Before an attempt the input is what the host reckons or was told, and the output what the tenant's answers of this
//! model usually need ([`lengths`]), never more than the request allows. When the attempt has ended the host tells what
//! it has really used ([`Used`]), and that is settled. What was not told is filled in from the estimate, and marked.
//!
//! | end of the attempt | told | settled |
//! | --- | --- | --- |
//! | any | usage, or pieces of a stream that were counted | that; the input from the estimate where it was not told |
//! | complete | nothing | the estimate |
//! | broke off, left or timed out | nothing | the input: the upstream had it, and made what nobody knows |
//! | refused, failed or never sent | nothing | nothing |
//!
//! Left out: what images and sound cost beyond their part of the input, and the work that an upstream goes on doing for
//! a caller that has left.

pub mod ledger;
pub mod lengths;
pub mod weight;

pub use ledger::Ledger;

use crate::classify::AttemptEnd;
use crate::time::Instant;

/// Thousandths of a unit that an input token weighs.
const INPUT: u64 = 1_000;
/// Thousandths of a unit that an input token weighs which comes out of a cache.
const CACHED_INPUT: u64 = 100;

/// An amount of work, in thousandths of a work unit. Arithmetic saturates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Work(u64);

impl Work {
    /// None.
    pub const ZERO: Self = Self(0);
    /// The most that one attempt is taken for, whatever counts it claims: sums of 65,536 of these are exact.
    pub const MOST: Self = Self(1 << 47);

    /// So many thousandths of a unit.
    pub const fn from_thousandths(thousandths: u64) -> Self {
        Self(thousandths)
    }

    /// Thousandths of a unit.
    pub const fn thousandths(self) -> u64 {
        self.0
    }

    /// Whole units, rounded to the nearest.
    pub const fn units(self) -> u64 {
        self.0.saturating_add(500) / 1_000
    }

    /// Both together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// What is left without `other`; none where that is more.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

/// What a request asks a model to do, as far as that can be told before it is served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// Tokens of all of the input.
    pub input_tokens: u64,
    /// Whether they were reckoned from the length of the text; otherwise somebody has counted them.
    pub input_is_estimated: bool,
    /// The most tokens of one answer that the request allows; 0 where there is no answer in tokens, as with embeddings.
    pub max_output_tokens: Option<u64>,
    /// Answers asked for; 0 counts as 1.
    pub answers: u32,
}

impl Demand {
    /// Answers asked for, at least one.
    pub fn answers(&self) -> u64 {
        u64::from(self.answers.max(1))
    }
}

/// What an attempt has used until now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Used {
    /// Tokens of all of the input, as the upstream counted them; `None`: it has not told.
    pub input_tokens: Option<u64>,
    /// Those of them that came out of a cache.
    pub cached_input_tokens: u64,
    /// Tokens of the output, of all answers together.
    pub output_tokens: u64,
    /// Whether the output was counted in pieces by the host; otherwise the upstream has told it.
    pub output_is_estimated: bool,
    /// When the first piece of the output came, where it came as it was made: many servers begin a stream before they have
    /// read the prompt.
    pub first_output: Option<Instant>,
}

/// Work that is settled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// How much.
    pub work: Work,
    /// Whether any part of it is estimated.
    pub is_estimated: bool,
}

impl Cost {
    /// Nothing.
    pub const NONE: Self = Self { work: Work::ZERO, is_estimated: false };

    /// Both together; estimated where either is.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self { work: self.work.plus(other.work), is_estimated: self.is_estimated || other.is_estimated }
    }
}

/// Tokens that are paid for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Of all of the input.
    pub input: u64,
    /// Those of the input that came out of a cache.
    pub cached_input: u64,
    /// Of the output.
    pub output: u64,
}

impl Tokens {
    /// Their work where an output token weighs so many thousandths of a unit; at most [`Work::MOST`].
    pub fn work(self, output_thousandths: u64) -> Work {
        let cached = self.cached_input.min(self.input);
        let part = |tokens: u64, thousandths: u64| u128::from(tokens) * u128::from(thousandths);
        let all = part(self.input - cached, INPUT) + part(cached, CACHED_INPUT) + part(self.output, output_thousandths);
        Work(u64::try_from(all).unwrap_or(u64::MAX)).min(Work::MOST)
    }
}

/// What an attempt that ended so is settled with, and whether that is estimated; `None`: nothing. `has_begun`: whether
/// its answer had begun; `expected_output`: what the estimate says of the whole output. The table stands in the module.
pub fn settle(
    demand: &Demand,
    end: AttemptEnd,
    has_begun: bool,
    used: Option<Used>,
    expected_output: impl FnOnce() -> u64,
) -> Option<(Tokens, bool)> {
    let input = Tokens { input: demand.input_tokens, ..Tokens::default() };
    if let Some(used) = used {
        let tokens = Tokens {
            input: used.input_tokens.unwrap_or(demand.input_tokens),
            cached_input: used.cached_input_tokens,
            output: used.output_tokens,
        };
        let input_is_estimated = used.input_tokens.is_none() && demand.input_is_estimated;
        return Some((tokens, input_is_estimated || used.output_is_estimated));
    }
    match end {
        AttemptEnd::Completed => {
            let output = expected_output();
            Some((Tokens { output, ..input }, demand.input_is_estimated || output > 0))
        }
        AttemptEnd::Truncated
        | AttemptEnd::StreamError
        | AttemptEnd::TimedOut
        | AttemptEnd::DeadlinePassed
        | AttemptEnd::ClientGone => Some((input, true)),
        _ if has_begun => Some((input, true)),
        AttemptEnd::ClientFault
        | AttemptEnd::ContextExceeded
        | AttemptEnd::Throttled { .. }
        | AttemptEnd::CredentialRefused
        | AttemptEnd::NotSent
        | AttemptEnd::StaleConnection
        | AttemptEnd::Failed => None,
    }
}

#[cfg(test)]
mod tests;
