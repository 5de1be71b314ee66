//! The waiting line of a pool: by class, then by the earliest due time that can still be met.
//!
//! Within a class the request goes first whose due time comes first among those that are *safe*: nine of ten answers
//! that begin now would come before it. Where none is safe, the one with most time left goes: it has the best chance. Plain
//! earliest-deadline-first serves those whose time is nearly over when the pool is overloaded, and they are late;
//! newest-first costs goodput (both measured in the prototype of this engine). A request that comes back keeps its place.
//!
//! Requests that can go to the same deployments, and are paid for alike, stand in one lane. When there is no room for the
//! head of a lane there is none for the rest of it, so letting go looks at heads only, however many wait.

use crate::cost::Work;
use crate::id::{DeploymentId, RequestId, TenantId};
use crate::settings::Criticality;
use crate::time::{Duration, Instant};
use alloc::collections::BTreeMap;

/// Due times are counted in steps of this, for the question how many go before another one.
const STEP_NANOS: u64 = 250_000_000;

/// The place of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Its class.
    pub criticality: Criticality,
    /// What the due time comes from.
    pub bound: Bound,
    /// By when it has to be answered (a stated deadline), or is expected to be (patience).
    pub due: Instant,
    /// Its number of arrival, which it keeps over its attempts.
    pub sequence: u64,
}

/// What a due time comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bound {
    /// The caller stated it, and it bounds the service too.
    Deadline,
    /// It is how long callers are thought to wait; it bounds the wait in the line and not the service.
    Patience,
}

/// How long before its due time a request has to be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Headroom {
    /// Where the due time is a stated deadline.
    pub deadline: Duration,
    /// Where it is patience.
    pub patience: Duration,
}

impl Headroom {
    /// The one for this kind of due time.
    pub const fn of(self, bound: Bound) -> Duration {
        match bound {
            Bound::Deadline => self.deadline,
            Bound::Patience => self.patience,
        }
    }
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

/// Whose turn it is: the smaller one's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Turn {
    criticality: Criticality,
    is_unsafe: bool,
    /// The due time; counted back from the end of time where it is not safe.
    key: u64,
    sequence: u64,
}

/// Requests that wait for a deployment with room.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    lanes: BTreeMap<Lane, BTreeMap<Place, (RequestId, Work)>>,
    /// How many of a class are due in a step of time.
    due: BTreeMap<(Criticality, u64), usize>,
    len: usize,
    work: Work,
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

    /// The work of all that waits.
    pub const fn work(&self) -> Work {
        self.work
    }

    /// How many of a more important class, or of the same class and due no later, wait: those go before a newcomer of that
    /// place. Exact to a quarter of a second of due time.
    pub fn ahead_of(&self, place: Place) -> usize {
        self.due.range(..=step(place)).map(|(_, count)| count).sum()
    }

    /// Puts a request, and the work that it is thought to be, in its place.
    pub fn insert(&mut self, lane: Lane, place: Place, request: RequestId, work: Work) {
        let before = self.lanes.entry(lane).or_default().insert(place, (request, work));
        self.work = self.work.minus(before.map_or(Work::ZERO, |(_, work)| work)).plus(work);
        if before.is_none() {
            self.len += 1;
            *self.due.entry(step(place)).or_default() += 1;
        }
    }

    /// Takes a request out; `false` where it did not wait there.
    pub fn remove(&mut self, lane: Lane, place: Place) -> bool {
        let Some(waiting) = self.lanes.get_mut(&lane) else { return false };
        let Some((_, work)) = waiting.remove(&place) else { return false };
        if waiting.is_empty() {
            self.lanes.remove(&lane);
        }
        self.len -= 1;
        self.work = self.work.minus(work);
        if let Some(count) = self.due.get_mut(&step(place)) {
            *count -= 1;
            if *count == 0 {
                self.due.remove(&step(place));
            }
        }
        true
    }

    /// Whose turn it is in `lane`.
    pub fn head(&self, now: Instant, headroom: Headroom, lane: Lane) -> Option<(Turn, Place, RequestId)> {
        let waiting = self.lanes.get(&lane)?;
        let class = waiting.first_key_value()?.0.criticality;
        let place = |bound, due, sequence| Place { criticality: class, bound, due, sequence };
        let mut safe: Option<(&Place, &(RequestId, Work))> = None;
        let mut left = None;
        for bound in [Bound::Deadline, Bound::Patience] {
            let last = place(bound, Instant::MAX, u64::MAX);
            let still_safe = waiting.range(place(bound, now + headroom.of(bound), 0)..=last).next();
            let most_left = waiting.range(place(bound, Instant::ZERO, 0)..=last).next_back();
            safe = still_safe.into_iter().chain(safe).min_by_key(|(place, _)| (place.due, place.sequence));
            left = most_left.into_iter().chain(left).max_by_key(|(place, _)| (place.due, place.sequence));
        }
        let (place, (request, _)) = safe.or(left)?;
        let (is_unsafe, due) = (safe.is_none(), place.due.as_nanos());
        let key = if is_unsafe { u64::MAX - due } else { due };
        Some((Turn { criticality: class, is_unsafe, key, sequence: place.sequence }, *place, *request))
    }

    /// The lanes in which somebody waits.
    pub fn lanes(&self) -> impl Iterator<Item = Lane> {
        self.lanes.keys().copied()
    }
}

