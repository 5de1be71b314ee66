//! The outcomes of many cells, counted and shown as text.

use super::grid::{CLIENTS, Cell, Client, LENGTHS, LOADS, SUBJECTS, Subject, TRIGGERS};
use super::judge::{Outcome, Verdict};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Outcomes by the names of their cells.
#[derive(Clone, Debug, Default)]
pub struct Results {
    outcomes: BTreeMap<String, Outcome>,
}

/// How many cells ended how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Cells that were run.
    pub run: u32,
    verdicts: [u32; 4],
}

impl Tally {
    /// How many ended so.
    pub const fn of(&self, verdict: Verdict) -> u32 {
        self.verdicts[verdict as usize]
    }

    /// How many recovered within 30 s of the trigger's end.
    pub const fn in_time(&self) -> u32 {
        self.of(Verdict::Pass) + self.of(Verdict::Recovered)
    }
}

impl FromIterator<Outcome> for Results {
    fn from_iter<T: IntoIterator<Item = Outcome>>(outcomes: T) -> Self {
        Self { outcomes: outcomes.into_iter().map(|outcome| (outcome.cell.clone(), outcome)).collect() }
    }
}

impl Results {
    /// What came of a cell; `None`: it was not run.
    pub fn of(&self, cell: Cell) -> Option<&Outcome> {
        self.outcomes.get(&cell.to_string())
    }

    /// Counts those that fit.
    pub fn tally(&self, fits: impl Fn(Cell) -> bool) -> Tally {
        let mut tally = Tally::default();
        for outcome in Cell::all().filter(|cell| fits(*cell)).filter_map(|cell| self.of(cell)) {
            tally.run += 1;
            tally.verdicts[outcome.verdict as usize] += 1;
        }
        tally
    }

    /// The map as text: a letter for each cell, three lengths side by side.
    pub fn render(&self) -> String {
        let mut text = String::new();
        for subject in SUBJECTS {
            let tally = self.tally(|cell| cell.subject == subject);
            if tally.run > 0 {
                self.render_subject(subject, &tally, &mut text);
            }
        }
        let known = Verdict::ALL.map(|verdict| format!("{} {}", letter(verdict), verdict.label()));
        let lengths: Vec<String> = LENGTHS.iter().map(ToString::to_string).collect();
        writeln!(text, "each column: a trigger of {}; {}", lengths.join(", "), known.join(", "))
            .expect("a string takes any text");
        text
    }

    fn render_subject(&self, subject: Subject, tally: &Tally, text: &mut String) {
        let counts = Verdict::ALL.map(|verdict| format!("{} {}", tally.of(verdict), verdict.label()));
        write!(text, "{subject}: {} cells: {}\n{:14}", tally.run, counts.join(", "), "")
            .expect("a string takes any text");
        for trigger in TRIGGERS {
            write!(text, " {:>13}", trigger.to_string()).expect("a string takes any text");
        }
        text.push('\n');
        for client in CLIENTS {
            self.render_client(subject, client, text);
        }
        text.push('\n');
    }

    fn render_client(&self, subject: Subject, client: Client, text: &mut String) {
        let is_run =
            |load| self.tally(|cell| (cell.subject, cell.client, cell.load) == (subject, client, load)).run > 0;
        for load in LOADS.into_iter().rev().filter(|load| is_run(*load)) {
            write!(text, "{:>8} {:>5}", client.to_string(), load.to_string()).expect("a string takes any text");
            for trigger in TRIGGERS {
                let letters: String = LENGTHS
                    .into_iter()
                    .map(|length| self.of(Cell { subject, client, load, trigger, length }))
                    .map(|outcome| outcome.map_or('.', |outcome| letter(outcome.verdict)))
                    .collect();
                write!(text, " {letters:>13}").expect("a string takes any text");
            }
            text.push('\n');
        }
    }
}

const fn letter(verdict: Verdict) -> char {
    match verdict {
        Verdict::Pass => '+',
        Verdict::Recovered => '~',
        Verdict::Late => 'L',
        Verdict::Stuck => 'X',
    }
}
