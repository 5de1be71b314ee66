//! Waves: times in which a ratio over a centred window stays above a bound.

use super::series::{Summed, seconds};
use crate::recorder::Recorder;
use seawall_cases::scenario::{Wave, WavePart};

/// The seconds of one wave: the first, and the one after the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Spell {
    begin: usize,
    end: usize,
}

/// The spells in which `values` is above the bound, joined over short gaps, without short ones.
fn spells(values: &[f64], above: f64, joins: usize, least: usize) -> Vec<Spell> {
    let mut spells: Vec<Spell> = Vec::new();
    for second in (0..values.len()).filter(|second| values[*second] > above) {
        match spells.last_mut() {
            Some(before) if second - before.end <= joins => before.end = second + 1,
            _ => spells.push(Spell { begin: second, end: second + 1 }),
        }
    }
    spells.retain(|spell| spell.end - spell.begin >= least);
    spells
}

/// The ratio over a window around each second; 0 where nothing happened in it.
fn centred(of: &Summed, to: &Summed, window: usize) -> Vec<f64> {
    let (above, below) = (of.trailing(window), to.trailing(window));
    let last = above.len().saturating_sub(1);
    (0..above.len())
        .map(|second| {
            let end = (second + window / 2).min(last);
            if below[end] > 0.0 { above[end] / below[end] } else { 0.0 }
        })
        .collect()
}

pub(super) fn measure(recorder: &Recorder, wanted: &Wave) -> Result<f64, String> {
    let of = Summed::new(recorder, &wanted.of, wanted.from, wanted.until)?;
    let to = Summed::new(recorder, &wanted.to, wanted.from, wanted.until)?;
    let values = centred(&of, &to, seconds(wanted.window));
    let joins = usize::try_from(wanted.joins.nanos / crate::SECOND).unwrap_or(0);
    let least = usize::try_from(wanted.least.nanos / crate::SECOND).unwrap_or(0);
    let all = spells(&values, wanted.above, joins, least);
    if wanted.part == WavePart::Count {
        return Ok(crate::actors::number(all.len()));
    }
    let chosen: Vec<Spell> = match wanted.number {
        None => all,
        Some(number) => {
            let index = usize::try_from(number).unwrap_or(usize::MAX).wrapping_sub(1);
            all.get(index).copied().into_iter().collect()
        }
    };
    let (Some(opening), Some(closing)) = (chosen.first(), chosen.last()) else { return Ok(f64::NAN) };
    let length: usize = chosen.iter().map(|spell| spell.end - spell.begin).sum();
    let sum = |summed: &Summed| -> f64 {
        chosen.iter().map(|spell| summed.values[spell.begin..spell.end].iter().sum::<f64>()).sum()
    };
    Ok(match wanted.part {
        WavePart::Count | WavePart::Begin => of.minute(opening.begin),
        WavePart::End if closing.end >= of.values.len() => f64::NAN,
        WavePart::End => of.minute(closing.end),
        WavePart::Minutes => crate::actors::number(length) / 60.0,
        WavePart::Sum => sum(&of),
        WavePart::Rate => sum(&of) / crate::actors::number(length),
        WavePart::Ratio => sum(&of) / sum(&to),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_gaps_are_joined_and_short_waves_dropped() {
        let values = [0.0, 0.5, 0.5, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.5, 0.0, 0.5, 0.5, 0.5];
        assert_eq!(spells(&values, 0.25, 1, 2), [Spell { begin: 1, end: 5 }, Spell { begin: 9, end: 14 }]);
        assert_eq!(spells(&values, 0.25, 0, 3), [Spell { begin: 11, end: 14 }]);
        assert_eq!(spells(&values, 0.6, 0, 0), []);
    }
}
