//! The two translations between the simulator's forms and the engine's words: what an answer of an upstream means, and
//! what a caller is told.
//!
//! The first follows `seawall-wire`'s table of upstream errors, the second `seawall-proxy`'s forms of refusals; both are
//! tables here, since the simulator's answers have no bytes.

use crate::calls::{Call, Facts, Reply};
use crate::random::mix;
use seawall_cases::scenario::{Criticality, Form};
use seawall_core::advice;
use seawall_core::classify::AttemptEnd;
use seawall_core::cost::{Demand, Used};
use seawall_core::engine::{Identity, Respond};
use seawall_core::outcome::Outcome;
use seawall_core::settings;
use seawall_core::time::Duration;

/// What an upstream's answer says of the attempt.
pub(super) fn attempt_end(reply: Reply) -> AttemptEnd {
    let stated = (reply.wait_ms > 0).then(|| Duration::from_millis(u64::from(reply.wait_ms)));
    match reply.form {
        None => AttemptEnd::Completed,
        Some(Form::Capacity) => AttemptEnd::Throttled { wait: stated },
        // A 503 tells of overload only where it states a wait, or in words, which the simulator does not have.
        Some(Form::Overloaded | Form::Unavailable) if stated.is_some() => AttemptEnd::Throttled { wait: stated },
        Some(Form::Overloaded | Form::Unavailable | Form::Error | Form::ConnectionLost) => AttemptEnd::Failed,
        Some(Form::ConnectionRefused) => AttemptEnd::NotSent,
        Some(Form::Timeout) => AttemptEnd::TimedOut,
    }
}

/// What tells an engine whether two calls ask for the same: whose they are, for which model, and what the body says.
pub(super) fn identity(facts: &Facts, call: &Call) -> Identity {
    let parts = [u64::from(facts.workload), u64::from(facts.model), facts.content, u64::from(call.body)];
    let fold = |seed: u64| parts.iter().fold(seed, |hash, part| mix(hash ^ part));
    Identity {
        fingerprint: u128::from(fold(1)) << 64 | u128::from(fold(2)),
        key: None,
        previous_attempts: u32::from(call.told_attempt.saturating_sub(1)),
        may_repeat: call.told_attempt > 0,
    }
}

/// What a request asks a model to do: a client of the simulator knows its tokens, and states no limit.
pub(super) fn demand(facts: &Facts) -> Demand {
    Demand { input_tokens: u64::from(facts.prompt_tokens), answers: 1, ..Demand::default() }
}

/// What a request has used that was answered; `None`: the answer has no tokens, only its time is known. The answer
/// comes in one piece, with the usage of a server that caches nothing.
pub(super) fn used(facts: &Facts) -> Option<Used> {
    (facts.prompt_tokens > 0 || facts.output_tokens > 0).then(|| Used {
        input_tokens: Some(u64::from(facts.prompt_tokens)),
        cached_input_tokens: 0,
        output_tokens: u64::from(facts.output_tokens),
        output_is_estimated: false,
        first_output: None,
    })
}

/// What a caller is told of the end of its request.
pub(super) fn told(respond: &Respond) -> Reply {
    respond.form.map_or_else(|| ended(respond.outcome), refusal)
}

/// An ending that has no form of ours.
const fn ended(outcome: Outcome) -> Reply {
    match outcome {
        Outcome::Served => Reply::SUCCESS,
        // The upstream's own words, at which every client stops; the simulator has no form for the status 400.
        Outcome::ClientError => Reply { form: Some(Form::Error), wait_ms: 0, stop: true },
        _ => Reply::failure(Form::ConnectionLost),
    }
}

