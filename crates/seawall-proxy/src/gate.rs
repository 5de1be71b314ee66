//! Step 2, gate, and step 3, decode: what the head tells, then the body within its bounds, then its facts.

use crate::app::{App, RequestGuard};
use crate::bytes_budget::Reservation;
use crate::early::Early;
use crate::intake::read_body;
use crate::respond::Audience;
use bytes::Bytes;
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, StatusCode};
use hyper::body::Incoming;
use seawall_config::{Config, Family};
use seawall_core::cost::Demand;
use seawall_core::engine::{Arrival, Identity};
use seawall_core::id::{PoolId, RequestId, TenantId};
use seawall_core::outcome::Outcome;
use seawall_wire::body::{self, BodyFacts};
use seawall_wire::client_signals::{ClientSignals, client_signals};
use seawall_wire::dialect::{self, Endpoint, Route, RouteError, Surface};

use seawall_wire::{fingerprint, headers, models};

/// Model names are cut to this many characters where they are shown.
const SHOWN_MODEL_CHARACTERS: usize = 100;

/// Bytes of text for one token, as is usual for English text and code.
const BYTES_PER_TOKEN: u64 = 4;

/// The date of models in lists: they have none here, and a fixed one keeps the list the same over restarts.
const CREATED: u64 = 1_700_000_000;

/// A request that passed the gate.
#[derive(Debug)]
pub enum Taken {
    /// A list of models, answered right here.
    Models(Bytes),
    /// Work for an upstream.
    Inference(Box<Inference>),
}

/// A request for inference, understood.
#[derive(Debug)]
pub struct Inference {
    /// The model as the client named it.
    pub model: String,
    /// The body, as it came.
    pub body: Bytes,
    /// Its facts.
    pub facts: BodyFacts,
    /// What is asked for.
    pub endpoint: Endpoint,
    /// What the engine is told; the request's id is still to be filled in.
    pub arrival: Arrival,
    /// The body's place in the budget of bytes, for as long as the body is held.
    pub reservation: Reservation,
}

/// Takes a request in: route, key, body, facts. Refuses as early as it can, and before the body is read where the head
/// decides.
pub async fn take(
    app: &App,
    head: &Parts,
    body: &mut Incoming,
    guard: &mut RequestGuard,
    audience: &mut Audience,
) -> Result<Taken, Early> {
    let anthropic = head.headers.contains_key("anthropic-version");
    let route = dialect::recognise(&head.method, head.uri.path(), head.uri.query(), anthropic)
        .map_err(|error| no_route(&error))?;
    audience.surface = route.surface;
    let record = guard.record();
    record.endpoint = route.endpoint.name();
    let tenant = tenant(&app.config, &head.headers)?;
    record.tenant = Some(tenant);
    let signals = client_signals(&head.headers)
        .map_err(|error| Early::new(Outcome::InvalidRequest, error.to_string()).code("invalid_header"))?;
    audience.agent = signals.agent;
    record.client_retry = Some(signals.previous_attempts).filter(|count| *count > 0);
    if !route.endpoint.is_inference() {
        return list_models(&app.config, tenant, &route).map(Taken::Models);
    }
    if app.draining.is_cancelled() {
        return Err(Early::new(Outcome::Draining, "The service is shutting down; another instance will serve you."));
    }
    if let Some(coding) = headers::content_coding(&head.headers) {
        let coding = String::from_utf8_lossy(coding);
        let message = format!("The body is coded as `{coding}`: send it without a content-encoding.");
        return Err(Early::new(Outcome::InvalidRequest, message).code("unsupported_content_encoding"));
    }
    let (body, reservation) = read_body(app, &head.headers, body).await?;
    let record = guard.record();
    record.request_bytes = body.len() as u64;
    let asked = decode(&app.config, tenant, &route, &body)?;
    record.pool = Some(asked.pool);
    record.model = Some(shown(&asked.model).into());
    record.stream = asked.facts.stream;
    let identity = identity(app, head, &Known { tenant, pool: asked.pool, body: &body }, &signals);
    let demand = demand(route.endpoint, &asked.facts);
    let arrival = Arrival { identity: Some(identity), demand, ..arrival(app, tenant, asked.pool, &signals) };
    Ok(Taken::Inference(Box::new(Inference {
        model: asked.model,
        endpoint: route.endpoint,
        body,
        facts: asked.facts,
        arrival,
        reservation,
    })))
}

fn arrival(app: &App, tenant: TenantId, pool: PoolId, signals: &ClientSignals<'_>) -> Arrival {
    Arrival {
        request: RequestId(0),
        tenant,
        pool,
        criticality: signals.criticality.unwrap_or_default(),
        deadline: signals.deadline.map(|span| app.clock().now() + span),
        patience: signals.patience,
        identity: None,
        demand: Demand::default(),
    }
}

/// What a request asks its model to do. Nobody has counted the tokens of its input yet: they are reckoned from the
/// length of what the model reads.
fn demand(endpoint: Endpoint, facts: &BodyFacts) -> Demand {
    match endpoint {
        // Counting is no work of a model.
        Endpoint::CountTokens => Demand { max_output_tokens: Some(0), ..Demand::default() },
        _ => Demand {
            input_tokens: facts.input_bytes.div_ceil(BYTES_PER_TOKEN),
            input_is_estimated: true,
            max_output_tokens: if endpoint == Endpoint::Embeddings { Some(0) } else { facts.max_output_tokens },
            answers: u32::try_from(facts.choices).unwrap_or(u32::MAX),
        },
    }
}

