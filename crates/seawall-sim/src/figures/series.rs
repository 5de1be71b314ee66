//! Several series as one, over a part of the run.

use crate::recorder::Recorder;
use crate::{Nanos, SECOND};
use seawall_cases::scenario::Clock;

/// The sum of several series, second by second, from a time until a time.
pub(crate) struct Summed {
    pub(crate) values: Vec<f64>,
    first_second: Nanos,
}

pub(super) fn unknown(recorder: &Recorder, name: &str) -> String {
    let actor = name.split('.').next().unwrap_or(name);
    let of_actor: Vec<&str> = recorder.names().filter(|known| known.split('.').next() == Some(actor)).collect();
    if of_actor.is_empty() {
        let mut actors: Vec<&str> = recorder.names().filter_map(|known| known.split('.').next()).collect();
        actors.dedup();
        return format!("there is no series `{name}`; there are series of {}", actors.join(", "));
    }
    format!("there is no series `{name}`; there are {}", of_actor.join(", "))
}

impl Summed {
    pub(crate) fn new(
        recorder: &Recorder,
        names: &[String],
        from: Option<Clock>,
        until: Option<Clock>,
    ) -> Result<Self, String> {
        let start = recorder.start();
        let second = |clock: Clock| usize::try_from(clock.nanos.saturating_sub(start) / SECOND).unwrap_or(usize::MAX);
        let last = recorder.seconds().saturating_sub(1);
        let first = from.map_or(0, second).min(last);
        let end = until.map_or(last, second).clamp(first, last);
        let mut values = vec![0.0; end - first];
        for name in names {
            let series = recorder.values(name).filter(|series| !series.is_empty());
            let series = series.ok_or_else(|| unknown(recorder, name))?;
            for (sum, value) in values.iter_mut().zip(&series[first..end]) {
                *sum += f64::from(*value);
            }
        }
        Ok(Self { values, first_second: start / SECOND + first as Nanos })
    }

    pub(super) fn total(&self) -> f64 {
        self.values.iter().sum()
    }

    pub(super) fn seconds(&self) -> f64 {
        crate::actors::number(self.values.len())
    }

    /// The minute since midnight in which a second begins.
    #[expect(clippy::cast_precision_loss, reason = "a day has few seconds")]
    pub(crate) fn minute(&self, second: usize) -> f64 {
        (self.first_second + second as Nanos) as f64 / 60.0
    }

    /// The sum over a window that ends with each second; shorter at the beginning.
    pub(super) fn trailing(&self, window_seconds: usize) -> Vec<f64> {
        let mut sum = 0.0;
        let mut sums = Vec::with_capacity(self.values.len());
        for (second, value) in self.values.iter().enumerate() {
            sum += value;
            if second >= window_seconds {
                sum -= self.values[second - window_seconds];
            }
            sums.push(sum);
        }
        sums
    }

    /// The correlation of the values with those `lag` seconds before; NaN where they do not vary.
    pub(super) fn autocorrelation(&self, lag: usize) -> f64 {
        let count = crate::actors::number(self.values.len());
        let mean = self.total() / count;
        let variance: f64 = self.values.iter().map(|value| (value - mean) * (value - mean)).sum();
        let pairs = self.values.iter().skip(lag).zip(&self.values);
        let covariance: f64 = pairs.map(|(now, before)| (now - mean) * (before - mean)).sum();
        covariance / variance
    }
}

/// A window's length in whole seconds, at least one.
pub(super) fn seconds(span: seawall_cases::scenario::Span) -> usize {
    usize::try_from(span.nanos / SECOND).unwrap_or(usize::MAX).max(1)
}
