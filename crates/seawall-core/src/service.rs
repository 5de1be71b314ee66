//! How long a pool's upstreams take to answer, as order statistics over the last answers.
//!
//! Quantiles of the last answers, and not an average over time: they follow a brown-out after a few answers, and a
//! single long answer moves none of them. The ninth decile is the headroom that a waiting request needs to be answered in
//! time: the mean lets too many answers come late, and the 99th percentile of so few is their maximum, which
//! empties the line after a slow answer (measured in the prototype of this engine).

use crate::latest::Latest;
use crate::time::Duration;

/// Answers that are remembered: enough for a ninth decile, few enough to follow a change.
const KEPT: usize = 64;
/// Below so many answers nothing is known.
const FEWEST: usize = 5;
/// Added to the ninth decile: what the way there and back takes.
const MARGIN: Duration = Duration::from_millis(50);

/// The times from dispatch to the first byte of the last answers.
#[derive(Clone, Debug, Default)]
pub struct ServiceTimes(Latest<Duration, KEPT>);

impl ServiceTimes {
    /// An answer began `time` after its dispatch.
    pub fn observe(&mut self, time: Duration) {
        self.0.observe(time);
    }

    /// What is left of the time to an answer's limit when it has to be sent, so that nine of ten come in time. Zero while
    /// too little is known.
    pub fn headroom(&self) -> Duration {
        self.quantile(9, 10).map_or(Duration::ZERO, |time| time + MARGIN)
    }

    /// The least time that has to be left so that sending a request is worth anything: one of four answers takes no
    /// longer. Zero while too little is known.
    pub fn least(&self) -> Duration {
        self.quantile(1, 4).unwrap_or(Duration::ZERO)
    }

    /// The middle one; `None` while too little is known.
    pub fn median(&self) -> Option<Duration> {
        self.quantile(1, 2)
    }

    fn quantile(&self, part: usize, of: usize) -> Option<Duration> {
        if self.0.len() < FEWEST { None } else { self.0.quantile(part, of) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_last_answers() {
        let mut times = ServiceTimes::default();
        for millis in [40, 10, 30, 20] {
            times.observe(Duration::from_millis(millis));
        }
        assert_eq!((times.headroom(), times.least(), times.median()), (Duration::ZERO, Duration::ZERO, None));
        for millis in 5..=10 {
            times.observe(Duration::from_millis(millis * 10));
        }
        // 10 20 30 40 50 .. 100 ms.
        assert_eq!(times.headroom(), Duration::from_millis(90 + 50));
        assert_eq!(times.least(), Duration::from_millis(30));
        assert_eq!(times.median(), Some(Duration::from_millis(50)));
        for _ in 0..64 {
            times.observe(Duration::from_millis(7));
        }
        assert_eq!((times.headroom(), times.0.len()), (Duration::from_millis(57), 64));
    }
}
