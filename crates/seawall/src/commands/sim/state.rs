//! The file that keeps the finished cells of a map, so that a run that was stopped goes on where it was.
//!
//! One line of JSON for each cell, written when it is finished; the first line says for what they were run. A line that
//! was not written to its end is left out and its cell run again.

use seawall_sim::map::Outcome;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// What the outcomes of a file depend on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Header {
    /// The seed of the map.
    pub(super) seed: u64,
    /// What short runs of this very program came to: another one has other outcomes.
    pub(super) program: String,
}

/// An open file.
#[derive(Debug)]
pub(super) struct StateFile {
    path: PathBuf,
    file: File,
}

/// A file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum StateError {
    #[error("cannot {0} {1}: {2}")]
    File(&'static str, PathBuf, #[source] std::io::Error),
    #[error("{0}, line {1}: this is not a finished cell ({2}); name another file with `--resume`, or delete this one")]
    Line(PathBuf, usize, #[source] serde_json::Error),
    #[error("{0} holds cells of another {1}; name another file with `--resume`, or delete this one")]
    Other(PathBuf, &'static str),
}

impl StateFile {
    /// Opens a file and gives the cells that are finished; begins one where there is none.
    pub(super) fn open(path: &Path, header: &Header) -> Result<(Self, Vec<Outcome>), StateError> {
        let failed = |what| move |error| StateError::File(what, path.to_owned(), error);
        let text = match std::fs::read_to_string(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            read => read.map_err(failed("read"))?,
        };
        // What follows the last line break was not written to its end.
        let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
        let outcomes = read(path, whole, header)?;
        let file = OpenOptions::new().create(true).append(true).open(path).map_err(failed("open"))?;
        file.set_len(whole.len() as u64).map_err(failed("write"))?;
        let mut state = Self { path: path.to_owned(), file };
        if whole.is_empty() {
            state.line(header)?;
        }
        Ok((state, outcomes))
    }

    /// Keeps a finished cell.
    pub(super) fn keep(&mut self, outcome: &Outcome) -> Result<(), StateError> {
        self.line(outcome)
    }

    fn line(&mut self, value: &impl Serialize) -> Result<(), StateError> {
        let mut line = serde_json::to_string(value).expect("plain data has a JSON form");
        line.push('\n');
        self.file.write_all(line.as_bytes()).map_err(|error| StateError::File("write", self.path.clone(), error))
    }
}

fn read(path: &Path, text: &str, header: &Header) -> Result<Vec<Outcome>, StateError> {
    let mut lines = (1..).zip(text.lines());
    let wrong = |number| move |error| StateError::Line(path.to_owned(), number, error);
    if let Some((number, line)) = lines.next() {
        let found: Header = serde_json::from_str(line).map_err(wrong(number))?;
        if found.seed != header.seed {
            return Err(StateError::Other(path.to_owned(), "seed"));
        }
        if found.program != header.program {
            return Err(StateError::Other(path.to_owned(), "version of the program"));
        }
    }
    lines.map(|(number, line)| serde_json::from_str(line).map_err(wrong(number))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use seawall_sim::map::{Cell, Filter};

    fn header() -> Header {
        Header { seed: 7, program: "abc".to_owned() }
    }

    fn outcome() -> Outcome {
        let filter = Filter::parse("naive,none,0.5,loss-50,5s").expect("there is such a cell");
        let cell = Cell::all().find(|cell| filter.fits(*cell)).expect("there is such a cell");
        cell.run(7).expect("it runs")
    }

    #[test]
    fn finished_cells_are_found_again_and_an_unfinished_line_is_not() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("map.state");
        let cell = outcome();
        let (mut state, found) = StateFile::open(&path, &header()).expect("a new file");
        assert_eq!(found, []);
        state.keep(&cell).expect("it can be written");
        drop(state);
        let text = std::fs::read_to_string(&path).expect("it is there");
        std::fs::write(&path, format!("{text}{{\"cell\":\"na")).expect("it can be written");
        let (mut state, found) = StateFile::open(&path, &header()).expect("a file of ours");
        assert_eq!(found, std::slice::from_ref(&cell));
        state.keep(&cell).expect("it can be written");
        drop(state);
        let (_, found) = StateFile::open(&path, &header()).expect("a file of ours");
        assert_eq!(found, [cell.clone(), cell]);
    }

    #[test]
    fn a_file_of_another_seed_or_program_is_refused() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("map.state");
        StateFile::open(&path, &header()).expect("a new file");
        let refused = |header: &Header| StateFile::open(&path, header).expect_err("it is another one's").to_string();
        assert!(refused(&Header { seed: 8, ..header() }).contains("another seed; name another file"));
        assert!(refused(&Header { program: "x".to_owned(), ..header() }).contains("another version of the program"));
        std::fs::write(&path, "hello\n").expect("it can be written");
        assert!(refused(&header()).contains("map.state, line 1: this is not a finished cell"));
    }
}
