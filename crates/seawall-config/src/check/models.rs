//! `[[models]]` and their deployments.

use super::Context;
use super::credentials::{Place, credential};
use super::fallbacks;
use crate::config::{CATCH_ALL, Dialect, Family, ModelConfig, UpstreamConfig};
use crate::endpoint::{Endpoint, Scheme};
use crate::raw::{Capacity, Deployment, DialectName, KindName, Model, Raw, ToldCapacity};
use seawall_core::id::{DeploymentId, PoolId};
use seawall_core::protection::Protections;
use seawall_core::settings::{self, DeploymentKind, DeploymentSettings, PoolSettings};
use seawall_document::{Node, shown};
use secrecy::ExposeSecret as _;
use std::collections::HashMap;

/// What the models of a file come to.
#[derive(Default)]
pub(crate) struct Models {
    pub(crate) pools: Vec<PoolSettings>,
    pub(crate) deployments: Vec<DeploymentSettings>,
    pub(crate) upstreams: Vec<UpstreamConfig>,
    pub(crate) list: Vec<ModelConfig>,
    pub(crate) names: HashMap<String, PoolId>,
    deployment_names: HashMap<String, String>,
}

pub(crate) fn check(raw: &Raw, root: &Node, context: &mut Context<'_>) -> Models {
    let mut models = Models::default();
    let nodes = root.items("models");
    for (model, node) in raw.models.iter().zip(nodes) {
        models.add(model, node, context);
    }
    for list in fallbacks::LISTS {
        let listed = fallbacks::listed(list, raw, root, &models, context);
        fallbacks::chain(list, &listed, root, &mut models, context);
    }
    let left_out = context.report.is_incomplete(root) || context.report.is_incomplete_at("models");
    if raw.models.is_empty() && !left_out {
        let remedy = "add `[[models]]` with a `name` and `[[models.deployments]]`; `seawall init` writes an example";
        context.report.at(root, "the file names no model", remedy);
    }
    models
}

impl Models {
    fn add(&mut self, raw: &Model, node: &Node, context: &mut Context<'_>) {
        let pool = PoolId::from_index(self.pools.len());
        self.add_names(raw, node, pool, context);
        let first = self.deployments.len();
        for (deployment, place) in raw.deployments.iter().flatten().zip(node.items("deployments")) {
            self.add_deployment(raw, deployment, place, pool, context);
        }
        let family = family(raw, node, context);
        ejection_times(raw, node, context);
        self.pools.push(PoolSettings {
            name: raw.name.clone().unwrap_or_default(),
            mode: raw.mode.mode(),
            deployments: (first..self.deployments.len()).map(DeploymentId::from_index).collect(),
            fallbacks: Vec::new(),
            context_fallbacks: Vec::new(),
            policy: raw.policy.clone(),
            discovery: raw.discovery.clone(),
            queue: raw.queue.settings(),
            retry: raw.retry.settings(),
            ejection: raw.ejection.settings(),
            timeouts: raw.timeouts.settings(),
            protections: Protections::default(),
        });
        self.list.push(ModelConfig {
            pool,
            name: raw.name.clone().unwrap_or_default(),
            aliases: raw.aliases.clone(),
            family,
        });
    }

    fn add_names(&mut self, raw: &Model, node: &Node, pool: PoolId, context: &mut Context<'_>) {
        let name = raw.name.iter().map(|name| (name, node.get_or_self("name")));
        for (name, place) in name.chain(raw.aliases.iter().zip(node.items("aliases"))) {
            if name == CATCH_ALL && place.label() != "name" {
                let message = "`*` cannot be an alias";
                context.report.at(place, message, "write `name = \"*\"` in a `[[models]]` entry of its own");
            } else if let Some(other) = self.names.get(name) {
                let message = format!("{} already names `models[{}]`", shown(name), other.0);
                context.report.at(
                    place,
                    message,
                    "each name and alias stands for one model: rename or remove one of the two",
                );
            } else {
                self.names.insert(name.clone(), pool);
            }
        }
    }

    fn add_deployment(
        &mut self,
        model: &Model,
        raw: &Deployment,
        node: &Node,
        pool: PoolId,
        context: &mut Context<'_>,
    ) {
        let name = raw.name.clone().unwrap_or_default();
        if raw.name.is_some()
            && let Some(other) = self.deployment_names.insert(name.clone(), node.key.clone())
        {
            let message = format!("{} already names `{other}`", shown(&name));
            let remedy = "give each deployment of the file a name of its own: logs and metrics tell them apart by it";
            context.report.at(node.get_or_self("name"), message, remedy);
        }
        if raw.kind == KindName::Global && raw.boundary.is_some() {
            let message = "a `global` deployment cannot promise a `boundary`: its data may go anywhere";
            let remedy = "remove `boundary`, or set `kind` to `\"data-zone\"` or `\"regional\"` if that is what it is";
            context.report.at(node.get_or_self("boundary"), message, remedy);
        }
        self.deployments.push(DeploymentSettings {
            name,
            pool,
            region: raw.region.clone(),
            kind: match raw.kind {
                KindName::Global => DeploymentKind::Global,
                KindName::DataZone => DeploymentKind::DataZone,
                KindName::Regional => DeploymentKind::Regional,
            },
            boundary: raw.boundary.clone(),
            capacity: match raw.capacity {
                Capacity::Unbounded(_) => settings::Capacity::Standard { size: None },
                Capacity::Told(ToldCapacity::Standard(size)) => settings::Capacity::Standard { size: Some(size) },
                Capacity::Told(ToldCapacity::Provisioned(size)) => settings::Capacity::Provisioned { size },
            },
            weight: raw.weight,
            priority_group: raw.priority,
            cancel_frees: raw.cancel_frees,
        });
        self.upstreams.extend(upstream(model, raw, node, context));
    }
}

