//! One simulated server: what happens to a request from its head to its answer.

use super::answer::{self, Answer};
use super::body::{Break, Cut, FleetBody, Reply, broken_whole, full};
use super::counters::{Attempts, Counters};
use super::errors::{ApiError, EVENT_STREAM, json_response, refusal, text_response};
use super::faults::{Faults, Patch, ResetPoint};
use super::host::{EngineHost, Ticket};
use super::limit::Bucket;
use super::metrics;
use super::options::{Pacing, Rejection, ServerOptions};
use super::request::{Ask, Dialect, Draw, Operation, Route, draw, fingerprint};
use super::socket::Resettable;
use crate::clock::{self, Clock};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, Version, header};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use seawall_model::engine::{Job, Refusal, Report, Snapshot};
use secrecy::{ExposeSecret as _, SecretString};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use subtle::ConstantTimeEq as _;
use tokio::sync::Notify;

/// The largest request body.
const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;
/// How long a body may take to come.
const BODY_TIMEOUT: Duration = Duration::from_mins(1);

/// One server of a fleet.
pub(super) struct Server {
    pub(super) index: usize,
    pub(super) options: ServerOptions,
    pub(super) seed: u64,
    pub(super) clock: Clock,
    /// `None` where no time passes.
    pub(super) host: Option<Arc<EngineHost>>,
    pub(super) faults: Mutex<Faults>,
    pub(super) faults_changed: Notify,
    pub(super) counters: Mutex<Counters>,
    pub(super) attempts: Arc<Mutex<Attempts>>,
    /// The engine's speed without faults, in millionths of its settings'.
    speed_ppm: AtomicU32,
    pub(super) bucket: Option<Bucket>,
    /// Requests so far: makes ids differ and chooses which requests fail.
    number: AtomicU64,
}

/// Locks what no code holds while it could panic.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no code panics while it holds this lock")
}

impl Server {
    pub(super) fn new(
        index: usize,
        options: ServerOptions,
        seed: u64,
        clock: Clock,
        attempts: Arc<Mutex<Attempts>>,
    ) -> Self {
        let host = match &options.pacing {
            Pacing::Engine(settings) => Some(EngineHost::new(settings.clone(), clock)),
            Pacing::Instant => None,
        };
        Self {
            index,
            bucket: options.limit.map(Bucket::new),
            options,
            seed,
            clock,
            host,
            faults: Mutex::default(),
            faults_changed: Notify::new(),
            counters: Mutex::default(),
            attempts,
            speed_ppm: AtomicU32::new(1_000_000),
            number: AtomicU64::new(0),
        }
    }

    /// The faults that hold now.
    pub(super) fn present_faults(&self) -> Patch {
        lock(&self.faults).present(self.clock.now())
    }

    /// Changes the speed that the engine has without faults.
    pub(super) fn set_speed_ppm(&self, ppm: u32) {
        self.speed_ppm.store(ppm, Ordering::Relaxed);
        self.apply_capacity();
    }

    /// Tells the engine the speed that the faults leave it.
    pub(super) fn apply_capacity(&self) {
        if let Some(host) = &self.host {
            let percent = u64::from(self.present_faults().capacity_percent.unwrap_or(100));
            let ppm = u64::from(self.speed_ppm.load(Ordering::Relaxed)) * percent / 100;
            host.set_capacity_ppm(u32::try_from(ppm).unwrap_or(u32::MAX));
        }
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        self.host.as_ref().map(|host| host.snapshot()).unwrap_or_default()
    }

