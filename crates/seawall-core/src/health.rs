//! Passive ejection of failing deployments: outlier detection with a cap, a last-candidate rule, a panic threshold,
//! single probes and a slow start.
//!
//! A deployment is ejected by failures in a row, or by its failure share over a window, and stays out for
//! `base_time x 2^n` (+/- 25%, so that several do not come back together). Then a single request probes it; its success
//! starts the slow start, its failure ejects again for twice as long. The cap (a share of the pool, never the last one,
//! never below half of the capacity) keeps a common fault from emptying the pool: what the cap keeps in although it
//! fails is marked `failing`, and is tried by one request an interval only while others can serve. Below the panic
//! threshold health says more about us than about them, and load goes to all ("panic mode", Envoy).

use crate::random::Random;
use crate::settings::EjectionSettings;
use crate::time::{Duration, Instant};
use crate::window::Window;

/// How long a deployment that fails but may not be ejected is left alone between two tries.
const FAILING_TRY_INTERVAL: Duration = Duration::from_secs(1);
/// How long a probe waits for a request that has a second attempt.
const PROBE_GRACE: Duration = Duration::from_secs(5);
const SLOW_START_FLOOR_PERCENT: u32 = 10;
/// So many failures in a row say that nothing is answered: of one that answers half of all, one run in 32 is so long.
const GONE_AFTER: u32 = 5;

/// The health of one deployment.
#[derive(Clone, Debug)]
pub struct Health {
    consecutive_failures: u32,
    successes: Window,
    failures: Window,
    ejections: u32,
    state: HealthState,
    slow_start_since: Option<Instant>,
    /// Failures since the last success.
    failed_since_success: u32,
    /// When an attempt last failed, or a probe began.
    last_try: Instant,
}

/// Where a deployment stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HealthState {
    /// In rotation.
    Healthy,
    /// Fails, but the cap keeps it in: one try an interval.
    Failing {
        /// Not before this time, while others can serve.
        next_try: Instant,
    },
    /// Out of rotation.
    Ejected {
        /// When it may be probed.
        until: Instant,
    },
    /// One request is finding out whether it works again.
    Probing,
}

impl HealthState {
    /// The label in `/statusz` and metrics.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Failing { .. } => "failing",
            Self::Ejected { .. } => "ejected",
            Self::Probing => "probing",
        }
    }
}

/// What a failure led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Not enough to act on.
    Keep,
    /// It should leave the rotation: the pool decides between ejection and `Failing`.
    Eject,
}

impl Health {
    /// Healthy, without history.
    pub fn new(settings: &EjectionSettings) -> Self {
        Self {
            consecutive_failures: 0,
            successes: Window::new(settings.window),
            failures: Window::new(settings.window),
            ejections: 0,
            state: HealthState::Healthy,
            slow_start_since: None,
            failed_since_success: 0,
            last_try: Instant::ZERO,
        }
    }

    /// The present state.
    pub const fn state(&self) -> HealthState {
        self.state
    }

    /// Whether it takes ordinary traffic.
    pub const fn is_healthy(&self) -> bool {
        matches!(self.state, HealthState::Healthy)
    }

    /// Whether it answers at all. One that is out, or kept in although it fails, and has done nothing but fail, is as good
    /// as gone.
    pub const fn answers(&self) -> bool {
        self.is_healthy() || self.failed_since_success < GONE_AFTER
    }

    /// Whether a probe or a try is due at `now`. `short`: others wait for room, so that one that is back by now would be
    /// missed: then one that is out is probed once a second, too.
    pub fn probe_due(&self, now: Instant, short: bool) -> bool {
        self.due_at(short).is_some_and(|due| now >= due)
    }

    /// Whether a probe or a try has been due for so long that it is made although no second attempt could follow it:
    /// where none ever can, the deployment would stay out for good.
    pub fn probe_overdue(&self, now: Instant, short: bool) -> bool {
        self.due_at(short).is_some_and(|due| now >= due + PROBE_GRACE)
    }

    /// When one that is not healthy may take a request that waits, if that is still to come.
    pub fn opens_at(&self, now: Instant) -> Option<Instant> {
        let due = self.due_at(true)?;
        [due, due + PROBE_GRACE].into_iter().find(|at| *at > now)
    }

    fn due_at(&self, short: bool) -> Option<Instant> {
        match self.state {
            HealthState::Ejected { until } if short => Some(until.min(self.last_try + FAILING_TRY_INTERVAL)),
            HealthState::Ejected { until } => Some(until),
            HealthState::Failing { next_try } => Some(next_try),
            HealthState::Healthy | HealthState::Probing => None,
        }
    }

