//! Each kind of mistake: one error, at its line, with a pointer and a remedy.

use seawall_cases::record::Record;

/// A good record, one key in a line; each case changes a piece of it.
fn good() -> String {
    let record = Record::parse(include_str!("fixtures/exchange.json"), "exchange.json").expect("a good record");
    record.to_json()
}

/// Line, pointer, message and remedy of each mistake of the good record with `from` replaced by `to`.
fn mistakes(from: &str, to: &str) -> Vec<(usize, String, String, String)> {
    let good = good();
    assert!(good.contains(from), "the good record has no {from}\n{good}");
    let errors = Record::parse(&good.replacen(from, to, 1), "case.json").expect_err(to);
    let problems = errors.problems().iter().map(|problem| {
        let line = errors.position(problem).map_or(0, |(line, _)| line);
        (line, problem.key.clone(), problem.message.clone(), problem.suggestion.clone().expect("a remedy"))
    });
    problems.collect()
}

/// The line of the good record with this text in it.
fn line_of(text: &str) -> usize {
    good().lines().position(|line| line.contains(text)).expect("a line with that text") + 1
}

fn one(from: &str, to: &str, line: usize, (key, message, remedy): (&str, &str, &str)) {
    let expected = (line, key.to_owned(), message.to_owned(), remedy.to_owned());
    assert_eq!(mistakes(from, to), [expected], "{to}");
}

#[test]
fn a_field_that_does_not_exist() {
    let line = line_of("\"severity\"");
    let told = ("/severty", "unknown key `severty` at the top of the file", "did you mean `severity`?");
    one("\"severity\": \"unknown\"", "\"severity\": \"unknown\",\n\"severty\": \"major\"", line + 1, told);
    let told = ("/impact/size", "unknown key `size` in `/impact`", "the keys here are `scope`, `users`, `region`");
    one("\"users\": \"unknown\"", "\"users\": \"unknown\", \"size\": 3", line_of("\"users\""), told);
}

#[test]
fn a_word_that_is_not_in_its_list() {
    let found = mistakes("\"retry-storm\"", "\"retry-strom\"");
    assert_eq!(found.len(), 1, "{found:?}");
    let (line, key, message, remedy) = &found[0];
    assert_eq!((*line, key.as_str()), (line_of("\"retry-storm\""), "/contributing/0"));
    assert_eq!(message, "`contributing/0` cannot be `retry-strom`");
    assert!(remedy.starts_with("did you mean `\"retry-storm\"`? the values are `\"retry-storm\"`, "), "{remedy}");
    for (from, to, key) in [
        ("\"azure\"", "\"cloud\"", "/domain/0"),
        ("\"incident\"", "\"day\"", "/date_kind"),
        ("\"severity\": \"unknown\"", "\"severity\": \"bad\"", "/severity"),
        ("\"oom-killed\"", "\"slow\"", "/symptoms/3"),
        ("\"model-routing\"", "\"router\"", "/components/0"),
        ("\"deploy-rollout\"", "\"luck\"", "/root_cause"),
        ("\"official-status\"", "\"blog\"", "/sources/0/kind"),
    ] {
        let found = mistakes(from, to);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].1, key);
        assert!(found[0].3.starts_with("the values are `\""), "{}", found[0].3);
    }
}

#[test]
fn a_field_that_is_missing() {
    one("\"severity\": \"unknown\",", "", 0, ("", "the file has no `severity`", "add `\"severity\": \"unknown\"`"));
    let line = line_of("\"sources\"") + 1;
    let told = ("/sources/0", "`/sources/0` has no `kind`", "add `\"kind\": \"official-status\"`");
    one("\"kind\": \"official-status\",", "", line, told);
    let found = mistakes("\"en\": \"why\",", "");
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].1.as_str(), found[0].2.as_str()), ("/trigger", "`/trigger` has no `en`"));
}

#[test]
fn every_field_of_a_record_must_be_there() {
    let found = Record::parse("{}", "case.json").expect_err("nothing is there");
    assert_eq!(found.problems().len(), 26, "{found}");
}

#[test]
fn texts_in_the_wrong_form() {
    for (from, to, key, message) in [
        ("2026-05-29", "2026-02-30", "/date", "`date` is not a date"),
        ("19m", "19 minutes", "/timeline/detected_after", "`detected_after` is not a length of time"),
        ("XX-0001", "XX-1", "/id", "`id` is not the id of a case"),
        ("example-cloud", "Example Cloud", "/org_slug", "`org_slug` is not a name of that form"),
        ("https://example.com/guide", "guide", "/docs/0", "`docs/0` is not a web address"),
        ("2026-11-14T12:33:49.617022Z", "yesterday", "/updated_at", "`updated_at` is not a time stamp in UTC"),
        ("\"ko\": \"왜\"", "\"korean\": \"왜\"", "/trigger/korean", "the key `korean` is not a language"),
        ("\"ko\": \"왜\"", "\"ko\": \"\"", "/trigger/ko", "`ko` is empty"),
        ("\"en\": \"why\"", "\"en\": null", "/trigger/en", "`en` is null; it must be a text"),
        ("\"org\": \"Example Cloud\"", "\"org\": 1", "/org", "`org` is a whole number; it must be a text"),
    ] {
        let found = mistakes(from, to);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].1.as_str(), found[0].2.as_str()), (key, message));
        assert!(found[0].0 > 0 && !found[0].3.is_empty());
    }
}

#[test]
fn what_does_not_fit_together() {
    for (from, to, key, message) in [
        ("19m", "8h", "/timeline/detected_after", "`detected_after` (8h) is longer than `resolved_after` (7h 45m)"),
        ("\"related\": []", "\"related\": [\"XX-0001\"]", "/related/0", "a case is not related to itself"),
        (
            "\"recurrence_of\": null",
            "\"recurrence_of\": \"XX-0001\"",
            "/recurrence_of",
            "a case is no recurrence of itself",
        ),
        ("\"reviewed_by\": null", "\"reviewed_by\": \"x\"", "/review", "a review has a time and somebody who did it"),
        ("\"ai-infra\"", "\"azure\"", "/domain/1", "`domain/1` says the same as `domain/0`"),
        ("\"components\": [\n    \"model-routing\"\n  ]", "\"components\": []", "/components", "`components` is empty"),
    ] {
        let found = mistakes(from, to);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].1.as_str(), found[0].2.as_str()), (key, message));
    }
}

#[test]
fn all_mistakes_are_told_at_once() {
    let text = good().replacen("\"severity\"", "\"severty\"", 1).replacen("\"retry-storm\"", "\"storm\"", 1).replacen(
        "2026-05-29",
        "29 May",
        1,
    );
    let errors = Record::parse(&text, "case.json").expect_err("three mistakes");
    let keys: Vec<_> = errors.problems().iter().map(|problem| problem.key.as_str()).collect();
    assert_eq!(keys, ["/date", "/severty", "/contributing/0"], "{errors}");
}
