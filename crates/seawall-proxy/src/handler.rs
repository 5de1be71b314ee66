//! The life of a request, in one function from top to bottom.

use crate::app::{App, RequestGuard};
use crate::body::ResponseBody;
use crate::early::Early;
use crate::flight::{Flight, Head, Reader};
use crate::gate::{self, Taken};
use crate::intake;
use crate::record::{Record, RequestName};
use crate::relay::{EventForm, Relay};
use crate::respond::{self, Audience, Refusal};
use crate::upstream::attempt::Failure;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use seawall_core::classify::AttemptEnd;
use seawall_core::engine::{Arrival, Respond};
use seawall_core::outcome::Outcome;
use seawall_core::time::Instant;
use seawall_wire::client_signals::Agent;
use seawall_wire::dialect::Surface;
use std::sync::Arc;

/// Answers one request. It always ends in exactly one outcome, whatever happens to the connection meanwhile.
pub async fn handle(app: Arc<App>, request: Request<Incoming>) -> Response<ResponseBody> {
    let (head, mut body) = request.into_parts();
    let record = Record::new(RequestName::fresh(), app.clock().now());
    let mut guard = RequestGuard::new(Arc::clone(&app), record);
    let mut audience = audience(&app, &head);
    let body_comes = intake::comes_anyway(&head);
    let ready = tokio::select! {
        biased;
        ready = attend(&app, head, &mut body, &mut guard, &mut audience) => ready,
        () = app.cut.cancelled() => Ready::Early(cut_off()),
    };
    match ready {
        Ready::Models(body) => answer_models(body, guard),
        Ready::Early(early) => {
            if body_comes && early.outcome != Outcome::SlowUpload {
                intake::discard(body);
            }
            refuse_early(&early, guard, audience)
        }
        Ready::Answer(answer) => answer_from(&answer, guard),
        Ready::Refused(respond, failure) => refuse(&respond, failure.as_deref(), guard, audience),
    }
}

/// What a request is ready to be answered with.
enum Ready {
    /// A list of models.
    Models(Bytes),
    /// A refusal that is none of the engine's.
    Early(Early),
    /// An upstream's answer.
    Answer(Begins),
    /// The engine's refusal, and the last attempt's failure.
    Refused(Respond, Option<Arc<Failure>>),
}

/// An answer that begins, and what bounds and shapes it for this client.
struct Begins {
    head: Arc<Head>,
    form: EventForm,
    /// Its own deadline, where the flight is not bounded by it.
    deadline: Option<Instant>,
}

/// Takes the request in and waits for the answer of its flight, be it its own or one that it joins.
async fn attend(
    app: &Arc<App>,
    head: Parts,
    body: &mut Incoming,
    guard: &mut RequestGuard,
    audience: &mut Audience,
) -> Ready {
    let taken = match gate::take(app, &head, body, guard, audience).await {
        Ok(Taken::Models(body)) => return Ready::Models(body),
        Ok(Taken::Inference(taken)) => taken,
        Err(early) => return Ready::Early(early),
    };
    let form = EventForm { dialect: audience.surface.dialect(), endpoint: taken.endpoint };
    let arrival = Arrival { request: guard.request, ..taken.arrival };
    let name = guard.record().id;
    guard.arrive(arrival, Flight::new(app, guard.request, name, head, taken));
    let deadline = arrival.deadline.filter(|_| guard.record().joined.is_some());
    let begins = match deadline {
        None => guard.begins().await,
        Some(at) => match tokio::time::timeout_at(app.clock().to_tokio(at), guard.begins()).await {
            Ok(begins) => begins,
            Err(_) => return Ready::Early(too_late()),
        },
    };
    let failure = guard.reader().and_then(|reader| reader.flight.mail.failure());
    if let Some(failure) = &failure {
        note_failure(guard, failure);
    }
    match begins {
        Ok(head) => Ready::Answer(Begins { head, form, deadline }),
        Err(Some(respond)) => Ready::Refused(respond, failure),
        Err(None) => Ready::Early(lost()),
    }
}

/// Its own deadline came while it waited for the answer of a flight that has more time.
fn too_late() -> Early {
    Early::new(Outcome::DeadlineUnmeetable, message(Outcome::DeadlineUnmeetable))
}

/// The drain limit came before an answer began.
fn cut_off() -> Early {
    Early::new(Outcome::Draining, "The service is shutting down; another instance will serve the request.")
}

fn audience(app: &App, head: &Parts) -> Audience {
    let server = app.config.server();
    Audience {
        surface: Surface::guess(head.uri.path(), head.headers.contains_key("anthropic-version")),
        agent: Agent::Unknown,
        wording: server.refusal_wording,
        overload_status: server.overload_status,
    }
}

fn answer_models(body: Bytes, mut guard: RequestGuard) -> Response<ResponseBody> {
    let id = guard.record().id;
    let mut response = Response::new(ResponseBody::full(body));
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(http::header::CONTENT_TYPE, json);
    respond::put_facts(response.headers_mut(), id, Outcome::Served.label(), 0);
    guard.refused(Outcome::Served, StatusCode::OK.as_u16());
    response
}

/// The engine dropped the request without a word: it cannot, and if it did the client is told something true.
fn lost() -> Early {
    Early::new(Outcome::UpstreamError, "The request was lost inside the service.")
}

