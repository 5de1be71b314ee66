//! `[[tenants]]`.

use super::{KeySource, ModeName};
use schemars::JsonSchema;
use seawall_core::settings::Criticality;
use serde::{Deserialize, Serialize};

/// A workload with its own keys and rights.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tenant {
    /// Its name in logs and metrics, unique in the file.
    #[schemars(required, extend("format" = "name"), example = &"search")]
    pub(crate) name: Option<String>,
    /// The keys its clients present; several, so that a key can be replaced without a break. Each is
    /// `{ env = "NAME" }`, `{ file = "PATH" }` or `{ sha256 = "HEX" }`.
    #[schemars(required, length(min = 1))]
    pub(crate) keys: Option<Vec<KeySource>>,
    /// The models it may use, by name or alias; `*` stands for all models of the file.
    #[serde(default = "all_models")]
    #[schemars(length(min = 1), extend("items" = { "type": "string", "format": "name" }))]
    pub(crate) models: Vec<String>,
    /// Whether Seawall acts on the tenant's traffic, or only watches it, as `mode` of a model does. `observe` wins: a
    /// request is only watched where its model or its tenant says so. What such a tenant has in flight counts for the
    /// others, who may wait for it.
    #[serde(default)]
    pub(crate) mode: ModeName,
    /// The highest class its requests may claim; a higher claim is lowered to it.
    #[serde(default)]
    pub(crate) priority_ceiling: CriticalityName,
    /// The residency boundary that its requests must stay inside, as deployments name it in `boundary`. If it is not
    /// set, they may go anywhere.
    #[schemars(extend("format" = "name"), example = &"eu")]
    pub(crate) boundary: Option<String>,
}

fn all_models() -> Vec<String> {
    vec![crate::config::CATCH_ALL.to_owned()]
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub(crate) enum CriticalityName {
    /// Users see its failure at once; served first.
    CriticalPlus,
    /// Users see its failure.
    #[default]
    Critical,
    /// A partial outage is expected and retried later.
    SheddablePlus,
    /// Batch work; frequent refusal is expected.
    Sheddable,
}

impl CriticalityName {
    pub(crate) const fn class(self) -> Criticality {
        match self {
            Self::CriticalPlus => Criticality::CriticalPlus,
            Self::Critical => Criticality::Critical,
            Self::SheddablePlus => Criticality::SheddablePlus,
            Self::Sheddable => Criticality::Sheddable,
        }
    }
}
