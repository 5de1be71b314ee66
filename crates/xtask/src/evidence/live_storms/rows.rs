//! The rows of live storms, each in a file of its own.

use super::peers::PEERS;
use crate::repository::Repository;
use crate::{Failure, clock, command, files};
use serde_json::{Value, json};
use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// The storms and loads of the table, the longest run first.
pub(super) const RUNS: [(&str, &str); 6] =
    [("a", "0.8"), ("b", "0.8"), ("a", "1.2"), ("b", "1.2"), ("a", "2"), ("b", "2")];

/// What tells a row from all others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) peer: &'static str,
    pub(super) storm: &'static str,
    pub(super) load: &'static str,
}

impl Key {
    /// The rows of a configuration.
    pub(super) fn of(peer: &'static str) -> Vec<Self> {
        RUNS.iter().map(|(storm, load)| Self { peer, storm, load }).collect()
    }
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}-{}", self.peer, self.storm, self.load)
    }
}

/// A row that was run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct KeptRow {
    pub(super) key: Key,
    /// What the program told.
    pub(super) row: Value,
    /// The commit of the sources at the time.
    pub(super) commit: String,
    pub(super) date: String,
}

/// The folder of rows.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    folder: PathBuf,
    requests: u64,
}

impl Kept {
    /// Rows with different numbers of requests are never mixed.
    pub(super) fn new(repository: &Repository, requests: u64) -> Self {
        Self { folder: repository.target().join("storms").join(requests.to_string()), requests }
    }

    pub(super) const fn requests(&self) -> u64 {
        self.requests
    }

    fn file(&self, key: &Key, ending: &str) -> PathBuf {
        self.folder.join(format!("{key}.{ending}"))
    }

    pub(super) fn has(&self, key: &Key) -> bool {
        self.file(key, "json").is_file()
    }

    /// Keeps what the program told of a run.
    pub(super) fn keep(&self, repository: &Repository, key: &Key, told: &str) -> Result<(), Failure> {
        let answer = |reason: String| Failure::Answer { command: "seawall storm --json".to_owned(), reason };
        let rows: Value = serde_json::from_str(told).map_err(|error| answer(error.to_string()))?;
        let row = rows.get(0).filter(|row| row["goodput"].is_number());
        let row = row.ok_or_else(|| answer("it holds no row with a goodput".to_owned()))?;
        let mut git = Command::new("git");
        let commit = command::output(git.current_dir(repository.root()).args(["rev-parse", "--short=12", "HEAD"]))?;
        self.write(key, row, commit.trim(), &clock::today())
    }

    fn write(&self, key: &Key, row: &Value, commit: &str, date: &str) -> Result<(), Failure> {
        let text = json!({"row": row, "commit": commit, "date": date}).to_string();
        // Renamed into place, so that a row is there as a whole or not at all.
        let unfinished = self.file(key, "unfinished");
        files::write(&unfinished, &text)?;
        let file = self.file(key, "json");
        fs::rename(&unfinished, &file).map_err(Failure::file("write", &file))?;
        self.remove(key, "missing")
    }

    /// Notes why there is no such row.
    pub(super) fn miss(&self, key: &Key, why: &str) -> Result<(), Failure> {
        files::write(&self.file(key, "missing"), why)
    }

    /// Why there is no such row, if it was tried.
    pub(super) fn why_missing(&self, key: &Key) -> Option<String> {
        files::read_if_present(&self.file(key, "missing")).ok().flatten()
    }

    /// Takes rows away, so that they are run again.
    pub(super) fn forget(&self, keys: &[Key]) -> Result<(), Failure> {
        for key in keys {
            self.remove(key, "json")?;
            self.remove(key, "missing")?;
        }
        Ok(())
    }

    fn remove(&self, key: &Key, ending: &str) -> Result<(), Failure> {
        let file = self.file(key, ending);
        if file.is_file() { fs::remove_file(&file).map_err(Failure::file("remove", &file)) } else { Ok(()) }
    }

    /// Every row that there is, configuration by configuration.
    pub(super) fn rows(&self) -> Result<Vec<KeptRow>, Failure> {
        let mut rows = Vec::new();
        for key in PEERS.iter().flat_map(|peer| Key::of(peer.name)) {
            let file = self.file(&key, "json");
            let Some(text) = files::read_if_present(&file)? else { continue };
            let kept: Value = serde_json::from_str(&text).map_err(|error| Failure::Answer {
                command: file.display().to_string(),
                reason: format!("{error}; remove the file to have the row run again"),
            })?;
            let text = |name: &str| kept[name].as_str().unwrap_or_default().to_owned();
            rows.push(KeptRow { key, row: kept["row"].clone(), commit: text("commit"), date: text("date") });
        }
        Ok(rows)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Kept rows in a folder that goes with the guard.
    pub(crate) fn kept() -> (tempfile::TempDir, Kept) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let kept = Kept { folder: folder.path().to_owned(), requests: 3000 };
        (folder, kept)
    }

    /// Writes a row as the program would tell it.
    pub(crate) fn write(kept: &Kept, key: &Key, goodput: f64, simulated: Option<f64>) {
        let simulated = simulated.map(|goodput| json!({"goodput": goodput, "upstream_attempts": 1.0}));
        let row = json!({
            "name": key.peer, "storm": key.storm.to_uppercase(), "load": key.load.parse::<f64>().expect("a number"),
            "goodput": goodput, "good": 100.0, "requests": 120, "upstream_attempts": 1.01, "client_attempts": 1.5,
            "p50_seconds": 0.25, "p99_seconds": 9.0, "recovery_seconds": [2.0], "looked_at_seconds": [70.0],
            "peak_memory_bytes": 21_000_000, "late_p99_ms": 1.5, "simulated": simulated,
        });
        kept.write(key, &row, "abc", "2026-11-30").expect("it is written");
    }

    #[test]
    fn a_row_that_is_there_is_not_run_again_unless_it_is_forgotten() {
        let (_folder, kept) = kept();
        let keys = Key::of("nginx");
        assert!(!kept.has(&keys[0]));
        kept.miss(&keys[0], "it did not start").expect("it is noted");
        assert_eq!(kept.why_missing(&keys[0]).as_deref(), Some("it did not start"));
        write(&kept, &keys[0], 0.5, None);
        assert!(kept.has(&keys[0]) && !kept.has(&keys[1]));
        // What is there is not missing.
        assert_eq!(kept.why_missing(&keys[0]), None);
        let rows = kept.rows().expect("they are read");
        assert_eq!((rows.len(), &rows[0].key, rows[0].commit.as_str()), (1, &keys[0], "abc"));
        kept.forget(&keys).expect("they are removed");
        assert!(!kept.has(&keys[0]) && kept.rows().expect("they are read").is_empty());
    }

    #[test]
    fn what_is_no_row_is_not_kept() {
        let (_folder, kept) = kept();
        let key = &Key::of("nginx")[0];
        for told in ["", "[]", "[{\"goodput\":null}]"] {
            let repository = Repository::at(".");
            assert!(kept.keep(&repository, key, told).is_err(), "{told}");
        }
        assert!(!kept.has(key));
    }
}
