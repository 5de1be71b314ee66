//! How long the first minute takes: a release build from nothing.

use crate::clock::Stopwatch;
use crate::evidence::{Measurement, Record, Run};
use crate::layers::{Network, tree};
use crate::repository::Repository;
use crate::{Failure, command};
use std::fs;

/// The entry of the table.
pub(super) const MEASUREMENT: Measurement = Measurement {
    name: "build",
    summary: "time and size of a release build from an empty target folder",
    run: Run::Whole(run),
};

fn run(repository: &Repository) -> Result<Record, Failure> {
    let packages = tree(repository, Network::Allowed, &["--package", "seawall"])?.reachable("seawall").len();
    let mut fetch = command::cargo();
    command::run(fetch.current_dir(repository.root()).args(["fetch", "--locked"]))?;
    let folder = tempfile::tempdir().map_err(Failure::file("create", "a temporary folder".as_ref()))?;
    let watch = Stopwatch::start();
    let mut build = command::cargo();
    build.current_dir(repository.root()).args(["build", "--quiet", "--release", "--locked", "--package", "seawall"]);
    command::run(build.arg("--target-dir").arg(folder.path()))?;
    let seconds = watch.elapsed().as_secs();
    let program = folder.path().join("release").join("seawall");
    let bytes = fs::metadata(&program).map_err(Failure::file("measure", &program))?.len();
    Ok(Record {
        title: "A release build from nothing".to_owned(),
        method: "One `cargo build --release --package seawall` into an empty target folder, the sources of all crates \
                 fetched before."
            .to_owned(),
        result: format!(
            "| what | value |\n| --- | --- |\n| wall time | {seconds} s |\n| program, with line tables | {} MB |\n\
             | crates built by name | {packages} |",
            bytes / 1_000_000
        ),
        reading: "One run. Other work on the machine makes it longer: see the load average above.".to_owned(),
    })
}
