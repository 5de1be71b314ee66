//! Where things are in this repository.

use std::env;
use std::path::{Path, PathBuf};

/// The work tree.
#[derive(Clone, Debug)]
pub struct Repository {
    root: PathBuf,
}

impl Repository {
    /// The repository that this program was built from.
    pub fn here() -> Self {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = manifest.ancestors().nth(2).expect("this crate lies two folders below the root");
        Self::at(root)
    }

    /// A repository somewhere else; tests make some.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The top folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A path below the top folder.
    pub fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// `path` as the reader knows it: relative to the top folder, with forward slashes.
    pub fn relative(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).to_string_lossy().replace('\\', "/")
    }

    /// Where cargo builds.
    pub fn target(&self) -> PathBuf {
        env::var_os("CARGO_TARGET_DIR").map_or_else(|| self.path("target"), |told| self.root.join(told))
    }

    /// Where the tools of the tests are installed: never outside the work tree's build folder.
    pub fn test_tools(&self) -> PathBuf {
        self.target().join("test-tools")
    }
}
