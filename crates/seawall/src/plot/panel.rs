//! One panel: a caption with its legend, an axis, and lines and areas over time.

use super::canvas::{Anchor, Canvas, Point, at};
use super::scale::times;
use crate::figures::number;

/// Values over minutes since midnight.
pub(crate) type Series = [(f64, f64)];

/// The room left of a panel, for the numbers of its axis.
pub(super) const LEFT: f64 = 68.0;
const CAPTION: f64 = 18.0;
/// Of the legend; wide enough for the usual fonts.
const LETTER_WIDTH: f64 = 6.6;

/// Where panels stand and which times they show.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) start: f64,
    pub(super) end: f64,
    /// The right end of the panels.
    pub(super) right: f64,
}

impl Frame {
    /// The pixel of a time.
    pub(super) fn x(&self, minute: f64) -> f64 {
        LEFT + (minute - self.start) / (self.end - self.start) * (self.right - LEFT)
    }

    /// The times that stand below the panels.
    pub(super) fn times(&self) -> Vec<f64> {
        times(self.start, self.end, 12)
    }
}

/// What is drawn in a panel, the first below the others.
#[derive(Clone, Copy, Debug)]
pub(super) enum Layer<'a> {
    /// From a line down to another one, or to the axis.
    Area { class: &'static str, above: &'a Series, below: Option<&'a Series> },
    /// A line.
    Line { class: &'static str, values: &'a Series },
}

/// A panel.
pub(super) struct Panel<'a> {
    pub(super) caption: String,
    /// Class of the swatch and the words beside it.
    pub(super) legend: &'a [(&'static str, &'static str)],
    pub(super) height: f64,
    /// Where the axis ends.
    pub(super) most: f64,
    pub(super) is_share: bool,
    pub(super) layers: Vec<Layer<'a>>,
}

impl Panel<'_> {
    /// The height with the caption.
    pub(super) fn total_height(&self) -> f64 {
        CAPTION + self.height
    }

    /// Draws it with its caption's upper edge at `top`.
    pub(super) fn draw(&self, canvas: &mut Canvas, frame: &Frame, top: f64) {
        let (above, below) = (top + CAPTION, top + CAPTION + self.height);
        canvas.text("caption", at(LEFT, top + 12.0), Anchor::Start, &self.caption);
        self.draw_legend(canvas, frame, top);
        for minute in frame.times() {
            canvas.line("grid", at(frame.x(minute), above), at(frame.x(minute), below));
        }
        for part in [0.0, 0.5, 1.0] {
            let (y, value) = (below - part * self.height, part * self.most);
            canvas.line(if part > 0.0 { "grid" } else { "axis" }, at(LEFT, y), at(frame.right, y));
            let text = if self.is_share { format!("{} %", number(value * 100.0)) } else { number(value) };
            canvas.text("number", at(LEFT - 8.0, y + 4.0), Anchor::End, &text);
        }
        let points = |values: &Series| -> Vec<Point> {
            let y = |value: f64| below - (value / self.most).clamp(0.0, 1.0) * self.height;
            let last = values.len().saturating_sub(1);
            // A value is the mean of its minute and stands in the middle of it; the ends reach the ends of the run.
            let x = |index: usize, minute: f64| match index {
                0 => frame.x(minute),
                _ if index == last => frame.right.min(frame.x(minute + 1.0)),
                _ => frame.x(minute + 0.5),
            };
            values.iter().enumerate().map(|(index, (minute, value))| at(x(index, *minute), y(*value))).collect()
        };
        for layer in &self.layers {
            match layer {
                Layer::Line { class, values } => canvas.curve(class, &points(values)),
                Layer::Area { class, above, below: Some(lower) } => canvas.area(class, &points(above), &points(lower)),
                Layer::Area { class, above, below: None } => {
                    let upper = points(above);
                    let axis: Vec<Point> = upper.iter().map(|point| at(point.x, below)).collect();
                    canvas.area(class, &upper, &axis);
                }
            }
        }
    }

    /// The legend, from the right.
    fn draw_legend(&self, canvas: &mut Canvas, frame: &Frame, top: f64) {
        let mut right = frame.right;
        for (class, words) in self.legend.iter().rev() {
            let letters = f64::from(u32::try_from(words.chars().count()).unwrap_or(u32::MAX));
            let left = right - letters * LETTER_WIDTH;
            canvas.text("caption", at(left, top + 12.0), Anchor::Start, words);
            canvas.rectangle(class, at(left - 19.0, top + 4.0), 13.0, 8.0);
            right = left - 38.0;
        }
    }
}
