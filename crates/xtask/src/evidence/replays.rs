//! Whether the cases of the library are replayed as published: every check over many seeds, and the calibrated values a
//! tenth less and more. Draws the cases, too.

use super::cost::build_program;
use super::processes::answered;
use crate::evidence::{Measurement, Record, Run};
use crate::repository::Repository;
use crate::{Failure, files, report};
use serde_json::Value;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::PathBuf;
use std::process::Command;

/// The entry of the table.
pub(super) const MEASUREMENT: Measurement = Measurement {
    name: "replays",
    summary: "every check of every case over 20 seeds, the calibrated values a tenth off, and the pictures of the cases",
    run: Run::Whole(run),
};

const SEEDS: usize = 20;
/// For the calibrated values, of which there are many.
const VARIED_SEEDS: usize = 3;
const PLOTS: &str = "docs/plots";

/// One check of one case over the seeds.
#[derive(Debug, PartialEq)]
struct Row {
    run: String,
    name: String,
    tag: String,
    published: String,
    wanted: String,
    got: String,
    passed: usize,
    seeds: usize,
    is_absent: bool,
}

impl Row {
    const fn passes(&self) -> bool {
        self.passed == self.seeds
    }

    /// Whether it counts towards "replayed as published".
    fn is_fact(&self) -> bool {
        self.run == "as it happened" && self.tag != "assumed"
    }
}

/// A case over the seeds.
struct CaseRows {
    slug: String,
    rows: Vec<Row>,
}

/// A calibrated value, a tenth less and a tenth more: in how many seeds the incident stays.
struct Varied {
    value: String,
    kept: [usize; 2],
    seeds: usize,
    knife_edge: Option<String>,
}

fn run(repository: &Repository) -> Result<Record, Failure> {
    let program = build_program(repository)?;
    report::say("about an hour of two cores; cases that an earlier run has finished are not run again");
    let parts = Parts::of(repository, program)?;
    let missing =
        || Failure::Answer { command: "seawall replay --json".to_owned(), reason: "a key is missing".to_owned() };
    let (mut cases, mut varied) = (Vec::new(), Vec::new());
    for folder in files::entries(&repository.path("cases"))?.iter().filter(|entry| entry.is_dir()) {
        let slug = folder.file_name().unwrap_or_default().to_string_lossy();
        report::say(&format!("{slug}: {SEEDS} seeds"));
        let svg = repository.path(&format!("{PLOTS}/{slug}.svg"));
        let seeds = parts.answer(&slug, &[&"--seeds", &SEEDS.to_string(), &"--svg", &svg])?;
        cases.push(case(&seeds).ok_or_else(missing)?);
        report::say(&format!("{slug}: the calibrated values a tenth off, {VARIED_SEEDS} seeds"));
        let vary = parts.answer(&slug, &[&"--vary", &"--seeds", &VARIED_SEEDS.to_string()])?;
        varied.push(varied_of(&vary).ok_or_else(missing)?);
    }
    Ok(record(&cases, &varied))
}

/// What `seawall replay` answered, kept in the build folder: an hour's work is not lost when it is stopped.
struct Parts {
    program: PathBuf,
    folder: PathBuf,
}

impl Parts {
    /// Answers of another program, which holds the engine and the cases, are never mixed in.
    fn of(repository: &Repository, program: PathBuf) -> Result<Self, Failure> {
        let bytes = fs::read(&program).map_err(Failure::file("read", &program))?;
        let mut hash = DefaultHasher::new();
        bytes.hash(&mut hash);
        let folder = repository.target().join(format!("replays/{:016x}", hash.finish()));
        Ok(Self { program, folder })
    }

    /// The kept answer to a replay of this case, or that of a run now.
    fn answer(&self, slug: &str, arguments: &[&dyn AsRef<OsStr>]) -> Result<Value, Failure> {
        let first = arguments.first().map_or_else(String::new, |first| first.as_ref().to_string_lossy().into_owned());
        let file = self.folder.join(format!("{slug}{first}.json"));
        if let Some(text) = files::read_if_present(&file)? {
            return serde_json::from_str(&text)
                .map_err(|error| Failure::Answer { command: file.display().to_string(), reason: error.to_string() });
        }
        let mut replay = Command::new(&self.program);
        replay.args(["replay", slug, "--json"]).args(arguments.iter().map(AsRef::as_ref));
        let answer = answered(&mut replay)?;
        files::write(&file, &answer.to_string())?;
        Ok(answer)
    }
}

