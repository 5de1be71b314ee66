//! `[models.queue]`, `[models.retry]`, `[models.ejection]`, `[models.timeouts]`: the engine's own defaults.

use crate::units::{DurationOrZero, DurationText};
use schemars::JsonSchema;
use seawall_core::settings::{EjectionSettings, QueueSettings, RetrySettings, TimeoutSettings};
use serde::{Deserialize, Serialize};

/// The waiting line in front of a model's deployments.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Queue {
    /// How long a request without a deadline of its own may wait for a free deployment. It bounds the wait only, never
    /// the service. People leave after about 10 s.
    pub(crate) patience: DurationOrZero,
    /// How many requests may wait at once; one more is refused.
    #[schemars(range(max = 1_000_000))]
    pub(crate) max_waiting: u32,
}

impl Default for Queue {
    fn default() -> Self {
        let core = QueueSettings::default();
        Self { patience: DurationOrZero(core.patience), max_waiting: core.max_waiting }
    }
}

impl Queue {
    pub(crate) fn settings(&self) -> QueueSettings {
        QueueSettings { patience: self.patience.0, max_waiting: self.max_waiting }
    }
}

/// Seawall's own retries, and the one budget that pays for them.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Retry {
    /// Attempts for one request at the most, the first included: 1 switches retries off, more than 2 would only
    /// multiply load while everything fails.
    #[schemars(range(min = 1, max = 2))]
    pub(crate) max_attempts: u32,
    /// Retries allowed for each 100 first attempts of the `window`.
    #[schemars(range(max = 100))]
    pub(crate) budget_percent: u32,
    /// The window that the budget counts over.
    pub(crate) window: DurationText,
    /// Retries that are always allowed, per second, so that a quiet model can retry at all.
    #[schemars(range(max = 1_000))]
    pub(crate) floor_per_second: u32,
    /// Attempts that never started (a refused connection, an upstream that is full) allowed for each 100 first
    /// attempts. They cost the upstream next to nothing, hence a budget of their own.
    #[schemars(range(max = 100))]
    pub(crate) not_sent_percent: u32,
}

impl Default for Retry {
    fn default() -> Self {
        let core = RetrySettings::default();
        Self {
            max_attempts: core.max_attempts,
            budget_percent: core.budget_percent,
            window: DurationText(core.window),
            floor_per_second: core.floor_per_second,
            not_sent_percent: core.not_sent_percent,
        }
    }
}

impl Retry {
    pub(crate) fn settings(&self) -> RetrySettings {
        RetrySettings {
            max_attempts: self.max_attempts,
            budget_percent: self.budget_percent,
            window: self.window.0,
            floor_per_second: self.floor_per_second,
            not_sent_percent: self.not_sent_percent,
        }
    }
}

/// When a failing deployment is taken out, and how it comes back. Overload and a client's own mistakes are no failures.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Ejection {
    /// Failures in a row that take it out. One is noise, five lose five users.
    #[schemars(range(min = 1, max = 1_000))]
    pub(crate) consecutive_failures: u32,
    /// Failures of 100 outcomes in the `window` that take it out, once there are `minimum_outcomes`.
    #[schemars(range(min = 1, max = 100))]
    pub(crate) failure_percent: u32,
    /// Outcomes in the `window` below which their share says nothing.
    #[schemars(range(min = 1, max = 100_000))]
    pub(crate) minimum_outcomes: u32,
    /// The window of the share of failures.
    pub(crate) window: DurationText,
    /// How long it stays out the first time; doubled with each further time.
    pub(crate) base_time: DurationText,
    /// The longest it stays out; not less than `base_time`.
    pub(crate) max_time: DurationText,
    /// Share of a model's deployments that may be out at once. One may always be out, and never the last one.
    #[schemars(range(max = 100))]
    pub(crate) max_ejected_percent: u32,
    /// Share of healthy deployments below which health is ignored and load is spread over all of them.
    #[schemars(range(max = 100))]
    pub(crate) panic_percent: u32,
    /// How long a deployment that came back is given less than its share.
    pub(crate) slow_start: DurationOrZero,
}

impl Default for Ejection {
    fn default() -> Self {
        let core = EjectionSettings::default();
        Self {
            consecutive_failures: core.consecutive_failures,
            failure_percent: core.failure_percent,
            minimum_outcomes: core.minimum_outcomes,
            window: DurationText(core.window),
            base_time: DurationText(core.base_time),
            max_time: DurationText(core.max_time),
            max_ejected_percent: core.max_ejected_percent,
            panic_percent: core.panic_percent,
            slow_start: DurationOrZero(core.slow_start),
        }
    }
}

impl Ejection {
    pub(crate) fn settings(&self) -> EjectionSettings {
        EjectionSettings {
            consecutive_failures: self.consecutive_failures,
            failure_percent: self.failure_percent,
            minimum_outcomes: self.minimum_outcomes,
            window: self.window.0,
            base_time: self.base_time.0,
            max_time: self.max_time.0,
            max_ejected_percent: self.max_ejected_percent,
            panic_percent: self.panic_percent,
            slow_start: self.slow_start.0,
        }
    }
}

/// How long the steps of one attempt may take.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Timeouts {
    /// Opening a connection, TLS included.
    pub(crate) connect: DurationText,
    /// From the sent request to the first byte of an answer; of a stream, to its first event. 10 minutes is what the
    /// OpenAI clients wait: long work is not an error.
    pub(crate) first_byte: DurationText,
    /// Between two pieces of a running answer.
    pub(crate) idle: DurationText,
}

impl Default for Timeouts {
    fn default() -> Self {
        let core = TimeoutSettings::default();
        Self {
            connect: DurationText(core.connect),
            first_byte: DurationText(core.first_byte),
            idle: DurationText(core.idle),
        }
    }
}

impl Timeouts {
    pub(crate) const fn settings(&self) -> TimeoutSettings {
        TimeoutSettings { connect: self.connect.0, first_byte: self.first_byte.0, idle: self.idle.0 }
    }
}
