//! The retry budget: what a pool's extra attempts are paid from.
//!
//! A count of retries for each request multiplies load when everything fails; a budget bounds the extra work to a share
//! of the first attempts, whatever fails (Finagle's and linkerd's retry budget; "Addressing Cascading Failures", Google
//! SRE book). Ours is per pool and tenant: a tenant spends its own share, and the floor that lets a quiet pool retry at
//! all is shared out equally among the tenants that are active, so that one cannot drain it for the others.

use crate::id::TenantId;
use crate::time::{Duration, Instant};
use crate::window::Window;
use alloc::collections::BTreeMap;

/// A budget of one pool: `percent` of each tenant's first attempts over `window`, plus a floor for the whole pool.
#[derive(Clone, Debug)]
pub struct Budget {
    percent: u32,
    /// Attempts that the floor pays in one window.
    floor: u32,
    window: Duration,
    floor_spent: Window,
    tenants: BTreeMap<TenantId, Ledger>,
}

#[derive(Clone, Debug)]
struct Ledger {
    first_attempts: Window,
    spent: Window,
    floor_spent: Window,
}

impl Budget {
    /// An empty budget.
    pub fn new(percent: u32, floor_per_second: u32, window: Duration) -> Self {
        let floor = u64::from(floor_per_second) * window.as_secs().max(1);
        Self {
            percent,
            floor: u32::try_from(floor).unwrap_or(u32::MAX),
            window,
            floor_spent: Window::new(window),
            tenants: BTreeMap::new(),
        }
    }

    /// Counts a first attempt of `tenant`.
    pub fn deposit(&mut self, now: Instant, tenant: TenantId) {
        self.ledger(tenant).first_attempts.add(now, 1);
    }

    /// Whether [`Self::withdraw`] would pay, without paying.
    pub fn can_withdraw(&mut self, now: Instant, tenant: TenantId) -> bool {
        self.source(now, tenant).is_some()
    }

    /// Pays for one extra attempt of `tenant`; `false` where neither its share nor the floor has anything left.
    pub fn withdraw(&mut self, now: Instant, tenant: TenantId) -> bool {
        let source = self.source(now, tenant);
        self.pay(now, tenant, source)
    }

    /// Pays for one extra attempt of `tenant` from the floor alone. Where nothing works, all that it can do is to find
    /// out whether that has changed, and one a second is enough for that.
    pub fn withdraw_from_floor(&mut self, now: Instant, tenant: TenantId) -> bool {
        let source = self.floor_of(now, tenant);
        self.pay(now, tenant, source)
    }

    fn pay(&mut self, now: Instant, tenant: TenantId, source: Option<Source>) -> bool {
        match source {
            None => false,
            Some(Source::Share) => {
                self.ledger(tenant).spent.add(now, 1);
                true
            }
            Some(Source::Floor) => {
                self.floor_spent.add(now, 1);
                self.ledger(tenant).floor_spent.add(now, 1);
                true
            }
        }
    }

    fn source(&mut self, now: Instant, tenant: TenantId) -> Option<Source> {
        let percent = u64::from(self.percent);
        let ledger = self.ledger(tenant);
        let share = u64::from(ledger.first_attempts.sum(now)) * percent / 100;
        if u64::from(ledger.spent.sum(now)) < share {
            return Some(Source::Share);
        }
        self.floor_of(now, tenant)
    }

    fn floor_of(&mut self, now: Instant, tenant: TenantId) -> Option<Source> {
        if self.floor_spent.sum(now) >= self.floor {
            return None;
        }
        let active = self.active(now, tenant);
        let spent = self.ledger(tenant).floor_spent.sum(now);
        (spent < self.floor.div_ceil(active)).then_some(Source::Floor)
    }

    /// Tenants with first attempts in the window, the asking one always among them.
    fn active(&mut self, now: Instant, asking: TenantId) -> u32 {
        let others = self
            .tenants
            .iter_mut()
            .filter_map(|(tenant, ledger)| (*tenant != asking && ledger.first_attempts.sum(now) > 0).then_some(()))
            .count();
        u32::try_from(others).unwrap_or(u32::MAX - 1) + 1
    }

    fn ledger(&mut self, tenant: TenantId) -> &mut Ledger {
        let window = self.window;
        self.tenants.entry(tenant).or_insert_with(|| Ledger {
            first_attempts: Window::new(window),
            spent: Window::new(window),
            floor_spent: Window::new(window),
        })
    }
}

#[derive(Clone, Copy)]
enum Source {
    Share,
    Floor,
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: TenantId = TenantId(0);
    const B: TenantId = TenantId(1);

    fn drain(budget: &mut Budget, now: Instant, tenant: TenantId) -> u32 {
        (0..1_000).take_while(|_| budget.withdraw(now, tenant)).count().try_into().unwrap()
    }

    #[test]
    fn pays_the_share_and_the_floor_and_no_more() {
        let mut budget = Budget::new(10, 1, Duration::from_secs(10));
        let now = Instant::from_millis(5_000);
        for _ in 0..200 {
            budget.deposit(now, A);
        }
        assert_eq!(drain(&mut budget, now, A), 20 + 10);
        assert!(!budget.can_withdraw(now, A));
        // Ten seconds later the deposits are forgotten and the floor is full again.
        assert_eq!(drain(&mut budget, Instant::from_millis(15_000), A), 10);
    }

    #[test]
    fn the_floor_alone_pays_no_share() {
        let mut budget = Budget::new(10, 1, Duration::from_secs(10));
        let now = Instant::from_millis(5_000);
        for _ in 0..200 {
            budget.deposit(now, A);
        }
        assert_eq!((0..100).filter(|_| budget.withdraw_from_floor(now, A)).count(), 10);
        assert_eq!(drain(&mut budget, now, A), 20);
    }

    #[test]
    fn one_tenant_cannot_drain_the_floor_of_another() {
        let mut budget = Budget::new(10, 1, Duration::from_secs(10));
        let now = Instant::from_millis(1_000);
        budget.deposit(now, A);
        budget.deposit(now, B);
        assert_eq!(drain(&mut budget, now, A), 5);
        assert_eq!(drain(&mut budget, now, B), 5);
    }
}
