//! What a client's headers say about its request: a repeat, how urgent, how long it may take, who sends it.
//!
//! All of it can be forged: it may lower a request's standing or bound its own time, never raise it above what its key
//! allows. Foreign headers with garbage are ignored (`x-stainless-timeout: NOT_GIVEN` is real); our own `x-seawall-*`
//! with garbage are the caller's mistake and reported.

use http::{HeaderMap, HeaderValue};
use seawall_core::settings::Criticality;
use std::time::Duration;

/// Ids longer than this, in bytes, are ignored.
pub const MAX_ID_BYTES: usize = 256;

/// The longest time a client may state; more is held to this.
pub const MAX_DEADLINE: Duration = Duration::from_hours(24);

/// What a client said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientSignals<'a> {
    /// Attempts made before this one, by the highest of the counters of its SDK, of Envoy and of gRPC.
    pub previous_attempts: u32,
    /// Whether its client is one that asks again by itself: it counts its attempts, be it from 0, or gives keys.
    pub may_repeat: bool,
    /// `x-ms-client-request-id`: the same over the retries of Azure's SDKs.
    pub request_id: Option<&'a [u8]>,
    /// `idempotency-key`.
    pub idempotency_key: Option<&'a [u8]>,
    /// `x-seawall-priority`, still to be clamped to the key's ceiling.
    pub criticality: Option<Criticality>,
    /// The time the whole request may take: the smallest of `x-seawall-deadline-ms`, `grpc-timeout` and
    /// `x-envoy-expected-rq-timeout-ms`.
    pub deadline: Option<Duration>,
    /// The silence its client bears (`x-stainless-read-timeout`, `x-stainless-timeout`): bounds the wait in a queue,
    /// never the service.
    pub patience: Option<Duration>,
    /// Which client it is; chooses the wording of a refusal only.
    pub agent: Agent,
}

/// Clients that differ in how a refusal must be worded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Agent {
    /// Obeys `x-should-retry: false`, or stops at a 429 without a wait: the OpenAI and Anthropic SDKs, the Agents SDK,
    /// LangChain JS, Azure's SDKs.
    StopsWhenTold,
    /// Anything else, and none.
    #[default]
    Unknown,
}

/// A header of our own with a value it cannot have; 400.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("The header {header} must be {expected}.")]
pub struct SignalError {
    /// The header.
    pub header: &'static str,
    /// What it must be.
    pub expected: &'static str,
}

/// User agents, by how they start, that stop when told.
const STOPPING: [&[u8]; 7] =
    [b"OpenAI/", b"AsyncOpenAI/", b"AzureOpenAI/", b"AsyncAzureOpenAI/", b"Anthropic/", b"AsyncAnthropic/", b"Agents/"];

/// The headers of interest, found in one pass; of a repeated one the first counts.
#[derive(Default)]
struct Found<'a> {
    stainless_retry_count: Option<&'a HeaderValue>,
    envoy_attempt_count: Option<&'a HeaderValue>,
    grpc_previous_attempts: Option<&'a HeaderValue>,
    request_id: Option<&'a HeaderValue>,
    idempotency_key: Option<&'a HeaderValue>,
    priority: Option<&'a HeaderValue>,
    deadline: Option<&'a HeaderValue>,
    envoy_timeout: Option<&'a HeaderValue>,
    grpc_timeout: Option<&'a HeaderValue>,
    read_timeout: Option<&'a HeaderValue>,
    timeout: Option<&'a HeaderValue>,
    user_agent: Option<&'a HeaderValue>,
}

impl<'a> Found<'a> {
    fn read(headers: &'a HeaderMap) -> Self {
        let mut found = Self::default();
        for (name, value) in headers {
            let slot = match name.as_str() {
                "x-stainless-retry-count" => &mut found.stainless_retry_count,
                "x-envoy-attempt-count" => &mut found.envoy_attempt_count,
                "grpc-previous-rpc-attempts" => &mut found.grpc_previous_attempts,
                "x-ms-client-request-id" => &mut found.request_id,
                "idempotency-key" => &mut found.idempotency_key,
                PRIORITY => &mut found.priority,
                DEADLINE => &mut found.deadline,
                "x-envoy-expected-rq-timeout-ms" => &mut found.envoy_timeout,
                "grpc-timeout" => &mut found.grpc_timeout,
                "x-stainless-read-timeout" => &mut found.read_timeout,
                "x-stainless-timeout" => &mut found.timeout,
                "user-agent" => &mut found.user_agent,
                _ => continue,
            };
            slot.get_or_insert(value);
        }
        found
    }
}

const PRIORITY: &str = "x-seawall-priority";
const DEADLINE: &str = "x-seawall-deadline-ms";

