//! How a fleet is set up.

use seawall_model::engine::EngineSettings;
use secrecy::SecretString;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

/// A fleet: its address, its servers, its seed.
#[derive(Debug)]
pub struct FleetOptions {
    /// Where the admin endpoints *and* the first server answer. The other servers take the following ports, or free
    /// ones where the port is 0.
    pub listen: SocketAddr,
    /// The servers, at least one; their names differ.
    pub servers: Vec<ServerOptions>,
    /// Seed of the lengths and the texts of answers and of the choice of failing requests.
    pub seed: u64,
    /// What calls that change something must show, as `Authorization: Bearer` or `x-admin-token`. Without one, such
    /// calls are refused.
    pub admin_token: Option<SecretString>,
    /// Where a caller finds that token; told in refusals.
    pub token_hint: String,
    /// Connections open at the same time over all servers; further ones wait in the accept queue.
    pub max_connections: usize,
}

impl FleetOptions {
    /// Three regions with one server each, models `demo-chat` and `demo-embed`, without keys.
    ///
    /// A short chat answers in about 150 to 400 ms. Each region carries about 60 of them a second, so that two
    /// regions carry 50 a second with room to spare while the third fails.
    pub fn demo(listen: SocketAddr) -> Self {
        let regions = ["swedencentral", "eastus", "koreacentral"];
        Self::of(listen, regions.into_iter().map(|region| ServerOptions::new(region, region)).collect())
    }

    /// A fleet of these servers, with seed 0 and without an admin token.
    pub fn of(listen: SocketAddr, servers: Vec<ServerOptions>) -> Self {
        Self {
            listen,
            servers,
            seed: 0,
            admin_token: None,
            token_hint: "this fleet was started without an admin token".to_owned(),
            max_connections: 4096,
        }
    }
}

/// One simulated inference server.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Its name, by which faults select it.
    pub name: String,
    /// Its region, by which faults select all servers in it.
    pub region: String,
    /// The key that requests must show in `Authorization: Bearer`, `api-key` or `x-api-key`; without one all pass.
    pub key: Option<SecretString>,
    /// How time passes in it.
    pub pacing: Pacing,
    /// Lengths of answers, where the request does not ask for a shorter one.
    pub output_tokens: RangeInclusive<u32>,
    /// What it says when its waiting queue is full, or when a fault tells it to refuse.
    pub rejection: Rejection,
    /// The models it lists.
    pub models: Vec<String>,
    /// Whether other models are answered with 404; Azure deployments count as models.
    pub only_listed_models: bool,
    /// Length of an embedding, where the request does not say it.
    pub embedding_dimensions: u32,
    /// How many requests it takes over time; `None`: any number.
    pub limit: Option<RequestLimit>,
}

impl ServerOptions {
    /// A server as in the demo.
    pub fn new(name: &str, region: &str) -> Self {
        Self {
            name: name.to_owned(),
            region: region.to_owned(),
            key: None,
            pacing: Pacing::Engine(EngineSettings::default()),
            output_tokens: 16..=32,
            rejection: Rejection::default(),
            models: vec!["demo-chat".to_owned(), "demo-embed".to_owned()],
            only_listed_models: false,
            embedding_dimensions: 256,
            limit: None,
        }
    }

    /// A server that answers without any delay and without a model of an engine: for benchmarks of what is in front.
    pub fn instant(name: &str) -> Self {
        Self { pacing: Pacing::Instant, ..Self::new(name, name) }
    }

    /// A server whose answers take `service_ms` each in one of `slots` slots, with an unbounded waiting queue.
    pub fn fixed(name: &str, slots: u32, service_ms: u32) -> Self {
        let settings = EngineSettings::fixed(slots, u64::from(service_ms) * 1_000_000);
        Self { pacing: Pacing::Engine(settings), ..Self::new(name, name) }
    }
}

/// A limit on requests over time: so many at once, and all of them again after `per`, evenly. What is beyond it is
/// refused in the dress of a full queue.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RequestLimit {
    /// How many; 0 counts as 1.
    pub requests: u32,
    /// How long an empty bucket takes to fill.
    pub per: Duration,
    /// Whether each answer tells what is left, in OpenAI's `x-ratelimit-*-requests`.
    pub is_told: bool,
}

/// How time passes in a server.
#[derive(Clone, Debug)]
pub enum Pacing {
    /// As a model of a serving engine says.
    Engine(EngineSettings),
    /// No time passes and nothing is ever full.
    Instant,
}

/// The dress of a refusal.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Rejection {
    /// Its status: 400 to 599.
    pub status: u16,
    /// A body with that status, or status 200 and an error as the first event.
    pub form: ErrorForm,
    /// Value of `Retry-After`, as it is.
    pub retry_after: Option<String>,
    /// Value of `retry-after-ms`.
    pub retry_after_ms: Option<u64>,
}

impl Default for Rejection {
    /// 429 with `Retry-After: 1`.
    fn default() -> Self {
        Self { status: 429, form: ErrorForm::Json, retry_after: Some("1".to_owned()), retry_after_ms: None }
    }
}

/// Where an error stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorForm {
    /// In a JSON body, with the error's status.
    Json,
    /// In the first event of a stream with status 200.
    SseFirstEvent,
}
