//! Which crate may reach which.
//!
//! The layers are what makes the simulator's word count: the policy engine cannot see a socket, a runtime or a clock,
//! and a manifest proves it. The graph is the one that cargo really builds (`cargo tree`, normal and build
//! dependencies, default features, this host), not the one in the lock file: a crate behind a feature that nobody
//! enables stands in the lock file and is never built.

mod graph;
mod rules;

pub use graph::Graph;
pub use rules::{ALLOWED_BELOW_CORE, BANNED_EVERYWHERE, BANNED_FEATURES, BANNED_FROM_PURE, CRATES, Layer};

use crate::repository::Repository;
use crate::{Failure, Violation, command};
use std::collections::BTreeSet;

/// Runs every rule on the repository as it stands.
pub fn check(repository: &Repository) -> Result<(), Failure> {
    Failure::of("layers", violations(repository, Network::Allowed)?)
}

/// Whether cargo may fetch a crate that it has not seen yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// It may.
    Allowed,
    /// It may not; for copies of the work tree with a changed manifest.
    Denied,
}

/// What breaks a rule. The pure crates are resolved one by one, so that a feature which a neighbour turns on is not
/// held against them.
pub fn violations(repository: &Repository, network: Network) -> Result<Vec<Violation>, Failure> {
    let whole = tree(repository, network, &["--workspace"])?;
    let members = whole.members();
    let mut found = unknown_members(&members);
    found.extend(internal_edges(&whole));
    found.extend(banned_everywhere(&whole));
    found.extend(banned_features(&whole));
    for layer in CRATES.iter().filter(|layer| layer.pure && members.contains(layer.name)) {
        let graph = tree(repository, network, &["--package", layer.name])?;
        found.extend(reaches_no_io(&graph, layer.name));
        if layer.no_std {
            found.extend(only_allowed(&graph, layer.name));
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// The dependency graph of the selected packages, as cargo would build them.
pub fn tree(repository: &Repository, network: Network, selection: &[&str]) -> Result<Graph, Failure> {
    let mut cargo = command::cargo();
    cargo.current_dir(repository.root()).arg("tree").args(selection);
    cargo.args(["--edges", "normal,build", "--prefix", "depth", "--format", "{p}|{f}"]);
    if network == Network::Denied {
        cargo.arg("--offline");
    }
    Graph::parse(&command::output(&mut cargo)?)
}

/// Crates of the workspace that the table does not know.
fn unknown_members(members: &BTreeSet<String>) -> Vec<Violation> {
    let known: BTreeSet<&str> = CRATES.iter().map(|layer| layer.name).collect();
    members
        .iter()
        .filter(|name| !known.contains(name.as_str()))
        .map(|name| {
            Violation::new(name, "is in no layer; add it to `CRATES` in xtask's layers/rules.rs and to ARCHITECTURE.md")
        })
        .collect()
}

/// Edges between our own crates that the table does not allow.
pub fn internal_edges(graph: &Graph) -> Vec<Violation> {
    let members = graph.members();
    let mut found = Vec::new();
    for layer in CRATES {
        for target in graph.direct(layer.name) {
            if members.contains(&target) && !layer.may_use.contains(&target.as_str()) {
                found.push(Violation::new(
                    layer.name,
                    format!("must not depend on {target}; see the table in ARCHITECTURE.md"),
                ));
            }
        }
    }
    found
}

/// A pure crate must not reach anything that does I/O or reads a clock.
pub fn reaches_no_io(graph: &Graph, pure: &str) -> Vec<Violation> {
    BANNED_FROM_PURE
        .iter()
        .filter_map(|banned| graph.path(pure, banned))
        .map(|path| Violation::new(pure, format!("a pure crate reaches I/O or a clock: {}", path.join(" -> "))))
        .collect()
}

/// The `no_std` crates use a short list of crates and nothing else.
pub fn only_allowed(graph: &Graph, root: &str) -> Vec<Violation> {
    graph
        .reachable(root)
        .iter()
        .filter(|name| name.as_str() != root && !ALLOWED_BELOW_CORE.contains(&name.as_str()))
        .filter_map(|name| graph.path(root, name))
        .map(|path| Violation::new(root, format!("off the allow-list of the `no_std` crates: {}", path.join(" -> "))))
        .collect()
}

/// Crates that must not be built at all.
pub fn banned_everywhere(graph: &Graph) -> Vec<Violation> {
    let mut found = Vec::new();
    for (banned, reason) in BANNED_EVERYWHERE {
        for member in graph.members() {
            if let Some(path) = graph.path(&member, banned) {
                found.push(Violation::new(&member, format!("{reason}: {}", path.join(" -> "))));
            }
        }
    }
    found
}

/// Features that must not be enabled anywhere, since cargo unifies them over the whole build.
pub fn banned_features(graph: &Graph) -> Vec<Violation> {
    BANNED_FEATURES
        .iter()
        .filter(|(package, feature, _)| graph.has_feature(package, feature))
        .map(|(package, feature, reason)| Violation::new(*package, format!("feature `{feature}` is enabled: {reason}")))
        .collect()
}

#[cfg(test)]
mod tests;
