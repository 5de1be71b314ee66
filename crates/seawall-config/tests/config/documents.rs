//! The examples and the generated documents.

use seawall_config::{Overrides, check_file, reference_markdown, schema_json};
use std::path::{Path, PathBuf};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn every_example_is_right() {
    let mut seen = 0;
    for entry in std::fs::read_dir(repository().join("examples")).expect("the folder of examples") {
        let path = entry.expect("a readable folder").path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            check_file(&path, &Overrides::default()).unwrap_or_else(|errors| panic!("{errors}"));
            seen += 1;
        }
    }
    assert!(seen >= 5, "only {seen} examples were found");
}

#[test]
fn the_generated_documents_are_up_to_date() {
    for (file, made) in [("config.md", reference_markdown()), ("config.schema.json", schema_json())] {
        let path = repository().join("docs/reference").join(file);
        let stored = std::fs::read_to_string(&path).expect("a generated document");
        assert!(stored == made, "{} is out of date: run `cargo xtask generate`", path.display());
    }
}

#[test]
fn every_setting_is_documented() {
    let schema: serde_json::Value = serde_json::from_str(&schema_json()).expect("valid JSON");
    let page = reference_markdown();
    let mut seen = 0;
    for (section, definition) in schema["$defs"].as_object().expect("the sections") {
        for (key, property) in definition["properties"].as_object().expect("a section's keys") {
            assert!(property["description"].as_str().is_some_and(|text| text.len() > 10), "{section}.{key}");
            assert!(page.contains(&format!("\n### `{key}`\n")), "{section}.{key}");
            seen += 1;
        }
    }
    assert!(seen > 50, "only {seen} settings were found");
}
