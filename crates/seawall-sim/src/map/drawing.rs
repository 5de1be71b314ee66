//! The map as a picture: one grid of cells for each router, coloured by what came of them, with the boundary between
//! what recovered in time and what did not.

use super::grid::{CLIENTS, Cell, Client, LENGTHS, LOADS, Length, Load, SUBJECTS, Subject, TRIGGERS, Trigger};
use super::judge::{Outcome, Verdict};
use super::tally::{Results, Tally};
use std::fmt::Write as _;

const CELL_WIDTH: u32 = 29;
const CELL_HEIGHT: u32 = 21;
/// Between the groups of one trigger.
const GROUP_GAP: u32 = 9;
/// Between the blocks of one kind of client.
const BLOCK_GAP: u32 = 13;
const LEFT: u32 = 142;
const RIGHT: u32 = 112;
/// Above the first grid.
const TOP: u32 = 84;
/// From the top of a router's part to its grid.
const HEAD: u32 = 66;
/// Between two routers.
const PART_GAP: u32 = 30;
const FOOT: u32 = 96;

const INK: &str = "#1d2733";
const FAINT: &str = "#66727f";

#[expect(clippy::cast_possible_truncation, reason = "the axes are short")]
const fn count<T, const N: usize>(_: &[T; N]) -> u32 {
    N as u32
}

const fn columns() -> u32 {
    count(&TRIGGERS) * count(&LENGTHS)
}

const fn group_width() -> u32 {
    count(&LENGTHS) * CELL_WIDTH
}

const fn block_height() -> u32 {
    count(&LOADS) * CELL_HEIGHT
}

const fn grid_height() -> u32 {
    count(&CLIENTS) * block_height() + (count(&CLIENTS) - 1) * BLOCK_GAP
}

const fn width() -> u32 {
    LEFT + columns() * CELL_WIDTH + (count(&TRIGGERS) - 1) * GROUP_GAP + RIGHT
}

const fn part_top(part: u32) -> u32 {
    TOP + part * (HEAD + grid_height() + PART_GAP)
}

/// Fill of a cell, and the ink on it.
const fn colours(verdict: Verdict) -> (&'static str, &'static str) {
    match verdict {
        Verdict::Pass => ("#2f8f83", "#ffffff"),
        Verdict::Recovered => ("#efdca6", "#5c4a12"),
        Verdict::Late => ("#e38b3f", "#ffffff"),
        Verdict::Stuck => ("#611a2b", "#f3d9de"),
    }
}

const fn meaning(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "recovers in 30 s, loses no more than the capacity lost",
        Verdict::Recovered => "recovers in 30 s, but loses more, or crashes",
        Verdict::Late => "recovers later",
        Verdict::Stuck => "never recovers: the overload keeps itself alive",
    }
}

const fn trigger_words(trigger: Trigger) -> [&'static str; 2] {
    match trigger {
        Trigger::CapacityLoss(50) => ["half of the", "capacity gone"],
        Trigger::CapacityLoss(90) => ["90% of the", "capacity gone"],
        Trigger::CapacityLoss(_) => ["all of the", "capacity gone"],
        Trigger::Arrivals(2) => ["2 times", "the arrivals"],
        Trigger::Arrivals(10) => ["10 times", "the arrivals"],
        Trigger::Arrivals(_) => ["50 times", "the arrivals"],
        Trigger::CacheWipe => ["cache gone,", "back empty"],
        Trigger::Giants => ["5 giant", "documents"],
    }
}

const fn client_words(client: Client) -> [&'static str; 2] {
    match client {
        Client::None => ["no retry", ""],
        Client::Sdk => ["OpenAI SDK", "2 retries"],
        Client::SevenBySeven => ["7 x 7 attempts", "at once"],
    }
}

/// Draws the results; cells that were not run are left empty.
pub fn draw(results: &Results) -> String {
    let height = part_top(count(&SUBJECTS)) - PART_GAP + FOOT;
    let mut drawing = Drawing { svg: String::new(), results };
    let (font, all) = ("system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif", width());
    drawing.line(&format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {all} {height}\" width=\"{all}\" height=\"{height}\" \
         font-family=\"{font}\" role=\"img\" aria-label=\"Metastability map\">"
    ));
    drawing.line(&format!("<rect width=\"{all}\" height=\"{height}\" rx=\"8\" fill=\"#ffffff\"/>"));
    drawing.text(
        (24, 36),
        "font-size=\"21\" font-weight=\"650\"",
        INK,
        "After which triggers does the system come back?",
    );
    let about = "Each cell is one run: a load, a trigger, how long it lasts, and how the clients retry. \
                 Numbers: seconds from the trigger's end until goodput is back.";
    drawing.text((24, 58), "font-size=\"12.5\"", FAINT, about);
    for (part, subject) in (0..).zip(SUBJECTS) {
        drawing.part(subject, part_top(part));
    }
    drawing.legend(height - FOOT + 34);
    drawing.line("</svg>");
    drawing.svg
}

