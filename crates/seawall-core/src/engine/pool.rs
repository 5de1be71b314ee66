//! One pool: its deployments, their health and capacity, its waiting line and budgets.

use super::route::Eligibility;
use crate::advice::Wait;
use crate::budget::Budget;
use crate::calendar::Calendar;
use crate::capacity::CapacityState;
use crate::classify::{AttemptEnd, HealthEffect};
use crate::cost::{Ledger, Work};
use crate::engine::io::Notice;
use crate::health::{self, Health, HealthState, Verdict};
use crate::id::{DeploymentId, RequestId, TenantId};
use crate::load::PeakEwma;
use crate::patience::Patience;
use crate::protection::Protection;
use crate::queue::{Bound, Headroom, Lane, Place, Queue, Turn};
use crate::random::Random;
use crate::rate::BestRate;
use crate::routing::{self, Candidate, RoutingPolicy};
use crate::service::ServiceTimes;
use crate::settings::{Capacity, DeploymentSettings, EjectionSettings, PoolSettings};
use crate::time::{Duration, Instant};
use crate::window::Window;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// The wait that is told while nothing has completed yet to estimate one from.
const UNKNOWN_DRAIN: Duration = Duration::from_secs(5);
/// Ten seconds, each a part of the window: what arrives in one.
const ARRIVALS: Duration = Duration::from_secs(10);
/// For so long after its start nobody is refused for what a pool seems to be unable to do.
const LEARNING: Duration = Duration::from_secs(4);

/// The state of a pool.
#[derive(Debug)]
pub(super) struct Pool {
    pub(super) settings: PoolSettings,
    pub(super) members: Vec<Member>,
    pub(super) policy: Box<dyn RoutingPolicy>,
    pub(super) queue: Queue,
    /// Observed requests that would wait.
    pub(super) shadow_line: Queue,
    pub(super) retry_budget: Budget,
    pub(super) not_sent_bucket: Budget,
    completions: Window,
    /// Attempts that ended of late, and those of them that failed.
    ends: Window,
    failures: Window,
    patience: BTreeMap<TenantId, Patience>,
    /// Arrivals of late that repeat nothing and that nobody told to come.
    arrivals: Window,
    calendar: Calendar,
    best_rate: BestRate,
    /// From the dispatch to the first byte: what a caller waits.
    service: ServiceTimes,
    /// From the dispatch to the end: how long an answer takes room.
    residence: ServiceTimes,
    pub(super) ledger: Ledger,
    started: Instant,
    /// When the waiting line has to be looked at again although nothing ended.
    pub(super) wake: Option<Instant>,
}

/// One deployment of the pool.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) id: DeploymentId,
    pub(super) settings: DeploymentSettings,
    pub(super) capacity: CapacityState,
    /// Attempts that would be in flight here if every request were enforced.
    pub(super) shadow_in_flight: u32,
    /// What the attempts in flight are thought to cost.
    pub(super) work_in_flight: Work,
    pub(super) health: Health,
    pub(super) latency: PeakEwma,
    /// The boundary's number in the engine's table; 0 for none.
    pub(super) boundary: u16,
}

impl Pool {
    pub(super) fn new(now: Instant, mut settings: PoolSettings, members: Vec<Member>) -> Self {
        settings.protections.apply(&mut settings);
        let entry = routing::by_name(&settings.policy).unwrap_or(&routing::REGISTRY[0]);
        let retry = &settings.retry;
        Self {
            policy: (entry.make)(),
            retry_budget: Budget::new(retry.budget_percent, retry.floor_per_second, retry.window),
            not_sent_bucket: Budget::new(retry.not_sent_percent, retry.floor_per_second, retry.window),
            completions: Window::new(Duration::from_secs(10)),
            ends: Window::new(Duration::from_secs(10)),
            failures: Window::new(Duration::from_secs(10)),
            patience: BTreeMap::new(),
            arrivals: Window::new(ARRIVALS),
            calendar: Calendar::default(),
            best_rate: BestRate::default(),
            service: ServiceTimes::default(),
            residence: ServiceTimes::default(),
            ledger: Ledger::default(),
            queue: Queue::default(),
            shadow_line: Queue::default(),
            started: now,
            wake: None,
            members,
            settings,
        }
    }

    /// Whether this protection is on.
    pub(super) const fn has(&self, protection: Protection) -> bool {
        self.settings.protections.has(protection)
    }

    /// Whether so few are healthy that health is ignored.
    pub(super) fn in_panic(&self) -> bool {
        let healthy = self.members.iter().filter(|member| member.health.is_healthy()).count();
        health::in_panic(healthy, self.members.len(), &self.settings.ejection)
    }

