//! A call that is not answered in time is given up at exactly that time, and no other one is.

use super::runner;
use crate::{Actor, CallId, Context, Facts, Nanos, Reply, SECOND, Timeouts, World};
use proptest::prelude::*;
use std::cell::RefCell;
use std::rc::Rc;

const SEND: u16 = 0;
const LIMIT: u16 = 1;
const SPAN: Nanos = SECOND;

/// When a call of this number ended, and whether it was answered.
type Ends = Rc<RefCell<Vec<(u64, Nanos, bool)>>>;

/// Sends calls at their times and gives them a time limit.
struct Caller {
    to: crate::ActorId,
    at: Vec<Nanos>,
    timeouts: Timeouts,
    ends: Ends,
}

impl Actor for Caller {
    fn start(&mut self, context: &mut Context<'_>) {
        for (number, at) in (0..).zip(&self.at) {
            context.timer(*at, SEND, number);
        }
    }

    fn arrive(&mut self, _: CallId, _: &mut Context<'_>) {}

    fn timer(&mut self, kind: u16, data: u64, context: &mut Context<'_>) {
        if kind == SEND {
            let request = context.open_request(facts());
            let call = context.send(self.to, request, data, self.timeouts.deadline(context.now()));
            context.release(request);
            return self.timeouts.watch(call, context);
        }
        while let Some(call) = self.timeouts.next_due(context) {
            let number = context.call(call).expect("it is under way").token;
            context.abandon(call);
            self.ends.borrow_mut().push((number, context.now(), false));
        }
    }

    fn reply(&mut self, call: CallId, _: Reply, context: &mut Context<'_>) {
        let number = context.call(call).expect("it is still there").token;
        self.ends.borrow_mut().push((number, context.now(), true));
    }

    fn bound(&self, under_way: crate::UnderWay) -> usize {
        under_way.calls + Timeouts::most(under_way.most_calls)
    }

    fn held(&self) -> usize {
        self.timeouts.len()
    }
}

/// Answers each call after a time of its own: it says so at once, or when the time has come.
struct Callee {
    after: Vec<(Nanos, bool)>,
    waiting: Vec<(u64, CallId)>,
}

impl Actor for Callee {
    fn arrive(&mut self, call: CallId, context: &mut Context<'_>) {
        let number = context.call(call).expect("it is under way").token;
        let (after, says_at_once) = self.after[usize::try_from(number).expect("a small number")];
        if says_at_once {
            context.reply_after(call, after, Reply::SUCCESS);
        } else {
            self.waiting.push((number, call));
            context.timer(after, 0, number);
        }
    }

    fn timer(&mut self, _: u16, number: u64, context: &mut Context<'_>) {
        let place = self.waiting.iter().position(|(waiting, _)| *waiting == number);
        if let Some(place) = place {
            context.reply(self.waiting.swap_remove(place).1, Reply::SUCCESS);
        }
    }

    fn abandoned(&mut self, call: CallId, context: &mut Context<'_>) {
        self.waiting.retain(|(_, waiting)| *waiting != call);
        context.close(call);
    }

    fn bound(&self, under_way: crate::UnderWay) -> usize {
        under_way.calls + Timeouts::most(under_way.most_calls)
    }

    fn held(&self) -> usize {
        self.waiting.len()
    }
}

fn facts() -> Facts {
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

#[test]
fn only_late_calls_are_given_up_and_exactly_at_their_limit() {
    // Of two things that are decided at one and the same time, the limit may be first; what was said before is in time.
    let said = prop_oneof![(0..SPAN, any::<bool>()), (Just(SPAN), Just(true)), (SPAN + 1..3 * SPAN, any::<bool>()),];
    let calls = proptest::collection::vec((0..10 * SECOND, said), 1..60);
    runner(200)
        .run(&calls, |calls| {
            let ends = Ends::default();
            let mut world = World::new(0, 100 * SECOND);
            let to = world
                .add(Box::new(Callee { after: calls.iter().map(|(_, said)| *said).collect(), waiting: Vec::new() }));
            world.add(Box::new(Caller {
                to,
                at: calls.iter().map(|(at, ..)| *at).collect(),
                timeouts: Timeouts::new(SPAN, LIMIT),
                ends: Rc::clone(&ends),
            }));
            world.start();
            world.run_until(100 * SECOND);
            let mut ended = ends.take();
            ended.sort_unstable();
            let end = |(at, (after, _)): &(Nanos, (Nanos, bool))| (at + after.min(&SPAN), *after <= SPAN);
            let wanted: Vec<(u64, Nanos, bool)> =
                (0..).zip(calls.iter().map(end)).map(|(number, (at, answered))| (number, at, answered)).collect();
            prop_assert_eq!(ended, wanted);
            prop_assert_eq!((world.under_way(), world.held()), ((0, 0, 0), vec![0, 0]));
            Ok(())
        })
        .expect("they are");
}
