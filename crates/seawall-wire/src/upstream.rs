//! The upstream side: at which path of an upstream a request is asked, and whether its body must name the model.
//!
//! The rule for base paths: one that has a version segment anywhere (`/v1`, `/api/v3`, `/v1beta/openai`) is complete
//! and the endpoint is appended; one without gets `/v1` in between. So `https://api.openai.com` and
//! `https://api.openai.com/v1` mean the same. An Azure base may be the bare resource, or end in `/openai`, or end in
//! `/openai/v1`, which pins that form whatever else is configured.

use crate::dialect::{Dialect, Endpoint, Route, Surface};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// A path segment: everything but the unreserved characters of RFC 3986 is encoded.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// How an upstream is addressed. Checked settings: `base_path` starts with `/` or is empty and has no query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address<'a> {
    /// What it speaks.
    pub dialect: Dialect,
    /// The path of its base URL.
    pub base_path: &'a str,
    /// The model or deployment it knows.
    pub model: &'a str,
    /// Azure: the `api-version` for deployments in the path; without one `/openai/v1` is used.
    pub api_version: Option<&'a str>,
}

/// Where a request goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Path and query of the request line.
    pub path_and_query: String,
    /// Whether the body must name [`Address::model`]; otherwise the path does, and the body goes as it came.
    pub model_in_body: bool,
}

/// A request that this upstream cannot be asked: the two families have different bodies, and bodies are not translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{endpoint} cannot be served by an upstream of dialect {upstream}: add a deployment of a fitting dialect.",
    endpoint = endpoint.name(), upstream = upstream.name())]
pub struct Incompatible {
    /// What was asked for.
    pub endpoint: Endpoint,
    /// What the upstream speaks.
    pub upstream: Dialect,
}

/// Whether an upstream of this dialect can be asked for this endpoint.
pub const fn is_compatible(endpoint: Endpoint, upstream: Dialect) -> bool {
    match endpoint {
        Endpoint::Messages | Endpoint::CountTokens => matches!(upstream, Dialect::Anthropic),
        Endpoint::Models | Endpoint::Model => true,
        Endpoint::ChatCompletions | Endpoint::Completions | Endpoint::Embeddings | Endpoint::Responses => {
            matches!(upstream, Dialect::OpenAi | Dialect::Azure)
        }
    }
}

/// Where the request of `route` goes at the upstream `address`.
///
/// Towards Azure: chat, completions and embeddings go to `/openai/deployments/{model}/...` when an `api-version` is
/// configured, or when the client itself came that way (its own version is kept); everything else, and Responses unless
/// the client came by `/openai/responses`, goes to `/openai/v1/...`. Query parameters of the client are kept, except
/// those that carry a credential and, where it has no place, `api-version`.
pub fn target(route: &Route<'_>, address: &Address<'_>) -> Result<Target, Incompatible> {
    let Address { dialect, base_path, model, api_version } = *address;
    if !is_compatible(route.endpoint, dialect) {
        return Err(Incompatible { endpoint: route.endpoint, upstream: dialect });
    }
    let base = base_path.trim_end_matches('/');
    let mut path = String::with_capacity(base.len() + model.len() + route.query.map_or(0, str::len) + 96);
    let mut model_in_body = route.endpoint.is_inference();
    let mut version = None;
    match dialect {
        Dialect::OpenAi | Dialect::Anthropic => {
            path.push_str(base);
            path.push_str(if has_version(base) { "/" } else { "/v1/" });
            path.push_str(route.endpoint.path());
        }
        Dialect::Azure => {
            let pinned = base.strip_suffix("/openai/v1");
            path.push_str(pinned.unwrap_or_else(|| base.strip_suffix("/openai").unwrap_or(base)));
            path.push_str("/openai/");
            let from_deployment = route.surface == Surface::AzureDeployment;
            let client_version = if from_deployment { route.api_version } else { None };
            let dated = api_version.or(client_version).filter(|_| pinned.is_none());
            match (route.endpoint, dated) {
                (Endpoint::ChatCompletions | Endpoint::Completions | Endpoint::Embeddings, Some(dated)) => {
                    path.push_str("deployments/");
                    path.extend(utf8_percent_encode(model, SEGMENT));
                    path.push('/');
                    model_in_body = false;
                    version = Some(dated);
                }
                (_, Some(dated)) if from_deployment => version = Some(dated),
                _ => {
                    path.push_str("v1/");
                    // On this form a version is a word such as `preview`; a date belongs to the other form.
                    version = route.api_version.filter(|_| route.surface == Surface::AzureV1);
                }
            }
            path.push_str(route.endpoint.path());
        }
    }
    if route.endpoint == Endpoint::Model {
        path.push('/');
        path.extend(utf8_percent_encode(model, SEGMENT));
    }
    push_query(&mut path, route.query, version);
    Ok(Target { path_and_query: path, model_in_body })
}

/// Whether a base path has a segment such as `v1`, `v3` or `v1beta`.
fn has_version(base: &str) -> bool {
    base.split('/').any(|segment| {
        let mut bytes = segment.bytes();
        bytes.next() == Some(b'v')
            && bytes.next().is_some_and(|byte| byte.is_ascii_digit())
            && bytes.all(|byte| byte.is_ascii_alphanumeric())
    })
}

