//! `[[tenants]]`: who may call what.

use super::Context;
use super::credentials::Place;
use super::models::Models;
use super::server::at_address;
use crate::config::{CATCH_ALL, ServerConfig};
use crate::keys::{KeyDigest, KeyTable, digest};
use crate::raw::{KeySource, Raw, Tenant};
use crate::template::{DEMO_BATCH_KEY, DEMO_KEY};
use crate::units::sha256;
use seawall_core::id::{PoolId, TenantId};
use seawall_core::settings::{Criticality, Mode, TenantSettings};
use seawall_document::{Node, nearest, quoted_list, shown};
use secrecy::ExposeSecret as _;
use std::collections::HashMap;

/// The name of the tenant of clients without a key.
const ANONYMOUS: &str = "anonymous";

/// What the tenants of a file come to.
#[derive(Default)]
pub(crate) struct Tenants {
    pub(crate) settings: Vec<TenantSettings>,
    pub(crate) keys: KeyTable,
    pub(crate) anonymous: Option<TenantId>,
    /// Places of keys, by how the file names them: found twice even where secrets are not looked up.
    places: HashMap<String, TenantId>,
}

pub(crate) fn check(
    raw: &Raw,
    root: &Node,
    models: &Models,
    server: &ServerConfig,
    context: &mut Context<'_>,
) -> Tenants {
    let mut tenants = Tenants::default();
    for (tenant, node) in raw.tenants.iter().zip(root.items("tenants")) {
        tenants.add(raw, tenant, (root, node), models, context);
        for (key, place) in tenant.keys.iter().flatten().zip(node.items("keys")) {
            tenants.add_key(key, place, server, context);
        }
    }
    if raw.server.allow_anonymous {
        tenants.add_anonymous(raw, root, models, server, context);
    } else if raw.tenants.is_empty()
        && !context.report.is_incomplete(root)
        && !context.report.is_incomplete_at("tenants")
    {
        let remedy = "add `[[tenants]]` with a `name` and `keys = [{ env = \"NAME\" }]`, or, on a loopback address, set \
                      `allow_anonymous = true` in `[server]`";
        context.report.at(root, "the file names no tenant, so nobody could call", remedy);
    }
    tenants
}

impl Tenants {
    fn add(
        &mut self,
        raw: &Raw,
        tenant: &Tenant,
        (root, node): (&Node, &Node),
        models: &Models,
        context: &mut Context<'_>,
    ) {
        let name = tenant.name.clone().unwrap_or_default();
        let same = self.settings.iter().position(|other| tenant.name.is_some() && other.name == name);
        if let Some(other) = same {
            let message = format!("{} already names `tenants[{other}]`", shown(&name));
            let remedy = "give each tenant a name of its own, or give one tenant both lists of `keys`";
            context.report.at(node.get_or_self("name"), message, remedy);
        }
        let pools = allowed(raw, tenant, (root, node), models, context);
        let tenant = TenantSettings {
            name,
            mode: tenant.mode.mode(),
            pools,
            priority_ceiling: tenant.priority_ceiling.class(),
            boundary: tenant.boundary.clone(),
        };
        boundary(&tenant, (root, node), models, context);
        self.settings.push(tenant);
    }

    /// Adds a key to the tenant that was added last.
    fn add_key(&mut self, key: &KeySource, node: &Node, server: &ServerConfig, context: &mut Context<'_>) {
        let tenant = TenantId::from_index(self.settings.len() - 1);
        let (place, digest) = match key {
            KeySource::Env(name) => {
                (format!("env {name}"), looked_up(node.get_or_self("env"), Place::Variable(name), context))
            }
            KeySource::File(path) => {
                (format!("file {path}"), looked_up(node.get_or_self("file"), Place::File(path), context))
            }
            KeySource::Sha256(digits) => (format!("sha256 {}", digits.to_lowercase()), sha256(digits).ok()),
        };
        let by_place = self.places.get(&place).copied();
        let by_digest = digest.and_then(|digest| self.keys.insert(digest, tenant));
        self.places.entry(place).or_insert(tenant);
        if let Some(owner) = by_place.or(by_digest) {
            let message = if owner == tenant {
                format!("`{}` is the same key as one before it", node.label())
            } else {
                format!("`{}` is also a key of the tenant {}", node.label(), shown(&self.settings[owner.index()].name))
            };
            context.report.at(node, message, "a key tells the tenant: give each tenant keys of its own");
        }
        if digest.is_some_and(is_demo_key) && !server.listen.ip().is_loopback() {
            let message = format!(
                "`{}` is a demo key, which everyone knows, and `listen` ({}) is reachable from other machines",
                node.label(),
                server.listen
            );
            context.report.at(
                node,
                message,
                "make a key of your own, for example with `openssl rand -hex 24`, or listen on `127.0.0.1`",
            );
        }
    }

