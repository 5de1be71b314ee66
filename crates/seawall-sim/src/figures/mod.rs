//! Figures: numbers that are read from the series of a run, by the scenario's own definitions.
//!
//! A figure that has no value (a wave that never came, a ratio of nothing) is NaN: a check of it fails, unless it asks for
//! exactly that. Times are minutes since midnight.

mod rolling;
mod series;
#[cfg(test)]
mod tests;
mod waves;

use crate::recorder::Recorder;
use seawall_cases::scenario::{Aggregate, Figure, Measure, Nth, Scenario};
pub(crate) use series::Summed;
use std::collections::BTreeMap;

/// The figures of a run, by name. An error names a series or a figure that there is not.
pub fn figures(scenario: &Scenario, scale: f64, recorder: &Recorder) -> Result<BTreeMap<String, f64>, String> {
    let mut values = BTreeMap::new();
    for figure in &scenario.figure {
        let value = Reading { recorder, scale, values: &values }
            .measure(figure)
            .map_err(|mistake| format!("figure `{}`: {mistake}", figure.name))?;
        values.insert(figure.name.clone(), value);
    }
    Ok(values)
}

/// What figures are read from.
struct Reading<'a> {
    recorder: &'a Recorder,
    scale: f64,
    /// The figures that come before this one.
    values: &'a BTreeMap<String, f64>,
}

impl Reading<'_> {
    fn measure(&self, figure: &Figure) -> Result<f64, String> {
        match &figure.measure {
            Measure::Sum(aggregate) => Ok(self.summed(aggregate)?.total()),
            Measure::Rate(aggregate) => {
                let summed = self.summed(aggregate)?;
                Ok(summed.total() / summed.seconds())
            }
            Measure::Ratio(ratio) => {
                let of = Summed::new(self.recorder, &ratio.of, ratio.from, ratio.until)?;
                let window =
                    ratio.to_window.unwrap_or(seawall_cases::scenario::Window { from: ratio.from, until: ratio.until });
                let to = Summed::new(self.recorder, &ratio.to, window.from, window.until)?;
                // Windows of different lengths are compared by what happens in them per second.
                let (of, to) = if ratio.to_window.is_some() {
                    (of.total() / of.seconds(), to.total() / to.seconds())
                } else {
                    (of.total(), to.total())
                };
                Ok(of / to)
            }
            Measure::Rolling(rolling) => rolling::rolling(self.recorder, rolling),
            Measure::Level(rolling) => rolling::level(self.recorder, rolling),
            Measure::First(first) => rolling::first(self.recorder, first),
            Measure::Wave(wave) => waves::measure(self.recorder, wave),
            Measure::Nth(nth) => self.nth(nth),
            Measure::Autocorrelation(wanted) => {
                let summed = Summed::new(self.recorder, &wanted.of, wanted.from, wanted.until)?;
                Ok(summed.autocorrelation(usize::try_from(wanted.lag.nanos / crate::SECOND).unwrap_or(0)))
            }
            Measure::Mark(name) => {
                let mut known = self.recorder.names();
                match self.recorder.mark_value(name) {
                    Some(value) => Ok(value),
                    None if known.any(|known| known == name) => Ok(f64::NAN),
                    None => Err(series::unknown(self.recorder, name)),
                }
            }
            Measure::Difference([left, right]) => Ok(self.value(left)? - self.value(right)?),
            Measure::Quotient([above, below]) => Ok(self.value(above)? / self.value(below)?),
            Measure::Least(names) => self.fold(names, f64::min),
            Measure::Greatest(names) => self.fold(names, f64::max),
        }
    }

    fn summed(&self, aggregate: &Aggregate) -> Result<Summed, String> {
        Summed::new(self.recorder, &aggregate.of, aggregate.from, aggregate.until)
    }

    fn nth(&self, nth: &Nth) -> Result<f64, String> {
        let summed = Summed::new(self.recorder, &nth.of, nth.from, None)?;
        let wanted = (f64::from(nth.number) * self.scale).max(1.0);
        let mut seen = 0.0;
        for (second, value) in summed.values.iter().enumerate() {
            seen += value;
            if seen >= wanted {
                return Ok(summed.minute(second));
            }
        }
        Ok(f64::NAN)
    }

    /// The value of a figure that comes before.
    fn value(&self, name: &str) -> Result<f64, String> {
        self.values
            .get(name)
            .copied()
            .ok_or_else(|| format!("there is no figure `{name}` before this one; move it up, or correct its name"))
    }

    fn fold(&self, names: &[String], pick: impl Fn(f64, f64) -> f64) -> Result<f64, String> {
        let mut all = names.iter().map(|name| self.value(name));
        let Some(first) = all.next() else { return Ok(f64::NAN) };
        // A figure without a value makes the whole have none.
        all.try_fold(first?, |so_far, next| {
            let next = next?;
            Ok(if so_far.is_nan() || next.is_nan() { f64::NAN } else { pick(so_far, next) })
        })
    }
}