/// A form of ours in the default wording: `stop` is told as `wait-stop`.
pub(super) fn refusal(form: advice::Form) -> Reply {
    let told = |form, wait: Duration, stop| {
        let wait_ms = u32::try_from(wait.as_millis()).unwrap_or(u32::MAX);
        Reply { form: Some(form), wait_ms, stop }
    };
    match form {
        // 429.
        advice::Form::Wait(wait) => told(Form::Capacity, wait, false),
        advice::Form::WaitStop(wait) | advice::Form::Stop(wait) => told(Form::Capacity, wait, true),
        // 503 or 504 with a wait.
        advice::Form::RetrySoon(wait) | advice::Form::Leave(wait) => told(Form::Overloaded, wait, false),
        // A terminal 4xx: the nearest form that the simulator has.
        advice::Form::StopHard | advice::Form::Auth => told(Form::Error, Duration::ZERO, true),
    }
}

/// A class in the engine's words.
pub(super) const fn criticality(told: Criticality) -> settings::Criticality {
    match told {
        Criticality::CriticalPlus => settings::Criticality::CriticalPlus,
        Criticality::Critical => settings::Criticality::Critical,
        Criticality::SheddablePlus => settings::Criticality::SheddablePlus,
        Criticality::Sheddable => settings::Criticality::Sheddable,
    }
}

/// Whether a request with this end was refused: Seawall ended it, and not because an upstream had failed it.
pub(super) const fn is_refusal(outcome: Outcome) -> bool {
    matches!(
        outcome,
        Outcome::MemoryFull
            | Outcome::Draining
            | Outcome::DeadlineUnmeetable
            | Outcome::CapacityExhausted
            | Outcome::NoHealthyDeployment
            | Outcome::ModelNotFound
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_means_what_the_wire_says_it_means() {
        let stated = |form, wait_ms| attempt_end(Reply { form: Some(form), wait_ms, stop: false });
        let throttled = |wait| AttemptEnd::Throttled { wait };
        let two = Some(Duration::from_secs(2));
        assert_eq!(attempt_end(Reply::SUCCESS), AttemptEnd::Completed);
        assert_eq!((stated(Form::Capacity, 0), stated(Form::Capacity, 2000)), (throttled(None), throttled(two)));
        assert_eq!((stated(Form::Overloaded, 0), stated(Form::Overloaded, 2000)), (AttemptEnd::Failed, throttled(two)));
        let unavailable = (stated(Form::Unavailable, 0), stated(Form::Unavailable, 2000));
        assert_eq!(unavailable, (AttemptEnd::Failed, throttled(two)));
        assert_eq!((stated(Form::Error, 0), stated(Form::Error, 2000)), (AttemptEnd::Failed, AttemptEnd::Failed));
        assert_eq!(stated(Form::ConnectionLost, 0), AttemptEnd::Failed);
        assert_eq!(stated(Form::ConnectionRefused, 0), AttemptEnd::NotSent);
        assert_eq!(stated(Form::Timeout, 0), AttemptEnd::TimedOut);
    }

    #[test]
    fn a_caller_is_told_what_the_wire_contract_says() {
        let wait = Duration::from_millis(1_500);
        let reply = |form, wait_ms, stop| Reply { form: Some(form), wait_ms, stop };
        assert_eq!(refusal(advice::Form::Wait(wait)), reply(Form::Capacity, 1_500, false));
        assert_eq!(refusal(advice::Form::WaitStop(wait)), reply(Form::Capacity, 1_500, true));
        assert_eq!(refusal(advice::Form::Stop(wait)), reply(Form::Capacity, 1_500, true));
        assert_eq!(refusal(advice::Form::RetrySoon(wait)), reply(Form::Overloaded, 1_500, false));
        assert_eq!(refusal(advice::Form::Leave(wait)), reply(Form::Overloaded, 1_500, false));
        assert_eq!(refusal(advice::Form::StopHard), reply(Form::Error, 0, true));
        assert_eq!(ended(Outcome::Served), Reply::SUCCESS);
        assert_eq!(ended(Outcome::Truncated), Reply::failure(Form::ConnectionLost));
    }
}
