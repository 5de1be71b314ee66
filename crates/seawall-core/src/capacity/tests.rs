//! The facade with today's rule.

use super::*;

const THROTTLED: AttemptEnd = AttemptEnd::Throttled { wait: None };

fn state(capacity: Capacity) -> CapacityState {
    CapacityState::new(
        capacity,
        "ceiling",
        Hints { patience: Duration::from_secs(10), protections: Protections::default() },
    )
}

fn starts(state: &mut CapacityState, count: u64) {
    (0..count).for_each(|attempt| state.started(Instant::ZERO, AttemptId(attempt), false));
}

fn throttled(state: &mut CapacityState, now: Instant, wait: Option<Duration>) {
    state.ended(now, AttemptId(0), false, AttemptEnd::Throttled { wait });
}

#[test]
fn names_are_distinct_and_found() {
    for (index, entry) in REGISTRY.iter().enumerate() {
        assert_eq!(REGISTRY.iter().position(|other| other.name == entry.name), Some(index));
        assert_eq!(by_name(entry.name).map(|found| found.summary), Some(entry.summary));
    }
    assert!(by_name("").is_none());
}

#[test]
fn a_ceiling_that_has_grown_meanwhile_opens_at_its_next_step() {
    let mut state = state(Capacity::Standard { size: None });
    starts(&mut state, 7);
    throttled(&mut state, Instant::ZERO, Some(Duration::ZERO));
    // Grown to 7 by now, with 8 in flight: the next step, not the one that has passed.
    starts(&mut state, 2);
    assert_eq!(state.opens_at(Instant::from_millis(700)), Some(Instant::from_millis(1_000)));
    assert_eq!(state.opens_at(Instant::from_millis(1_200)), Some(Instant::from_millis(1_500)));
    // Where time itself ends there is no later step.
    throttled(&mut state, Instant::MAX, None);
    assert_eq!(state.opens_at(Instant::MAX), None);
}

#[test]
fn told_size_bounds() {
    let mut state = state(Capacity::Provisioned { size: 2 });
    let now = Instant::ZERO;
    starts(&mut state, 1);
    assert!(state.has_room(now));
    starts(&mut state, 1);
    assert!(!state.has_room(now));
    assert_eq!(state.opens_at(now), None);
    state.ended(now, AttemptId(0), false, AttemptEnd::Completed);
    assert!(state.has_room(now));
}

#[test]
fn a_throttle_closes_for_its_wait_and_leaves_a_ceiling_that_grows_and_is_forgotten() {
    let mut state = state(Capacity::Standard { size: None });
    starts(&mut state, 6);
    throttled(&mut state, Instant::from_millis(1_000), Some(Duration::from_millis(80)));
    assert!(!state.has_room(Instant::from_millis(1_079)));
    assert_eq!(state.opens_at(Instant::from_millis(1_000)), Some(Instant::from_millis(1_080)));
    // Five were served when it refused: no sixth until the ceiling grows.
    let opens = Instant::from_millis(1_080);
    assert!(!state.has_room(opens));
    assert_eq!(state.limit(opens), Some(5));
    assert_eq!(state.opens_at(opens), Some(Instant::from_millis(1_580)));
    assert!(state.has_room(Instant::from_millis(1_580)));
    assert_eq!(state.limit(Instant::from_millis(1_580)), Some(6));
    // 5 6 7 8 10 12 15 18 (22 >= 20: forgotten at the eighth step).
    assert_eq!(state.limit(Instant::from_millis(1_080 + 500 * 7)), Some(18));
    assert_eq!(state.limit(Instant::from_millis(1_080 + 500 * 8)), None);
    assert!(state.has_room(Instant::from_millis(1_080 + 500 * 8)));
}

#[test]
fn an_unstated_wait_is_100_ms_and_a_shorter_one_never_shortens() {
    let mut state = state(Capacity::Standard { size: None });
    throttled(&mut state, Instant::ZERO, Some(Duration::from_secs(2)));
    state.ended(Instant::ZERO, AttemptId(1), false, THROTTLED);
    assert!(!state.has_room(Instant::from_millis(1_999)));
    assert!(state.has_room(Instant::from_millis(2_000)));
}

#[test]
fn what_is_known_to_fit_is_what_was_there_at_a_refusal_and_what_was_answered_since() {
    let mut state = state(Capacity::Standard { size: None });
    assert!(state.is_known_to_take(1_000), "it has never refused");
    starts(&mut state, 4);
    throttled(&mut state, Instant::ZERO, None);
    assert_eq!((state.is_known_to_take(2), state.is_known_to_take(3)), (true, false));
    // The growth of the ceiling proves nothing, nor does its end.
    let later = Instant::from_millis(60_000);
    assert!(state.has_room(later) && state.limit(later).is_none());
    assert!(!state.is_known_to_take(3));
    // Five together, one of which is answered to the end; then six, one of which begins to be answered.
    starts(&mut state, 2);
    state.ended(later, AttemptId(0), false, AttemptEnd::Completed);
    assert_eq!((state.is_known_to_take(4), state.is_known_to_take(5)), (true, false));
    starts(&mut state, 2);
    state.first_byte(later, AttemptId(0), false);
    assert_eq!((state.is_known_to_take(5), state.is_known_to_take(6)), (true, false));
    // What fails or is given up proves nothing.
    starts(&mut state, 1);
    for end in [AttemptEnd::Failed, AttemptEnd::ClientGone].repeat(3) {
        state.ended(later, AttemptId(0), false, end);
    }
    assert!(!state.is_known_to_take(6));
    throttled(&mut state, later, None);
    assert_eq!((state.is_known_to_take(0), state.is_known_to_take(1)), (true, false));
}
