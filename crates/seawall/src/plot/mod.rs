//! A replay as a picture: the runs over one another as small multiples with one time axis and the events across.
//!
//! The picture brings its own background, and its own dark one where the viewer prefers that. All panels of a kind have
//! the same axis, so that runs can be compared by eye.

pub(crate) mod canvas;
mod events;
mod panel;
mod scale;

use canvas::{Anchor, Canvas, at};
use events::{LANE, labels};
use panel::{Frame, LEFT, Layer, Panel, Series};
use std::collections::BTreeMap;

/// The style of every picture, light and dark.
pub(crate) const STYLE: &str = include_str!("style.css");
const WIDTH: f64 = 1200.0;
const RIGHT: f64 = WIDTH - 28.0;
const HEAD: f64 = 78.0;
/// Heading of a run, and the room after it.
const HEADING: f64 = 40.0;
const AFTER_RUN: f64 = 34.0;
const AFTER_PANEL: f64 = 10.0;
/// Of a run that is told in words only.
const NOTE: f64 = 18.0;
const FOOT: f64 = 38.0;

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mark {
    /// Minutes since midnight.
    pub(crate) minute: f64,
    /// What happened in that minute.
    pub(crate) names: Vec<String>,
}

/// One run.
#[derive(Clone, Debug)]
pub(crate) struct RunPlot<'a> {
    /// Its heading.
    pub(crate) title: &'a str,
    /// What came of it, in one line.
    pub(crate) facts: String,
    /// Its series by name; `None`: there is nothing to draw, and the facts say why.
    pub(crate) series: Option<&'a BTreeMap<String, Vec<(f64, f64)>>>,
}

/// A replay to be drawn.
#[derive(Clone, Debug)]
pub(crate) struct Plot<'a> {
    pub(crate) title: &'a str,
    pub(crate) about: String,
    /// Minutes since midnight.
    pub(crate) start: f64,
    pub(crate) end: f64,
    pub(crate) marks: Vec<Mark>,
    /// What capacity is, for a caption.
    pub(crate) capacity_is: &'a str,
    pub(crate) runs: Vec<RunPlot<'a>>,
    /// Where the picture comes from.
    pub(crate) foot: String,
}

/// The derived series of one run that are drawn.
#[derive(Default)]
struct Drawn<'a> {
    demand: &'a Series,
    attempts: &'a Series,
    goodput: &'a Series,
    failure_ratio: Vec<(f64, f64)>,
    working: &'a Series,
    /// Working and waiting.
    in_use: Vec<(f64, f64)>,
    has_waiting: bool,
}

/// Where the axes end.
struct Ends {
    attempts: f64,
    demand: f64,
    failure_ratio: f64,
    in_use: f64,
}

/// The picture as the text of an SVG file.
pub(crate) fn svg(plot: &Plot<'_>) -> String {
    let mut canvas = Canvas::default();
    let frame = Frame { start: plot.start, end: plot.end.max(plot.start + 1.0), right: RIGHT };
    let drawn: Vec<Option<Drawn<'_>>> = plot.runs.iter().map(|run| run.series.map(Drawn::new)).collect();
    let ends = Ends::of(drawn.iter().flatten());
    let labels = labels(&plot.marks, |minute| frame.x(minute), RIGHT);
    let lanes = labels.iter().map(|label| label.lane + 1).max().unwrap_or(0);
    let first_run = HEAD + LANE * count(lanes) + 14.0;
    let heights: Vec<f64> = drawn.iter().map(|run| height(run.as_ref(), plot, &ends)).collect();
    let total = first_run + heights.iter().sum::<f64>() + FOOT;
    canvas.rectangle("page", at(0.0, 0.0), WIDTH, total);
    canvas.text("title", at(LEFT, 40.0), Anchor::Start, plot.title);
    canvas.text("about", at(LEFT, 62.0), Anchor::Start, &plot.about);
    for label in &labels {
        let y = first_run - 14.0 - LANE * count(label.lane);
        canvas.line("mark", at(label.x, y - 10.0), at(label.x, total - FOOT));
    }
    for label in &labels {
        let y = first_run - 14.0 - LANE * count(label.lane);
        let (x, anchor) = if label.runs_left { (label.x - 5.0, Anchor::End) } else { (label.x + 5.0, Anchor::Start) };
        canvas.text("event", at(x, y), anchor, &label.text);
    }
    let mut top = first_run;
    for ((run, drawn), height) in plot.runs.iter().zip(&drawn).zip(heights) {
        draw_run(&mut canvas, &frame, run, top);
        if let Some(drawn) = drawn {
            draw_panels(&mut canvas, &frame, drawn.panels(plot, &ends), top + HEADING);
        }
        top += height;
    }
    canvas.text("number", at(LEFT, total - 16.0), Anchor::Start, &plot.foot);
    let description = "Small multiples: attempts, demand and goodput, failure ratio and capacity in use, run by run.";
    canvas.finish(WIDTH, total, STYLE, [plot.title, description])
}

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

fn height(run: Option<&Drawn<'_>>, plot: &Plot<'_>, ends: &Ends) -> f64 {
    let panels = run.map_or_else(Vec::new, |run| run.panels(plot, ends));
    if panels.is_empty() {
        return HEADING + NOTE;
    }
    HEADING + panels.iter().map(|panel| panel.total_height() + AFTER_PANEL).sum::<f64>() + AFTER_RUN
}

