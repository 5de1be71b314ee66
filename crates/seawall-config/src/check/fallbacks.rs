//! `fallback` and `context_fallback` of `[[models]]`: names that exist, no model twice, no circle.

use super::Context;
use super::models::Models;
use super::tenants::names_are_missing;
use crate::config::CATCH_ALL;
use crate::raw::{Model, Raw};
use seawall_core::id::PoolId;
use seawall_core::settings::PoolSettings;
use seawall_document::{Node, nearest, quoted_list, shown};

/// One of the two lists that a model may have.
#[derive(Clone, Copy)]
pub(crate) struct List {
    name: &'static str,
    read: fn(&Model) -> &Vec<String>,
    set: fn(&mut PoolSettings, Vec<PoolId>),
}

/// Both.
pub(crate) const LISTS: [List; 2] = [
    List { name: "fallback", read: |model| &model.fallback, set: |pool, chain| pool.fallbacks = chain },
    List {
        name: "context_fallback",
        read: |model| &model.context_fallback,
        set: |pool, chain| pool.context_fallbacks = chain,
    },
];

/// What one model lists: each pool with its place in the file.
pub(crate) type Listed<'a> = Vec<(PoolId, &'a Node)>;

/// The lists as they are written; what is wrong in them is left out.
pub(crate) fn listed<'a>(
    list: List,
    raw: &Raw,
    root: &'a Node,
    models: &Models,
    context: &mut Context<'_>,
) -> Vec<Listed<'a>> {
    let List { name: setting, read, .. } = list;
    let nodes = root.items("models");
    let mut all = Vec::new();
    for (index, (model, node)) in raw.models.iter().zip(nodes).enumerate() {
        let own = PoolId::from_index(index);
        let mut found: Listed<'a> = Vec::new();
        for (name, place) in read(model).iter().zip(node.items(setting)) {
            let Some(pool) = models.names.get(name).copied() else {
                if !names_are_missing(raw, root, context) {
                    unknown(name, place, models, context);
                }
                continue;
            };
            match mistake(name, own, pool, &found, models) {
                Some((message, remedy)) => context.report.at(place, message, remedy),
                None => found.push((pool, place)),
            }
        }
        all.push(found);
    }
    all
}

fn unknown(name: &str, place: &Node, models: &Models, context: &mut Context<'_>) {
    let names = models.list.iter().flat_map(|model| std::iter::once(&model.name).chain(&model.aliases));
    let known: Vec<&str> = names.map(String::as_str).filter(|known| *known != CATCH_ALL).collect();
    let remedy = match nearest(name, &known) {
        Some(meant) => format!("did you mean {}?", shown(meant)),
        None => format!("the models of the file are {}", quoted_list(&known)),
    };
    context.report.at(place, format!("{} is no model of the file", shown(name)), remedy);
}

/// What is wrong with one entry, and its remedy.
fn mistake(
    name: &str,
    own: PoolId,
    pool: PoolId,
    before: &Listed<'_>,
    models: &Models,
) -> Option<(String, &'static str)> {
    let (from, to) = (&models.list[own.index()], &models.list[pool.index()]);
    if name == CATCH_ALL {
        let message = "`*` cannot be a fallback: it is no model of its own".to_owned();
        return Some((message, "name a model that has an entry of its own"));
    }
    if pool == own {
        return Some((format!("{} cannot fall back to itself", shown(name)), "remove it from the list"));
    }
    if before.iter().any(|(known, _)| *known == pool) {
        return Some((format!("{} is in the list already", shown(name)), "each model is visited once: remove one"));
    }
    if from.family != to.family {
        let message = format!("{} speaks another API and cannot take over", shown(name));
        return Some((message, "Seawall does not translate between OpenAI's and Anthropic's API: remove it"));
    }
    None
}

/// Joins the lists to one chain for each model: the fallbacks of a fallback follow it, each model stands there once.
pub(crate) fn chain(list: List, listed: &[Listed<'_>], root: &Node, models: &mut Models, context: &mut Context<'_>) {
    let mut is_sound = true;
    for index in 0..listed.len() {
        is_sound &= !reports_circle(listed, PoolId::from_index(index), models, context);
    }
    if !is_sound || context.report.is_incomplete(root) {
        return;
    }
    for index in 0..listed.len() {
        let own = PoolId::from_index(index);
        let mut chain = vec![own];
        follow(listed, own, &mut chain);
        chain.remove(0);
        (list.set)(&mut models.pools[index], chain);
    }
}

fn follow(listed: &[Listed<'_>], from: PoolId, chain: &mut Vec<PoolId>) {
    for (pool, _) in &listed[from.index()] {
        if !chain.contains(pool) {
            chain.push(*pool);
            follow(listed, *pool, chain);
        }
    }
}

/// Reports a circle at the entry that closes it, once: at the model of it that comes last in the file.
fn reports_circle(listed: &[Listed<'_>], own: PoolId, models: &Models, context: &mut Context<'_>) -> bool {
    let name = |pool: PoolId| shown(&models.list[pool.index()].name).to_string();
    let mut found = false;
    for (next, place) in &listed[own.index()] {
        let Some(back) = way_back(listed, *next, own, &mut vec![own]) else { continue };
        found = true;
        if back.iter().all(|other| *other <= own) {
            let way: Vec<String> = std::iter::once(own).chain(back).map(name).collect();
            let message = format!("the fallbacks go in a circle: {}", way.join(" -> "));
            context.report.at(place, message, "remove one of them: a request visits each model once");
        }
    }
    found
}

/// The way from `at` back to `to`, both included.
fn way_back(listed: &[Listed<'_>], at: PoolId, to: PoolId, seen: &mut Vec<PoolId>) -> Option<Vec<PoolId>> {
    if at == to {
        return Some(vec![to]);
    }
    if seen.contains(&at) {
        return None;
    }
    seen.push(at);
    let back = listed[at.index()].iter().find_map(|(next, _)| way_back(listed, *next, to, seen))?;
    Some(std::iter::once(at).chain(back).collect())
}
