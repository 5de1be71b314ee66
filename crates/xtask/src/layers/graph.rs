//! A dependency graph, read from what `cargo tree` prints.

use crate::Failure;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Packages (by name and version, so that two versions of one crate stay apart) and what they use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    uses: BTreeMap<String, BTreeSet<String>>,
    features: BTreeMap<String, BTreeSet<String>>,
    members: BTreeSet<String>,
}

impl Graph {
    /// Reads the output of `cargo tree --prefix depth --format "{p}|{f}"`: a depth, a package, its features.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let mut graph = Self::default();
        let mut above: Vec<String> = Vec::new();
        for line in text.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_digit())) {
            let (depth, key, is_member, features) = entry(line).ok_or_else(|| Failure::Answer {
                command: "cargo tree".to_owned(),
                reason: format!("unexpected line `{line}`"),
            })?;
            if depth > above.len() {
                return Err(Failure::Answer {
                    command: "cargo tree".to_owned(),
                    reason: format!("`{line}` skips a level"),
                });
            }
            above.truncate(depth);
            graph.uses.entry(key.clone()).or_default();
            if is_member {
                graph.members.insert(key.clone());
            }
            graph.features.entry(key.clone()).or_default().extend(features);
            if let Some(user) = above.last() {
                graph.add(user.clone(), key.clone());
            }
            above.push(key);
        }
        Ok(graph)
    }

    /// Adds an edge.
    pub fn add(&mut self, from: String, to: String) {
        self.uses.entry(to.clone()).or_default();
        self.uses.entry(from).or_default().insert(to);
    }

    /// The names of the workspace's own packages.
    pub fn members(&self) -> BTreeSet<String> {
        self.members.iter().map(|key| name(key).to_owned()).collect()
    }

    /// The names that `user` depends on directly.
    pub fn direct(&self, user: &str) -> BTreeSet<String> {
        self.keys(user).filter_map(|key| self.uses.get(key)).flatten().map(|key| name(key).to_owned()).collect()
    }

    /// All names that `root` reaches, itself included.
    pub fn reachable(&self, root: &str) -> BTreeSet<String> {
        self.walk(root).into_keys().map(|key| name(key).to_owned()).collect()
    }

    /// A shortest chain of names from `root` to `target`, or `None` if it cannot be reached.
    pub fn path(&self, root: &str, target: &str) -> Option<Vec<String>> {
        let came_from = self.walk(root);
        let mut at = came_from.keys().copied().find(|key| name(key) == target)?;
        let mut path = vec![name(at).to_owned()];
        while let Some(before) = came_from.get(at).copied().flatten() {
            path.push(name(before).to_owned());
            at = before;
        }
        path.reverse();
        Some(path)
    }

    /// Whether any version of `package` is built with `feature`.
    pub fn has_feature(&self, package: &str, feature: &str) -> bool {
        self.keys(package).any(|key| self.features.get(key).is_some_and(|features| features.contains(feature)))
    }

    fn keys<'a>(&'a self, wanted: &'a str) -> impl Iterator<Item = &'a str> {
        self.uses.keys().map(String::as_str).filter(move |key| name(key) == wanted)
    }

    /// Breadth first: each package that is reached, with the one it was reached from.
    fn walk<'a>(&'a self, root: &'a str) -> BTreeMap<&'a str, Option<&'a str>> {
        let mut came_from: BTreeMap<&str, Option<&str>> = self.keys(root).map(|key| (key, None)).collect();
        let mut next: VecDeque<&str> = came_from.keys().copied().collect();
        while let Some(user) = next.pop_front() {
            for used in self.uses.get(user).into_iter().flatten() {
                if !came_from.contains_key(used.as_str()) {
                    came_from.insert(used, Some(user));
                    next.push_back(used);
                }
            }
        }
        came_from
    }
}

fn name(key: &str) -> &str {
    key.split(' ').next().unwrap_or(key)
}

/// `2hyper v1.12.0|client,server (*)` as depth, key, whether it is our own, features.
fn entry(line: &str) -> Option<(usize, String, bool, Vec<String>)> {
    let digits = line.find(|letter: char| !letter.is_ascii_digit())?;
    let depth = line[..digits].parse().ok()?;
    let (package, features) = line[digits..].trim_end_matches(" (*)").split_once('|')?;
    let mut words = package.split(' ');
    let key = format!("{} {}", words.next()?, words.next()?);
    // Only a package of the workspace is shown with its folder.
    let is_member = words.any(|word| word.starts_with("(/") || word.contains(":\\"));
    let features = features.split(',').filter(|feature| !feature.is_empty()).map(str::to_owned).collect();
    Some((depth, key, is_member, features))
}
