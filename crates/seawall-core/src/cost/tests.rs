use super::ledger::{Ended, Totals};
use super::*;
use crate::id::TenantId;

const A: TenantId = TenantId(0);
const B: TenantId = TenantId(1);
/// A prompt that was reckoned at 100 tokens.
const ASKED: Demand = Demand { input_tokens: 100, input_is_estimated: true, max_output_tokens: None, answers: 1 };
const TOLD: Used = Used {
    input_tokens: Some(90),
    cached_input_tokens: 0,
    output_tokens: 40,
    output_is_estimated: false,
    first_output: None,
};
const COUNTED: Used = Used { input_tokens: None, output_tokens: 7, output_is_estimated: true, ..TOLD };

fn ended(end: AttemptEnd, has_begun: bool, used: Option<Used>) -> Ended {
    Ended { tenant: A, demand: ASKED, end, has_begun, used }
}

const fn units(units: u64, is_estimated: bool) -> Cost {
    Cost { work: Work::from_thousandths(units * 1_000), is_estimated }
}

#[test]
fn a_cached_token_weighs_a_tenth_and_an_output_token_two() {
    let tokens = Tokens { input: 1_000, cached_input: 600, output: 50 };
    assert_eq!(tokens.work(2_000), Work::from_thousandths(400_000 + 60_000 + 100_000));
    assert_eq!(Tokens { cached_input: 5_000, ..tokens }.work(2_000), Work::from_thousandths(200_000));
    let most = Tokens { input: u64::MAX, cached_input: 0, output: u64::MAX };
    assert_eq!(most.work(256_000), Work::MOST);
    assert_eq!((Work::from_thousandths(1_499).units(), Work::from_thousandths(1_500).units()), (1, 2));
    assert_eq!(Work::from_thousandths(u64::MAX).units(), u64::MAX / 1_000);
}

#[test]
fn the_estimate_is_bounded_by_what_the_request_allows() {
    let ledger = Ledger::default();
    let expected = |max_output_tokens, answers| {
        ledger.expected(A, &Demand { max_output_tokens, answers, ..ASKED }).thousandths() / 1_000
    };
    assert_eq!((expected(None, 1), expected(Some(10), 1), expected(Some(9_000), 1)), (612, 120, 612));
    assert_eq!((expected(Some(10), 3), expected(Some(0), 1), expected(None, 0)), (160, 100, 612));
}

#[test]
fn f18_what_is_settled_depends_on_what_was_told_and_on_the_end() {
    use AttemptEnd as E;
    let ledger = Ledger::default();
    let cost = |end, has_begun, used| ledger.cost(&ended(end, has_begun, used));
    assert_eq!(cost(E::Completed, true, Some(TOLD)), units(90 + 80, false));
    assert_eq!(cost(E::Completed, true, Some(COUNTED)), units(100 + 14, true), "never nothing");
    assert_eq!(cost(E::Completed, true, None), units(100 + 512, true), "the estimate stands");
    assert_eq!(cost(E::ClientGone, true, Some(COUNTED)), units(100 + 14, true));
    for end in [E::Truncated, E::StreamError, E::TimedOut, E::DeadlinePassed, E::ClientGone] {
        assert_eq!(cost(end, false, None), units(100, true), "{end:?}");
    }
    let refused = [E::ClientFault, E::Throttled { wait: None }, E::CredentialRefused];
    for end in refused.into_iter().chain([E::NotSent, E::StaleConnection, E::Failed]) {
        assert_eq!(cost(end, false, None), Cost::NONE, "{end:?}");
        assert_eq!(cost(end, true, None), units(100, true), "{end:?}");
    }
}

#[test]
fn what_somebody_has_counted_is_not_estimated() {
    let ledger = Ledger::default();
    let counted = Demand { input_is_estimated: false, ..ASKED };
    let embedded = Demand { max_output_tokens: Some(0), ..counted };
    let cost = |demand, used| ledger.cost(&Ended { demand, ..ended(AttemptEnd::Completed, true, used) });
    assert_eq!(cost(embedded, None), units(100, false));
    assert_eq!(cost(counted, None), units(612, true));
    assert_eq!(cost(counted, Some(Used { output_is_estimated: false, ..COUNTED })), units(114, false));
}

#[test]
fn complete_answers_teach_their_tenant_and_the_totals_are_kept_apart() {
    let mut ledger = Ledger::default();
    let mut end = |tenant, end, used| ledger.settle(&Ended { tenant, ..ended(end, true, used) }, None);
    for _ in 0..8 {
        end(A, AttemptEnd::Completed, Some(TOLD));
        end(B, AttemptEnd::Completed, Some(Used { output_tokens: 900, ..COUNTED }));
    }
    for _ in 0..64 {
        end(A, AttemptEnd::ClientGone, Some(COUNTED));
    }
    end(TenantId(2), AttemptEnd::Completed, None);
    assert_eq!((ledger.usual_output_of(A), ledger.usual_output_of(B)), (40, 900));
    let total = |counted: u64, estimated: u64| Totals {
        counted: Work::from_thousandths(counted * 1_000),
        estimated: Work::from_thousandths(estimated * 1_000),
    };
    // The third tenant has had no answer whose length is known: that of the model stands, 900.
    let expected = [(A, total(8 * 170, 64 * 114)), (B, total(0, 8 * 1_900)), (TenantId(2), total(0, 1_900))];
    assert!(ledger.totals().eq(expected), "{:?}", ledger.totals().collect::<alloc::vec::Vec<_>>());
}

#[test]
fn several_answers_teach_the_length_of_one() {
    let mut ledger = Ledger::default();
    let four = Demand { answers: 4, ..ASKED };
    let used = Used { output_tokens: 4 * 30 - 1, ..TOLD };
    for _ in 0..8 {
        ledger.settle(&Ended { demand: four, ..ended(AttemptEnd::Completed, true, Some(used)) }, None);
    }
    assert_eq!((ledger.usual_output_of(A), ledger.expected_output(A, &four)), (30, 120));
}
