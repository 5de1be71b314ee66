//! From a drill file to drills, or to everything that is wrong with it.

use super::{DrillFile, check};
use crate::scenario::FORMATS;
use seawall_document::{Errors, Kind, Schema, Syntax, reference};
use std::sync::OnceLock;

fn schema() -> &'static Schema {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        Schema::new::<DrillFile>(Kind {
            name: "a drill file",
            syntax: Syntax::Toml,
            quantity: "value",
            hides_by_name: false,
            formats: &[FORMATS],
        })
    })
}

/// The JSON schema of a drill file, for editors.
pub fn schema_json() -> String {
    schema().to_json()
}

const HEAD: &str = "# Drill files\n\n\
    The file `drill.toml` of a case says what of its incident can happen to any configuration. `seawall drill` lets it\n\
    happen to yours.\n";

/// The reference page of drill files.
pub fn reference_markdown() -> String {
    reference::markdown(schema(), HEAD, &[("[[drill]]", "Drill"), ("[[drill.mechanism]]", "Mechanism")])
}

impl DrillFile {
    /// Reads the text of a drill file, named `file` in errors: the drills, or everything that is wrong, each with its
    /// line, its key and a remedy.
    pub fn parse(text: &str, file: &str) -> Result<Self, Errors> {
        let (drills, mut places): (Self, _) = seawall_document::read(text, file, schema())?;
        if !places.is_incomplete("") && !places.is_incomplete("drill") {
            for fault in check::faults(&drills) {
                places.report_at(&fault.key, fault.message, fault.remedy);
            }
        }
        places.finish(drills)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_the_schema_asks_for_is_checked() {
        assert_eq!(schema().unchecked(), Vec::<String>::new());
    }
}