/// Which clients a model serves: all of its deployments must agree.
fn family(raw: &Model, node: &Node, context: &mut Context<'_>) -> Family {
    let dialects: Vec<Dialect> = raw.deployments.iter().flatten().map(|one| dialect(one.dialect)).collect();
    let family = dialects.first().map_or(Family::OpenAi, |first| first.family());
    let odd = dialects.iter().zip(node.items("deployments")).find(|(dialect, _)| dialect.family() != family);
    if let Some((odd, place)) = odd {
        let message =
            format!("the dialect `{}` cannot serve the same model as `{}` before it", odd.name(), dialects[0].name());
        let remedy = "put this deployment into a `[[models]]` entry of its own: Seawall does not translate between \
                      the two APIs";
        context.report.at(place.get_or_self("dialect"), message, remedy);
    }
    family
}

/// How a deployment is reached; `None`: its url is missing, which was reported.
fn upstream(model: &Model, raw: &Deployment, node: &Node, context: &mut Context<'_>) -> Option<UpstreamConfig> {
    let dialect = dialect(raw.dialect);
    if raw.api_version.is_some() && dialect != Dialect::Azure {
        let message = format!("`api_version` means nothing to the dialect `{}`", dialect.name());
        context.report.at(node.get_or_self("api_version"), message, "remove it, or set `dialect = \"azure\"`");
    }
    let credential = credential(raw.credential.as_ref(), node, dialect, context);
    let endpoint = raw.url.as_deref().and_then(|url| Endpoint::parse(url).ok());
    let is_plain = endpoint.as_ref().is_some_and(|endpoint| endpoint.scheme() == Scheme::Http);
    let ca_pem = raw.ca_file.as_deref().and_then(|path| certificates(path, is_plain, node, context));
    if let Some(path) = raw.metrics_path.as_deref().filter(|path| !is_path(path)) {
        let message = format!("{} is no path", shown(path));
        let remedy = "write the part of the page's address behind host and port: `metrics_path = \"/metrics\"`";
        context.report.at(node.get_or_self("metrics_path"), message, remedy);
    }
    let own_name = model.name.clone().filter(|name| name != CATCH_ALL);
    Some(UpstreamConfig {
        endpoint: with_base_path(endpoint?, dialect),
        dialect,
        model: raw.model.clone().or(own_name),
        api_version: raw.api_version.clone(),
        credential,
        ca_pem,
        metrics_path: raw.metrics_path.clone(),
    })
}

fn is_path(text: &str) -> bool {
    text.starts_with('/') && text.parse::<http::uri::PathAndQuery>().is_ok()
}

/// The base path as [`Endpoint::base_path`] promises it, whichever of the usual forms was written.
fn with_base_path(mut endpoint: Endpoint, dialect: Dialect) -> Endpoint {
    let path = endpoint.base_path.as_str();
    endpoint.base_path = match dialect {
        Dialect::OpenAi if path.is_empty() => "/v1",
        Dialect::OpenAi => path,
        Dialect::Azure => path.strip_suffix("/openai/v1").or_else(|| path.strip_suffix("/openai")).unwrap_or(path),
        Dialect::Anthropic => path.strip_suffix("/v1").unwrap_or(path),
    }
    .to_owned();
    endpoint
}

fn certificates(path: &str, is_plain: bool, node: &Node, context: &mut Context<'_>) -> Option<String> {
    let place = node.get_or_self("ca_file");
    if is_plain {
        let remedy = "remove it, or write `https://` in `url`";
        context.report.at(place, "`ca_file` means nothing for an `http://` url", remedy);
    }
    let pem = context.text(place, Place::File(path))?.expose_secret().to_owned();
    if pem.contains("-----BEGIN CERTIFICATE-----") {
        return Some(pem);
    }
    let message = format!("the file {} holds no certificate", shown(path));
    context.report.at(place, message, "write the CA's certificates in PEM: `-----BEGIN CERTIFICATE-----` ...");
    None
}

const fn dialect(name: DialectName) -> Dialect {
    match name {
        DialectName::OpenAi => Dialect::OpenAi,
        DialectName::Azure => Dialect::Azure,
        DialectName::Anthropic => Dialect::Anthropic,
    }
}

fn ejection_times(raw: &Model, node: &Node, context: &mut Context<'_>) {
    if raw.ejection.max_time.0 < raw.ejection.base_time.0 {
        let ejection = node.get_or_self("ejection");
        let place = ejection.get("max_time").unwrap_or_else(|| ejection.get_or_self("base_time"));
        let message =
            format!("`max_time` ({}) is shorter than `base_time` ({})", raw.ejection.max_time, raw.ejection.base_time);
        context.report.at(place, message, "raise `max_time` or lower `base_time`");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_forms_of_a_url_come_to_the_same_base_path() {
        for (dialect, url, path) in [
            (Dialect::OpenAi, "https://api.openai.com", "/v1"),
            (Dialect::OpenAi, "https://api.openai.com/v1", "/v1"),
            (Dialect::OpenAi, "https://host/v1beta/openai/", "/v1beta/openai"),
            (Dialect::Azure, "https://r.openai.azure.com/", ""),
            (Dialect::Azure, "https://r.openai.azure.com/openai/v1/", ""),
            (Dialect::Azure, "https://gateway/azure/openai", "/azure"),
            (Dialect::Anthropic, "https://api.anthropic.com/v1", ""),
            (Dialect::Anthropic, "https://gateway/anthropic", "/anthropic"),
        ] {
            let endpoint = Endpoint::parse(url).expect("a good url");
            assert_eq!(with_base_path(endpoint, dialect).base_path(), path, "{url}");
        }
    }
}
