//! `[[models]]` and `[[models.deployments]]`.

use super::{Credential, Ejection, ModeName, Queue, Retry, Timeouts};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use seawall_core::{capacity, routing};
use serde::{Deserialize, Serialize};

/// A model that clients may ask for, and the deployments that serve it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Model {
    /// The name in the client's request. `*` takes every model that no other entry names and passes the client's name
    /// on.
    #[schemars(required, extend("format" = "name"), example = &"gpt-4o")]
    pub(crate) name: Option<String>,
    /// More names for it, for clients that know it under another one.
    #[serde(default)]
    #[schemars(extend("items" = { "type": "string", "format": "name" }))]
    pub(crate) aliases: Vec<String>,
    /// How a deployment is picked. `priority`, the default, uses reserved capacity before paid capacity and keeps the
    /// rest for spill-over.
    #[serde(default = "default_policy")]
    #[schemars(schema_with = "policy_schema")]
    pub(crate) policy: String,
    /// How Seawall finds out how many requests a deployment serves at once, where its `capacity` tells no number.
    #[serde(default = "default_discovery")]
    #[schemars(schema_with = "discovery_schema")]
    pub(crate) discovery: String,
    /// Whether Seawall acts on the model's traffic, or only watches it. Under `observe` each request goes at once to one
    /// of all deployments that its tenant may use, picked by `policy` whatever their health and load: nothing waits, is
    /// refused for want of capacity, moved to another deployment or tried again, and no deadline cuts it. A boundary and
    /// an unknown model refuse as ever, and so do the limits of `[server]`. The first thing that enforcing would have
    /// done to a request stands in the access log as `observed` and is counted in `seawall_observed_total` by `verdict`:
    /// `wait`, `move_for_health`, `move_for_capacity`, `retry`, or the outcome of a refusal such as
    /// `capacity_exhausted`. `eject` counts deployments of the model that would have been left out. Requests of a tenant
    /// in `observe` are only watched here too.
    #[serde(default)]
    pub(crate) mode: ModeName,
    /// Models that take over, in order, what this one cannot serve: where none of its deployments can be tried, an
    /// attempt failed and no other deployment can make the second one, its upstreams have asked for a wait, or the
    /// request would be refused for want of capacity. Each model is visited once, the fallbacks of a fallback follow it,
    /// and all attempts together stay within `max_attempts` and the retry budget. A tenant's requests only go to models
    /// that it may use. An answer by another model than the one asked for says so in `x-seawall-model`.
    #[serde(default)]
    #[schemars(extend("items" = { "type": "string", "format": "name" }))]
    pub(crate) fallback: Vec<String>,
    /// Models with a longer context that take over, in order, a request with more tokens than this one's context holds:
    /// where its upstream says so, in whatever words its server has for it (`context_length_exceeded` of OpenAI and Azure,
    /// "prompt is too long" of Anthropic, and those of vLLM, SGLang, TGI and llama.cpp). Nothing else that is the client's
    /// mistake moves a request, and none of it counts against a deployment's health. What `fallback` says of the order, of
    /// attempts, budget, tenants and `x-seawall-model` holds here too. Where no model takes it, the client gets the first
    /// upstream's own words.
    #[serde(default)]
    #[schemars(extend("items" = { "type": "string", "format": "name" }))]
    pub(crate) context_fallback: Vec<String>,
    /// The waiting line in front of the deployments.
    #[serde(default)]
    pub(crate) queue: Queue,
    /// Seawall's own retries.
    #[serde(default)]
    pub(crate) retry: Retry,
    /// When a failing deployment is taken out, and how it comes back.
    #[serde(default)]
    pub(crate) ejection: Ejection,
    /// How long the steps of one attempt may take.
    #[serde(default)]
    pub(crate) timeouts: Timeouts,
    /// The deployments that serve it; at least one.
    #[schemars(required, length(min = 1))]
    pub(crate) deployments: Option<Vec<Deployment>>,
}

fn default_policy() -> String {
    routing::REGISTRY[0].name.to_owned()
}

/// The choices and their words come from the engine's own list of policies.
fn policy_schema(_: &mut SchemaGenerator) -> Schema {
    choices(routing::REGISTRY.iter().map(|entry| (entry.name, entry.summary)))
}

fn default_discovery() -> String {
    capacity::REGISTRY[0].name.to_owned()
}

/// The choices and their words come from the engine's own list of methods.
fn discovery_schema(_: &mut SchemaGenerator) -> Schema {
    choices(capacity::REGISTRY.iter().map(|entry| (entry.name, entry.summary)))
}

fn choices(entries: impl Iterator<Item = (&'static str, &'static str)>) -> Schema {
    let choice = |(name, summary)| serde_json::json!({ "type": "string", "const": name, "description": summary });
    json_schema!({ "oneOf": entries.map(choice).collect::<Vec<_>>() })
}

