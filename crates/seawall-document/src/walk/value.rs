//! Texts and numbers, and values of a type that is not asked for.

use super::{Walk, saturated};
use crate::node::{Node, Value};
use crate::redact::{is_secret_name, looks_secret};
use crate::words::range;
use serde_json::Value as Json;

impl<'s> Walk<'s, '_> {
    pub(super) fn fit_text(&mut self, node: Node, schema: &'s Json) -> Option<Node> {
        let Value::Text(text) = &node.value else { return None };
        let format = schema["format"].as_str().and_then(|name| self.schema.kind().format(name));
        if let Some(Err(error)) = format.map(|format| (format.test)(text)) {
            if error.secret {
                self.report.hide(&node);
            }
            self.report.at(&node, format!("`{}` {}", node.label(), error.fault), error.remedy);
            return None;
        }
        let count = text.chars().count();
        let least = schema["minLength"].as_u64().map_or(0, saturated);
        let most = schema["maxLength"].as_u64().map_or(usize::MAX, saturated);
        if (least..=most).contains(&count) {
            return Some(node);
        }
        let (fault, remedy) = match count {
            0 => ("is empty".to_owned(), "write a text, or leave the key out where it may be left out".to_owned()),
            _ if count < least => (format!("has {count} characters"), format!("write at least {least}")),
            _ => (format!("has {count} characters"), format!("write at most {most}")),
        };
        self.report.at(&node, format!("`{}` {fault}", node.label()), remedy);
        None
    }

    pub(super) fn fit_integer(&mut self, node: Node, schema: &'s Json) -> Option<Node> {
        let Value::Integer(number) = node.value else { return None };
        if let Some(allowed) = schema["enum"].as_array() {
            let allowed: Vec<String> = allowed.iter().map(Json::to_string).collect();
            if allowed.contains(&number.to_string()) {
                return Some(node);
            }
            let remedy = format!("the values are {}", allowed.join(", "));
            self.report.at(&node, format!("`{}` cannot be {number}", node.label()), remedy);
            return None;
        }
        let (least, most) = integer_bounds(schema);
        if (i128::from(least)..=i128::from(most)).contains(&number) {
            return Some(node);
        }
        let bound =
            if number < i128::from(least) { format!("the least is {least}") } else { format!("the most is {most}") };
        let remedy = format!("write a whole number from {least} to {most}");
        self.report.at(&node, format!("`{}` is {}; {bound}", node.label(), written_number(number)), remedy);
        None
    }

    /// A number that may have a fraction; a whole number is one too.
    pub(super) fn fit_number(&mut self, node: Node, schema: &'s Json) -> Option<Node> {
        let number = match node.value {
            Value::Fraction(number) => number,
            Value::Integer(number) if i64::try_from(number).is_ok() => rounded(number),
            _ => {
                let message = format!("`{}` is too large for a whole number", node.label());
                self.report.at(&node, message, "write it with an exponent, for example `1e20`");
                return None;
            }
        };
        let bound = |name: &str| schema[name].as_f64();
        let fault = if let Some(least) = bound("minimum").filter(|least| number < *least) {
            format!("the least is {least}")
        } else if let Some(least) = bound("exclusiveMinimum").filter(|least| number <= *least) {
            format!("it must be more than {least}")
        } else if let Some(most) = bound("maximum").filter(|most| number > *most) {
            format!("the most is {most}")
        } else if let Some(most) = bound("exclusiveMaximum").filter(|most| number >= *most) {
            format!("it must be less than {most}")
        } else {
            return Some(node);
        };
        let remedy = format!("write a number{}", range(schema));
        self.report.at(&node, format!("`{}` is {number}; {fault}", node.label()), remedy);
        None
    }

    pub(super) fn wrong_type(&mut self, node: &Node, expected: &str, property: &'s Json) {
        let label = node.label();
        if self.schema.kind().hides_by_name && is_secret_name(label) {
            self.report.hide(node);
        }
        let schema = self.schema.resolved(property);
        let is_list_of_tables = self.schema.is_list_of_tables(schema);
        let unquoted = |text: &str| format!("write it without quotes: {}", self.assigned(label, text));
        let example = || format!("write it as in {}", self.written(&node.key, label, property));
        let (must_be, remedy) = match (expected, &node.value) {
            ("integer", Value::Text(text)) if text.parse::<u32>().is_ok() => ("a whole number", unquoted(text)),
            ("number", Value::Text(text)) if text.parse::<f32>().is_ok_and(f32::is_finite) => {
                ("a number", unquoted(text))
            }
            ("boolean", Value::Text(text)) if text == "true" || text == "false" => {
                ("`true` or `false`", unquoted(text))
            }
            ("integer", _) => ("a whole number", example()),
            ("number", _) => ("a number", example()),
            ("boolean", _) => ("`true` or `false`", example()),
            ("array", Value::Table(_)) if is_list_of_tables || self.offers_tables(schema) => {
                ("a list", self.as_a_list(node))
            }
            ("array", Value::Text(text)) if !looks_secret(text) => {
                ("a list", format!("write it in brackets: {}", self.assigned(label, "[\"...\"]")))
            }
            ("array", _) => ("a list", format!("write {}", self.written(&node.key, label, property))),
            ("object", Value::List(_)) => (self.syntax.table_name(), self.as_a_table(node)),
            ("object", _) => (self.syntax.table_name(), format!("write {}", self.written(&node.key, label, property))),
            _ => ("a text", example()),
        };
        let is = self.syntax.type_name(&node.value);
        self.report.at(node, format!("`{label}` is {is}; it must be {must_be}"), remedy);
    }
}

/// The least and the most of a whole number: the schema's own, or those of the type it is read into.
fn integer_bounds(schema: &Json) -> (i64, i64) {
    let (least, most) = match schema["format"].as_str().unwrap_or_default() {
        "uint8" => (0, u8::MAX.into()),
        "uint16" => (0, u16::MAX.into()),
        "uint32" => (0, u32::MAX.into()),
        "uint" | "uint64" => (0, i64::MAX),
        "int8" => (i8::MIN.into(), i8::MAX.into()),
        "int16" => (i16::MIN.into(), i16::MAX.into()),
        "int32" => (i32::MIN.into(), i32::MAX.into()),
        _ => (i64::MIN, i64::MAX),
    };
    let bound = |name: &str| schema[name].as_i64();
    let above = bound("exclusiveMinimum").map(|least| least.saturating_add(1));
    let below = bound("exclusiveMaximum").map(|most| most.saturating_sub(1));
    (bound("minimum").or(above).unwrap_or(least), bound("maximum").or(below).unwrap_or(most))
}

fn written_number(number: i128) -> String {
    if number == i128::MAX { "too large".to_owned() } else { number.to_string() }
}

#[expect(clippy::cast_precision_loss, reason = "a bound of a number with a fraction is no exact matter beyond 2^53")]
fn rounded(number: i128) -> f64 {
    number as f64
}
