//! Step 12, respond: a form of the wire contract -> status, headers and body. Nothing else is ever sent.

use crate::body::ResponseBody;
use crate::record::RequestName;
use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use http::{HeaderMap, Response, StatusCode};
use seawall_config::{OverloadStatus, RefusalWording};
use seawall_core::advice::Form;
use seawall_core::outcome::Outcome;
use seawall_core::time::Duration;
use seawall_wire::client_signals::Agent;
use seawall_wire::dialect::{Dialect, Surface};
use seawall_wire::error_body::ErrorBody;
use seawall_wire::upstream_error::ErrorFacts;

const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");
const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");
const X_MS_RETRY_AFTER_MS: HeaderName = HeaderName::from_static("x-ms-retry-after-ms");
/// Our id of the request.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// How it ended, or `streaming`.
pub const OUTCOME: HeaderName = HeaderName::from_static("x-seawall-outcome");
/// Attempts made, or `streaming`.
pub const ATTEMPTS: HeaderName = HeaderName::from_static("x-seawall-attempts");
/// The model that served it, or was asked last, where that is not the one that was asked for.
pub const MODEL: HeaderName = HeaderName::from_static("x-seawall-model");

/// A refusal or failure to tell.
#[derive(Debug)]
pub struct Refusal<'a> {
    /// How the request ended.
    pub outcome: Outcome,
    /// In which form it is told.
    pub form: Form,
    /// A status of the situation's own (404, 413), where the form leaves it open.
    pub status: Option<StatusCode>,
    /// `error.code`, where it is more exact than the outcome's.
    pub code: Option<&'a str>,
    /// What happened and what to do, without the closing "try again".
    pub message: &'a str,
    /// Attempts made.
    pub attempts: u32,
}

/// Says which model served a request or was the last to fail at it, where that is not the one that was asked for.
pub fn put_model(headers: &mut HeaderMap, model: Option<&str>) {
    if let Some(name) = model.and_then(|name| HeaderValue::from_str(name).ok()) {
        headers.insert(MODEL, name);
    }
}

/// Who is told.
#[derive(Debug, Clone, Copy)]
pub struct Audience {
    /// Whose error form it expects.
    pub surface: Surface,
    /// Which client it seems to be: it chooses the wording only.
    pub agent: Agent,
    /// The setting of that name.
    pub wording: RefusalWording,
    /// The setting of that name.
    pub overload_status: OverloadStatus,
}

/// Builds the answer.
pub fn refusal(refusal: &Refusal<'_>, audience: Audience, id: RequestName) -> Response<ResponseBody> {
    let form = worded(refusal.form, audience);
    let status = status(refusal, form, audience.overload_status);
    let mut headers = HeaderMap::with_capacity(8);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let mut message = refusal.message.to_owned();
    match form {
        Form::Wait(wait) | Form::RetrySoon(wait) => {
            put_wait(&mut headers, wait);
            message.push_str(&again(wait));
        }
        Form::WaitStop(wait) => {
            put_wait(&mut headers, wait);
            headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
            message.push_str(&again(wait));
        }
        Form::Stop(_) | Form::StopHard => {
            headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
        }
        Form::Auth => {}
        Form::Leave(wait) => {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
            put_milliseconds(&mut headers, wait);
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
    }
    let (error_type, code) = words(refusal.outcome);
    let body = ErrorBody { error_type, code: refusal.code.unwrap_or(code), message: &message, request_id: id.as_str() };
    let mut response = Response::new(ResponseBody::full(body.to_json(audience.surface.dialect())));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    put_facts(response.headers_mut(), id, refusal.outcome.label(), refusal.attempts);
    response
}

/// Passes an upstream's judgement of the client's mistake on, in its own words, in the form at which every client stops.
pub fn client_error(
    status: StatusCode,
    upstream_headers: &HeaderMap,
    words: Bytes,
    id: RequestName,
    attempts: u32,
) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::full(words));
    *response.status_mut() = status;
    let mut headers = seawall_wire::headers::towards_client(upstream_headers);
    headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
    put_facts(&mut headers, id, Outcome::ClientError.label(), attempts);
    *response.headers_mut() = headers;
    response
}

/// The body for a client's mistake that came as a stream's first event: the event's own data where that has the form of
/// an error body of the client's dialect, else its words in that form.
pub fn client_error_body(event: &ErrorFacts, stream: &Bytes, audience: Audience, id: RequestName) -> Bytes {
    let dialect = audience.surface.dialect();
    if let Some(data) = first_data(stream).filter(|data| is_error_body(data, dialect)) {
        return data;
    }
    let error_type = event.error_type.as_deref().filter(|word| *word != "error").unwrap_or("invalid_request_error");
    let code = event.code.as_deref().unwrap_or("invalid_request");
    let message = event.message.as_deref().unwrap_or("The model's server refused the request.");
    ErrorBody { error_type, code, message, request_id: id.as_str() }.to_json(dialect)
}

