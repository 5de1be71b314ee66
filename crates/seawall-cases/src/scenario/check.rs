//! What a schema cannot say about a scenario: names that have to exist, times that have to be in order.

use super::{Event, Run, Scenario};
use std::collections::{BTreeMap, BTreeSet};

/// Something that is wrong with a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where, for example `event[2].actor`.
    pub key: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub remedy: String,
}

/// Everything that is wrong with a scenario that its schema cannot say. Series names are resolved when a run is built.
pub fn faults(scenario: &Scenario) -> Vec<Fault> {
    let mut faults = Vec::new();
    let kinds = kinds(scenario, &mut faults);
    header(scenario, &kinds, &mut faults);
    targets(scenario, &kinds, &mut faults);
    curves(scenario, &mut faults);
    replacements(scenario, &kinds, &mut faults);
    endless(scenario, &mut faults);
    for (index, event) in scenario.event.iter().enumerate() {
        check_event(scenario, index, event, &kinds, &mut faults);
    }
    checks(scenario, &mut faults);
    faults
}

type Kinds<'a> = BTreeMap<&'a str, &'static str>;

fn push(faults: &mut Vec<Fault>, key: String, message: String, remedy: String) {
    faults.push(Fault { key, message, remedy });
}

fn kinds<'a>(scenario: &'a Scenario, faults: &mut Vec<Fault>) -> Kinds<'a> {
    let mut kinds = Kinds::new();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (kind, name) in scenario.actors() {
        let index = counts.entry(kind).or_default();
        let key = format!("{kind}[{index}].name");
        *index += 1;
        if name.is_empty() || name.contains('.') {
            let remedy = "write letters, digits and hyphens: a dot separates an actor from its metric".to_owned();
            push(faults, key.clone(), format!("`{name}` cannot be the name of an actor"), remedy);
        }
        if kinds.insert(name, kind).is_some() {
            push(faults, key, format!("a second actor is called `{name}`"), "give each actor its own name".to_owned());
        }
    }
    kinds
}

fn names_of(kinds: &Kinds<'_>) -> String {
    let names: Vec<String> = kinds.keys().map(|name| format!("`{name}`")).collect();
    if names.is_empty() { "there are no actors".to_owned() } else { format!("the actors are {}", names.join(", ")) }
}

fn expect_actor(kinds: &Kinds<'_>, key: String, name: &str, faults: &mut Vec<Fault>) {
    if !kinds.contains_key(name) {
        push(faults, key, format!("there is no actor `{name}`"), names_of(kinds));
    }
}

fn header(scenario: &Scenario, kinds: &Kinds<'_>, faults: &mut Vec<Fault>) {
    let header = &scenario.scenario;
    if header.end <= header.start {
        let message = format!("the run ends at {}, which is not after its start at {}", header.end, header.start);
        push(faults, "scenario.end".to_owned(), message, "write a later end; `25:00` is one hour past midnight".into());
    }
    for (index, name) in header.attempts_at.iter().enumerate() {
        expect_actor(kinds, format!("scenario.attempts_at[{index}]"), name, faults);
    }
    if scenario.population.is_empty() {
        push(faults, "scenario".to_owned(), "nobody sends a request".to_owned(), "add a `[[population]]`".to_owned());
    }
}

