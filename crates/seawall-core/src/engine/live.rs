//! A flight that has not ended, and what is decided about it.

use super::account::Account;
use super::io::{Identity, Verdict};
use super::observe::Shadow;
use crate::capacity::Sent;
use crate::id::{AttemptId, DeploymentId, PoolId, TenantId};
use crate::past::Entry;
use crate::permit::Payment;
use crate::queue::{Bound, Place};
use crate::time::{Duration, Instant};

/// A flight that has not ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Live {
    /// `None`: nobody can join it.
    pub(super) identity: Option<Identity>,
    /// Whether the client that began it still waits.
    pub(super) leader: bool,
    /// How many others wait for its answer.
    pub(super) waiters: u32,
    /// Whether nobody can join any more.
    pub(super) is_sealed: bool,
    /// When it is looked at again, where nobody waits for it.
    pub(super) left_until: Instant,
    /// Whether nobody has come back in time, and it goes on because others wait.
    pub(super) outlived_hold: bool,
    /// What is known of the twin that it repeats.
    pub(super) prior: Option<Entry>,
    /// Whether its first attempt has been paid from the retry budget.
    pub(super) paid: bool,
    pub(super) tenant: TenantId,
    /// The pool that it asked for.
    pub(super) asked: PoolId,
    /// Entries of that one's list of fallbacks that are behind it.
    pub(super) passed: usize,
    /// The pool that serves it.
    pub(super) pool: PoolId,
    pub(super) place: Place,
    pub(super) arrived: Instant,
    pub(super) deadline: Option<Instant>,
    /// How long it may wait in the line, all waits together.
    pub(super) patience: Duration,
    pub(super) attempts: u32,
    /// Those of them of which not a byte was sent.
    pub(super) unsent: u32,
    pub(super) last: Option<DeploymentId>,
    pub(super) exclude: Option<DeploymentId>,
    pub(super) queued: Duration,
    pub(super) phase: Phase,
    /// Forwarded whatever happens; from its first attempt on a request keeps its mode.
    pub(super) observed: bool,
    pub(super) shadow: Shadow,
    pub(super) verdict: Option<Verdict>,
    pub(super) account: Account,
}

/// A decided attempt.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) member: usize,
    pub(super) on_trial: bool,
    pub(super) payment: Payment,
    pub(super) fresh_connection: bool,
}

impl Live {
    /// Its place if it begins to wait now: due at its deadline or at the end of its patience, whichever comes first. Who
    /// comes back after a quick refusal keeps its place; the time of a long attempt is not taken from the wait.
    pub(super) fn place_in_line(&self, now: Instant) -> Place {
        let kept = self.arrived + self.patience;
        let patience_ends = if kept > now { kept } else { now + self.patience.saturating_sub(self.queued) };
        match self.deadline {
            Some(deadline) if deadline < patience_ends => Place { bound: Bound::Deadline, due: deadline, ..self.place },
            _ => Place { bound: Bound::Patience, due: patience_ends, ..self.place },
        }
    }

    /// Attempts of its twins that reached an upstream of late.
    pub(super) fn prior_attempts(&self) -> u32 {
        self.prior.map_or(0, |known| known.attempts)
    }

    /// Attempts of it, and those of its twins that reached an upstream.
    pub(super) fn tried(&self) -> u32 {
        self.prior_attempts() + self.attempts
    }

    /// What is remembered of it if it ends now without an answer.
    pub(super) fn remembered(&self, now: Instant, booked: Option<Instant>) -> Entry {
        let own = Entry::new(self.arrived, self.attempts.saturating_sub(self.unsent), booked, now);
        self.prior.map_or(own, |known| known.followed_by(own))
    }

    /// Whether it goes on although nobody waits for it.
    pub(super) const fn is_left(&self) -> bool {
        self.identity.is_some() && !self.leader && self.waiters == 0
    }

    /// What pays for its first attempt.
    pub(super) const fn first_payment(&self) -> Payment {
        if self.paid { Payment::RetryBudget } else { Payment::Admission }
    }

    pub(super) const fn waits_since(&self) -> Option<Instant> {
        match self.phase {
            Phase::Waiting { since, .. } => Some(since),
            Phase::Running { .. } => None,
        }
    }
}

impl Plan {
    pub(super) const fn new(member: usize, on_trial: bool, payment: Payment) -> Self {
        Self { member, on_trial, payment, fresh_connection: false }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Phase {
    Waiting { since: Instant, expires: Instant },
    Running { member: usize, attempt: AttemptId, sent: Sent, started: Instant, on_trial: bool, relaying: bool },
}
