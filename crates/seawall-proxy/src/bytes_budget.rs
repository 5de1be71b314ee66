//! One budget of bytes for all request bodies, and all answers kept for others, that are held (law 5).
//!
//! A reservation is taken before the body is read and lives as long as the body does. At the bound a request is refused
//! at the gate, before its body costs anything.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The budget of the process.
#[derive(Debug)]
pub struct BytesBudget {
    limit: u64,
    used: AtomicU64,
}

/// Bytes taken from the budget; given back when dropped.
#[derive(Debug)]
pub struct Reservation {
    budget: Arc<BytesBudget>,
    bytes: u64,
}

impl BytesBudget {
    /// A budget of `limit` bytes.
    pub fn new(limit: u64) -> Arc<Self> {
        Arc::new(Self { limit, used: AtomicU64::new(0) })
    }

    /// Bytes reserved now.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Takes `bytes`; `None` where they do not fit.
    pub fn reserve(self: &Arc<Self>, bytes: u64) -> Option<Reservation> {
        self.take(bytes).then(|| Reservation { budget: Arc::clone(self), bytes })
    }

    /// Takes `bytes` where no more than half is used then: what can be done without must not refuse requests.
    pub fn reserve_within_half(self: &Arc<Self>, bytes: u64) -> Option<Reservation> {
        self.take_within(bytes, self.limit / 2).then(|| Reservation { budget: Arc::clone(self), bytes })
    }

    fn take(&self, bytes: u64) -> bool {
        self.take_within(bytes, self.limit)
    }

    fn take_within(&self, bytes: u64, limit: u64) -> bool {
        let fits = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= limit);
        self.used.fetch_update(Ordering::AcqRel, Ordering::Relaxed, fits).is_ok()
    }
}

impl Reservation {
    /// Takes more, up to `bytes` in all; `false` where it does not fit, and then nothing changes.
    pub fn grow_to(&mut self, bytes: u64) -> bool {
        let limit = self.budget.limit;
        self.grow_within(bytes, limit)
    }

    /// As [`Reservation::grow_to`], where no more than half of the budget is used then.
    pub fn grow_to_within_half(&mut self, bytes: u64) -> bool {
        let limit = self.budget.limit / 2;
        self.grow_within(bytes, limit)
    }

    /// What it has taken.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    fn grow_within(&mut self, bytes: u64, limit: u64) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        let grown = more == 0 || self.budget.take_within(more, limit);
        if grown {
            self.bytes += more;
        }
        grown
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_exceeds_its_limit_and_gets_everything_back() {
        let budget = BytesBudget::new(100);
        let mut first = budget.reserve(40).unwrap();
        let second = budget.reserve(60).unwrap();
        assert!(budget.reserve(1).is_none());
        assert!(!first.grow_to(41));
        drop(second);
        assert!(first.grow_to(100));
        assert_eq!(budget.used(), 100);
        drop(first);
        assert_eq!(budget.used(), 0);
        assert!(budget.reserve(u64::MAX).is_none());
    }
}
