//! Values that are written as text, such as durations: a name in the schema's `format`, a test, and an error that says
//! what to write instead.
//!
//! [`COMMON`] has the ones that every kind of document can use; a crate adds its own. [`text_value!`](crate::text_value)
//! makes a type of one.

use std::fmt;
use std::time::Duration;

/// One form of text.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// Its name in a schema: `"format": "duration"`.
    pub name: &'static str,
    /// What a reference page calls it.
    pub shown: &'static str,
    /// A good text, for remedies.
    pub example: &'static str,
    /// Tests a text.
    pub test: fn(&str) -> Result<(), FormatError>,
}

/// What is wrong with a text, and what to write instead. Never repeats the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatError {
    /// Continues the sentence "`key` ...".
    pub fault: String,
    /// What to write instead.
    pub remedy: String,
    /// Whether the text may hold a secret and is to be hidden.
    pub secret: bool,
}

impl FormatError {
    /// A fault of a text that holds no secret.
    pub fn new(fault: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { fault: fault.into(), remedy: remedy.into(), secret: false }
    }
}

/// Durations, sizes, names and paths.
pub const COMMON: &[Format] = &[
    Format {
        name: "duration",
        shown: "duration, not zero",
        example: "10s",
        test: |text| duration(text).and_then(not_zero).map(drop),
    },
    Format {
        name: "duration-or-zero",
        shown: "duration, zero allowed",
        example: "10s",
        test: |text| duration(text).map(drop),
    },
    Format { name: "size", shown: "size", example: "64MiB", test: |text| size_bytes(text).map(drop) },
    Format { name: "name", shown: "text", example: "...", test: name },
    Format { name: "path", shown: "path", example: "...", test: path },
];

const DURATION_REMEDY: &str = "write a whole number and a unit, for example `250ms`, `10s`, `2m` or `1h`";

/// The longest duration: more is a slip of units.
const LONGEST: Duration = Duration::from_hours(24);

/// Reads a duration such as `250ms`, `10s`, `2m` or `1h`, of at most a day.
pub fn duration(text: &str) -> Result<Duration, FormatError> {
    let (number, unit) = split_unit(text);
    let value: u64 = number.parse().map_err(|_| FormatError::new("is not a duration", DURATION_REMEDY))?;
    let milliseconds: u64 = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "" => return Err(FormatError::new("is a duration without a unit", DURATION_REMEDY)),
        _ => return Err(FormatError::new("is a duration in an unknown unit", DURATION_REMEDY)),
    };
    let duration = value.checked_mul(milliseconds).map(Duration::from_millis);
    duration
        .filter(|duration| *duration <= LONGEST)
        .ok_or_else(|| FormatError::new("is longer than a day", "write a duration of at most `24h`"))
}

fn not_zero(duration: Duration) -> Result<Duration, FormatError> {
    if duration.is_zero() { Err(FormatError::new("must not be zero", DURATION_REMEDY)) } else { Ok(duration) }
}

const SIZE_REMEDY: &str = "write a whole number and a unit, for example `512KiB`, `64MiB` or `2GiB`";

/// The largest size: 1 TiB, more is a slip of units.
const LARGEST_BYTES: u64 = 1 << 40;

/// Reads a size such as `512KiB` or `64MiB`, of at most 1 TiB and not zero.
pub fn size_bytes(text: &str) -> Result<u64, FormatError> {
    let (number, unit) = split_unit(text);
    let value: u64 = number.parse().map_err(|_| FormatError::new("is not a size", SIZE_REMEDY))?;
    let factor: u64 = match unit {
        "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "KB" | "kB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "" => return Err(FormatError::new("is a size without a unit", SIZE_REMEDY)),
        _ => return Err(FormatError::new("is a size in an unknown unit", SIZE_REMEDY)),
    };
    match value.checked_mul(factor) {
        Some(0) => Err(FormatError::new("must not be zero", SIZE_REMEDY)),
        Some(bytes) if bytes <= LARGEST_BYTES => Ok(bytes),
        _ => Err(FormatError::new("is larger than 1 TiB", SIZE_REMEDY)),
    }
}

