//! What an upstream's answer means. One table, [`classify`], for every dialect and every dress:
//!
//! | answer | verdict |
//! | --- | --- |
//! | 2xx | served, unless the body is an error object: then by its code and type |
//! | 429, 529; any status with code `429`; 403 or 5xx with a known overload code or type | throttled |
//! | 503 with a stated wait or overload words | throttled |
//! | 402; 403, 429 or 400 that tell of a spent quota or budget | quota spent |
//! | 401, other 403 | credential refused |
//! | 408, 504 | timed out |
//! | 3xx, 407, 409, 424, 425, 499, other 5xx | failed |
//! | other 4xx (400, 404, 413, 422, ...) | the client's fault; 404 and 413 stay, the rest is passed on as 400 |
//! | 400 or 422 that tell of more tokens than the model's context holds | the same, and a longer context would do |
//!
//! The words come from what the field emits: OpenAI (`server_is_overloaded`, `slow_down`), Azure (code `"429"`),
//! Anthropic (`overloaded_error`), TGI (flat `error`, `error_type: overloaded`), SGLang (queue full; code 503 as a
//! stream's first event), gateways (`Too Many Requests`).

use crate::json::{self, Members};
use crate::wait_hint::{credible_seconds, stated_wait};
use http::HeaderMap;
use memchr::memmem;
use std::time::Duration;

/// The longest word or message kept of an upstream's error, in characters.
const MAX_TEXT_CHARS: usize = 1024;

/// What an upstream's answer means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It answers the request.
    Served,
    /// The request is the client's mistake; the upstream's words are passed on with this status.
    ClientFault {
        /// 400, 404 or 413: the statuses at which every client stops.
        status: u16,
    },
    /// The request is the client's mistake at this model only: its context is too short for it. The upstream's words are
    /// passed on as a 400 where no other model can take it.
    ContextExceeded,
    /// It is at its capacity, or we are over a rate.
    Throttled {
        /// The wait it stated.
        wait: Option<Duration>,
    },
    /// Our quota or budget there is spent: waiting a little will not help.
    QuotaSpent {
        /// The wait it stated.
        wait: Option<Duration>,
    },
    /// It does not accept our credential.
    CredentialRefused,
    /// It, or something between, waited in vain.
    TimedOut,
    /// It failed.
    Failed,
}

/// An upstream's own words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorFacts {
    /// `type`, or TGI's `error_type`.
    pub error_type: Option<String>,
    /// `code`; numbers as their digits.
    pub code: Option<String>,
    /// The message.
    pub message: Option<String>,
}

impl ErrorFacts {
    /// Reads the words of a body that is an error object: `{"error":{...}}`, `{"error":"..."}`, vLLM's flat
    /// `{"object":"error",...}`, Responses' flat `{"type":"error",...}`. `None`: it is none of these.
    pub fn read(body: &[u8]) -> Option<Self> {
        let (flat, error) = Self::top_level(body)?;
        match error {
            Some(inner) => Some(inner.or(flat)),
            None => flat.is_flat_error(body).then_some(flat),
        }
    }

    /// As [`ErrorFacts::read`], of a body that is known to tell of an error: any top-level `code`, `type`, `message` or
    /// `detail` will do, and text that is no JSON is the message.
    pub fn read_any(body: &[u8]) -> Self {
        if let Some((flat, error)) = Self::top_level(body) {
            return error.unwrap_or_default().or(flat);
        }
        let message = String::from_utf8_lossy(&body[..body.len().min(MAX_TEXT_CHARS)]).trim().to_owned();
        Self { message: (!message.is_empty()).then_some(message), ..Self::default() }
    }

    /// The status that the code stands for, where it is a number of one.
    pub fn status(&self) -> Option<u16> {
        self.code.as_deref()?.parse().ok().filter(|status| (400..=599).contains(status))
    }

