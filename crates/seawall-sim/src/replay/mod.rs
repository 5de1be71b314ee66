//! A case is run: as it happened, observed, with Seawall, and with something changed; then its checks are judged.

mod case;
mod judge;
mod run;

pub use case::Case;
pub use judge::{CheckResult, Verdict};
pub use run::{Outcome, Part, SeedRuns, Step, Study, Varied};

/// The protections that can be switched off to see what each one buys, and whether today's engine has them.
pub const PROTECTIONS: [(&str, bool); 13] = [
    ("retry-budget", true),
    ("repeat-standing", false),
    ("bounded-wait", true),
    ("deadline-headroom", false),
    ("fair-queue", false),
    ("size-lane", false),
    ("flight-table", false),
    ("durable-results", false),
    ("return-calendar", false),
    ("quarantine", false),
    ("stale-serving", false),
    ("panic-mode", true),
    ("detection", false),
];

/// Whether today's engine has a protection.
pub fn exists(protection: &str) -> bool {
    PROTECTIONS.iter().any(|(name, exists)| *name == protection && *exists)
}
