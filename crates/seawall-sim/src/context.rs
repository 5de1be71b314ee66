//! What an actor is, and what it can do while something happens to it.

use crate::Nanos;
use crate::calls::{ActorId, Call, CallId, Calls, Facts, Reply, RequestId};
use crate::checkers::{self, Findings, Permits, UnderWay};
use crate::events::{EventQueue, Message};
use crate::recorder::{Recorder, SeriesId, SpreadId};
use seawall_cases::scenario::Event;
use seawall_core::permit::AttemptPermit;

/// One of the world's inhabitants. Everything happens to it through these functions, one at a time.
///
/// A call that arrived is answered by exactly one [`Context::reply`] (or [`Context::reply_after`]). If its caller leaves
/// before, [`Actor::abandoned`] says so once, and the callee either [`Context::close`]s the call or goes on and replies
/// to nobody.
pub trait Actor {
    /// The run begins.
    fn start(&mut self, _: &mut Context<'_>) {}

    /// A call comes in.
    fn arrive(&mut self, call: CallId, context: &mut Context<'_>);

    /// A call of its own is answered. The call still exists while this runs and is gone afterwards.
    fn reply(&mut self, _: CallId, _: Reply, _: &mut Context<'_>) {}

    /// The caller of this call does not wait any more.
    fn abandoned(&mut self, call: CallId, context: &mut Context<'_>) {
        context.close(call);
    }

    /// A time that it set has come.
    fn timer(&mut self, _: u16, _: u64, _: &mut Context<'_>) {}

    /// An event of the scenario happens to it.
    fn change(&mut self, _: &Event, _: &mut Context<'_>) {}

    /// How many records it holds, for the checker of bounded memory.
    fn held(&self) -> usize;

    /// How many records it may hold at the most, by its settings and by what is under way in the whole world: for the
    /// checker of bounded memory. What it keeps of what is over has to have a bound of its own.
    fn bound(&self, under_way: UnderWay) -> usize;

    /// The run is over: from here on it begins nothing on its own account, no request and no regular look at anything.
    /// What is under way goes on to its end.
    fn stop(&mut self) {}
}

/// The world as one actor sees it while something happens to it.
#[derive(Debug)]
pub struct Context<'a> {
    pub(crate) core: &'a mut Core,
    pub(crate) me: ActorId,
}

/// What all actors share.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) now: Nanos,
    pub(crate) queue: EventQueue,
    pub(crate) calls: Calls,
    pub(crate) recorder: Recorder,
    pub(crate) next_request: u64,
    /// Every request as it was opened, where somebody wants to know.
    pub(crate) opened: Option<Vec<Facts>>,
    pub(crate) findings: Findings,
    pub(crate) permits: Permits,
}

impl Core {
    pub(crate) const fn under_way(&self) -> UnderWay {
        UnderWay { calls: self.calls.live, requests: self.calls.live_requests, most_calls: self.calls.most }
    }
}

impl Context<'_> {
    /// What time it is.
    pub const fn now(&self) -> Nanos {
        self.core.now
    }

    /// A new distinct request; the number is given here. Its sender holds it until [`Context::release`].
    pub fn open_request(&mut self, mut facts: Facts) -> RequestId {
        self.core.next_request += 1;
        facts.number = self.core.next_request;
        if let Some(opened) = &mut self.core.opened {
            opened.push(facts);
        }
        self.core.calls.open_request(facts)
    }

    /// Somebody else holds a request, too, until [`Context::release`].
    pub fn hold(&mut self, request: RequestId) {
        self.core.calls.hold_request(request);
    }

    /// Its sender, or who holds it, is done with a request.
    pub fn release(&mut self, request: RequestId) {
        self.core.calls.release_request(request);
    }

    /// What is known of a request that is held.
    pub fn facts(&self, request: RequestId) -> &Facts {
        self.core.calls.facts(request)
    }

    /// The same, to count on it.
    pub fn facts_mut(&mut self, request: RequestId) -> &mut Facts {
        self.core.calls.facts_mut(request)
    }

    /// Asks another actor. The callee hears of it at this same time, after all that was decided before.
    pub fn send(&mut self, to: ActorId, request: RequestId, token: u64, deadline: Nanos) -> CallId {
        self.send_call(Call {
            request,
            from: self.me,
            to,
            token,
            state: 0,
            deadline,
            told_attempt: 0,
            connect_nanos: Nanos::MAX,
            body: 0,
            abandoned: false,
            answer_at: Nanos::MAX,
        })
    }

    /// Asks another actor with a call like this one; `from` is set here.
    pub fn send_call(&mut self, call: Call) -> CallId {
        let to = call.to;
        let call = Call { from: self.me, state: 0, abandoned: false, answer_at: Nanos::MAX, ..call };
        if let Some(what) = self.core.permits.attempt(self.me) {
            self.violation(&what);
        }
        let id = self.core.calls.open(call);
        let now = self.core.now;
        self.core.queue.push(now, now, to, Message::Arrive(id));
        id
    }

    /// A call that is under way; `None`: it is over.
    pub fn call(&self, id: CallId) -> Option<&Call> {
        self.core.calls.get(id)
    }

    /// The same, to set the callee's own mark.
    pub fn call_mut(&mut self, id: CallId) -> Option<&mut Call> {
        self.core.calls.get_mut(id)
    }

    /// What is known of the request of a call that is under way.
    pub fn facts_of(&self, id: CallId) -> Option<&Facts> {
        self.call(id).map(|call| self.core.calls.facts(call.request))
    }

    /// Answers a call now.
    pub fn reply(&mut self, id: CallId, reply: Reply) {
        self.reply_after(id, 0, reply);
    }

    /// Answers a call after a time. From here on the callee has nothing to do with it.
    pub fn reply_after(&mut self, id: CallId, delay: Nanos, reply: Reply) {
        let now = self.core.now;
        let Some(call) = self.core.calls.get_mut(id) else { return };
        if call.abandoned && delay == 0 {
            return self.core.calls.close(id);
        }
        if call.is_answered() {
            let to = call.to;
            return self.core.findings.report(now, to, &checkers::second_answer());
        }
        // The end of time is how a call says that it has no answer yet.
        let at = now.saturating_add(delay).min(Nanos::MAX - 1);
        call.answer_at = at;
        let from = call.from;
        self.core.queue.push(now, at, from, Message::Reply(id, reply));
    }

    /// Stops waiting for the answer to a call of its own.
    pub fn abandon(&mut self, id: CallId) {
        let now = self.core.now;
        let Some(call) = self.core.calls.get_mut(id) else { return };
        if call.abandoned {
            return;
        }
        call.abandoned = true;
        if !call.is_answered() {
            let to = call.to;
            self.core.queue.push(now, now, to, Message::Abandoned(id));
        }
    }

    /// Drops a call that was abandoned, without going on with it.
    pub fn close(&mut self, id: CallId) {
        let dropped = self.call(id).and_then(|call| checkers::dropped(call.abandoned, call.is_answered()));
        self.violations(dropped);
        self.core.calls.close(id);
    }

    /// From here on this actor makes no attempt without a permit: every [`Context::send_call`] of it needs one that
    /// [`Context::use_permit`] has used up.
    pub(crate) fn needs_permits(&mut self) {
        self.core.permits.enforce(self.me);
    }

    /// Uses a permit up for an attempt, which follows; `attempts`: how many its flight has had, this one included.
    pub(crate) fn use_permit(&mut self, permit: AttemptPermit, attempts: u32) {
        let seen = self.core.permits.used(self.me, &permit, attempts);
        drop(permit);
        self.violations(seen);
    }

    /// This actor sees something of itself that must not be.
    pub(crate) fn violation(&mut self, what: &str) {
        self.core.findings.report(self.core.now, self.me, what);
    }

    /// The same, where there is something to see.
    pub(crate) fn violations(&mut self, what: Option<String>) {
        self.core.findings.report_some(self.core.now, self.me, what);
    }

    /// Whether the caller of this call has left.
    pub fn is_abandoned(&self, id: CallId) -> bool {
        self.core.calls.get(id).is_none_or(|call| call.abandoned)
    }

    /// Sets a time for itself.
    pub fn timer(&mut self, delay: Nanos, kind: u16, data: u64) {
        let now = self.core.now;
        self.core.queue.push(now, now.saturating_add(delay), self.me, Message::Timer { kind, data });
    }

    /// The recorder.
    pub fn recorder(&mut self) -> &mut Recorder {
        &mut self.core.recorder
    }

    /// One more in a series of counts.
    pub fn count(&mut self, series: SeriesId) {
        let now = self.core.now;
        self.core.recorder.add(series, now);
    }

    /// So many more in a series of counts.
    pub fn count_many(&mut self, series: SeriesId, count: f64) {
        let now = self.core.now;
        self.core.recorder.add_many(series, now, count);
    }

    /// The level of a series from now on.
    pub fn level(&mut self, series: SeriesId, level: f64) {
        let now = self.core.now;
        self.core.recorder.set(series, now, level);
    }

    /// One more span in a spread.
    pub fn span(&mut self, spread: SpreadId, span: Nanos) {
        let now = self.core.now;
        self.core.recorder.span(spread, now, span);
    }

    /// Raises a mark.
    pub fn raise(&mut self, series: SeriesId, value: f64) {
        self.core.recorder.raise(series, value);
    }
}