    /// The top-level words, and those inside `error`.
    fn top_level(body: &[u8]) -> Option<(Self, Option<Self>)> {
        let mut flat = Self::default();
        let mut error = None;
        for member in Members::new(body).ok()?.map_while(Result::ok) {
            let value = &body[member.value.clone()];
            if member.key == b"error" {
                error = match value.first() {
                    Some(b'{') => Some(Self::inner(value)),
                    Some(b'"') => Some(Self { message: word(value), ..Self::default() }),
                    _ => None,
                };
            } else {
                flat.take(member.key, value);
            }
        }
        Some((flat, error))
    }

    fn inner(object: &[u8]) -> Self {
        let mut facts = Self::default();
        if let Ok(members) = Members::new(object) {
            for member in members.map_while(Result::ok) {
                facts.take(member.key, &object[member.value.clone()]);
            }
        }
        facts
    }

    fn take(&mut self, key: &[u8], value: &[u8]) {
        match key {
            b"type" | b"error_type" => self.error_type = word(value),
            b"code" | b"statusCode" => self.code = word(value),
            b"message" | b"detail" => self.message = word(value),
            _ => {}
        }
    }

    fn or(self, other: Self) -> Self {
        Self {
            error_type: self.error_type.or(other.error_type.filter(|word| word != "error")),
            code: self.code.or(other.code),
            message: self.message.or(other.message),
        }
    }

    fn is_flat_error(&self, body: &[u8]) -> bool {
        self.error_type.as_deref() == Some("error") || json::member(body, "object") == Some(b"\"error\"")
    }
}

fn word(value: &[u8]) -> Option<String> {
    if value.first().is_some_and(u8::is_ascii_digit) {
        return std::str::from_utf8(value).ok().map(str::to_owned);
    }
    json::text(value).map(|text| text.chars().take(MAX_TEXT_CHARS).collect())
}

/// An upstream's answer before any byte of it went to the client.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// Its status.
    pub status: u16,
    /// Its headers.
    pub headers: &'a HeaderMap,
    /// Its body, or the first kilobytes of it; may be empty for a 2xx.
    pub body: &'a [u8],
    /// Time since the Unix epoch, for waits given as a date.
    pub now: Duration,
}

/// What an answer means, and the upstream's words where it is an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classified {
    /// What it means.
    pub verdict: Verdict,
    /// Its words.
    pub error: Option<ErrorFacts>,
}

/// Says what an answer means, by the table of this module.
pub fn classify(answer: &Answer<'_>) -> Classified {
    let Answer { status, headers, body, now } = *answer;
    if (200..300).contains(&status) {
        let error = if memmem::find(body, b"\"error\"").is_some() { ErrorFacts::read(body) } else { None };
        let verdict = match &error {
            Some(error) => within_success(error, stated_wait(headers, now)),
            None => Verdict::Served,
        };
        return Classified { verdict, error };
    }
    let error = ErrorFacts::read_any(body);
    let wait = stated_wait(headers, now);
    Classified { verdict: by_status(status, &error, wait), error: Some(error) }
}

/// Says what an error inside a stream means (no wait header belongs to it).
pub fn classify_stream_error(error: &ErrorFacts) -> Verdict {
    within_success(error, None)
}

/// An error that came under a 2xx: its code stands in for the status.
fn within_success(error: &ErrorFacts, wait: Option<Duration>) -> Verdict {
    // An engine that can still say 503 in a stream is full, not broken (SGLang).
    match error.status() {
        Some(503) => return Verdict::Throttled { wait: wait.or_else(|| wait_in_words(error)) },
        Some(status) => return by_status(status, error, wait),
        None => {}
    }
    let says = |words: &[&str]| labels(error).any(|label| words.iter().any(|word| label.contains(word)));
    let status = if says(&QUOTA) {
        429
    } else if is_overload(error) {
        529
    } else if says(&["authentication", "permission", "api_key", "unauthorized"]) {
        401
    } else if says(&["not_found"]) {
        404
    } else if says(&["invalid", "content_filter", "context_length", "bad_request", "badrequest", "validation"]) {
        400
    } else if says(&["timeout"]) {
        504
    } else {
        500
    };
    by_status(status, error, wait)
}

