//! The waiting line of a pool: by class, then by arrival; a request that comes back keeps its place.
//!
//! Requests that can go to the same deployments, and are paid for alike, stand in one lane. When there is no room for the
//! head of a lane there is none for the rest of it, so letting go looks at heads only, however many wait.

use crate::id::{DeploymentId, RequestId, TenantId};
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

/// What decides whether there is room for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lane {
    /// The number of the boundary it must stay inside; 0 for any.
    pub boundary: u16,
    /// A deployment it must not go to again.
    pub exclude: Option<DeploymentId>,
    /// Who pays for its next attempt; `None` for a first one, which admission has paid for.
    pub payer: Option<TenantId>,
}

/// Requests that wait for a deployment with room.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    lanes: BTreeMap<Lane, BTreeMap<Place, RequestId>>,
    len: usize,
}

impl Queue {
    /// How many wait.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether nobody waits.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many stand at or before `place`.
    pub fn ahead_of(&self, place: Place) -> usize {
        self.lanes.values().map(|lane| lane.range(..=place).count()).sum()
    }

    /// Puts a request in its place.
    pub fn insert(&mut self, lane: Lane, place: Place, request: RequestId) {
        if self.lanes.entry(lane).or_default().insert(place, request).is_none() {
            self.len += 1;
        }
    }

    /// Takes a request out; `false` where it did not wait there.
    pub fn remove(&mut self, lane: Lane, place: Place) -> bool {
        let Some(waiting) = self.lanes.get_mut(&lane) else { return false };
        let removed = waiting.remove(&place).is_some();
        if waiting.is_empty() {
            self.lanes.remove(&lane);
        }
        self.len -= usize::from(removed);
        removed
    }

    /// The first one in `lane`.
    pub fn head(&self, lane: Lane) -> Option<(Place, RequestId)> {
        self.lanes.get(&lane)?.first_key_value().map(|(place, request)| (*place, *request))
    }

    /// The first one of each lane.
    pub fn heads(&self) -> impl Iterator<Item = (Place, Lane)> {
        self.lanes.iter().filter_map(|(lane, waiting)| Some((*waiting.first_key_value()?.0, *lane)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn class_first_then_arrival_in_each_lane() {
        let mut queue = Queue::default();
        let place = |criticality, sequence| Place { criticality, sequence };
        let lane = |boundary| Lane { boundary, exclude: None, payer: None };
        queue.insert(lane(0), place(Criticality::Sheddable, 1), RequestId(1));
        queue.insert(lane(0), place(Criticality::Critical, 3), RequestId(3));
        queue.insert(lane(0), place(Criticality::Critical, 2), RequestId(2));
        queue.insert(lane(1), place(Criticality::Critical, 4), RequestId(4));
        let (first, request) = queue.head(lane(0)).unwrap();
        assert_eq!(request, RequestId(2));
        let heads: Vec<_> = queue.heads().map(|(place, lane)| (place.sequence, lane.boundary)).collect();
        assert_eq!(heads, [(2, 0), (4, 1)]);
        assert_eq!(queue.ahead_of(place(Criticality::Sheddable, 0)), 3);
        assert_eq!(queue.len(), 4);
        assert!(!queue.remove(lane(1), first));
        assert!(queue.remove(lane(0), first));
        assert!(!queue.remove(lane(0), first));
        assert!(queue.remove(lane(1), place(Criticality::Critical, 4)));
        assert_eq!((queue.len(), queue.heads().count()), (2, 1));
    }
}
