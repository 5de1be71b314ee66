//! The only place of the program that reads a clock: to say how long something took.

use std::time::{Duration, Instant};

/// A running stopwatch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch {
    begun: Instant,
    processor: Option<Duration>,
}

/// How long something took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Took {
    /// Since it began.
    pub(crate) wall: Duration,
    /// Time in which this thread was on a processor, where the system tells.
    pub(crate) processor: Option<Duration>,
}

impl Took {
    /// What the work itself took: other programs do not count, where the system tells them apart.
    pub(crate) fn work(self) -> Duration {
        self.processor.unwrap_or(self.wall)
    }
}

impl Stopwatch {
    /// Starts now, for this thread.
    #[expect(clippy::disallowed_methods, reason = "tells people how long something took; decides nothing")]
    pub(crate) fn start() -> Self {
        Self { begun: Instant::now(), processor: processor_time() }
    }

    /// What it took since the start.
    pub(crate) fn took(self) -> Took {
        let processor = processor_time().zip(self.processor).map(|(now, begun)| now.saturating_sub(begun));
        Took { wall: self.begun.elapsed(), processor }
    }
}

/// Linux counts the nanoseconds of each thread on a processor.
fn processor_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_not_longer_than_the_time_that_passed() {
        let watch = Stopwatch::start();
        let sum: u64 = (0..200_000_u64).map(|number| number ^ (number << 7)).fold(0, u64::wrapping_add);
        let took = watch.took();
        assert!(sum > 0 && took.wall > Duration::ZERO);
        // The two clocks are read one after the other.
        assert!(took.processor.is_none_or(|processor| processor <= took.wall + Duration::from_millis(50)));
    }
}