    /// Counts a first attempt of `tenant`, which budgets are a share of.
    pub(super) fn pay_in(&mut self, now: Instant, tenant: TenantId) {
        self.retry_budget.deposit(now, tenant);
        self.not_sent_bucket.deposit(now, tenant);
    }

    /// How many may wait at once.
    pub(super) const fn longest_line(&self) -> usize {
        self.settings.queue.max_waiting as usize
    }

    /// The first byte of an answer is there.
    pub(super) fn answered(&mut self, now: Instant, member: usize, started: Instant) {
        let state = &mut self.members[member];
        self.service.observe(state.alone(now.since(started)));
        state.latency.observe(now, now.since(started));
    }

    /// An answer reached its end.
    pub(super) fn completed(&mut self, now: Instant, member: usize, started: Instant) {
        let time = self.members[member].alone(now.since(started));
        self.residence.observe(time);
    }

    /// An answer began.
    pub(super) fn first_byte(
        &mut self,
        now: Instant,
        member: usize,
        started: Instant,
        on_trial: bool,
    ) -> Option<Notice> {
        self.answered(now, member, started);
        let state = &mut self.members[member];
        let returned = on_trial && state.health.succeeded(now, &self.settings.ejection, true);
        returned.then_some(Notice::Returned { deployment: state.id, mode: self.settings.mode })
    }

    /// Step 10: what an ended attempt says. Returns what is worth a line in the log.
    pub(super) fn observe(
        &mut self,
        now: Instant,
        member: usize,
        end: AttemptEnd,
        on_trial: bool,
        random: &mut Random,
    ) -> Option<Notice> {
        let (ejection, mode) = (self.settings.ejection.clone(), self.settings.mode);
        let state = &mut self.members[member];
        let deployment = state.id;
        self.ends.add(now, 1);
        match end.health() {
            HealthEffect::Success => {
                self.completions.add(now, 1);
                self.best_rate.add(now);
                state.health.succeeded(now, &ejection, on_trial).then_some(Notice::Returned { deployment, mode })
            }
            HealthEffect::Neutral => {
                if on_trial {
                    state.health.probe_undecided(now);
                }
                None
            }
            HealthEffect::Failure => {
                self.failures.add(now, 1);
                match state.health.failed(now, &ejection, on_trial) {
                    Verdict::Keep => None,
                    Verdict::Eject => self.eject_or_keep(now, member, &ejection, random),
                }
            }
        }
    }

    fn eject_or_keep(
        &mut self,
        now: Instant,
        member: usize,
        ejection: &EjectionSettings,
        random: &mut Random,
    ) -> Option<Notice> {
        let out = |m: &Member| matches!(m.health.state(), HealthState::Ejected { .. } | HealthState::Probing);
        let already_out = out(&self.members[member]);
        let others_out = self.members.iter().filter(|m| out(m)).count() - usize::from(already_out);
        let allowed = others_out < health::ejection_cap(self.members.len(), ejection) && self.keeps_half(member, out);
        let mode = self.settings.mode;
        let state = &mut self.members[member];
        let deployment = state.id;
        if allowed {
            let time = state.health.eject(now, ejection, random);
            return Some(Notice::Ejected { deployment, time, mode });
        }
        let news = !matches!(state.health.state(), HealthState::Failing { .. });
        state.health.keep_failing(now);
        news.then_some(Notice::KeptFailing { deployment, mode })
    }

    /// Whether at least half of the told capacity stays in rotation without `member`; where a size is not told, the
    /// count decides, which the cap has done.
    fn keeps_half(&self, member: usize, out: impl Fn(&Member) -> bool) -> bool {
        let size = |m: &Member| m.settings.capacity.size().map(u64::from);
        let Some(total) = self.members.iter().map(size).sum::<Option<u64>>() else { return true };
        let stays = self.members.iter().enumerate().filter(|(index, m)| *index != member && !out(m));
        stays.filter_map(|(_, m)| size(m)).sum::<u64>() * 2 >= total
    }

    /// The earliest time at which a member that is closed by a stated wait, full by a learned ceiling, or out, opens by
    /// itself; `None` where one only opens when an attempt ends. Always later than `now`.
    pub(super) fn opens_at(&mut self, now: Instant) -> Option<Instant> {
        let opens =
            |member: &mut Member| member.capacity.opens_at(now).into_iter().chain(member.health.opens_at(now)).min();
        self.members.iter_mut().filter_map(opens).min()
    }

