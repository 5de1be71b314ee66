//! `mode`, of a model and of a tenant.

use schemars::JsonSchema;
use seawall_core::settings::Mode;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum ModeName {
    /// Seawall acts: requests wait, are refused, moved and tried again, and failing deployments are left out.
    #[default]
    Enforce,
    /// Seawall watches: every request is forwarded at once, and what enforcing would have done is recorded.
    Observe,
}

impl ModeName {
    pub(crate) const fn mode(self) -> Mode {
        match self {
            Self::Enforce => Mode::Enforce,
            Self::Observe => Mode::Observe,
        }
    }
}
