//! Extremes over moving windows, and when a bound is first passed.

use super::series::{Summed, seconds};
use crate::recorder::Recorder;
use seawall_cases::scenario::{First, Pick, Rolling};

/// The value over a window that ends with each second: a ratio of sums, a rate per second, or the mean of a level.
/// `None` where the window is not full yet.
fn moving(of: &Summed, to: Option<&Summed>, window: usize) -> Vec<Option<f64>> {
    let above = of.trailing(window);
    let below = to.map(|to| to.trailing(window));
    let length = crate::actors::number(window);
    let value = |second: usize| match &below {
        Some(below) if below[second] > 0.0 => above[second] / below[second],
        Some(_) => f64::NAN,
        None => above[second] / length,
    };
    (0..above.len()).map(|second| (second + 1 >= window).then(|| value(second))).collect()
}

fn pick(values: &[Option<f64>], pick: Pick, minute: impl Fn(usize) -> f64) -> f64 {
    let known =
        || values.iter().enumerate().filter_map(|(second, value)| Some((second, (*value).filter(|v| !v.is_nan())?)));
    let count = known().count();
    if count == 0 {
        return f64::NAN;
    }
    let mean = known().map(|(_, value)| value).sum::<f64>() / crate::actors::number(count);
    let greatest = known().fold((0, f64::NEG_INFINITY), |best, next| if next.1 > best.1 { next } else { best });
    match pick {
        Pick::Greatest => greatest.1,
        Pick::Least => known().map(|(_, value)| value).fold(f64::INFINITY, f64::min),
        Pick::Mean => mean,
        Pick::Spread => known().map(|(_, value)| (value / mean - 1.0).abs()).fold(0.0, f64::max),
        Pick::WhenGreatest => minute(greatest.0),
    }
}

pub(super) fn rolling(recorder: &Recorder, wanted: &Rolling) -> Result<f64, String> {
    let of = Summed::new(recorder, &wanted.of, wanted.from, wanted.until)?;
    let to = below(recorder, wanted)?;
    let values = moving(&of, to.as_ref(), seconds(wanted.window));
    Ok(pick(&values, wanted.pick, |second| of.minute(second)))
}

fn below(recorder: &Recorder, wanted: &Rolling) -> Result<Option<Summed>, String> {
    if wanted.to.is_empty() {
        return Ok(None);
    }
    Summed::new(recorder, &wanted.to, wanted.from, wanted.until).map(Some)
}

/// As [`rolling`], second by second without a window.
pub(super) fn level(recorder: &Recorder, wanted: &Rolling) -> Result<f64, String> {
    let of = Summed::new(recorder, &wanted.of, wanted.from, wanted.until)?;
    let to = below(recorder, wanted)?;
    let values = moving(&of, to.as_ref(), 1);
    Ok(pick(&values, wanted.pick, |second| of.minute(second)))
}

pub(super) fn first(recorder: &Recorder, wanted: &First) -> Result<f64, String> {
    let of = Summed::new(recorder, &wanted.of, wanted.from, wanted.until)?;
    let to =
        if wanted.to.is_empty() { None } else { Some(Summed::new(recorder, &wanted.to, wanted.from, wanted.until)?) };
    let values = moving(&of, to.as_ref(), seconds(wanted.window));
    let passes =
        |value: f64| wanted.above.is_none_or(|above| value > above) && wanted.below.is_none_or(|below| value < below);
    let holds = usize::try_from(wanted.holds.nanos / crate::SECOND).unwrap_or(usize::MAX);
    let mut since: Option<usize> = None;
    for (second, value) in values.iter().enumerate() {
        // A second without traffic neither passes nor breaks what has been passed.
        match value {
            Some(value) if passes(*value) => {}
            Some(value) if value.is_nan() && since.is_some() => {}
            _ => {
                since = None;
                continue;
            }
        }
        let begin = *since.get_or_insert(second);
        if second - begin >= holds {
            return Ok(of.minute(if wanted.at_end { second } else { begin }));
        }
    }
    Ok(f64::NAN)
}