    fn add_anonymous(
        &mut self,
        raw: &Raw,
        root: &Node,
        models: &Models,
        server: &ServerConfig,
        context: &mut Context<'_>,
    ) {
        let node = root.get_or_self("server");
        if !raw.tenants.is_empty() {
            let remedy = "remove `allow_anonymous`, or remove all `[[tenants]]`";
            let message = "`allow_anonymous` and `[[tenants]]` exclude each other";
            context.report.at(node.get_or_self("allow_anonymous"), message, remedy);
        }
        if !server.listen.ip().is_loopback() {
            let message = format!(
                "`allow_anonymous` with `listen` ({}) would let other machines in without a key",
                server.listen
            );
            at_address(context, node, "listen", message, "add `[[tenants]]` with keys, or listen on `127.0.0.1`");
        }
        self.anonymous = Some(TenantId::from_index(self.settings.len()));
        self.settings.push(TenantSettings {
            name: ANONYMOUS.to_owned(),
            mode: Mode::default(),
            pools: all(models),
            priority_ceiling: Criticality::default(),
            boundary: None,
        });
    }
}

fn looked_up(node: &Node, place: Place<'_>, context: &mut Context<'_>) -> Option<KeyDigest> {
    context.secret(node, place).map(|key| digest(key.expose_secret().as_bytes()))
}

fn is_demo_key(key: KeyDigest) -> bool {
    [DEMO_KEY, DEMO_BATCH_KEY].iter().any(|demo| digest(demo.as_bytes()) == key)
}

fn all(models: &Models) -> Vec<PoolId> {
    (0..models.pools.len()).map(PoolId::from_index).collect()
}

/// The pools that a tenant may use, in the order of the file.
fn allowed(
    raw: &Raw,
    tenant: &Tenant,
    (root, node): (&Node, &Node),
    models: &Models,
    context: &mut Context<'_>,
) -> Vec<PoolId> {
    let mut pools = Vec::new();
    for (index, name) in tenant.models.iter().enumerate() {
        if name == CATCH_ALL {
            pools.extend(all(models));
        } else if let Some(pool) = models.names.get(name) {
            pools.push(*pool);
        } else if !names_are_missing(raw, root, context) {
            let place = node.items("models").get(index).unwrap_or(node);
            // In the order of the file, so that a message is the same in every run.
            let known: Vec<&str> = models
                .list
                .iter()
                .flat_map(|model| std::iter::once(&model.name).chain(&model.aliases))
                .map(String::as_str)
                .collect();
            let remedy = match nearest(name, &known) {
                Some(meant) => format!("did you mean {}?", shown(meant)),
                None => format!("the models of the file are {}; `*` stands for all of them", quoted_list(&known)),
            };
            let message = format!(
                "the tenant {} may use {}, which is no model of the file",
                shown(tenant.name.as_deref().unwrap_or_default()),
                shown(name)
            );
            context.report.at(place, message, remedy);
        }
    }
    pools.sort_unstable();
    pools.dedup();
    pools
}

/// Whether the name of some model is unknown because of another mistake.
pub(crate) fn names_are_missing(raw: &Raw, root: &Node, context: &Context<'_>) -> bool {
    context.report.is_incomplete(root)
        || context.report.is_incomplete_at("models")
        || raw.models.iter().any(|model| model.name.is_none())
        || root
            .items("models")
            .iter()
            .any(|node| node.get("aliases").is_some_and(|list| context.report.is_incomplete(list)))
}

/// A boundary must be kept by some deployment of each model, or the model would be refused for ever.
fn boundary(tenant: &TenantSettings, (root, node): (&Node, &Node), models: &Models, context: &mut Context<'_>) {
    let Some(boundary) = &tenant.boundary else { return };
    for pool in tenant.pools.iter().map(|pool| &models.pools[pool.index()]) {
        let deployments = || pool.deployments.iter().map(|id| &models.deployments[id.index()]);
        if pool.deployments.is_empty() || deployments().any(|deployment| deployment.boundary.as_ref() == Some(boundary))
        {
            continue;
        }
        let model_node = root.items("models").iter().find(|model| {
            model
                .get("name")
                .is_some_and(|name| matches!(&name.value, seawall_document::Value::Text(text) if *text == pool.name))
        });
        if model_node.is_some_and(|model| {
            model.items("deployments").iter().any(|deployment| context.report.is_incomplete(deployment))
        }) {
            continue;
        }
        let promised: Vec<&str> = deployments().filter_map(|deployment| deployment.boundary.as_deref()).collect();
        let promised = if promised.is_empty() { "none".to_owned() } else { quoted_list(&promised) };
        let message = format!(
            "no deployment of the model {} stays inside the boundary {} of the tenant {}",
            shown(&pool.name),
            shown(boundary),
            shown(&tenant.name)
        );
        let remedy = format!(
            "set `boundary` at a deployment that stays inside it, or list in `models` only models that have one (its deployments promise: {promised})"
        );
        context.report.at(node.get_or_self("boundary"), message, remedy);
    }
}
