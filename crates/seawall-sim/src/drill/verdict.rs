//! Which setting decides: the change that lowers the loss most, by figures of runs with the same arrivals.
//!
//! Two runs that differ in anything part ways in every draw that follows, so a small difference says nothing. A change
//! counts only if it takes away at least a fifth of the loss, and more than three times the root of what is lost (the
//! deviation of a count). Capacity that has to be bought helps against nearly everything: it is named as what decides
//! only where no edit of the file does nine tenths as much.

use super::changes::{Change, Cost};
use super::outcome::Outcome;
use serde::Serialize;

/// A loss below this, in percent, is little: then it is asked which setting keeps it so.
const LITTLE: f64 = 1.0;
/// Part of the loss that a change has to take away.
const COUNTS_FROM: f64 = 0.2;
/// Part of what capacity would take away from which on an edit is named instead.
const AS_GOOD: f64 = 0.9;

/// Which setting decides: places in the list of what was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "verdict")]
pub enum Verdict {
    /// Much is lost, and this change lowers it most.
    Decides {
        /// The change.
        tried: usize,
        /// The best edit of the file, where what decides has to be bought or gives up a promise.
        edit: Option<usize>,
    },
    /// Much is lost, and no change of today's settings lowers it noticeably.
    NoSetting,
    /// Little is lost; this change would raise it most.
    Holds {
        /// The change.
        tried: usize,
    },
    /// Little is lost, whatever is changed.
    Safe,
}

/// Judges a drill by what each change came to, in the order of the changes.
pub fn verdict(outcome: &Outcome, tried: &[(Change, Outcome)]) -> Verdict {
    if outcome.lost_percent < LITTLE {
        return holds(outcome, tried);
    }
    let lowered = |index: usize| outcome.lost.saturating_sub(tried[index].1.lost);
    let counts = |index: &usize| is_noticeable(lowered(*index), outcome.lost);
    let best = |costs: &[Cost]| {
        let of_cost = (0..tried.len()).filter(|index| costs.contains(&tried[*index].0.cost));
        // The first of those that lower it most.
        of_cost.filter(counts).rev().max_by_key(|index| lowered(*index))
    };
    let (edit, any) = (best(&[Cost::Edit]), best(&[Cost::Edit, Cost::Promise, Cost::Capacity]));
    match (edit, any) {
        (Some(edit), Some(any)) if as_float(lowered(edit)) >= AS_GOOD * as_float(lowered(any)) => {
            Verdict::Decides { tried: edit, edit: None }
        }
        (edit, Some(any)) => Verdict::Decides { tried: any, edit },
        (_, None) => Verdict::NoSetting,
    }
}

fn holds(outcome: &Outcome, tried: &[(Change, Outcome)]) -> Verdict {
    let worst = (0..tried.len())
        .rev()
        .max_by(|left, right| tried[*left].1.lost_percent.total_cmp(&tried[*right].1.lost_percent));
    match worst {
        Some(index) if tried[index].1.lost_percent >= outcome.lost_percent + LITTLE => Verdict::Holds { tried: index },
        _ => Verdict::Safe,
    }
}

fn is_noticeable(difference: u64, of: u64) -> bool {
    let (difference, of) = (as_float(difference), as_float(of));
    difference >= COUNTS_FROM * of && difference > 3.0 * libm::sqrt(of)
}

#[expect(clippy::cast_precision_loss, reason = "a simulation has far fewer than 2^53 requests")]
const fn as_float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drill::ground::Setup;

    fn outcome(lost: u64) -> Outcome {
        Outcome { sent: 10_000, lost, lost_percent: as_float(lost) / 100.0, ..Outcome::default() }
    }

    /// A drill in which so many of 10,000 were lost, and so many with each change.
    fn judged(lost: u64, tried: &[(Cost, u64)]) -> Verdict {
        let change = |cost| Change {
            setting: String::new(),
            to: String::new(),
            cost,
            places: Vec::new(),
            setup: Setup::default(),
        };
        let tried: Vec<(Change, Outcome)> = tried.iter().map(|(cost, lost)| (change(*cost), outcome(*lost))).collect();
        verdict(&outcome(lost), &tried)
    }

    #[test]
    fn the_change_that_lowers_the_loss_most_decides_the_first_of_equals() {
        let decides = |tried, edit| Verdict::Decides { tried, edit };
        let tried = [(Cost::Edit, 900), (Cost::Edit, 300), (Cost::Edit, 300), (Cost::Edit, 1200)];
        assert_eq!(judged(1000, &tried), decides(1, None));
        assert_eq!(judged(1000, &[(Cost::Capacity, 0), (Cost::Edit, 950)]), decides(0, None));
        assert_eq!(judged(1000, &[(Cost::Capacity, 0), (Cost::Edit, 200)]), decides(0, Some(1)));
        assert_eq!(judged(1000, &[(Cost::Promise, 100), (Cost::Edit, 700)]), decides(0, Some(1)));
    }

    #[test]
    fn an_edit_that_does_nine_tenths_of_what_capacity_does_is_named_instead() {
        let tried = |edit| [(Cost::Capacity, 0), (Cost::Edit, edit)];
        assert_eq!(judged(1000, &tried(100)), Verdict::Decides { tried: 1, edit: None });
        assert_eq!(judged(1000, &tried(101)), Verdict::Decides { tried: 0, edit: Some(1) });
    }

    #[test]
    fn what_lowers_it_by_less_than_a_fifth_or_by_chance_decides_nothing() {
        assert_eq!(judged(1000, &[(Cost::Edit, 801), (Cost::Capacity, 801)]), Verdict::NoSetting);
        assert_eq!(judged(1000, &[(Cost::Edit, 800)]), Verdict::Decides { tried: 0, edit: None });
        assert_eq!(judged(100, &[(Cost::Edit, 70)]), Verdict::NoSetting);
        assert_eq!(judged(100, &[(Cost::Edit, 69)]), Verdict::Decides { tried: 0, edit: None });
        assert_eq!(judged(1000, &[]), Verdict::NoSetting);
    }

    #[test]
    fn where_little_is_lost_the_setting_is_named_that_keeps_it_so() {
        assert_eq!(judged(99, &[(Cost::Edit, 0), (Cost::Edit, 300), (Cost::Edit, 250)]), Verdict::Holds { tried: 1 });
        assert_eq!(judged(0, &[(Cost::Edit, 99), (Cost::Capacity, 0)]), Verdict::Safe);
    }
}
