//! The storm set for people: a table for each shape, law and kind of client, and a line that sums up.

use crate::tables::{bold, lines, plain};
use comfy_table::{Attribute, Cell, CellAlignment, Color, ContentArrangement};
use seawall_sim::storms::{Bound, Row};
use std::fmt::Write as _;

const HEADERS: [&str; 15] = [
    "storm", "load", "router", "good", "goodput", "worst", "gate", "of told", "upstream", "tries", "p50", "p99",
    "back", "worst", "waiting",
];

/// All rows, those of one shape, law and kind of client together.
pub(super) fn text(rows: &[Row], seeds: u64, coloured: bool) -> String {
    let mut text = String::new();
    let mut rest = rows;
    while let Some(first) = rest.first() {
        let length = rest.iter().take_while(|row| group(row) == group(first)).count();
        let (part, more) = rest.split_at(length);
        writeln!(text, "{}", bold(&group(first).join(", "), coloured)).expect("a string takes any text");
        text.push_str(&part_table(part, coloured));
        text.push('\n');
        rest = more;
    }
    let judged: Vec<&Row> = rows.iter().filter(|row| !row.gates.is_empty()).collect();
    let passed = judged.iter().filter(|row| row.passes()).count();
    writeln!(
        text,
        "{passed} of {} cells pass, means over {seeds} seeds. goodput: good requests as a part of the oracle's; upstream\n\
         and tries: attempts at the servers and at the router, for each request; p50, p99 and back (goodput after the trouble's\n\
         end) in seconds; waiting: the most in the router's line.",
        judged.len()
    )
    .expect("a string takes any text");
    for violation in rows.iter().flat_map(|row| &row.violations) {
        writeln!(text, "violation: {violation}").expect("a string takes any text");
    }
    text
}

/// Shape, law, clients and length.
fn group(row: &Row) -> Vec<&str> {
    let words: Vec<&str> = row.cell.split('/').collect();
    [0, 1, 4, 5].iter().filter_map(|place| words.get(*place).copied()).collect()
}

fn part_table(rows: &[Row], coloured: bool) -> String {
    let mut table = plain(coloured);
    // A narrow terminal breaks the lines better than a table that breaks the words.
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(HEADERS.iter().chain(&[""]));
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    for row in rows {
        let words: Vec<&str> = row.cell.split('/').collect();
        let mut cells = vec![Cell::new(words[2]), Cell::new(words[3]), Cell::new(&row.router)];
        cells.extend(figures(row).into_iter().map(|figure| Cell::new(figure).set_alignment(CellAlignment::Right)));
        cells.push(verdict(row));
        table.add_row(cells);
    }
    lines(&table)
}

fn figures(row: &Row) -> [String; 12] {
    let gate = row.gates.iter().find(|checked| matches!(checked.gate.figure, Bound::Goodput | Bound::OfTold));
    let gate = gate.map(|checked| match checked.gate.figure {
        Bound::OfTold => format!("{:.2} told", checked.gate.bound),
        _ => format!("{:.2}", checked.gate.bound),
    });
    let never = if row.not_back > 0 { ">" } else { "" };
    [
        format!("{:.3}", row.good),
        format!("{:.3}", row.goodput),
        format!("{:.3}", row.worst_goodput),
        gate.unwrap_or_default(),
        row.of_told.map(|part| format!("{part:.3}")).unwrap_or_default(),
        format!("{:.2}", row.upstream_attempts),
        format!("{:.2}", row.client_attempts),
        format!("{:.1}", row.p50_seconds),
        format!("{:.1}", row.p99_seconds),
        format!("{never}{:.1}", row.recovery_seconds),
        format!("{never}{:.0}", row.worst_recovery_seconds),
        format!("{:.0}", row.most_waiting),
    ]
}

/// Whether the row passes, or what does not.
fn verdict(row: &Row) -> Cell {
    if row.gates.is_empty() {
        return Cell::new("");
    }
    if row.passes() {
        return Cell::new("pass").fg(Color::Green);
    }
    let failed = row.gates.iter().filter(|checked| !checked.passes);
    let failed: Vec<&str> = failed.map(|checked| checked.gate.figure.label()).collect();
    Cell::new(format!("FAIL {}", failed.join(", "))).fg(Color::Red).add_attribute(Attribute::Bold)
}
