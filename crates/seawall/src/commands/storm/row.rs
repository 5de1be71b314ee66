//! What came of one live run, and the file of such rows.

use super::StormError;
use super::run::Job;
use seawall_sim::storms::Figures;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

/// One live run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Row {
    /// What the storm went through.
    pub(super) name: String,
    /// The cell's name.
    pub(super) cell: String,
    /// The storm's.
    pub(super) storm: String,
    /// New requests, as a multiple of the capacity.
    pub(super) load: f64,
    /// The seed.
    pub(super) seed: u64,
    /// What it is judged by.
    #[serde(flatten)]
    pub(super) figures: Figures,
    /// How the requests ended: each of them once.
    pub(super) outcomes: BTreeMap<String, u64>,
    /// What the servers answered, by status; those whose caller had left have none.
    pub(super) server_answers: BTreeMap<String, u64>,
    /// The most memory that the balancer's processes had.
    pub(super) peak_memory_bytes: Option<u64>,
    /// 99% of the requests were sent at most so late: what is large here was too much for the machine of the test.
    pub(super) late_p99_ms: f64,
    /// The same storm in the simulator, for Seawall.
    pub(super) simulated: Option<Figures>,
}

impl Row {
    /// Goodput and upstream attempts, each as a part of the simulator's.
    pub(super) fn of_simulated(&self) -> Option<[f64; 2]> {
        let simulated = self.simulated.as_ref()?;
        let part = |live: f64, other: f64| if other > 0.0 { live / other } else { f64::NAN };
        Some([
            part(self.figures.goodput, simulated.goodput),
            part(self.figures.upstream_attempts, simulated.upstream_attempts),
        ])
    }
}

/// A file of rows, one line of JSON each.
pub(super) struct Rows {
    path: PathBuf,
    file: File,
    pub(super) kept: Vec<Row>,
}

impl Rows {
    /// Reads a file, which is made if it is absent. A last line that was cut off in the middle is taken away.
    pub(super) fn open(path: &Path) -> Result<Self, StormError> {
        let failed = |error: std::io::Error| {
            let remedy = if error.kind() == ErrorKind::NotFound { "; name a file in a folder that exists" } else { "" };
            StormError::Failed(format!("cannot open {}: {error}{remedy}", path.display()))
        };
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path).map_err(failed)?;
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(failed)?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        if whole < text.len() {
            file.set_len(whole as u64).map_err(failed)?;
        }
        let read = |(index, line): (usize, &str)| {
            serde_json::from_str(line).map_err(|error| {
                let place = format!("{}:{}", path.display(), index + 1);
                StormError::Failed(format!("{place}: this is no row of a storm ({error}); remove the line"))
            })
        };
        let kept = text[..whole].lines().enumerate().map(read).collect::<Result<_, _>>()?;
        Ok(Self { path: path.to_owned(), file, kept })
    }

    /// The row of a job, if it was run already.
    pub(super) fn find(&self, job: &Job<'_>) -> Option<&Row> {
        let (name, cell) = (job.name(), job.cell.to_string());
        self.kept.iter().find(|row| row.name == name && row.cell == cell && row.seed == job.storm.seed)
    }

    /// Adds a row, which is in the file when this returns.
    pub(super) fn keep(&mut self, row: &Row) -> Result<(), StormError> {
        let line = serde_json::to_string(row).expect("plain data has a JSON form") + "\n";
        self.file.write_all(line.as_bytes()).map_err(|error| {
            let path = self.path.display();
            StormError::Failed(format!("cannot write {path}: {error}; make room, and run the same command again"))
        })?;
        self.kept.push(row.clone());
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A row of a storm.
    pub(crate) fn row(name: &str, storm: &str, load: f64, goodput: f64) -> Row {
        let figures = Figures {
            requests: 3000,
            good: goodput * 3000.0,
            oracle_good: 3000,
            goodput,
            upstream_attempts: 1.02,
            client_attempts: 1.5,
            p50_seconds: 0.3,
            p99_seconds: 9.1,
            recovery_seconds: vec![Some(1.0)],
            looked_at_seconds: vec![70.0],
            ..Figures::default()
        };
        Row {
            name: name.to_owned(),
            cell: format!("bench/fixed/{storm}/{load}/mixed/93750ms"),
            storm: storm.to_owned(),
            load,
            seed: 1,
            figures,
            outcomes: [("answered".to_owned(), 3000)].into(),
            server_answers: [("200".to_owned(), 3000)].into(),
            peak_memory_bytes: Some(20_000_000),
            late_p99_ms: 1.2,
            simulated: None,
        }
    }

    #[test]
    fn rows_are_kept_and_a_line_that_was_cut_off_is_forgotten() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("rows.jsonl");
        let first = Row { simulated: Some(Figures::default()), ..row("seawall", "A", 0.8, 0.99) };
        let mut rows = Rows::open(&path).expect("it is made");
        rows.keep(&first).expect("it is written");
        OpenOptions::new()
            .append(true)
            .open(&path)
            .and_then(|mut file| file.write_all(b"{\"name\":\"ngi"))
            .expect("it is written");
        let mut rows = Rows::open(&path).expect("it is read");
        assert_eq!(rows.kept, [first]);
        rows.keep(&row("nginx", "B", 2.0, 0.1)).expect("it is written");
        assert_eq!(Rows::open(&path).expect("it is read").kept.len(), 2);
    }

    #[test]
    fn a_line_that_is_no_row_is_named() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("rows.jsonl");
        std::fs::write(&path, "{}\n").expect("it is written");
        let error = Rows::open(&path).err().expect("no row").to_string();
        assert!(error.contains("rows.jsonl:1: this is no row of a storm"), "{error}");
        let nowhere = Rows::open(&folder.path().join("no/rows.jsonl")).err().expect("no folder").to_string();
        assert!(nowhere.contains("name a file in a folder that exists"), "{nowhere}");
    }
}
