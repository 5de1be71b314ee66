//! What a run is made of.

use super::error::LoadError;
use super::mix::{Client, Mix, Model, Size, Tenant};
use http::{HeaderName, HeaderValue};
use seawall_model::profile::Profile;
use secrecy::SecretString;
use serde::Serialize;
use std::str::FromStr;
use std::time::Duration;

/// Everything a run needs to know. [`LoadOptions::new`] gives the defaults.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// Base URL, plain http: `http://127.0.0.1:8080`, with or without `/v1`.
    pub target: String,
    /// Permits a target that is not on this machine.
    pub allow_remote: bool,
    /// What is called.
    pub endpoint: Endpoint,
    /// Arrivals per second, above 0 and at most [`LoadOptions::MAX_RATE_PER_SECOND`].
    pub rate_per_second: f64,
    /// How arrivals are spaced.
    pub arrivals: Arrivals,
    /// When arrivals end. The warm-up comes before.
    pub limit: Limit,
    /// Arrivals of this first while are sent but not reported.
    pub warm_up: Duration,
    /// Sizes of requests.
    pub sizes: Mix<Size>,
    /// Share of requests that ask for a stream, 0 to 1. Embeddings never stream.
    pub stream_share: f64,
    /// Models asked for.
    pub models: Mix<Model>,
    /// Callers.
    pub tenants: Mix<Tenant>,
    /// How the callers' clients retry.
    pub profiles: Mix<Client>,
    /// How long a caller waits for its answer, retries included, from the time at which it should have been sent.
    pub patience: Duration,
    /// The longest silence within an attempt; `None` for what each profile's client has by default.
    pub attempt_timeout: Option<Duration>,
    /// Clients that have a gateway on their side: that one has the time limit, and tells them 503 when it has passed.
    pub behind_gateway: Vec<Client>,
    /// Headers of every request, beside those of the client and of the endpoint.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The most calls at once; arrivals beyond it are counted as not sent.
    pub max_in_flight: usize,
    /// Decides the schedule, every pick and every backoff.
    pub seed: u64,
}

impl LoadOptions {
    /// The largest rate.
    pub const MAX_RATE_PER_SECOND: f64 = 1_000_000.0;

    /// Defaults: 10 chat calls per second for 30 s, small, not streaming, model `demo-chat`, key `demo-key`, client
    /// openai-python, 60 s of patience, 10,000 calls at once, seed 1.
    pub fn new(target: impl Into<String>) -> Self {
        let (name, prompt_tokens, max_tokens) = Size::NAMED[0];
        Self {
            target: target.into(),
            allow_remote: false,
            endpoint: Endpoint::Chat,
            rate_per_second: 10.0,
            arrivals: Arrivals::Constant,
            limit: Limit::Duration(Duration::from_secs(30)),
            warm_up: Duration::ZERO,
            sizes: Mix::one(Size { name: name.to_owned(), prompt_tokens, max_tokens }),
            stream_share: 0.0,
            models: Mix::one(Model("demo-chat".to_owned())),
            tenants: Mix::one(Tenant { name: "demo".to_owned(), key: SecretString::from("demo-key") }),
            profiles: Mix::one(Client(Profile::by_name("openai-python").expect("the profile exists"))),
            patience: Duration::from_mins(1),
            attempt_timeout: None,
            behind_gateway: Vec::new(),
            headers: Vec::new(),
            max_in_flight: 10_000,
            seed: 1,
        }
    }

