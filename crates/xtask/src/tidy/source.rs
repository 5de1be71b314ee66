//! Rust sources: size, module documentation, nothing left unfinished.

use crate::purity::is_test_file;
use crate::repository::Repository;
use crate::rust_source::lines_of_code;
use crate::{Failure, Violation, files};

/// Lines of code (no tests, no comments, no blank lines) that a file should stay under.
pub const SOFT_LIMIT: usize = 400;
/// Lines of code that no file may pass, whatever the reason.
pub const HARD_LIMIT: usize = 600;

/// Files that may pass the soft limit, each with its reason.
pub const LONG_FILES: &[(&str, &str)] = &[(
    "crates/seawall-core/src/engine/mod.rs",
    "the whole life of a request is read in one place; helpers live in the files beside it",
)];

/// Words that mean "not finished". Written in parts, so that this file does not find itself.
const UNFINISHED: &[&str] = &[
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("PLACE", "HOLDER"),
    concat!("todo", "!"),
    concat!("unimplemented", "!"),
    concat!("#[", "ignore"),
];

/// What breaks a rule, over all crates.
pub fn violations(repository: &Repository) -> Result<Vec<Violation>, Failure> {
    let mut found = Vec::new();
    for path in files::below(&repository.path("crates"), &[".rs"])? {
        let text = files::read(&path)?;
        found.extend(file(&repository.relative(&path), &text));
    }
    Ok(found)
}

/// What breaks a rule in one file.
pub fn file(name: &str, text: &str) -> Vec<Violation> {
    let mut found: Vec<Violation> = size(name, text, LONG_FILES).into_iter().collect();
    if needs_module_documentation(name) && !has_first_paragraph(text) {
        found.push(Violation::at(name, 1, "begin the file with a `//!` paragraph that says what it decides or does"));
    }
    for (index, line) in text.lines().enumerate() {
        if let Some(word) = UNFINISHED.iter().find(|word| has_word(line, word)) {
            found.push(Violation::at(
                name,
                index + 1,
                format!("`{word}`: finish it, or file an issue and delete the note"),
            ));
        }
    }
    found
}

/// Whether the file is too long, given the files that may pass the soft limit.
pub fn size(name: &str, text: &str, long_files: &[(&str, &str)]) -> Option<Violation> {
    if is_test_file(name) {
        return None;
    }
    let lines = lines_of_code(text);
    if lines > HARD_LIMIT {
        return Some(Violation::new(name, format!("{lines} lines of code, the hard limit is {HARD_LIMIT}: split it")));
    }
    let excused = long_files.iter().any(|(file, _)| *file == name);
    (lines > SOFT_LIMIT && !excused).then(|| {
        let message = format!(
            "{lines} lines of code, the limit is {SOFT_LIMIT}: split it, or list it with a reason in `LONG_FILES`"
        );
        Violation::new(name, message)
    })
}

/// Modules of tests are explained by the names of their tests.
fn needs_module_documentation(name: &str) -> bool {
    !name.ends_with("/tests.rs") && !name.contains("/src/") || !is_test_file(name)
}

fn has_first_paragraph(text: &str) -> bool {
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("");
    first.strip_prefix("//!").is_some_and(|words| !words.trim().is_empty())
}

fn has_word(line: &str, word: &str) -> bool {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    line.match_indices(word).any(|(at, _)| {
        let rest = &line[at + word.len()..];
        !line[..at].ends_with(is_word) && (word.ends_with('!') || !rest.starts_with(is_word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(count: usize) -> String {
        let mut text = String::from("//! Doc.\n");
        text.extend((0..count).map(|number| format!("fn f{number}() {{}}\n\n// why\n")));
        text
    }

    #[test]
    fn a_file_over_the_limits_is_found() {
        assert_eq!(size("a.rs", &lines(SOFT_LIMIT), &[]), None);
        assert!(size("a.rs", &lines(SOFT_LIMIT + 1), &[]).is_some());
        assert_eq!(size("a.rs", &lines(SOFT_LIMIT + 1), &[("a.rs", "reason")]), None);
        assert!(size("a.rs", &lines(HARD_LIMIT + 1), &[("a.rs", "reason")]).is_some());
        assert_eq!(size("crates/a/src/tests.rs", &lines(HARD_LIMIT + 1), &[]), None);
    }

    #[test]
    fn a_file_without_a_first_paragraph_is_found() {
        assert_eq!(file("crates/a/src/b.rs", "//! Does a thing.\n"), []);
        assert_eq!(file("crates/a/src/b.rs", "use core::fmt;\n").len(), 1);
        assert_eq!(file("crates/a/src/b.rs", "//!\n").len(), 1);
        assert_eq!(file("crates/a/src/b/tests.rs", "use super::*;\n"), []);
        assert_eq!(file("crates/a/tests/serve.rs", "use super::*;\n").len(), 1);
    }

    #[test]
    fn what_is_unfinished_is_found() {
        for word in UNFINISHED {
            let text = format!("//! Doc.\n\n// {word} later\n");
            let found = file("crates/a/src/b.rs", &text);
            assert_eq!(found.len(), 1, "{word}");
            assert_eq!(found[0].place, "crates/a/src/b.rs:3");
        }
        assert_eq!(file("crates/a/src/b.rs", "//! Reads TODOS and my_todo! too.\n"), []);
    }
}
