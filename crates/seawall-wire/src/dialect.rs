//! The client side: which endpoint of which surface a request asks for.
//!
//! Supported are the OpenAI paths under `/v1`, Azure OpenAI's `/openai/deployments/{deployment}/...?api-version=` (and
//! its siblings `/openai/responses`, `/openai/models`) and `/openai/v1/...`, and Anthropic's `/v1/messages`. A path is
//! matched as it was sent: no case folding, no trailing slash, no doubled slash; what is not supported is answered with
//! the list of what is.

use http::Method;
use percent_encoding::percent_decode_str;
use std::borrow::Cow;
use std::str::Utf8Error;

/// The wire dialect of an upstream, and of an error body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dialect {
    /// OpenAI's own API and everything compatible with it.
    OpenAi,
    /// Azure OpenAI: deployments in the path or `/openai/v1`, `api-key` header or Entra token.
    Azure,
    /// Anthropic's Messages API.
    Anthropic,
}

impl Dialect {
    /// All dialects.
    pub const ALL: [Self; 3] = [Self::OpenAi, Self::Azure, Self::Anthropic];

    /// The name in settings and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Azure => "azure",
            Self::Anthropic => "anthropic",
        }
    }
}

/// The surface a client speaks to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Surface {
    /// `/v1/...` as OpenAI has it.
    OpenAi,
    /// `/openai/deployments/{deployment}/...`, `/openai/responses` and `/openai/models`, with an `api-version`.
    AzureDeployment,
    /// `/openai/v1/...`: as OpenAI's, under Azure's prefix.
    AzureV1,
    /// `/v1/messages`, and `/v1/models` with an `anthropic-version` header.
    Anthropic,
}

impl Surface {
    /// The dialect in which answers of our own are written for this surface.
    pub const fn dialect(self) -> Dialect {
        match self {
            Self::OpenAi => Dialect::OpenAi,
            Self::AzureDeployment | Self::AzureV1 => Dialect::Azure,
            Self::Anthropic => Dialect::Anthropic,
        }
    }

    /// The name in logs and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::AzureDeployment => "azure_deployment",
            Self::AzureV1 => "azure_v1",
            Self::Anthropic => "anthropic",
        }
    }

    /// The surface a request most likely meant when its path is not known: decides only the form of the error.
    pub fn guess(path: &str, anthropic_version: bool) -> Self {
        if path == "/openai/v1" || path.starts_with("/openai/v1/") {
            Self::AzureV1
        } else if path == "/openai" || path.starts_with("/openai/") {
            Self::AzureDeployment
        } else if anthropic_version || path.starts_with("/v1/messages") {
            Self::Anthropic
        } else {
            Self::OpenAi
        }
    }
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Endpoint {
    /// Chat completions.
    ChatCompletions,
    /// Legacy text completions.
    Completions,
    /// Embeddings.
    Embeddings,
    /// OpenAI's Responses: creating one.
    Responses,
    /// The list of models.
    Models,
    /// One model; its name is [`Route::model_in_path`].
    Model,
    /// Anthropic's Messages.
    Messages,
    /// Anthropic's count of a message's tokens.
    CountTokens,
}

impl Endpoint {
    /// The name in logs and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ChatCompletions => "chat_completions",
            Self::Completions => "completions",
            Self::Embeddings => "embeddings",
            Self::Responses => "responses",
            Self::Models => "models",
            Self::Model => "model",
            Self::Messages => "messages",
            Self::CountTokens => "count_tokens",
        }
    }

    /// The path after the version or deployment, without a leading slash. Of [`Endpoint::Model`] the name is missing.
    pub const fn path(self) -> &'static str {
        match self {
            Self::ChatCompletions => "chat/completions",
            Self::Completions => "completions",
            Self::Embeddings => "embeddings",
            Self::Responses => "responses",
            Self::Models | Self::Model => "models",
            Self::Messages => "messages",
            Self::CountTokens => "messages/count_tokens",
        }
    }

    /// Whether it goes to an upstream; the lists of models are answered here.
    pub const fn is_inference(self) -> bool {
        !matches!(self, Self::Models | Self::Model)
    }

    /// The one method it takes.
    pub const fn method(self) -> Method {
        if self.is_inference() { Method::POST } else { Method::GET }
    }
}

/// A recognised request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route<'a> {
    /// The surface it came in on.
    pub surface: Surface,
    /// What it asks for.
    pub endpoint: Endpoint,
    /// The model or deployment named by the path, decoded; where there is one it wins over the body's `model`.
    pub model_in_path: Option<Cow<'a, str>>,
    /// The value of `api-version`, where the query has one.
    pub api_version: Option<&'a str>,
    /// The whole query as it was sent.
    pub query: Option<&'a str>,
}

