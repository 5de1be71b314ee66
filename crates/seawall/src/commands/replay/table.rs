//! What came of a replay, for people: a table for each run, and a line that sums up.

use super::report::{Replayed, VariedOverSeeds};
use crate::figures::{range, wanted};
use crate::tables::{MOST, WIDTH, bold, lines, plain};
use comfy_table::{Attribute, Cell, Color, ColumnConstraint, Width};
use seawall_sim::replay::{CheckResult, Outcome, SeedRuns, Verdict};
use std::fmt::Write as _;

/// The least for the published words.
const LEAST_WORDS: u16 = 30;

/// All columns but the last one, which takes the room that is left.
const HEADERS: [&str; 5] = ["", "check", "got", "wanted", "tag"];

/// One check over all seeds.
struct Row<'a> {
    check: &'a CheckResult,
    got: Vec<f64>,
    passed: usize,
    seeds: usize,
    absent: bool,
}

impl<'a> Row<'a> {
    fn verdict(&self) -> (Verdict, String) {
        if self.absent {
            return (Verdict::Absent, "absent".to_owned());
        }
        let verdict = if self.passed == self.seeds { Verdict::Pass } else { Verdict::Fail };
        let word = if verdict == Verdict::Pass { "pass" } else { "FAIL" };
        let counted = verdict == Verdict::Fail && self.passed > 0;
        (
            verdict,
            if counted { format!("FAIL {} of {}", self.seeds - self.passed, self.seeds) } else { word.to_owned() },
        )
    }

    fn cells(&self) -> [String; HEADERS.len()] {
        [self.verdict().1, self.check.name.clone(), self.got(), self.wanted(), self.check.tag.to_owned()]
    }

    fn wanted(&self) -> String {
        let CheckResult { low, high, is_time, needs, .. } = self.check;
        if low.is_none() && high.is_none() && needs.is_some() {
            return String::new();
        }
        wanted(*low, *high, *is_time)
    }

    fn got(&self) -> String {
        if self.absent {
            return self.check.needs.as_ref().map_or_else(String::new, |needs| format!("needs {needs}"));
        }
        let least = self.got.iter().copied().reduce(f64::min);
        let most = self.got.iter().copied().reduce(f64::max);
        let Some((least, most)) = least.zip(most) else { return "none".to_owned() };
        let text = range(least, most, self.check.is_time);
        if self.got.len() == self.seeds { text } else { format!("{text}, or none") }
    }

    fn of(results: impl Iterator<Item = &'a CheckResult>) -> Vec<Self> {
        let mut rows: Vec<Self> = Vec::new();
        for check in results {
            let same = |row: &Self| {
                (row.check.run, &row.check.counterfactual, &row.check.name)
                    == (check.run, &check.counterfactual, &check.name)
            };
            let place = rows.iter().position(same).unwrap_or(rows.len());
            if place == rows.len() {
                rows.push(Self { check, got: Vec::new(), passed: 0, seeds: 0, absent: false });
            }
            let row = &mut rows[place];
            row.got.extend(check.got);
            row.passed += usize::from(check.pass);
            row.seeds += 1;
            row.absent |= check.verdict == Verdict::Absent;
        }
        rows
    }
}

/// The report on one case.
pub(super) fn text(replayed: &Replayed<'_>, coloured: bool) -> String {
    let case = replayed.study.case;
    let rows = Row::of(replayed.results());
    let mut text = format!("{}\n{}\n", bold(&case.slug, coloured), case.scenario.scenario.title);
    for (title, of_group) in groups(replayed, &rows) {
        write!(text, "\n{}\n{}", bold(&title, coloured), table(&of_group, &rows, coloured))
            .expect("a string takes any text");
    }
    if rows.is_empty() {
        write!(text, "\n{}", figures(replayed, coloured)).expect("a string takes any text");
    }
    varied(&mut text, replayed);
    for violation in replayed.violations() {
        writeln!(text, "\nmust never be seen: {violation}").expect("a string takes any text");
    }
    writeln!(text, "\n{}", summary(replayed, &rows)).expect("a string takes any text");
    text
}

/// The rows run by run, each with a title; a run without a row is left out.
fn groups<'a>(replayed: &Replayed<'_>, rows: &'a [Row<'a>]) -> Vec<(String, Vec<&'a Row<'a>>)> {
    let of = |run: &str, counterfactual: Option<&str>| -> Vec<&'a Row<'a>> {
        let wanted = |row: &&Row<'_>| row.check.run == run && row.check.counterfactual.as_deref() == counterfactual;
        rows.iter().filter(wanted).collect()
    };
    let mut groups = vec![
        ("As it happened".to_owned(), of("as_it_happened", None)),
        ("Observed: Seawall looks on and acts on nothing".to_owned(), of("observed", None)),
        ("With Seawall in the routers' place".to_owned(), of("with_seawall", None)),
    ];
    for other in &replayed.study.case.scenario.counterfactual {
        groups.push((
            format!("Changed (`{}`): {}", other.name, other.about.trim_end()),
            of("counterfactual", Some(&other.name)),
        ));
    }
    groups.retain(|(_, rows)| !rows.is_empty());
    groups
}

