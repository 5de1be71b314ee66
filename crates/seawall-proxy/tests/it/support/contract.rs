//! The wire contract, checked on every answer that a test reads.

use super::client::Response;

/// The forms that a refusal may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Wait,
    WaitStop,
    StopHard,
    RetrySoon,
    Auth,
    Leave,
}

/// Checks an answer.
pub(crate) fn check(response: &Response) {
    let id = response.header("x-request-id").unwrap_or_else(|| panic!("no x-request-id: {response:?}"));
    assert!(id.len() == 36 && id.starts_with("req_"), "{response:?}");
    assert_eq!(response.count("x-request-id"), 1, "{response:?}");
    assert!(response.attempts().parse::<u32>().is_ok(), "{response:?}");
    let form = match response.outcome() {
        "" => panic!("no x-seawall-outcome: {response:?}"),
        "streaming" | "served" => {
            assert!(response.status == 200, "{response:?}");
            return no_wait(response, None);
        }
        "client_error" => {
            assert!([400, 404, 413].contains(&response.status), "{response:?}");
            return no_wait(response, Some("false"));
        }
        outcome => form_of(outcome, response),
    };
    match form {
        Form::Wait => wait(response, 1..=58, None),
        Form::WaitStop => wait(response, 30..=58, Some("false")),
        Form::RetrySoon => wait(response, 2..=8, None),
        Form::StopHard => no_wait(response, Some("false")),
        Form::Auth => no_wait(response, None),
        Form::Leave => leave(response),
    }
    body(response, form);
}

fn form_of(outcome: &str, response: &Response) -> Form {
    let stops = response.header("x-should-retry").is_some();
    let (form, statuses): (Form, &[u16]) = match outcome {
        "capacity_exhausted" | "upstream_error" | "upstream_timeout" if stops => (Form::WaitStop, &[429]),
        "capacity_exhausted" | "duplicate_in_flight" => (Form::Wait, &[429]),
        "upstream_error_retried" | "deadline_unmeetable" | "retry_budget_exhausted" => (Form::WaitStop, &[429]),
        "upstream_error" | "no_healthy_deployment" | "upstream_auth" | "memory_full" => (Form::RetrySoon, &[503]),
        "upstream_timeout" => (Form::RetrySoon, &[504]),
        "unauthenticated" => (Form::Auth, &[401]),
        "model_not_found" => (Form::StopHard, &[404]),
        "invalid_request" => (Form::StopHard, &[400, 404]),
        "too_large" => (Form::StopHard, &[413]),
        "draining" => (Form::Leave, &[503]),
        "slow_upload" => (Form::Leave, &[408]),
        _ => panic!("not an outcome that is told by an answer: {response:?}"),
    };
    assert!(statuses.contains(&response.status), "{form:?} is told by {statuses:?}: {response:?}");
    form
}

fn milliseconds(response: &Response) -> u64 {
    let both = ["retry-after-ms", "x-ms-retry-after-ms"].map(|name| {
        assert_eq!(response.count(name), 1, "{name}: {response:?}");
        response.header(name).and_then(|text| text.parse::<u64>().ok()).unwrap_or_else(|| panic!("{response:?}"))
    });
    assert_eq!(both[0], both[1], "{response:?}");
    both[0]
}

fn wait(response: &Response, seconds: std::ops::RangeInclusive<u64>, should_retry: Option<&str>) {
    assert_eq!(response.count("retry-after"), 1, "{response:?}");
    let told = response.header("retry-after").expect("counted");
    assert!(!told.is_empty() && told.bytes().all(|byte| byte.is_ascii_digit()), "a whole number: {response:?}");
    let told = response.retry_after();
    assert!(seconds.contains(&told), "{told} is in {seconds:?}: {response:?}");
    let milliseconds = milliseconds(response);
    assert!(milliseconds <= told * 1_000 && milliseconds > (told - 1) * 1_000, "the forms agree: {response:?}");
    assert_eq!(response.header("x-should-retry"), should_retry, "{response:?}");
}

fn no_wait(response: &Response, should_retry: Option<&str>) {
    for name in ["retry-after", "retry-after-ms", "x-ms-retry-after-ms", "llm_provider-retry-after"] {
        assert_eq!(response.count(name), 0, "{name}: {response:?}");
    }
    assert_eq!(response.header("x-should-retry"), should_retry, "{response:?}");
}

fn leave(response: &Response) {
    assert_eq!(response.header("retry-after"), Some("1"), "{response:?}");
    assert!((50..=500).contains(&milliseconds(response)), "{response:?}");
    assert_eq!(response.header("connection"), Some("close"), "{response:?}");
    assert_eq!(response.header("x-should-retry"), None, "{response:?}");
}

fn body(response: &Response, form: Form) {
    assert_eq!(response.header("content-type"), Some("application/json"), "{response:?}");
    let body = response.json();
    let error = &body["error"];
    assert!(error["type"].is_string(), "{response:?}");
    let message = error["message"].as_str().unwrap_or_else(|| panic!("{response:?}"));
    if body.get("request_id").is_some() {
        assert_eq!(body["request_id"].as_str(), response.header("x-request-id"), "{response:?}");
        assert_eq!(body["type"], "error", "{response:?}");
    } else {
        assert!(error["code"].is_string() && error["param"].is_null(), "{response:?}");
    }
    let closing = format!("Please try again in {}s.", response.retry_after());
    if matches!(form, Form::Wait | Form::WaitStop) {
        assert!(message.ends_with(&closing), "{response:?}");
    }
    for word in ["quota", "billing", "credit ", "rate limit", "429"] {
        assert!(!message.to_lowercase().contains(word), "{word}: {response:?}");
    }
}
