//! The name that somebody probably meant.

/// The sentence that offers the known name that is nearest to what was written: empty, or begins with a semicolon.
pub(crate) fn did_you_mean<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    // A part of a long name is how people shorten it: `retry-storm` for `azure-2026-05-29-retry-storm`.
    let whole = known.iter().find(|name| written.len() >= 3 && name.contains(&written.to_lowercase())).copied();
    let meant = whole.or_else(|| seawall_document::nearest(written, &known));
    meant.map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_and_parts_of_a_name_are_recognised_and_anything_else_is_not() {
        let known = ["azure-2026-05-29-retry-storm", "fair-queue", "retry-budget"];
        assert_eq!(did_you_mean("Retry-Storm", known), "; did you mean `azure-2026-05-29-retry-storm`?");
        assert_eq!(did_you_mean("fair-queeu", known), "; did you mean `fair-queue`?");
        assert_eq!(did_you_mean("breaker", known), "");
        assert_eq!(did_you_mean("", known), "");
        assert_eq!(did_you_mean("x", []), "");
    }
}