/// Reads what a client said.
pub fn client_signals(headers: &HeaderMap) -> Result<ClientSignals<'_>, SignalError> {
    let found = Found::read(headers);
    let stainless = number(found.stainless_retry_count);
    // Envoy counts the first attempt as 1.
    let envoy = number(found.envoy_attempt_count).map(|count| count.saturating_sub(1));
    let grpc = number(found.grpc_previous_attempts);
    let attempts = [stainless, envoy, grpc].into_iter().flatten().max();
    let (request_id, idempotency_key) = (id(found.request_id), id(found.idempotency_key));
    Ok(ClientSignals {
        previous_attempts: attempts.map_or(0, |count| u32::try_from(count).unwrap_or(u32::MAX)),
        may_repeat: attempts.is_some() || request_id.is_some() || idempotency_key.is_some(),
        request_id,
        idempotency_key,
        criticality: criticality(found.priority)?,
        deadline: deadline(&found)?,
        patience: patience(&found),
        agent: agent(found.user_agent),
    })
}

fn text(value: Option<&HeaderValue>) -> Option<&str> {
    value?.to_str().ok().map(str::trim)
}

fn number(value: Option<&HeaderValue>) -> Option<u64> {
    digits(text(value)?)
}

/// A run of digits as a number, held inside `u64`.
fn digits(text: &str) -> Option<u64> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(text.parse().unwrap_or(u64::MAX))
}

fn id(value: Option<&HeaderValue>) -> Option<&[u8]> {
    let id = value?.as_bytes().trim_ascii();
    (!id.is_empty() && id.len() <= MAX_ID_BYTES).then_some(id)
}

fn criticality(value: Option<&HeaderValue>) -> Result<Option<Criticality>, SignalError> {
    let expected = "one of critical-plus, critical, sheddable-plus, sheddable";
    match (value, text(value).and_then(Criticality::from_name)) {
        (None, _) => Ok(None),
        (Some(_), Some(class)) => Ok(Some(class)),
        (Some(_), None) => Err(SignalError { header: PRIORITY, expected }),
    }
}

fn deadline(found: &Found<'_>) -> Result<Option<Duration>, SignalError> {
    let own = match (found.deadline, number(found.deadline)) {
        (None, _) => None,
        (Some(_), Some(millis)) if millis > 0 => Some(Duration::from_millis(millis)),
        _ => return Err(SignalError { header: DEADLINE, expected: "a whole number of milliseconds above 0" }),
    };
    // 0 is how Envoy and gRPC clients write "no limit".
    let envoy = number(found.envoy_timeout).filter(|ms| *ms > 0).map(Duration::from_millis);
    let grpc = text(found.grpc_timeout).and_then(grpc_timeout);
    Ok([own, envoy, grpc].into_iter().flatten().min().map(|deadline| deadline.min(MAX_DEADLINE)))
}

/// gRPC's form: up to eight digits and a unit.
fn grpc_timeout(text: &str) -> Option<Duration> {
    let unit = text.chars().last().filter(char::is_ascii)?;
    let count = digits(&text[..text.len() - 1]).filter(|count| (1..=99_999_999).contains(count))?;
    Some(match unit {
        'H' => Duration::from_secs(count * 3600),
        'M' => Duration::from_secs(count * 60),
        'S' => Duration::from_secs(count),
        'm' => Duration::from_millis(count),
        'u' => Duration::from_micros(count),
        'n' => Duration::from_nanos(count),
        _ => return None,
    })
}

fn patience(found: &Found<'_>) -> Option<Duration> {
    let seconds = |value| {
        let seconds: f64 = text(value)?.parse().ok()?;
        // `parse` takes "inf" and "nan"; both fail here, as does everything that is no time.
        (seconds > 0.0 && seconds < 1e9).then(|| Duration::from_secs_f64(seconds))
    };
    let silences = [seconds(found.read_timeout), seconds(found.timeout)];
    silences.into_iter().flatten().min().map(|patience| patience.min(MAX_DEADLINE))
}

