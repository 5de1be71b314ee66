//! Fairness, as far as today's engine has it: of those who wait for a first attempt and may go to the same deployments, the
//! more important class goes first. Within a class the line goes by what can still be met. Fairness between tenants has no
//! mechanism yet, so nothing here looks for it.
//!
//! A request that finds out whether a deployment works again is no exception to anybody's turn: it may be one whose
//! tenant can pay for another attempt, so the host does not ask here about attempts at a deployment that is not healthy.

use seawall_core::settings::{Criticality, Settings};
use std::collections::{BTreeMap, BTreeSet};

/// The names of the boundaries that data may have to stay inside, by number.
#[derive(Clone, Debug)]
pub(crate) struct Boundaries<'a>(Vec<&'a str>);

impl<'a> Boundaries<'a> {
    pub(crate) fn of(settings: &'a Settings) -> Self {
        let tenants = settings.tenants.iter().filter_map(|tenant| tenant.boundary.as_deref());
        let names: BTreeSet<&str> = tenants.collect();
        Self(names.into_iter().collect())
    }

    /// From 1; 0 for none, or for one that no tenant asks for.
    pub(crate) fn number(&self, name: Option<&str>) -> usize {
        let known = name.and_then(|name| self.0.iter().position(|other| *other == name));
        known.map_or(0, |index| index + 1)
    }
}

/// Requests that may go to the same deployments: those of a pool inside a boundary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Lane {
    pub(crate) pool: usize,
    /// The boundary's number; 0: anywhere.
    pub(crate) boundary: usize,
}

/// When it is a request's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Turn {
    lane: Lane,
    class: Criticality,
    number: u64,
}

/// Who waits for a first attempt at one engine.
#[derive(Debug, Default)]
pub(crate) struct ClassOrder {
    lanes: BTreeMap<Lane, BTreeSet<Turn>>,
    arrived: u64,
}

impl ClassOrder {
    /// A request arrives.
    pub(crate) fn arrives(&mut self, lane: Lane, class: Criticality) -> Turn {
        self.arrived += 1;
        Turn { lane, class, number: self.arrived }
    }

    /// It was not let go at once.
    pub(crate) fn waits(&mut self, turn: Turn) {
        self.lanes.entry(turn.lane).or_default().insert(turn);
    }

    /// It waits no more.
    pub(crate) fn leaves(&mut self, turn: Turn) {
        if let Some(lane) = self.lanes.get_mut(&turn.lane) {
            lane.remove(&turn);
            if lane.is_empty() {
                self.lanes.remove(&turn.lane);
            }
        }
    }

    /// The lanes in which somebody waits, and how many.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = (Lane, usize)> {
        self.lanes.iter().map(|(lane, turns)| (*lane, turns.len()))
    }

    /// Whether nobody waits.
    pub(crate) fn is_idle(&self) -> bool {
        self.lanes.is_empty()
    }

    /// A request is let go: whether another one's turn was before.
    pub(crate) fn overtakes(&self, turn: Turn) -> Option<String> {
        let first = self.lanes.get(&turn.lane)?.first().filter(|first| first.class < turn.class)?;
        let (class, other) = (turn.class.name(), first.class.name());
        Some(format!("it lets arrival {} ({class}) go before arrival {} ({other})", turn.number, first.number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LANE: Lane = Lane { pool: 0, boundary: 0 };

    #[test]
    fn class_goes_first_and_another_lane_is_another_line() {
        let mut order = ClassOrder::default();
        let first = order.arrives(LANE, Criticality::Sheddable);
        let second = order.arrives(LANE, Criticality::Critical);
        let third = order.arrives(LANE, Criticality::SheddablePlus);
        let elsewhere = order.arrives(Lane { pool: 1, boundary: 0 }, Criticality::Sheddable);
        let inside = order.arrives(Lane { pool: 0, boundary: 1 }, Criticality::Sheddable);
        for turn in [first, second, third] {
            order.waits(turn);
        }
        assert_eq!((order.waiting().collect::<Vec<_>>(), order.is_idle()), (vec![(LANE, 3)], false));
        assert_eq!((order.overtakes(elsewhere), order.overtakes(inside)), (None, None));
        assert_eq!(order.overtakes(second), None);
        let seen = order.overtakes(third);
        assert_eq!(seen.as_deref(), Some("it lets arrival 3 (sheddable-plus) go before arrival 2 (critical)"));
        let seen = order.overtakes(first);
        assert_eq!(seen.as_deref(), Some("it lets arrival 1 (sheddable) go before arrival 2 (critical)"));
        order.leaves(second);
        order.leaves(third);
        assert_eq!(order.overtakes(first), None);
        order.leaves(first);
        assert!(order.is_idle());
    }

    #[test]
    fn an_arrival_that_does_not_wait_overtakes_those_who_do() {
        let mut order = ClassOrder::default();
        let waiting = order.arrives(LANE, Criticality::Critical);
        order.waits(waiting);
        let arriving = order.arrives(LANE, Criticality::CriticalPlus);
        assert_eq!(order.overtakes(arriving), None);
        // Within a class the engine decides by what can still be met.
        let arriving = order.arrives(LANE, Criticality::Critical);
        assert_eq!(order.overtakes(arriving), None);
        let arriving = order.arrives(LANE, Criticality::Sheddable);
        assert!(order.overtakes(arriving).is_some());
    }
}
