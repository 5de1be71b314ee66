//! Headers in both directions: allow-lists, our credential, the caller's key.
//!
//! What is not named here does not pass: an allow-list cannot forget a header that carries a secret. Hop-by-hop headers
//! and framing (`content-length`, `transfer-encoding`) are the connection's own and never copied; a header that
//! `Connection` names is dropped even where the list has it.
//!
//! Choices worth knowing: `user-agent` passes (upstreams tell clients apart by it); `openai-organization` and
//! `openai-project` do not, in either direction (they belong to a credential, and the upstream's is ours);
//! `accept-encoding` does not, we ask for `identity`, because usage, errors and the end of a stream are read from the
//! bytes as they pass; an upstream's retry headers, rate limits, cookies and request id under our name do not pass.

use crate::dialect::Dialect;
use http::header::{self, HeaderMap, HeaderName, HeaderValue, InvalidHeaderValue};

/// Request headers that pass to an upstream.
fn passes_to_upstream(name: &str) -> bool {
    matches!(
        name,
        "accept"
            | "anthropic-beta"
            | "anthropic-version"
            | "content-type"
            | "idempotency-key"
            | "openai-beta"
            | "traceparent"
            | "tracestate"
            | "user-agent"
            | "x-client-request-id"
            | "x-ms-client-request-id"
            | "x-stainless-arch"
            | "x-stainless-async"
            | "x-stainless-helper"
            | "x-stainless-helper-method"
            | "x-stainless-lang"
            | "x-stainless-os"
            | "x-stainless-package-version"
            | "x-stainless-raw-response"
            | "x-stainless-read-timeout"
            | "x-stainless-retry-count"
            | "x-stainless-runtime"
            | "x-stainless-runtime-version"
            | "x-stainless-timeout"
    )
}

/// Response headers that pass to a client.
fn passes_to_client(name: &str) -> bool {
    matches!(
        name,
        "apim-request-id"
            | "anthropic-version"
            | "cache-control"
            | "content-encoding"
            | "content-language"
            | "content-type"
            | "openai-model"
            | "openai-processing-ms"
            | "openai-version"
            | "request-id"
            | "x-ms-client-request-id"
            | "x-ms-region"
    )
}

/// The headers of a client's request that go to an upstream, with `accept-encoding: identity`. The credential is not
/// among them: see [`credential_header`].
pub fn towards_upstream(client: &HeaderMap) -> HeaderMap {
    let mut passed = pass(client, passes_to_upstream);
    passed.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    passed
}

/// The headers of an upstream's response that go to the client.
pub fn towards_client(upstream: &HeaderMap) -> HeaderMap {
    pass(upstream, passes_to_client)
}

fn pass(from: &HeaderMap, allowed: fn(&str) -> bool) -> HeaderMap {
    // Room for a credential and a trace header too.
    let mut passed = HeaderMap::with_capacity(from.keys_len() + 3);
    for (name, value) in from {
        if allowed(name.as_str()) {
            passed.append(name.clone(), value.clone());
        }
    }
    for value in from.get_all(header::CONNECTION) {
        for named in value.as_bytes().split(|byte| *byte == b',') {
            if let Ok(name) = HeaderName::from_bytes(named.trim_ascii()) {
                passed.remove(name);
            }
        }
    }
    passed
}

/// How an upstream wants to be shown a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CredentialKind {
    /// A static key.
    Key,
    /// A token that expires: Entra ID, OAuth.
    Token,
}

/// The header that shows `secret` to an upstream; marked sensitive, so that no debug output prints it. Made once for
/// each credential and cloned for each attempt.
///
/// Keys go as `Authorization: Bearer` to OpenAI, `api-key` to Azure, `x-api-key` to Anthropic; tokens go as `Bearer` to
/// all of them.
/// The error means bytes that no header may have, such as a line end read from a file.
pub fn credential_header(
    dialect: Dialect,
    kind: CredentialKind,
    secret: &str,
) -> Result<(HeaderName, HeaderValue), InvalidHeaderValue> {
    let (name, mut value) = match (kind, dialect) {
        (CredentialKind::Key, Dialect::Azure) => (HeaderName::from_static("api-key"), HeaderValue::from_str(secret)?),
        (CredentialKind::Key, Dialect::Anthropic) => {
            (HeaderName::from_static("x-api-key"), HeaderValue::from_str(secret)?)
        }
        (CredentialKind::Token, _) | (CredentialKind::Key, Dialect::OpenAi) => {
            (header::AUTHORIZATION, HeaderValue::from_str(&format!("Bearer {secret}"))?)
        }
    };
    value.set_sensitive(true);
    Ok((name, value))
}

