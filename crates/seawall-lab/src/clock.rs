//! The single place of the lab that reads the operating system's clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Nanoseconds since this clock was made.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: tokio::time::Instant,
}

impl Clock {
    /// A clock whose origin is now.
    pub fn start() -> Self {
        Self { origin: tokio::time::Instant::now() }
    }

    /// Nanoseconds since the origin.
    pub fn now(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// The runtime's form of a point on this time line, to sleep until; a point beyond a year is a year.
    pub fn to_tokio(self, nanos: u64) -> tokio::time::Instant {
        let year = Duration::from_hours(24 * 365);
        self.origin + Duration::from_nanos(nanos).min(year)
    }
}

/// Seconds since the Unix epoch; zero on a machine whose clock stands before it.
#[expect(clippy::disallowed_methods, reason = "this module is the place that reads the clock")]
pub fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
