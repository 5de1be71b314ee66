//! Words that messages and reference pages share.

use crate::errors::shown;
use serde_json::Value as Json;

/// Names in the quotes of a message, in one line.
pub fn quoted_list(names: &[&str]) -> String {
    names.iter().map(|name| shown(name).to_string()).collect::<Vec<_>>().join(", ")
}

/// The known name that was probably meant: at most a third of its letters differ.
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let plain = |text: &str| text.to_lowercase().replace(['-', ' '], "_");
    let name = plain(&name.chars().take(100).collect::<String>());
    known
        .iter()
        .map(|candidate| (strsim::damerau_levenshtein(&name, &plain(candidate)), *candidate))
        .filter(|(distance, candidate)| *distance <= (candidate.chars().count() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The range of a schema of numbers as it continues "a number": ` from 0 to 1`, ` above 0`; empty if there is none.
pub(crate) fn range(schema: &Json) -> String {
    let bound = |name: &str| schema[name].as_f64();
    let least = bound("minimum").map(|least| format!("of at least {least}"));
    let least = least.or_else(|| bound("exclusiveMinimum").map(|least| format!("above {least}")));
    let most = bound("maximum").map(|most| format!("of at most {most}"));
    let most = most.or_else(|| bound("exclusiveMaximum").map(|most| format!("below {most}")));
    match (bound("minimum"), bound("maximum"), least, most) {
        (Some(least), Some(most), _, _) => format!(" from {least} to {most}"),
        (_, _, Some(least), Some(most)) => format!(" {least} and {most}"),
        (_, _, Some(one), None) | (_, _, None, Some(one)) => format!(" {one}"),
        (_, _, None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_nearest_name_is_near() {
        assert_eq!(nearest("patiance", &["patience", "max_waiting"]), Some("patience"));
        assert_eq!(nearest("max-waiting", &["patience", "max_waiting"]), Some("max_waiting"));
        assert_eq!(nearest("completely_else", &["patience", "max_waiting"]), None);
    }

    #[test]
    fn a_range_is_told_as_far_as_it_goes() {
        for (schema, told) in [
            (json!({ "minimum": 0.0, "maximum": 1.0 }), " from 0 to 1"),
            (json!({ "minimum": 0.5 }), " of at least 0.5"),
            (json!({ "exclusiveMinimum": 0 }), " above 0"),
            (json!({ "exclusiveMinimum": 0, "maximum": 1 }), " above 0 and of at most 1"),
            (json!({ "exclusiveMaximum": 9 }), " below 9"),
            (json!({}), ""),
        ] {
            assert_eq!(range(&schema), told);
        }
    }
}
