//! What a config file plans, without its secrets: enough to think about it, never enough to serve.

use crate::config::{Config, ModelConfig, ServerConfig};
use crate::{Overrides, check, raw, read, schema};
use seawall_core::id::{DeploymentId, PoolId};
use seawall_core::settings::Settings;
use seawall_document::{Errors, Node};
use std::path::Path;

/// A checked file whose secrets were not looked up: it may be planned with on a machine that does not have them.
///
/// A value of this type came out of a file without a mistake. It knows where each key stands, so that whoever speaks of
/// a setting can name its line.
#[derive(Clone, Debug)]
pub struct Plan {
    config: Config,
    file: String,
    root: Node,
    /// The byte at which each line begins.
    line_starts: Vec<usize>,
}

/// Where a key stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyPlace {
    /// The line of the key, from 1; where it is not written, of the nearest section around it; `None`: the file has
    /// nothing around it.
    pub line: Option<usize>,
    /// Whether the file says it. Otherwise its default holds.
    pub is_written: bool,
}

impl Plan {
    /// Reads and checks a file.
    pub fn load(path: &Path) -> Result<Self, Errors> {
        let file = path.display().to_string();
        Self::parse(&read(path, &file)?, &file)
    }

    /// Checks a file's text, named `file` in errors.
    pub fn parse(text: &str, file: &str) -> Result<Self, Errors> {
        let (raw, mut places) = seawall_document::read::<raw::Raw>(text, file, schema::schema())?;
        let (root, report) = places.parts();
        let overrides = Overrides::default();
        let config = check::config(&raw, root, &mut check::Context { report, sources: None, overrides: &overrides });
        let root = places.root().clone();
        let after = text.match_indices('\n').map(|(at, _)| at + 1);
        let line_starts = std::iter::once(0).chain(after).collect();
        Ok(Self { config: places.finish(config)?, file: file.to_owned(), root, line_starts })
    }

    /// The file's name, as it was given.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// What the engine is told; ids are indices in here.
    pub fn core(&self) -> &Settings {
        self.config.core()
    }

    /// Listeners and limits.
    pub fn server(&self) -> &ServerConfig {
        self.config.server()
    }

    /// The models in the order of the file; the index is the [`PoolId`].
    pub fn models(&self) -> &[ModelConfig] {
        self.config.models()
    }

    /// The host of a deployment.
    pub fn host(&self, deployment: DeploymentId) -> &str {
        self.config.upstream(deployment).endpoint.host()
    }

    /// The full key of a model, for example `models[2]`.
    pub fn model_key(pool: PoolId) -> String {
        format!("models[{}]", pool.index())
    }

    /// The full key of a deployment, for example `models[2].deployments[0]`.
    pub fn deployment_key(&self, deployment: DeploymentId) -> String {
        let pool = self.core().deployments[deployment.index()].pool;
        let of_pool = &self.core().pools[pool.index()].deployments;
        let index = of_pool.iter().position(|other| *other == deployment).unwrap_or_default();
        format!("{}.deployments[{index}]", Self::model_key(pool))
    }

    /// Where a full key such as `models[0].queue.patience` stands.
    pub fn place(&self, key: &str) -> KeyPlace {
        let node = self.root.find(key);
        let line = (!node.key.is_empty()).then(|| self.line_starts.partition_point(|start| *start <= node.span.start));
        KeyPlace { line, is_written: node.key == key }
    }
}
