//! Markdown: one title, short lines, links that lead somewhere.

use crate::repository::Repository;
use crate::{Failure, Violation, files};
use std::path::Path;

/// Letters in a line, tables, links and code excepted.
pub const LINE_LIMIT: usize = 120;

/// What breaks a rule, over all pages.
pub fn violations(repository: &Repository) -> Result<Vec<Violation>, Failure> {
    let mut found = Vec::new();
    for path in files::below(repository.root(), &[".md"])? {
        let (name, text) = (repository.relative(&path), files::read(&path)?);
        found.extend(page(&name, &text));
        found.extend(dead_links(&name, &text, |target| {
            let folder = path.parent().unwrap_or_else(|| Path::new(""));
            folder.join(target).exists()
        }));
    }
    Ok(found)
}

/// What breaks a rule in one page. Nobody wraps the lines of a generated page by hand.
pub fn page(name: &str, text: &str) -> Vec<Violation> {
    let is_generated = name.starts_with("docs/reference/");
    let mut found = Vec::new();
    let mut titles = 0;
    for (line, words) in prose(text) {
        titles += usize::from(words.starts_with("# "));
        let excused = is_generated || words.trim_start().starts_with('|') || words.contains("](");
        if words.chars().count() > LINE_LIMIT && !excused {
            found.push(Violation::at(name, line, format!("longer than {LINE_LIMIT} letters; break the line")));
        }
    }
    // The fragments of the change log are joined into one page, which has the title.
    let wanted = usize::from(!name.starts_with("changelog.d/") || name.ends_with("/README.md"));
    if titles != wanted {
        found.push(Violation::new(name, format!("{titles} titles (`# ...`), must be {wanted}")));
    }
    found
}

/// Links inside the repository whose target does not exist.
pub fn dead_links(name: &str, text: &str, exists: impl Fn(&str) -> bool) -> Vec<Violation> {
    let mut found = Vec::new();
    for (line, words) in prose(text) {
        for (at, mark) in words.match_indices("](") {
            let rest = &words[at + mark.len()..];
            let target = rest.split([')', ' ', '#']).next().unwrap_or("");
            let outside = target.contains("://") || target.starts_with("mailto:") || target.is_empty();
            if !outside && !exists(target) {
                found.push(Violation::at(name, line, format!("a link to `{target}`, which does not exist")));
            }
        }
    }
    found
}

/// The lines outside code blocks, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
            return None;
        }
        (!in_code).then_some((index + 1, line))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_exactly_one_title() {
        assert_eq!(page("a.md", "# Title\n\n## Part\n\n```sh\n# a comment\n```\n"), []);
        assert_eq!(page("a.md", "no title\n").len(), 1);
        assert_eq!(page("a.md", "# One\n# Two\n").len(), 1);
        assert_eq!(page("changelog.d/fix-a.md", "A fix.\n"), []);
        assert_eq!(page("changelog.d/fix-a.md", "# A fix\n").len(), 1);
    }

    #[test]
    fn long_lines_are_found_except_tables_links_and_code() {
        let long = "word ".repeat(30);
        assert_eq!(page("a.md", &format!("# Title\n{long}\n")).len(), 1);
        assert_eq!(page("docs/reference/cli.md", &format!("# Title\n{long}\n")), []);
        assert_eq!(page("a.md", &format!("# Title\n| {long} |\n[x](y) {long}\n```\n{long}\n```\n")), []);
    }

    #[test]
    fn a_dead_link_is_found() {
        let text = "# T\nsee [a](there.md), [b](gone.md#part), [c](https://example.com), [d](#part)\n";
        let found = dead_links("a.md", text, |target| target == "there.md");
        assert_eq!(found.len(), 1);
        assert!(found[0].message.contains("gone.md"), "{found:?}");
    }
}
