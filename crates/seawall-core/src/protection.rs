//! The protections of a pool, each of which can be switched off: to see what it buys (an ablation), or because it is in
//! somebody's way (law 12).
//!
//! Some are a constant of the settings, and off is the value at which they do nothing: [`Protections::apply`] sets those.
//! The others are asked about where they act, with [`Protections::has`].

use crate::settings::PoolSettings;
use crate::time::Duration;

/// Something that a pool does so that it stays up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protection {
    /// No more is sent to a deployment than it is found to do at once; the rest waits here.
    CapacityDiscovery,
    /// After a throttle answer, or one that says that nothing is left of a limit, nothing is sent until that is over.
    StatedWaits,
    /// Nobody waits for longer than a caller would.
    BoundedWait,
    /// The wait is what the callers of a tenant were seen to bear, where that is less.
    LearnedPatience,
    /// Who cannot be served in time is refused on arrival.
    ArrivalTest,
    /// A request is sent only while there is time left to answer it.
    DeadlineHeadroom,
    /// Repeats join what runs, and what a client has left behind is held for it. Without it no repeat
    /// is known as one.
    FlightTable,
    /// A repeat of what has reached an upstream is paid for while there is trouble, and keeps its first one's time.
    RepeatStanding,
    /// Second attempts are a share of first ones.
    RetryBudget,
    /// Who is refused is told a time of its own at which there is room.
    ReturnCalendar,
    /// A deployment that fails is taken out.
    Ejection,
    /// Where most are out, load goes to all.
    PanicMode,
    /// What comes back is given less than its share at first.
    SlowStart,
}

impl Protection {
    /// All of them, in the order in which a request meets them.
    pub const ALL: [Self; 13] = [
        Self::CapacityDiscovery,
        Self::StatedWaits,
        Self::BoundedWait,
        Self::LearnedPatience,
        Self::ArrivalTest,
        Self::DeadlineHeadroom,
        Self::FlightTable,
        Self::RepeatStanding,
        Self::RetryBudget,
        Self::ReturnCalendar,
        Self::Ejection,
        Self::PanicMode,
        Self::SlowStart,
    ];

    /// The name on the command line and in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CapacityDiscovery => "capacity-discovery",
            Self::StatedWaits => "stated-waits",
            Self::BoundedWait => "bounded-wait",
            Self::LearnedPatience => "learned-patience",
            Self::ArrivalTest => "arrival-test",
            Self::DeadlineHeadroom => "deadline-headroom",
            Self::FlightTable => "flight-table",
            Self::RepeatStanding => "repeat-standing",
            Self::RetryBudget => "retry-budget",
            Self::ReturnCalendar => "return-calendar",
            Self::Ejection => "ejection",
            Self::PanicMode => "panic-mode",
            Self::SlowStart => "slow-start",
        }
    }

    /// The one of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|protection| protection.name() == name)
    }

    const fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// Which protections a pool has: all of them, unless some are switched off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Protections {
    /// A bit for each one that is off.
    off: u32,
}

impl Protections {
    /// These without `protection`.
    #[must_use]
    pub const fn without(self, protection: Protection) -> Self {
        Self { off: self.off | protection.bit() }
    }

    /// Whether it is on.
    pub const fn has(self, protection: Protection) -> bool {
        self.off & protection.bit() == 0
    }

    /// Sets the constants of the protections that are off to what does nothing.
    pub(crate) fn apply(self, pool: &mut PoolSettings) {
        let is_off = |protection| !self.has(protection);
        if is_off(Protection::BoundedWait) {
            pool.queue.patience = Duration::from_hours(24);
        }
        if is_off(Protection::RetryBudget) {
            pool.retry.budget_percent = UNLIMITED_PERCENT;
            pool.retry.not_sent_percent = UNLIMITED_PERCENT;
        }
        if is_off(Protection::Ejection) {
            pool.ejection.consecutive_failures = u32::MAX;
            pool.ejection.minimum_outcomes = u32::MAX;
        }
        if is_off(Protection::PanicMode) {
            pool.ejection.panic_percent = 0;
        }
        if is_off(Protection::SlowStart) {
            pool.ejection.slow_start = Duration::ZERO;
        }
    }
}

/// More second attempts than there can be.
const UNLIMITED_PERCENT: u32 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_name_and_is_switched_off_alone() {
        for protection in Protection::ALL {
            assert_eq!(Protection::from_name(protection.name()), Some(protection));
            let without = Protections::default().without(protection);
            let on = Protection::ALL.into_iter().filter(|other| without.has(*other));
            assert_eq!(on.count(), Protection::ALL.len() - 1);
            assert!(!without.has(protection));
        }
        assert_eq!(Protection::from_name("no-such"), None);
    }
}