fn agent(value: Option<&HeaderValue>) -> Agent {
    let Some(agent) = value.map(HeaderValue::as_bytes) else {
        return Agent::Unknown;
    };
    let stops = STOPPING.iter().any(|start| agent.starts_with(start))
        || agent.starts_with(b"langchainjs-")
        // Azure's SDKs may put an application's id in front.
        || memchr::memmem::find(agent, b"azsdk-").is_some();
    if stops { Agent::StopsWhenTold } else { Agent::Unknown }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn silence_says_nothing() {
        assert_eq!(client_signals(&HeaderMap::new()), Ok(ClientSignals::default()));
    }

    #[test]
    fn repeats_are_counted_by_the_highest_counter() {
        let count = |pairs: &[_]| client_signals(&headers(pairs)).unwrap().previous_attempts;
        assert_eq!(count(&[("x-stainless-retry-count", "0"), ("x-envoy-attempt-count", "1")]), 0);
        assert_eq!(count(&[("x-stainless-retry-count", "1"), ("x-envoy-attempt-count", "3")]), 2);
        assert_eq!(count(&[("grpc-previous-rpc-attempts", "4")]), 4);
        assert_eq!(count(&[("x-stainless-retry-count", "99999999999999999999999")]), u32::MAX);
        assert_eq!(count(&[("x-stainless-retry-count", "-1"), ("x-envoy-attempt-count", "many")]), 0);
    }

    #[test]
    fn who_counts_or_gives_keys_may_repeat() {
        for (name, value, expected) in [
            ("x-stainless-retry-count", "0", true),
            ("x-envoy-attempt-count", "1", true),
            ("idempotency-key", "k", true),
            ("x-ms-client-request-id", "k", true),
            ("x-stainless-retry-count", "often", false),
            ("idempotency-key", " ", false),
            ("user-agent", "OpenAI/Python 2.54.0", false),
        ] {
            assert_eq!(client_signals(&headers(&[(name, value)])).unwrap().may_repeat, expected, "{name}: {value}");
        }
    }

    #[test]
    fn the_smallest_deadline_holds() {
        let deadline = |pairs: &[_]| client_signals(&headers(pairs)).unwrap().deadline;
        assert_eq!(deadline(&[("x-seawall-deadline-ms", "1500")]), Some(Duration::from_millis(1500)));
        assert_eq!(
            deadline(&[
                ("x-seawall-deadline-ms", "5000"),
                ("grpc-timeout", "2S"),
                ("x-envoy-expected-rq-timeout-ms", "3000")
            ]),
            Some(Duration::from_secs(2))
        );
        for (value, expected) in [
            ("1H", Some(Duration::from_hours(1))),
            ("3M", Some(Duration::from_mins(3))),
            ("100m", Some(Duration::from_millis(100))),
            ("7u", Some(Duration::from_micros(7))),
            ("9n", Some(Duration::from_nanos(9))),
            ("99999999H", Some(MAX_DEADLINE)),
            ("100000000S", None),
            ("S", None),
            ("5", None),
            ("", None),
            ("0S", None),
            ("5x", None),
        ] {
            assert_eq!(deadline(&[("grpc-timeout", value)]), expected, "{value}");
        }
        assert_eq!(deadline(&[("x-envoy-expected-rq-timeout-ms", "0")]), None);
    }

    #[test]
    fn patience_takes_garbage() {
        let patience = |value| client_signals(&headers(&[("x-stainless-timeout", value)])).unwrap().patience;
        for garbage in ["NOT_GIVEN", "", "inf", "nan", "-3", "0", "1e300", "None"] {
            assert_eq!(patience(garbage), None, "{garbage}");
        }
        assert_eq!(patience("600"), Some(Duration::from_mins(10)));
        assert_eq!(patience("0.5"), Some(Duration::from_millis(500)));
    }

    #[test]
    fn mistakes_in_our_own_headers_are_told() {
        for value in ["soon", "", "-1", "0", "1.5"] {
            let error = client_signals(&headers(&[("x-seawall-deadline-ms", value)])).unwrap_err();
            assert_eq!(
                error.to_string(),
                "The header x-seawall-deadline-ms must be a whole number of milliseconds above 0."
            );
        }
        let error = client_signals(&headers(&[("x-seawall-priority", "urgent")])).unwrap_err();
        assert!(error.to_string().contains("critical-plus"), "{error}");
        let signals = headers(&[("x-seawall-priority", "sheddable")]);
        assert_eq!(client_signals(&signals).unwrap().criticality, Some(Criticality::Sheddable));
    }

    #[test]
    fn ids_and_agents_are_read() {
        let given = headers(&[("x-ms-client-request-id", " a-b "), ("idempotency-key", "")]);
        let signals = client_signals(&given).unwrap();
        assert_eq!((signals.request_id, signals.idempotency_key), (Some(&b"a-b"[..]), None));
        for (agent, expected) in [
            ("OpenAI/Python 2.54.0", Agent::StopsWhenTold),
            ("AsyncAzureOpenAI/Python 1.1", Agent::StopsWhenTold),
            ("langchainjs-openai/1.0.0 (node)", Agent::StopsWhenTold),
            ("azsdk-python-ai-inference/1.0.0b9 Python/3.12", Agent::StopsWhenTold),
            ("ai/6.0.326 ai-sdk/provider-utils/4.0", Agent::Unknown),
            ("curl/8.5.0", Agent::Unknown),
        ] {
            assert_eq!(client_signals(&headers(&[("user-agent", agent)])).unwrap().agent, expected, "{agent}");
        }
    }
}