/// One upstream deployment of a model.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Deployment {
    /// Its name in logs and metrics, unique in the file.
    #[schemars(required, extend("format" = "name"), example = &"sweden-ptu")]
    pub(crate) name: Option<String>,
    /// Its address, http or https. OpenAI dialect: up to what precedes `/chat/completions`; without a path, `/v1` is
    /// added. Azure: the resource, without a path. Anthropic: up to what precedes `/v1/messages`.
    #[schemars(required, extend("format" = "url"), example = &"https://api.openai.com/v1")]
    pub(crate) url: Option<String>,
    /// What it speaks. OpenAI and Azure deployments may serve one model together, Anthropic ones only among themselves.
    #[serde(default)]
    pub(crate) dialect: DialectName,
    /// What it calls the model. If it is not set: the model's `name`, and under `name = "*"` the name that the client
    /// asked for. For Azure it is the deployment's name.
    #[schemars(extend("format" = "name"), example = &"gpt-4o-prod")]
    pub(crate) model: Option<String>,
    /// Azure's `api-version`. If it is not set, Azure's versionless `/openai/v1/` path is used.
    #[schemars(extend("format" = "path-part"), example = &"2024-10-21")]
    pub(crate) api_version: Option<String>,
    /// The region it runs in, in your own words; for logs and metrics.
    #[serde(default)]
    #[schemars(example = &"swedencentral")]
    pub(crate) region: String,
    /// Where it may process data.
    #[serde(default)]
    pub(crate) kind: KindName,
    /// The residency boundary it stays inside, in your own words: a tenant with a `boundary` only uses deployments of
    /// the same one. If it is not set, the deployment promises nothing.
    #[schemars(extend("format" = "name"), example = &"eu")]
    pub(crate) boundary: Option<String>,
    /// What capacity it has: `{ provisioned = 20 }` for reserved capacity that serves 20 requests at once and is used
    /// first, `{ standard = 100 }` for paid by use with at most 100 requests at once, `"standard"` for paid by use
    /// without a bound from us.
    #[serde(default)]
    pub(crate) capacity: Capacity,
    /// Its share of the traffic among deployments of the same `priority`. To take a deployment out of use, remove its
    /// entry.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1_000))]
    pub(crate) weight: u32,
    /// Its priority group: the lowest number that can take a request comes first.
    #[serde(default)]
    #[schemars(range(max = 100))]
    pub(crate) priority: u32,
    /// The path of its metrics page, for a server of your own that is vLLM or SGLang: `/metrics` on both, where SGLang is
    /// started with `--enable-metrics`. Seawall reads it once a second and sends no more than the server works on, and a
    /// small reserve, while the server keeps requests waiting. The page is asked for at the host and port of `url`,
    /// without a credential. If it is not set, nothing is asked for.
    #[schemars(example = &"/metrics")]
    pub(crate) metrics_path: Option<String>,
    /// Whether the server stops working on a request when its connection is closed before the first byte of the answer,
    /// and has room for another one: `true` for vLLM, `false` for llama.cpp, which notices only when it writes. It
    /// decides what becomes of a request whose client has left for good. With `true` it is cancelled at once; with
    /// `false` it goes on until it ends and counts as in flight for so long, because the server is busy with it whatever
    /// we do. If it is not set, it is cancelled while nobody waits for room, and goes on while somebody does.
    #[schemars(example = &true)]
    pub(crate) cancel_frees: Option<bool>,
    /// How Seawall identifies itself there. If it is not set, it does not; a client's own key is never passed on.
    pub(crate) credential: Option<Credential>,
    /// Certificates of a private CA in PEM, trusted for this deployment instead of the system's; only with https.
    #[schemars(extend("format" = "path"), example = &"/etc/seawall/private-ca.pem")]
    pub(crate) ca_file: Option<String>,
}

const fn one() -> u32 {
    1
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum DialectName {
    /// OpenAI's API, as vLLM, SGLang, llama.cpp and many more speak it.
    #[default]
    OpenAi,
    /// Azure OpenAI.
    Azure,
    /// Anthropic's API.
    Anthropic,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub(crate) enum KindName {
    /// Anywhere.
    Global,
    /// Inside a named data zone.
    DataZone,
    /// Inside one region or one machine.
    #[default]
    Regional,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub(crate) enum Capacity {
    Unbounded(StandardWord),
    Told(ToldCapacity),
}

impl Default for Capacity {
    fn default() -> Self {
        Self::Unbounded(StandardWord::Standard)
    }
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum StandardWord {
    /// Paid by use, not bounded by us.
    Standard,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum ToldCapacity {
    /// Reserved capacity: the requests at once that it serves. Used first, spilled over from when they are in use.
    Provisioned(#[schemars(range(min = 1, max = 1_000_000))] u32),
    /// Paid by use: the requests at once that it may have.
    Standard(#[schemars(range(min = 1, max = 1_000_000))] u32),
}
