//! Law 5: nothing grows without a bound.
//!
//! Every second each actor's records are compared with the bound that follows from its settings and from what is under
//! way: a record that outlives what it was for is a leak. At the end of a run, once nothing new begins, everything has to
//! be over: no call, no request, no event is left.

use crate::context::Actor;

/// What is under way in the whole world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnderWay {
    /// Calls that have not ended.
    pub calls: usize,
    /// Distinct requests that have not ended.
    pub requests: usize,
    /// The most calls that were under way at one time in this run.
    pub most_calls: usize,
}

/// Whether an actor holds more than it may.
pub(crate) fn memory(actor: &dyn Actor, under_way: UnderWay) -> Option<String> {
    let (held, bound) = (actor.held(), actor.bound(under_way));
    (held > bound).then(|| {
        let UnderWay { calls, requests, .. } = under_way;
        format!("it holds {held} records, more than {bound}, while {calls} calls and {requests} requests are under way")
    })
}

/// Whether one process of several holds more requests than fit into its memory.
pub(crate) fn process_memory(held: usize, memory: usize) -> Option<String> {
    (held > memory).then(|| format!("a process holds {held} requests, and its memory holds {memory}"))
}

/// What is left when all should be over.
pub(crate) fn drained(under_way: UnderWay, events: usize) -> Option<String> {
    let UnderWay { calls, requests, .. } = under_way;
    let is_over = (calls, requests, events) == (0, 0, 0);
    (!is_over)
        .then(|| format!("when all should be over there are {calls} calls, {requests} requests and {events} events"))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::calls::{CallId, Facts};
    use crate::context::Context;
    use crate::{SECOND, World};

    /// A request like any other.
    pub(in super::super) const fn facts() -> Facts {
        Facts {
            number: 0,
            workload: 0,
            model: 0,
            criticality: seawall_cases::scenario::Criticality::Critical,
            key: 0,
            content: 0,
            work: 0,
            prompt_tokens: 0,
            output_tokens: 0,
            large: false,
            arrived: 0,
            attempts: 0,
            upstream: 0,
        }
    }

    /// Remembers everything: one more record each second.
    struct Leak(usize);

    impl Actor for Leak {
        fn start(&mut self, context: &mut Context<'_>) {
            context.timer(SECOND, 0, 0);
        }

        fn arrive(&mut self, _: CallId, _: &mut Context<'_>) {}

        fn timer(&mut self, _: u16, _: u64, context: &mut Context<'_>) {
            self.0 += 1;
            context.timer(SECOND, 0, 0);
        }

        fn held(&self) -> usize {
            self.0
        }

        fn bound(&self, under_way: UnderWay) -> usize {
            under_way.calls + 3
        }
    }

    #[test]
    fn a_leak_is_seen_in_the_second_in_which_it_passes_the_bound() {
        let mut world = World::new(0, 10 * SECOND);
        world.add(Box::new(Leak(0)));
        world.start();
        world.run_until(4 * SECOND);
        assert_eq!(world.violations(), [""; 0]);
        world.run_until(5 * SECOND);
        let expected = "00:00:05 `0`: it holds 4 records, more than 3, while 0 calls and 0 requests are under way";
        assert_eq!(world.violations(), [expected]);
    }

    #[test]
    fn a_process_above_its_memory_is_seen() {
        assert_eq!(process_memory(150, 150), None);
        assert_eq!(process_memory(151, 150).as_deref(), Some("a process holds 151 requests, and its memory holds 150"));
    }

    #[test]
    fn what_is_left_at_the_end_is_seen() {
        let mut world = World::new(0, 10 * SECOND);
        world.add(Box::new(Leak(0)));
        world.start();
        world.drain(2 * SECOND);
        let expected = "00:00:02 when all should be over there are 0 calls, 0 requests and 1 events";
        assert_eq!(world.violations(), [expected]);
        assert_eq!(drained(UnderWay::default(), 0), None);
        assert!(drained(UnderWay { requests: 1, ..UnderWay::default() }, 0).is_some());
        assert!(drained(UnderWay { calls: 1, ..UnderWay::default() }, 0).is_some());
    }
}
