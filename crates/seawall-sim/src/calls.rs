//! Requests and the calls that carry them from actor to actor.

use crate::Nanos;
use seawall_cases::scenario::{Criticality, Form};

/// An actor's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActorId(pub(crate) u16);

impl ActorId {
    /// Its place in the list of actors.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A distinct request's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(u32);

/// What is known of a request by whoever handles it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Facts {
    /// Its number: no two requests of a run have the same.
    pub number: u64,
    /// Whose it is: place in the list of workloads.
    pub workload: u16,
    /// Which model it asks for: place in the list of models.
    pub model: u16,
    /// How much it matters, as it says itself.
    pub criticality: Criticality,
    /// What it is for: a document, or an account. Two requests for the same have the same key.
    pub key: u64,
    /// What its body says: two requests with the same content ask for the same.
    pub content: u64,
    /// Its work at full speed.
    pub work: Nanos,
    /// Tokens of its prompt.
    pub prompt_tokens: u32,
    /// Tokens of its answer.
    pub output_tokens: u32,
    /// Whether it is a very large one.
    pub large: bool,
    /// When it was first sent.
    pub arrived: Nanos,
    /// Attempts that came to the door where attempts are counted.
    pub attempts: u32,
    /// Attempts that went on from there to a server.
    pub upstream: u32,
}

/// A call's place; a call that is over never has the same one as a later call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

/// One actor asks another.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// The request that it carries.
    pub request: RequestId,
    /// Who asks.
    pub from: ActorId,
    /// Who is asked.
    pub to: ActorId,
    /// The caller's own mark.
    pub token: u64,
    /// The callee's own mark.
    pub state: u64,
    /// When the caller stops waiting; `u64::MAX`: never.
    pub deadline: Nanos,
    /// Number of the attempt as the headers tell it; 0: they do not.
    pub told_attempt: u16,
    /// How long the caller tries to get a connection; `u64::MAX`: as long as it waits for an answer.
    pub connect_nanos: Nanos,
    /// Which version of the body it carries: two attempts with different ones do not look alike.
    pub body: u32,
    pub(crate) abandoned: bool,
    /// When its answer is there; `u64::MAX`: nobody has given one yet.
    pub(crate) answer_at: Nanos,
}

impl Call {
    /// Whether the callee has answered; the answer may still be on its way.
    pub(crate) const fn is_answered(&self) -> bool {
        self.answer_at != Nanos::MAX
    }
}

/// The answer to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The form of the failure; `None`: it went well.
    pub form: Option<Form>,
    /// The wait that it states, in milliseconds; 0: none.
    pub wait_ms: u32,
    /// Whether it says not to come back.
    pub stop: bool,
}

impl Reply {
    /// It went well.
    pub const SUCCESS: Self = Self { form: None, wait_ms: 0, stop: false };

    /// A failure without advice.
    pub const fn failure(form: Form) -> Self {
        Self { form: Some(form), wait_ms: 0, stop: false }
    }

    /// Whether it went well.
    pub const fn is_success(self) -> bool {
        self.form.is_none()
    }
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

/// All calls and requests that are under way. What is over gives its place to what comes.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    slots: Vec<Slot<Call>>,
    free: Vec<u32>,
    requests: Vec<(Facts, u32)>,
    free_requests: Vec<u32>,
    /// Calls that are under way.
    pub(crate) live: usize,
    /// The most that were under way at one time.
    pub(crate) most: usize,
    pub(crate) live_requests: usize,
}

impl Calls {
    pub(crate) fn open_request(&mut self, facts: Facts) -> RequestId {
        self.live_requests += 1;
        if let Some(index) = self.free_requests.pop() {
            self.requests[index as usize] = (facts, 1);
            return RequestId(index);
        }
        self.requests.push((facts, 1));
        RequestId(u32::try_from(self.requests.len() - 1).expect("fewer than 2^32 requests are under way"))
    }

    /// One holder more.
    pub(crate) fn hold_request(&mut self, request: RequestId) {
        self.requests[request.0 as usize].1 += 1;
    }

    /// One holder less; the last one gives the place back.
    pub(crate) fn release_request(&mut self, request: RequestId) {
        let (_, holders) = &mut self.requests[request.0 as usize];
        *holders -= 1;
        if *holders == 0 {
            self.live_requests -= 1;
            self.free_requests.push(request.0);
        }
    }

    pub(crate) fn facts(&self, request: RequestId) -> &Facts {
        &self.requests[request.0 as usize].0
    }

    pub(crate) fn facts_mut(&mut self, request: RequestId) -> &mut Facts {
        &mut self.requests[request.0 as usize].0
    }

    pub(crate) fn open(&mut self, call: Call) -> CallId {
        self.requests[call.request.0 as usize].1 += 1;
        self.live += 1;
        self.most = self.most.max(self.live);
        if let Some(index) = self.free.pop() {
            let slot = &mut self.slots[index as usize];
            slot.value = Some(call);
            return CallId { index, generation: slot.generation };
        }
        self.slots.push(Slot { generation: 0, value: Some(call) });
        let index = u32::try_from(self.slots.len() - 1).expect("fewer than 2^32 calls are under way");
        CallId { index, generation: 0 }
    }

    pub(crate) fn get(&self, id: CallId) -> Option<&Call> {
        let slot = &self.slots[id.index as usize];
        if slot.generation == id.generation { slot.value.as_ref() } else { None }
    }

    pub(crate) fn get_mut(&mut self, id: CallId) -> Option<&mut Call> {
        let slot = &mut self.slots[id.index as usize];
        if slot.generation == id.generation { slot.value.as_mut() } else { None }
    }

    pub(crate) fn close(&mut self, id: CallId) {
        let slot = &mut self.slots[id.index as usize];
        if slot.generation != id.generation {
            return;
        }
        if let Some(call) = slot.value.take() {
            slot.generation = slot.generation.wrapping_add(1);
            self.free.push(id.index);
            self.live -= 1;
            self.release_request(call.request);
        }
    }
}
