//! Step 7, route: which deployment of a pool a request goes to, and which one it probes.

use super::pool::{Member, Pool};
use crate::health::HealthState;
use crate::id::{DeploymentId, TenantId};
use crate::queue::Lane;
use crate::random::Random;
use crate::routing::Candidate;
use crate::time::Instant;
use smallvec::SmallVec;

/// Which members a request may go to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Eligibility {
    /// The boundary it must stay inside; 0 for any.
    pub(super) boundary: u16,
    /// A member it must not go to again.
    pub(super) exclude: Option<DeploymentId>,
}

impl Eligibility {
    /// That of everybody in `lane`.
    pub(super) const fn of(lane: Lane) -> Self {
        Self { boundary: lane.boundary, exclude: lane.exclude }
    }

    pub(super) fn permits(self, member: &Member) -> bool {
        (self.boundary == 0 || self.boundary == member.boundary) && self.exclude != Some(member.id)
    }
}

/// What decides about a member beside its own health.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    /// Whether so few are healthy that health is ignored.
    panic: bool,
    /// Whether some member answers at all.
    any_answers: bool,
    /// Whether some member is not out.
    pub(super) any_kept: bool,
}

/// How a member stands: the first is asked first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tier {
    /// It takes what comes.
    InRotation,
    /// It fails, but the cap keeps it in.
    KeptFailing,
    /// It gets probes.
    Out,
}

impl Standing {
    /// Who answers nothing gets probes while somebody else answers, in panic, too, and whether the cap has kept it in or
    /// not: to wait for room at who answers is better than a failure that is certain.
    pub(super) fn tier(self, member: &Member) -> Tier {
        if self.any_answers && !member.health.answers() {
            return Tier::Out;
        }
        match member.health.state() {
            _ if self.panic => Tier::InRotation,
            HealthState::Healthy => Tier::InRotation,
            HealthState::Failing { .. } => Tier::KeptFailing,
            HealthState::Ejected { .. } | HealthState::Probing => Tier::Out,
        }
    }
}

/// Which room a request takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// Any: it may find out that there is none.
    Any,
    /// Only what is known to be there.
    Known,
}

/// Where a request can go now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Routed {
    /// There. `on_trial`: although it is not healthy.
    To { member: usize, on_trial: bool },
    /// Every permitted deployment is busy, or may be where only known room will do.
    NoRoom,
    /// There is none that this request may go to.
    NonePermitted,
}

impl Pool {
    /// Step 7: filters, then lets the policy pick. `first_of`: the tenant, where this is a first attempt; only such a
    /// one may find out whether an ejected deployment works again.
    pub(super) fn route(
        &mut self,
        now: Instant,
        who: Eligibility,
        first_of: Option<TenantId>,
        room: Room,
        random: &mut Random,
    ) -> Routed {
        if let Some(tenant) = first_of
            && let Some(member) = self.due_probe(now, who, tenant)
        {
            return Routed::To { member, on_trial: true };
        }
        let standing = self.standing(who);
        // In this order: what is in rotation; what fails but was kept in; and, where all that is permitted is out, what
        // is out: the last candidate is never refused to.
        for tier in [Tier::InRotation, Tier::KeptFailing, Tier::Out] {
            if tier == Tier::Out && standing.any_kept {
                break;
            }
            let mut candidates = self.candidates(now, |member| who.permits(member) && standing.tier(member) == tier);
            if candidates.is_empty() {
                continue;
            }
            if room == Room::Known {
                candidates.retain(|(_, index)| self.members[*index].has_known_place());
            }
            if candidates.is_empty() {
                return Routed::NoRoom;
            }
            let member = candidates[self.pick(&candidates, random)].1;
            return Routed::To { member, on_trial: !self.members[member].health.is_healthy() };
        }
        if self.permits_any(who) { Routed::NoRoom } else { Routed::NonePermitted }
    }

    /// The member that `tenant`'s first attempt probes, if one is due. It is the request's risk, so it falls on one
    /// whose second attempt would be paid for, unless none of those has come along for a while.
    fn due_probe(&mut self, now: Instant, who: Eligibility, tenant: TenantId) -> Option<usize> {
        let short = !self.queue.is_empty();
        let due = |member: &Member| who.permits(member) && member.is_probe_due(now, short);
        if !self.members.iter().any(due) {
            return None;
        }
        let standing = self.standing(who);
        let covered = self.settings.retry.max_attempts > 1 && self.retry_budget.can_withdraw(now, tenant);
        let others = self.members.iter().any(|member| who.permits(member) && standing.tier(member) == Tier::InRotation);
        if !others {
            return None;
        }
        self.members.iter_mut().position(|member| {
            due(member)
                && standing.tier(member) != Tier::InRotation
                && (covered || member.health.probe_overdue(now, short))
                && member.capacity.has_room(now)
        })
    }

    /// How the members that `who` may go to stand now.
    pub(super) fn standing(&self, who: Eligibility) -> Standing {
        let permitted = || self.members.iter().filter(|member| who.permits(member));
        let any_answers = permitted().any(|member| member.health.answers());
        let standing = Standing { panic: self.in_panic(), any_answers, any_kept: true };
        let any_kept = permitted().any(|member| standing.tier(member) != Tier::Out);
        Standing { any_kept, ..standing }
    }

    /// Whether `member` takes another attempt now without being on trial.
    pub(super) fn serves(&mut self, now: Instant, member: usize) -> bool {
        let member = &mut self.members[member];
        member.health.is_healthy() && member.capacity.has_room(now)
    }

    /// Whether a request waits that could go to `member`.
    pub(super) fn waits_for(&self, member: usize) -> bool {
        let member = &self.members[member];
        self.queue.lanes().any(|lane| Eligibility::of(lane).permits(member))
    }

    /// Whether there is a member that `who` may go to at all.
    pub(super) fn permits_any(&self, who: Eligibility) -> bool {
        self.members.iter().any(|member| who.permits(member))
    }

    fn candidates(&mut self, now: Instant, allowed: impl Fn(&Member) -> bool) -> SmallVec<[(Candidate, usize); 16]> {
        let ejection = &self.settings.ejection;
        self.members
            .iter_mut()
            .enumerate()
            .filter_map(|(index, member)| {
                let takes = allowed(member) && member.capacity.has_room(now);
                takes.then(|| (member.candidate(now, ejection), index))
            })
            .collect()
    }

    pub(super) fn pick(&mut self, candidates: &[(Candidate, usize)], random: &mut Random) -> usize {
        let plain: SmallVec<[Candidate; 16]> = candidates.iter().map(|(candidate, _)| *candidate).collect();
        self.policy.pick(&plain, random)
    }
}
