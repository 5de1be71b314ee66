//! The page of one measurement.

use crate::repository::Repository;
use crate::{Failure, clock, command, files};
use std::fmt::Write as _;
use std::process::Command;
use std::thread;

/// What a measurement found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The page's title.
    pub title: String,
    /// How it was measured: what ran, for how long, in which order.
    pub method: String,
    /// The figures, as Markdown.
    pub result: String,
    /// What the reader should take from them, and what limits them.
    pub reading: String,
}

/// Where and when it was measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conditions {
    /// The day, in UTC.
    pub date: String,
    /// The commit, and whether the work tree differed from it.
    pub commit: String,
    /// Processor and cores.
    pub machine: String,
    /// Kernel.
    pub system: String,
    /// The compiler.
    pub compiler: String,
    /// The load averages before the record was written.
    pub load: String,
}

impl Conditions {
    /// The conditions of this machine, now.
    pub fn now(repository: &Repository) -> Result<Self, Failure> {
        let git =
            |arguments: &[&str]| command::output(Command::new("git").current_dir(repository.root()).args(arguments));
        let mut commit = git(&["rev-parse", "--short=12", "HEAD"])?.trim().to_owned();
        // What it records itself, pages and plots, is not what is measured.
        let measured = [".", ":!docs/benchmarks", ":!docs/plots"];
        let status = [&["status", "--porcelain", "--untracked-files=no", "--"], &measured[..]].concat();
        if !git(&status)?.trim().is_empty() {
            commit.push_str(" with changes that are not committed");
        }
        let cores = thread::available_parallelism().map_or(0, usize::from);
        Ok(Self {
            date: clock::today(),
            commit,
            machine: format!("{}, {cores} cores", processor()),
            system: command::output(Command::new("uname").args(["-s", "-r", "-m"]))?.trim().to_owned(),
            compiler: command::output(Command::new("rustc").arg("--version"))?.trim().to_owned(),
            load: files::read("/proc/loadavg".as_ref()).map_or_else(
                |_| "unknown".to_owned(),
                |text| text.split_whitespace().take(3).collect::<Vec<_>>().join(", "),
            ),
        })
    }
}

/// Writes `docs/benchmarks/<name>.md`; the page before it is in the history. Returns the file's name.
pub fn write(repository: &Repository, name: &str, record: &Record, conditions: &Conditions) -> Result<String, Failure> {
    let file = format!("docs/benchmarks/{name}.md");
    files::write(&repository.path(&file), &page(name, record, conditions))?;
    Ok(file)
}

fn page(name: &str, record: &Record, conditions: &Conditions) -> String {
    let mut page = format!("# {}\n\nRecorded by `cargo xtask evidence {name}`; do not edit.\n\n", record.title);
    let rows = [
        ("date", &conditions.date),
        ("commit", &conditions.commit),
        ("machine", &conditions.machine),
        ("system", &conditions.system),
        ("compiler", &conditions.compiler),
        ("load average (1, 5, 15 min) at the end", &conditions.load),
    ];
    page.push_str("| condition | value |\n| --- | --- |\n");
    for (condition, value) in rows {
        writeln!(page, "| {condition} | {value} |").expect("a string takes any text");
    }
    for (heading, text) in [("Method", &record.method), ("Result", &record.result), ("Reading", &record.reading)] {
        write!(page, "\n## {heading}\n\n{}\n", wrapped(text.trim())).expect("a string takes any text");
    }
    page
}

/// The text with its long lines broken between words; tables and code stay as they are.
fn wrapped(text: &str) -> String {
    const WIDTH: usize = 110;
    let mut out = String::new();
    let mut is_code = false;
    for line in text.lines() {
        is_code ^= line.starts_with("```");
        let mut width = 0;
        for word in line.split(' ') {
            let needed = word.chars().count() + 1;
            let breaks = width > 0 && width + needed > WIDTH && !is_code && !line.starts_with('|');
            if width > 0 {
                out.push(if breaks { '\n' } else { ' ' });
            }
            width = if breaks { needed } else { width + needed };
            out.push_str(word);
        }
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    out
}

fn processor() -> String {
    let described = files::read("/proc/cpuinfo".as_ref()).ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        line.split_once(':').map(|(_, name)| name.trim().to_owned())
    });
    described.unwrap_or_else(|| "unknown processor".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::markdown;

    #[test]
    fn long_lines_are_broken_between_words_and_tables_are_not() {
        let words = "word ".repeat(40);
        let text = format!("{}\n\n| {} |", words.trim_end(), words.trim_end());
        let wrapped = wrapped(&text);
        let lines: Vec<&str> = wrapped.lines().collect();
        assert_eq!(lines.len(), 4);
        assert_eq!(lines[0].split(' ').count() + lines[1].split(' ').count(), 40);
        assert!(lines[0].len() <= 110 && lines[3].len() > 110);
    }

    #[test]
    fn a_record_says_when_where_how_and_what() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let repository = Repository::at(folder.path());
        let record = Record {
            title: "Cost of a request".to_owned(),
            method: "Three rounds.".to_owned(),
            result: "| path | time |\n| --- | --- |\n| direct | 1 |".to_owned(),
            reading: "Small.".to_owned(),
        };
        let conditions = Conditions {
            date: "2026-11-30".to_owned(),
            commit: "0123456789ab".to_owned(),
            machine: "a processor, 2 cores".to_owned(),
            system: "Linux".to_owned(),
            compiler: "rustc".to_owned(),
            load: "0, 0, 0".to_owned(),
        };
        let file = write(&repository, "cost", &record, &conditions).expect("the folder can be written");
        let text = files::read(&repository.path(&file)).expect("it was written");
        for part in [
            "# Cost of a request\n",
            "| date | 2026-11-30 |",
            "| commit | 0123456789ab |",
            "## Method\n\nThree rounds.\n",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert_eq!(markdown::page(&file, &text), []);
    }
}