/// Why the caller's key cannot be read; 401.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Several headers, or several values of one, present different keys.
    #[error("The request presents several different keys: send one, in Authorization, api-key or x-api-key.")]
    Several,
    /// `Authorization` with another scheme than `Bearer`.
    #[error("The Authorization header is not of the form \"Bearer <key>\".")]
    Scheme,
}

/// The key a client presents, in `Authorization: Bearer`, `api-key` or `x-api-key`; `None` where it presents none or an
/// empty one. The same key in several places is one key; different ones are an error, since choosing would let a proxy
/// in front of us and us disagree on who is calling.
pub fn presented_key(headers: &HeaderMap) -> Result<Option<&[u8]>, KeyError> {
    let mut found: Option<&[u8]> = None;
    let bearers = headers.get_all(header::AUTHORIZATION).iter().map(|value| bearer(value.as_bytes()));
    let plain = ["api-key", "x-api-key"]
        .into_iter()
        .flat_map(|name| headers.get_all(name))
        .map(|value| Ok(value.as_bytes().trim_ascii()));
    for key in bearers.chain(plain) {
        let key = key?;
        if key.is_empty() {
            continue;
        }
        if found.is_some_and(|other| other != key) {
            return Err(KeyError::Several);
        }
        found = Some(key);
    }
    Ok(found)
}

fn bearer(value: &[u8]) -> Result<&[u8], KeyError> {
    let value = value.trim_ascii();
    let end = value.iter().position(|byte| *byte == b' ').unwrap_or(value.len());
    let (scheme, key) = value.split_at(end);
    if scheme.is_empty() || scheme.eq_ignore_ascii_case(b"bearer") {
        return Ok(key.trim_ascii());
    }
    Err(KeyError::Scheme)
}

/// The content coding of a body, where it has one other than `identity`. Coded request bodies cannot be read here: they
/// are refused with a request to send them plain.
pub fn content_coding(headers: &HeaderMap) -> Option<&[u8]> {
    headers
        .get_all(header::CONTENT_ENCODING)
        .iter()
        .map(|value| value.as_bytes().trim_ascii())
        .find(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case(b"identity"))
}

/// Whether a response is an event stream.
pub fn is_event_stream(headers: &HeaderMap) -> bool {
    media_type(headers).is_some_and(|media| media.eq_ignore_ascii_case(b"text/event-stream"))
}

