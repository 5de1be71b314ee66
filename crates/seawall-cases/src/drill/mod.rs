//! A drill: the mechanism of an incident, free of its places and figures, so that it can happen to any configuration.
//!
//! The file `drill.toml` of a case says which mechanisms it had and with which assumptions. It names no deployment and
//! no tenant: each kind of mechanism says whom it befalls.

mod check;
mod load;

pub use load::{reference_markdown, schema_json};

use crate::scenario::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A drill file.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DrillFile {
    /// What can happen, each a run of its own.
    #[schemars(length(min = 1))]
    pub drill: Vec<Drill>,
}

/// One thing that can happen: all of its mechanisms begin together.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Drill {
    /// Its name, unique in the file.
    #[schemars(length(min = 1, max = 60))]
    pub name: String,
    /// What happens, in a sentence.
    #[schemars(length(min = 1))]
    pub about: String,
    /// What would help where no setting does: a protection that there is not yet, or something that callers or servers
    /// have to do. It continues the sentence "what would: ".
    #[schemars(length(min = 1))]
    pub remedy: String,
    /// How long everything is well before.
    #[serde(default = "quiet")]
    pub quiet: Span,
    /// For how long it is watched after the last mechanism is over.
    #[serde(default = "after")]
    pub after: Span,
    /// What acts.
    #[schemars(length(min = 1))]
    pub mechanism: Vec<Mechanism>,
}

const fn quiet() -> Span {
    Span::from_secs(120)
}

const fn after() -> Span {
    Span::from_secs(600)
}

/// What acts in a drill, and its assumptions.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Mechanism {
    /// A layer between the largest tenant's clients and Seawall retries at once and begins to tell failures for want of
    /// capacity as transient ones, at which the clients retry as well. Meanwhile that tenant asks for more than usual.
    RewordedFailures {
        /// How long it lasts.
        lasts: Span,
        /// What the tenant asks for meanwhile, in percent of what it usually asks for.
        #[schemars(range(min = 1, max = 10_000))]
        demand_percent: u32,
        /// Attempts of the layer for one attempt of a client.
        #[serde(default = "seven")]
        #[schemars(range(min = 1, max = 100))]
        layer_attempts: u32,
        /// Attempts of a client for one request.
        #[serde(default = "seven")]
        #[schemars(range(min = 1, max = 100))]
        client_attempts: u32,
    },
    /// A few very long requests of the largest tenant hold a part of the capacity of its largest model.
    HotDocuments {
        /// How long one of them takes.
        work: Span,
        /// Within which time they come, evenly.
        within: Span,
        /// Part of the model's capacity that they take if all run at once, in percent.
        #[schemars(range(min = 1, max = 1_000))]
        capacity_percent: u32,
        /// Whether a server goes on with a request whose client has left.
        #[serde(default = "yes")]
        works_on: bool,
        /// How long their clients wait for the answer to one attempt. If it is not set, as long as other clients.
        attempt_timeout: Option<Span>,
    },
    /// The region with the most capacity is gone, and with it everything that ran there.
    RegionLost {
        /// How long it is gone.
        lasts: Span,
        /// How callers see it.
        #[serde(default)]
        seen_as: Loss,
    },
    /// Caches are cold: every deployment takes several times as long for a request. Clients have a limit of time and try
    /// again.
    ColdCaches {
        /// How long the caches are cold.
        lasts: Span,
        /// How many times as long a request takes.
        #[schemars(range(min = 1.0, max = 50.0))]
        slowdown: f64,
        /// How long clients wait for the answer to one attempt.
        attempt_timeout: Span,
        /// Whether a server goes on with a request whose client has left.
        #[serde(default = "yes")]
        works_on: bool,
    },
    /// The largest deployment of the largest tenant's largest model fails every request, and that tenant's clients come
    /// through a layer: both retry at once.
    SevenBySeven {
        /// How long the deployment fails.
        lasts: Span,
        /// Attempts of the layer for one attempt of a client.
        #[serde(default = "seven")]
        #[schemars(range(min = 1, max = 100))]
        layer_attempts: u32,
        /// Attempts of a client for one request.
        #[serde(default = "seven")]
        #[schemars(range(min = 1, max = 100))]
        client_attempts: u32,
    },
}

const fn seven() -> u32 {
    7
}

const fn yes() -> bool {
    true
}

/// How callers see a region that is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// Nothing answers: each connection takes the time that the caller has for connecting.
    #[default]
    Silence,
    /// Connections are refused at once.
    Refusal,
}

impl Mechanism {
    /// The word of its kind.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::RewordedFailures { .. } => "reworded-failures",
            Self::HotDocuments { .. } => "hot-documents",
            Self::RegionLost { .. } => "region-lost",
            Self::ColdCaches { .. } => "cold-caches",
            Self::SevenBySeven { .. } => "seven-by-seven",
        }
    }

    /// How long it acts.
    pub const fn lasts(&self) -> Span {
        match self {
            Self::RewordedFailures { lasts, .. }
            | Self::RegionLost { lasts, .. }
            | Self::ColdCaches { lasts, .. }
            | Self::SevenBySeven { lasts, .. } => *lasts,
            Self::HotDocuments { work, within, .. } => Span { nanos: work.nanos + within.nanos },
        }
    }
}

impl Drill {
    /// How long the longest of its mechanisms acts.
    pub fn lasts(&self) -> Span {
        self.mechanism.iter().map(Mechanism::lasts).max().unwrap_or_default()
    }
}
