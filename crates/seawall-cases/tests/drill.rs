//! Drill files as people meet them: files in, drills or mistakes out.

use seawall_cases::drill::{DrillFile, Mechanism};
use seawall_cases::scenario::Span;
use std::path::Path;

/// A good file; each case changes a piece of it.
const GOOD: &str = r#"[[drill]]
name = "gone"
about = "A region is gone."
remedy = "another region"

[[drill.mechanism]]
kind = "region-lost"
lasts = "10m"

[[drill.mechanism]]
kind = "hot-documents"
work = "20m"
within = "1m"
capacity_percent = 60
"#;

/// Line, key, message and remedy of each mistake of [`GOOD`] with `from` replaced by `to`.
fn mistakes(from: &str, to: &str) -> Vec<(usize, String, String, String)> {
    assert!(GOOD.contains(from), "the good file has no {from}");
    let errors = DrillFile::parse(&GOOD.replacen(from, to, 1), "drill.toml").expect_err(to);
    let problems = errors.problems().iter().map(|problem| {
        let line = errors.position(problem).map_or(0, |(line, _)| line);
        (line, problem.key.clone(), problem.message.clone(), problem.suggestion.clone().expect("a remedy"))
    });
    problems.collect()
}

#[test]
fn a_good_file_is_read_with_its_defaults() {
    let file = DrillFile::parse(GOOD, "drill.toml").expect("it is good");
    let [drill] = file.drill.as_slice() else { unreachable!("there is one drill: {file:?}") };
    assert_eq!((drill.quiet, drill.after), (Span::from_secs(120), Span::from_secs(600)));
    assert_eq!(drill.lasts(), Span::from_secs(21 * 60));
    let works_on = |mechanism: &Mechanism| matches!(mechanism, Mechanism::HotDocuments { works_on: true, .. });
    let kinds: Vec<&str> = drill.mechanism.iter().map(Mechanism::kind).collect();
    assert_eq!((kinds, drill.mechanism.iter().any(works_on)), (vec!["region-lost", "hot-documents"], true));
}

#[test]
fn every_drill_of_the_library_is_good() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cases");
    let folders = std::fs::read_dir(cases).expect("there is a library");
    let mut kinds = Vec::new();
    for folder in folders {
        let path = folder.expect("a folder").path().join("drill.toml");
        let text = std::fs::read_to_string(&path).expect("every case has a drill");
        let file = DrillFile::parse(&text, &path.display().to_string()).expect("it is good");
        kinds.extend(file.drill.iter().flat_map(|drill| &drill.mechanism).map(Mechanism::kind));
    }
    kinds.sort_unstable();
    assert_eq!(kinds, ["cold-caches", "hot-documents", "region-lost", "reworded-failures", "seven-by-seven"]);
}

#[test]
fn mistakes_have_their_line_and_remedy() {
    let one = |from: &str, to: &str| {
        let mut all = mistakes(from, to);
        assert_eq!(all.len(), 1, "{all:?}");
        let (line, key, message, remedy) = all.remove(0);
        (line, key, format!("{message}; {remedy}"))
    };
    let (line, key, text) = one("kind = \"region-lost\"", "kind = \"region-lots\"");
    assert_eq!((line, key.as_str()), (7, "drill[0].mechanism[0].kind"));
    assert!(text.contains("did you mean `\"region-lost\"`?"), "{text}");
    let (line, key, text) = one("lasts = \"10m\"", "lasts = \"0s\"");
    assert_eq!((line, key.as_str()), (8, "drill[0].mechanism[0].lasts"));
    assert!(text.contains("lasts no time"), "{text}");
    let (line, _, text) = one("capacity_percent = 60", "capacity_percent = 0");
    assert_eq!(line, 14);
    assert!(text.contains("from 1 to 1000"), "{text}");
    let hot = "kind = \"hot-documents\"\nwork = \"20m\"\nwithin = \"1m\"\ncapacity_percent = 60";
    let (line, _, text) = one(hot, "kind = \"region-lost\"\nlasts = \"5m\"");
    assert_eq!(line, 11);
    assert!(text.contains("a second mechanism of this drill is `region-lost`"), "{text}");
    let (_, _, text) = one("lasts = \"10m\"", "lasts = \"7h\"");
    assert!(text.contains("which is more than 6h"), "{text}");
    let twice = format!("{}{GOOD}", GOOD.replacen("[[drill]]\n", "[[drill]]\nafter = \"0s\"\n", 1));
    let all = mistakes(GOOD, &twice);
    let places: Vec<(usize, &str)> = all.iter().map(|(line, key, ..)| (*line, key.as_str())).collect();
    assert_eq!(places, [(2, "drill[0].after"), (17, "drill[1].name")]);
}
