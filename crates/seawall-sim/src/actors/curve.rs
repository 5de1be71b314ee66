//! How a rate follows the day.

use crate::Nanos;
use seawall_cases::scenario::RampPoint;

/// The factor of a curve at a time: straight lines between its corners.
#[expect(clippy::cast_precision_loss, reason = "spans are far below 2^53 microseconds")]
pub(super) fn factor(curve: &[RampPoint], now: Nanos) -> f64 {
    let after = curve.partition_point(|point| point.0.nanos <= now);
    match (after.checked_sub(1).map(|index| curve[index]), curve.get(after)) {
        (None, None) => 1.0,
        (None, Some(only)) => only.1,
        (Some(only), None) => only.1,
        (Some(left), Some(right)) => {
            let part = (now - left.0.nanos) as f64 / (right.0.nanos - left.0.nanos) as f64;
            left.1 + (right.1 - left.1) * part
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::nanos;
    use seawall_cases::scenario::Clock;

    #[test]
    fn a_curve_is_straight_between_its_corners() {
        let at = |text: &str| Clock::parse(text).expect("a time");
        let curve = [RampPoint(at("10:00"), 1.0), RampPoint(at("11:00"), 2.0)];
        let factors = ["09:00", "10:00", "10:30", "11:00", "12:00"].map(|time| factor(&curve, at(time).nanos));
        assert_eq!(factors.map(nanos_of), [1000, 1000, 1500, 2000, 2000]);
        assert_eq!(nanos_of(factor(&[], 5)), 1000);
    }

    fn nanos_of(value: f64) -> u64 {
        nanos(value * 1000.0)
    }
}