/// Why a request was not recognised. [`RouteError::status`], [`RouteError::code`] and the message are what to answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    /// No such path.
    #[error("Unknown path {path:?}. Supported are: {}.", SUPPORTED_PATHS.join(", "))]
    UnknownPath {
        /// What was asked for, cut to 200 characters.
        path: String,
    },
    /// The path exists, the method is another.
    #[error("{path} does not take {method}: send {allow}.")]
    MethodNotAllowed {
        /// The path, cut to 200 characters.
        path: String,
        /// The method sent.
        method: String,
        /// The value for the `Allow` header.
        allow: &'static str,
    },
    /// An Azure path without `api-version`.
    #[error("{path} needs the query parameter api-version, for example ?api-version=2024-10-21.")]
    MissingApiVersion {
        /// The path, cut to 200 characters.
        path: String,
    },
    /// A name in the path that does not decode to text.
    #[error("The name {name:?} in the path is no percent-encoded UTF-8 text: encode it anew.")]
    UndecodableName {
        /// The name as it was sent, cut to 200 characters.
        name: String,
    },
}

impl RouteError {
    /// The status to answer with.
    pub const fn status(&self) -> u16 {
        match self {
            Self::UnknownPath { .. } => 404,
            // Not 405: the contract ends requests only by statuses at which every measured client stops.
            Self::MethodNotAllowed { .. } | Self::MissingApiVersion { .. } | Self::UndecodableName { .. } => 400,
        }
    }

    /// The `error.code` to answer with.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::UnknownPath { .. } => "unknown_path",
            Self::MethodNotAllowed { .. } => "method_not_allowed",
            Self::MissingApiVersion { .. } => "missing_api_version",
            Self::UndecodableName { .. } => "invalid_path",
        }
    }
}

/// The paths that are served, as told to those who ask for another.
pub const SUPPORTED_PATHS: [&str; 12] = [
    "POST /v1/chat/completions",
    "POST /v1/completions",
    "POST /v1/embeddings",
    "POST /v1/responses",
    "GET /v1/models",
    "GET /v1/models/{model}",
    "POST /v1/messages",
    "POST /v1/messages/count_tokens",
    "POST /openai/deployments/{deployment}/{chat/completions|completions|embeddings}?api-version=",
    "POST /openai/responses?api-version=",
    "GET /openai/models?api-version=",
    "/openai/v1/{as under /v1, without messages}",
];

/// Recognises a request by method, path and query (without `?`). `anthropic_version`: whether it carries an
/// `anthropic-version` header, which makes `/v1/models` answer in Anthropic's form.
pub fn recognise<'a>(
    method: &Method,
    path: &'a str,
    query: Option<&'a str>,
    anthropic_version: bool,
) -> Result<Route<'a>, RouteError> {
    let (surface, endpoint, name) = find(path, anthropic_version)?;
    if *method != endpoint.method() {
        let allow = if endpoint.is_inference() { "POST" } else { "GET" };
        return Err(RouteError::MethodNotAllowed { path: cut(path), method: cut(method.as_str()), allow });
    }
    let api_version = query.and_then(api_version);
    if surface == Surface::AzureDeployment && api_version.is_none() {
        return Err(RouteError::MissingApiVersion { path: cut(path) });
    }
    let model_in_path = name.map(decode).transpose()?;
    Ok(Route { surface, endpoint, model_in_path, api_version, query })
}

type Found<'a> = (Surface, Endpoint, Option<&'a str>);

fn find(path: &str, anthropic_version: bool) -> Result<Found<'_>, RouteError> {
    let unknown = || RouteError::UnknownPath { path: cut(path) };
    if let Some(rest) = path.strip_prefix("/v1/") {
        return match rest {
            "messages" => Ok((Surface::Anthropic, Endpoint::Messages, None)),
            "messages/count_tokens" => Ok((Surface::Anthropic, Endpoint::CountTokens, None)),
            _ => {
                let (endpoint, name) = versioned(rest).ok_or_else(unknown)?;
                let lists_models = !endpoint.is_inference();
                let surface = if lists_models && anthropic_version { Surface::Anthropic } else { Surface::OpenAi };
                Ok((surface, endpoint, name))
            }
        };
    }
    let rest = path.strip_prefix("/openai/").ok_or_else(unknown)?;
    if let Some(rest) = rest.strip_prefix("v1/") {
        let (endpoint, name) = versioned(rest).ok_or_else(unknown)?;
        return Ok((Surface::AzureV1, endpoint, name));
    }
    if let Some(rest) = rest.strip_prefix("deployments/") {
        let (deployment, rest) = rest.split_once('/').ok_or_else(unknown)?;
        let endpoint = match rest {
            "chat/completions" => Endpoint::ChatCompletions,
            "completions" => Endpoint::Completions,
            "embeddings" => Endpoint::Embeddings,
            _ => return Err(unknown()),
        };
        if deployment.is_empty() {
            return Err(unknown());
        }
        return Ok((Surface::AzureDeployment, endpoint, Some(deployment)));
    }
    match versioned(rest) {
        Some((endpoint @ (Endpoint::Responses | Endpoint::Models | Endpoint::Model), name)) => {
            Ok((Surface::AzureDeployment, endpoint, name))
        }
        _ => Err(unknown()),
    }
}

