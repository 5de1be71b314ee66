//! The fluid oracle: what could have been served at all.
//!
//! All servers together are one that serves one request after the other, as fast as all their slots at once. It knows
//! when each request was first sent, how long its client waits, its work and the capacity to come. Of those that have
//! been sent it takes the one with the earliest deadline; one that it could not finish in time it drops without having
//! begun. For equal work and equal patience no order serves more. It has no service time to speak of, so a real router
//! can come close to it and never reach it: by about 1% where a request takes a fiftieth of the clients' patience.

use crate::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Capacity of one slot at full speed.
const SLOT: u128 = 1_000_000;

/// The capacity over time: from each of these times on so many millionths of a slot. Before the first there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capacity {
    steps: Vec<(Nanos, u64)>,
}

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// When it was first sent.
    pub sent: Nanos,
    /// Until when its answer is worth something, inclusive.
    pub deadline: Nanos,
    /// Its work: the time that it takes in one slot.
    pub work: Nanos,
}

impl Capacity {
    /// From times in order, each with the millionths of a slot from then on.
    pub fn new(mut steps: Vec<(Nanos, u64)>) -> Self {
        steps.sort_by_key(|(at, _)| *at);
        Self { steps }
    }

    /// When work that is begun at a time and has all of the capacity is done; `None`: never.
    fn finish(&self, from: Nanos, work: Nanos) -> Option<Nanos> {
        let mut left = u128::from(work) * SLOT;
        let mut now = from;
        let mut next = self.steps.partition_point(|(at, _)| *at <= from);
        loop {
            let rate = next.checked_sub(1).map_or(0, |present| u128::from(self.steps[present].1));
            let until = self.steps.get(next).map(|(at, _)| *at);
            if rate > 0 {
                let end = u128::from(now) + left.div_ceil(rate);
                if until.is_none_or(|until| end <= u128::from(until)) {
                    return Nanos::try_from(end).ok();
                }
            }
            let until = until?;
            left -= rate * u128::from(until - now);
            (now, next) = (until, next + 1);
        }
    }
}

/// When each of the requests is answered; `None`: it is dropped. The requests are in the order in which they were sent.
pub fn answers(jobs: &[Job], capacity: &Capacity) -> Vec<Option<Nanos>> {
    let mut answers = vec![None; jobs.len()];
    let mut waiting: BinaryHeap<Reverse<(Nanos, usize)>> = BinaryHeap::new();
    let (mut now, mut next) = (0, 0);
    loop {
        while let Some(job) = jobs.get(next).filter(|job| job.sent <= now) {
            waiting.push(Reverse((job.deadline, next)));
            next += 1;
        }
        if let Some(Reverse((deadline, index))) = waiting.pop() {
            let finish = capacity.finish(now, jobs[index].work).filter(|finish| *finish <= deadline);
            now = finish.unwrap_or(now);
            answers[index] = finish;
        } else if let Some(job) = jobs.get(next) {
            now = job.sent;
        } else {
            return answers;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jobs(of: &[(Nanos, Nanos, Nanos)]) -> Vec<Job> {
        of.iter().map(|(sent, deadline, work)| Job { sent: *sent, deadline: *deadline, work: *work }).collect()
    }

    fn slots(steps: &[(Nanos, u64)]) -> Capacity {
        Capacity::new(steps.iter().map(|(at, slots)| (*at, slots * 1_000_000)).collect())
    }

    #[test]
    fn all_slots_work_on_one_request_after_the_other() {
        let served = answers(&jobs(&[(0, 100, 40), (0, 100, 40), (50, 100, 40)]), &slots(&[(0, 4)]));
        assert_eq!(served, [Some(10), Some(20), Some(60)]);
    }

    #[test]
    fn an_answer_at_the_deadline_counts_and_who_cannot_be_served_in_time_costs_nothing() {
        let all = [(0, 10, 10), (0, 15, 10), (0, 20, 10)];
        assert_eq!(answers(&jobs(&all), &slots(&[(0, 1)])), [Some(10), None, Some(20)]);
    }

    #[test]
    fn the_earliest_deadline_comes_first_and_what_has_begun_goes_on() {
        // The second and the third come while the first runs.
        let all = [(0, 100, 10), (1, 90, 10), (2, 50, 10)];
        assert_eq!(answers(&jobs(&all), &slots(&[(0, 1)])), [Some(10), Some(30), Some(20)]);
    }

    #[test]
    fn capacity_goes_and_comes_back() {
        // Until 10 two slots, until 30 half of one, until 40 none, then one.
        let capacity = Capacity::new(vec![(0, 2_000_000), (10, 500_000), (30, 0), (40, 1_000_000)]);
        let work = |work| answers(&jobs(&[(0, 1000, work)]), &capacity)[0];
        assert_eq!([20, 25, 30, 31, 45].map(work), [Some(10), Some(20), Some(30), Some(41), Some(55)]);
        assert_eq!(answers(&jobs(&[(35, 44, 5), (36, 45, 5)]), &capacity), [None, Some(45)]);
    }

    #[test]
    fn nothing_is_served_without_capacity() {
        assert_eq!(answers(&jobs(&[(5, 100, 1)]), &slots(&[])), [None]);
        assert_eq!(answers(&jobs(&[(5, 100, 1)]), &slots(&[(0, 0)])), [None]);
        assert_eq!(answers(&jobs(&[(5, 7, 1)]), &slots(&[(6, 1)])), [Some(7)]);
    }

    #[test]
    fn overload_is_served_at_capacity_with_the_patient_ones_late() {
        // Twice what one slot can do, patience of five works: the line grows to the patience and every second is dropped.
        let all: Vec<(Nanos, Nanos, Nanos)> = (0..100).map(|index| (index * 10, index * 10 + 100, 20)).collect();
        let served = answers(&jobs(&all), &slots(&[(0, 1)]));
        let good: Vec<Nanos> = served.iter().flatten().copied().collect();
        assert_eq!((good.len(), good.first(), good.last()), (54, Some(&20), Some(&1080)));
    }
}