const QUOTA: [&str; 5] =
    ["insufficient_quota", "credit_balance", "billing", "spend_limit", "quota_exceeded_for_the_period"];
const OVERLOAD: [&str; 10] = [
    "overload",
    "rate_limit",
    "ratelimit",
    "too_many_requests",
    "toomanyrequests",
    "throttl",
    "slow_down",
    "capacity",
    "resource_exhausted",
    "queue_full",
];
const OVERLOAD_WORDS: [&str; 9] = [
    "overload",
    "queue is full",
    "queue full",
    "at capacity",
    "no capacity",
    "out of capacity",
    "rate limit",
    "too many requests",
    "high demand",
];

fn by_status(status: u16, error: &ErrorFacts, wait: Option<Duration>) -> Verdict {
    let throttled = || Verdict::Throttled { wait: wait.or_else(|| wait_in_words(error)) };
    let quota_spent = labels(error).any(|label| QUOTA.iter().any(|word| label.contains(word)));
    match status {
        402 => Verdict::QuotaSpent { wait },
        403 | 429 if quota_spent => Verdict::QuotaSpent { wait },
        // Anthropic's own wording for an empty account; the client's request is not to blame.
        400 if quota_spent || message_has(error, &["credit balance is too low"]) => Verdict::QuotaSpent { wait },
        429 | 529 => throttled(),
        _ if error.code.as_deref() == Some("429") => throttled(),
        403 | 500..=599 if is_overload(error) => throttled(),
        401 | 403 => Verdict::CredentialRefused,
        503 if wait.is_some() || message_has(error, &OVERLOAD_WORDS) => throttled(),
        408 | 504 => Verdict::TimedOut,
        407 | 409 | 424 | 425 | 499 => Verdict::Failed,
        404 | 413 => Verdict::ClientFault { status },
        400 | 422 if exceeds_context(error) => Verdict::ContextExceeded,
        400..=498 => Verdict::ClientFault { status: 400 },
        _ => Verdict::Failed,
    }
}

/// Labels for too many tokens: OpenAI's and Azure's code, llama.cpp's type.
const CONTEXT: [&str; 2] = ["context_length_exceeded", "exceed_context_size"];
/// Words of servers that give it no label of its own: vLLM and SGLang (both also have OpenAI's old words), Anthropic (of
/// the prompt, and of the prompt with the answer that is asked for), TGI.
const CONTEXT_WORDS: [&str; 7] = [
    "maximum context length",
    "longer than the maximum model length",
    "longer than the model's context length",
    "prompt is too long",
    "exceed context limit",
    "`inputs` must have less than",
    "`inputs` tokens + `max_new_tokens` must be",
];

fn exceeds_context(error: &ErrorFacts) -> bool {
    labels(error).any(|label| CONTEXT.iter().any(|word| label.contains(word))) || message_has(error, &CONTEXT_WORDS)
}

/// Code and type in lower case.
fn labels(error: &ErrorFacts) -> impl Iterator<Item = String> {
    [&error.code, &error.error_type].into_iter().flatten().map(|label| label.to_ascii_lowercase())
}

fn is_overload(error: &ErrorFacts) -> bool {
    labels(error).any(|label| label == "529" || label == "429" || OVERLOAD.iter().any(|word| label.contains(word)))
}

fn message_has(error: &ErrorFacts, words: &[&str]) -> bool {
    let Some(message) = &error.message else { return false };
    let message = message.to_ascii_lowercase();
    words.iter().any(|word| message.contains(word))
}

