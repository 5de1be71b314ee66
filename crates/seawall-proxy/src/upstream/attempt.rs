//! One attempt: a request out, the head of the answer in, and a verdict before anything is promised to the client.
//!
//! The status line is held until the answer is known to be one: a short answer in one piece until it is all there, a
//! stream until its first event. So an error dressed as a success, a silent stream and a connection that breaks early
//! are all still failures that a second attempt can repair.

use crate::clock::{Clock, unix_time};
use crate::upstream::Upstream;
use crate::upstream::pool::{ConnectError, Connection};
use crate::upstream::tls;
use bytes::{Bytes, BytesMut};
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, HeaderMap};
use http::{Method, Request, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use seawall_core::classify::AttemptEnd;
use seawall_core::engine::Dispatch;
use seawall_core::time::Instant;
use seawall_wire::dialect::Endpoint;
use seawall_wire::sse::SseScanner;
use seawall_wire::upstream_error::{self, ErrorFacts, Verdict, classify_stream_error};
use seawall_wire::usage::{Usage, usage_in_tail};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant as TokioInstant, timeout_at};

/// An answer in one piece up to this size is held until it is complete.
const HELD_BYTES: usize = 256 * 1024;
/// How much of a stream is held at most while its first event is awaited.
const HELD_STREAM_BYTES: usize = 64 * 1024;
/// The end of an answer in one piece, where its usage stands.
const USAGE_TAIL_BYTES: usize = 16 * 1024;
/// How much of a failure's body is read for its words.
const WORDS_BYTES: usize = 64 * 1024;
/// A spent quota is asked about again after this.
const QUOTA_WAIT: Duration = Duration::from_mins(1);
/// How long the body of a failure is read for.
const WORDS_TIME: Duration = Duration::from_secs(2);

/// What is sent: the same for every attempt of a request but for the target.
#[derive(Debug)]
pub struct Outgoing {
    /// Path and query at this upstream.
    pub target: String,
    /// The headers that may pass, without a credential.
    pub headers: HeaderMap,
    /// The body, with this upstream's model name.
    pub body: Bytes,
    /// What is asked for.
    pub endpoint: Endpoint,
    /// Whether the client asked for a stream.
    pub stream: bool,
}

/// An answer that may be relayed.
#[derive(Debug)]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its headers, as the upstream sent them.
    pub headers: HeaderMap,
    /// What has been read.
    pub held: VecDeque<Bytes>,
    /// The rest; `None` where what is held is all.
    pub rest: Option<(Incoming, Connection)>,
    /// The scanner that has seen what is held, for a stream.
    pub scanner: Option<SseScanner>,
    /// The usage that an answer in one piece states.
    pub usage: Option<Usage>,
    /// The keep-alive time that the upstream states.
    pub keep_alive: Option<Duration>,
}

impl Answer {
    /// The length to tell the client, where it is known. A stream has none, whatever the upstream said: an error event
    /// may have to follow.
    pub fn content_length(&self) -> Option<u64> {
        if self.scanner.is_some() {
            return None;
        }
        self.headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
    }

    /// What is held, as one piece.
    pub fn whole(mut self) -> Bytes {
        joined(&mut self.held)
    }
}

/// An attempt that brought no answer.
#[derive(Debug)]
pub struct Failure {
    /// What it means.
    pub end: AttemptEnd,
    /// The upstream's status, headers and body, where it gave some. The status of a client's mistake is the one to pass
    /// on.
    pub answered: Option<Box<(StatusCode, HeaderMap, Bytes)>>,
    /// The words of an error that came as a stream's first event: what was answered is the stream.
    pub event: Option<ErrorFacts>,
    /// What happened, for the log.
    pub words: String,
}

impl Failure {
    /// One without an answer.
    pub fn silent(end: AttemptEnd, words: impl Into<String>) -> Self {
        Self { end, answered: None, event: None, words: words.into() }
    }
}

