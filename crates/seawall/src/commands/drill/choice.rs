//! Which drills are made: those of cases of the library, or of a file of one's own.

use super::Drill;
use crate::console;
use crate::nearest::did_you_mean;
use seawall_cases::drill::DrillFile;
use seawall_cases::{LibraryCase, library};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// The drills of a case.
#[derive(Debug)]
pub(super) struct CaseDrills {
    /// The case's folder, or the file.
    pub(super) case: String,
    pub(super) drills: Vec<seawall_cases::drill::Drill>,
}

/// The drills that were asked for. An error is all that people read: what is wrong and what to write instead.
pub(super) fn cases(drill: &Drill) -> Result<Vec<CaseDrills>, String> {
    match (&drill.mechanisms, &drill.case) {
        (Some(file), _) => Ok(vec![own(file)?]),
        (None, Some(name)) => {
            let known = drillable().map(|(case, _)| case.slug);
            let case = drillable().find(|(case, _)| case.slug == name);
            let (case, text) = case.ok_or_else(|| {
                let meant = did_you_mean(name, known);
                format!("error: there is no case `{name}` with a drill{meant}\n{}", listed())
            })?;
            Ok(vec![read(case.slug, text)?])
        }
        (None, None) if drill.all => drillable().map(|(case, text)| read(case.slug, text)).collect(),
        (None, None) => Err(format!("error: name a case, or give --all or --mechanisms FILE\n{}", listed())),
    }
}

fn drillable() -> impl Iterator<Item = (&'static LibraryCase, &'static str)> {
    library().iter().filter_map(|case| case.drill.map(|text| (case, text)))
}

fn read(name: &str, text: &str) -> Result<CaseDrills, String> {
    let file = DrillFile::parse(text, name).map_err(|errors| errors.render(console::is_coloured()))?;
    Ok(CaseDrills { case: name.to_owned(), drills: file.drill })
}

fn own(file: &Path) -> Result<CaseDrills, String> {
    let shown = file.display().to_string();
    let text = fs::read_to_string(file).map_err(|error| {
        format!("error: the drill file `{shown}` cannot be read: {error}; name a readable file with --mechanisms FILE")
    })?;
    read(&shown, &text)
}

/// The library, one line a case and one a drill.
fn listed() -> String {
    let mut text = String::from("cases:");
    for (case, drills) in drillable() {
        write!(text, "\n  {}", case.slug).expect("a string takes any text");
        for drill in read(case.slug, drills).map(|case| case.drills).unwrap_or_default() {
            write!(text, "\n      {}: {}", drill.name, drill.about).expect("a string takes any text");
        }
    }
    text
}
