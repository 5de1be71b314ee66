//! The reference page.

use super::common::toml_schema;
use seawall_document::reference::markdown;

#[test]
fn every_kind_of_key_is_described() {
    let sections = [("top", ""), ("[rest]", "Rest"), ("[[event]]", "Event")];
    insta::assert_snapshot!("page", markdown(toml_schema(), "# Timetables\n", &sections));
}
