//! A network: it delays, and it loses.

use super::Surroundings;
use crate::calls::{ActorId, Call, CallId, Reply};
use crate::checkers::UnderWay;
use crate::context::{Actor, Context};
use crate::random::Stream;
use crate::slab::Slab;
use seawall_cases::scenario::{Event, Form, Link};

const FORWARD: u16 = 0;

/// See [`Link`].
#[derive(Debug)]
pub struct LinkActor {
    to: ActorId,
    delay_nanos: u64,
    loss: f64,
    random: Stream,
    passing: Slab<Passing>,
}

#[derive(Debug)]
struct Passing {
    inbound: CallId,
    outbound: Option<CallId>,
}

impl LinkActor {
    /// The link that the scenario describes.
    pub fn new(settings: &Link, around: &Surroundings<'_>) -> Self {
        Self {
            to: around.id(&settings.to),
            delay_nanos: settings.delay.nanos,
            loss: settings.loss,
            random: around.stream(&settings.name, "loss"),
            passing: Slab::default(),
        }
    }
}

impl Actor for LinkActor {
    fn arrive(&mut self, call: CallId, context: &mut Context<'_>) {
        if self.random.chance(self.loss) {
            return context.reply_after(call, self.delay_nanos, Reply::failure(Form::ConnectionLost));
        }
        let place = self.passing.insert(Passing { inbound: call, outbound: None });
        if let Some(call) = context.call_mut(call) {
            call.state = place;
        }
        context.timer(self.delay_nanos, FORWARD, place);
    }

    fn timer(&mut self, _: u16, place: u64, context: &mut Context<'_>) {
        let Some(passing) = self.passing.get_mut(place) else { return };
        let Some(inbound) = context.call(passing.inbound).copied() else { return };
        passing.outbound = Some(context.send_call(Call { to: self.to, token: place, ..inbound }));
    }

    fn reply(&mut self, call: CallId, reply: Reply, context: &mut Context<'_>) {
        let token = context.call(call).map_or(u64::MAX, |call| call.token);
        if let Some(passing) = self.passing.remove(token) {
            context.reply_after(passing.inbound, self.delay_nanos, reply);
        }
    }

    fn abandoned(&mut self, call: CallId, context: &mut Context<'_>) {
        let place = context.call(call).map_or(u64::MAX, |call| call.state);
        if let Some(outbound) = self.passing.remove(place).and_then(|passing| passing.outbound) {
            context.abandon(outbound);
        }
        context.close(call);
    }

    fn change(&mut self, event: &Event, _: &mut Context<'_>) {
        self.loss = event.change.loss.unwrap_or(self.loss);
        self.delay_nanos = event.change.delay.map_or(self.delay_nanos, |delay| delay.nanos);
    }

    fn held(&self) -> usize {
        self.passing.len()
    }

    fn bound(&self, under_way: UnderWay) -> usize {
        under_way.calls
    }
}