fn draw_run(canvas: &mut Canvas, frame: &Frame, run: &RunPlot<'_>, top: f64) {
    if run.series.is_none() {
        canvas.rectangle("note", at(LEFT, top), frame.right - LEFT, HEADING);
    }
    canvas.line("rule", at(LEFT, top), at(frame.right, top));
    let (inset, class) = if run.series.is_none() { (12.0, "note-facts") } else { (0.0, "facts") };
    let title = if run.series.is_none() { "note-run" } else { "run" };
    canvas.text(title, at(LEFT + inset, top + 26.0), Anchor::Start, run.title);
    canvas.text(class, at(frame.right - inset, top + 26.0), Anchor::End, &run.facts);
}

fn draw_panels(canvas: &mut Canvas, frame: &Frame, panels: Vec<Panel<'_>>, top: f64) {
    let mut top = top;
    for panel in panels {
        panel.draw(canvas, frame, top);
        top += panel.total_height() + AFTER_PANEL;
    }
    for minute in frame.times() {
        let text = crate::figures::clock(minute);
        canvas.text("number", at(frame.x(minute), top + 6.0), Anchor::Middle, &text);
    }
}

impl<'a> Drawn<'a> {
    fn new(series: &'a BTreeMap<String, Vec<(f64, f64)>>) -> Self {
        let of = |name: &str| series.get(name).map_or(&[][..], Vec::as_slice);
        let (goodput, failed, working) = (of("goodput"), of("failed"), of("working"));
        let ratio = |(bad, good): (&(f64, f64), &(f64, f64))| {
            let ended = bad.1 + good.1;
            (bad.0, if ended > 0.0 { bad.1 / ended } else { 0.0 })
        };
        let waiting = of("waiting");
        let sum = |(index, held): (usize, &(f64, f64))| (held.0, held.1 + waiting.get(index).map_or(0.0, |w| w.1));
        Self {
            demand: of("demand"),
            attempts: of("attempts"),
            goodput,
            failure_ratio: failed.iter().zip(goodput).map(ratio).collect(),
            working,
            in_use: working.iter().enumerate().map(sum).collect(),
            has_waiting: !waiting.is_empty(),
        }
    }

    /// Its panels; what a scenario does not plot has none.
    fn panels<'b>(&'b self, plot: &'b Plot<'_>, ends: &Ends) -> Vec<Panel<'b>> {
        let of = |caption: &str, legend, (height, most), layers| Panel {
            caption: caption.to_owned(),
            legend,
            height,
            most,
            is_share: false,
            layers,
        };
        let mut panels = Vec::new();
        if !self.attempts.is_empty() {
            let legend: &[_] = &[("attempts-swatch", "attempts"), ("demand-swatch", "distinct requests")];
            let layers = vec![
                Layer::Area { class: "attempts-area", above: self.attempts, below: None },
                Layer::Line { class: "attempts", values: self.attempts },
                Layer::Line { class: "demand", values: self.demand },
            ];
            panels.push(of("attempts per second", legend, (92.0, ends.attempts), layers));
        }
        if !self.goodput.is_empty() {
            let legend: &[_] =
                &[("demand-swatch", "demand"), ("goodput-swatch", "goodput"), ("lost-swatch", "what is missing")];
            let layers = vec![
                Layer::Area { class: "lost-area", above: self.demand, below: Some(self.goodput) },
                Layer::Area { class: "goodput-area", above: self.goodput, below: None },
                Layer::Line { class: "goodput", values: self.goodput },
                Layer::Line { class: "demand", values: self.demand },
            ];
            panels.push(of("requests per second", legend, (92.0, ends.demand), layers));
        }
        if !self.failure_ratio.is_empty() {
            let layers = vec![
                Layer::Area { class: "failed-area", above: &self.failure_ratio, below: None },
                Layer::Line { class: "failed", values: &self.failure_ratio },
            ];
            let panel = of("failures, as a part of what ended", &[], (52.0, ends.failure_ratio), layers);
            panels.push(Panel { is_share: true, ..panel });
        }
        if !self.working.is_empty() {
            let both: &[_] = &[("working-swatch", "working"), ("waiting-swatch", "waiting")];
            let legend = if self.has_waiting { both } else { &both[..1] };
            let layers = vec![
                Layer::Area { class: "waiting-area", above: &self.in_use, below: Some(self.working) },
                Layer::Area { class: "working-area", above: self.working, below: None },
            ];
            let what = if plot.capacity_is.is_empty() { String::new() } else { format!(": {}", plot.capacity_is) };
            panels.push(of(&format!("capacity in use{what}"), legend, (66.0, ends.in_use), layers));
        }
        panels
    }
}

impl Ends {
    fn of<'a>(runs: impl Iterator<Item = &'a Drawn<'a>> + Clone) -> Self {
        let most = |values: &mut dyn Iterator<Item = f64>| scale::round_up(values.fold(0.0, f64::max));
        let values = |series: &'a Series| series.iter().map(|(_, value)| *value);
        Self {
            attempts: most(&mut runs.clone().flat_map(|run| values(run.attempts).chain(values(run.demand)))),
            demand: most(&mut runs.clone().flat_map(|run| values(run.demand).chain(values(run.goodput)))),
            failure_ratio: most(&mut runs.clone().flat_map(|run| values(&run.failure_ratio))),
            in_use: most(&mut runs.flat_map(|run| values(&run.in_use))),
        }
    }
}

#[cfg(test)]
mod tests;
