//! Documents in TOML.

use super::common::{Closure, Event, Late, Rest, TimeText, mistakes, one_mistake, read, toml_schema};
use seawall_document::formats::DurationText;
use std::time::Duration;

/// Checks one mistake in the second line of a text, behind a good `name`.
fn second_line(line: &str, message: &str, remedy: &str) {
    one_mistake(&format!("name = \"a\"\n{line}\n"), toml_schema(), 2, message, remedy);
}

#[test]
fn everything_is_read() {
    let text = r#"
name = "morning"
share = 0.25
speed = 3
count = 4
offset = -5
weights = [1, 0.5]
curve = [["09:00", 0.95], ["10:00", 1]]
late = { go = 7 }
note = "a note"

[classes]
first = 10
"second class" = 90

[rest]
at = "12:00"
length = "30m"

[[event]]
kind = "arrival"
at = "09:05"

[[event]]
kind = "closure"
at = "09:10"
line = "north"
"#;
    let timetable = read(text, toml_schema()).expect("a good timetable");
    assert_eq!((timetable.share, timetable.speed, timetable.count, timetable.offset), (0.25, Some(3.0), 4, -5));
    assert_eq!(timetable.weights, [1.0, 0.5]);
    assert_eq!(timetable.curve, [(TimeText(540), 0.95), (TimeText(600), 1.0)]);
    assert_eq!(timetable.classes["second class"], 90);
    let rest = Rest { at: Some(TimeText(720)), length: Some(DurationText(Duration::from_mins(30))) };
    assert_eq!((timetable.rest, timetable.late), (Some(rest), Late::Go(7)));
    let closure = Closure { at: TimeText(550), line: "north".to_owned() };
    assert_eq!(timetable.event, [Event::Arrival { at: TimeText(545) }, Event::Closure(closure)]);
}

#[test]
fn optional_parts_may_be_absent() {
    let timetable = read("name = \"a\"", toml_schema()).expect("a name is enough");
    assert_eq!((timetable.rest, timetable.speed, timetable.event.len()), (None, None, 0));
}

#[test]
fn numbers_with_fractions_have_their_own_bounds() {
    second_line("share = 1.5", "`share` is 1.5; the most is 1", "write a number from 0 to 1");
    second_line("share = 2", "`share` is 2; the most is 1", "write a number from 0 to 1");
    second_line("share = -0.5", "`share` is -0.5; the least is 0", "write a number from 0 to 1");
    second_line("speed = 0", "`speed` is 0; it must be more than 0", "write a number above 0");
    second_line("share = \"0.5\"", "`share` is a text; it must be a number", "write it without quotes: `share = 0.5`");
    second_line("share = \"half\"", "`share` is a text; it must be a number", "write it as in `share = 0.0`");
    second_line("speed = true", "`speed` is `true` or `false`; it must be a number", "write it as in `speed = 0.5`");
    second_line("speed = inf", "`speed` is no finite number; it must be a number", "write it as in `speed = 0.5`");
    second_line(
        "speed = 99999999999999999999",
        "`speed` is too large for a whole number",
        "write it with an exponent, for example `1e20`",
    );
    assert_eq!(read("name = \"a\"\nspeed = 1e20", toml_schema()).expect("an exponent").speed, Some(1e20));
}

#[test]
fn whole_numbers_take_no_fraction() {
    second_line(
        "count = 4.0",
        "`count` is a number with a fraction; it must be a whole number",
        "write it as in `count = 1`",
    );
    second_line("count = 21", "`count` is 21; the most is 20", "write a whole number from 1 to 20");
    second_line(
        "offset = -2147483649",
        "`offset` is -2147483649; the least is -2147483648",
        "write a whole number from -2147483648 to 2147483647",
    );
}

#[test]
fn lists_of_numbers_and_of_pairs() {
    second_line("weights = [1, \"2\"]", "`weights[1]` is a text; it must be a number", "write it without quotes: `2`");
    second_line("weights = [1, 2, 3, 4]", "`weights` has 4 items; the most is 3", "write at most 3");
    second_line("weights = 1", "`weights` is a whole number; it must be a list", "write `weights = [0.5]`");
    second_line("curve = [[\"09:00\"]]", "`curve[0]` has 1 item; it takes exactly 2", "write `[\"09:30\", 0.5]`");
    second_line(
        "curve = [[\"09:00\", 1, 2]]",
        "`curve[0]` has 3 items; it takes exactly 2",
        "write `[\"09:30\", 0.5]`",
    );
    second_line("curve = [[]]", "`curve[0]` is empty", "write `[\"09:30\", 0.5]`");
    second_line(
        "curve = [[\"09:00\", 1], [\"9\", 1]]",
        "`curve[1][0]` is not a time of day",
        "write hours and minutes, for example `09:30`",
    );
    second_line(
        "curve = [[1, 0.5]]",
        "`curve[0][0]` is a whole number; it must be a text",
        "write it as in `\"09:30\"`",
    );
}

