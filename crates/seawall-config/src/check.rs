//! What the schema cannot say: names that must exist, things that exclude each other, secrets that must be there.
//!
//! Every check reports and goes on; what is built from a wrong file is thrown away.

mod credentials;
mod fallbacks;
mod models;
mod server;
mod tenants;

use crate::Overrides;
use crate::config::Config;
use crate::raw::Raw;
use crate::source::CredentialSource;
use seawall_core::settings::Settings;
use seawall_document::{Node, Report};
use std::sync::Arc;

/// What the checks work with.
pub(crate) struct Context<'a> {
    /// Where mistakes go.
    pub(crate) report: &'a mut Report,
    /// Who gives the secrets; `None`: they are not looked up.
    pub(crate) sources: Option<&'a dyn CredentialSource>,
    /// What the command line says instead of the file.
    pub(crate) overrides: &'a Overrides,
}

/// Checks a file that fits the schema. The result is only good if nothing was reported.
pub(crate) fn config(raw: &Raw, root: &Node, context: &mut Context<'_>) -> Config {
    let server = server::check(&raw.server, root.get_or_self("server"), context);
    let models = models::check(raw, root, context);
    let tenants = tenants::check(raw, root, &models, &server, context);
    Config {
        core: Arc::new(Settings {
            pools: models.pools,
            deployments: models.deployments,
            tenants: tenants.settings,
            ..Settings::default()
        }),
        server,
        models: models.list,
        upstreams: models.upstreams,
        keys: tenants.keys,
        names: models.names,
        anonymous: tenants.anonymous,
    }
}