fn split_unit(text: &str) -> (&str, &str) {
    let end = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

fn name(text: &str) -> Result<(), FormatError> {
    const REMEDY: &str = "write a name of 1 to 200 characters without spaces around it or control characters";
    if text.is_empty() {
        return Err(FormatError::new("is empty", REMEDY));
    }
    if text.chars().count() > 200 {
        return Err(FormatError::new("is longer than 200 characters", REMEDY));
    }
    if text.trim() != text || text.chars().any(char::is_control) {
        return Err(FormatError::new("has spaces around it or control characters", REMEDY));
    }
    Ok(())
}

fn path(text: &str) -> Result<(), FormatError> {
    if text.trim().is_empty() || text.contains('\0') {
        return Err(FormatError::new("is not a path", "write a file's path, for example `/run/secrets/openai-key`"));
    }
    Ok(())
}

/// What [`text_value!`](crate::text_value) needs of other crates.
#[doc(hidden)]
pub mod macro_parts {
    pub use schemars;
    pub use serde;
}

/// Makes a type that is written as text of one format: its documentation, name and inner type, the format's name, the
/// function that reads it (`fn(&str) -> Result<Inner, FormatError>`), and a regular expression for editors or `None`.
/// The type needs a `Display` that writes what the function reads.
#[macro_export]
macro_rules! text_value {
    ($(#[$doc:meta])* $visibility:vis $name:ident($inner:ty), $format:literal, $parse:path, $pattern:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $visibility struct $name($visibility $inner);

        impl<'de> $crate::formats::macro_parts::serde::Deserialize<'de> for $name {
            fn deserialize<D>(deserializer: D) -> ::std::result::Result<Self, D::Error>
            where
                D: $crate::formats::macro_parts::serde::Deserializer<'de>,
            {
                use $crate::formats::macro_parts::serde::de::{Deserialize, Error};
                let text = <::std::borrow::Cow<'_, str> as Deserialize>::deserialize(deserializer)?;
                $parse(&text).map(Self).map_err(|error| Error::custom(error.fault))
            }
        }

        impl $crate::formats::macro_parts::serde::Serialize for $name {
            fn serialize<S>(&self, serializer: S) -> ::std::result::Result<S::Ok, S::Error>
            where
                S: $crate::formats::macro_parts::serde::Serializer,
            {
                serializer.collect_str(self)
            }
        }

        impl $crate::formats::macro_parts::schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                ::std::stringify!($name).into()
            }

            fn json_schema(
                _: &mut $crate::formats::macro_parts::schemars::SchemaGenerator,
            ) -> $crate::formats::macro_parts::schemars::Schema {
                use $crate::formats::macro_parts::schemars::json_schema;
                let pattern: ::std::option::Option<&str> = $pattern;
                match pattern {
                    Some(pattern) => json_schema!({ "type": "string", "format": $format, "pattern": pattern }),
                    None => json_schema!({ "type": "string", "format": $format }),
                }
            }
        }
    };
}

crate::text_value!(
    /// A duration such as `10s`, not zero.
    pub DurationText(Duration), "duration", duration, Some("^[0-9]+ ?(ms|s|m|h)$"));
crate::text_value!(
    /// A duration such as `10s`, zero allowed.
    pub DurationOrZero(Duration), "duration-or-zero", duration, Some("^[0-9]+ ?(ms|s|m|h)$"));
crate::text_value!(
    /// A size in bytes such as `64MiB`.
    pub SizeText(u64), "size", size_bytes, Some("^[0-9]+ ?(B|KiB|MiB|GiB|kB|KB|MB|GB)$"));

fn write_duration(duration: Duration, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    let milliseconds = duration.as_millis();
    let units = [(3_600_000, "h"), (60_000, "m"), (1_000, "s")];
    let unit = units.into_iter().find(|(factor, _)| milliseconds > 0 && milliseconds.is_multiple_of(*factor));
    let (factor, unit) = unit.unwrap_or((1, "ms"));
    write!(formatter, "{}{unit}", milliseconds / factor)
}

impl fmt::Display for DurationText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_duration(self.0, formatter)
    }
}

impl fmt::Display for DurationOrZero {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_duration(self.0, formatter)
    }
}

impl fmt::Display for SizeText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
        let (factor, unit) = units.into_iter().find(|(factor, _)| self.0.is_multiple_of(*factor)).unwrap_or((1, "B"));
        write!(formatter, "{}{unit}", self.0 / factor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(format: &str, text: &str) -> Result<(), FormatError> {
        let format = COMMON.iter().find(|known| known.name == format).expect("a common format");
        (format.test)(text)
    }

    #[test]
    fn durations_and_sizes_are_read_and_written() {
        for text in ["250ms", "10s", "2m", "1h", "90s", "0ms"] {
            let duration = duration(text).expect("a good duration");
            assert_eq!(DurationOrZero(duration).to_string(), text);
        }
        for (text, bytes) in [("512B", 512), ("64MiB", 64 << 20), ("2GiB", 2 << 30), ("5KiB", 5120)] {
            assert_eq!(size_bytes(text), Ok(bytes));
            assert_eq!(SizeText(bytes).to_string(), text);
        }
        assert_eq!(size_bytes("1 MB"), Ok(1_000_000));
    }

    #[test]
    fn each_format_refuses_with_its_own_words() {
        for (format, text, part) in [
            ("duration", "ten seconds", "is not a duration"),
            ("duration", "10", "without a unit"),
            ("duration", "10sec", "unknown unit"),
            ("duration", "-1s", "is not a duration"),
            ("duration", "0s", "zero"),
            ("duration", "25h", "longer than a day"),
            ("duration", "18446744073709551615h", "longer than a day"),
            ("size", "64", "without a unit"),
            ("size", "64MBit", "unknown unit"),
            ("size", "0B", "zero"),
            ("size", "2000GiB", "larger than 1 TiB"),
            ("name", " a", "spaces around"),
            ("name", "", "empty"),
            ("path", " ", "not a path"),
        ] {
            let error = test(format, text).expect_err(text);
            assert!(error.fault.contains(part), "{format} {text}: {}", error.fault);
            assert!(!error.remedy.is_empty());
        }
        assert_eq!(test("duration-or-zero", "0s"), Ok(()));
    }
}
