//! What is to be replayed: cases of the library by name, or a scenario file of one's own.

use super::Replay;
use crate::console;
use crate::nearest::did_you_mean;
use seawall_cases::scenario::Scenario;
use seawall_cases::{LibraryCase, library};
use seawall_core::protection::Protection;
use seawall_sim::replay::{Case, TO_COME};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// The cases that were asked for. An error is all that people read: what is wrong and what to write instead.
pub(super) fn cases(replay: &Replay) -> Result<Vec<Case>, String> {
    match (&replay.scenario, &replay.case) {
        (Some(file), _) => Ok(vec![own(file)?]),
        (None, Some(name)) => {
            let known = replayable().map(|case| case.slug);
            let case = replayable().find(|case| case.slug == name);
            let case = case.ok_or_else(|| {
                let meant = did_you_mean(name, known);
                format!("error: there is no case `{name}`{meant}\n{}", listed())
            })?;
            Ok(vec![of_library(case)?])
        }
        (None, None) if replay.all => replayable().map(of_library).collect(),
        (None, None) => Err(format!("error: name a case, or give --all or --scenario FILE\n{}", listed())),
    }
}

/// The protection of that name; an error names those that there are, or says that it is not there yet.
pub(crate) fn protection(name: &str) -> Result<Protection, String> {
    let existing: Vec<&str> = Protection::ALL.iter().map(|protection| protection.name()).collect();
    if TO_COME.contains(&name) {
        return Err(format!(
            "error: the protection `{name}` does not exist in this version, so it cannot be switched off; those that exist: {}",
            existing.join(", ")
        ));
    }
    Protection::from_name(name).ok_or_else(|| {
        let meant = did_you_mean(name, existing.iter().copied());
        format!("error: there is no protection `{name}`{meant}\nprotections: {}", existing.join(", "))
    })
}

fn replayable() -> impl Iterator<Item = &'static LibraryCase> {
    library().iter().filter(|case| case.scenario.is_some())
}

fn of_library(case: &LibraryCase) -> Result<Case, String> {
    let text = case.scenario.ok_or_else(|| format!("error: the case `{}` has no scenario", case.slug))?;
    Case::new(case.slug, text).map_err(|error| format!("error: the case `{}` cannot be read: {error}", case.slug))
}

fn own(file: &Path) -> Result<Case, String> {
    let shown = file.display().to_string();
    let text = fs::read_to_string(file).map_err(|error| {
        format!("error: the scenario file `{shown}` cannot be read: {error}; name a readable file with --scenario FILE")
    })?;
    Scenario::parse(&text, &shown).map_err(|errors| errors.render(console::is_coloured()))?;
    let name = file.file_stem().map_or_else(|| shown.clone(), |stem| stem.to_string_lossy().into_owned());
    Case::new(&name, &text).map_err(|error| format!("error: {shown}: {error}"))
}

/// The library, one line a case.
fn listed() -> String {
    let mut text = String::from("cases:");
    for case in replayable() {
        let title = Case::new(case.slug, case.scenario.unwrap_or_default()).map(|case| case.scenario.scenario.title);
        write!(text, "\n  {}\n      {}", case.slug, title.unwrap_or_default()).expect("a string takes any text");
    }
    text
}
