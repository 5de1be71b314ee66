//! The only place that reads a clock: to time steps, and to date what is recorded.

use std::time::{Duration, Instant, SystemTime};

/// A running stopwatch.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts now.
    #[expect(clippy::disallowed_methods, reason = "times steps of the gate for its reader; decides nothing")]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// Today in UTC, as `2026-11-30`.
#[expect(clippy::disallowed_methods, reason = "a recorded measurement carries its date")]
pub fn today() -> String {
    jiff::Timestamp::try_from(SystemTime::now())
        .expect("the system's time lies within the years that jiff knows")
        .strftime("%Y-%m-%d")
        .to_string()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_date_has_three_numeric_parts() {
        let today = super::today();
        let parts: Vec<u32> = today.split('-').map(|part| part.parse().expect("a number")).collect();
        assert_eq!(parts.len(), 3, "{today}");
        assert!(parts[0] >= 2026 && (1..=12).contains(&parts[1]) && (1..=31).contains(&parts[2]), "{today}");
    }
}
