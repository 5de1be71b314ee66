//! Rows as a picture: a bar for each run, those of one storm and load over one another.

use super::row::Row;
use crate::plot::STYLE;
use crate::plot::canvas::{Anchor, Canvas, at};

const LEFT: f64 = 210.0;
const TOP: f64 = 118.0;
const COLUMN: f64 = 176.0;
/// The room between two columns, in which the attempts stand.
const GAP: f64 = 84.0;
const LINE: f64 = 24.0;
const BAR: f64 = 14.0;
const FOOT: f64 = 58.0;
const RIGHT: f64 = 20.0;

/// The picture as the text of an SVG file.
pub(super) fn svg(rows: &[Row]) -> String {
    let names = distinct(rows.iter().map(|row| row.name.clone()));
    let columns = distinct(rows.iter().map(|row| (row.storm.clone(), row.load.to_string())));
    let width = LEFT + (COLUMN + GAP) * count(columns.len()) + RIGHT;
    let bottom = TOP + LINE * count(names.len());
    let height = bottom + FOOT;
    let mut canvas = Canvas::default();
    canvas.rectangle("page", at(0.0, 0.0), width, height);
    canvas.text("title", at(24.0, 40.0), Anchor::Start, "Live retry storms: what was served of what could have been");
    let about =
        "Green: goodput as a part of the oracle's. The number behind: attempts at the servers for each request.";
    canvas.text("about", at(24.0, 62.0), Anchor::Start, about);
    for (index, (storm, load)) in columns.iter().enumerate() {
        let left = LEFT + (COLUMN + GAP) * count(index);
        canvas.text("run", at(left, TOP - 22.0), Anchor::Start, &format!("storm {storm}, load {load}"));
        for part in [0.0, 0.5, 1.0] {
            let x = left + COLUMN * part;
            canvas.line("grid", at(x, TOP - 8.0), at(x, bottom));
            canvas.text("number", at(x, bottom + 14.0), Anchor::Middle, &part.to_string());
        }
    }
    for (line, name) in names.iter().enumerate() {
        let y = TOP + LINE * count(line);
        canvas.text("event", at(LEFT - 14.0, y + BAR - 2.0), Anchor::End, name);
        for (index, column) in columns.iter().enumerate() {
            let is_here = |row: &&Row| row.name == *name && (row.storm.clone(), row.load.to_string()) == *column;
            let left = LEFT + (COLUMN + GAP) * count(index);
            match rows.iter().find(is_here) {
                Some(row) => bar(&mut canvas, row, at(left, y)),
                None => canvas.text("number", at(left + 4.0, y + BAR - 2.0), Anchor::Start, "not run"),
            }
        }
    }
    let foot = "Drawn by `seawall storm --svg` from runs on real sockets.";
    canvas.text("number", at(24.0, height - 16.0), Anchor::Start, foot);
    let description = "For each balancer and storm a bar: goodput as a part of what an oracle would have served.";
    canvas.finish(width, height, STYLE, ["Live retry storms", description])
}

fn bar(canvas: &mut Canvas, row: &Row, place: crate::plot::canvas::Point) {
    let goodput = row.figures.goodput.clamp(0.0, 1.0);
    canvas.rectangle("lost-area", place, COLUMN, BAR);
    canvas.rectangle("goodput-swatch", place, COLUMN * goodput, BAR);
    let text = format!("{:.2}  {:.2}x", row.figures.goodput, row.figures.upstream_attempts);
    canvas.text("number", at(place.x + COLUMN + 6.0, place.y + BAR - 3.0), Anchor::Start, &text);
}

/// Each once, in the order in which they come first.
fn distinct<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut once = Vec::new();
    for one in all {
        if !once.contains(&one) {
            once.push(one);
        }
    }
    once
}

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::super::row::tests::row;
    use super::svg;

    #[test]
    fn there_is_a_bar_for_each_run_and_a_word_where_there_is_none() {
        let rows = [row("seawall", "A", 0.8, 0.985), row("nginx", "A", 0.8, 0.5), row("seawall", "B", 2.0, 0.97)];
        let text = svg(&rows);
        assert_eq!(text.matches("class=\"goodput-swatch\"").count(), 3);
        assert_eq!(text.matches(">not run<").count(), 1);
        assert!(text.contains(">storm B, load 2<") && text.contains(">0.50  1.02x<"), "{text}");
        // Half of what was possible is half a bar.
        assert!(text.contains("class=\"goodput-swatch\" x=\"210\" y=\"142\" width=\"88\" height=\"14\""), "{text}");
    }
}