    pub(super) fn check(&self) -> Result<(), LoadError> {
        if !(self.rate_per_second > 0.0 && self.rate_per_second <= Self::MAX_RATE_PER_SECOND) {
            return Err(LoadError::invalid(
                "rate",
                format!("{} arrivals per second cannot be scheduled", self.rate_per_second),
                format!("write a number above 0 and at most {}", Self::MAX_RATE_PER_SECOND),
            ));
        }
        if !(0.0..=1.0).contains(&self.stream_share) {
            let problem = format!("{} is no share", self.stream_share);
            return Err(LoadError::invalid("stream-share", problem, "write a number from 0 to 1"));
        }
        let durations = [
            ("patience", Some(self.patience)),
            ("attempt-timeout", self.attempt_timeout),
            ("duration", if let Limit::Duration(duration) = self.limit { Some(duration) } else { None }),
        ];
        for (option, duration) in durations {
            if duration.is_some_and(|duration| duration.is_zero() || duration > MAX_DURATION) {
                let problem = format!("{:?} does not work", duration.unwrap_or_default());
                return Err(LoadError::invalid(option, problem, "write more than nothing and at most a week"));
            }
        }
        if self.warm_up > MAX_DURATION {
            let problem = format!("{:?} is too long", self.warm_up);
            return Err(LoadError::invalid("warm-up", problem, "write at most a week"));
        }
        if self.max_in_flight == 0 || self.max_in_flight > 1_000_000 {
            let problem = format!("{} calls at once do not work", self.max_in_flight);
            return Err(LoadError::invalid("max-in-flight", problem, "write 1 to 1000000"));
        }
        let keys = self.tenants.entries().iter().map(|(tenant, _)| tenant);
        if let Some(tenant) = keys.into_iter().find(|tenant| !tenant.key_can_be_sent()) {
            let problem = format!("the key of `{}` holds characters that no header may hold", tenant.name);
            return Err(LoadError::invalid("tenants", problem, "give keys of visible ASCII characters"));
        }
        if self.limit == Limit::Count(0) {
            return Err(LoadError::invalid("count", "a run of 0 calls has no result", "write at least 1"));
        }
        Ok(())
    }
}

/// Keeps sums of durations within what the clock can express.
const MAX_DURATION: Duration = Duration::from_hours(7 * 24);

/// How arrivals are spaced.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// Equal gaps.
    Constant,
    /// Independent arrivals (exponential gaps).
    Poisson,
}

/// When arrivals end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Limit {
    /// This long after the warm-up.
    Duration(Duration),
    /// After this many arrivals that follow the warm-up.
    Count(u64),
}

/// What is called.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Endpoint {
    /// `/v1/chat/completions`.
    Chat,
    /// `/v1/completions`.
    Completions,
    /// `/v1/embeddings`.
    Embeddings,
    /// `/v1/responses`.
    Responses,
    /// `/v1/messages`.
    Messages,
}

impl Endpoint {
    /// Every endpoint with its name.
    pub const ALL: [(&'static str, Self); 5] = [
        ("chat", Self::Chat),
        ("completions", Self::Completions),
        ("embeddings", Self::Embeddings),
        ("responses", Self::Responses),
        ("messages", Self::Messages),
    ];

    /// Its path.
    pub fn path(self) -> &'static str {
        match self {
            Self::Chat => "/v1/chat/completions",
            Self::Completions => "/v1/completions",
            Self::Embeddings => "/v1/embeddings",
            Self::Responses => "/v1/responses",
            Self::Messages => "/v1/messages",
        }
    }
}

impl FromStr for Endpoint {
    type Err = LoadError;

    fn from_str(text: &str) -> Result<Self, LoadError> {
        Self::ALL.into_iter().find(|(name, _)| *name == text).map(|(_, endpoint)| endpoint).ok_or_else(|| {
            let known = Self::ALL.map(|(name, _)| name).join(", ");
            LoadError::invalid("endpoint", format!("there is no `{text}`"), format!("write one of {known}"))
        })
    }
}

impl FromStr for Arrivals {
    type Err = LoadError;

    fn from_str(text: &str) -> Result<Self, LoadError> {
        match text {
            "constant" => Ok(Self::Constant),
            "poisson" => Ok(Self::Poisson),
            _ => Err(LoadError::invalid("arrivals", format!("there is no `{text}`"), "write constant or poisson")),
        }
    }
}