    /// An attempt goes to it although it is not healthy.
    pub fn probe_started(&mut self, now: Instant) {
        self.last_try = now;
        match self.state {
            // One that is tried before its time keeps it: a failure says nothing new.
            HealthState::Ejected { until } if now >= until => self.state = HealthState::Probing,
            HealthState::Failing { .. } => {
                self.state = HealthState::Failing { next_try: now + FAILING_TRY_INTERVAL };
            }
            HealthState::Ejected { .. } | HealthState::Healthy | HealthState::Probing => {}
        }
    }

    /// A probe ended without saying anything (its client left, it was throttled): the next request probes again.
    pub fn probe_undecided(&mut self, now: Instant) {
        if self.state == HealthState::Probing {
            self.state = HealthState::Ejected { until: now };
        }
    }

    /// Takes a success. `on_trial`: the attempt was sent although the deployment was not healthy; a late success of an
    /// older attempt says nothing about now. Returns `true` where it brought the deployment back.
    pub fn succeeded(&mut self, now: Instant, settings: &EjectionSettings, on_trial: bool) -> bool {
        self.consecutive_failures = 0;
        self.failed_since_success = 0;
        self.successes.add(now, 1);
        match self.state {
            HealthState::Failing { .. } | HealthState::Probing | HealthState::Ejected { .. } if on_trial => {
                self.failures.clear();
                // What never left the rotation needs no slow start.
                if !matches!(self.state, HealthState::Failing { .. }) {
                    self.slow_start_since = Some(now);
                }
                self.state = HealthState::Healthy;
                true
            }
            HealthState::Healthy => {
                if self.slow_start_since.is_some_and(|since| now.since(since) >= settings.slow_start) {
                    self.slow_start_since = None;
                    self.ejections = 0;
                }
                false
            }
            HealthState::Failing { .. } | HealthState::Probing | HealthState::Ejected { .. } => false,
        }
    }

    /// Takes a failure and says whether it should leave the rotation.
    pub fn failed(&mut self, now: Instant, settings: &EjectionSettings, on_trial: bool) -> Verdict {
        self.consecutive_failures = self.consecutive_failures.saturating_add(1);
        self.failed_since_success = self.failed_since_success.saturating_add(1);
        self.failures.add(now, 1);
        self.last_try = now;
        match self.state {
            HealthState::Probing if on_trial => Verdict::Eject,
            HealthState::Probing | HealthState::Ejected { .. } => Verdict::Keep,
            HealthState::Healthy | HealthState::Failing { .. } => {
                let failures = self.failures.sum(now);
                let outcomes = failures.saturating_add(self.successes.sum(now));
                let by_share = outcomes >= settings.minimum_outcomes
                    && u64::from(failures) * 100 >= u64::from(settings.failure_percent) * u64::from(outcomes);
                let in_a_row = self.consecutive_failures >= settings.consecutive_failures;
                if in_a_row || by_share { Verdict::Eject } else { Verdict::Keep }
            }
        }
    }

    /// Takes it out of rotation. Returns for how long.
    pub fn eject(&mut self, now: Instant, settings: &EjectionSettings, random: &mut Random) -> Duration {
        let time = settings.base_time.saturating_mul(1 << self.ejections.min(16)).min(settings.max_time);
        let time = random.span(time.saturating_mul(3) / 4, time.saturating_mul(5) / 4);
        self.ejections = self.ejections.saturating_add(1);
        self.consecutive_failures = 0;
        self.slow_start_since = None;
        self.state = HealthState::Ejected { until: now + time };
        time
    }

    /// Keeps it in although it fails, because the cap does not allow another ejection.
    pub fn keep_failing(&mut self, now: Instant) {
        self.state = HealthState::Failing { next_try: now + FAILING_TRY_INTERVAL };
    }

    /// The share of its normal traffic that it should get: below 100 during its slow start.
    pub fn slow_start_percent(&self, now: Instant, settings: &EjectionSettings) -> u32 {
        let Some(since) = self.slow_start_since else { return 100 };
        let whole = settings.slow_start.as_millis().max(1);
        let percent = now.since(since).as_millis().saturating_mul(100) / whole;
        u32::try_from(percent).unwrap_or(100).clamp(SLOW_START_FLOOR_PERCENT, 100)
    }
}

/// How many of `total` equal deployments may be ejected at once: the share, at least one, never more than half and
/// never the last one.
pub fn ejection_cap(total: usize, settings: &EjectionSettings) -> usize {
    let by_share = total * settings.max_ejected_percent as usize / 100;
    by_share.max(1).min(total / 2)
}