/// The rows of one case, in the order of its checks.
fn case(value: &Value) -> Option<CaseRows> {
    let runs = value["runs"].as_array()?;
    let first = runs.first()?["checks"].as_array()?;
    let mut rows = Vec::new();
    for index in 0..first.len() {
        let results: Vec<&Value> = runs.iter().filter_map(|run| run["checks"].get(index)).collect();
        rows.push(row(&results)?);
    }
    for check in value["checks"].as_array()? {
        rows.push(row(&[check])?);
    }
    Some(CaseRows { slug: value["case"].as_str()?.to_owned(), rows })
}

/// One check of all seeds; of one that is told for all seeds together, that one result.
fn row(results: &[&Value]) -> Option<Row> {
    let check = results.first()?;
    let text = |key: &str| check[key].as_str().map(str::to_owned);
    let is_time = check["is_time"].as_bool()?;
    let got: Vec<f64> = results.iter().filter_map(|result| result["got"].as_f64()).collect();
    let is_absent = check["verdict"] == "absent";
    let range = match (got.iter().copied().reduce(f64::min), got.iter().copied().reduce(f64::max)) {
        _ if is_absent => format!("needs {}", text("needs")?),
        (Some(least), Some(most)) if got.len() == results.len() => range(least, most, is_time),
        (Some(least), Some(most)) => format!("{}, or none", range(least, most, is_time)),
        _ => "none".to_owned(),
    };
    let run = text("run")?.replace('_', " ");
    Some(Row {
        run: text("counterfactual").map_or(run, |name| format!("if {name}")),
        name: text("name")?,
        tag: text("tag")?,
        published: text("published")?,
        wanted: wanted(check["low"].as_f64(), check["high"].as_f64(), is_time),
        got: range,
        passed: results.iter().filter(|result| result["pass"] == true).count(),
        seeds: results.len(),
        is_absent,
    })
}

fn varied_of(value: &Value) -> Option<Vec<Varied>> {
    let runs = value["runs"].as_array()?;
    let Some(first) = runs.first()?["varied"].as_array() else { return Some(Vec::new()) };
    let kept = |index: usize| runs.iter().filter(|run| run["varied"][index]["keeps_incident"] == true).count();
    let value = |index: usize| {
        let one = &first[index];
        Some(Varied {
            value: format!("{}.{}", one["actor"].as_str()?, one["key"].as_str()?),
            kept: [kept(index), kept(index + 1)],
            seeds: runs.len(),
            knife_edge: one["knife_edge"].as_str().map(str::to_owned),
        })
    };
    // They come in pairs: a tenth less, a tenth more.
    (0..first.len()).step_by(2).map(value).collect()
}