/// The wait in a message such as Azure's "Please retry after 26 seconds." or OpenAI's "Please try again in 1.2s.":
/// Azure sometimes states it nowhere else.
fn wait_in_words(error: &ErrorFacts) -> Option<Duration> {
    let message = error.message.as_deref()?.to_ascii_lowercase();
    let rest = ["retry after ", "try again in "]
        .into_iter()
        .find_map(|words| message.find(words).map(|at| &message[at + words.len()..]))?;
    let end = rest.find(|next: char| !next.is_ascii_digit() && next != '.').unwrap_or(rest.len());
    let number: f64 = rest[..end].trim_end_matches('.').parse().ok()?;
    let unit = match rest[end..].trim_start() {
        unit if unit.starts_with("ms") || unit.starts_with("milli") => 1e-3,
        unit if unit.starts_with('s') => 1.0,
        unit if unit.starts_with('m') => 60.0,
        unit if unit.starts_with('h') => 3600.0,
        _ => return None,
    };
    credible_seconds(number * unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn verdict(status: u16, retry_after: &'static str, body: &str) -> Verdict {
        let mut headers = HeaderMap::new();
        if !retry_after.is_empty() {
            headers.insert("retry-after", HeaderValue::from_static(retry_after));
        }
        classify(&Answer { status, headers: &headers, body: body.as_bytes(), now: Duration::ZERO }).verdict
    }

    const fn throttled(seconds: Option<u64>) -> Verdict {
        Verdict::Throttled {
            wait: match seconds {
                Some(seconds) => Some(Duration::from_secs(seconds)),
                None => None,
            },
        }
    }

    #[test]
    fn capacity_failures_of_every_dress_are_one() {
        let cases = [
            (429, "", "", throttled(None)),
            (429, "17", r#"{"error":{"code":"429","message":"slow down"}}"#, throttled(Some(17))),
            (
                429,
                "",
                r#"{"error":{"code":"429","message":"Rate limit reached. Please retry after 26 seconds."}}"#,
                throttled(Some(26)),
            ),
            (
                429,
                "",
                r#"{"error":{"code":"rate_limit_exceeded","message":"Please try again in 2m. Visit"}}"#,
                throttled(Some(120)),
            ),
            (429, "", r#"{"error":"Model is overloaded","error_type":"overloaded"}"#, throttled(None)),
            (429, "86400", "<html>Too many</html>", throttled(Some(86_400))),
            (
                529,
                "",
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
                throttled(None),
            ),
            (503, "5", "", throttled(Some(5))),
            (
                503,
                "",
                r#"{"error":{"type":"service_unavailable_error","code":"server_is_overloaded"}}"#,
                throttled(None),
            ),
            (503, "", r#"{"error":{"message":"The request queue is full."}}"#, throttled(None)),
            (500, "", r#"{"error":{"code":"429","type":"throttling_error"}}"#, throttled(None)),
            (424, "", r#"{"error":{"code":429}}"#, throttled(None)),
            (200, "", r#"{"error":{"code":503,"message":"full","type":"x"}}"#, throttled(None)),
            (200, "3", r#"{"error":{"type":"rate_limit_error","message":"m"}}"#, throttled(Some(3))),
            (200, "", r#"{"object":"error","message":"m","code":429}"#, throttled(None)),
        ];
        for (status, retry_after, body, expected) in cases {
            assert_eq!(verdict(status, retry_after, body), expected, "{status} {body}");
        }
    }

    #[test]
    fn too_many_tokens_are_told_in_many_ways() {
        for (status, body) in [
            (200, r#"{"error":{"type":"invalid_request_error","code":"context_length_exceeded"}}"#),
            (400, r#"{"error":{"code":"context_length_exceeded","message":"x","param":"messages"}}"#),
            (400, r#"{"object":"error","message":"This model's maximum context length is 9 tokens.","code":400}"#),
            (400, r#"{"error":{"message":"The prompt is longer than the maximum model length of 9."}}"#),
            (400, r#"{"error":{"message":"The input (9 tokens) is longer than the model's context length (8)."}}"#),
            (400, r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 > 8"}}"#),
            (400, r#"{"error":{"message":"input length and `max_tokens` exceed context limit: 9 + 9 > 8"}}"#),
            (400, r#"{"error":{"code":400,"type":"exceed_context_size_error","message":"x"}}"#),
            (422, r#"{"error":"`inputs` must have less than 8 tokens. Given: 9","error_type":"validation"}"#),
        ] {
            assert_eq!(verdict(status, "", body), Verdict::ContextExceeded, "{status} {body}");
        }
    }

    #[test]
    fn the_rest_of_the_table() {
        let quota = Verdict::QuotaSpent { wait: None };
        let fault = |status| Verdict::ClientFault { status };
        let cases = [
            (200, r#"{"choices":[],"error":null}"#, Verdict::Served),
            (200, r#"{"choices":[{"message":{"content":"{\"error\":{}}"}}],"x":{"error":{}}}"#, Verdict::Served),
            (200, r#"{"object":"response","status":"failed","error":{"code":"server_error"}}"#, Verdict::Failed),
            (200, r#"{"error":{"type":"authentication_error"}}"#, Verdict::CredentialRefused),
            (400, r#"{"error":{"message":"Your credit balance is too low to access the API"}}"#, quota),
            (401, "", Verdict::CredentialRefused),
            (402, "", quota),
            (403, "", Verdict::CredentialRefused),
            (403, r#"{"error":{"code":"insufficient_quota"}}"#, quota),
            (400, r#"{"error":{"code":"content_filter","innererror":{"code":"x"}}}"#, fault(400)),
            (400, r#"{"error":{"type":"invalid_request_error","message":"max_tokens is too large"}}"#, fault(400)),
            (404, r#"{"error":{"code":"model_not_found"}}"#, fault(404)),
            (408, "", Verdict::TimedOut),
            (409, "", Verdict::Failed),
            (413, "", fault(413)),
            (422, r#"{"error":"too long","error_type":"validation"}"#, fault(400)),
            (424, r#"{"error":"Generation failed","error_type":"generation"}"#, Verdict::Failed),
            (425, "", Verdict::Failed),
            (429, r#"{"error":{"type":"insufficient_quota","code":"insufficient_quota"}}"#, quota),
            (429, r#"{"error":{"code":"credit_balance_exhausted"}}"#, quota),
            (500, "", Verdict::Failed),
            (502, "<html>", Verdict::Failed),
            (503, r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#, Verdict::Failed),
            (504, "", Verdict::TimedOut),
            (307, "", Verdict::Failed),
            (600, "", Verdict::Failed),
        ];
        for (status, body, expected) in cases {
            assert_eq!(verdict(status, "", body), expected, "{status} {body}");
        }
    }

    #[test]
    fn errors_in_a_stream_go_by_their_words() {
        let of = |body: &str| classify_stream_error(&ErrorFacts::read(body.as_bytes()).unwrap());
        assert_eq!(of(r#"{"type":"error","error":{"type":"overloaded_error"}}"#), throttled(None));
        assert_eq!(of(r#"{"type":"error","code":"server_error","message":"m"}"#), Verdict::Failed);
        assert_eq!(of(r#"{"error":{"message":"x","code":400}}"#), Verdict::ClientFault { status: 400 });
        assert_eq!(of(r#"{"error":{"message":"x"}}"#), Verdict::Failed);
    }

    #[test]
    fn words_are_read_and_bounded() {
        let facts =
            ErrorFacts::read_any(format!(r#"{{"error":{{"message":"{}","code":12}}}}"#, "é".repeat(5_000)).as_bytes());
        assert_eq!(facts.message.map(|message| message.chars().count()), Some(MAX_TEXT_CHARS));
        assert_eq!(facts.code.as_deref(), Some("12"));
        assert_eq!(ErrorFacts::read_any(b"  plain \xff words ").message.as_deref(), Some("plain \u{fffd} words"));
        assert_eq!(ErrorFacts::read_any(br#"{"detail":"Not Found"}"#).message.as_deref(), Some("Not Found"));
        assert_eq!(ErrorFacts::read(br#"{"type":"message","content":[]}"#), None);
        assert_eq!(ErrorFacts::read_any(b""), ErrorFacts::default());
    }
}
