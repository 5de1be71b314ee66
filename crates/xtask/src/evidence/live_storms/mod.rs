//! How much of what was possible is served in a retry storm on real sockets, by Seawall and by others.
//!
//! Each run is a row with a file of its own below the build folder, so that a measurement that was stopped goes on where
//! it was. What cannot be installed or run is told on the page as missing.

mod page;
mod peers;
mod rows;

use super::cost::build_program;
use crate::evidence::{Choice, Measurement, Record, Run};
use crate::repository::Repository;
use crate::{Failure, command, files, report};
use peers::{PEERS, Peer};
use rows::{Kept, Key};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::thread;

/// The entry of the table.
pub(super) const MEASUREMENT: Measurement = Measurement {
    name: "storms",
    summary: "live retry storms through Seawall, nginx, HAProxy, Envoy, LiteLLM, Portkey and SGLang's router",
    run: Run::Chosen(run),
};

/// Where the picture goes.
const PLOT: &str = "docs/plots/storms.svg";

fn run(repository: &Repository, choice: &Choice) -> Result<Record, Failure> {
    let chosen = chosen(&choice.only)?;
    let program = build_program(repository)?;
    let kept = Kept::new(repository, choice.requests);
    let mut jobs = Vec::new();
    for peer in chosen {
        let keys = Key::of(peer.name);
        if choice.again {
            kept.forget(&keys)?;
        }
        match peer.install(repository) {
            Ok(()) => jobs.extend(keys.into_iter().map(|key| (peer, key))),
            Err(failure) => {
                report::problem(&format!("{} cannot be had: {failure}", peer.name));
                for key in &keys {
                    kept.miss(key, &failure.to_string())?;
                }
            }
        }
    }
    jobs.retain(|(_, key)| !kept.has(key));
    report::say(&format!("{} runs of about two minutes, {} at a time", jobs.len(), choice.side_by_side));
    run_all(repository, &program, &kept, jobs, choice.side_by_side)?;
    draw(repository, &program, &kept)?;
    page::record(&kept, choice.requests)
}

/// The configurations of these names, or all.
fn chosen(only: &[String]) -> Result<Vec<&'static Peer>, Failure> {
    if only.is_empty() {
        return Ok(PEERS.iter().collect());
    }
    let by_name = |name: &String| {
        PEERS.iter().find(|peer| peer.name == name).ok_or_else(|| {
            let known: Vec<&str> = PEERS.iter().map(|peer| peer.name).collect();
            Failure::Usage(format!("--only: there is no `{name}`; there are: {}", known.join(", ")))
        })
    };
    only.iter().map(by_name).collect()
}

/// Runs every row, so many at a time. What fails is noted and does not stop the others.
fn run_all(
    repository: &Repository,
    program: &Path,
    kept: &Kept,
    mut jobs: Vec<(&'static Peer, Key)>,
    side_by_side: usize,
) -> Result<(), Failure> {
    jobs.reverse();
    let queue = Mutex::new(jobs);
    let work = || -> Result<(), Failure> {
        loop {
            let next = queue.lock().expect("nobody panics while taking a row").pop();
            let Some((peer, key)) = next else { return Ok(()) };
            match run_one(repository, program, kept, peer, &key) {
                Ok(()) => report::say(&format!("{key}: done")),
                Err(failure) => {
                    report::problem(&format!("{key}: {failure}"));
                    kept.miss(&key, &failure.to_string())?;
                }
            }
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..side_by_side).map(|_| scope.spawn(work)).collect();
        let ended = workers.into_iter().map(|worker| worker.join().expect("a worker does not panic"));
        ended.collect::<Vec<_>>().into_iter().collect()
    })
}

fn run_one(repository: &Repository, program: &Path, kept: &Kept, peer: &Peer, key: &Key) -> Result<(), Failure> {
    let folder = peers::folder(repository, &key.to_string())?;
    let started = peer.start(repository, &folder)?;
    let mut storm = Command::new(program);
    storm.arg("storm").arg(key.storm).args(["--load", key.load, "--name", peer.name, "--json"]);
    storm.args(["--requests", &kept.requests().to_string()]);
    storm.args(started.iter().flat_map(|started| &started.arguments));
    let told = command::output(&mut storm)?;
    kept.keep(repository, key, &told)
}

fn draw(repository: &Repository, program: &Path, kept: &Kept) -> Result<(), Failure> {
    let rows = kept.rows()?;
    if rows.is_empty() {
        return Err(Failure::Usage("no run has come to an end, so there is nothing to record".to_owned()));
    }
    let mut lines = String::new();
    for kept in rows {
        writeln!(lines, "{}", kept.row).expect("a string takes any text");
    }
    let file = repository.target().join("storms").join("drawn.jsonl");
    files::write(&file, &lines)?;
    files::write(&repository.path(PLOT), "")?;
    let mut storm = Command::new(program);
    storm.args(["storm", "--draw"]).arg(&file).arg("--svg").arg(repository.path(PLOT));
    command::output(&mut storm).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_that_there_is_not_is_refused_with_those_that_there_are() {
        let failure = chosen(&["envoi".to_owned()]).expect_err("there is none");
        assert!(failure.to_string().contains("there are: seawall, nginx, haproxy-2s"), "{failure}");
        assert_eq!(chosen(&["litellm".to_owned()]).expect("there is one")[0].name, "litellm");
        assert_eq!(chosen(&[]).expect("all").len(), PEERS.len());
    }
}