    /// Whether nothing can start before `time`: every permitted member is closed by a wait that ends later.
    pub(super) fn closed_beyond(&self, time: Instant, who: Eligibility) -> Option<Instant> {
        let mut permitted = self.members.iter().filter(|member| who.permits(member)).peekable();
        permitted.peek()?;
        let first = permitted.map(|member| member.capacity.closed_until()).min()?;
        (first > time).then_some(first)
    }

    /// How long before their due times requests have to be sent. Long services say that callers wait for them: they take
    /// no more than half of the patience from the wait in the line.
    pub(super) fn headroom(&self) -> Headroom {
        if !self.has(Protection::DeadlineHeadroom) {
            return Headroom { deadline: Duration::ZERO, patience: Duration::ZERO };
        }
        let deadline = self.service.headroom();
        Headroom { deadline, patience: deadline.min(self.settings.queue.patience / 2) }
    }

    /// The time that has to be left to its due time so that sending a request is worth anything.
    pub(super) fn least_left(&self, bound: Bound) -> Duration {
        if !self.has(Protection::DeadlineHeadroom) {
            return Duration::ZERO;
        }
        let least = self.service.least();
        match bound {
            Bound::Deadline => least,
            Bound::Patience => least.min(self.settings.queue.patience / 4),
        }
    }

    /// How long `ahead` requests take at the best that the pool can do. `None`: nothing is known yet, or nothing bounds it.
    pub(super) fn best_drain(&mut self, now: Instant, ahead: usize) -> Option<Duration> {
        let rate = self.best_per_second(now)?;
        let nanos = (ahead as u64).saturating_mul(1_000_000_000).checked_div(rate)?;
        Some(Duration::from_nanos(nanos))
    }

    /// The best that the pool can do: its best second of late, or all that it may have in flight turned over in the time
    /// that an answer takes from dispatch to end, whichever is more. `None`: nothing is known yet, or nothing bounds it. Only
    /// the part that answers counts, and where so much is out that health is ignored, only the healthy part.
    fn best_per_second(&mut self, now: Instant) -> Option<u64> {
        let window = self.window(now, |_| true)?;
        self.best_of(now, window)
    }

    /// What of that can be promised: a window that was found and not told errs upwards, and turned over it is several
    /// times what the pool does while it opens.
    fn sure_per_second(&mut self, now: Instant) -> Option<u64> {
        self.window(now, |_| true)?;
        let told = self.window(now, |member| member.capacity.is_told())?;
        self.best_of(now, told)
    }

    /// All that those of its members may have in flight; `None`: nothing bounds one of them.
    fn window(&self, now: Instant, counts: impl Fn(&Member) -> bool) -> Option<u64> {
        let members = self.members.iter().filter(|member| counts(member));
        members.map(|member| member.capacity.limit(now).map(u64::from)).sum()
    }

