//! The fragments of the change log: `changelog.d/<kind>-<slug>.md`.

use crate::repository::Repository;
use crate::{Failure, Violation, files};

/// The kinds of changes that a user can notice.
pub const KINDS: [&str; 6] = ["breaking", "feature", "fix", "performance", "security", "docs"];

/// What breaks a rule, over all fragments.
pub fn violations(repository: &Repository) -> Result<Vec<Violation>, Failure> {
    let mut found = Vec::new();
    for path in files::entries(&repository.path("changelog.d"))? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name != "README.md" {
            found.extend(fragment(&name, &files::read(&path)?));
        }
    }
    Ok(found)
}

/// What breaks a rule in one fragment.
pub fn fragment(name: &str, text: &str) -> Vec<Violation> {
    let place = format!("changelog.d/{name}");
    let slug = name
        .strip_suffix(".md")
        .and_then(|stem| stem.split_once('-'))
        .filter(|(kind, _)| KINDS.contains(kind))
        .map(|(_, slug)| slug);
    let well_named = slug.is_some_and(|slug| {
        !slug.is_empty()
            && slug.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-')
    });
    let mut found = Vec::new();
    if !well_named {
        let message =
            format!("name it `<kind>-<slug>.md`; the kinds are {}; a slug is a-z, 0-9 and -", KINDS.join(", "));
        found.push(Violation::new(&place, message));
    }
    if text.trim().is_empty() {
        found.push(Violation::new(&place, "is empty; say what changes for whoever uses Seawall"));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fragment_is_named_by_kind_and_slug() {
        assert_eq!(fragment("feature-main-path.md", "It routes."), []);
        for name in ["main-path.md", "feature.md", "feature-.md", "feature-Main.md", "feature-a.txt", "Feature-a.md"] {
            assert_eq!(fragment(name, "It routes.").len(), 1, "{name}");
        }
    }

    #[test]
    fn a_fragment_says_something() {
        assert_eq!(fragment("fix-a.md", " \n").len(), 1);
    }
}