const fn step(place: Place) -> (Criticality, u64) {
    (place.criticality, place.due.as_nanos() / STEP_NANOS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const LANE: Lane = Lane { boundary: 0, exclude: None, payer: None };

    fn place(criticality: Criticality, bound: Bound, due_ms: u64, sequence: u64) -> Place {
        Place { criticality, bound, due: Instant::from_millis(due_ms), sequence }
    }

    fn patient(due_ms: u64, sequence: u64) -> Place {
        place(Criticality::Critical, Bound::Patience, due_ms, sequence)
    }

    /// The order in which all leave that wait at `now`.
    fn order(mut queue: Queue, now: u64, headroom: Headroom) -> Vec<u64> {
        let mut left = Vec::new();
        while let Some((_, place, request)) = queue.head(Instant::from_millis(now), headroom, LANE) {
            assert!(queue.remove(LANE, place));
            left.push(request.0);
        }
        assert!(queue.is_empty() && queue.due.is_empty());
        assert_eq!(queue.work(), Work::ZERO);
        left
    }

    fn with(places: &[Place]) -> Queue {
        let mut queue = Queue::default();
        for place in places {
            queue.insert(LANE, *place, RequestId(place.sequence), Work::from_thousandths(place.sequence));
        }
        queue
    }

    #[test]
    fn class_first_then_the_earliest_due_time() {
        let queue = with(&[
            place(Criticality::Sheddable, Bound::Patience, 500, 1),
            patient(3_000, 2),
            patient(2_000, 3),
            place(Criticality::Critical, Bound::Deadline, 2_500, 4),
        ]);
        assert_eq!(queue.ahead_of(patient(2_500, 9)), 2);
        assert_eq!(queue.ahead_of(place(Criticality::Sheddable, Bound::Patience, 600, 9)), 4);
        assert_eq!(order(queue, 0, Headroom::default()), [3, 4, 2, 1]);
    }

    #[test]
    fn what_cannot_be_met_any_more_goes_last_and_of_it_what_has_most_time_left() {
        let headroom = Headroom { deadline: Duration::from_millis(800), patience: Duration::from_millis(300) };
        let queue = with(&[
            patient(1_100, 1),
            patient(1_200, 2),
            patient(1_300, 3),
            patient(5_000, 4),
            place(Criticality::Critical, Bound::Deadline, 1_790, 5),
            place(Criticality::Critical, Bound::Deadline, 1_800, 6),
        ]);
        assert_eq!(order(queue, 1_000, headroom), [3, 6, 4, 5, 2, 1]);
    }

    #[test]
    fn a_place_is_taken_once_and_left_once_and_lanes_are_apart() {
        let other = Lane { boundary: 1, ..LANE };
        let mut queue = with(&[patient(1, 1)]);
        queue.insert(LANE, patient(1, 1), RequestId(1), Work::from_thousandths(5));
        queue.insert(other, patient(1, 2), RequestId(2), Work::from_thousandths(7));
        assert_eq!((queue.len(), queue.lanes().count(), queue.work().thousandths()), (2, 2, 12));
        assert!(!queue.remove(other, patient(1, 1)));
        assert!(queue.remove(LANE, patient(1, 1)) && !queue.remove(LANE, patient(1, 1)));
        assert_eq!(queue.work().thousandths(), 7);
        assert_eq!(queue.lanes().collect::<Vec<_>>(), [other]);
        assert_eq!(queue.head(Instant::ZERO, Headroom::default(), LANE), None);
    }
}