/// Every `to`, and that no request goes in a circle.
fn targets(scenario: &Scenario, kinds: &Kinds<'_>, faults: &mut Vec<Fault>) {
    let mut edges: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let edge = |key: String, from: &'_ str, to: &'_ str, faults: &mut Vec<Fault>| {
        expect_actor(kinds, key.clone(), to, faults);
        if kinds.get(to) == Some(&"population") {
            let remedy = "name a layer, a router or a server".to_owned();
            push(faults, key, format!("`{from}` sends requests to `{to}`, which takes none"), remedy);
        }
    };
    for (index, actor) in scenario.population.iter().enumerate() {
        edge(format!("population[{index}].to"), &actor.name, &actor.to, faults);
    }
    for (index, actor) in scenario.layer.iter().enumerate() {
        edge(format!("layer[{index}].to"), &actor.name, &actor.to, faults);
        edges.entry(&actor.name).or_default().push(&actor.to);
    }
    for (index, actor) in scenario.router.iter().enumerate() {
        for (position, to) in actor.to.iter().enumerate() {
            edge(format!("router[{index}].to[{position}]"), &actor.name, to, faults);
            edges.entry(&actor.name).or_default().push(to);
        }
    }
    for (index, actor) in scenario.worker_pool.iter().enumerate() {
        let Some(to) = &actor.writes_to else { continue };
        if kinds.get(to.as_str()) != Some(&"result_cache") {
            let message = format!("`{}` writes results to `{to}`, which is not a result cache", actor.name);
            push(faults, format!("worker_pool[{index}].writes_to"), message, "name a `[[result_cache]]`".to_owned());
        }
    }
    for (index, actor) in scenario.result_cache.iter().enumerate() {
        edge(format!("result_cache[{index}].to"), &actor.name, &actor.to, faults);
        edges.entry(&actor.name).or_default().push(&actor.to);
    }
    for (index, actor) in scenario.lookup_cache.iter().enumerate() {
        edge(format!("lookup_cache[{index}].to"), &actor.name, &actor.to, faults);
        edges.entry(&actor.name).or_default().push(&actor.to);
    }
    for (index, actor) in scenario.service.iter().enumerate() {
        edge(format!("service[{index}].to"), &actor.name, &actor.to, faults);
        edge(format!("service[{index}].database"), &actor.name, &actor.database, faults);
        edges.entry(&actor.name).or_default().extend([actor.to.as_str(), actor.database.as_str()]);
    }
    for (index, actor) in scenario.link.iter().enumerate() {
        edge(format!("link[{index}].to"), &actor.name, &actor.to, faults);
        edges.entry(&actor.name).or_default().push(&actor.to);
    }
    for start in edges.keys().copied() {
        if reaches(&edges, start, start) {
            let remedy = "let one of them send its requests elsewhere".to_owned();
            push(faults, String::new(), format!("requests of `{start}` come back to `{start}`"), remedy);
        }
    }
}

fn reaches(edges: &BTreeMap<&str, Vec<&str>>, from: &str, goal: &str) -> bool {
    let mut seen = BTreeSet::new();
    let mut open: Vec<&str> = edges.get(from).cloned().unwrap_or_default();
    while let Some(next) = open.pop() {
        if next == goal {
            return true;
        }
        if seen.insert(next) {
            open.extend(edges.get(next).into_iter().flatten().copied());
        }
    }
    false
}

/// What Seawall replaces has to be a router.
fn replacements(scenario: &Scenario, kinds: &Kinds<'_>, faults: &mut Vec<Fault>) {
    let replaces = scenario.with_seawall.iter().flat_map(|with| &with.replaces);
    for (index, name) in replaces.enumerate() {
        let key = format!("with_seawall.replaces[{index}]");
        match kinds.get(name.as_str()) {
            None => expect_actor(kinds, key, name, faults),
            Some(&"router") => {}
            Some(kind) => {
                let remedy = "name a `[[router]]`".to_owned();
                push(faults, key, format!("`{name}` is a {kind}, which Seawall does not replace"), remedy);
            }
        }
    }
}

fn curves(scenario: &Scenario, faults: &mut Vec<Fault>) {
    for (index, population) in scenario.population.iter().enumerate() {
        let key = |position: usize| format!("population[{index}].curve[{position}]");
        for (position, pair) in population.curve.windows(2).enumerate() {
            if pair[1].0 <= pair[0].0 {
                let message = format!("{} does not come after {}", pair[1].0, pair[0].0);
                push(faults, key(position + 1), message, "write the corners of a curve in their order".to_owned());
            }
        }
        for (position, point) in population.curve.iter().enumerate() {
            if !(0.0..=1000.0).contains(&point.1) {
                let message = format!("the factor {} is not between 0 and 1000", point.1);
                push(faults, key(position), message, "write 1.0 for the rate as it stands".to_owned());
            }
        }
    }
}

/// What would go on for ever without any time passing.
fn endless(scenario: &Scenario, faults: &mut Vec<Fault>) {
    let populations = scenario.population.iter().map(|actor| &actor.retry).enumerate();
    let layers = scenario.layer.iter().map(|actor| &actor.retry).enumerate();
    let caches = scenario.lookup_cache.iter().map(|actor| &actor.retry).enumerate();
    let retries = populations.map(|found| ("population", found));
    let retries = retries.chain(layers.map(|found| ("layer", found)));
    for (kind, (index, retry)) in retries.chain(caches.map(|found| ("lookup_cache", found))) {
        if retry.profile.is_none() && retry.attempts == 0 && retry.wait.nanos == 0 {
            let message = "attempts without end and without a wait between them never let time pass".to_owned();
            let remedy = "write a number of `attempts`, or a `wait`".to_owned();
            push(faults, format!("{kind}[{index}].retry"), message, remedy);
        }
    }
    for (index, service) in scenario.service.iter().enumerate() {
        if service.health.every.nanos == 0 {
            let message = "checks with no time between them never let time pass".to_owned();
            push(faults, format!("service[{index}].health.every"), message, "write `10s`, for example".to_owned());
        }
    }
}

