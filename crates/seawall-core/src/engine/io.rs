//! What goes into the engine and what comes out.

use crate::advice::Form;
use crate::capacity::{Allowance, ServerLoad};
use crate::classify::AttemptEnd;
use crate::cost::{Cost, Demand, Used};
use crate::id::{DeploymentId, PoolId, RequestId, TenantId};
use crate::outcome::Outcome;
use crate::permit::AttemptPermit;
use crate::settings::{Criticality, Mode, TimeoutSettings};
use crate::time::{Duration, Instant};

/// What the engine knows of a request: facts from its head and body, read by the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The host's id for it.
    pub request: RequestId,
    /// Whose it is.
    pub tenant: TenantId,
    /// Which pool it asks for; the host has checked that the tenant may use it.
    pub pool: PoolId,
    /// The class it claims; lowered here to the tenant's ceiling.
    pub criticality: Criticality,
    /// The caller's explicit deadline, which bounds the whole request.
    pub deadline: Option<Instant>,
    /// How long the caller says it waits for a first byte; it may only lower the pool's patience.
    pub patience: Option<Duration>,
    /// What tells whether it asks for the same as another one; `None`: it never does.
    pub identity: Option<Identity>,
    /// What it asks a model to do.
    pub demand: Demand,
}

/// What tells whether two arrivals ask for the same, and what a client says about that itself.
///
/// Both numbers are hashes, wide enough that no two requests have the same by chance, of everything that decides the answer:
/// tenant and key scope, method, path, version of the interface, headers that matter, model, whether a stream is asked
/// for, and the body. The engine compares them and knows nothing of what they were made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Over all that, the body included.
    pub fingerprint: u128,
    /// Over the key by which the client itself says what is the same, in its own scope; `None`: it gave none.
    pub key: Option<u128>,
    /// How often the client says that it has asked for this before.
    pub previous_attempts: u32,
    /// Whether the client is one that asks again by itself: it counts its attempts, or gives keys.
    pub may_repeat: bool,
}

/// Something happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// A request arrived and was understood.
    Arrived(Arrival),
    /// A request arrived at another router, beside which the host stands and looks on, and that one sends it to this
    /// deployment. Where it is enforced after all, or the deployment is of another pool, this is a plain arrival.
    Mirrored(Arrival, DeploymentId),
    /// The attempt of this flight with this number got an answer that is being relayed: there is no further one.
    AttemptHeaders(RequestId, u32),
    /// The answer to the attempt of this flight with this number says how much its deployment takes before its limits.
    /// Comes before what else is said of the answer.
    Allowance(RequestId, u32, Allowance),
    /// The attempt of this flight with this number has used so much until now. The last word before its end is what it
    /// is settled with; without one the estimate stands.
    Used(RequestId, u32, Used),
    /// The attempt of this flight with this number ended. Its number is its epoch (law 3): where a later attempt runs, or
    /// none, this is ignored.
    AttemptEnded(RequestId, u32, AttemptEnd),
    /// The client of this request left. Where the request has no identity, the host has already ended the attempt, if there
    /// was one; else it goes on until it ends or [`Output::Cancel`] comes.
    ClientGone(RequestId),
    /// The server of this deployment says how much it has to do.
    ServerLoad(DeploymentId, ServerLoad),
    /// The answer of this flight is longer than what the host keeps of one: nobody can join any more.
    Sealed(RequestId),
    /// From here on this is enforced, or only observed: what arrives, and what waits for its first attempt. An id that is
    /// not in the settings is ignored.
    Switch(Scope, Mode),
    /// The process goes away: what waits and runs is served, what arrives is sent elsewhere.
    Drain,
    /// Time passed; due deadlines are handled before every input, so this carries nothing.
    Tick,
}

/// What has a mode of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All requests for a pool.
    Pool(PoolId),
    /// All requests of a tenant.
    Tenant(TenantId),
}