    /// Answers one request of the inference API, `/health` or `/metrics`.
    pub(super) async fn handle(
        self: Arc<Self>,
        request: Request<Incoming>,
        connection: Arc<Resettable>,
    ) -> Result<Response<FleetBody>, Cut> {
        match (request.method(), request.uri().path()) {
            (&Method::GET, "/health" | "/livez") => return Ok(text_response(200, "text/plain", String::new())),
            (&Method::GET, "/metrics") => {
                return Ok(text_response(200, metrics::CONTENT_TYPE, metrics::text(&self)));
            }
            _ => {}
        }
        let request_id = format!("req_{:016x}{:016x}", draw(self.seed, self.index as u64, 11), self.next_number());
        let anthropic = request.headers().contains_key("anthropic-version");
        let mut response = match Route::of(request.uri().path()) {
            None => {
                let dialect = if anthropic { Dialect::Anthropic } else { Dialect::OpenAi };
                let path = request.uri().path();
                ApiError::new(404, format!("Unknown path {path}: this server has the OpenAI, Azure and Anthropic APIs"))
                    .response(dialect, &request_id)
            }
            Some(route) if !self.key_is_right(request.headers()) => {
                ApiError::new(401, "Incorrect API key provided.").response(route.dialect, &request_id)
            }
            Some(route) if route.operation == Operation::Models => self.models(&route, anthropic, &request_id),
            Some(route) if request.method() != Method::POST => {
                ApiError::new(405, "This path takes POST only.").response(route.dialect, &request_id)
            }
            Some(route) => self.infer_within_limit(&route, request, connection, &request_id).await?,
        };
        let headers = response.headers_mut();
        if let Ok(value) = HeaderValue::from_str(&request_id) {
            headers.insert("x-request-id", value.clone());
            headers.insert("request-id", value);
        }
        if let Ok(name) = HeaderValue::from_str(&self.options.name) {
            headers.insert("x-fleet-server", name);
        }
        Ok(response)
    }

    fn next_number(&self) -> u64 {
        self.number.fetch_add(1, Ordering::Relaxed)
    }

    fn key_is_right(&self, headers: &HeaderMap) -> bool {
        let Some(key) = &self.options.key else { return true };
        shown_keys(headers).any(|shown| same_secret(shown, key))
    }

    fn models(&self, route: &Route, anthropic: bool, request_id: &str) -> Response<FleetBody> {
        let created = clock::unix_seconds();
        match &route.name {
            None => json_response(200, &answer::models(&self.options.models, anthropic, created)),
            Some(name) if !self.options.only_listed_models || self.options.models.contains(name) => {
                json_response(200, &answer::model(name, created))
            }
            Some(name) => self.unknown_model(name).response(route.dialect, request_id),
        }
    }

    fn unknown_model(&self, name: &str) -> ApiError {
        let message = format!("The model `{name}` does not exist; this server has: {}", self.options.models.join(", "));
        ApiError { status: 404, message, param: Some("model"), code: Some("model_not_found") }
    }

    /// Counts and answers an inference request. The error cuts the connection.
    pub(super) async fn infer(
        self: &Arc<Self>,
        route: &Route,
        request: Request<Incoming>,
        connection: Arc<Resettable>,
        request_id: &str,
    ) -> Result<Response<FleetBody>, Cut> {
        // A reset of the whole connection would take other streams of HTTP/2 with it; there the stream is reset.
        let connection = (request.version() < Version::HTTP_2).then_some(connection);
        let mut visit = Visit::new(Arc::clone(self), connection, request_id);
        let (head, incoming) = request.into_parts();
        let body = match read_body(incoming).await {
            Ok(body) => body,
            Err(error) => return Ok(visit.ended(error.response(route.dialect, request_id))),
        };
        let content = fingerprint(route.operation, &body);
        lock(&self.attempts).count(caller_request_id(&head.headers), content);
        let faults = self.present_faults();
        if let Some(response) = self.refuse_by_fault(route, &faults, &mut visit).await? {
            return Ok(visit.ended(response));
        }
        let draw_from = Draw {
            seed: self.seed,
            output_tokens: &self.options.output_tokens,
            dimensions: self.options.embedding_dimensions,
        };
        let ask = match Ask::read(route, &body, content, &draw_from) {
            Ok(ask) => ask,
            Err((message, param)) => {
                let error = ApiError { status: 400, message, param, code: None };
                return Ok(visit.ended(error.response(route.dialect, request_id)));
            }
        };
        drop(body);
        if self.options.only_listed_models && !self.options.models.contains(&ask.model) {
            return Ok(visit.ended(self.unknown_model(&ask.model).response(route.dialect, request_id)));
        }
        let ticket = match self.submit(&ask) {
            Ok(ticket) => ticket,
            Err(refused) => return Ok(visit.ended(self.full(refused, &faults, ask.dialect, request_id))),
        };
        visit.accepted(&ask);
        let answer = Answer {
            number: visit.number,
            seed: self.seed,
            created: clock::unix_seconds(),
            omit_usage: faults.omit_usage == Some(true),
            sequence: 0,
            envelope: None,
            ask,
        };
        Ok(if answer.ask.stream {
            stream(answer, ticket, visit, &faults)
        } else {
            whole(answer, ticket, visit, &faults).await
        })
    }