/// The rows of one run. All tables of a report have the same columns, so only the first one has a header.
fn table(rows: &[&Row<'_>], all: &[Row<'_>], coloured: bool) -> String {
    let mut table = plain(coloured);
    for row in rows {
        let (verdict, _) = row.verdict();
        let [word, name, got, wanted, tag] = row.cells().map(Cell::new);
        let word = match verdict {
            Verdict::Pass => word.fg(Color::Green),
            Verdict::Fail => word.fg(Color::Red).add_attribute(Attribute::Bold),
            Verdict::Absent => word.fg(Color::Yellow),
        };
        table.add_row([word, name, got, wanted, tag, Cell::new(&row.check.published)]);
    }
    let widths: Vec<u16> = (0..HEADERS.len()).map(|index| column_width(index, all)).collect();
    for (index, width) in widths.iter().enumerate() {
        if let Some(column) = table.column_mut(index) {
            column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(*width)));
        }
    }
    // On a narrow terminal lines rather run over than that the last column becomes a column of letters.
    let least = widths.iter().sum::<u16>() + LEAST_WORDS;
    table.set_width(table.width().unwrap_or(WIDTH).max(least));
    let is_first = all.first().zip(rows.first()).is_some_and(|(first, row)| std::ptr::eq(first, *row));
    if is_first {
        table.set_header(HEADERS.iter().chain(&["published"]));
    }
    lines(&table)
}

/// The width of the widest cell with a letter of room on both sides.
fn column_width(index: usize, all: &[Row<'_>]) -> u16 {
    let cells = all.iter().map(|row| row.cells()[index].chars().count());
    let widest = cells.chain([HEADERS[index].chars().count()]).max().unwrap_or(0);
    u16::try_from(widest + 2).unwrap_or(MOST)
}

/// The figures run by run: what a scenario without a check has to tell.
fn figures(replayed: &Replayed<'_>, coloured: bool) -> String {
    let mut table = plain(coloured);
    table.set_header(["figure", "as it happened", "observed", "with Seawall"]);
    for figure in &replayed.study.case.scenario.figure {
        let over_seeds = |outcome: fn(&SeedRuns) -> &Outcome| {
            let values = replayed.seeds.iter().filter_map(|runs| outcome(runs).figures.get(&figure.name).copied());
            let (least, most) = (values.clone().reduce(f64::min), values.reduce(f64::max));
            least.zip(most).map_or_else(|| "none".to_owned(), |(least, most)| range(least, most, figure.is_time))
        };
        let runs = [over_seeds(|runs| &runs.as_it_happened), over_seeds(|runs| &runs.observed)];
        table.add_row([figure.name.clone()].into_iter().chain(runs).chain([over_seeds(|runs| &runs.with_seawall)]));
    }
    lines(&table)
}

/// Which calibrated values may be a tenth less or more.
fn varied(text: &mut String, replayed: &Replayed<'_>) {
    let all = replayed.varied();
    if !all.is_empty() {
        text.push_str("\nCalibrated values, a tenth less and a tenth more\n");
    }
    for VariedOverSeeds { actor, key, factor, kept, seeds, knife_edge } in all {
        let stays = format!("{actor}.{key} x {factor}: the incident stays for {kept} of {seeds} seeds");
        let edge = knife_edge.map_or_else(String::new, |range| format!(" (a knife edge; it holds for {range})"));
        writeln!(text, "  {stays}{edge}").expect("a string takes any text");
    }
}

fn summary(replayed: &Replayed<'_>, rows: &[Row<'_>]) -> String {
    let with = |wanted: Verdict| rows.iter().filter(|row| row.verdict().0 == wanted).count();
    let as_published = |row: &&Row<'_>| row.check.run == "as_it_happened" && row.check.tag != "assumed";
    let counted = rows.iter().filter(as_published);
    let (all, held) = (counted.clone().count(), counted.filter(|row| row.verdict().0 == Verdict::Pass).count());
    let seeds = match replayed.seeds.as_slice() {
        [runs] => format!("seed {}", runs.seed),
        [first, .., last] => format!("seeds {} to {}", first.seed, last.seed),
        [] => "no seed".to_owned(),
    };
    format!(
        "{}, {seeds}: {} checks: {} pass, {} fail, {} absent; {held} of {all} published and derived facts are replayed",
        replayed.study.case.slug,
        rows.len(),
        with(Verdict::Pass),
        with(Verdict::Fail),
        with(Verdict::Absent),
    )
}