/// The endpoints that stand under a version prefix.
fn versioned(rest: &str) -> Option<(Endpoint, Option<&str>)> {
    Some(match rest {
        "chat/completions" => (Endpoint::ChatCompletions, None),
        "completions" => (Endpoint::Completions, None),
        "embeddings" => (Endpoint::Embeddings, None),
        "responses" => (Endpoint::Responses, None),
        "models" => (Endpoint::Models, None),
        // Names with slashes (`org/model`) are common: the whole rest is the name.
        _ => match rest.strip_prefix("models/") {
            Some(name) if !name.is_empty() => (Endpoint::Model, Some(name)),
            _ => return None,
        },
    })
}

fn api_version(query: &str) -> Option<&str> {
    query.split('&').find_map(|pair| pair.strip_prefix("api-version=")).filter(|value| !value.is_empty())
}

fn decode(name: &str) -> Result<Cow<'_, str>, RouteError> {
    let undecodable = || RouteError::UndecodableName { name: cut(name) };
    let decoded = percent_decode_str(name).decode_utf8().map_err(|_: Utf8Error| undecodable())?;
    if decoded.chars().any(char::is_control) {
        return Err(undecodable());
    }
    Ok(decoded)
}

/// Callers' words in our messages are bounded.
fn cut(text: &str) -> String {
    text.chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn post(path: &str) -> Result<Route<'_>, RouteError> {
        let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
        recognise(&Method::POST, path, query, false)
    }

    #[test]
    fn every_supported_path_is_recognised() {
        use Endpoint as E;
        use Surface as S;
        let cases = [
            ("/v1/chat/completions", S::OpenAi, E::ChatCompletions, None),
            ("/v1/completions", S::OpenAi, E::Completions, None),
            ("/v1/embeddings", S::OpenAi, E::Embeddings, None),
            ("/v1/responses", S::OpenAi, E::Responses, None),
            ("/v1/messages", S::Anthropic, E::Messages, None),
            ("/v1/messages/count_tokens?beta=true", S::Anthropic, E::CountTokens, None),
            (
                "/openai/deployments/d1/chat/completions?api-version=v",
                S::AzureDeployment,
                E::ChatCompletions,
                Some("d1"),
            ),
            (
                "/openai/deployments/a%2Fb%20c/completions?x=1&api-version=v",
                S::AzureDeployment,
                E::Completions,
                Some("a/b c"),
            ),
            ("/openai/deployments/d1/embeddings?api-version=v", S::AzureDeployment, E::Embeddings, Some("d1")),
            ("/openai/responses?api-version=v", S::AzureDeployment, E::Responses, None),
            ("/openai/v1/chat/completions", S::AzureV1, E::ChatCompletions, None),
            ("/openai/v1/responses?api-version=preview", S::AzureV1, E::Responses, None),
        ];
        for (path, surface, endpoint, model) in cases {
            let route = post(path).unwrap_or_else(|error| panic!("{path}: {error}"));
            assert_eq!((route.surface, route.endpoint), (surface, endpoint), "{path}");
            assert_eq!(route.model_in_path.as_deref(), model, "{path}");
        }
    }

    #[test]
    fn lists_of_models_follow_the_anthropic_version_header() {
        let get = |path, header| recognise(&Method::GET, path, Some("api-version=v"), header).unwrap();
        assert_eq!(get("/v1/models", false).surface, Surface::OpenAi);
        assert_eq!(get("/v1/models", true).surface, Surface::Anthropic);
        assert_eq!(get("/v1/models/org/name", true).model_in_path.as_deref(), Some("org/name"));
        assert_eq!(get("/openai/models", false).surface, Surface::AzureDeployment);
        assert_eq!(get("/openai/v1/models", true).surface, Surface::AzureV1);
    }

    #[test]
    fn what_is_not_supported_says_what_is() {
        for path in [
            "/",
            "",
            "/v1",
            "/v1/",
            "/v1/chat/completions/",
            "//v1/models",
            "/v1/images",
            "/openai/deployments/d",
            "/openai/deployments//chat/completions",
            "/openai/deployments/d/responses",
            "/v1/models/",
            "/V1/responses",
        ] {
            let error = post(path).unwrap_err();
            assert_eq!(error.status(), 404, "{path}");
            assert!(error.to_string().contains("POST /v1/chat/completions"), "{error}");
        }
    }

    #[test]
    fn mistakes_name_their_remedy() {
        let error = recognise(&Method::GET, "/v1/responses", None, false).unwrap_err();
        assert_eq!((error.status(), error.to_string().as_str()), (400, "/v1/responses does not take GET: send POST."));
        for path in [
            "/openai/deployments/d/embeddings",
            "/openai/deployments/d/embeddings?api-version=",
            "/openai/responses?x=1",
        ] {
            let error = post(path).unwrap_err();
            assert_eq!((error.status(), error.code()), (400, "missing_api_version"), "{path}");
        }
        for name in ["%ff", "a%00", "%0d%0a"] {
            let path = format!("/openai/deployments/{name}/embeddings?api-version=v");
            assert_eq!(post(&path).unwrap_err().code(), "invalid_path", "{name}");
        }
        let long = format!("/{}", "x".repeat(10_000));
        assert!(post(&long).unwrap_err().to_string().len() < 1_000);
    }
}
