//! One caller: makes its call through a client with a retry profile, and loses patience.

use super::attempt::{Attempt, Verdict, attempt};
use super::body::Bodies;
use super::clock;
use super::options::{Endpoint, LoadOptions};
use super::pool::Pool;
use super::record::{AnswerLabel, CallRecord, Ending, FailureKind, Wait};
use super::schedule::Arrival;
use super::target::Target;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderValue, Method, Request};
use http_body_util::Full;
use rand_core::SeedableRng;
use rand_pcg::Pcg64Mcg;
use seawall_model::profile::{Answer, Call, Decision, Outcome};
use secrecy::ExposeSecret;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

/// What all callers share.
pub(super) struct World {
    pub(super) options: LoadOptions,
    pub(super) target: Target,
    pub(super) bodies: Bodies,
    pub(super) pool: Arc<Pool>,
    pub(super) cancelled: CancellationToken,
}

/// Makes one call. It ends by itself when the caller's patience does, counted from `scheduled`.
pub(super) async fn call(world: Arc<World>, arrival: Arrival, scheduled: Instant) -> CallRecord {
    let mut record = CallRecord {
        number: arrival.number,
        scheduled: arrival.at,
        warm_up: arrival.warm_up,
        tenant: arrival.tenant,
        profile: arrival.profile,
        stream: arrival.stream,
        ending: Ending::Cancelled,
        latency: Duration::ZERO,
        lag: clock::now().saturating_duration_since(scheduled),
        attempts: 0,
        answers: Vec::new(),
        waits: Vec::new(),
        first_output: None,
        gaps_micros: Vec::new(),
        gaps_not_kept: 0,
        bytes: 0,
    };
    let deadline = scheduled + world.options.patience;
    let calling = timeout_at(deadline, attempts(&world, &arrival, scheduled, &mut record));
    let ending = tokio::select! {
        () = world.cancelled.cancelled() => Ending::Cancelled,
        ended = calling => ended.unwrap_or(Ending::Failure { kind: FailureKind::Patience, status: None, code: None }),
    };
    record.ending = ending;
    record.latency = clock::now().saturating_duration_since(scheduled);
    record
}

async fn attempts(world: &World, arrival: &Arrival, scheduled: Instant, record: &mut CallRecord) -> Ending {
    let options = &world.options;
    let profile = options.profiles.item(arrival.profile).0;
    let silence = options.attempt_timeout.or(profile.timeout);
    let behind_gateway = options.behind_gateway.contains(options.profiles.item(arrival.profile));
    let body = world.bodies.body(options, arrival);
    let mut random = Pcg64Mcg::seed_from_u64(arrival.seed);
    let mut call = profile.call();
    let began = clock::now();
    loop {
        record.attempts += 1;
        let mut made = attempt(&world.pool, request(world, arrival, &call, &body), silence).await;
        record.bytes += made.bytes;
        record.answers.push(label(&made));
        let outcome = match made.verdict {
            Verdict::Success => return succeed(record, made, scheduled),
            Verdict::Final(kind) => {
                return Ending::Failure { kind, status: made.status, code: made.error.label() };
            }
            Verdict::Judge(Outcome::ReadTimeout) if behind_gateway => {
                made.status = Some(503);
                Outcome::Status(503)
            }
            Verdict::Judge(outcome) => outcome,
        };
        let answer = as_answer(&made, outcome, clock::now().saturating_duration_since(began));
        match call.next(&answer, &mut random) {
            Decision::Stop => {
                let status = made.status.filter(|_| matches!(outcome, Outcome::Status(_) | Outcome::FirstEventError));
                return Ending::Failure { kind: kind_of(outcome), status, code: made.error.label() };
            }
            Decision::RetryAfter { wait, told } => {
                sleep(wait).await;
                record.waits.push(Wait { duration: wait, told });
            }
        }
    }
}

fn succeed(record: &mut CallRecord, made: Attempt, scheduled: Instant) -> Ending {
    record.first_output = made.first_output.map(|first| first.saturating_duration_since(scheduled));
    record.gaps_micros = made.gaps_micros;
    record.gaps_not_kept = made.gaps_not_kept;
    Ending::Success
}

fn as_answer(made: &Attempt, outcome: Outcome, elapsed: Duration) -> Answer<'_> {
    let header = |name: &str| made.headers.get(name).and_then(|value| value.to_str().ok());
    Answer {
        outcome,
        retry_after: header("retry-after"),
        retry_after_ms: header("retry-after-ms"),
        x_ms_retry_after_ms: header("x-ms-retry-after-ms"),
        should_retry: header("x-should-retry"),
        error_type: made.error.kind.as_deref(),
        error_code: made.error.code.as_deref(),
        error_message: made.error.message.as_deref(),
        json_body: made.error.json,
        elapsed,
        unix_seconds: crate::clock::unix_seconds(),
    }
}

fn kind_of(outcome: Outcome) -> FailureKind {
    match outcome {
        Outcome::Status(_) => FailureKind::Status,
        Outcome::Refused => FailureKind::Refused,
        Outcome::Reset => FailureKind::Reset,
        Outcome::ReadTimeout => FailureKind::ReadTimeout,
        Outcome::FirstEventError => FailureKind::FirstEventError,
    }
}

fn label(made: &Attempt) -> AnswerLabel {
    match (&made.verdict, made.status) {
        (Verdict::Judge(Outcome::Refused), _) => AnswerLabel::Fault("refused"),
        (Verdict::Judge(Outcome::Reset), _) => AnswerLabel::Fault("reset"),
        (Verdict::Judge(Outcome::ReadTimeout), _) => AnswerLabel::Fault("read_timeout"),
        (_, Some(status)) => AnswerLabel::Status(status),
        (_, None) => AnswerLabel::Fault("none"),
    }
}

/// The request of the current attempt: the same body each time, and the headers by which this client is known.
fn request(world: &World, arrival: &Arrival, call: &Call<'_>, body: &Bytes) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::new(body.clone()));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = world.target.path.parse().expect("the path was part of a valid URL");
    let headers = request.headers_mut();
    let own = call.request_headers(&Bodies::id(&world.options, arrival));
    headers.insert(HOST, value(&world.target.host));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, text) in own {
        headers.insert(name, value(&text));
    }
    authorise(world, arrival, headers);
    for (name, value) in &world.options.headers {
        headers.insert(name, value.clone());
    }
    request
}

fn authorise(world: &World, arrival: &Arrival, headers: &mut HeaderMap) {
    let key = world.options.tenants.item(arrival.tenant).key.expose_secret();
    let mut secret = |name: http::HeaderName, text: &str| {
        let mut value = value(text);
        value.set_sensitive(true);
        headers.insert(name, value);
    };
    if world.options.endpoint == Endpoint::Messages {
        secret(http::HeaderName::from_static("x-api-key"), key);
        headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
    } else {
        secret(AUTHORIZATION, &format!("Bearer {key}"));
    }
}

fn value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).expect("keys, ids and hosts were checked to be visible ASCII")
}
