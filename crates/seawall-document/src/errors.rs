//! The mistakes of a document, all of them, for people and for machines.

use crate::redact;
use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use serde::Serialize;
use std::fmt;
use std::ops::Range;

/// One mistake. Its texts never hold a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub suggestion: Option<String>,
    /// Which key, for example `models[0].deployments[1].url` or `/remediation/0/text`; empty where it is the file as a
    /// whole.
    pub key: String,
    /// Where: bytes of the file; `None` where the file says nothing about it (a command line argument, a file that
    /// cannot be read).
    pub span: Option<Range<usize>>,
}

/// The most mistakes that are told of one file: a file with more is another kind of file.
const MOST_PROBLEMS: usize = 200;

/// All mistakes of one file, in the order of their places; of more than 200, the first 200. Never empty.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.render(false))]
pub struct Errors {
    file: String,
    /// The file with every secret masked, byte positions unchanged.
    masked_text: String,
    problems: Vec<Problem>,
    omitted: usize,
}

/// A mistake as a machine reads it.
#[derive(Serialize)]
struct JsonProblem<'a> {
    file: &'a str,
    line: Option<usize>,
    column: Option<usize>,
    message: &'a str,
    suggestion: Option<&'a str>,
    key: &'a str,
}

impl Errors {
    /// The mistakes found in `text`; `secrets` are the places that are never shown, beside those that look like one
    /// and, with `hides_by_name`, the values of names that a secret would have.
    pub(crate) fn new(
        file: &str,
        text: &str,
        (secrets, hides_by_name): (&[Range<usize>], bool),
        mut problems: Vec<Problem>,
    ) -> Self {
        for problem in &mut problems {
            problem.span = problem.span.take().map(|span| on_characters(text, &span));
        }
        // The sort is stable: problems of one place stay in the order in which they were found.
        problems.sort_by_key(|problem| problem.span.as_ref().map(|span| span.start));
        problems.dedup();
        let omitted = problems.len().saturating_sub(MOST_PROBLEMS);
        problems.truncate(MOST_PROBLEMS);
        Self { file: file.to_owned(), masked_text: redact::masked(text, secrets, hides_by_name), problems, omitted }
    }

    /// A mistake that has no place in a file, for example that it cannot be read.
    pub fn without_text(file: &str, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        let (message, suggestion) = (message.into(), Some(remedy.into()));
        let problem = Problem { message, suggestion, key: String::new(), span: None };
        Self { file: file.to_owned(), masked_text: String::new(), problems: vec![problem], omitted: 0 }
    }

    /// The file as it was named.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The mistakes, in the order of their places.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Line and column of a mistake, both from 1, the column in characters.
    pub fn position(&self, problem: &Problem) -> Option<(usize, usize)> {
        let before = self.masked_text.get(..problem.span.as_ref()?.start)?;
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Some((before.matches('\n').count() + 1, before[line_start..].chars().count() + 1))
    }

    /// The mistakes for people: each with its line, a caret and what to do, and their number at the end.
    pub fn render(&self, color: bool) -> String {
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        let renderer = renderer.decor_style(DecorStyle::Ascii);
        let out: String = self.problems.iter().map(|problem| self.render_one(&renderer, problem) + "\n\n").collect();
        let count = self.problems.len() + self.omitted;
        let shown = if self.omitted > 0 { format!(", the first {MOST_PROBLEMS} are shown") } else { String::new() };
        out + &format!("{}: {count} {}{shown}\n", self.file, if count == 1 { "error" } else { "errors" })
    }

    fn render_one(&self, renderer: &Renderer, problem: &Problem) -> String {
        let title = Level::ERROR.primary_title(problem.message.as_str());
        let group = match &problem.span {
            Some(span) => title.element(
                Snippet::source(self.masked_text.as_str())
                    .path(self.file.as_str())
                    .annotation(AnnotationKind::Primary.span(first_line(&self.masked_text, span))),
            ),
            None => Group::with_title(title),
        };
        let group = match &problem.suggestion {
            Some(suggestion) => group.element(Level::HELP.message(suggestion.as_str())),
            None => group,
        };
        renderer.render(&[group])
    }

    /// The mistakes for machines: a JSON list of `{file, line, column, message, suggestion, key}`.
    pub fn to_json(&self) -> String {
        let list: Vec<JsonProblem<'_>> = self.problems.iter().map(|problem| self.json_problem(problem)).collect();
        serde_json::to_string_pretty(&list).expect("strings and numbers always serialise")
    }

