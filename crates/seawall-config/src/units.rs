//! Values that are written as text: durations, sizes, addresses, urls, names of environment variables, digests.
//!
//! Each has a name in the schema's `format`, a parser, and an error that says what to write instead.

use crate::endpoint::{Endpoint, UrlError};
use crate::redact::looks_secret;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

/// What is wrong with a text, and what to write instead. Never repeats the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FormatError {
    /// Continues the sentence "`key` ...".
    pub(crate) fault: String,
    /// What to write instead.
    pub(crate) remedy: String,
    /// Whether the text may hold a secret and is to be hidden.
    pub(crate) secret: bool,
}

fn fault(fault: &str, remedy: &str) -> FormatError {
    FormatError { fault: fault.to_owned(), remedy: remedy.to_owned(), secret: false }
}

/// Tests a text against a format of the schema; an unknown format takes everything.
pub(crate) fn test_format(format: &str, text: &str) -> Result<(), FormatError> {
    match format {
        "duration" => duration(text).and_then(not_zero).map(drop),
        "duration-or-zero" => duration(text).map(drop),
        "size" => size_bytes(text).map(drop),
        "socket-address" => address(text).map(drop),
        "url" => Endpoint::parse(text).map(drop).map_err(url_fault),
        "environment-variable" => environment_variable(text),
        "sha256" => sha256(text).map(drop),
        "name" => name(text),
        "path" => path(text),
        "path-part" => path_part(text),
        _ => Ok(()),
    }
}

const DURATION_REMEDY: &str = "write a whole number and a unit, for example `250ms`, `10s`, `2m` or `1h`";

/// The longest duration: more is a slip of units.
const LONGEST: Duration = Duration::from_hours(24);

fn duration(text: &str) -> Result<Duration, FormatError> {
    let (number, unit) = split_unit(text);
    let value: u64 = number.parse().map_err(|_| fault("is not a duration", DURATION_REMEDY))?;
    let milliseconds: u64 = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "" => return Err(fault("is a duration without a unit", DURATION_REMEDY)),
        _ => return Err(fault("is a duration in an unknown unit", DURATION_REMEDY)),
    };
    let duration = value.checked_mul(milliseconds).map(Duration::from_millis);
    duration
        .filter(|duration| *duration <= LONGEST)
        .ok_or_else(|| fault("is longer than a day", "write a duration of at most `24h`"))
}

fn not_zero(duration: Duration) -> Result<Duration, FormatError> {
    if duration.is_zero() { Err(fault("must not be zero", DURATION_REMEDY)) } else { Ok(duration) }
}

const SIZE_REMEDY: &str = "write a whole number and a unit, for example `512KiB`, `64MiB` or `2GiB`";

/// The largest size: 1 TiB, more is a slip of units.
const LARGEST_BYTES: u64 = 1 << 40;

fn size_bytes(text: &str) -> Result<u64, FormatError> {
    let (number, unit) = split_unit(text);
    let value: u64 = number.parse().map_err(|_| fault("is not a size", SIZE_REMEDY))?;
    let factor: u64 = match unit {
        "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "KB" | "kB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "" => return Err(fault("is a size without a unit", SIZE_REMEDY)),
        _ => return Err(fault("is a size in an unknown unit", SIZE_REMEDY)),
    };
    match value.checked_mul(factor) {
        Some(0) => Err(fault("must not be zero", SIZE_REMEDY)),
        Some(bytes) if bytes <= LARGEST_BYTES => Ok(bytes),
        _ => Err(fault("is larger than 1 TiB", SIZE_REMEDY)),
    }
}

