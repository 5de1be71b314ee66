//! The reference pages under `docs/reference/`, written from the programs and never by hand.
//!
//! Each page is what a command of this workspace prints, so this crate depends on none of the others and a page can not
//! say anything that the code does not. To add a page, add a line to [`PAGES`].

mod cli;

use crate::repository::Repository;
use crate::{Failure, Violation, command, files, report};

/// A generated file.
struct Page {
    /// Where it is, relative to the repository.
    file: &'static str,
    /// What it should contain.
    make: fn(&Repository) -> Result<String, Failure>,
}

const PAGES: &[Page] = &[
    Page { file: "docs/reference/config.md", make: |repository| printed(repository, "config", "markdown") },
    Page { file: "docs/reference/config.schema.json", make: |repository| printed(repository, "config", "schema") },
    Page { file: "docs/reference/case-record.md", make: |repository| printed(repository, "cases", "record-markdown") },
    Page {
        file: "docs/reference/case-record.schema.json",
        make: |repository| printed(repository, "cases", "record-schema"),
    },
    Page { file: "docs/reference/scenario.md", make: |repository| printed(repository, "cases", "scenario-markdown") },
    Page {
        file: "docs/reference/scenario.schema.json",
        make: |repository| printed(repository, "cases", "scenario-schema"),
    },
    Page { file: "docs/reference/case-drill.md", make: |repository| printed(repository, "cases", "drill-markdown") },
    Page {
        file: "docs/reference/case-drill.schema.json",
        make: |repository| printed(repository, "cases", "drill-schema"),
    },
    Page { file: "docs/reference/cli.md", make: cli::page },
];

/// Writes every page that differs.
pub fn write(repository: &Repository) -> Result<(), Failure> {
    for page in PAGES {
        let text = (page.make)(repository)?;
        let path = repository.path(page.file);
        if files::read_if_present(&path)?.as_deref() != Some(&text) {
            files::write(&path, &text)?;
            report::say(&format!("wrote {}", page.file));
        }
    }
    Ok(())
}

/// Lists every page that differs; writes nothing.
pub fn check(repository: &Repository) -> Result<(), Failure> {
    let mut stale = Vec::new();
    for page in PAGES {
        let text = (page.make)(repository)?;
        let present = files::read_if_present(&repository.path(page.file))?;
        stale.extend(difference(page.file, present.as_deref(), &text));
    }
    Failure::of("generated pages", stale)
}

fn difference(file: &str, present: Option<&str>, wanted: &str) -> Option<Violation> {
    match present {
        Some(text) if text == wanted => None,
        Some(text) => {
            let same = text.lines().zip(wanted.lines()).take_while(|(left, right)| left == right).count();
            Some(Violation::at(file, same + 1, "is out of date from here on; run `cargo xtask generate`"))
        }
        None => Some(Violation::new(file, "does not exist; run `cargo xtask generate`")),
    }
}

/// What the example `CRATE_reference` of a crate prints.
fn printed(repository: &Repository, crate_name: &str, form: &str) -> Result<String, Failure> {
    let mut cargo = command::cargo();
    cargo.current_dir(repository.root()).args(["run", "--quiet", "--package", &format!("seawall-{crate_name}")]);
    command::output(cargo.args(["--example", &format!("{crate_name}_reference"), "--", form]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_page_is_shown_with_its_first_different_line() {
        assert_eq!(difference("a.md", Some("one\ntwo\n"), "one\ntwo\n"), None);
        let stale = difference("a.md", Some("one\ntwo\n"), "one\n2\n").expect("it differs");
        assert_eq!(stale.place, "a.md:2");
        let shorter = difference("a.md", Some("one\n"), "one\ntwo\n").expect("it differs");
        assert_eq!(shorter.place, "a.md:2");
        assert!(difference("a.md", None, "one\n").is_some());
    }
}