    /// What the faults do before the engine sees the request; the error cuts the connection.
    async fn refuse_by_fault(
        &self,
        route: &Route,
        faults: &Patch,
        visit: &mut Visit,
    ) -> Result<Option<Response<FleetBody>>, Cut> {
        if let Some(latency_ms) = faults.extra_latency_ms {
            tokio::time::sleep(Duration::from_millis(latency_ms)).await;
        }
        if faults.hang_before_headers == Some(true) {
            return std::future::pending().await;
        }
        if faults.reset == Some(ResetPoint::BeforeHeaders) || faults.refuse_connections == Some(true) {
            visit.count_status("reset");
            visit.done();
            visit.reset_connection();
            return Err(Cut);
        }
        if faults.refuse == Some(true) {
            let dress = faults.dress(&self.options.rejection);
            return Ok(Some(refusal(
                &dress,
                "This server refuses all requests now.",
                route.dialect,
                &visit.request_id,
            )));
        }
        let percent = u64::from(faults.error_percent.unwrap_or(0));
        let drawn = draw(self.seed, self.index as u64 + 1, visit.number) % 100;
        if drawn < percent {
            let message = "The server had an error while processing your request.";
            return Ok(Some(refusal(&faults.error(), message, route.dialect, &visit.request_id)));
        }
        Ok(None)
    }

    fn submit(&self, ask: &Ask) -> Result<Option<Ticket>, Refusal> {
        let Some(host) = self.host.as_ref().filter(|_| ask.operation != Operation::CountTokens) else {
            return Ok(None);
        };
        let job = Job {
            prompt_tokens: ask.prompt_tokens,
            output_tokens: ask.output_tokens,
            prefix: ask.prefix,
            report: if ask.stream { Report::EveryToken } else { Report::Finish },
        };
        host.submit(job).map(Some)
    }

    fn full(&self, refused: Refusal, faults: &Patch, dialect: Dialect, request_id: &str) -> Response<FleetBody> {
        match refused {
            Refusal::QueueFull => {
                let dress: Rejection = faults.dress(&self.options.rejection);
                refusal(&dress, "The engine is overloaded: its waiting queue is full.", dialect, request_id)
            }
            Refusal::TooLarge => {
                let message = "This request is larger than the memory of this server; send a shorter prompt.";
                let code = Some("context_length_exceeded");
                ApiError { status: 400, message: message.to_owned(), param: None, code }.response(dialect, request_id)
            }
        }
    }
}

async fn read_body(incoming: Incoming) -> Result<Bytes, ApiError> {
    match tokio::time::timeout(BODY_TIMEOUT, Limited::new(incoming, MAX_BODY_BYTES).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
            Err(ApiError::new(413, format!("The body is larger than {MAX_BODY_BYTES} bytes.")))
        }
        Ok(Err(error)) => Err(ApiError::new(400, format!("The body ended early: {error}"))),
        Err(_) => Err(ApiError::new(408, format!("The body took longer than {} s.", BODY_TIMEOUT.as_secs()))),
    }
}