fn split_unit(text: &str) -> (&str, &str) {
    let end = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

fn address(text: &str) -> Result<SocketAddr, FormatError> {
    const REMEDY: &str = "write an address and a port, for example `127.0.0.1:8080` or `[::1]:8080`";
    text.parse().map_err(|_| {
        let is_name = text.contains(|character: char| character.is_ascii_alphabetic()) && !text.contains("::");
        fault(
            if is_name {
                "is a host's name, not an IP address with a port"
            } else {
                "is not an IP address with a port"
            },
            REMEDY,
        )
    })
}

fn url_fault(error: UrlError) -> FormatError {
    FormatError {
        fault: format!("is not usable: {error}"),
        remedy: error.remedy().to_owned(),
        secret: matches!(error, UrlError::Credentials | UrlError::Query | UrlError::Malformed),
    }
}

fn environment_variable(text: &str) -> Result<(), FormatError> {
    let well_formed = !text.is_empty()
        && !text.starts_with(|character: char| character.is_ascii_digit())
        && text.chars().all(|character| character.is_ascii_alphanumeric() || character == '_');
    if well_formed && !looks_secret(text) {
        return Ok(());
    }
    Err(FormatError {
        fault: "is not the name of an environment variable".to_owned(),
        remedy: "write the variable's name here and put the secret into the variable, for example \
                 `{ env = \"OPENAI_API_KEY\" }`"
            .to_owned(),
        secret: true,
    })
}

/// The digest behind 64 hexadecimal digits.
pub(crate) fn sha256(text: &str) -> Result<[u8; 32], FormatError> {
    let error = || FormatError {
        fault: "is not a SHA-256 in 64 hexadecimal digits".to_owned(),
        remedy: "print it with `printf %s \"$KEY\" | sha256sum`".to_owned(),
        secret: true,
    };
    let digits: Vec<u8> =
        text.chars().map_while(|digit| digit.to_digit(16)).filter_map(|digit| u8::try_from(digit).ok()).collect();
    if digits.len() != 64 || text.chars().count() != 64 {
        return Err(error());
    }
    let bytes: Vec<u8> = digits.chunks_exact(2).map(|pair| pair[0] * 16 + pair[1]).collect();
    bytes.try_into().map_err(|_| error())
}

fn name(text: &str) -> Result<(), FormatError> {
    const REMEDY: &str = "write a name of 1 to 200 characters without spaces around it or control characters";
    if text.is_empty() {
        return Err(fault("is empty", REMEDY));
    }
    if text.chars().count() > 200 {
        return Err(fault("is longer than 200 characters", REMEDY));
    }
    if text.trim() != text || text.chars().any(char::is_control) {
        return Err(fault("has spaces around it or control characters", REMEDY));
    }
    Ok(())
}

fn path(text: &str) -> Result<(), FormatError> {
    if text.trim().is_empty() || text.contains('\0') {
        return Err(fault("is not a path", "write a file's path, for example `/run/secrets/openai-key`"));
    }
    Ok(())
}

fn path_part(text: &str) -> Result<(), FormatError> {
    let allowed = |character: char| character.is_ascii_alphanumeric() || ".-_".contains(character);
    if text.is_empty() || !text.chars().all(allowed) {
        return Err(fault(
            "holds other characters than letters, digits, `.`, `-` and `_`",
            "copy it from the provider's portal",
        ));
    }
    Ok(())
}

/// A type that is written as text of one format.
macro_rules! text_value {
    ($(#[$doc:meta])* $name:ident($inner:ty), $format:literal, $parse:path, $pattern:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) struct $name(pub(crate) $inner);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = Cow::<'_, str>::deserialize(deserializer)?;
                $parse(&text).map(Self).map_err(|error| serde::de::Error::custom(error.fault))
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                let pattern: Option<&str> = $pattern;
                match pattern {
                    Some(pattern) => json_schema!({ "type": "string", "format": $format, "pattern": pattern }),
                    None => json_schema!({ "type": "string", "format": $format }),
                }
            }
        }
    };
}

text_value!(
    /// A duration such as `10s`, not zero.
    DurationText(Duration), "duration", duration, Some("^[0-9]+ ?(ms|s|m|h)$"));
text_value!(
    /// A duration such as `10s`, zero allowed.
    DurationOrZero(Duration), "duration-or-zero", duration, Some("^[0-9]+ ?(ms|s|m|h)$"));
text_value!(
    /// A size such as `64MiB`.
    SizeText(u64), "size", size_bytes, Some("^[0-9]+ ?(B|KiB|MiB|GiB|kB|KB|MB|GB)$"));
text_value!(
    /// An IP address with a port.
    AddressText(SocketAddr), "socket-address", address, None);

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

impl fmt::Display for AddressText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            ("socket-address", "localhost:8080", "host's name"),
            ("socket-address", ":8080", "is not an IP address"),
            ("url", "host", "does not begin with"),
            ("environment-variable", "MY KEY", "environment variable"),
            ("environment-variable", "a0b1c2d3e4f5a0b1c2d3e4f5a0b1c2d3", "environment variable"),
            ("sha256", "abc", "64 hexadecimal"),
            ("name", " a", "spaces around"),
            ("name", "", "empty"),
            ("path", " ", "not a path"),
            ("path-part", "2024/06", "other characters"),
        ] {
            let error = test_format(format, text).expect_err(text);
            assert!(error.fault.contains(part), "{format} {text}: {}", error.fault);
            assert!(!error.remedy.is_empty());
        }
        assert_eq!(test_format("duration-or-zero", "0s"), Ok(()));
    }

    #[test]
    fn a_digest_is_read_in_either_case() {
        let expected = crate::keys::digest(b"demo-key");
        let text = expected.iter().fold(String::new(), |text, byte| text + &format!("{byte:02X}"));
        assert_eq!(sha256(&text), Ok(expected));
        assert_eq!(sha256(&text.to_lowercase()), Ok(expected));
    }
}
