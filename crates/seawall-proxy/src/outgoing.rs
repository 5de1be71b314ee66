//! A request as one upstream gets it: its path, the headers that may pass, and the client's own bytes.

use crate::gate::Inference;
use crate::upstream::Upstream;
use crate::upstream::attempt::{Failure, Outgoing};
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use seawall_core::classify::AttemptEnd;
use seawall_wire::upstream::{Address, target};
use seawall_wire::{body, dialect, headers};

/// Builds the request for `upstream`. The error is a request that this upstream's dialect cannot express.
pub fn outgoing(head: &Parts, taken: &Inference, upstream: &Upstream) -> Result<Outgoing, Failure> {
    let model = upstream.config.model.as_deref().unwrap_or(&taken.model);
    let address = Address {
        dialect: upstream.dialect,
        base_path: upstream.config.endpoint.base_path(),
        model,
        api_version: upstream.config.api_version.as_deref(),
    };
    let fault = |words: String| Failure::silent(AttemptEnd::ClientFault, words);
    let anthropic = head.headers.contains_key("anthropic-version");
    let route = dialect::recognise(&head.method, head.uri.path(), head.uri.query(), anthropic)
        .map_err(|error| fault(error.to_string()))?;
    let target = target(&route, &address).map_err(|error| fault(error.to_string()))?;
    let new_model = target.model_in_body.then_some(model);
    let mut headers = headers::towards_upstream(&head.headers);
    // The body was read as JSON; clients that say otherwise (curl's default is a form) are refused by some upstreams.
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(Outgoing {
        target: target.path_and_query,
        headers,
        body: body::rewrite_model(&taken.body, &taken.facts, new_model),
        endpoint: route.endpoint,
        stream: taken.facts.stream,
    })
}
