//! The single place of the data plane that reads the operating system's clock.

use seawall_core::time::Instant;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The engine's time: nanoseconds since this clock was made.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: std::time::Instant,
}

impl Clock {
    /// A clock whose origin is now.
    #[expect(clippy::disallowed_methods, reason = "this module is the place that reads the clock")]
    pub fn start() -> Self {
        Self { origin: std::time::Instant::now() }
    }

    /// Now, on the engine's time line.
    pub fn now(&self) -> Instant {
        Instant::from_nanos(u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// The runtime's form of a point on the engine's time line, to sleep until.
    pub fn to_tokio(self, at: Instant) -> tokio::time::Instant {
        let since_origin = Duration::from_nanos(at.as_nanos());
        let far = Duration::from_hours(24 * 365);
        tokio::time::Instant::from_std(self.origin + since_origin.min(far))
    }
}

/// Seconds since the Unix epoch.
pub fn unix_seconds() -> u64 {
    unix_time().as_secs()
}

/// Time since the Unix epoch; zero on a machine whose clock stands before it.
#[expect(clippy::disallowed_methods, reason = "this module is the place that reads the clock")]
pub fn unix_time() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
