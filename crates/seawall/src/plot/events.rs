//! Where the names of events stand: in lanes above the panels, so that no two overlap.

use super::Mark;

/// The height of a lane.
pub(super) const LANE: f64 = 17.0;
/// The most letters of a label; what is longer is cut.
const LETTERS: usize = 60;
/// Wide enough for the usual fonts.
const LETTER_WIDTH: f64 = 6.8;
const GAP: f64 = 10.0;

/// A label in its lane.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Label {
    pub(super) text: String,
    /// Where its event stands.
    pub(super) x: f64,
    /// Whether the text runs to the left of that place, for want of room on the right.
    pub(super) runs_left: bool,
    /// Counted from the panels upwards.
    pub(super) lane: usize,
}

/// The labels of all events, in the order of the times. `place` gives the pixel of a time, `right` is where room ends.
pub(super) fn labels(marks: &[Mark], place: impl Fn(f64) -> f64, right: f64) -> Vec<Label> {
    let mut taken: Vec<Vec<(f64, f64)>> = Vec::new();
    let mut labels: Vec<Label> = Vec::new();
    // From the right, so that a line that goes down from its label passes below none that stands there already.
    for mark in marks.iter().rev() {
        let text = text(mark);
        let width = letters(&text) * LETTER_WIDTH;
        let x = place(mark.minute);
        let runs_left = x + GAP + width > right;
        let (from, to) = if runs_left { (x - GAP - width, x + GAP) } else { (x - GAP, x + GAP + width) };
        let is_free = |lane: &Vec<(f64, f64)>| lane.iter().all(|(start, end)| to <= *start || from >= *end);
        let lane = taken.iter().position(is_free).unwrap_or(taken.len());
        if lane == taken.len() {
            taken.push(Vec::new());
        }
        taken[lane].push((from, to));
        labels.push(Label { text, x, runs_left, lane });
    }
    labels.reverse();
    labels
}

fn text(mark: &Mark) -> String {
    let text = format!("{} {}", crate::figures::clock(mark.minute), mark.names.join(", "));
    if text.chars().count() <= LETTERS {
        return text;
    }
    text.chars().take(LETTERS - 1).chain(['…']).collect()
}

fn letters(text: &str) -> f64 {
    f64::from(u32::try_from(text.chars().count()).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(minute: f64, name: &str) -> Mark {
        Mark { minute, names: vec![name.to_owned()] }
    }

    #[test]
    fn labels_that_would_overlap_stand_in_different_lanes() {
        let marks = [mark(540.0, "one"), mark(545.0, "two"), mark(740.0, "three")];
        let labels = labels(&marks, |minute| minute - 540.0, 250.0);
        let lanes: Vec<(usize, bool)> = labels.iter().map(|label| (label.lane, label.runs_left)).collect();
        assert_eq!(lanes, [(1, false), (0, false), (0, true)]);
        assert_eq!(labels[2].text, "12:20 three");
    }

    #[test]
    fn a_long_name_is_cut() {
        let labels = labels(&[mark(0.0, &"x".repeat(300))], |minute| minute, 1000.0);
        assert_eq!(labels[0].text.chars().count(), LETTERS);
    }
}