fn push_query(path: &mut String, query: Option<&str>, version: Option<&str>) {
    let mut separator = '?';
    if let Some(version) = version {
        path.push_str("?api-version=");
        path.push_str(version);
        separator = '&';
    }
    for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        let name = pair.split_once('=').map_or(pair, |(name, _)| name);
        if name == "api-version" || is_credential(name) {
            continue;
        }
        path.push(separator);
        path.push_str(pair);
        separator = '&';
    }
}

/// Whether a query parameter carries, or may carry, a credential: by its name, decoded, in any case.
fn is_credential(name: &str) -> bool {
    const PARTS: [&str; 6] = ["key", "token", "secret", "auth", "passw", "credential"];
    const WHOLE: [&str; 4] = ["sig", "code", "pwd", "jwt"];
    let decoded = percent_decode_str(name).decode_utf8_lossy().to_ascii_lowercase();
    PARTS.iter().any(|part| decoded.contains(part)) || WHOLE.contains(&decoded.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::recognise;
    use http::Method;

    fn to(
        client: &str,
        dialect: Dialect,
        base_path: &str,
        api_version: Option<&str>,
    ) -> Result<(String, bool), Incompatible> {
        let (path, query) = client.split_once('?').map_or((client, None), |(path, query)| (path, Some(query)));
        let route = recognise(&Method::POST, path, query, false).unwrap();
        let address = Address { dialect, base_path, model: "up m/1", api_version };
        target(&route, &address).map(|target| (target.path_and_query, target.model_in_body))
    }

    #[test]
    fn openai_bases_work_with_and_without_a_version() {
        for (base, expected) in [
            ("", "/v1/chat/completions"),
            ("/", "/v1/chat/completions"),
            ("/v1", "/v1/chat/completions"),
            ("/v1/", "/v1/chat/completions"),
            ("/proxy", "/proxy/v1/chat/completions"),
            ("/api/v3", "/api/v3/chat/completions"),
            ("/v1beta/openai/", "/v1beta/openai/chat/completions"),
            ("/vllm", "/vllm/v1/chat/completions"),
        ] {
            let found = to("/v1/chat/completions", Dialect::OpenAi, base, None);
            assert_eq!(found, Ok((expected.to_owned(), true)), "{base}");
        }
    }

    #[test]
    fn each_surface_reaches_each_upstream_of_its_family() {
        use Dialect::{Anthropic, Azure, OpenAi};
        let dep = "/openai/deployments/d/embeddings?api-version=2024-10-21";
        let cases = [
            (
                "/v1/embeddings",
                Azure,
                "",
                Some("2025-01-01"),
                "/openai/deployments/up%20m%2F1/embeddings?api-version=2025-01-01",
                false,
            ),
            ("/v1/embeddings", Azure, "/openai", None, "/openai/v1/embeddings", true),
            ("/v1/embeddings", Azure, "/openai/v1/", Some("2025-01-01"), "/openai/v1/embeddings", true),
            ("/v1/responses", Azure, "/x", Some("2025-01-01"), "/x/openai/v1/responses", true),
            (dep, Azure, "", None, "/openai/deployments/up%20m%2F1/embeddings?api-version=2024-10-21", false),
            (
                dep,
                Azure,
                "",
                Some("2025-01-01"),
                "/openai/deployments/up%20m%2F1/embeddings?api-version=2025-01-01",
                false,
            ),
            (dep, Azure, "/openai/v1", None, "/openai/v1/embeddings", true),
            (dep, OpenAi, "/v1", None, "/v1/embeddings", true),
            (
                "/openai/responses?api-version=2025-03-01-preview",
                Azure,
                "",
                None,
                "/openai/responses?api-version=2025-03-01-preview",
                true,
            ),
            ("/openai/responses?api-version=2025-03-01-preview", OpenAi, "", None, "/v1/responses", true),
            (
                "/openai/v1/responses?api-version=preview",
                Azure,
                "",
                None,
                "/openai/v1/responses?api-version=preview",
                true,
            ),
            ("/openai/v1/completions?api-version=preview", OpenAi, "", None, "/v1/completions", true),
            ("/v1/messages?beta=true", Anthropic, "", None, "/v1/messages?beta=true", true),
            ("/v1/messages/count_tokens", Anthropic, "/v1", None, "/v1/messages/count_tokens", true),
        ];
        for (client, dialect, base, version, expected, model_in_body) in cases {
            assert_eq!(to(client, dialect, base, version), Ok((expected.to_owned(), model_in_body)), "{client} {base}");
        }
    }

    #[test]
    fn families_do_not_mix() {
        for (client, dialect) in
            [("/v1/messages", Dialect::OpenAi), ("/v1/messages", Dialect::Azure), ("/v1/responses", Dialect::Anthropic)]
        {
            let error = to(client, dialect, "", None).unwrap_err();
            assert_eq!(error.upstream, dialect);
            assert!(error.to_string().contains("add a deployment of a fitting dialect"), "{error}");
        }
    }

    #[test]
    fn query_parameters_pass_but_for_credentials() {
        let query = "a=1&api-key=CANARY&flag&&key=CANARY&%61pi%2Dkey=CANARY&API_KEY=CANARY&access_token=CANARY&b=%20";
        let found = to(&format!("/v1/embeddings?{query}"), Dialect::OpenAi, "", None).unwrap();
        assert_eq!(found.0, "/v1/embeddings?a=1&flag&b=%20");
    }
}
