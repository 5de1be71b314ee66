//! What the engine notices and what is only observed: lines for the operator, and a count.

use crate::metrics::Metrics;
use seawall_core::engine::Notice;
use seawall_core::id::DeploymentId;
use seawall_core::settings::{Mode, Settings};
use std::sync::Arc;

/// Takes the engine's notices.
#[derive(Debug)]
pub struct Notices {
    settings: Arc<Settings>,
    metrics: Arc<Metrics>,
}

impl Notices {
    /// For an engine of these settings.
    pub const fn new(settings: Arc<Settings>, metrics: Arc<Metrics>) -> Self {
        Self { settings, metrics }
    }

    /// Tells the operator what is not enforced, where there is something.
    pub fn announce_observed(&self) {
        let models: Vec<_> = self.settings.pools.iter().filter(|pool| pool.mode == Mode::Observe).collect();
        let tenants: Vec<_> = self.settings.tenants.iter().filter(|tenant| tenant.mode == Mode::Observe).collect();
        if models.is_empty() && tenants.is_empty() {
            return;
        }
        let models: Vec<_> = models.iter().map(|pool| pool.name.as_str()).collect();
        let tenants: Vec<_> = tenants.iter().map(|tenant| tenant.name.as_str()).collect();
        tracing::warn!(?models, ?tenants, "only observed: nothing of theirs is held back, moved or tried again");
    }

    /// Takes one.
    pub fn take(&self, notice: Notice) {
        match notice {
            Notice::Ejected { deployment, time, mode } => {
                let (deployment_name, seconds) = (self.name(deployment), time.as_secs_f64());
                match mode {
                    Mode::Enforce => tracing::warn!(deployment = deployment_name, seconds, "ejected: it keeps failing"),
                    Mode::Observe => {
                        self.metrics.would_eject(deployment);
                        let text = "keeps failing; enforcing would eject it";
                        tracing::warn!(deployment = deployment_name, seconds, "{text}");
                    }
                }
            }
            Notice::KeptFailing { deployment, mode: Mode::Enforce } => {
                tracing::warn!(deployment = self.name(deployment), "fails, but is kept in by the ejection cap");
            }
            Notice::KeptFailing { deployment, mode: Mode::Observe } => {
                let text = "fails; the ejection cap would keep it in";
                tracing::warn!(deployment = self.name(deployment), "{text}");
            }
            Notice::Returned { deployment, .. } => {
                tracing::info!(deployment = self.name(deployment), "works again");
            }
        }
    }

    fn name(&self, deployment: DeploymentId) -> &str {
        &self.settings.deployments[deployment.index()].name
    }
}