fn shown(value: f64, is_time: bool) -> String {
    if is_time {
        let seconds = (value * 60.0).round();
        let (hours, minutes) = ((seconds / 3600.0).floor(), (seconds / 60.0).floor() % 60.0);
        let rest = seconds % 60.0;
        let clock = format!("{hours:02}:{minutes:02}");
        return if rest > 0.0 { format!("{clock}:{rest:02}") } else { clock };
    }
    let decimals = if value.abs() >= 100.0 { 0 } else { 3 };
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

fn range(least: f64, most: f64, is_time: bool) -> String {
    let (least, most) = (shown(least, is_time), shown(most, is_time));
    if least == most { least } else { format!("{least} to {most}") }
}

fn wanted(low: Option<f64>, high: Option<f64>, is_time: bool) -> String {
    match (low, high) {
        (Some(low), Some(high)) => range(low, high, is_time),
        (Some(low), None) => format!("from {}", shown(low, is_time)),
        (None, Some(high)) => format!("up to {}", shown(high, is_time)),
        (None, None) => "none".to_owned(),
    }
}

fn record(cases: &[CaseRows], varied: &[Vec<Varied>]) -> Record {
    let mut result = String::new();
    for (case, varied) in cases.iter().zip(varied) {
        case.tell(&mut result);
        tell_varied(&mut result, varied);
    }
    Record {
        title: "The incidents of the library, replayed".to_owned(),
        method: format!(
            "`seawall replay CASE --seeds {SEEDS} --json` of every case: as it happened, with Seawall looking on, with \
             Seawall in the place of what the scenario says, and with one thing changed, with the same settings for \
             every seed. Then `seawall replay CASE --vary --seeds {VARIED_SEEDS} --json`: each calibrated value a \
             tenth less and a tenth more; the incident stays if every check holds that says what the incident is.\n\n\
             *Published* is what a post-mortem says, *derived* follows from that by arithmetic, *assumed* is ours. A \
             check that is told once for all seeds compares medians."
        ),
        result: result.trim_end().to_owned(),
        reading: cases.iter().zip(varied).map(|(case, varied)| case.reading(varied)).collect::<Vec<_>>().join("\n"),
    }
}

impl CaseRows {
    fn tell(&self, result: &mut String) {
        let slug = &self.slug;
        write!(
            result,
            "### {slug}\n\n![The runs over one another](../plots/{slug}.svg)\n\n\
             | run | check | tag | published | wanted | over the seeds | passes |\n\
             | --- | --- | --- | --- | --- | --- | --- |\n"
        )
        .expect("a string takes any text");
        for row in &self.rows {
            let Row { run, name, tag, published, wanted, got, passed, seeds, is_absent } = row;
            let passes = if *is_absent { "absent".to_owned() } else { format!("{passed} of {seeds}") };
            let words = [run, name, tag, published, wanted, got, &passes].map(|text| text.replace('|', "\\|"));
            writeln!(result, "| {} |", words.join(" | ")).expect("a string takes any text");
        }
        result.push('\n');
    }

    fn reading(&self, varied: &[Varied]) -> String {
        let tally = |rows: &mut dyn Iterator<Item = &Row>| {
            let passes: Vec<bool> = rows.map(Row::passes).collect();
            format!("{} of {}", passes.iter().filter(|pass| **pass).count(), passes.len())
        };
        let facts = tally(&mut self.rows.iter().filter(|row| row.is_fact()));
        let changed = tally(&mut self.rows.iter().filter(|row| row.run.starts_with("if ")));
        let observed = tally(&mut self.rows.iter().filter(|row| row.run == "observed"));
        let with = tally(&mut self.rows.iter().filter(|row| row.run == "with seawall"));
        let stays = varied.iter().filter(|value| value.kept == [value.seeds; 2]).count();
        let edges = varied.iter().filter(|value| value.kept != [value.seeds; 2] && value.knife_edge.is_some()).count();
        format!(
            "* {}: {facts} published and derived facts hold on every seed, {changed} checks of what is changed; \
             observed {observed}, with Seawall as it is today {with}. Of {} calibrated values {stays} can be a tenth \
             less or more, {edges} are knife edges that the case names.",
            self.slug,
            varied.len()
        )
    }
}

fn tell_varied(result: &mut String, varied: &[Varied]) {
    if varied.is_empty() {
        return;
    }
    result.push_str("| calibrated value | a tenth less | a tenth more | knife edge |\n| --- | --- | --- | --- |\n");
    for Varied { value, kept: [less, more], seeds, knife_edge } in varied {
        let edge = knife_edge.as_deref().unwrap_or("").replace('|', "\\|");
        writeln!(result, "| {value} | stays in {less} of {seeds} | stays in {more} of {seeds} | {edge} |")
            .expect("a string takes any text");
    }
    result.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(got: Option<f64>, pass: bool) -> Value {
        json!({
            "run": "as_it_happened", "name": "wave | ends", "tag": "published", "published": "at 12:40", "low": 745.0,
            "high": 775.0, "got": got, "is_time": true, "pass": pass, "verdict": if pass { "pass" } else { "fail" },
        })
    }

    #[test]
    fn a_check_is_told_over_its_seeds() {
        let varied = json!([
            { "actor": "a", "key": "b", "keeps_incident": true },
            { "actor": "a", "key": "b", "keeps_incident": false },
        ]);
        let seed = |got, pass| json!({ "checks": [check(got, pass)], "varied": varied });
        let absent = json!({
            "run": "observed", "name": "named", "tag": "derived", "published": "", "low": null, "high": null,
            "got": null, "is_time": false, "pass": false, "verdict": "absent", "needs": "detection",
        });
        let value = json!({
            "case": "a-case", "checks": [absent], "runs": [seed(Some(759.5), true), seed(Some(780.0), false), seed(None, false)],
        });
        let case = case(&value).expect("every key is there");
        assert_eq!((case.rows[0].got.as_str(), case.rows[0].passed), ("12:39:30 to 13:00, or none", 1));
        assert_eq!((case.rows[0].wanted.as_str(), case.rows[1].got.as_str()), ("12:25 to 12:55", "needs detection"));
        let varied = varied_of(&value).expect("every key is there");
        assert_eq!((varied[0].value.as_str(), varied[0].kept), ("a.b", [3, 0]));
        let record = record(&[case], &[varied]);
        assert!(record.result.contains("| wave \\| ends | published |"), "{}", record.result);
        assert!(record.result.contains("| a.b | stays in 3 of 3 | stays in 0 of 3 |"), "{}", record.result);
        assert!(record.reading.contains("a-case: 0 of 1 published"), "{}", record.reading);
        assert!(row(&[&json!({ "name": "x" })]).is_none());
    }

    #[test]
    fn figures_are_short() {
        assert_eq!([0.784_21, 12.0, 1_483.7, 0.0].map(|value| shown(value, false)), ["0.784", "12", "1484", "0"]);
        assert_eq!(wanted(None, Some(1120.0), true), "up to 18:40");
        assert_eq!(wanted(None, None, false), "none");
    }
}
