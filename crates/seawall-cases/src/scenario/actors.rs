//! Who sends requests, and what stands between them and the servers.

use super::units::{Clock, Span};
use schemars::JsonSchema;
use serde::Deserialize;

/// Clients that send requests on their own account, at a rate that does not depend on the answers (open loop).
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Population {
    /// Its name.
    pub name: String,
    /// Whose requests they are: the workload, or tenant, that figures are told for.
    pub workload: String,
    /// Where its requests go.
    pub to: String,
    /// How much its requests matter, as they say themselves.
    #[serde(default)]
    pub criticality: Criticality,
    /// The models it asks for, evenly.
    #[serde(default = "default_models")]
    #[schemars(length(min = 1))]
    pub models: Vec<String>,
    /// New requests a second, before the curve. Scales.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1_000_000.0))]
    pub rate_per_second: f64,
    /// Factor of the rate over the day: times and factors, straight lines between them, level outside.
    #[serde(default)]
    pub curve: Vec<RampPoint>,
    /// Mean number of requests that arrive together (geometric); 1: they arrive alone.
    #[serde(default = "one")]
    #[schemars(range(min = 1.0, max = 1000.0))]
    pub batch_mean: f64,
    /// The work of one request, where the server does not decide it.
    pub work: Option<Work>,
    /// Whether its requests are very large ones.
    #[serde(default)]
    pub large: bool,
    /// Share of requests that ask again for what an earlier request of this population was answered.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub repeat_share: f64,
    /// How long ago that answer was at the most.
    #[serde(default = "half_an_hour")]
    pub repeat_within: Span,
    /// Number of accounts that its requests are for, all equally often; 0: each request is for something new. Scales.
    #[serde(default)]
    #[schemars(range(min = 0, max = 10_000_000))]
    pub accounts: u32,
    /// How it retries.
    #[serde(default)]
    pub retry: Retry,
    /// How long it waits for the answer to one attempt.
    pub attempt_timeout: Option<Span>,
    /// How long it waits for all its attempts together.
    pub patience: Option<Span>,
    /// Whether a request that failed for good is sent again later.
    pub resubmit: Option<Resubmit>,
    /// The region it sits in, for figures.
    #[serde(default)]
    pub region: String,
}

/// How much a request matters, from most to least. Naive actors take no notice of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Criticality {
    /// Users see its failure at once and it is served first.
    CriticalPlus,
    /// Users see its failure.
    #[default]
    Critical,
    /// A partial outage is expected and retried later.
    SheddablePlus,
    /// Batch work; frequent refusal is expected.
    Sheddable,
}

fn default_models() -> Vec<String> {
    vec!["model".to_owned()]
}

const fn one() -> f64 {
    1.0
}

const fn half_an_hour() -> Span {
    Span::from_secs(1800)
}

/// One corner of a curve: `["12:25", 1.0]`.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct RampPoint(pub Clock, pub f64);

/// The work of a request at full speed: lognormal, or Erlang.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Work {
    /// Its mean.
    pub mean: Span,
    /// Standard deviation of its logarithm; 0: always the mean.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 5.0))]
    pub sigma: f64,
    /// Where set, the work is the sum of so many exponential parts with equal means (1: exponential), and `sigma` is not
    /// used.
    #[schemars(range(min = 1, max = 1000))]
    pub stages: Option<u32>,
    /// Tokens of the prompt, for a serving engine.
    #[serde(default)]
    pub prompt_tokens: u32,
    /// Tokens of the answer, for a serving engine.
    #[serde(default)]
    pub output_tokens: u32,
}

/// A request that failed for good comes again, later.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Resubmit {
    /// At the earliest after this time.
    pub after: Span,
    /// Mean of an exponential wait on top.
    pub spread: Span,
    /// How often at the most.
    #[serde(default = "once")]
    pub times: u32,
}

const fn once() -> u32 {
    1
}

/// How failures are retried: a measured client by name, or a plain rule.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// A measured client, by its name in the table of retry profiles (`seawall sim profiles` lists them). With it the
    /// other keys are not used.
    pub profile: Option<String>,
    /// Attempts for one request at the most, the first included; 0: without end.
    #[serde(default = "once")]
    pub attempts: u32,
    /// Wait before the next attempt.
    #[serde(default)]
    pub wait: Span,
    /// Longest wait, where it is drawn between `wait` and this.
    pub wait_most: Option<Span>,
    /// Whether each wait is twice the one before.
    #[serde(default)]
    pub doubles: bool,
    /// Whether a wait that the answer states is used instead.
    #[serde(default)]
    pub obeys_advice: bool,
    /// Which failures are retried.
    #[serde(default = "transient")]
    pub on: Vec<Form>,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            profile: None,
            attempts: 1,
            wait: Span::default(),
            wait_most: None,
            doubles: false,
            obeys_advice: false,
            on: transient(),
        }
    }
}

fn transient() -> Vec<Form> {
    vec![Form::Overloaded, Form::Unavailable, Form::Error, Form::ConnectionLost, Form::ConnectionRefused, Form::Timeout]
}

/// The form in which a failure reaches a caller: what the caller decides by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// There is no capacity for this: 429.
    Capacity,
    /// Too much at once, come back: 503 with a wait.
    Overloaded,
    /// A transient failure of a server: 503 without a wait.
    Unavailable,
    /// A failure of a server: 500.
    Error,
    /// The connection ended before the answer did.
    ConnectionLost,
    /// No connection could be made.
    ConnectionRefused,
    /// The caller's own time limit passed.
    Timeout,
}

/// A layer between callers and servers.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Layer {
    /// Its name.
    pub name: String,
    /// Where its requests go.
    pub to: String,
    /// How it retries.
    #[serde(default)]
    pub retry: Retry,
    /// How long it waits for the answer to one attempt.
    pub attempt_timeout: Option<Span>,
    /// Failures that it passes on in another form: `{ capacity = "unavailable" }`.
    #[serde(default)]
    pub rewords: std::collections::BTreeMap<String, Form>,
    /// Whether it drops waits and other advice of an answer.
    #[serde(default)]
    pub drops_advice: bool,
    /// Whether it drops the retry counters of a request.
    #[serde(default)]
    pub drops_counters: bool,
    /// Whether it alters the body of each attempt, so that two attempts do not look alike.
    #[serde(default)]
    pub alters_body: bool,
}

/// A network between two actors.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Its name, which callers use as their `to`.
    pub name: String,
    /// The actor at its other end.
    pub to: String,
    /// Time of one way.
    #[serde(default)]
    pub delay: Span,
    /// Share of requests that are lost on the way; the caller sees a lost connection.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub loss: f64,
}