#[test]
fn a_pair_with_two_mistakes_has_two_errors() {
    let found = mistakes("name = \"a\"\ncurve = [[1, true]]", toml_schema());
    assert_eq!(found.iter().map(|(line, ..)| *line).collect::<Vec<_>>(), [2, 2], "{found:?}");
}

#[test]
fn tables_with_free_keys() {
    second_line(
        "classes = { first = \"x\" }",
        "`first` is a text; it must be a whole number",
        "write it as in `first = 20`",
    );
    second_line(
        "classes = { \" first\" = 1 }",
        "the key ` first` has spaces around it or control characters",
        "write a name of 1 to 200 characters without spaces around it or control characters",
    );
    second_line(
        "classes = [1]",
        "`classes` is a list; it must be a table",
        "write `[classes]` once, in single brackets",
    );
    let errors =
        read("name = \"a\"\n[classes]\n\"sk-proj-abcdefghijkl\" = 1.5\n", toml_schema()).expect_err("a secret");
    assert!(!format!("{errors}{}{errors:?}", errors.to_json()).contains("abcdef"), "{errors}");
}

#[test]
fn optional_tables_name_their_section() {
    second_line("[rest]\nat = \"12:00\"", "`[rest]` has no `length`", "add `length = \"10s\"`");
    second_line("[rest]\nlength = \"1m\"", "`[rest]` has no `at`", "add `at = \"09:30\"`");
    one_mistake("count = 3", toml_schema(), 0, "the file has no `name`", "add `name = \"morning\"`");
}

#[test]
fn tables_of_several_kinds() {
    let values = "the values are `\"arrival\"`, `\"closure\"`";
    second_line(
        "[[event]]\nat = \"09:00\"",
        "`[[event]]` has no `kind`",
        &format!("add `kind = \"arrival\"`; {values}"),
    );
    let third = |text: &str, message: &str, remedy: &str| {
        one_mistake(&format!("name = \"a\"\n[[event]]\n{text}\n"), toml_schema(), 3, message, remedy);
    };
    third("kind = \"arival\"", "`kind` cannot be `arival`", &format!("did you mean `\"arrival\"`? {values}"));
    third("kind = \"fire\"", "`kind` cannot be `fire`", values);
    third("kind = 1", "`kind` cannot be a whole number", values);
    third(
        "lin = \"x\"\nkind = \"closure\"\nat = \"09:00\"\nline = \"x\"",
        "unknown key `lin` in `[[event]]`",
        "did you mean `line`?",
    );
    second_line("[[event]]\nkind = \"closure\"\nat = \"09:00\"", "`[[event]]` has no `line`", "add `line = \"...\"`");
    second_line("event = [1]", "`event[0]` is a whole number; it must be a table", "write `[[event]]`");
    second_line("event = 1", "`event` is a whole number; it must be a list", "write `[[event]]`");
    second_line(
        "[event]\nkind = \"arrival\"",
        "`event` is a table; it must be a list",
        "write `[[event]]` in double brackets",
    );
}

#[test]
fn a_missing_section_is_told_with_the_keys_that_it_needs() {
    second_line("rest = 1", "`rest` is a whole number; it must be a table", "write `[rest]` with `at` and `length`");
}

#[test]
fn choices_name_the_quantity_of_their_kind() {
    second_line("late = \"go\"", "`late` is `go` without its minutes", "write the minutes, for example `{ go = 20 }`");
    second_line("late = \"stay\"", "`late` cannot be `stay`", "the values are `\"wait\"`, `{ go = ... }`");
    second_line("late = { go = 0 }", "`go` is 0; the least is 1", "write a whole number from 1 to 4294967295");
}

#[test]
fn texts_have_a_length() {
    second_line("note = \"\"", "`note` is empty", "write a text, or leave the key out where it may be left out");
    second_line(&format!("note = \"{}\"", "ä".repeat(41)), "`note` has 41 characters", "write at most 40");
}

#[test]
fn the_name_of_a_secret_hides_nothing_where_that_is_not_asked_for() {
    let errors = read("name = \"a\"\nmax_tokens = 512", toml_schema()).expect_err("an unknown key");
    assert!(errors.render(false).contains("max_tokens = 512"), "{errors}");
}