async fn whole(answer: Answer, ticket: Option<Ticket>, mut visit: Visit, faults: &Patch) -> Response<FleetBody> {
    if let Some(mut ticket) = ticket {
        ticket.finished().await;
    }
    visit.made(answer.ask.output_tokens.saturating_mul(answer.ask.choices));
    let mut body = answer.whole();
    if let Some(least) = faults.pad_bytes.and_then(|bytes| usize::try_from(bytes).ok()) {
        let missing = least.saturating_sub(body.len());
        body = Bytes::from([&body[..], " ".repeat(missing).as_bytes()].concat());
    }
    visit.count_status("200");
    let mut response = if let Some(how) = break_of(faults) {
        Response::new(broken_whole(&body, how, visit))
    } else {
        visit.done();
        Response::new(full(body))
    };
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn stream(answer: Answer, ticket: Option<Ticket>, mut visit: Visit, faults: &Patch) -> Response<FleetBody> {
    visit.count_status("200");
    let mut reply = Reply::new(answer, ticket, visit);
    reply.breaks = break_of(faults);
    reply.padding = faults.pad_bytes.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(0);
    let mut response = Response::new(reply.into_body());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

fn break_of(faults: &Patch) -> Option<Break> {
    if faults.hang_mid_stream == Some(true) {
        Some(Break::Hang)
    } else if faults.reset == Some(ResetPoint::MidStream) {
        Some(Break::Reset)
    } else if faults.error_mid_stream == Some(true) {
        Some(Break::ErrorEvent)
    } else {
        (faults.truncate == Some(true)).then_some(Break::Truncate)
    }
}

/// The id that the router, or else the client, gave the request.
fn caller_request_id(headers: &HeaderMap) -> Option<&str> {
    ["x-seawall-request-id", "x-request-id"].iter().find_map(|name| headers.get(*name)?.to_str().ok())
}

/// The keys that a request shows, in the three usual headers.
fn shown_keys(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let bearer = bearer.and_then(|text| text.strip_prefix("Bearer ").or_else(|| text.strip_prefix("bearer ")));
    let others = ["api-key", "x-api-key"].iter().filter_map(|name| headers.get(*name)?.to_str().ok());
    bearer.into_iter().chain(others)
}

/// Compares without telling by its time where the difference is.
pub(super) fn same_secret(shown: &str, secret: &SecretString) -> bool {
    shown.as_bytes().ct_eq(secret.expose_secret().as_bytes()).into()
}

/// The presence of one request's client: it is counted as a disconnect when it is dropped before the end.
pub(super) struct Visit {
    server: Arc<Server>,
    connection: Option<Arc<Resettable>>,
    request_id: String,
    number: u64,
    over: bool,
}

impl Visit {
    pub(super) fn new(server: Arc<Server>, connection: Option<Arc<Resettable>>, request_id: &str) -> Self {
        let number = {
            let mut counters = lock(&server.counters);
            counters.requests += 1;
            server.next_number()
        };
        Self { server, connection, request_id: request_id.to_owned(), number, over: false }
    }

    pub(super) fn request_id(&self) -> String {
        self.request_id.clone()
    }

    fn accepted(&mut self, ask: &Ask) {
        let mut counters = lock(&self.server.counters);
        counters.prompt_tokens += u64::from(ask.prompt_tokens);
        counters.streams += u64::from(ask.stream);
    }

    /// Counts output tokens.
    pub(super) fn made(&mut self, tokens: u32) {
        lock(&self.server.counters).generation_tokens += u64::from(tokens);
    }

    fn count_status(&mut self, status: &str) {
        let mut counters = lock(&self.server.counters);
        match counters.by_status.get_mut(status) {
            Some(count) => *count += 1,
            None => {
                counters.by_status.insert(status.to_owned(), 1);
            }
        }
    }

    /// The request has had all that it gets.
    pub(super) fn done(&mut self) {
        self.over = true;
    }

    /// The connection is to end with a reset instead of a clean end.
    pub(super) fn reset_connection(&self) {
        if let Some(connection) = &self.connection {
            connection.reset_at_end();
        }
    }

    pub(super) fn ended(mut self, response: Response<FleetBody>) -> Response<FleetBody> {
        self.count_status(response.status().as_str());
        self.done();
        response
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        if !self.over {
            lock(&self.server.counters).disconnects += 1;
        }
    }
}