/// The times that bound an attempt.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    clock: Clock,
    deadline: Instant,
    idle: Duration,
    next: TokioInstant,
    deadline_first: bool,
}

impl Bounds {
    fn new(clock: Clock, dispatch: &Dispatch) -> Self {
        let deadline = dispatch.deadline.unwrap_or(Instant::MAX);
        Self::until(clock, clock.now() + dispatch.timeouts.first_byte, deadline, dispatch.timeouts.idle)
    }

    fn until(clock: Clock, silent: Instant, deadline: Instant, idle: Duration) -> Self {
        let next = clock.to_tokio(silent.min(deadline));
        Self { clock, deadline, idle, next, deadline_first: deadline < silent }
    }

    /// The bounds of the next piece of an answer that has begun.
    fn between_pieces(self) -> Self {
        Self::until(self.clock, self.clock.now() + self.idle, self.deadline, self.idle)
    }

    fn passed(self) -> Failure {
        if self.deadline_first {
            return Failure::silent(AttemptEnd::DeadlinePassed, "the caller's deadline passed");
        }
        Failure::silent(AttemptEnd::TimedOut, "silent for longer than the timeout")
    }
}

/// Makes the attempt that `dispatch` permits.
pub async fn attempt(
    dispatch: Dispatch,
    upstream: &Arc<Upstream>,
    outgoing: Outgoing,
    clock: Clock,
) -> Result<Answer, Failure> {
    let bounds = Bounds::new(clock, &dispatch);
    let expected = Expected { endpoint: outgoing.endpoint, stream: outgoing.stream };
    let request = build(upstream, outgoing)?;
    let connect = dispatch.timeouts.connect;
    let get = upstream.connections.get(dispatch.fresh_connection, connect);
    let mut connection = match timeout_at(bounds.next, get).await {
        Ok(Ok(connection)) => connection,
        Ok(Err(error)) => return Err(not_connected(&error)),
        Err(_) => return Err(bounds.passed()),
    };
    let sent = timeout_at(bounds.next, connection.sender().try_send_request(request)).await;
    let response = match sent {
        Err(_) => return Err(bounds.passed()),
        Ok(Ok(response)) => response,
        Ok(Err(error)) => {
            if connection.reused {
                upstream.connections.broke_when_reused(&connection);
            }
            return Err(broken_before_answer(error.message().is_some(), connection.reused, error.error()));
        }
    };
    read(upstream, connection, response, expected, bounds).await
}

/// What kind of answer is expected.
#[derive(Debug, Clone, Copy)]
struct Expected {
    endpoint: Endpoint,
    stream: bool,
}