    fn json_problem<'a>(&'a self, problem: &'a Problem) -> JsonProblem<'a> {
        let position = self.position(problem);
        JsonProblem {
            file: &self.file,
            line: position.map(|(line, _)| line),
            column: position.map(|(_, column)| column),
            message: &problem.message,
            suggestion: problem.suggestion.as_deref(),
            key: &problem.key,
        }
    }
}

/// `span` inside the text and on character boundaries, whatever a parser says.
fn on_characters(text: &str, span: &Range<usize>) -> Range<usize> {
    let floor = |mut position: usize| {
        position = position.min(text.len());
        while !text.is_char_boundary(position) {
            position -= 1;
        }
        position
    };
    let start = floor(span.start);
    start..floor(span.end).max(start)
}

/// The part of `span` on its first line: the caret under a whole section would hide what is wrong.
fn first_line(text: &str, span: &Range<usize>) -> Range<usize> {
    let line_end = text[span.start..].find('\n').map_or(text.len(), |newline| span.start + newline);
    span.start..span.end.min(line_end).max(span.start)
}

/// A text of the file as a message shows it: short, on one line, and not at all where it looks like a secret.
pub fn shown(text: &str) -> Shown<'_> {
    Shown(text)
}

/// A key without the parts that look like a secret: someone may have pasted one in the place of a name.
pub(crate) fn safe_key(key: &str) -> String {
    let separator = if key.starts_with('/') { "/" } else { "." };
    let parts = key.split(separator).map(|part| if redact::looks_secret(part) { "(hidden)" } else { part });
    let key = parts.collect::<Vec<_>>().join(separator);
    if redact::looks_secret(&key) { "(hidden)".to_owned() } else { key }
}

/// See [`shown`].
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a>(&'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LIMIT_CHARACTERS: usize = 60;
        if redact::looks_secret(self.0) {
            return write!(formatter, "`(hidden: it looks like a secret)`");
        }
        let short: String = self.0.chars().take(LIMIT_CHARACTERS).collect();
        let more = if short.len() < self.0.len() { "..." } else { "" };
        write!(formatter, "`{}{more}`", short.escape_debug())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(span: Option<Range<usize>>) -> Problem {
        Problem { message: "it is wrong".into(), suggestion: Some("make it right".into()), key: "a.b".into(), span }
    }

    #[test]
    fn positions_count_characters_from_one() {
        let errors =
            Errors::new("f.toml", "a = 1\nlä = 2\n", (&[], true), vec![problem(Some(10..11)), problem(Some(0..1))]);
        let positions: Vec<_> = errors.problems().iter().map(|problem| errors.position(problem)).collect();
        assert_eq!(positions, [Some((1, 1)), Some((2, 4))]);
    }

    #[test]
    fn a_span_outside_the_text_or_inside_a_character_is_moved() {
        assert_eq!(on_characters("lä", &(2..99)), 1..3);
        assert_eq!(on_characters("", &(5..9)), 0..0);
        assert_eq!(first_line("ab\ncd", &(1..5)), 1..2);
    }

    #[test]
    fn machines_get_line_and_column() {
        let errors = Errors::new("f.toml", "a = 1\n", (&[], true), vec![problem(Some(4..5))]);
        let json: serde_json::Value = serde_json::from_str(&errors.to_json()).expect("valid JSON");
        let expected = serde_json::json!([{
            "file": "f.toml", "line": 1, "column": 5, "message": "it is wrong", "suggestion": "make it right", "key": "a.b"
        }]);
        assert_eq!(json, expected);
    }

    #[test]
    fn a_mistake_without_a_place_still_renders() {
        let text = Errors::new("f.toml", "", (&[], true), vec![problem(None)]).render(false);
        assert_eq!(text, "error: it is wrong\n |\n = help: make it right\n\nf.toml: 1 error\n");
    }

    #[test]
    fn a_key_keeps_its_parts_but_those_that_look_like_a_secret() {
        assert_eq!(safe_key("models[0].url"), "models[0].url");
        assert_eq!(safe_key("server.sk-proj-abcdefghijkl.x"), "server.(hidden).x");
        assert_eq!(safe_key("/a.b/sk-proj-abcdefghijkl"), "/a.b/(hidden)");
    }

    #[test]
    fn shown_text_is_short_single_line_and_no_secret() {
        assert_eq!(shown("a\nb").to_string(), r"`a\nb`");
        assert_eq!(shown(&"x y ".repeat(30)).to_string().len(), 65);
        assert!(!shown("sk-proj-abcdefghijkl").to_string().contains("proj"));
    }
}