/// Whether so few are healthy that health is ignored.
pub fn in_panic(healthy: usize, total: usize, settings: &EjectionSettings) -> bool {
    healthy * 100 < total * settings.panic_percent as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::from_millis(seconds * 1_000)
    }

    #[test]
    fn three_in_a_row_eject_and_a_failed_probe_doubles_the_time() {
        let settings = EjectionSettings::default();
        let (mut health, mut random) = (Health::new(&settings), Random::new(1));
        assert_eq!(health.failed(at(0), &settings, false), Verdict::Keep);
        assert_eq!(health.failed(at(0), &settings, false), Verdict::Keep);
        assert_eq!(health.failed(at(0), &settings, false), Verdict::Eject);
        let first = health.eject(at(0), &settings, &mut random);
        assert!((7_500..=12_500).contains(&first.as_millis()));
        assert!(!health.probe_due(at(0) + first - Duration::from_nanos(1), false));
        assert!(health.probe_due(at(0) + first, false));
        health.probe_started(at(20));
        assert_eq!(health.state(), HealthState::Probing);
        assert!(!health.probe_due(at(20), false), "one probe at a time");
        assert_eq!(health.failed(at(20), &settings, true), Verdict::Eject);
        let second = health.eject(at(20), &settings, &mut random);
        assert!((15_000..=25_000).contains(&second.as_millis()));
    }

    #[test]
    fn a_successful_probe_starts_slowly() {
        let settings = EjectionSettings::default();
        let mut health = Health::new(&settings);
        health.eject(at(0), &settings, &mut Random::new(1));
        health.probe_started(at(13));
        assert!(health.succeeded(at(13), &settings, true));
        assert_eq!(health.slow_start_percent(at(13), &settings), 10);
        assert_eq!(health.slow_start_percent(at(28), &settings), 50);
        assert_eq!(health.slow_start_percent(at(43), &settings), 100);
    }

    #[test]
    fn successes_between_failures_eject_only_by_share() {
        let settings = EjectionSettings::default();
        let mut health = Health::new(&settings);
        let expected = [Verdict::Keep, Verdict::Keep, Verdict::Keep, Verdict::Keep, Verdict::Eject];
        for verdict in expected {
            health.succeeded(at(1), &settings, false);
            assert_eq!(health.failed(at(1), &settings, false), verdict);
        }
    }

    #[test]
    fn a_late_success_of_an_older_attempt_does_not_bring_it_back() {
        let settings = EjectionSettings::default();
        let mut health = Health::new(&settings);
        health.eject(at(0), &settings, &mut Random::new(1));
        assert!(!health.succeeded(at(1), &settings, false));
        assert!(!health.is_healthy());
        health.probe_started(at(13));
        assert_eq!(health.failed(at(13), &settings, false), Verdict::Keep);
        assert_eq!(health.state(), HealthState::Probing);
    }

    #[test]
    fn what_only_fails_is_gone_until_it_answers() {
        let settings = EjectionSettings::default();
        let mut health = Health::new(&settings);
        for _ in 0..4 {
            health.failed(at(1), &settings, false);
        }
        health.eject(at(1), &settings, &mut Random::new(1));
        assert!(health.answers(), "four failures are not enough");
        health.failed(at(2), &settings, false);
        assert!(!health.answers());
        assert!(!health.succeeded(at(3), &settings, false), "a late success does not bring it back");
        assert!(health.answers());
    }

    #[test]
    fn where_room_is_short_what_is_out_is_tried_once_a_second_and_keeps_its_time() {
        let settings = EjectionSettings::default();
        let mut health = Health::new(&settings);
        health.failed(at(0), &settings, false);
        health.eject(at(0), &settings, &mut Random::new(1));
        let state = health.state();
        assert!(!health.probe_due(at(1), false) && health.probe_due(at(1), true));
        assert_eq!(health.opens_at(at(0)), Some(at(1)));
        health.probe_started(at(1));
        assert_eq!(health.failed(at(1), &settings, true), Verdict::Keep);
        assert_eq!((health.state(), health.probe_due(at(1), true)), (state, false));
        assert!(health.succeeded(at(2), &settings, true), "its success brings it back");
    }

    #[test]
    fn caps() {
        let settings = EjectionSettings::default();
        let caps: alloc::vec::Vec<_> =
            [1, 2, 3, 4, 7, 10].iter().map(|total| ejection_cap(*total, &settings)).collect();
        assert_eq!(caps, [0, 1, 1, 1, 2, 3]);
        assert!(!in_panic(1, 2, &settings));
        assert!(in_panic(1, 3, &settings));
    }
}
