//! A layer between callers and servers: it retries, rewords failures and drops what it does not know.

use super::Surroundings;
use super::rollout::Rollout;
use crate::Nanos;
use crate::calls::{ActorId, Call, CallId, Reply};
use crate::checkers::UnderWay;
use crate::context::{Actor, Context};
use crate::random::Stream;
use crate::recorder::SeriesId;
use crate::retry::{Progress, RetryRule};
use crate::slab::Slab;
use crate::timeouts::Timeouts;
use seawall_cases::scenario::{Event, Form, Layer};
use std::collections::BTreeMap;

const AGAIN: u16 = 0;
const TIMEOUT: u16 = 1;

type Rewords = [Option<Form>; 7];

/// See [`Layer`].
#[derive(Debug)]
pub struct LayerActor {
    to: Rollout<ActorId>,
    retry: RetryRule,
    rewords: Rollout<Rewords>,
    drops_advice: bool,
    drops_counters: bool,
    alters_body: bool,
    timeouts: Option<Timeouts>,
    random: Stream,
    live: Slab<Live>,
    targets: BTreeMap<String, ActorId>,
    next_body: u32,
    calls: SeriesId,
    attempts: SeriesId,
}

#[derive(Debug)]
struct Live {
    inbound: CallId,
    outbound: Option<CallId>,
    progress: Progress,
    made: u16,
    since: Nanos,
}

/// All forms, in the order of their numbers.
const FORMS: [(&str, Form); 7] = [
    ("capacity", Form::Capacity),
    ("overloaded", Form::Overloaded),
    ("unavailable", Form::Unavailable),
    ("error", Form::Error),
    ("connection-lost", Form::ConnectionLost),
    ("connection-refused", Form::ConnectionRefused),
    ("timeout", Form::Timeout),
];

fn rewords(written: &BTreeMap<String, Form>) -> Rewords {
    FORMS.map(|(name, _)| written.get(name).copied())
}

impl LayerActor {
    /// The layer that the scenario describes; an error names what it cannot be built with.
    pub fn new(settings: &Layer, around: &Surroundings<'_>, recorder: &mut crate::Recorder) -> Result<Self, String> {
        for name in settings.rewords.keys() {
            check_form(name)?;
        }
        Ok(Self {
            to: Rollout::fixed(around.id(&settings.to)),
            retry: RetryRule::new(&settings.retry)?,
            rewords: Rollout::fixed(rewords(&settings.rewords)),
            drops_advice: settings.drops_advice,
            drops_counters: settings.drops_counters,
            alters_body: settings.alters_body,
            timeouts: settings.attempt_timeout.map(|span| Timeouts::new(span.nanos, TIMEOUT)),
            random: around.stream(&settings.name, "waits"),
            live: Slab::default(),
            targets: around.ids.iter().map(|(name, id)| ((*name).to_owned(), *id)).collect(),
            next_body: 0,
            calls: recorder.count(format!("{}.calls", settings.name)),
            attempts: recorder.count(format!("{}.attempts", settings.name)),
        })
    }

    fn attempt(&mut self, place: u64, context: &mut Context<'_>) {
        let Some(live) = self.live.get_mut(place) else { return };
        let Some(inbound) = context.call(live.inbound).copied() else { return };
        live.made = live.made.saturating_add(1);
        let now = context.now();
        let own = self.timeouts.as_ref().map_or(u64::MAX, |timeouts| timeouts.deadline(now));
        let told_attempt = match (self.drops_counters, live.made) {
            (true, _) => 0,
            (false, 1) => inbound.told_attempt,
            (false, made) => live.progress.told_attempt(made),
        };
        if self.alters_body {
            self.next_body += 1;
        }
        let body = if self.alters_body { self.next_body } else { inbound.body };
        let to = *self.to.of(now, context.facts(inbound.request).number);
        context.count(self.attempts);
        let deadline = own.min(inbound.deadline);
        let call = Call { to, token: place, deadline, told_attempt, body, ..inbound };
        let outbound = context.send_call(call);
        live.outbound = Some(outbound);
        if let Some(timeouts) = &mut self.timeouts {
            timeouts.watch(outbound, context);
        }
    }

    fn ended(&mut self, place: u64, reply: Reply, context: &mut Context<'_>) {
        let Some(live) = self.live.get_mut(place) else { return };
        live.outbound = None;
        if !reply.is_success() {
            let elapsed = context.now() - live.since;
            if let Some(wait) = self.retry.next(&mut live.progress, reply, elapsed, &mut self.random) {
                return if wait == 0 { self.attempt(place, context) } else { context.timer(wait, AGAIN, place) };
            }
        }
        let Some(live) = self.live.remove(place) else { return };
        let number = context.facts_of(live.inbound).map_or(0, |facts| facts.number);
        let reworded = reply.form.map(|form| self.rewords.of(context.now(), number)[form as usize].unwrap_or(form));
        let advice = if self.drops_advice { Reply::SUCCESS } else { reply };
        context.reply(live.inbound, Reply { form: reworded, ..advice });
    }
}

fn check_form(name: &str) -> Result<(), String> {
    if FORMS.iter().any(|(known, _)| *known == name) {
        return Ok(());
    }
    let names: Vec<&str> = FORMS.iter().map(|(name, _)| *name).collect();
    Err(format!("there is no form `{name}`; the forms are {}", names.join(", ")))
}

impl Actor for LayerActor {
    fn arrive(&mut self, call: CallId, context: &mut Context<'_>) {
        context.count(self.calls);
        let live = Live { inbound: call, outbound: None, progress: self.retry.begin(), made: 0, since: context.now() };
        let place = self.live.insert(live);
        if let Some(call) = context.call_mut(call) {
            call.state = place;
        }
        self.attempt(place, context);
    }

    fn reply(&mut self, call: CallId, reply: Reply, context: &mut Context<'_>) {
        let place = context.call(call).map_or(u64::MAX, |call| call.token);
        self.ended(place, reply, context);
    }

    fn abandoned(&mut self, call: CallId, context: &mut Context<'_>) {
        let place = context.call(call).map_or(u64::MAX, |call| call.state);
        if let Some(outbound) = self.live.remove(place).and_then(|live| live.outbound) {
            context.abandon(outbound);
        }
        context.close(call);
    }

    fn timer(&mut self, kind: u16, data: u64, context: &mut Context<'_>) {
        if kind == AGAIN {
            return self.attempt(data, context);
        }
        while let Some(call) = self.timeouts.as_mut().and_then(|timeouts| timeouts.next_due(context)) {
            let place = context.call(call).map_or(u64::MAX, |call| call.token);
            context.abandon(call);
            self.ended(place, Reply::failure(Form::Timeout), context);
        }
    }

    fn change(&mut self, event: &Event, context: &mut Context<'_>) {
        let over = event.over.map_or(0, |over| over.nanos);
        if let Some(written) = &event.change.rewords {
            self.rewords.change(context.now(), rewords(written), over);
        }
        if let Some(attempts) = event.change.attempts {
            self.retry.attempts = attempts;
        }
        if let Some(to) = event.change.to.as_ref().and_then(|name| self.targets.get(name)) {
            self.to.change(context.now(), *to, over);
        }
    }

    fn held(&self) -> usize {
        self.live.len() + self.timeouts.as_ref().map_or(0, Timeouts::len)
    }

    fn bound(&self, under_way: UnderWay) -> usize {
        under_way.calls + Timeouts::most(under_way.most_calls)
    }
}
