//! The clock of the runtime's timers, by which calls are scheduled and measured. The wall clock is `crate::clock`.

use tokio::time::Instant;

/// Now.
pub(super) fn now() -> Instant {
    Instant::now()
}
