//! A live line about a run.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

/// Where a run stands; given to the caller's callback about ten times a second and once at the end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Progress {
    /// Since the start.
    pub elapsed: Duration,
    /// Warm-up and duration, where the run has a duration.
    pub planned: Option<Duration>,
    /// Measured arrivals that the run ends after, where it has a count.
    pub planned_arrivals: Option<u64>,
    /// Whether the warm-up is still on.
    pub warm_up: bool,
    /// Measured arrivals so far.
    pub arrivals: u64,
    /// Calls in flight, warm-up included.
    pub in_flight: usize,
    /// Successes so far.
    pub succeeded: u64,
    /// Failures so far.
    pub failed: u64,
    /// Arrivals not sent so far.
    pub not_sent: u64,
    /// Attempts of ended calls so far.
    pub attempts: u64,
}

/// A line on stderr that shows [`Progress`]; nothing at all where stderr is no terminal.
pub struct ProgressLine(ProgressBar);

impl ProgressLine {
    /// A line on stderr.
    pub fn stderr() -> Self {
        Self::on(ProgressDrawTarget::stderr())
    }

    fn on(target: ProgressDrawTarget) -> Self {
        let bar = ProgressBar::with_draw_target(Some(1), target);
        let style = ProgressStyle::with_template("{bar:24} {elapsed:>5} {msg}").expect("the template is valid");
        bar.set_style(style);
        Self(bar)
    }

    /// Shows a new state.
    pub fn update(&self, progress: &Progress) {
        let (position, length) = match (progress.planned, progress.planned_arrivals) {
            (Some(planned), _) => (millis(progress.elapsed.min(planned)), millis(planned)),
            (None, Some(planned)) => (progress.arrivals.min(planned), planned),
            (None, None) => (0, 1),
        };
        self.0.set_length(length);
        self.0.set_position(position);
        self.0.set_message(text(progress));
    }

    /// Removes the line, so that the report can follow.
    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn text(progress: &Progress) -> String {
    let warm_up = if progress.warm_up { "warm-up, " } else { "" };
    let Progress { in_flight, succeeded, failed, not_sent, .. } = progress;
    format!("{warm_up}{in_flight} in flight, {succeeded} succeeded, {failed} failed, {not_sent} not sent")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_follows_the_run() {
        let line = ProgressLine::on(ProgressDrawTarget::hidden());
        let mut progress = Progress {
            elapsed: Duration::from_secs(3),
            planned: Some(Duration::from_secs(12)),
            planned_arrivals: None,
            warm_up: true,
            arrivals: 30,
            in_flight: 4,
            succeeded: 20,
            failed: 5,
            not_sent: 1,
            attempts: 31,
        };
        line.update(&progress);
        assert_eq!((line.0.position(), line.0.length()), (3_000, Some(12_000)));
        assert_eq!(line.0.message(), "warm-up, 4 in flight, 20 succeeded, 5 failed, 1 not sent");
        (progress.planned, progress.planned_arrivals) = (None, Some(60));
        line.update(&progress);
        assert_eq!((line.0.position(), line.0.length()), (30, Some(60)));
        line.finish();
        assert!(line.0.is_finished());
    }
}
