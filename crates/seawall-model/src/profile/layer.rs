//! One retrying layer: which answers it retries, how long it waits by itself, and how it reads a stated wait.

use super::{Answer, Decision, Outcome, header};
use core::time::Duration;
use rand_core::Rng;

/// Which statuses a layer retries.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Statuses {
    /// None.
    Never,
    /// Those listed and every one from 500 on.
    ServerErrorsAnd(&'static [u16]),
    /// Those listed and every one from 500 on, but not those of the second list.
    ServerErrorsAndBut(&'static [u16], &'static [u16]),
    /// Only those listed.
    Only(&'static [u16]),
    /// Every one from 400 on but those listed.
    AllBut(&'static [u16]),
}

impl Statuses {
    fn contains(self, status: u16) -> bool {
        match self {
            Self::Never => false,
            Self::ServerErrorsAnd(list) => status >= 500 || list.contains(&status),
            Self::ServerErrorsAndBut(list, but) => (status >= 500 || list.contains(&status)) && !but.contains(&status),
            Self::Only(list) => list.contains(&status),
            Self::AllBut(list) => status >= 400 && !list.contains(&status),
        }
    }
}

/// Which faults a layer retries.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Faults {
    /// [`Outcome::Refused`].
    pub refused: bool,
    /// [`Outcome::Reset`].
    pub reset: bool,
    /// [`Outcome::ReadTimeout`].
    pub read_timeout: bool,
    /// [`Outcome::FirstEventError`].
    pub first_event_error: bool,
}

/// What in a refusal counts as a quota that does not come back, so that the layer stops.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum QuotaStop {
    /// Nothing does.
    Never,
    /// A 429 with `error.type` `insufficient_quota`, or whose body is no JSON.
    ErrorType,
    /// A 429 with `error.code` `insufficient_quota`, or whose message speaks of billing.
    CodeOrMessage,
    /// A first event in error that names quota or a client's mistake.
    FirstEvent,
}

/// The wait of a layer that was told none. Attempt n's wait is `first` x 2^(n-1), at most `max`, times a uniform draw
/// between `low` and `high` percent, plus a uniform draw up to `spread`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Backoff {
    /// The wait after the first attempt, before jitter.
    pub first: Duration,
    /// The largest wait before jitter.
    pub max: Duration,
    /// Lower end of the factor in percent.
    pub low_percent: u32,
    /// Upper end of the factor in percent.
    pub high_percent: u32,
    /// Largest addition.
    pub spread: Duration,
    /// The wait is drawn between `first` and the exponential value instead of around the latter.
    pub from_first: bool,
    /// The first retry goes out at once; the law holds from the second on.
    pub first_immediate: bool,
}

/// What a layer does with a stated wait of nought.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OnZero {
    /// It comes back at once.
    Immediate,
    /// It takes the header as absent.
    Ignore,
}

/// What a layer does with a stated wait beyond what it is ready to wait.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OnExcess {
    /// It takes the header as absent and so uses its own, short, backoff.
    Ignore,
    /// It gives up.
    Stop,
    /// It waits only the cap.
    Clamp,
    /// Its timer overflows and it comes back at once.
    Immediate,
}

/// Which forms of `retry-after` a layer understands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Forms {
    /// Whole seconds only.
    Integer,
    /// Whole seconds and dates.
    IntegerAndDate,
    /// Whole seconds and fractions.
    IntegerAndFraction,
    /// Whole seconds, fractions and dates.
    All,
}

/// How a layer reads a stated wait.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WaitReading {
    /// Forms of `retry-after`; `None` where it is not read at all.
    pub retry_after: Option<Forms>,
    /// Whether `retry-after-ms` is read.
    pub retry_after_ms: bool,
    /// Whether `x-ms-retry-after-ms` is read.
    pub x_ms_retry_after_ms: bool,
    /// Whether the millisecond headers win over `retry-after`.
    pub ms_wins: bool,
    /// Statuses on which a stated wait is read; empty for every one.
    pub on: &'static [u16],
    /// The largest wait that is obeyed.
    pub cap: Duration,
    /// Whether a wait of exactly `cap` is obeyed.
    pub cap_obeyed: bool,
    /// Beyond the cap.
    pub on_excess: OnExcess,
    /// A stated wait of nought.
    pub on_zero: OnZero,
    /// Largest random addition to a stated wait.
    pub spread: Duration,
    /// A stated wait shorter than the backoff gives way to the backoff.
    pub at_least_backoff: bool,
    /// Whether "try again in N s" in the message is read where no header states a wait.
    pub message: bool,
}

