//! Which numbers and times stand at an axis.

/// A round number that is no less than `most`: 1, 1.5, 2, 3, 4, 6 or 8 times a power of ten; 1 where there is nothing to show.
pub(super) fn round_up(most: f64) -> f64 {
    if !(most > 0.0 && most.is_finite()) {
        return 1.0;
    }
    let power = 10_f64.powf(most.log10().floor());
    let steps = [1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0];
    // A hair of room for what the division rounds.
    let step = steps.into_iter().find(|step| most <= step * power * (1.0 + 1e-9)).unwrap_or(10.0);
    step * power
}

/// Round times between two times, all in minutes since midnight: as many as fit well, `most` at the utmost.
pub(super) fn times(start: f64, end: f64, most: u32) -> Vec<f64> {
    let steps = [1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 180.0, 360.0, 720.0];
    let fits = |step: &f64| (end - start) / step <= f64::from(most);
    let step = steps.into_iter().find(fits).unwrap_or(1440.0);
    let first = (start / step).ceil();
    let times = (0..=most).map(|number| (first + f64::from(number)) * step);
    times.take_while(|time| *time <= end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_near(left: f64, right: f64) -> bool {
        (left - right).abs() < 1e-9 * right.abs().max(1.0)
    }

    #[test]
    fn an_axis_ends_at_a_round_number() {
        for (most, end) in
            [(0.0, 1.0), (f64::NAN, 1.0), (0.93, 1.0), (1.0, 1.0), (105.0, 150.0), (2100.0, 3000.0), (0.05, 0.06)]
        {
            assert!(is_near(round_up(most), end), "{most}: {}", round_up(most));
        }
    }

    #[test]
    fn times_are_round_and_few() {
        assert_eq!(times(540.0, 1080.0, 12), [540.0, 600.0, 660.0, 720.0, 780.0, 840.0, 900.0, 960.0, 1020.0, 1080.0]);
        assert_eq!(times(541.5, 555.0, 12), [542.0, 544.0, 546.0, 548.0, 550.0, 552.0, 554.0]);
        assert_eq!(times(0.0, 2880.0, 12).len(), 9);
    }
}