fn media_type(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(header::CONTENT_TYPE)?.as_bytes();
    value.split(|byte| *byte == b';').next().map(<[u8]>::trim_ascii)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap());
        }
        map
    }

    #[test]
    fn callers_secrets_never_reach_an_upstream() {
        let canaries = [
            "authorization",
            "api-key",
            "x-api-key",
            "x-goog-api-key",
            "cookie",
            "proxy-authorization",
            "x-internal-secret",
            "x-forwarded-for",
            "forwarded",
            "x-hop",
            "te",
            "upgrade",
            "keep-alive",
            "trailer",
            "x-real-ip",
            "baggage",
            "x-seawall-ticket",
            "x-seawall-priority",
            "openai-organization",
            "openai-project",
            "x-stainless-api-key",
            "ocp-apim-subscription-key",
            "x-amz-security-token",
            "host",
            "content-length",
            "transfer-encoding",
            "expect",
            "accept-encoding",
            "referer",
            "origin",
        ];
        let mut client = map(&[
            ("Connection", "x-hop, Traceparent"),
            ("Authorization", "Bearer sw-tenant-CANARY1"),
            ("Traceparent", "00-CANARY"),
            ("content-type", "application/json"),
            ("Anthropic-Beta", "a"),
            ("anthropic-beta", "b"),
            ("user-agent", "OpenAI/Python 2.54.0"),
        ]);
        for name in canaries {
            client.append(name, HeaderValue::from_static("Bearer sw-tenant-CANARY0"));
        }
        let passed = towards_upstream(&client);
        assert!(!format!("{passed:?}").contains("CANARY"), "{passed:?}");
        assert_eq!(passed.get_all("anthropic-beta").iter().count(), 2);
        assert_eq!(passed["accept-encoding"], "identity");
        assert_eq!(passed["user-agent"], "OpenAI/Python 2.54.0");
        assert_eq!(passed.keys_len(), 4);
    }

    #[test]
    fn an_upstream_s_own_affairs_never_reach_a_client() {
        let kept = [("content-type", "application/json"), ("openai-processing-ms", "12"), ("apim-request-id", "r")];
        let dropped = [
            "set-cookie",
            "retry-after",
            "retry-after-ms",
            "x-ms-retry-after-ms",
            "x-should-retry",
            "x-request-id",
            "x-ratelimit-remaining-requests",
            "anthropic-ratelimit-tokens-remaining",
            "openai-organization",
            "anthropic-organization-id",
            "server",
            "strict-transport-security",
            "connection",
            "keep-alive",
            "transfer-encoding",
            "content-length",
            "llm_provider-retry-after",
            "alt-svc",
        ];
        let mut upstream = map(&kept);
        for name in dropped {
            upstream.append(HeaderName::from_static(name), HeaderValue::from_static("X"));
        }
        assert_eq!(towards_client(&upstream), map(&kept));
    }

    #[test]
    fn credentials_stand_where_the_dialect_has_them() {
        use CredentialKind::{Key, Token};
        for (dialect, kind, name, value) in [
            (Dialect::OpenAi, Key, "authorization", "Bearer k"),
            (Dialect::OpenAi, Token, "authorization", "Bearer k"),
            (Dialect::Azure, Key, "api-key", "k"),
            (Dialect::Azure, Token, "authorization", "Bearer k"),
            (Dialect::Anthropic, Key, "x-api-key", "k"),
        ] {
            let (found, header) = credential_header(dialect, kind, "k").unwrap();
            assert_eq!((found.as_str(), header.to_str().unwrap()), (name, value));
            assert!(header.is_sensitive());
        }
        assert!(credential_header(Dialect::Azure, Key, "k\n").is_err());
    }

    #[test]
    fn one_key_is_read_from_any_of_three_places() {
        let key = |pairs: &[(&str, &str)]| presented_key(&map(pairs)).map(|key| key.map(<[u8]>::to_vec));
        assert_eq!(key(&[]), Ok(None));
        assert_eq!(key(&[("authorization", "Bearer "), ("api-key", "")]), Ok(None));
        for pair in
            [("authorization", "Bearer k1"), ("authorization", "bearer  k1 "), ("api-key", "k1"), ("x-api-key", "k1")]
        {
            assert_eq!(key(&[pair]), Ok(Some(b"k1".to_vec())), "{pair:?}");
        }
        assert_eq!(key(&[("authorization", "Bearer k1"), ("api-key", "k1")]), Ok(Some(b"k1".to_vec())));
        assert_eq!(key(&[("authorization", "Bearer k1"), ("x-api-key", "k2")]), Err(KeyError::Several));
        assert_eq!(key(&[("authorization", "Bearer k1"), ("authorization", "Bearer k2")]), Err(KeyError::Several));
        assert_eq!(key(&[("authorization", "Basic dTpw")]), Err(KeyError::Scheme));
        assert_eq!(key(&[("authorization", "k1")]), Err(KeyError::Scheme));
    }

    #[test]
    fn codings_and_media_types_are_seen() {
        assert_eq!(content_coding(&map(&[("content-encoding", "identity")])), None);
        assert_eq!(content_coding(&map(&[("content-encoding", "gzip")])), Some(&b"gzip"[..]));
        assert!(is_event_stream(&map(&[("content-type", "Text/Event-Stream; charset=utf-8")])));
        assert!(!is_event_stream(&map(&[("content-type", "application/json")])));
    }
}
