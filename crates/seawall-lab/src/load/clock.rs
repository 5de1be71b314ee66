//! The only place of the load generator that reads a clock.

use std::time::{SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// The monotonic clock of the runtime's timers.
pub(super) fn now() -> Instant {
    Instant::now()
}

/// Seconds since 1970, by which clients read a date in `retry-after`.
#[expect(clippy::disallowed_methods, reason = "this is the load generator's clock module")]
pub(super) fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