fn note_failure(guard: &mut RequestGuard, failed: &Failure) {
    let record = guard.record();
    record.upstream_status = failed.answered.as_deref().map(|(status, ..)| status.as_u16());
    match failed.answered.as_deref() {
        // Some servers quote the credential that they refuse: its words stay out of the log.
        _ if failed.end == AttemptEnd::CredentialRefused => record.keep_upstream_words(failed.words.as_bytes()),
        Some((_, _, words)) => record.keep_upstream_words(words),
        None => record.keep_upstream_words(failed.words.as_bytes()),
    }
}

/// Passes an answer on: at once where it is all there, else piece by piece.
fn answer_from(begins: &Begins, mut guard: RequestGuard) -> Response<ResponseBody> {
    let Begins { head, form, deadline } = begins;
    let record = guard.record();
    let id = record.id;
    record.attempts = head.attempts;
    record.deployment = Some(head.deployment);
    record.first_byte = Some(head.at.max(record.arrived));
    record.status = head.status.as_u16();
    record.upstream_status = Some(head.status.as_u16());
    let whole = guard.reader().and_then(Reader::whole).filter(|_| !head.is_stream);
    let mut out_headers = head.headers.clone();
    let outcome = if whole.is_some() { Outcome::Served.label() } else { "streaming" };
    respond::put_facts(&mut out_headers, id, outcome, head.attempts);
    respond::put_model(&mut out_headers, guard.fallback());
    let body = if let Some((whole, tally)) = whole {
        let record = guard.record();
        record.tally = tally;
        record.response_bytes = whole.len() as u64;
        guard.answered(None);
        ResponseBody::full(whole)
    } else {
        ResponseBody::Relay(Box::new(Relay::begin(guard, *form, head, *deadline)))
    };
    let mut response = Response::new(body);
    *response.status_mut() = head.status;
    *response.headers_mut() = out_headers;
    response
}

/// Tells a client why there is no answer: by the contract's forms, or in the upstream's own words where the mistake is
/// the client's.
fn refuse(
    respond: &Respond,
    failure: Option<&Failure>,
    mut guard: RequestGuard,
    audience: Audience,
) -> Response<ResponseBody> {
    let id = guard.record().id;
    let answered = failure.and_then(|failure| failure.answered.as_deref());
    let event = failure.and_then(|failure| failure.event.as_ref());
    let mut response = match (respond.form, respond.outcome, answered) {
        (None, Outcome::ClientError, Some((status, headers, words))) => {
            let (words, is_event) = match event {
                Some(event) => (respond::client_error_body(event, words, audience, id), true),
                None => (words.clone(), false),
            };
            let mut response = respond::client_error(*status, headers, words, id, respond.attempts);
            if is_event {
                response.headers_mut().insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            }
            response
        }
        (form, outcome, _) => {
            let form = form.unwrap_or(seawall_core::advice::Form::StopHard);
            let message = message(outcome);
            let refusal = Refusal { outcome, form, status: None, code: None, message, attempts: respond.attempts };
            respond::refusal(&refusal, audience, id)
        }
    };
    respond::put_model(response.headers_mut(), guard.fallback_at(respond.deployment));
    guard.responded(respond, response.status().as_u16());
    response
}

fn refuse_early(early: &Early, mut guard: RequestGuard, audience: Audience) -> Response<ResponseBody> {
    let (id, attempts) = (guard.record().id, guard.record().attempts);
    let form = early.form;
    let refusal = Refusal {
        outcome: early.outcome,
        form,
        status: early.status,
        code: early.code,
        message: &early.message,
        attempts,
    };
    let mut response = respond::refusal(&refusal, audience, id);
    if let Some(allow) = early.allow {
        response.headers_mut().insert(http::header::ALLOW, HeaderValue::from_static(allow));
    }
    guard.refused(early.outcome, response.status().as_u16());
    response
}

/// What happened and what to do, in one or two sentences; the wait is added by the form.
const fn message(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::CapacityExhausted => "All capacity for this model is in use.",
        Outcome::DuplicateInFlight => "The same request is being answered already, and that answer cannot be shared.",
        Outcome::RetryBudgetExhausted => "The same request failed before, and no further attempt is made for it now.",
        Outcome::NoHealthyDeployment => "No deployment of this model can be reached.",
        Outcome::UpstreamError => "The model's server failed to answer.",
        Outcome::UpstreamTimeout => "The model's server was silent for too long.",
        Outcome::UpstreamErrorRetried => "The model's server failed to answer more than once.",
        Outcome::UpstreamAuth => "The model's server does not accept this service's credential.",
        Outcome::DeadlineUnmeetable => "The request's own deadline has passed or cannot be met.",
        Outcome::Draining => "The service is shutting down; another instance will serve the request.",
        Outcome::ClientError
        | Outcome::Served
        | Outcome::Truncated
        | Outcome::StreamError
        | Outcome::ClientGone
        | Outcome::Unauthenticated
        | Outcome::ModelNotFound
        | Outcome::InvalidRequest
        | Outcome::TooLarge
        | Outcome::SlowUpload
        | Outcome::MemoryFull => "The request cannot be served.",
    }
}
