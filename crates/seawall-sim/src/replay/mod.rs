//! A case is run: as it happened, observed, with Seawall, and with something changed; then its checks are judged.

mod case;
mod judge;
mod run;

use seawall_core::protection::Protection;

pub use case::Case;
pub use judge::{CheckResult, Verdict};
pub use run::{Outcome, Part, SeedRuns, Step, Study, Varied};

/// The protections that cases ask for and that today's engine does not have; those that it has are
/// [`Protection::ALL`].
pub const TO_COME: [&str; 6] =
    ["fair-queue", "size-lane", "durable-results", "quarantine", "stale-serving", "detection"];

/// Whether today's engine has a protection.
pub fn exists(protection: &str) -> bool {
    Protection::from_name(protection).is_some()
}
