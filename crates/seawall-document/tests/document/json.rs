//! Documents in JSON.

use super::common::{json_schema, mistakes, one_mistake, read, toml_schema};

/// Checks one mistake in the third line of an object, behind a good `name`.
fn third_line(line: &str, message: &str, remedy: &str) {
    one_mistake(&format!("{{\n\"name\": \"a\",\n{line}\n}}"), json_schema(), 3, message, remedy);
}

#[test]
fn json_and_toml_say_the_same() {
    let json = r#"{"name": "a", "share": 0.5, "speed": null, "rest": {"at": "12:00", "length": "30m"},
        "curve": [["09:00", 1e0]], "classes": {"first": 1}, "event": [{"kind": "arrival", "at": "09:05"}],
        "late": {"go": 7}, "note": "\u00e4"}"#;
    let toml = "name = \"a\"\nshare = 0.5\nrest = { at = \"12:00\", length = \"30m\" }\ncurve = [[\"09:00\", 1.0]]\n\
                classes = { first = 1 }\nevent = [{ kind = \"arrival\", at = \"09:05\" }]\nlate = { go = 7 }\nnote = \"ä\"\n";
    assert_eq!(read(json, json_schema()), read(toml, toml_schema()));
    assert!(read(json, json_schema()).is_ok());
}

#[test]
fn what_is_written_is_read_back() {
    let timetable = read("name = \"a\"\nspeed = 2.5\ncurve = [[\"09:00\", 0.5]]", toml_schema()).expect("a good text");
    let text = serde_json::to_string_pretty(&timetable).expect("a timetable always serialises");
    assert!(text.contains("\"rest\": null"));
    assert_eq!(read(&text, json_schema()), Ok(timetable));
}

#[test]
fn mistakes_have_a_pointer_and_remedies_in_json() {
    third_line("\"nots\": 1", "unknown key `nots` at the top of the file", "did you mean `note`?");
    third_line(
        "\"share\": \"0.5\"",
        "`share` is a text; it must be a number",
        "write it without quotes: `\"share\": 0.5`",
    );
    third_line(
        "\"count\": 1.5",
        "`count` is a number with a fraction; it must be a whole number",
        "write it as in `\"count\": 1`",
    );
    third_line(
        "\"rest\": 5",
        "`rest` is a whole number; it must be an object",
        "write `\"rest\": { ... }` with `at` and `length`",
    );
    third_line("\"rest\": []", "`rest` is a list; it must be an object", "write it in braces: `\"rest\": { ... }`");
    third_line("\"rest\": { \"at\": \"12:00\" }", "`/rest` has no `length`", "add `\"length\": \"10s\"`");
    third_line("\"curve\": [[\"09:00\", \"x\"]]", "`curve/0/1` is a text; it must be a number", "write it as in `0.5`");
    third_line("\"late\": \"stay\"", "`late` cannot be `stay`", "the values are `\"wait\"`, `{ \"go\": ... }`");
    third_line(
        "\"event\": { \"kind\": \"arrival\" }",
        "`event` is an object; it must be a list",
        "write it in brackets: `\"event\": [{ ... }]`",
    );
    let errors =
        read("{\"name\": \"a\", \"event\": [{\"kind\": \"closure\", \"at\": \"9\", \"line\": \"\"}]}", json_schema());
    assert_eq!(errors.expect_err("no time").problems()[0].key, "/event/0/at");
}

#[test]
fn null_is_taken_only_where_it_may_stand() {
    assert!(read("{\"name\": \"a\", \"speed\": null, \"rest\": null, \"note\": null}", json_schema()).is_ok());
    third_line("\"share\": null", "`share` is null; it must be a number", "write it as in `\"share\": 0.0`");
    third_line("\"late\": null", "`late` cannot be null", "write one of `\"wait\"`, `{ \"go\": ... }`");
}

#[test]
fn a_syntax_error_has_its_place() {
    let remedy = "correct the JSON at this place";
    for (text, line, message) in [
        ("", 1, "EOF while parsing a value"),
        ("{\n\"name\": \"a\",\n}", 3, "key must be a string"),
        ("{\"name\": \"a\"} x", 1, "trailing characters"),
        ("{\n\"name\": \"\\ud800\"}", 2, "`name` cannot be read: unexpected end of hex escape"),
        ("{\n\"name\": \"a\", \"speed\": 1e999}", 2, "`speed` cannot be read: number out of range"),
    ] {
        one_mistake(text, json_schema(), line, message, remedy);
    }
    one_mistake("[]", json_schema(), 1, "the file holds no object", "write `{` ... `}` around its members");
    third_line("\"count\": 1,\"count\": 2", "duplicate key", "remove one of the two");
    let errors = read("{\n  \"name\": tru\n}", json_schema()).expect_err("a broken word");
    assert_eq!(errors.position(&errors.problems()[0]), Some((2, 14)));
}

#[test]
fn nesting_has_an_end() {
    let text = format!("{{\"name\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let found = mistakes(&text, json_schema());
    assert_eq!(found.len(), 1);
    assert!(found[0].1.ends_with("is nested more than 64 levels deep"), "{}", found[0].1);
}
