//! The records of the library, and a record of another library.

use seawall_cases::record::{self, Record};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every record of the library, by the name of its folder.
#[expect(clippy::panic, reason = "the mistakes of a record are to be read as they are written")]
fn library() -> BTreeMap<String, Record> {
    let mut records = BTreeMap::new();
    for entry in std::fs::read_dir(repository().join("cases")).expect("the folder of cases") {
        let folder = entry.expect("a readable folder").path();
        let path = folder.join("case.json");
        if path.exists() {
            let text = std::fs::read_to_string(&path).expect("a readable record");
            let record = Record::parse(&text, &path.display().to_string()).unwrap_or_else(|errors| panic!("{errors}"));
            let name = folder.file_name().expect("a folder has a name").to_string_lossy().into_owned();
            records.insert(name, record);
        }
    }
    records
}

#[test]
fn every_case_has_a_good_record_under_its_date() {
    let library = library();
    for name in ["azure-2026-05-29-retry-storm", "document-understanding-2026-08-31", "azure-2026-09-29-metadata"] {
        assert!(library.contains_key(name), "{name}");
    }
    for (name, record) in &library {
        assert!(name.contains(&record.date.to_string()), "{name}: {}", record.date);
        assert!(record.title.others.is_empty(), "{name}: our records are in English");
    }
}

#[test]
fn ids_are_unique_and_related_cases_exist() {
    let library = library();
    let mut ids: Vec<&str> = library.values().map(|record| record.id.as_str()).collect();
    ids.sort_unstable();
    let count = ids.len();
    ids.dedup();
    assert_eq!(ids.len(), count, "an id stands for two cases");
    for (name, record) in &library {
        for id in record.related.iter().chain(&record.recurrence_of) {
            assert!(ids.contains(&id.as_str()), "{name}: {id} is no case");
        }
    }
}

#[test]
fn a_record_of_another_library_keeps_its_content() {
    let text = include_str!("fixtures/exchange.json");
    let record = Record::parse(text, "exchange.json").unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(record.title.others["ko"], "두 단어");
    assert_eq!(record.timeline.resolved_after.map(|elapsed| elapsed.0), Some(27_900));
    let before: serde_json::Value = serde_json::from_str(text).expect("valid JSON");
    let after: serde_json::Value = serde_json::from_str(&record.to_json()).expect("valid JSON");
    assert_eq!(before, after);
    assert_eq!(Record::parse(&record.to_json(), "again.json"), Ok(record));
}

#[test]
fn the_generated_documents_are_up_to_date() {
    let documents =
        [("case-record.md", record::reference_markdown()), ("case-record.schema.json", record::schema_json())];
    for (file, made) in documents {
        let path = repository().join("docs/reference").join(file);
        let stored = std::fs::read_to_string(&path).expect("a generated document");
        assert!(stored == made, "{} is out of date: run `cargo xtask generate`", path.display());
    }
}

#[test]
fn every_key_and_every_word_is_documented() {
    let schema: serde_json::Value = serde_json::from_str(&record::schema_json()).expect("valid JSON");
    let page = record::reference_markdown();
    let definitions = schema["$defs"].as_object().expect("the definitions").values();
    let mut seen = 0;
    for definition in definitions.chain([&schema]) {
        for (key, property) in definition["properties"].as_object().expect("keys") {
            assert!(property["description"].as_str().is_some_and(|text| !text.is_empty()), "{key}");
            assert!(page.contains(&format!("\n### `{key}`\n")), "{key}");
            seen += 1;
        }
    }
    assert_eq!(seen, 41, "keys were added or lost");
    for word in record::vocabulary::LISTS.iter().flat_map(|list| list.words) {
        assert!(page.contains(&format!("* `\"{}\"`: {}\n", word.word, word.meaning)), "{}", word.word);
    }
}
