//! No text brings the reader down, and every error has a place inside the text.

use super::common::{json_schema, read, toml_schema};
use proptest::prelude::*;
use seawall_document::Schema;

const TOML: [&str; 18] = [
    "name = \"a\"\n",
    "share = 0.5\n",
    "share = nan\n",
    "speed = -1\n",
    "count = 1.5\n",
    "weights = [1, 0.5, \"x\"]\n",
    "curve = [[\"09:00\", 1], []]\n",
    "curve = [[]]\n",
    "[classes]\n",
    "[rest]\n",
    "[[event]]\n",
    "[event]\n",
    "kind = \"arrival\"\n",
    "kind = \"closure\"\n",
    "kind = 1\n",
    "at = \"09:00\"\n",
    "line = \"ü\"\n",
    "late = { go = 1 }\n",
];

const JSON: [&str; 20] = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"name\"",
    "\"curve\"",
    "\"event\"",
    "\"kind\"",
    "\"arrival\"",
    "\"classes\"",
    "\"rest\"",
    "null",
    "true",
    "1.5",
    "-7",
    "\"09:00\"",
    "\"ü\\u00e4\"",
    "\n",
];

fn reads_without_a_panic(text: &str, schema: &Schema) {
    let Err(errors) = read(text, schema) else { return };
    assert!(!errors.problems().is_empty());
    for problem in errors.problems() {
        assert!(problem.span.as_ref().is_none_or(|span| text.get(span.clone()).is_some()));
        assert!(!problem.message.is_empty() && !problem.message.contains("mistake of Seawall"), "{text}\n{problem:?}");
        assert!(problem.suggestion.is_some(), "{problem:?}");
    }
    assert!(errors.render(true).ends_with('\n') && errors.to_json().starts_with('['));
}

proptest! {
    #[test]
    fn any_text(text in "\\PC{0,200}") {
        reads_without_a_panic(&text, toml_schema());
        reads_without_a_panic(&text, json_schema());
    }

    #[test]
    fn any_mixture_of_toml(indices in prop::collection::vec(0..TOML.len(), 0..20)) {
        let text: String = indices.into_iter().map(|index| TOML[index]).collect();
        reads_without_a_panic(&text, toml_schema());
    }

    #[test]
    fn any_mixture_of_json(indices in prop::collection::vec(0..JSON.len(), 0..30)) {
        let text: String = indices.into_iter().map(|index| JSON[index]).collect();
        reads_without_a_panic(&text, json_schema());
    }

    #[test]
    fn any_damage_to_good_json(position in 0_usize..200, length in 0_usize..4, insert in "[\\[\\]{}:,\"a1\n]{0,3}") {
        let mut text = "{\"name\": \"ä\", \"share\": 0.5, \"event\": [{\"kind\": \"arrival\", \"at\": \"09:05\"}],\
                        \"curve\": [[\"09:00\", 1]], \"rest\": {\"at\": \"12:00\", \"length\": \"30m\"}}".to_owned();
        let floor = |position: usize| (0..=position.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let range = floor(position)..floor(position + length);
        text.replace_range(range, &insert);
        reads_without_a_panic(&text, json_schema());
    }
}
