//! Tables for people: as wide as the terminal, or as is usual where there is none.

use comfy_table::{ContentArrangement, LineStyle, Table, TableStyle, presets};

/// Columns of a table that goes nowhere in particular, and the most that are comfortable to read.
pub(crate) const WIDTH: u16 = 120;
pub(crate) const MOST: u16 = 160;

const STYLE: TableStyle = presets::NOTHING.header_separator(LineStyle::none().fill('─').junction('─'));

/// An empty table as wide as the terminal, or as wide as is usual.
pub(crate) fn plain(coloured: bool) -> Table {
    let mut table = Table::new();
    table.load_style(STYLE).set_content_arrangement(ContentArrangement::Dynamic);
    if !coloured {
        table.force_no_tty();
    }
    let width = if coloured { table.width().unwrap_or(WIDTH).min(MOST) } else { WIDTH };
    table.set_width(width);
    table
}

/// The table as text, without blanks at the ends of its lines.
pub(crate) fn lines(table: &Table) -> String {
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n") + "\n"
}

pub(crate) fn bold(text: &str, coloured: bool) -> String {
    if coloured { format!("\u{1b}[1m{text}\u{1b}[0m") } else { text.to_owned() }
}
