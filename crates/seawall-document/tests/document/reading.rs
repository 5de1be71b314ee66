//! Reading in two steps: the schema's mistakes and those of further checks are told together.

use super::common::{Timetable, json_schema, read, toml_schema};
use schemars::JsonSchema;
use seawall_document::{Kind, Places, Schema, Syntax, formats};
use serde::Deserialize;

fn places<'a>(text: &'a str, schema: &Schema) -> (Timetable, Places<'a>) {
    seawall_document::read(text, "file", schema).expect("something can be read")
}

#[test]
fn further_checks_report_beside_the_schemas() {
    let text = "name = \"a\"\ncount = 99\nweights = [1.0, 2.0]\n";
    let (timetable, mut places) = places(text, toml_schema());
    assert!(places.has_problems());
    assert_eq!(timetable.weights, [1.0, 2.0]);
    places.report_at("weights[1]", "the second weight is too much", "lower it");
    let errors = places.finish(timetable).expect_err("two mistakes");
    let found: Vec<_> =
        errors.problems().iter().map(|problem| (problem.key.as_str(), errors.position(problem))).collect();
    assert_eq!(found, [("count", Some((2, 9))), ("weights[1]", Some((3, 17)))]);
}

#[test]
fn an_index_counts_what_was_read() {
    // The second event is left out, so the value's second event is the third of the text.
    let text = "name = \"a\"\nevent = [\n{ kind = \"arrival\", at = \"09:00\" },\n{ kind = \"fire\" },\n\
                { kind = \"arrival\", at = \"10:00\" },\n]\n";
    let (timetable, mut places) = places(text, toml_schema());
    assert_eq!(timetable.event.len(), 2);
    places.report_at("event[1].at", "too late", "come earlier");
    let errors = places.finish(timetable).expect_err("two mistakes");
    assert_eq!(errors.problems()[1].key, "event[2].at");
    assert_eq!(errors.position(&errors.problems()[1]), Some((5, 26)));
}

#[test]
fn a_path_that_is_not_written_is_told_at_the_part_that_is() {
    let (timetable, mut places) = places("{\"name\": \"a\",\n\"classes\": {\"a/b\": 1}}", json_schema());
    places.report_at("/classes/a~1b", "one", "x");
    places.report_at("/classes/c", "two", "x");
    places.report_at("/rest/at", "three", "x");
    let errors = places.finish(timetable).expect_err("three mistakes");
    let found: Vec<_> =
        errors.problems().iter().map(|problem| (problem.message.as_str(), problem.key.as_str())).collect();
    assert_eq!(found, [("three", ""), ("two", "/classes"), ("one", "/classes/a~1b")]);
}

#[test]
fn what_was_left_out_is_told_where_it_is_missing() {
    let text = "name = \"a\"\nclasses = { first = 1, second = 1.5 }\nweights = [1, \"x\"]\n";
    let (timetable, places) = places(text, toml_schema());
    assert!(places.is_incomplete("classes.second") && places.is_incomplete("weights"));
    assert!(!places.is_incomplete("classes.first") && !places.is_incomplete("rest.at"));
    assert_eq!(places.finish(timetable).expect_err("two mistakes").problems().len(), 2);
}

#[test]
fn where_no_value_can_be_read_the_schemas_mistakes_come_alone() {
    #[derive(Debug, Deserialize, JsonSchema)]
    struct Strict {
        #[expect(dead_code, reason = "only its absence matters")]
        name: String,
    }
    let kind = Kind {
        name: "a file",
        syntax: Syntax::Toml,
        quantity: "size",
        hides_by_name: false,
        formats: &[formats::COMMON],
    };
    let schema = Schema::new::<Strict>(kind);
    let errors = seawall_document::read::<Strict>("nam = \"a\"", "file", &schema).expect_err("no name");
    let messages: Vec<_> = errors.problems().iter().map(|problem| problem.message.as_str()).collect();
    assert_eq!(messages, ["unknown key `nam` at the top of the file"]);
    let errors = seawall_document::read::<Strict>("name = 1", "file", &schema).expect_err("no text");
    assert_eq!(errors.problems().len(), 1);
}

#[test]
fn a_value_that_is_refused_by_its_type_alone_is_our_mistake() {
    #[derive(Debug)]
    struct Never;
    impl<'de> Deserialize<'de> for Never {
        fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
            Err(serde::de::Error::custom("sk-proj-abcdefghijkl"))
        }
    }
    let errors = seawall_document::read::<Never>("name = \"a\"", "file", toml_schema()).expect_err("never read");
    assert!(errors.problems()[0].message.contains("mistake of Seawall"));
    assert!(!errors.to_string().contains("abcdef"));
}

#[test]
fn what_a_schema_asks_for_beyond_the_walk_is_listed() {
    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Odd {
        #[schemars(regex(pattern = "^a$"))]
        pattern: String,
        #[schemars(extend("format" = "nmae"))]
        format: String,
        either: Either,
    }
    #[derive(JsonSchema)]
    #[serde(untagged)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    enum Either {
        Number(u32),
        Text(String),
    }
    let kind = Kind {
        name: "a file",
        syntax: Syntax::Toml,
        quantity: "size",
        hides_by_name: false,
        formats: &[formats::COMMON],
    };
    let found = Schema::new::<Odd>(kind).unchecked();
    assert_eq!(found.len(), 4, "{found:?}");
    assert_eq!(found[2..], ["/pattern: `pattern`", "/format: the format `nmae`"]);
    assert_eq!(toml_schema().unchecked(), Vec::<String>::new());
    assert_eq!(json_schema().unchecked(), Vec::<String>::new());
}

#[test]
fn the_published_schema_of_json_knows_null_and_that_of_toml_does_not() {
    assert!(json_schema().to_json().contains("\"null\""));
    assert!(!toml_schema().to_json().contains("\"null\""));
}

#[test]
fn a_key_named_like_a_keyword_is_a_key() {
    #[derive(Debug, Default, PartialEq, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    struct Words {
        default: Inner,
        description: String,
        #[serde(rename = "type")]
        kind: String,
    }
    #[derive(Debug, Default, PartialEq, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    struct Inner {
        items: u32,
    }
    let kind = Kind {
        name: "a file",
        syntax: Syntax::Toml,
        quantity: "size",
        hides_by_name: false,
        formats: &[formats::COMMON],
    };
    let schema = Schema::new::<Words>(kind);
    let text = "description = \"a\"\ntype = \"b\"\n[default]\nitems = 3\n";
    let (words, places) = seawall_document::read::<Words>(text, "file", &schema).expect("good");
    let words = places.finish(words).expect("good");
    assert_eq!((words.default.items, words.description.as_str(), words.kind.as_str()), (3, "a", "b"));
    assert!(read("", toml_schema()).is_err());
}
