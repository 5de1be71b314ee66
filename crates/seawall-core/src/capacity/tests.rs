//! The facade with today's rule.

use super::*;

const THROTTLED: AttemptEnd = AttemptEnd::Throttled { wait: None };

fn state(capacity: Capacity) -> CapacityState {
    CapacityState::new(capacity, "ceiling", Hints { patience: Duration::from_secs(10) })
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
