//! Rows as a picture: a block for each storm, a column for each load, and in it a bar for each balancer.

use super::row::Row;
use crate::plot::STYLE;
use crate::plot::canvas::{Anchor, Canvas, Point, at};

const LEFT: f64 = 176.0;
const HEAD: f64 = 84.0;
const HEADING: f64 = 44.0;
const COLUMN: f64 = 176.0;
/// The room between two columns, in which the figures stand.
const GAP: f64 = 96.0;
const LINE: f64 = 24.0;
const BAR: f64 = 14.0;
const AFTER_BLOCK: f64 = 40.0;
const FOOT: f64 = 24.0;

/// The picture as the text of an SVG file.
pub(super) fn svg(rows: &[Row]) -> String {
    let names = distinct(rows.iter().map(|row| row.name.as_str()));
    let storms = distinct(rows.iter().map(|row| row.storm.as_str()));
    let loads = distinct(rows.iter().map(|row| row.load.to_string()));
    let width = LEFT + (COLUMN + GAP) * count(loads.len());
    let block = HEADING + LINE * count(names.len()) + AFTER_BLOCK;
    let height = HEAD + block * count(storms.len()) + FOOT;
    let mut canvas = Canvas::default();
    canvas.rectangle("page", at(0.0, 0.0), width, height);
    canvas.text("title", at(24.0, 40.0), Anchor::Start, "Live retry storms: what was served of what could have been");
    let about =
        "Bar and first number: goodput as a part of the oracle's. Second: attempts at the servers for each request.";
    canvas.text("about", at(24.0, 62.0), Anchor::Start, about);
    for (index, storm) in storms.iter().enumerate() {
        let of_storm: Vec<&Row> = rows.iter().filter(|row| row.storm == *storm).collect();
        draw_block(&mut canvas, &of_storm, (&names, &loads), HEAD + block * count(index));
    }
    let foot = "Drawn by `seawall storm --svg` from runs on real sockets.";
    canvas.text("number", at(24.0, height - 16.0), Anchor::Start, foot);
    let description = "For each balancer and storm a bar: goodput as a part of what an oracle would have served.";
    canvas.finish(width, height, STYLE, ["Live retry storms", description])
}

/// The runs of one storm.
fn draw_block(canvas: &mut Canvas, rows: &[&Row], (names, loads): (&[&str], &[String]), top: f64) {
    let first = top + HEADING;
    let bottom = first + LINE * count(names.len());
    for (index, load) in loads.iter().enumerate() {
        let left = LEFT + (COLUMN + GAP) * count(index);
        let storm = rows.first().map_or("", |row| row.storm.as_str());
        canvas.text("run", at(left, first - 20.0), Anchor::Start, &format!("storm {storm}, load {load}"));
        for part in [0.0, 0.5, 1.0] {
            let x = left + COLUMN * part;
            canvas.line("grid", at(x, first - 8.0), at(x, bottom));
            canvas.text("number", at(x, bottom + 14.0), Anchor::Middle, &part.to_string());
        }
        for (line, name) in names.iter().enumerate() {
            let place = at(left, first + LINE * count(line));
            match rows.iter().find(|row| row.name == *name && row.load.to_string() == *load) {
                Some(row) => bar(canvas, row, place),
                None => canvas.text("number", at(left + 4.0, place.y + BAR - 3.0), Anchor::Start, "not run"),
            }
        }
    }
    for (line, name) in names.iter().enumerate() {
        let class = if *name == "seawall" { "run" } else { "event" };
        canvas.text(class, at(LEFT - 14.0, first + LINE * count(line) + BAR - 2.0), Anchor::End, name);
    }
}

fn bar(canvas: &mut Canvas, row: &Row, place: Point) {
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
        // Of two balancers, two storms and two loads.
        assert_eq!(text.matches(">not run<").count(), 5);
        assert!(text.contains(">storm B, load 2<") && text.contains(">0.50  1.02x<"), "{text}");
        // Half of what was possible is half a bar.
        assert!(text.contains("class=\"goodput-swatch\" x=\"176\" y=\"152\" width=\"88\" height=\"14\""), "{text}");
    }
}
