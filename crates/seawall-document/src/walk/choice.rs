//! Values that may be one of several things: words, tables with one of several keys, tables of several kinds.

use super::Walk;
use crate::errors::shown;
use crate::node::{Entry, Node, Value};
use crate::schema::{Choice, Kinds};
use crate::words::{nearest, quoted_list};
use serde_json::Value as Json;

impl<'s> Walk<'s, '_> {
    pub(super) fn fit_choice(&mut self, node: Node, schema: &'s Json, choice: &Choice<'s>) -> Option<Node> {
        let secret = schema["x-secret"].as_str();
        match &node.value {
            Value::Text(text) if choice.words.iter().any(|(word, _)| word == text) => Some(node),
            Value::Text(_) if secret.is_some() => {
                self.literal_secret(&node, secret.unwrap_or_default());
                None
            }
            Value::Text(text) => {
                let (fault, remedy) = self.wrong_word(text, choice);
                self.report.at(&node, format!("`{}` {fault}", node.label()), remedy);
                None
            }
            Value::Table(_) if !choice.tags.is_empty() => self.fit_tagged(node, secret, choice),
            value => {
                if secret.is_some() {
                    self.report.hide(&node);
                }
                let message = format!("`{}` cannot be {}", node.label(), self.syntax.type_name(value));
                self.report.at(&node, message, format!("write one of {}", choice.list(self.syntax)));
                None
            }
        }
    }

    fn fit_tagged(&mut self, node: Node, secret: Option<&str>, choice: &Choice<'s>) -> Option<Node> {
        let Value::Table(entries) = &node.value else { return None };
        let known: Vec<&str> = choice.tags.iter().map(|(tag, _, _)| *tag).collect();
        let list = choice.list(self.syntax);
        if let Some(entry) = entries.iter().find(|entry| !known.contains(&entry.name.as_str())) {
            if secret.is_some() {
                self.report.hide(&entry.node);
            }
            let remedy = match nearest(&entry.name, &known) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("write one of {list}"),
            };
            let message = format!("unknown key {} in `{}`", shown(&entry.name), node.label());
            self.report.push(&entry.node.key, Some(entry.name_span.clone()), message, remedy);
            return None;
        }
        let [entry] = entries.as_slice() else {
            let message = format!("`{}` takes exactly one of {}", node.label(), quoted_list(&known));
            self.report.at(&node, message, format!("write one of {list}"));
            return None;
        };
        let (_, _, inner) = choice.tags.iter().find(|(tag, _, _)| *tag == entry.name)?;
        let entry = Entry { node: self.fit(entry.node.clone(), inner)?, ..entry.clone() };
        Some(Node { value: Value::Table(vec![entry]), ..node })
    }

    /// A table of one of several kinds. Where its kind is wrong nothing is said about its other keys.
    pub(super) fn fit_kind(&mut self, node: Node, schema: &'s Json, kinds: &Kinds<'s>) -> Option<Node> {
        let words: Vec<&str> = kinds.list.iter().map(|(word, _, _)| *word).collect();
        let list = format!("the values are {}", quoted_words(&words));
        if !matches!(node.value, Value::Table(_)) {
            self.wrong_type(&node, "object", schema);
            return None;
        }
        let Some(told) = node.get(kinds.key) else {
            let first = words.first().copied().unwrap_or_default();
            let remedy = format!("add {}; {list}", self.syntax.assignment(kinds.key, &format!("\"{first}\"")));
            let message = format!("{} has no `{}`", self.syntax.section(&node.key), kinds.key);
            self.report.at(&node, message, remedy);
            return None;
        };
        let Value::Text(word) = &told.value else {
            let message = format!("`{}` cannot be {}", told.label(), self.syntax.type_name(&told.value));
            self.report.at(told, message, list);
            return None;
        };
        let Some((_, _, kind)) = kinds.list.iter().find(|(known, _, _)| known == word) else {
            let remedy = match nearest(word, &words) {
                Some(meant) => format!("did you mean `\"{meant}\"`? {list}"),
                None => list,
            };
            let message = format!("`{}` cannot be {}", told.label(), shown(word));
            self.report.at(told, message, remedy);
            return None;
        };
        Some(self.fit_table(node, kind))
    }

    fn literal_secret(&mut self, node: &Node, example: &str) {
        self.report.hide(node);
        let name = self.schema.kind().name;
        let message = format!("`{}` holds a text; {name} only says where a secret is", node.label());
        let remedy = format!(
            "put the secret into an environment variable or a file of its own and write, for example, `{example}`"
        );
        self.report.at(node, message, remedy);
    }

    fn wrong_word(&self, text: &str, choice: &Choice<'s>) -> (String, String) {
        if let Some((_, _, inner)) = choice.tags.iter().find(|(tag, _, _)| *tag == text) {
            let quantity = self.schema.kind().quantity;
            let example = self.syntax.tagged(text, &self.example(inner));
            return (
                format!("is {} without its {quantity}", shown(text)),
                format!("write the {quantity}, for example {example}"),
            );
        }
        let words: Vec<&str> = choice.words.iter().map(|(word, _)| *word).collect();
        let list = format!("the values are {}", choice.list(self.syntax));
        let remedy = match nearest(text, &words) {
            Some(meant) => format!("did you mean `\"{meant}\"`? {list}"),
            None => list,
        };
        (format!("cannot be {}", shown(text)), remedy)
    }
}

fn quoted_words(words: &[&str]) -> String {
    words.iter().map(|word| format!("`\"{word}\"`")).collect::<Vec<_>>().join(", ")
}
