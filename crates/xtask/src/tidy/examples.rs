//! Every example configuration is named in a page and loaded by a test, so that none goes stale.

use crate::repository::Repository;
use crate::{Failure, Violation, files};

/// What breaks a rule, over all examples.
pub fn violations(repository: &Repository) -> Result<Vec<Violation>, Failure> {
    let mut examples = Vec::new();
    for path in files::below(&repository.path("examples"), &[".toml"])? {
        examples.push(repository.relative(&path));
    }
    let mut pages = String::new();
    for path in files::below(repository.root(), &[".md"])? {
        pages.push_str(&files::read(&path)?);
    }
    let mut tests = String::new();
    for path in files::below(&repository.path("crates"), &[".rs"])? {
        let name = repository.relative(&path);
        if name.contains("/tests") && !name.starts_with("crates/xtask/") {
            tests.push_str(&files::read(&path)?);
        }
    }
    Ok(unused(&examples, &pages, &tests))
}

/// The examples that no page names or no test loads: by name, or with their whole folder.
pub fn unused(examples: &[String], pages: &str, tests: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    for example in examples {
        if !pages.contains(example.as_str()) {
            found.push(Violation::new(example, "no page names it; say in a page what it shows"));
        }
        let folder_is_read = tests.contains("read_dir") && tests.contains("examples\"");
        if !folder_is_read && !tests.contains(example.as_str()) {
            found.push(Violation::new(example, "no test loads it; load the whole folder `examples` in a test"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_is_named_and_loaded() {
        let examples = ["examples/azure.toml".to_owned()];
        assert_eq!(unused(&examples, "see examples/azure.toml", "load(\"../../examples/azure.toml\")"), []);
        assert_eq!(unused(&examples, "see examples/azure.toml", "read_dir(root.join(\"examples\"))"), []);
        assert_eq!(unused(&examples, "", "load(\"../../examples/azure.toml\")").len(), 1);
        assert_eq!(unused(&examples, "see examples/azure.toml", "").len(), 1);
    }
}
