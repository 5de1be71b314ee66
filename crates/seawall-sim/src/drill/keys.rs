//! The settings of a model that a drill tries with other values. To try one more, add an entry to [`MODEL_KEYS`].

use seawall_cases::scenario::Span;
use seawall_core::settings::{Mode, PoolSettings};
use std::fmt;
use std::time::Duration;

/// The value of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Span(Duration),
    Number(u32),
    Mode(Mode),
    Word(&'static str),
}

impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Span(span) => {
                write!(formatter, "{}", Span { nanos: u64::try_from(span.as_nanos()).unwrap_or(u64::MAX) })
            }
            Self::Number(number) => write!(formatter, "{number}"),
            Self::Mode(mode) => formatter.write_str(mode.name()),
            Self::Word(word) => formatter.write_str(word),
        }
    }
}

/// A setting of a model.
pub(super) struct ModelKey {
    /// The key below `[[models]]`.
    pub(super) key: &'static str,
    /// Whether the settings have this value.
    pub(super) has: fn(&PoolSettings, Value) -> bool,
    /// The present value as text.
    pub(super) shown: fn(&PoolSettings) -> String,
    /// Sets it.
    pub(super) set: fn(&mut PoolSettings, Value),
    /// The values that are tried, on both sides of what is usual.
    pub(super) tries: &'static [Value],
}

const fn seconds(seconds: u64) -> Value {
    Value::Span(Duration::from_secs(seconds))
}

/// An entry for a field of one kind of value.
macro_rules! key {
    ($key:literal, $kind:ident, $($field:ident).+, [$($try:expr),+]) => {
        ModelKey {
            key: $key,
            has: |pool, value| value == Value::$kind(pool.$($field).+),
            shown: |pool| Value::$kind(pool.$($field).+).to_string(),
            set: |pool, value| {
                if let Value::$kind(value) = value {
                    pool.$($field).+ = value;
                }
            },
            tries: &[$($try),+],
        }
    };
}

/// Every setting of a model that is tried.
pub(super) const MODEL_KEYS: &[ModelKey] = &[
    key!("mode", Mode, mode, [Value::Mode(Mode::Enforce), Value::Mode(Mode::Observe)]),
    key!("queue.patience", Span, queue.patience, [seconds(1), seconds(30), seconds(120)]),
    key!("queue.max_waiting", Number, queue.max_waiting, [Value::Number(10), Value::Number(100_000)]),
    key!("retry.max_attempts", Number, retry.max_attempts, [Value::Number(1), Value::Number(2)]),
    key!("retry.budget_percent", Number, retry.budget_percent, [Value::Number(0), Value::Number(100)]),
    key!("retry.floor_per_second", Number, retry.floor_per_second, [Value::Number(0), Value::Number(100)]),
    key!("retry.not_sent_percent", Number, retry.not_sent_percent, [Value::Number(0), Value::Number(100)]),
    key!(
        "ejection.consecutive_failures",
        Number,
        ejection.consecutive_failures,
        [Value::Number(1), Value::Number(3), Value::Number(20)]
    ),
    key!("ejection.failure_percent", Number, ejection.failure_percent, [Value::Number(20), Value::Number(90)]),
    ModelKey {
        set: |pool, value| {
            if let Value::Span(value) = value {
                pool.ejection.base_time = value;
                pool.ejection.max_time = pool.ejection.max_time.max(value);
            }
        },
        ..key!("ejection.base_time", Span, ejection.base_time, [seconds(2), seconds(60)])
    },
    key!("ejection.max_ejected_percent", Number, ejection.max_ejected_percent, [Value::Number(0), Value::Number(100)]),
    key!("ejection.panic_percent", Number, ejection.panic_percent, [Value::Number(0), Value::Number(100)]),
    key!("timeouts.first_byte", Span, timeouts.first_byte, [seconds(30), seconds(600), seconds(3600)]),
    key!("timeouts.connect", Span, timeouts.connect, [seconds(1), seconds(5), seconds(30)]),
    ModelKey {
        key: "policy",
        has: |pool, value| matches!(value, Value::Word(word) if pool.policy == word),
        shown: |pool| pool.policy.clone(),
        set: |pool, value| {
            if let Value::Word(word) = value {
                word.clone_into(&mut pool.policy);
            }
        },
        tries: &[Value::Word("priority"), Value::Word("least_request")],
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use seawall_core::routing;

    #[test]
    fn each_key_sets_what_it_reads() {
        let mut pool = PoolSettings::new("chat", Vec::new());
        for key in MODEL_KEYS {
            for value in key.tries {
                (key.set)(&mut pool, *value);
                assert!((key.has)(&pool, *value), "{}", key.key);
                assert_eq!((key.shown)(&pool), value.to_string(), "{}", key.key);
            }
            assert!(key.tries.len() > 1, "{}", key.key);
        }
        assert!(pool.ejection.max_time >= pool.ejection.base_time);
        let policies = MODEL_KEYS.iter().filter(|key| key.key == "policy").flat_map(|key| key.tries);
        for policy in policies {
            assert!(routing::by_name(&policy.to_string()).is_some(), "{policy}");
        }
    }
}