/// Something to do.
#[derive(Debug, PartialEq, Eq)]
pub enum Output {
    /// Make this attempt.
    Dispatch(Dispatch),
    /// The request has ended.
    Respond(Respond),
    /// Answer this request with what a flight gets, from its beginning on.
    Join(Join),
    /// End the attempt of this flight, and report its end: nobody waits for it.
    Cancel(RequestId),
    /// Nobody will join this flight any more: what is kept of its answer can go. Comes once for each flight with an identity.
    Forget(RequestId),
    /// Worth a line in the log.
    Notice(Notice),
}

impl Output {
    /// The request it is about, where it is about one.
    pub const fn request(&self) -> Option<RequestId> {
        match self {
            Self::Dispatch(dispatch) => Some(dispatch.permit.request()),
            Self::Respond(respond) => Some(respond.request),
            Self::Join(join) => Some(join.request),
            Self::Cancel(flight) | Self::Forget(flight) => Some(*flight),
            Self::Notice(_) => None,
        }
    }
}

/// An attempt to make.
#[derive(Debug, PartialEq, Eq)]
pub struct Dispatch {
    /// The right to make it, and where.
    pub permit: AttemptPermit,
    /// How long its steps may take.
    pub timeouts: TimeoutSettings,
    /// When the caller's deadline ends it; `None` for an observed request, which no deadline of ours cuts.
    pub deadline: Option<Instant>,
    /// Whether a pooled connection must not be used, because the last one turned out to be stale.
    pub fresh_connection: bool,
}

/// Who is answered with what a flight gets. The flight may have ended: then its answer is kept by the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Join {
    /// Who joins.
    pub request: RequestId,
    /// The request that began the flight; its client may have left.
    pub flight: RequestId,
}

/// The one ending of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Respond {
    /// Which request.
    pub request: RequestId,
    /// How it ended.
    pub outcome: Outcome,
    /// What the caller is told, where it is told something by us.
    pub form: Option<Form>,
    /// Attempts made.
    pub attempts: u32,
    /// Where the last attempt went.
    pub deployment: Option<DeploymentId>,
    /// How long it waited for a deployment, all waits together.
    pub queued: Duration,
    /// The first thing that enforcing would have done to an observed request; `None` where it would have done nothing,
    /// and for every enforced request.
    pub observed: Option<Verdict>,
    /// What its attempts have cost; of one that runs on without it, what it has cost until now. Nothing where it joined
    /// another one.
    pub cost: Cost,
}

impl Respond {
    /// An ending without an attempt, a wait or advice.
    pub(super) const fn plain(request: RequestId, outcome: Outcome) -> Self {
        let (form, deployment, observed) = (None, None, None);
        Self { request, outcome, form, attempts: 0, deployment, queued: Duration::ZERO, observed, cost: Cost::NONE }
    }
}

/// What enforcing would have done to a request that was observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// Made it wait, and let it go in time.
    Wait,
    /// Ended it with this outcome, at once or at the end of a wait.
    Refuse(Outcome),
    /// Sent it elsewhere, because the deployment it went to had failed too often.
    MoveForHealth,
    /// Sent it elsewhere, because the deployment it went to was full or had refused for want of capacity.
    MoveForCapacity,
    /// Tried it again.
    Retry,
}

impl Verdict {
    /// The label in metrics and logs; a refusal has that of its outcome.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Wait => "wait",
            Self::Refuse(outcome) => outcome.label(),
            Self::MoveForHealth => "move_for_health",
            Self::MoveForCapacity => "move_for_capacity",
            Self::Retry => "retry",
        }
    }
}

/// Something an operator may want to read. `mode` is the pool's: where it is observed, the deployment stays in rotation,
/// and this is what enforcing would have done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A deployment left the rotation.
    Ejected {
        /// Which one.
        deployment: DeploymentId,
        /// For how long.
        time: Duration,
        /// Whether it was done.
        mode: Mode,
    },
    /// A deployment fails but the ejection cap keeps it in; it is tried once a second while others can serve.
    KeptFailing {
        /// Which one.
        deployment: DeploymentId,
        /// Whether it was done.
        mode: Mode,
    },
    /// A deployment works again.
    Returned {
        /// Which one.
        deployment: DeploymentId,
        /// Whether it was done.
        mode: Mode,
    },
}
