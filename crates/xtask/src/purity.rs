//! The `no_std` crates stay free of the standard library.
//!
//! `#![no_std]` alone does not prove it: one line, `extern crate std`, brings sockets, threads and clocks back, and the
//! dependency graph does not show it.

use crate::layers::CRATES;
use crate::repository::Repository;
use crate::rust_source::{code_only, names, without_tests};
use crate::{Failure, Violation, files};

/// Checks every `no_std` crate that exists.
pub fn check(repository: &Repository) -> Result<(), Failure> {
    Failure::of("purity", violations(repository)?)
}

/// What breaks a rule.
pub fn violations(repository: &Repository) -> Result<Vec<Violation>, Failure> {
    let mut found = Vec::new();
    for layer in CRATES.iter().filter(|layer| layer.no_std) {
        let sources = repository.path(&format!("crates/{}/src", layer.name));
        for path in files::below(&sources, &[".rs"])? {
            let file = repository.relative(&path);
            let text = files::read(&path)?;
            if path.parent() == Some(sources.as_path()) && path.ends_with("lib.rs") {
                found.extend(root(&file, &text));
            }
            if !is_test_file(&file) {
                found.extend(source(&file, &text));
            }
        }
        let script = repository.path(&format!("crates/{}/build.rs", layer.name));
        if script.exists() {
            found.push(Violation::new(repository.relative(&script), "a pure crate has no build script"));
        }
    }
    Ok(found)
}

/// Rules of the crate's root file.
pub fn root(file: &str, text: &str) -> Vec<Violation> {
    let code: String = code_only(text).split_whitespace().collect();
    if code.contains("#![no_std]") {
        Vec::new()
    } else {
        vec![Violation::new(file, "must say `#![no_std]`, without a condition")]
    }
}

/// Rules of every source file that is not only for tests.
pub fn source(file: &str, text: &str) -> Vec<Violation> {
    let code = without_tests(&code_only(text));
    let mut found = Vec::new();
    if let Some(line) = extern_crate_std(&code) {
        found.push(Violation::at(
            file,
            line,
            "`extern crate std` outside tests: this crate is `no_std`, use `core` and `alloc`",
        ));
    }
    if let Some(line) = names(&code, "std", "::") {
        found.push(Violation::at(file, line, "a path into `std` outside tests: use `core` or `alloc`"));
    }
    if let Some(line) = names(&code, "tests", ";").filter(|line| is_module_line(&code, *line)) {
        found.push(Violation::at(file, line, "a module of tests must stand under `#[cfg(test)]`"));
    }
    found
}

fn extern_crate_std(code: &str) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = code[from..].find("extern").map(|at| at + from) {
        let mut words = code[at..].split_whitespace();
        let named = words.next() == Some("extern")
            && words.next() == Some("crate")
            && words.next().is_some_and(|word| word.trim_end_matches(';') == "std");
        if named {
            return Some(crate::rust_source::line_of(code, at));
        }
        from = at + "extern".len();
    }
    None
}

fn is_module_line(code: &str, line: usize) -> bool {
    code.lines().nth(line - 1).is_some_and(|text| names(text, "mod", "tests").is_some())
}

/// Files that [`source`] has seen declared under `#[cfg(test)]`, by the repository's naming rule.
pub fn is_test_file(file: &str) -> bool {
    file.ends_with("/tests.rs") || file.contains("/tests/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_must_be_no_std_without_a_condition() {
        assert_eq!(root("lib.rs", "//! Doc.\n#![no_std]\n"), []);
        assert_eq!(root("lib.rs", "//! #![no_std]\n").len(), 1);
        assert_eq!(root("lib.rs", "#![cfg_attr(not(test), no_std)]\n").len(), 1);
    }

    #[test]
    fn extern_crate_std_is_found_in_any_form() {
        for text in ["extern crate std;", "fn a() {}\nextern   crate\n std ;", "pub extern crate std as os;"] {
            assert!(!source("a.rs", text).is_empty(), "{text}");
        }
        for text in [
            "extern crate alloc;",
            "// extern crate std;",
            "#[cfg(test)]\nextern crate std;",
            "#[cfg(test)]\nmod tests {\n    extern crate std;\n    use std::vec;\n}",
            "extern \"C\" {}",
        ] {
            assert_eq!(source("a.rs", text), [], "{text}");
        }
    }

    #[test]
    fn a_path_into_std_is_found_with_its_line() {
        let found = source("crates/seawall-core/src/a.rs", "use core::fmt;\n\nuse std::time::Instant;\n");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].place, "crates/seawall-core/src/a.rs:3");
    }

    #[test]
    fn a_test_module_outside_cfg_test_is_found() {
        assert_eq!(source("a.rs", "mod tests;").len(), 1);
        assert_eq!(source("a.rs", "#[cfg(test)]\nmod tests;"), []);
    }
}
