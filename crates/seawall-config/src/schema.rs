//! The schema of a config file.

use crate::raw::Raw;
use crate::units;
use seawall_document::{Kind, Schema, Syntax, formats};
use std::sync::OnceLock;

/// The schema, made once.
pub(crate) fn schema() -> &'static Schema {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        Schema::new::<Raw>(Kind {
            name: "a config file",
            syntax: Syntax::Toml,
            quantity: "size",
            hides_by_name: true,
            formats: &[formats::COMMON, units::FORMATS],
        })
    })
}

/// The JSON schema of a config file, for editors; a generated file of the documentation.
pub fn schema_json() -> String {
    schema().to_json()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_the_schema_asks_for_is_checked() {
        assert_eq!(schema().unchecked(), Vec::<String>::new());
    }
}
