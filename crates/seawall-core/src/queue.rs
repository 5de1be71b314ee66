//! The waiting line of a pool: by class, then by arrival; a request that comes back keeps its place.

use crate::id::RequestId;
use crate::settings::Criticality;
use alloc::collections::BTreeMap;

/// The place of a request: smaller goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Its class.
    pub criticality: Criticality,
    /// Its number of arrival, which it keeps over its attempts.
    pub sequence: u64,
}

/// Requests that wait for a deployment with room.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    waiting: BTreeMap<Place, RequestId>,
}

impl Queue {
    /// How many wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// How many stand at or before `place`.
    pub fn ahead_of(&self, place: Place) -> usize {
        self.waiting.range(..=place).count()
    }

    /// Puts a request in its place.
    pub fn insert(&mut self, place: Place, request: RequestId) {
        self.waiting.insert(place, request);
    }

    /// Takes a request out; `false` where it did not wait.
    pub fn remove(&mut self, place: Place) -> bool {
        self.waiting.remove(&place).is_some()
    }

    /// The first one after `place`, or the very first for `None`.
    pub fn next_after(&self, place: Option<Place>) -> Option<(Place, RequestId)> {
        let lower = place.map_or(core::ops::Bound::Unbounded, core::ops::Bound::Excluded);
        self.waiting.range((lower, core::ops::Bound::Unbounded)).next().map(|(place, request)| (*place, *request))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_first_then_arrival() {
        let mut queue = Queue::default();
        let place = |criticality, sequence| Place { criticality, sequence };
        queue.insert(place(Criticality::Sheddable, 1), RequestId(1));
        queue.insert(place(Criticality::Critical, 3), RequestId(3));
        queue.insert(place(Criticality::Critical, 2), RequestId(2));
        let (first, request) = queue.next_after(None).unwrap();
        assert_eq!(request, RequestId(2));
        assert_eq!(queue.next_after(Some(first)).unwrap().1, RequestId(3));
        assert_eq!(queue.ahead_of(place(Criticality::Sheddable, 0)), 2);
        assert!(queue.remove(first));
        assert!(!queue.remove(first));
    }
}