fn check_event(scenario: &Scenario, index: usize, event: &Event, kinds: &Kinds<'_>, faults: &mut Vec<Fault>) {
    let key = |part: &str| format!("event[{index}].{part}");
    let header = &scenario.scenario;
    if event.at < header.start || event.at > header.end {
        let (start, end) = (header.start, header.end);
        let message = format!("`{}` happens at {}, outside the run from {start} to {end}", event.name, event.at);
        push(faults, key("at"), message, "write a time inside the run, or start the run earlier".to_owned());
    }
    if scenario.event[..index].iter().any(|other| other.name == event.name) {
        let message = format!("a second event is called `{}`", event.name);
        push(faults, key("name"), message, "give each event its own name".to_owned());
    }
    let changes = event.change.set();
    let [(change, takers)] = changes.as_slice() else {
        let message = format!("`{}` changes {} things", event.name, changes.len());
        push(faults, key("change"), message, "write exactly one change; two changes are two events".to_owned());
        return;
    };
    match kinds.get(event.actor.as_str()) {
        None => expect_actor(kinds, key("actor"), &event.actor, faults),
        Some(kind) if !takers.contains(kind) => {
            let message = format!("`{}` is a {kind}, which does not take `{change}`", event.actor);
            push(faults, key("change"), message, format!("`{change}` is for: {}", takers.join(", ")));
        }
        Some(_) => {}
    }
    if let Some(to) = &event.change.to {
        expect_actor(kinds, key("change.to"), to, faults);
    }
}

fn checks(scenario: &Scenario, faults: &mut Vec<Fault>) {
    let figures: BTreeSet<&str> = scenario.figure.iter().map(|figure| figure.name.as_str()).collect();
    for (index, check) in scenario.check.iter().enumerate() {
        let key = |part: &str| format!("check[{index}].{part}");
        if let Some(figure) = check.figure.as_deref().filter(|figure| !figures.contains(figure)) {
            let names: Vec<&str> = figures.iter().copied().collect();
            let remedy = format!("the figures are {}", names.join(", "));
            push(faults, key("figure"), format!("there is no figure `{figure}`"), remedy);
        }
        let bounded = check.low.is_some()
            || check.high.is_some()
            || check.earliest.is_some()
            || check.latest.is_some()
            || check.none
            || check.same_until.is_some();
        if check.figure.is_some() && !bounded {
            let remedy = "add `low`, `high`, `earliest`, `latest` or `none = true`".to_owned();
            push(faults, key("figure"), format!("`{}` cannot fail: it has no bound", check.name), remedy);
        }
        if check.keeps_incident && (check.run != Run::AsItHappened || check.figure.is_none()) {
            let remedy = "mark a check of a figure of the run as it happened".to_owned();
            push(faults, key("keeps_incident"), format!("`{}` cannot say what the incident is", check.name), remedy);
        }
        let named = check.counterfactual.as_deref();
        if let Some(name) = named.filter(|name| scenario.counterfactual.iter().all(|other| other.name != *name)) {
            let remedy = "add a `[[counterfactual]]` of that name".to_owned();
            push(faults, key("counterfactual"), format!("there is no counterfactual `{name}`"), remedy);
        }
    }
    for (index, counterfactual) in scenario.counterfactual.iter().enumerate() {
        for (position, name) in counterfactual.moves.iter().enumerate() {
            if !figures.contains(name.as_str()) {
                let key = format!("counterfactual[{index}].moves[{position}]");
                push(faults, key, format!("there is no figure `{name}`"), "name one of the `[[figure]]`s".to_owned());
            }
        }
        for (position, name) in counterfactual.without.iter().enumerate() {
            if scenario.event.iter().all(|event| event.name != *name) {
                let key = format!("counterfactual[{index}].without[{position}]");
                push(faults, key, format!("there is no event `{name}`"), "name one of the `[[event]]`s".to_owned());
            }
        }
    }
}
