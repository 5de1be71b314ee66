//! What a caller is told: one of the closed forms of the wire contract, with a wait that is ours alone.
//!
//! Clients sleep exactly what they are told and add no jitter (measured), so each wait is drawn here: a place in the return
//! calendar, or over `[t, 1.5 t]` where a pool is not known well enough for one; bounded by 58 s, because several clients
//! ignore 60 s and more and come back at once.

use crate::outcome::Outcome;
use crate::random::Random;
use crate::time::Duration;

/// The longest wait that every measured client obeys.
pub const LONGEST_WAIT: Duration = Duration::from_secs(58);
/// The shortest wait that is worth a trip.
pub const SHORTEST_WAIT: Duration = Duration::from_millis(501);
const STOP_WAIT_LOW: Duration = Duration::from_secs(30);

/// The form of a refusal; nothing else is ever sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Come back after this wait: 429 with wait headers.
    Wait(Duration),
    /// Do not come back; if you must, after this wait: as `Wait`, plus `x-should-retry: false`.
    WaitStop(Duration),
    /// Do not come back: 429, `x-should-retry: false`, no wait. For clients that do not obey this, and by default for
    /// all, it is told as `WaitStop` with this wait.
    Stop(Duration),
    /// Never come back with this request: the terminal 4xx of the situation.
    StopHard,
    /// A failure that is likely to pass: 503 (504 where an upstream was silent) with a short wait.
    RetrySoon(Duration),
    /// The key is missing or wrong.
    Auth,
    /// This process goes away; another will serve: 503, `Connection: close`.
    Leave(Duration),
}

/// What is known of the time after which a refused request may come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Not before this is over: what an upstream stated, or how long the line takes. Jitter is added.
    AtLeast(Duration),
    /// It has a place in the return calendar, so long from now.
    Booked(Duration),
    /// There is no place in the calendar within the longest wait that clients obey.
    NoPlace,
}

/// The advice that goes with `outcome`; `None` for endings that are no refusal of ours. `wait`: what is known of the time
/// after which it may come back. `storm`: extra attempts are no longer paid for
/// here, so failures are worded so that clients do not make them instead.
pub fn advise(outcome: Outcome, wait: Option<Wait>, storm: bool, random: &mut Random) -> Option<Form> {
    match outcome {
        _ if storm && outcome.is_failure_that_may_pass() => Some(Form::WaitStop(stop_wait(random))),
        Outcome::Served | Outcome::ClientError | Outcome::Truncated | Outcome::StreamError | Outcome::ClientGone => {
            None
        }
        Outcome::Unauthenticated => Some(Form::Auth),
        Outcome::ModelNotFound | Outcome::InvalidRequest | Outcome::TooLarge => Some(Form::StopHard),
        Outcome::DeadlineUnmeetable | Outcome::RetryBudgetExhausted => Some(Form::Stop(stop_wait(random))),
        Outcome::CapacityExhausted | Outcome::DuplicateInFlight => {
            Some(wait_or_stop(wait.unwrap_or(Wait::AtLeast(SHORTEST_WAIT)), random))
        }
        Outcome::UpstreamErrorRetried => Some(Form::WaitStop(stop_wait(random))),
        Outcome::MemoryFull
        | Outcome::NoHealthyDeployment
        | Outcome::UpstreamError
        | Outcome::UpstreamTimeout
        | Outcome::UpstreamAuth => Some(Form::RetrySoon(random.span(Duration::from_secs(2), Duration::from_secs(8)))),
        Outcome::Draining | Outcome::SlowUpload => {
            Some(Form::Leave(random.span(Duration::from_millis(50), Duration::from_millis(500))))
        }
    }
}

fn wait_or_stop(wait: Wait, random: &mut Random) -> Form {
    match wait {
        Wait::Booked(wait) if wait <= LONGEST_WAIT => Form::Wait(wait.max(SHORTEST_WAIT)),
        Wait::AtLeast(low) if low <= LONGEST_WAIT => {
            let low = low.max(SHORTEST_WAIT);
            Form::Wait(random.span(low, (low * 3 / 2).min(LONGEST_WAIT)))
        }
        Wait::Booked(_) | Wait::AtLeast(_) | Wait::NoPlace => Form::WaitStop(stop_wait(random)),
    }
}

fn stop_wait(random: &mut Random) -> Duration {
    random.span(STOP_WAIT_LOW, LONGEST_WAIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_never_shorter_than_asked_nor_beyond_58_s() {
        let mut random = Random::new(3);
        for seconds in 1..=58 {
            let asked = Duration::from_secs(seconds);
            let Some(Form::Wait(told)) =
                advise(Outcome::CapacityExhausted, Some(Wait::AtLeast(asked)), false, &mut random)
            else {
                panic!()
            };
            assert!(told >= asked && told <= LONGEST_WAIT && told <= asked * 3 / 2);
        }
        let Some(Form::WaitStop(told)) =
            advise(Outcome::CapacityExhausted, Some(Wait::AtLeast(Duration::from_secs(59))), false, &mut random)
        else {
            panic!()
        };
        assert!(told >= STOP_WAIT_LOW && told <= LONGEST_WAIT);
    }

    #[test]
    fn a_booked_place_is_told_as_it_is_and_without_one_nobody_comes_back() {
        let mut random = Random::new(3);
        let mut told = |wait| advise(Outcome::CapacityExhausted, Some(wait), false, &mut random);
        let place = Duration::from_millis(7_300);
        assert_eq!(told(Wait::Booked(place)), Some(Form::Wait(place)));
        assert_eq!(told(Wait::Booked(Duration::from_millis(20))), Some(Form::Wait(SHORTEST_WAIT)));
        assert!(matches!(told(Wait::NoPlace), Some(Form::WaitStop(wait)) if wait >= STOP_WAIT_LOW));
    }

    #[test]
    fn every_outcome_of_ours_has_a_form() {
        let mut random = Random::new(3);
        for outcome in Outcome::ALL {
            let ours = !matches!(
                outcome,
                Outcome::Served
                    | Outcome::ClientError
                    | Outcome::Truncated
                    | Outcome::StreamError
                    | Outcome::ClientGone
            );
            assert_eq!(advise(outcome, None, false, &mut random).is_some(), ours, "{outcome:?}");
        }
    }
}
