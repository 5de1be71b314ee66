//! Every file in a folder of strategies is named in the folder's registry: a policy that nobody can choose is dead.

use crate::repository::Repository;
use crate::rust_source::{code_only, names};
use crate::{Failure, Violation, files};

/// A folder in which each file is one entry of a registry.
#[derive(Clone, Copy, Debug)]
pub struct Registry {
    /// The folder.
    pub folder: &'static str,
    /// The file with the `REGISTRY`.
    pub file: &'static str,
    /// Files that several entries share and nobody chooses by name.
    pub shared: &'static [&'static str],
}

/// Every such folder.
pub const REGISTRIES: &[Registry] = &[
    Registry {
        folder: "crates/seawall-core/src/routing",
        file: "crates/seawall-core/src/routing/mod.rs",
        // The choice between two that `priority` and `peak_ewma` make.
        shared: &["crates/seawall-core/src/routing/p2c.rs"],
    },
    Registry {
        folder: "crates/seawall-core/src/capacity",
        file: "crates/seawall-core/src/capacity/mod.rs",
        // What happened, and what it says about the slots: for the methods with a window. And what stands beside them.
        shared: &[
            "crates/seawall-core/src/capacity/allowance.rs",
            "crates/seawall-core/src/capacity/server_line.rs",
            "crates/seawall-core/src/capacity/pace.rs",
            "crates/seawall-core/src/capacity/hypotheses.rs",
            "crates/seawall-core/src/capacity/silence.rs",
            "crates/seawall-core/src/capacity/steps.rs",
        ],
    },
];

/// What breaks a rule, over all registries.
pub fn violations(repository: &Repository) -> Result<Vec<Violation>, Failure> {
    let mut found = Vec::new();
    for Registry { folder, file: registry, shared } in REGISTRIES {
        let Some(text) = files::read_if_present(&repository.path(registry))? else {
            found.push(Violation::new(*registry, "does not exist; correct the table in xtask's tidy/registries.rs"));
            continue;
        };
        let entries = files::below(&repository.path(folder), &[".rs"])?;
        let entries: Vec<String> = entries.iter().map(|path| repository.relative(path)).collect();
        let entries: Vec<String> = entries.into_iter().filter(|file| !shared.contains(&file.as_str())).collect();
        found.extend(unregistered(registry, &text, &entries));
    }
    Ok(found)
}

/// The files that `registry` does not name in its table.
pub fn unregistered(registry: &str, text: &str, entries: &[String]) -> Vec<Violation> {
    let code = code_only(text);
    let table = code.find("REGISTRY").map_or("", |start| {
        let rest = &code[start..];
        &rest[..rest.find("];").unwrap_or(rest.len())]
    });
    entries
        .iter()
        .filter(|file| file.as_str() != registry && !file.ends_with("/tests.rs"))
        .filter(|file| {
            let stem = file.rsplit('/').next().unwrap_or(file).trim_end_matches(".rs");
            names(table, stem, "::").is_none()
        })
        .map(|file| Violation::new(file, format!("is not named in `REGISTRY` of {registry}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_no_entry_names_is_found() {
        let text =
            "mod a;\nmod b;\npub const REGISTRY: &[Entry] = &[Entry { make: || Box::new(a::A) }];\nfn f() { b::x() }\n";
        let entries = ["r/mod.rs", "r/a.rs", "r/b.rs"].map(str::to_owned);
        let found = unregistered("r/mod.rs", text, &entries);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].place, "r/b.rs");
    }

    #[test]
    fn a_commented_entry_does_not_count() {
        let text = "pub const REGISTRY: &[Entry] = &[\n// a::A\n];\n";
        assert_eq!(unregistered("r/mod.rs", text, &["r/a.rs".to_owned()]).len(), 1);
    }
}