/// One retrying layer of a client.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Layer {
    /// Attempts in all, the first one included.
    pub attempts: u16,
    /// Retried statuses.
    pub statuses: Statuses,
    /// Retried faults.
    pub faults: Faults,
    /// Whether `x-should-retry` decides before the status does.
    pub obeys_should_retry: bool,
    /// Whether a `retry-after` header alone makes any status from 400 on retried.
    pub header_makes_retry: bool,
    /// Whether a 429 that states no wait is final.
    pub bare_429_stops: bool,
    /// Quota that does not come back.
    pub quota_stop: QuotaStop,
    /// Own waits.
    pub backoff: Backoff,
    /// Stated waits.
    pub waits: WaitReading,
    /// The layer gives up when this long has passed since the call began.
    pub give_up_after: Option<Duration>,
}

impl Layer {
    /// `retries` is the number of this layer's retries before this answer.
    pub(super) fn next(&self, retries: u16, answer: &Answer<'_>, random: &mut impl Rng) -> Decision {
        if retries + 1 >= self.attempts || self.give_up_after.is_some_and(|limit| answer.elapsed >= limit) {
            return Decision::Stop;
        }
        let stated = self.waits.stated(answer);
        if stated == header::Stated::Stop || !self.retries(answer, stated) {
            return Decision::Stop;
        }
        let own = self.backoff.wait(retries, random);
        let header::Stated::Wait(wait) = stated else {
            return Decision::RetryAfter { wait: own, told: false };
        };
        let wait = wait.saturating_add(below(self.waits.spread, random));
        if self.waits.at_least_backoff && own > wait {
            return Decision::RetryAfter { wait: own, told: false };
        }
        Decision::RetryAfter { wait, told: true }
    }

    fn retries(&self, answer: &Answer<'_>, stated: header::Stated) -> bool {
        let status = match answer.outcome {
            Outcome::Refused => return self.faults.refused,
            Outcome::Reset => return self.faults.reset,
            Outcome::ReadTimeout => return self.faults.read_timeout,
            Outcome::FirstEventError => return self.faults.first_event_error && !self.quota_gone(answer),
            Outcome::Status(status) => status,
        };
        if self.obeys_should_retry {
            match answer.should_retry {
                Some("true") => return true,
                Some("false") => return false,
                _ => {}
            }
        }
        if self.quota_gone(answer) {
            return false;
        }
        if self.header_makes_retry && answer.retry_after.is_some() {
            return true;
        }
        if status == 429 && self.bare_429_stops {
            return matches!(stated, header::Stated::Wait(_));
        }
        self.statuses.contains(status)
    }

    fn quota_gone(&self, answer: &Answer<'_>) -> bool {
        const QUOTA: Option<&str> = Some("insufficient_quota");
        let limited = answer.outcome == Outcome::Status(429);
        match self.quota_stop {
            QuotaStop::Never => false,
            QuotaStop::ErrorType => limited && (answer.error_type == QUOTA || !answer.json_body),
            QuotaStop::CodeOrMessage => limited && (answer.error_code == QUOTA || header::names_billing(answer)),
            QuotaStop::FirstEvent => {
                answer.outcome == Outcome::FirstEventError
                    && (answer.error_type == QUOTA || answer.error_code == QUOTA || header::names_mistake(answer))
            }
        }
    }
}

impl Backoff {
    fn wait(&self, retries: u16, random: &mut impl Rng) -> Duration {
        let retries = match (self.first_immediate, retries) {
            (true, 0) => return Duration::ZERO,
            _ => u32::from(retries),
        };
        let factor = 1_u32.checked_shl(retries).unwrap_or(u32::MAX);
        let base = self.first.checked_mul(factor).unwrap_or(self.max).min(self.max);
        if self.from_first {
            return self.first + below(base.saturating_sub(self.first), random);
        }
        let low = base * self.low_percent / 100;
        let high = base * self.high_percent / 100;
        low + below(high.saturating_sub(low), random) + below(self.spread, random)
    }
}

/// A uniform draw in `0..=bound`, in whole microseconds; draws nothing from `random` where the bound is nought.
fn below(bound: Duration, random: &mut impl Rng) -> Duration {
    let Ok(micros) = u64::try_from(bound.as_micros()) else {
        return bound;
    };
    if micros == 0 {
        return Duration::ZERO;
    }
    let product = u128::from(random.next_u64()) * (u128::from(micros) + 1);
    Duration::from_micros(u64::try_from(product >> 64).expect("the high half fits"))
}
