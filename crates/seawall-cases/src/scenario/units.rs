//! Times of day and spans, as a scenario file writes them.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;
use std::fmt;

const SECOND_NANOS: u64 = 1_000_000_000;

/// A time on the post-mortem's own clock: `12:17` or `09:38:30`, up to `47:59` for what goes on after midnight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Clock {
    /// Nanoseconds since midnight.
    pub nanos: u64,
}

impl Clock {
    /// The time that a text says; `None` where it says none.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let mut part = |limit: u64| {
            let part = parts.next()?;
            let well_formed = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
            part.parse::<u64>().ok().filter(|number| well_formed && *number < limit)
        };
        let (hours, minutes) = (part(48)?, part(60)?);
        let seconds = if text.len() > 5 { part(60)? } else { 0 };
        parts.next().is_none().then_some(Self { nanos: ((hours * 60 + minutes) * 60 + seconds) * SECOND_NANOS })
    }

    /// Minutes since midnight.
    #[expect(clippy::cast_precision_loss, reason = "a day has fewer nanoseconds than an f64 can count")]
    pub fn minutes(self) -> f64 {
        self.nanos as f64 / (60 * SECOND_NANOS) as f64
    }
}

impl fmt::Display for Clock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.nanos / SECOND_NANOS;
        write!(formatter, "{:02}:{:02}", seconds / 3600, seconds / 60 % 60)?;
        if seconds.is_multiple_of(60) { Ok(()) } else { write!(formatter, ":{:02}", seconds % 60) }
    }
}

impl<'de> Deserialize<'de> for Clock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| de::Error::custom("not a time of day: write it as in `12:17` or `09:38:30`"))
    }
}

impl JsonSchema for Clock {
    fn schema_name() -> Cow<'static, str> {
        "Clock".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "clock", "examples": ["12:17"] })
    }
}

/// A length of time: `250ms`, `0s`, `30s`, `2m` or `1h`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// Its nanoseconds.
    pub nanos: u64,
}

impl Span {
    /// So many milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self { nanos: millis * 1_000_000 }
    }

    /// So many seconds.
    pub const fn from_secs(seconds: u64) -> Self {
        Self { nanos: seconds * SECOND_NANOS }
    }

    /// The span that a text says; `None` where it says none, or more than two days.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.find(|character: char| !character.is_ascii_digit())?;
        let number: u64 = text[..digits].parse().ok()?;
        let unit = match &text[digits..] {
            "us" => 1_000,
            "ms" => 1_000_000,
            "s" => SECOND_NANOS,
            "m" => 60 * SECOND_NANOS,
            "h" => 3600 * SECOND_NANOS,
            _ => return None,
        };
        let nanos = number.checked_mul(unit)?;
        (nanos <= 48 * 3600 * SECOND_NANOS).then_some(Self { nanos })
    }
}

impl fmt::Display for Span {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(3600 * SECOND_NANOS, "h"), (60 * SECOND_NANOS, "m"), (SECOND_NANOS, "s"), (1_000_000, "ms")];
        if self.nanos == 0 {
            return write!(formatter, "0s");
        }
        let exact = units.into_iter().find(|(size, _)| self.nanos.is_multiple_of(*size));
        let (size, unit) = exact.unwrap_or((1_000, "us"));
        write!(formatter, "{}{unit}", self.nanos / size)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            de::Error::custom("not a length of time of at most two days: write it as in `250ms`, `30s`, `2m` or `1h`")
        })
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Span {
    fn schema_name() -> Cow<'static, str> {
        "Span".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "span", "examples": ["30s"] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_and_spans_are_read_and_written_alike() {
        for text in ["12:17", "09:38:30", "25:00", "00:00"] {
            assert_eq!(Clock::parse(text).map(|clock| clock.to_string()).as_deref(), Some(text));
        }
        for text in ["", "12", "1:17", "12:60", "48:00", "12:17:99", "12:17:00:00", "12:17:", "+1:00", "é:00"] {
            assert_eq!(Clock::parse(text), None, "{text}");
        }
        for text in ["0s", "250ms", "30s", "2m", "1h", "90m", "1500us"] {
            assert_eq!(Span::parse(text).map(|span| span.to_string()).as_deref(), Some(text));
        }
        for text in ["", "30", "s", "-1s", "1d", "49h", "99999999999999999999s", "é"] {
            assert_eq!(Span::parse(text), None, "{text}");
        }
    }
}
