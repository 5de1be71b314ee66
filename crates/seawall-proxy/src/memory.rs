//! What the engine has learned of capacities, kept in a file in the data folder over a restart.
//!
//! The file is a help and no state that anything depends on: without it, or with one that cannot be read, every window
//! is found anew. So nothing that is wrong with it keeps the process from starting or from serving.

use crate::clock::unix_seconds;
use crate::driver::Driver;
use seawall_config::Config;
use seawall_core::capacity::{Learned, Remembered};
use seawall_core::id::DeploymentId;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The file's name in the data folder.
pub const FILE: &str = "capacity.json";
/// How often it is written. What a crash loses is found again within seconds; a write costs one `fsync`.
pub const INTERVAL: Duration = Duration::from_secs(30);
/// The form of the file. Another one is not read.
const FORMAT: u32 = 1;
/// At about 250 bytes for a deployment more than any configuration has; a larger file is none of ours.
const LARGEST_BYTES: u64 = 8 << 20;

#[derive(Debug, Serialize, Deserialize)]
struct Document {
    format: u32,
    deployments: Vec<Kept>,
}

/// What every form of the file has.
#[derive(Debug, Deserialize)]
struct Form {
    format: u32,
}

/// What is kept of a deployment, and what tells whether it is still the same one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Kept {
    deployment: String,
    url: String,
    model: Option<String>,
    /// The method of discovery.
    discovery: String,
    window: u32,
    is_proven: bool,
    /// When the window was last at work, in seconds since the Unix epoch.
    learned_at: u64,
}

impl Kept {
    /// The same but for the second that ages are rounded by.
    fn says_the_same(&self, other: &Self) -> bool {
        let at = other.learned_at;
        self.learned_at.abs_diff(at) <= 1 && *self == Self { learned_at: self.learned_at, ..other.clone() }
    }
}

/// The file.
#[derive(Debug)]
pub struct Memory {
    config: Config,
    folder: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    written: Vec<Kept>,
    /// Whether the last write failed: that is worth one line, not one each time.
    failed: bool,
}

/// Why a file says nothing.
#[derive(Debug, thiserror::Error)]
enum Unreadable {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("it is no such file, or torn: {0}")]
    Torn(#[from] serde_json::Error),
    #[error("its format is {0}, not {FORMAT}: another version of Seawall wrote it")]
    Foreign(u32),
    #[error("it is larger than {LARGEST_BYTES} bytes")]
    TooLarge,
}

impl Memory {
    /// That of this configuration.
    pub fn new(config: &Config) -> Arc<Self> {
        let folder = config.server().data_dir.clone();
        Arc::new(Self { config: config.clone(), folder, state: Mutex::default() })
    }

    /// Starts the engine's windows from what the file says.
    pub fn recall(&self, driver: &Driver) {
        let file = self.folder.join(FILE);
        let kept = match read(&file) {
            Ok(kept) => kept,
            Err(Unreadable::Io(error)) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => {
                tracing::warn!(
                    file = %file.display(), %error,
                    "what an earlier run learned of capacities cannot be read, and is found anew; if this line comes \
                     again at the next start, delete the file"
                );
                return;
            }
        };
        let now = unix_seconds();
        let known = kept.iter().filter(|kept| {
            self.deployment_of(kept).is_some_and(|deployment| {
                let learned = Learned { window: kept.window, is_proven: kept.is_proven };
                let age = Duration::from_secs(now.saturating_sub(kept.learned_at));
                driver.remember(deployment, Remembered { learned, age })
            })
        });
        let (remembered, ignored) = (known.count(), kept.len());
        let ignored = ignored - remembered;
        tracing::info!(remembered, ignored, "windows of deployments start from what an earlier run learned");
    }

    /// Writes what the engine has learned, where that has changed.
    pub async fn write(self: Arc<Self>, driver: &Driver) {
        let learned = driver.learned();
        let written = tokio::task::spawn_blocking(move || self.write_now(&learned)).await;
        if let Err(error) = written {
            tracing::error!(%error, "the task that writes what was learned of capacities ended early");
        }
    }

    fn write_now(&self, learned: &[(DeploymentId, Remembered)]) {
        let now = unix_seconds();
        let kept: Vec<Kept> = learned.iter().map(|(id, remembered)| self.kept(*id, *remembered, now)).collect();
        // Whoever panicked while it was held was writing: the next write is a whole one.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let same = kept.len() == state.written.len()
            && kept.iter().zip(&state.written).all(|(one, other)| one.says_the_same(other));
        if same {
            return;
        }
        match replace(&self.folder, &kept) {
            Ok(()) => {
                if std::mem::take(&mut state.failed) {
                    tracing::info!("what is learned of capacities is written again");
                }
                state.written = kept;
            }
            Err(error) if !std::mem::replace(&mut state.failed, true) => tracing::warn!(
                file = %self.folder.join(FILE).display(), %error,
                "what is learned of capacities cannot be written: a restart will find it anew; give the process a \
                 folder that it may write to (`data_dir` in `[server]`, or `--data-dir`)"
            ),
            Err(_) => {}
        }
    }

    fn kept(&self, id: DeploymentId, remembered: Remembered, now: u64) -> Kept {
        let deployment = &self.config.core().deployments[id.index()];
        let upstream = self.config.upstream(id);
        Kept {
            deployment: deployment.name.clone(),
            url: upstream.endpoint.to_string(),
            model: upstream.model.clone(),
            discovery: self.config.core().pools[deployment.pool.index()].discovery.clone(),
            window: remembered.learned.window,
            is_proven: remembered.learned.is_proven,
            learned_at: now.saturating_sub(remembered.age.as_secs()),
        }
    }

    /// The deployment that this was learned of, where it is still served by the same server and watched by the same
    /// method.
    fn deployment_of(&self, kept: &Kept) -> Option<DeploymentId> {
        let settings = self.config.core();
        let index = settings.deployments.iter().position(|deployment| deployment.name == kept.deployment)?;
        let id = DeploymentId::from_index(index);
        let upstream = self.config.upstream(id);
        let is_same = upstream.endpoint.to_string() == kept.url
            && upstream.model == kept.model
            && settings.pools[settings.deployments[index].pool.index()].discovery == kept.discovery;
        is_same.then_some(id)
    }
}

fn read(file: &Path) -> Result<Vec<Kept>, Unreadable> {
    let mut text = Vec::new();
    File::open(file)?.take(LARGEST_BYTES + 1).read_to_end(&mut text)?;
    if text.len() as u64 > LARGEST_BYTES {
        return Err(Unreadable::TooLarge);
    }
    // The form first: another one may have other fields.
    let form: Form = serde_json::from_slice(&text)?;
    if form.format != FORMAT {
        return Err(Unreadable::Foreign(form.format));
    }
    let document: Document = serde_json::from_slice(&text)?;
    Ok(document.deployments)
}

/// Replaces the file as a whole: whoever reads it finds the old one or the new one, after a power cut too.
fn replace(folder: &Path, kept: &[Kept]) -> io::Result<()> {
    let document = Document { format: FORMAT, deployments: kept.to_vec() };
    let text = serde_json::to_string_pretty(&document)? + "\n";
    std::fs::create_dir_all(folder)?;
    let (new, file) = (folder.join(format!("{FILE}.new")), folder.join(FILE));
    // For its owner only: it tells where the deployments are.
    let mut opened = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    opened.write_all(text.as_bytes())?;
    opened.sync_all()?;
    std::fs::rename(&new, &file)?;
    File::open(folder)?.sync_all()
}