/// The data of a stream's first event; `None` where it stands on several lines.
fn first_data(stream: &Bytes) -> Option<Bytes> {
    let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
    let mut data = stream.split(is_end).skip_while(|line| !line.starts_with(b"data:"));
    let first = data.next()?;
    // Between CR and LF of one line end there is an empty line, which is no line of data either.
    let others = data.take_while(|line| !line.is_empty());
    if others.into_iter().any(|line| line.starts_with(b"data:")) {
        return None;
    }
    Some(stream.slice_ref(first[b"data:".len()..].trim_ascii()))
}

fn is_error_body(data: &[u8], dialect: Dialect) -> bool {
    let Ok(body) = serde_json::from_slice::<serde_json::Value>(data) else { return false };
    let has_error = body.get("error").is_some_and(serde_json::Value::is_object);
    has_error && (dialect != Dialect::Anthropic || body.get("type").is_some_and(|kind| kind == "error"))
}

/// Puts the headers that every response carries.
pub fn put_facts(headers: &mut HeaderMap, id: RequestName, outcome: &'static str, attempts: u32) {
    headers.insert(REQUEST_ID, HeaderValue::from_str(id.as_str()).expect("hexadecimal digits are a header value"));
    headers.insert(OUTCOME, HeaderValue::from_static(outcome));
    headers.insert(ATTEMPTS, HeaderValue::from(attempts));
}

/// `stop` is understood by some clients only; for the others it becomes `wait-stop`.
fn worded(form: Form, audience: Audience) -> Form {
    let obeys = audience.wording == RefusalWording::ByClient && audience.agent == Agent::StopsWhenTold;
    match form {
        Form::Stop(wait) if !obeys => Form::WaitStop(wait),
        other => other,
    }
}

fn status(refusal: &Refusal<'_>, form: Form, overload: OverloadStatus) -> StatusCode {
    if let Some(status) = refusal.status {
        return status;
    }
    match form {
        Form::Wait(_) | Form::WaitStop(_) | Form::Stop(_) if refusal.outcome == Outcome::CapacityExhausted => {
            StatusCode::from_u16(overload.code()).expect("the setting is one of three statuses")
        }
        Form::Wait(_) | Form::WaitStop(_) | Form::Stop(_) => StatusCode::TOO_MANY_REQUESTS,
        Form::StopHard => StatusCode::BAD_REQUEST,
        Form::RetrySoon(_) if refusal.outcome == Outcome::UpstreamTimeout => StatusCode::GATEWAY_TIMEOUT,
        Form::Auth => StatusCode::UNAUTHORIZED,
        Form::Leave(_) if refusal.outcome == Outcome::SlowUpload => StatusCode::REQUEST_TIMEOUT,
        Form::RetrySoon(_) | Form::Leave(_) => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// `error.type` and `error.code` of the contract's table.
pub const fn words(outcome: Outcome) -> (&'static str, &'static str) {
    match outcome {
        Outcome::CapacityExhausted => ("service_unavailable_error", "capacity_exhausted"),
        Outcome::DuplicateInFlight => ("conflict_error", "duplicate_in_flight"),
        Outcome::RetryBudgetExhausted => ("rate_limit_error", "retry_budget_exhausted"),
        Outcome::NoHealthyDeployment => ("server_error", "no_healthy_deployment"),
        Outcome::UpstreamTimeout => ("server_error", "upstream_timeout"),
        Outcome::UpstreamErrorRetried => ("server_error", "upstream_error_retried"),
        Outcome::UpstreamAuth => ("server_error", "upstream_auth"),
        Outcome::UpstreamError | Outcome::Truncated | Outcome::StreamError => ("server_error", "upstream_error"),
        Outcome::DeadlineUnmeetable => ("timeout_error", "deadline_unmeetable"),
        Outcome::Unauthenticated => ("invalid_request_error", "invalid_api_key"),
        Outcome::ModelNotFound => ("invalid_request_error", "model_not_found"),
        Outcome::TooLarge => ("invalid_request_error", "request_too_large"),
        Outcome::SlowUpload => ("timeout_error", "slow_upload"),
        Outcome::MemoryFull => ("server_error", "memory_full"),
        Outcome::Draining => ("server_error", "draining"),
        Outcome::InvalidRequest | Outcome::ClientError | Outcome::ClientGone | Outcome::Served => {
            ("invalid_request_error", "invalid_request")
        }
    }
}

fn put_wait(headers: &mut HeaderMap, wait: Duration) {
    headers.insert(RETRY_AFTER, HeaderValue::from(whole_seconds(wait)));
    put_milliseconds(headers, wait);
}

fn put_milliseconds(headers: &mut HeaderMap, wait: Duration) {
    let milliseconds = HeaderValue::from(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
    headers.insert(RETRY_AFTER_MS, milliseconds.clone());
    headers.insert(X_MS_RETRY_AFTER_MS, milliseconds);
}

fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

fn again(wait: Duration) -> String {
    format!(" Please try again in {}s.", whole_seconds(wait))
}