struct Drawing<'a> {
    svg: String,
    results: &'a Results,
}

impl Drawing<'_> {
    fn line(&mut self, text: &str) {
        self.svg.push_str(text);
        self.svg.push('\n');
    }

    fn text(&mut self, at: (u32, u32), style: &str, fill: &str, text: &str) {
        let (x, y) = at;
        writeln!(self.svg, "<text x=\"{x}\" y=\"{y}\" {style} fill=\"{fill}\">{text}</text>")
            .expect("a string takes any text");
    }

    fn rect(&mut self, at: (u32, u32), size: (u32, u32), style: &str) {
        let ((x, y), (width, height)) = (at, size);
        writeln!(self.svg, "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" {style}/>")
            .expect("a string takes any text");
    }

    /// One router: headings, grid, and how many cells of each block recovered.
    fn part(&mut self, subject: Subject, top: u32) {
        let (name, all) = (subject_name(subject), self.results.tally(|cell| cell.subject == subject));
        self.text((24, top + 20), "font-size=\"16\" font-weight=\"650\"", INK, name);
        let x = width() - 24;
        self.text((x, top + 20), "font-size=\"12.5\" text-anchor=\"end\"", FAINT, &in_words(&all));
        for (index, trigger) in (0..).zip(TRIGGERS) {
            let x = LEFT + index * (group_width() + GROUP_GAP);
            for (row, word) in (0..).zip(trigger_words(trigger)) {
                let at = (x + group_width() / 2, top + 36 + row * 12);
                self.text(at, "font-size=\"10.5\" text-anchor=\"middle\"", INK, word);
            }
            for (column, length) in (0..).zip(LENGTHS) {
                let at = (x + column * CELL_WIDTH + CELL_WIDTH / 2, top + HEAD - 5);
                let unit = if length == LENGTHS[0] { " s" } else { "" };
                self.text(at, "font-size=\"9\" text-anchor=\"middle\"", FAINT, &format!("{}{unit}", length.0));
            }
        }
        for (index, client) in (0..).zip(CLIENTS) {
            self.block(subject, client, top + HEAD + index * (block_height() + BLOCK_GAP));
        }
    }

    fn block(&mut self, subject: Subject, client: Client, top: u32) {
        let middle = top + block_height() / 2;
        for (row, word) in (0..).zip(client_words(client)) {
            let (size, fill) = if row == 0 { ("12", INK) } else { ("10.5", FAINT) };
            self.text((24, middle + row * 14), &format!("font-size=\"{size}\""), fill, word);
        }
        if client == CLIENTS[0] {
            self.text((LEFT - 8, top - 5), "font-size=\"9\" text-anchor=\"end\"", FAINT, "load");
        }
        for (row, load) in (0..).zip(LOADS.into_iter().rev()) {
            let at = (LEFT - 8, top + row * CELL_HEIGHT + 14);
            let text = format!("{:.0}%", load.part() * 100.0);
            self.text(at, "font-size=\"9.5\" text-anchor=\"end\"", FAINT, &text);
        }
        for (index, trigger) in (0..).zip(TRIGGERS) {
            let x = LEFT + index * (group_width() + GROUP_GAP);
            self.group(x, top, |load, length| Cell { subject, client, load, trigger, length });
        }
        let tally = self.results.tally(|cell| cell.subject == subject && cell.client == client);
        if tally.run > 0 {
            let at = (width() - 24, middle);
            let text = format!("{} of {}", tally.in_time(), tally.run);
            self.text(at, "font-size=\"12\" text-anchor=\"end\" font-weight=\"600\"", INK, &text);
            let at = (width() - 24, middle + 14);
            self.text(at, "font-size=\"10.5\" text-anchor=\"end\"", FAINT, "back in 30 s");
        }
    }

    /// The cells of one trigger and one kind of client: loads upwards, lengths to the right.
    fn group(&mut self, left: u32, top: u32, cell: impl Fn(Load, Length) -> Cell) {
        for (row, load) in (0..).zip(LOADS.into_iter().rev()) {
            for (column, length) in (0..).zip(LENGTHS) {
                let at = (left + column * CELL_WIDTH, top + row * CELL_HEIGHT);
                self.cell(at, cell(load, length));
            }
        }
        self.boundary(left, top, cell);
    }

    fn cell(&mut self, at: (u32, u32), cell: Cell) {
        let size = (CELL_WIDTH - 1, CELL_HEIGHT - 1);
        let Some(outcome) = self.results.of(cell) else {
            return self.rect(at, size, "fill=\"#f2f4f6\" stroke=\"#dde2e7\" stroke-width=\"0.5\"");
        };
        let (fill, ink) = colours(outcome.verdict);
        let (words, title) = (shown(outcome), hint(outcome));
        let ((x, y), (width, height)) = (at, size);
        self.line(&format!("<g><title>{title}</title>"));
        self.rect(at, size, &format!("fill=\"{fill}\""));
        self.text((x + width / 2, y + height / 2 + 4), "font-size=\"9.5\" text-anchor=\"middle\"", ink, &words);
        if outcome.crashes > 0.0 {
            let (x, y) = (x + width - 4, y + 4);
            self.line(&format!("<circle cx=\"{x}\" cy=\"{y}\" r=\"1.9\" fill=\"{ink}\"/>"));
        }
        self.line("</g>");
    }

    /// A thick line between neighbours of which one recovered in time and the other did not.
    fn boundary(&mut self, left: u32, top: u32, cell: impl Fn(Load, Length) -> Cell) {
        let loads: Vec<Load> = LOADS.into_iter().rev().collect();
        let back = |row: usize, column: usize| {
            let outcome = self.results.of(cell(*loads.get(row)?, *LENGTHS.get(column)?))?;
            Some(outcome.verdict <= Verdict::Recovered)
        };
        let differs = |one: Option<bool>, other: Option<bool>| one.zip(other).is_some_and(|(one, other)| one != other);
        let mut path = String::new();
        for (row, y) in (0..loads.len()).zip((top..).step_by(CELL_HEIGHT as usize)) {
            for (column, x) in (0..LENGTHS.len()).zip((left..).step_by(CELL_WIDTH as usize)) {
                if differs(back(row, column), back(row, column + 1)) {
                    let x = x + CELL_WIDTH;
                    write!(path, "M{x} {y}v{CELL_HEIGHT}").expect("a string takes any text");
                }
                if differs(back(row, column), back(row + 1, column)) {
                    let y = y + CELL_HEIGHT;
                    write!(path, "M{x} {y}h{CELL_WIDTH}").expect("a string takes any text");
                }
            }
        }
        if !path.is_empty() {
            let shift = "transform=\"translate(-0.5 -0.5)\"";
            let lines = [("#ffffff", "5"), (INK, "2.4")];
            for (stroke, width) in lines {
                self.line(&format!(
                    "<path d=\"{path}\" {shift} fill=\"none\" stroke=\"{stroke}\" stroke-width=\"{width}\" \
                     stroke-linecap=\"square\"/>"
                ));
            }
        }
    }

    fn legend(&mut self, top: u32) {
        for (index, verdict) in (0..).zip(Verdict::ALL) {
            let at = (24 + (index % 2) * 372, top + (index / 2) * 22);
            self.rect(at, (22, 14), &format!("rx=\"2\" fill=\"{}\"", colours(verdict).0));
            self.text((at.0 + 30, at.1 + 11), "font-size=\"11.5\"", INK, meaning(verdict));
        }
        let x = 24 + 2 * 372 - 60;
        let y = top + 7;
        self.line(&format!(
            "<path d=\"M{x} {y}h22\" stroke=\"{INK}\" stroke-width=\"2.4\" stroke-linecap=\"square\"/>"
        ));
        self.text((x + 30, top + 11), "font-size=\"11.5\"", INK, "the boundary");
        let at = (x + 11, top + 29);
        self.line(&format!("<circle cx=\"{}\" cy=\"{}\" r=\"2.6\" fill=\"{INK}\"/>", at.0, at.1));
        self.text((x + 30, top + 33), "font-size=\"11.5\"", INK, "a router crashed");
    }
}

const fn subject_name(subject: Subject) -> &'static str {
    match subject {
        Subject::Naive => "A naive router",
        Subject::Seawall => "Seawall",
    }
}

/// The number in a cell.
fn shown(outcome: &Outcome) -> String {
    outcome.recovery_seconds.map_or_else(|| "\u{221e}".to_owned(), |seconds| format!("{seconds:.0}"))
}

/// What a pointer over a cell shows.
fn hint(outcome: &Outcome) -> String {
    let loss = format!("worst loss {:.0}%", outcome.worst_loss * 100.0);
    let end = format!("at the end {:.0}% of what was possible", outcome.goodput_at_end * 100.0);
    format!("{}: {}; {loss}; {end}; {} crashes", outcome.cell, meaning(outcome.verdict), outcome.crashes)
}

fn in_words(tally: &Tally) -> String {
    if tally.run == 0 {
        return "not run".to_owned();
    }
    let of = |verdict| tally.of(verdict);
    format!(
        "{} of {} are back in 30 s ({} without harm); {} come back later, {} never",
        tally.in_time(),
        tally.run,
        of(Verdict::Pass),
        of(Verdict::Late),
        of(Verdict::Stuck)
    )
}
