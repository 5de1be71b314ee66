//! Secrets: looked up where they are named.

use super::Context;
use crate::config::{Credential, Dialect, EntraCredential};
use crate::endpoint::Endpoint;
use crate::raw;
use crate::source::SourceError;
use seawall_document::{Node, shown};
use secrecy::{ExposeSecret as _, SecretString};
use std::path::Path;

/// Where the file says a secret is.
#[derive(Clone, Copy)]
pub(crate) enum Place<'a> {
    Variable(&'a str),
    File(&'a str),
}

impl Context<'_> {
    /// The secret at a place, fit for a header; `None`: not there (reported) or not looked up.
    pub(crate) fn secret(&mut self, node: &Node, place: Place<'_>) -> Option<SecretString> {
        let secret = self.text(node, place)?;
        if secret.expose_secret().bytes().all(|byte| byte.is_ascii_graphic()) {
            return Some(secret);
        }
        let message =
            format!("the secret in {} holds spaces or other characters that no header can carry", told(place));
        self.report.at(node, message, "store the key alone, on one line, without quotes");
        None
    }

    /// The text at a place.
    pub(crate) fn text(&mut self, node: &Node, place: Place<'_>) -> Option<SecretString> {
        let sources = self.sources?;
        let (found, remedy) = match place {
            Place::Variable(name) => {
                (sources.environment(name), format!("set it before the start: `export {name}=...`"))
            }
            Place::File(path) => (
                sources.file(Path::new(path)),
                "make the file readable for this user, or name another one; a relative path starts at the working \
                 directory"
                    .to_owned(),
            ),
        };
        found.map_err(|error| self.report.at(node, fault(place, &error), remedy)).ok()
    }
}

fn told(place: Place<'_>) -> String {
    match place {
        Place::Variable(name) => format!("the environment variable {}", shown(name)),
        Place::File(path) => format!("the file {}", shown(path)),
    }
}

fn fault(place: Place<'_>, error: &SourceError) -> String {
    match (place, error) {
        (Place::Variable(_), SourceError::Missing) => format!("{} is not set", told(place)),
        (Place::Variable(_), _) => format!("{} cannot be used: {error}", told(place)),
        (Place::File(_), _) => format!("{} cannot be read: {error}", told(place)),
    }
}

/// The credential of a deployment.
pub(crate) fn credential(
    raw: Option<&raw::Credential>,
    node: &Node,
    dialect: Dialect,
    context: &mut Context<'_>,
) -> Credential {
    let place = node.get_or_self("credential");
    let Some(raw) = raw else { return Credential::None };
    if matches!(raw, raw::Credential::Entra(_) | raw::Credential::ManagedIdentity(_)) && dialect != Dialect::Azure {
        let message =
            format!("Entra ID and managed identity only work with Azure, not with the dialect `{}`", dialect.name());
        context.report.at(place, message, "set `dialect = \"azure\"`, or use a key: `credential = { env = \"NAME\" }`");
    }
    match raw {
        raw::Credential::Env(name) => key(context.secret(place.get_or_self("env"), Place::Variable(name))),
        raw::Credential::File(path) => key(context.secret(place.get_or_self("file"), Place::File(path))),
        raw::Credential::Entra(entra) => self::entra(entra, place.get_or_self("entra"), context),
        raw::Credential::ManagedIdentity(identity) => {
            Credential::ManagedIdentity { client_id: identity.client_id.clone() }
        }
    }
}

/// A key that was not found was reported, or nobody asked for it: what is built from it is thrown away.
fn key(secret: Option<SecretString>) -> Credential {
    Credential::Key(secret.unwrap_or_default())
}

fn entra(raw: &raw::Entra, node: &Node, context: &mut Context<'_>) -> Credential {
    let place = node.get_or_self("client_secret");
    let client_secret = match &raw.client_secret {
        Some(raw::SecretSource::Env(name)) => context.secret(place.get_or_self("env"), Place::Variable(name)),
        Some(raw::SecretSource::File(path)) => context.secret(place.get_or_self("file"), Place::File(path)),
        None => None,
    };
    let Ok(authority) = Endpoint::parse(&raw.authority) else { return Credential::None };
    Credential::Entra(EntraCredential {
        tenant_id: raw.tenant_id.clone().unwrap_or_default(),
        client_id: raw.client_id.clone().unwrap_or_default(),
        client_secret: client_secret.unwrap_or_default(),
        authority,
    })
}