fn build(upstream: &Upstream, outgoing: Outgoing) -> Result<Request<Full<Bytes>>, Failure> {
    let credential = upstream
        .credential
        .current()
        .map_err(|error| Failure::silent(AttemptEnd::CredentialRefused, error.to_string()))?;
    let mut headers = outgoing.headers;
    headers.insert(HOST, upstream.host.clone());
    headers.insert(CONTENT_LENGTH, outgoing.body.len().into());
    if let Some((name, value)) = credential {
        headers.insert(name, value);
    }
    let mut request = Request::new(Full::new(outgoing.body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = outgoing
        .target
        .parse()
        .map_err(|_| Failure::silent(AttemptEnd::ClientFault, "the path does not form an address at the upstream"))?;
    *request.headers_mut() = headers;
    Ok(request)
}

fn not_connected(error: &ConnectError) -> Failure {
    let remedy = match error {
        ConnectError::Io(error) => tls::certificate_remedy(error),
        ConnectError::Full(_) | ConnectError::TimedOut(_) | ConnectError::Http(_) => None,
    };
    let words = remedy.map_or_else(|| error.to_string(), |remedy| format!("{error}: {remedy}"));
    Failure::silent(AttemptEnd::NotSent, words)
}

/// `returned`: the client library gave the request back, so not a byte of it was sent.
fn broken_before_answer(returned: bool, reused: bool, error: &hyper::Error) -> Failure {
    // On a reused connection the likely cause is that the upstream closed it while it was idle; the request may still
    // have arrived, so its replacement is paid for and happens at most once.
    let end = match (returned, reused) {
        (_, true) => AttemptEnd::StaleConnection,
        (true, false) => AttemptEnd::NotSent,
        (false, false) => AttemptEnd::Failed,
    };
    Failure::silent(end, error.to_string())
}

async fn read(
    upstream: &Arc<Upstream>,
    connection: Connection,
    response: http::Response<Incoming>,
    expected: Expected,
    bounds: Bounds,
) -> Result<Answer, Failure> {
    let (head, mut body) = response.into_parts();
    if !head.status.is_success() {
        let (words, complete) = collect_words(&mut body, bounds).await;
        // Read to its end, a connection can serve again.
        if complete {
            upstream.connections.put(connection, stated_keep_alive(&head.headers));
        }
        let verdict = classify(head.status, &head.headers, &words);
        return Err(failure(upstream, verdict, head.status, head.headers, words));
    }
    let is_stream = expected.stream && seawall_wire::headers::is_event_stream(&head.headers);
    let mut answer = Answer {
        status: head.status,
        keep_alive: stated_keep_alive(&head.headers),
        headers: head.headers,
        held: VecDeque::new(),
        rest: None,
        scanner: is_stream.then(|| SseScanner::new(expected.endpoint)),
        usage: None,
    };
    if is_stream {
        hold_first_event(upstream, &mut answer, body, connection, bounds).await?;
    } else {
        hold_whole(upstream, &mut answer, body, connection, bounds).await?;
    }
    Ok(answer)
}

/// Reads until the first event that is no comment; an error there is a failure in the dress of a success.
async fn hold_first_event(
    upstream: &Upstream,
    answer: &mut Answer,
    mut body: Incoming,
    connection: Connection,
    bounds: Bounds,
) -> Result<(), Failure> {
    let mut held_bytes = 0;
    while held_bytes < HELD_STREAM_BYTES {
        let Some(piece) = next_piece(&mut body, bounds).await? else {
            return Err(Failure::silent(AttemptEnd::Failed, "the stream ended before its first event"));
        };
        held_bytes += piece.len();
        let scanner = answer.scanner.as_mut().expect("a stream has a scanner");
        scanner.push(&piece);
        answer.held.push_back(piece);
        let facts = scanner.facts();
        if let Some(error) = facts.error.as_ref().filter(|error| error.event == 1) {
            let (verdict, facts) = (classify_stream_error(&error.facts), error.facts.clone());
            let words = joined(&mut answer.held);
            let headers = std::mem::take(&mut answer.headers);
            let failure = failure(upstream, verdict, answer.status, headers, words);
            return Err(Failure { event: Some(facts), ..failure });
        }
        if facts.events > 0 {
            break;
        }
    }
    answer.rest = Some((body, connection));
    Ok(())
}

/// Reads a short answer to its end; a long one is relayed from here on.
async fn hold_whole(
    upstream: &Arc<Upstream>,
    answer: &mut Answer,
    mut body: Incoming,
    connection: Connection,
    mut bounds: Bounds,
) -> Result<(), Failure> {
    let mut held_bytes = 0;
    while held_bytes < HELD_BYTES {
        // With the last byte of a stated length it is over: asking for more would be another turn of the tasks.
        let piece = if body.is_end_stream() { None } else { next_piece(&mut body, bounds).await? };
        let Some(piece) = piece else {
            upstream.connections.put(connection, answer.keep_alive);
            return check_whole(upstream, answer);
        };
        held_bytes += piece.len();
        answer.held.push_back(piece);
        bounds = bounds.between_pieces();
    }
    answer.rest = Some((body, connection));
    Ok(())
}

fn check_whole(upstream: &Upstream, answer: &mut Answer) -> Result<(), Failure> {
    let whole = joined(&mut answer.held);
    let verdict = classify(answer.status, &answer.headers, &whole);
    if verdict != Verdict::Served {
        let headers = std::mem::take(&mut answer.headers);
        return Err(failure(upstream, verdict, answer.status, headers, whole));
    }
    answer.usage = usage_in_tail(&whole[whole.len().saturating_sub(USAGE_TAIL_BYTES)..]);
    answer.held.push_back(whole);
    Ok(())
}

fn joined(pieces: &mut VecDeque<Bytes>) -> Bytes {
    if pieces.len() == 1 {
        return pieces.pop_front().unwrap_or_default();
    }
    let mut whole = BytesMut::with_capacity(pieces.iter().map(Bytes::len).sum());
    for piece in pieces.drain(..) {
        whole.extend_from_slice(&piece);
    }
    whole.freeze()
}

async fn next_piece(body: &mut Incoming, bounds: Bounds) -> Result<Option<Bytes>, Failure> {
    loop {
        match timeout_at(bounds.next, body.frame()).await {
            Err(_) => return Err(bounds.passed()),
            Ok(None) => return Ok(None),
            Ok(Some(Err(error))) => return Err(Failure::silent(AttemptEnd::Failed, error.to_string())),
            Ok(Some(Ok(frame))) => {
                if let Ok(piece) = frame.into_data() {
                    return Ok(Some(piece));
                }
            }
        }
    }
}

/// The words of a failure, up to a bound in bytes and time: they are for the client and the log, not worth a wait. Also
/// whether they are complete.
async fn collect_words(body: &mut Incoming, bounds: Bounds) -> (Bytes, bool) {
    let mut words = BytesMut::new();
    let read = async {
        while words.len() < WORDS_BYTES {
            match next_piece(body, bounds).await {
                Ok(Some(piece)) => words.extend_from_slice(&piece),
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
        false
    };
    // What came in time is all there is.
    let complete = tokio::time::timeout(WORDS_TIME, read).await.unwrap_or(false);
    (words.freeze(), complete)
}

fn classify(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Verdict {
    let seen = upstream_error::Answer { status: status.as_u16(), headers, body, now: unix_time() };
    upstream_error::classify(&seen).verdict
}

fn failure(upstream: &Upstream, verdict: Verdict, status: StatusCode, headers: HeaderMap, words: Bytes) -> Failure {
    let mut told = status;
    let end = match verdict {
        Verdict::ClientFault { status } => {
            told = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
            AttemptEnd::ClientFault
        }
        Verdict::ContextExceeded => {
            told = StatusCode::BAD_REQUEST;
            AttemptEnd::ContextExceeded
        }
        Verdict::Throttled { wait } => AttemptEnd::Throttled { wait },
        Verdict::QuotaSpent { wait } => AttemptEnd::Throttled { wait: Some(wait.unwrap_or(QUOTA_WAIT)) },
        Verdict::CredentialRefused => {
            upstream.credential.credential_refused();
            AttemptEnd::CredentialRefused
        }
        Verdict::TimedOut => AttemptEnd::TimedOut,
        Verdict::Failed | Verdict::Served => AttemptEnd::Failed,
    };
    Failure { end, answered: Some(Box::new((told, headers, words))), event: None, words: format!("status {status}") }
}

/// The time in `Keep-Alive: timeout=N`; zero where the upstream says `Connection: close`.
pub(super) fn stated_keep_alive(headers: &HeaderMap) -> Option<Duration> {
    if headers.get(CONNECTION).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"close")) {
        return Some(Duration::ZERO);
    }
    let text = headers.get("keep-alive")?.to_str().ok()?;
    let seconds = text.split(',').find_map(|part| part.trim().strip_prefix("timeout="))?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}
