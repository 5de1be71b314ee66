//! Every row of the wire contract, in every dialect, as golden text: status, headers and body. The rows whose causes do
//! not exist yet have their bodies here, so that they are what they will be.

use seawall_config::{OverloadStatus, RefusalWording};
use seawall_core::advice::Form;
use seawall_core::outcome::Outcome;
use seawall_core::time::Duration;
use seawall_proxy::body::ResponseBody;
use seawall_proxy::record::RequestName;
use seawall_proxy::respond::{Audience, Refusal, refusal, words};
use seawall_wire::client_signals::Agent;
use seawall_wire::dialect::{Dialect, Endpoint, Surface};
use seawall_wire::error_body::ErrorBody;
use std::fmt::Write as _;

const fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// The rows that can happen: the situation, its outcome, its form, and a status of its own.
fn rows() -> Vec<(&'static str, Outcome, Form, Option<u16>)> {
    let wait = Form::Wait(millis(7_300));
    let soon = Form::RetrySoon(millis(4_000));
    let stop = Form::Stop(millis(41_001));
    let leave = Form::Leave(millis(250));
    vec![
        ("all capacity exhausted", Outcome::CapacityExhausted, wait, None),
        ("all capacity exhausted beyond 58 s", Outcome::CapacityExhausted, Form::WaitStop(millis(58_000)), None),
        ("no healthy deployment", Outcome::NoHealthyDeployment, soon, None),
        ("upstream failed, not retried", Outcome::UpstreamError, soon, None),
        ("upstream silent, not retried", Outcome::UpstreamTimeout, soon, None),
        ("upstream failed, retried", Outcome::UpstreamErrorRetried, Form::WaitStop(millis(30_000)), None),
        ("upstream failed, storm", Outcome::UpstreamError, Form::WaitStop(millis(30_000)), None),
        ("upstream refuses our credential", Outcome::UpstreamAuth, soon, None),
        ("twin in flight, joining impossible", Outcome::DuplicateInFlight, wait, None),
        ("deadline cannot be met", Outcome::DeadlineUnmeetable, stop, None),
        ("client error", Outcome::InvalidRequest, Form::StopHard, None),
        ("body too large", Outcome::TooLarge, Form::StopHard, Some(413)),
        ("unknown or not permitted model", Outcome::ModelNotFound, Form::StopHard, Some(404)),
        ("no key or a wrong one", Outcome::Unauthenticated, Form::Auth, None),
        ("repeat or retry budget spent", Outcome::RetryBudgetExhausted, stop, None),
        ("draining", Outcome::Draining, leave, None),
        ("slow upload", Outcome::SlowUpload, leave, None),
        ("memory full", Outcome::MemoryFull, soon, None),
    ]
}

const SURFACES: [(&str, Surface); 3] =
    [("openai", Surface::OpenAi), ("azure", Surface::AzureDeployment), ("anthropic", Surface::Anthropic)];

fn audience(surface: Surface) -> Audience {
    Audience {
        surface,
        agent: Agent::Unknown,
        wording: RefusalWording::Uniform,
        overload_status: OverloadStatus::TooManyRequests,
    }
}

/// The answer as it goes out.
fn shown(row: (&str, Outcome, Form, Option<u16>), audience: Audience) -> String {
    let (_, outcome, form, status) = row;
    let status = status.map(|status| http::StatusCode::from_u16(status).unwrap());
    let id = RequestName::fresh();
    let told = Refusal { outcome, form, status, code: None, message: "What happened.", attempts: 1 };
    let answer = refusal(&told, audience, id);
    let mut text = format!("{}\n", answer.status().as_u16());
    for (name, value) in answer.headers() {
        let _ = writeln!(text, "{name}: {}", value.to_str().unwrap());
    }
    let ResponseBody::Full(Some(body)) = answer.into_body() else { panic!("a refusal is all there") };
    text.push_str(std::str::from_utf8(&body).unwrap());
    text.replace(id.as_str(), "req_ID")
}

#[test]
fn every_row_whose_cause_exists_is_answered_in_its_form_in_every_dialect() {
    let mut text = String::new();
    for row in rows() {
        for (name, surface) in SURFACES {
            let _ = writeln!(text, "## {} ({name})\n{}\n", row.0, shown(row, audience(surface)));
        }
    }
    insta::assert_snapshot!("rows", text);
}

#[test]
fn the_settings_change_the_wording_and_the_status_of_exhausted_capacity_only() {
    for row in rows() {
        let plain = audience(Surface::OpenAi);
        let uniform = shown(row, plain);
        for overload_status in [OverloadStatus::ServiceUnavailable, OverloadStatus::Overloaded] {
            let other = shown(row, Audience { overload_status, ..plain });
            let expected = if row.1 == Outcome::CapacityExhausted {
                uniform.replacen("429", &overload_status.code().to_string(), 1)
            } else {
                uniform.clone()
            };
            assert_eq!(other, expected, "{}", row.0);
        }
        let by_client = Audience { wording: RefusalWording::ByClient, ..plain };
        // A client that is not known to obey is told the same; one that obeys is told no wait where it may not come back.
        assert_eq!(shown(row, by_client), uniform);
        let obeys = shown(row, Audience { agent: Agent::StopsWhenTold, ..by_client });
        if matches!(row.2, Form::Stop(_)) {
            assert!(uniform.contains("retry-after: 42\n") && uniform.contains("Please try again in 42s."));
            assert!(obeys.starts_with("429\n") && obeys.contains("x-should-retry: false\n"), "{obeys}");
            assert!(!obeys.contains("retry-after") && !obeys.contains("try again"), "{obeys}");
        } else {
            assert_eq!(obeys, uniform, "{}", row.0);
        }
    }
}

/// Rates, quotas, priorities and the account store come with their issues.
#[test]
fn the_rows_without_a_cause_have_their_bodies() {
    let mut text = String::new();
    for (situation, error_type, code, message) in [
        ("tenant over its rate", "rate_limit_error", "rate_limit_exceeded", "Please try again in 7s."),
        ("spent quota", "insufficient_quota", "insufficient_quota", "The period's allowance is spent."),
        ("shed by priority", "rate_limit_error", "shed_low_priority", "Please try again in 12s."),
        ("account store unreachable", "server_error", "account_unavailable", "Please try again in 4s."),
    ] {
        let body = ErrorBody { error_type, code, message, request_id: "req_ID" };
        for (name, surface) in SURFACES {
            let body = body.to_json(surface.dialect());
            let _ = writeln!(text, "{situation} ({name}): {}", std::str::from_utf8(&body).unwrap());
        }
    }
    insta::assert_snapshot!("bodies_without_a_cause", text);
}

/// Inside a stream: one event.
#[test]
fn a_failure_in_mid_stream_is_one_event() {
    let mut text = String::new();
    for outcome in [Outcome::Truncated, Outcome::StreamError, Outcome::DeadlineUnmeetable, Outcome::Draining] {
        let (error_type, code) = words(outcome);
        let body = ErrorBody { error_type, code, message: "What happened.", request_id: "req_ID" };
        for (dialect, endpoint) in [
            (Dialect::OpenAi, Endpoint::ChatCompletions),
            (Dialect::OpenAi, Endpoint::Responses),
            (Dialect::Azure, Endpoint::ChatCompletions),
            (Dialect::Anthropic, Endpoint::Messages),
        ] {
            let event = body.to_event(dialect, endpoint);
            let _ = write!(text, "{} {dialect:?} {endpoint:?}\n{}", outcome.label(), String::from_utf8_lossy(&event));
        }
    }
    insta::assert_snapshot!("events", text);
}