/// What else is known of a request when it is compared.
struct Known<'a> {
    tenant: TenantId,
    pool: PoolId,
    body: &'a [u8],
}

/// What tells whether it repeats another one. Whoever comes here may have the answer: the key, the model and the tenant
/// are checked, and are part of what is compared.
fn identity(app: &App, head: &Parts, known: &Known<'_>, signals: &ClientSignals<'_>) -> Identity {
    let asked = fingerprint::Asked {
        tenant: known.tenant.0,
        model: known.pool.0,
        presented_key: headers::presented_key(&head.headers).ok().flatten(),
        method: head.method.as_str(),
        path_and_query: head.uri.path_and_query().map_or("", PathAndQuery::as_str),
        headers: &head.headers,
        body: known.body,
    };
    let fingerprint = app.fingerprint_key.fingerprint(&asked);
    Identity {
        fingerprint,
        key: app.fingerprint_key.key(fingerprint, signals),
        previous_attempts: signals.previous_attempts,
        may_repeat: signals.may_repeat,
    }
}

fn no_route(error: &RouteError) -> Early {
    let early = Early::new(Outcome::InvalidRequest, error.to_string()).code(error.code());
    let early = match error {
        RouteError::MethodNotAllowed { allow, .. } => early.allow(allow),
        RouteError::UnknownPath { .. } | RouteError::MissingApiVersion { .. } | RouteError::UndecodableName { .. } => {
            early
        }
    };
    let status = error.status();
    early.status(StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST))
}

/// Whose request it is, by its key.
fn tenant(config: &Config, headers: &HeaderMap) -> Result<TenantId, Early> {
    let presented =
        headers::presented_key(headers).map_err(|error| Early::new(Outcome::Unauthenticated, error.to_string()))?;
    let known = presented.and_then(|key| config.tenant_of(key));
    known.or(config.anonymous_tenant()).ok_or_else(|| {
        let message = if presented.is_some() {
            "Incorrect API key provided. Use a key of this service, not one of a model provider."
        } else {
            "No API key provided. Send it as `Authorization: Bearer KEY`, or in the `api-key` or `x-api-key` header."
        };
        Early::new(Outcome::Unauthenticated, message)
    })
}

/// What a body asks for.
struct Asked {
    model: String,
    pool: PoolId,
    facts: BodyFacts,
}

/// Reads the facts of a body and finds the pool, among those that the tenant may use.
fn decode(config: &Config, tenant: TenantId, route: &Route<'_>, body: &[u8]) -> Result<Asked, Early> {
    let facts =
        body::peek(body).map_err(|error| Early::new(Outcome::InvalidRequest, error.to_string()).code(error.code()))?;
    let Some(model) = route.model_in_path.clone().or_else(|| facts.model(body)) else {
        let message = "The request names no model: add \"model\" to the body.";
        return Err(Early::new(Outcome::InvalidRequest, message).code("missing_model"));
    };
    let model = model.into_owned();
    let pool = permitted_pool(config, tenant, &model)?;
    if config.model(pool).family != family(route.surface) {
        let model = shown(&model);
        let message = format!("The model `{model}` is not served on this path: it speaks another API.");
        return Err(Early::new(Outcome::InvalidRequest, message).code("wrong_api_for_model"));
    }
    Ok(Asked { model, pool, facts })
}

const fn family(surface: Surface) -> Family {
    match surface {
        Surface::Anthropic => Family::Anthropic,
        Surface::OpenAi | Surface::AzureDeployment | Surface::AzureV1 => Family::OpenAi,
    }
}

/// The model's pool, if there is one and this tenant may use it; the error names only the models that it may use.
fn permitted_pool(config: &Config, tenant: TenantId, model: &str) -> Result<PoolId, Early> {
    let may_use = |pool: &PoolId| config.core().tenants[tenant.index()].pools.contains(pool);
    config.pool_of(model).filter(may_use).ok_or_else(|| {
        let names: Vec<&str> = config.models_of(tenant).map(|model| model.name.as_str()).collect();
        let (model, names) = (shown(model), names.join(", "));
        let message = format!("The model `{model}` does not exist or this key may not use it. It may use: {names}.");
        Early::new(Outcome::ModelNotFound, message).status(StatusCode::NOT_FOUND)
    })
}

fn list_models(config: &Config, tenant: TenantId, route: &Route<'_>) -> Result<Bytes, Early> {
    if route.endpoint == Endpoint::Model {
        let name = route.model_in_path.as_deref().unwrap_or_default();
        permitted_pool(config, tenant, name)?;
        return Ok(models::model_body(route.surface.dialect(), name, CREATED));
    }
    let of_tenant = config.models_of(tenant).filter(|model| model.name != seawall_config::CATCH_ALL);
    let names = of_tenant
        .flat_map(|model| std::iter::once(model.name.as_str()).chain(model.aliases.iter().map(String::as_str)));
    Ok(models::list_body(route.surface.dialect(), names, CREATED))
}

fn shown(model: &str) -> String {
    model.chars().take(SHOWN_MODEL_CHARACTERS).collect()
}
