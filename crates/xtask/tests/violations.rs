//! Adds one violation at a time to a copy of this repository's manifests and sources, and sees the check fail.

use std::fs;
use std::path::Path;
use tempfile::TempDir;
use xtask::layers::{self, CRATES, Network};
use xtask::repository::Repository;
use xtask::{Violation, files, purity};

/// A copy of the manifests, the lock file and the sources, in which a test may change anything.
struct Copy {
    folder: TempDir,
    repository: Repository,
}

impl Copy {
    fn new() -> Self {
        let original = Repository::here();
        let folder = tempfile::tempdir().expect("a temporary folder");
        let repository = Repository::at(folder.path());
        for name in ["Cargo.toml", "Cargo.lock"] {
            copy_file(&original.path(name), &repository.path(name));
        }
        for path in files::below(&original.path("crates"), &[".rs", ".toml"]).expect("the crates can be listed") {
            copy_file(&path, &repository.path(&original.relative(&path)));
        }
        Self { folder, repository }
    }

    /// The crates of the table that exist and fulfil `wanted`.
    fn existing(&self, wanted: impl Fn(&layers::Layer) -> bool) -> Vec<&'static str> {
        let exists = |name: &str| self.folder.path().join("crates").join(name).is_dir();
        let names: Vec<&str> =
            CRATES.iter().filter(|layer| wanted(layer) && exists(layer.name)).map(|layer| layer.name).collect();
        assert!(!names.is_empty(), "the repository has crates of this kind");
        names
    }

    /// Adds a dependency of the workspace's list, runs the layers, and takes it away again.
    fn with_dependency(&self, of: &str, on: &str) -> Vec<Violation> {
        let manifest = self.repository.path(&format!("crates/{of}/Cargo.toml"));
        let before = files::read(&manifest).expect("the crate has a manifest");
        let line = format!("[dependencies]\n{on} = {{ workspace = true }}\n");
        let after = before.replacen("[dependencies]\n", &line, 1);
        assert_ne!(before, after, "{of} has a list of dependencies");
        files::write(&manifest, &after).expect("the copy can be changed");
        let found = layers::violations(&self.repository, Network::Denied).expect("the graph can be resolved");
        files::write(&manifest, &before).expect("the copy can be changed");
        found
    }

    /// Appends a line to a source file of a crate and runs the purity check.
    fn with_source(&self, of: &str, line: &str) -> Vec<Violation> {
        let source = self.repository.path(&format!("crates/{of}/src/lib.rs"));
        let before = files::read(&source).expect("the crate has a root file");
        files::write(&source, &format!("{before}\n{line}\n")).expect("the copy can be changed");
        let found = purity::violations(&self.repository).expect("the sources can be read");
        files::write(&source, &before).expect("the copy can be changed");
        found
    }
}

fn copy_file(from: &Path, to: &Path) {
    let folder = to.parent().expect("a file lies in a folder");
    fs::create_dir_all(folder).expect("the copy can be made");
    fs::copy(from, to).expect("the copy can be made");
}

#[test]
fn the_repository_itself_breaks_no_layer() {
    let copy = Copy::new();
    let found = layers::violations(&copy.repository, Network::Denied).expect("the graph can be resolved");
    assert_eq!(found, []);
}

#[test]
fn the_repository_itself_is_pure() {
    assert_eq!(purity::violations(&Repository::here()).expect("the sources can be read"), []);
}

#[test]
fn a_runtime_below_any_pure_crate_fails() {
    let copy = Copy::new();
    for pure in copy.existing(|layer| layer.pure) {
        let found = copy.with_dependency(pure, "tokio");
        let chain = format!("{pure}: a pure crate reaches I/O or a clock: {pure} -> tokio");
        assert!(found.iter().any(|violation| violation.to_string() == chain), "{pure}: {found:?}");
    }
}

#[test]
fn a_socket_crate_below_any_pure_crate_fails() {
    let copy = Copy::new();
    for pure in copy.existing(|layer| layer.pure) {
        let found = copy.with_dependency(pure, "socket2");
        let chain = format!("{pure}: a pure crate reaches I/O or a clock: {pure} -> socket2");
        assert!(found.iter().any(|violation| violation.to_string() == chain), "{pure}: {found:?}");
    }
}

#[test]
fn a_dependency_off_the_allow_list_of_a_no_std_crate_fails() {
    let copy = Copy::new();
    for of in copy.existing(|layer| layer.no_std) {
        let found = copy.with_dependency(of, "memchr");
        let chain = format!("{of}: off the allow-list of the `no_std` crates: {of} -> memchr");
        assert!(found.iter().any(|violation| violation.to_string() == chain), "{of}: {found:?}");
    }
}

#[test]
fn an_edge_against_the_layers_fails() {
    let copy = Copy::new();
    let found = copy.with_dependency("seawall-wire", "seawall-model");
    let message = "seawall-wire: must not depend on seawall-model; see the table in ARCHITECTURE.md";
    assert!(found.iter().any(|violation| violation.to_string() == message), "{found:?}");
}

#[test]
fn extern_crate_std_in_a_no_std_crate_fails() {
    let copy = Copy::new();
    for of in copy.existing(|layer| layer.no_std) {
        let found = copy.with_source(of, "extern crate std;");
        assert!(found.iter().any(|violation| violation.message.starts_with("`extern crate std`")), "{of}: {found:?}");
        let in_tests = copy.with_source(of, "#[cfg(test)]\nextern crate std;");
        assert_eq!(in_tests, [], "{of}");
    }
}

#[test]
fn a_root_without_no_std_fails() {
    let copy = Copy::new();
    for of in copy.existing(|layer| layer.no_std) {
        let root = copy.repository.path(&format!("crates/{of}/src/lib.rs"));
        let text = files::read(&root).expect("the crate has a root file");
        files::write(&root, &text.replace("#![no_std]\n", "")).expect("the copy can be changed");
        let found = purity::violations(&copy.repository).expect("the sources can be read");
        assert!(found.iter().any(|violation| violation.place.contains(of)), "{of}: {found:?}");
        files::write(&root, &text).expect("the copy can be changed");
    }
}