    fn best_of(&mut self, now: Instant, window: u64) -> Option<u64> {
        if now.since(self.started) < LEARNING {
            return None;
        }
        let turnover = self.residence.median().map_or(0, |time| {
            let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).max(1);
            window.saturating_mul(1_000_000_000) / nanos
        });
        let best = Some(u64::from(self.best_rate.per_second(now)).max(turnover)).filter(|best| *best > 0)?;
        let panic = self.in_panic();
        let serves = |member: &&Member| if panic { member.health.is_healthy() } else { member.health.answers() };
        let serving = self.members.iter().filter(serves).count() as u64;
        Some((best * serving.max(1) / (self.members.len() as u64).max(1)).max(1))
    }

    /// Whether a request of that place could be answered in time if it began to wait now, behind `ahead` others.
    pub(super) fn can_serve_in_time(&mut self, now: Instant, place: Place, ahead: usize) -> bool {
        if !self.has(Protection::ArrivalTest) {
            return true;
        }
        let headroom = self.headroom().of(place.bound);
        self.best_drain(now, ahead).is_none_or(|wait| now + wait + headroom <= place.due)
    }

    /// How long a request of this tenant may wait in the line.
    pub(super) fn patience_of(&self, tenant: TenantId) -> Duration {
        let told = self.settings.queue.patience;
        if !self.has(Protection::LearnedPatience) {
            return told;
        }
        self.patience.get(&tenant).and_then(Patience::learned).map_or(told, |learned| learned.min(told))
    }

    /// A client of this tenant left after this time, and has not come back.
    pub(super) fn has_left(&mut self, tenant: TenantId, after: Duration) {
        self.patience.entry(tenant).or_default().observe(after);
    }

    /// Counts an arrival that repeats nothing and that nobody told to come.
    pub(super) fn arrived(&mut self, now: Instant) {
        self.arrivals.add(now, 1);
    }

    /// Books the return of a request that cannot be served, after `least` at the earliest. Of a pool of which nothing is
    /// known yet, or which nothing bounds, that is all that can be said.
    pub(super) fn book(&mut self, now: Instant, least: Duration, tenant: TenantId, random: &mut Random) -> Wait {
        if !self.has(Protection::ReturnCalendar) {
            return Wait::AtLeast(least);
        }
        // By the second that is usual: a burst that is over takes nothing from those who come after it.
        let arriving = u64::from(self.arrivals.median(now));
        let Some(best) = self.sure_per_second(now) else { return Wait::AtLeast(least) };
        let booked = self.calendar.book(now, now + least, best.saturating_sub(arriving), tenant, random);
        booked.map_or(Wait::NoPlace, Wait::Booked)
    }

    /// How much of a window of ten seconds has passed since the start.
    fn span(&self, now: Instant) -> Duration {
        now.since(self.started).clamp(Duration::from_secs(1), Duration::from_secs(10))
    }

    /// Whether somebody waits, more than a tenth of the attempts of the last seconds have failed, or no deployment is
    /// healthy: that stays so while nothing is tried.
    pub(super) fn has_trouble(&mut self, now: Instant) -> bool {
        !self.queue.is_empty() || !self.any_healthy() || self.failures.sum(now) * 10 > self.ends.sum(now)
    }

    fn any_healthy(&self) -> bool {
        self.members.iter().any(|member| member.health.is_healthy())
    }

    /// Whether an attempt that nobody waits for any more keeps its credit until it ends, instead of being cancelled.
    pub(super) fn keeps_left(&self, member: usize) -> bool {
        let frees = self.members[member].settings.cancel_frees;
        frees.map_or(!self.queue.is_empty(), |frees| !frees)
    }

    /// Pays for an attempt that repeats a failed one, of ours or of its client.
    pub(super) fn pays_for_repeat(&mut self, now: Instant, tenant: TenantId) -> bool {
        if self.any_healthy() {
            self.retry_budget.withdraw(now, tenant)
        } else {
            self.retry_budget.withdraw_from_floor(now, tenant)
        }
    }

    /// How long an answer that is under way is expected to take at the most.
    pub(super) fn expected_answer(&self) -> Duration {
        self.service.headroom()
    }

    /// Whose turn it is in a lane of the line.
    pub(super) fn head(&self, now: Instant, lane: Lane) -> Option<(Turn, Place, RequestId)> {
        self.queue.head(now, self.headroom(), lane)
    }

    /// How long the line up to `ahead` requests takes to drain at the rate of the last ten seconds.
    pub(super) fn drain_estimate(&mut self, now: Instant, ahead: usize) -> Duration {
        let span = self.span(now);
        match self.completions.sum(now) {
            0 => UNKNOWN_DRAIN,
            completed => span.saturating_mul(u32::try_from(ahead + 1).unwrap_or(u32::MAX)) / completed,
        }
    }
}

impl Member {
    /// What an answer would have taken if no more had been sent here than enforcing sends: an upstream that has more in
    /// flight makes the rest wait.
    fn alone(&self, time: Duration) -> Duration {
        let there = self.capacity.in_flight().max(1);
        time.saturating_mul(self.shadow_in_flight.clamp(1, there)) / there
    }

    /// Whether a request should find out whether it works again. Before its time only one at once does.
    pub(super) fn is_probe_due(&self, now: Instant, short: bool) -> bool {
        self.health.probe_due(now, short && self.capacity.in_flight() == 0)
    }

    /// Whether one attempt more than are in flight is known to fit.
    pub(super) fn has_known_place(&self) -> bool {
        self.capacity.is_known_to_take(self.capacity.in_flight())
    }

    /// Whether one more attempt could start here now if every request were enforced.
    pub(super) fn would_have_room(&mut self, now: Instant) -> bool {
        self.capacity.takes(now, self.shadow_in_flight)
    }

    /// Whether one more would be known to fit.
    pub(super) fn would_have_known_place(&self) -> bool {
        self.capacity.is_known_to_take(self.shadow_in_flight)
    }

    pub(super) fn candidate(&self, now: Instant, ejection: &EjectionSettings) -> Candidate {
        Candidate {
            deployment: self.id,
            in_flight: self.capacity.in_flight(),
            weight: self.settings.weight,
            priority_group: self.settings.priority_group,
            provisioned: matches!(self.settings.capacity, Capacity::Provisioned { .. }),
            share_percent: self.health.slow_start_percent(now, ejection),
            latency_nanos: self.latency.nanos(),
        }
    }
}
