//! Nothing in the repository names a machine's folders or a package registry's host.
//!
//! Such a name works for one person only, and a lock file with a host in it sends everybody to that host.

use crate::repository::Repository;
use crate::{Failure, Violation, files};

/// Texts that people or tools read. Cargo's lock file names its registry by design and is left out by its ending.
const ENDINGS: &[&str] = &[".md", ".rs", ".toml", ".json", ".txt", ".yml", ".yaml", ".sh", ".py", ".mjs", ".js", "run"];

/// Written in parts, so that this file does not find itself.
const FOLDERS: &[&str] = &[concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];
const HOSTS: &[&str] = &[
    concat!("registry.npm", "js.org"),
    concat!("py", "pi.org"),
    concat!("files.python", "hosted.org"),
    concat!("index.crates", ".io"),
    concat!("static.crates", ".io"),
];

/// What breaks a rule, over the whole work tree.
pub fn violations(repository: &Repository) -> Result<Vec<Violation>, Failure> {
    let mut found = Vec::new();
    for path in files::below(repository.root(), ENDINGS)? {
        let Ok(text) = files::read(&path) else { continue };
        found.extend(file(&repository.relative(&path), &text));
    }
    Ok(found)
}

/// What breaks a rule in one file.
pub fn file(name: &str, text: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if let Some(folder) = FOLDERS.iter().find(|folder| starts_a_path(line, folder)) {
            found.push(Violation::at(name, index + 1, format!("names a folder of one machine (`{folder}`)")));
        }
        if let Some(host) = HOSTS.iter().find(|host| line.contains(**host)) {
            found.push(Violation::at(name, index + 1, format!("names the registry host `{host}`")));
        }
    }
    found
}

/// Whether `folder` stands at the start of a path, not inside one such as `https://example.com/work/`.
fn starts_a_path(line: &str, folder: &str) -> bool {
    line.match_indices(folder)
        .any(|(at, _)| !line[..at].ends_with(|before: char| before.is_alphanumeric() || "._-~}>)*".contains(before)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_one_machine_is_found() {
        for folder in FOLDERS {
            assert_eq!(file("a.md", &format!("see {folder}x")).len(), 1, "{folder}");
            assert_eq!(file("a.md", &format!("see `../{folder}x`").replace("//", "/")), [], "{folder}");
        }
    }

    #[test]
    fn a_registry_host_is_found() {
        for host in HOSTS {
            let found = file("package-lock.json", &format!("\n\"resolved\": \"https://{host}/openai\""));
            assert_eq!(found.len(), 1, "{host}");
            assert_eq!(found[0].place, "package-lock.json:2");
        }
    }
}
