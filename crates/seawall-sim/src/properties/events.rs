//! Events come in the order of their times, and those of one time in the order in which they were decided.

use super::runner;
use crate::calls::ActorId;
use crate::events::{EventQueue, Message};
use proptest::prelude::*;
use std::collections::BTreeSet;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Something is decided that happens after so many nanoseconds.
    Push(u64),
    Pop,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let push = prop_oneof![Just(0), 1_u64..4, 1_u64..1_000].prop_map(Step::Push);
    proptest::collection::vec(prop_oneof![3 => push, 2 => Just(Step::Pop)], 1..400)
}

/// A queue, and the plainest thing that does the same.
#[derive(Default)]
struct Pair {
    queue: EventQueue,
    plain: BTreeSet<(u64, u64)>,
    now: u64,
    decided: u64,
}

impl Pair {
    fn push(&mut self, delay: u64) {
        self.decided += 1;
        let message = Message::Timer { kind: 0, data: self.decided };
        self.queue.push(self.now, self.now + delay, ActorId(0), message);
        self.plain.insert((self.now + delay, self.decided));
    }

    fn pop(&mut self) -> Result<bool, TestCaseError> {
        let event = self.queue.pop(u64::MAX);
        let got = event.map(|event| match event.message {
            Message::Timer { data, .. } => (event.at, data),
            _ => (event.at, 0),
        });
        prop_assert_eq!(got, self.plain.pop_first());
        self.now = event.map_or(self.now, |event| event.at);
        Ok(event.is_some())
    }
}

#[test]
fn events_come_by_time_and_then_by_decision() {
    runner(300)
        .run(&steps(), |steps| {
            let mut pair = Pair::default();
            for step in steps {
                match step {
                    Step::Push(delay) => pair.push(delay),
                    Step::Pop => drop(pair.pop()?),
                }
                prop_assert_eq!(pair.queue.len(), pair.plain.len());
            }
            while pair.pop()? {}
            Ok(())
        })
        .expect("the order holds");
}

#[test]
fn what_is_due_after_the_end_stays() {
    let mut queue = EventQueue::default();
    for at in [30, 10, 20] {
        queue.push(0, at, ActorId(0), Message::Change(0));
    }
    let until_20: Vec<u64> = core::iter::from_fn(|| queue.pop(20)).map(|event| event.at).collect();
    assert_eq!((until_20, queue.len()), (vec![10, 20], 1));
}
