//! The texts of a record: dates, lengths of time, ids, addresses.

use seawall_document::formats::{Format, FormatError};
use seawall_document::text_value;
use std::fmt;

/// The formats of a record's texts.
pub(crate) const FORMATS: &[Format] = &[
    Format { name: "prose", shown: "text", example: "...", test: prose },
    Format { name: "date", shown: "date", example: "2026-05-29", test: |text| day(text).map(drop) },
    Format { name: "date-time", shown: "time stamp in UTC", example: "2026-11-30T08:00:00Z", test: date_time },
    Format { name: "elapsed", shown: "length of time", example: "7h 45m", test: |text| seconds(text).map(drop) },
    Format { name: "case-id", shown: "id of a case", example: "SW-0001", test: case_id },
    Format { name: "slug", shown: "name in small letters, digits and hyphens", example: "microsoft-azure", test: slug },
    Format { name: "web-address", shown: "url", example: "https://example.com/report", test: web_address },
    Format { name: "language", shown: "language", example: "en", test: language },
];

/// A day of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day {
    /// From 1 on.
    pub year: u16,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
}

text_value!(
    /// A date, written as `2026-05-29`.
    pub Date(Day), "date", day, Some("^[0-9]{4}-[0-9]{2}-[0-9]{2}$"));

impl fmt::Display for Date {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:04}-{:02}-{:02}", self.0.year, self.0.month, self.0.day)
    }
}

text_value!(
    /// A length of time in seconds, written as `7h 45m`.
    pub Elapsed(u64), "elapsed", seconds, Some("^[0-9]+[dhms]( [0-9]+[dhms])*$"));

impl fmt::Display for Elapsed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        let mut parts = Vec::new();
        for (unit, unit_seconds) in UNITS {
            if rest >= unit_seconds {
                parts.push(format!("{}{unit}", rest / unit_seconds));
                rest %= unit_seconds;
            }
        }
        if parts.is_empty() { formatter.write_str("0s") } else { formatter.write_str(&parts.join(" ")) }
    }
}

/// Units of a length of time in seconds, the largest first.
const UNITS: [(char, u64); 4] = [('d', 86_400), ('h', 3_600), ('m', 60), ('s', 1)];

/// The longest time that is read: a year, more is a slip of units.
const LONGEST_SECONDS: u64 = 366 * 86_400;

fn seconds(text: &str) -> Result<u64, FormatError> {
    let error = || FormatError::new("is not a length of time", "write it as in `45m`, `7h 45m` or `1d 2h`");
    let mut units = UNITS.iter();
    let mut total: u64 = 0;
    for part in text.split(' ') {
        let unit = part.chars().last().ok_or_else(error)?;
        // Each unit once, and the large ones first.
        let (_, unit_seconds) = units.by_ref().find(|(known, _)| *known == unit).ok_or_else(error)?;
        let digits = &part[..part.len() - unit.len_utf8()];
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let number: u64 = digits.parse().ok().filter(|_| is_number).ok_or_else(error)?;
        total = number.checked_mul(*unit_seconds).and_then(|part| total.checked_add(part)).ok_or_else(error)?;
    }
    if total > LONGEST_SECONDS {
        return Err(FormatError::new("is longer than a year", "write it as in `45m`, `7h 45m` or `1d 2h`"));
    }
    Ok(total)
}

fn day(text: &str) -> Result<Day, FormatError> {
    let error = || FormatError::new("is not a date", "write year, month and day, for example `2026-05-29`");
    let mut parts = text.split('-');
    let mut part = |digits: usize| {
        let part = parts.next().filter(|part| part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit()));
        part.and_then(|part| part.parse::<u16>().ok()).ok_or_else(error)
    };
    let (year, month, day) = (part(4)?, part(2)?, part(2)?);
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let last = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return Err(error()),
    };
    if year == 0 || day == 0 || day > last || parts.next().is_some() {
        return Err(error());
    }
    let small = |number: u16| u8::try_from(number).map_err(|_| error());
    Ok(Day { year, month: small(month)?, day: small(day)? })
}

/// RFC 3339 in UTC: `2026-11-30T08:00:00Z`, with or without parts of a second.
fn date_time(text: &str) -> Result<(), FormatError> {
    let error = || FormatError::new("is not a time stamp in UTC", "write it as in `2026-11-30T08:00:00Z`");
    let (date, time) = text.split_once('T').ok_or_else(error)?;
    day(date).map_err(|_| error())?;
    let time = time.strip_suffix('Z').ok_or_else(error)?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<u8> = time
        .split(':')
        .filter(|part| part.len() == 2 && is_number(part))
        .filter_map(|part| part.parse().ok())
        .collect();
    match parts.as_slice() {
        [hour, minute, second] if *hour < 24 && *minute < 60 && *second < 60 && time.len() == 8 => {}
        _ => return Err(error()),
    }
    if is_number(fraction) && fraction.len() <= 9 { Ok(()) } else { Err(error()) }
}

fn case_id(text: &str) -> Result<(), FormatError> {
    let well_formed = text.split_once('-').is_some_and(|(library, number)| {
        library.len() == 2
            && library.bytes().all(|byte| byte.is_ascii_uppercase())
            && number.len() == 4
            && number.bytes().all(|byte| byte.is_ascii_digit())
    });
    if well_formed {
        return Ok(());
    }
    Err(FormatError::new("is not the id of a case", "write two capital letters and four digits, for example `SW-0001`"))
}

fn slug(text: &str) -> Result<(), FormatError> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    if !text.is_empty() && text.split('-').all(|part| !part.is_empty() && part.bytes().all(is_plain)) {
        return Ok(());
    }
    let remedy = "write small letters, digits and single hyphens, for example `microsoft-azure`";
    Err(FormatError::new("is not a name of that form", remedy))
}

fn web_address(text: &str) -> Result<(), FormatError> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
    let is_clean = !text.chars().any(|character| character.is_whitespace() || character.is_control());
    if host.contains('.') && is_clean && !host.contains('@') {
        return Ok(());
    }
    Err(FormatError::new("is not a web address", "write it with its scheme, for example `https://example.com/report`"))
}

fn language(text: &str) -> Result<(), FormatError> {
    if matches!(text.len(), 2 | 3) && text.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return Ok(());
    }
    Err(FormatError::new("is not a language", "write its code of two or three letters, for example `en`"))
}

fn prose(text: &str) -> Result<(), FormatError> {
    if text.trim().is_empty() {
        return Err(FormatError::new("is empty", "write a text; what nobody knows is `unknown`"));
    }
    if text.trim() != text {
        return Err(FormatError::new("has white space around it", "remove it"));
    }
    if text.chars().any(|character| character.is_control() && character != '\n') {
        return Err(FormatError::new("holds control characters", "write plain text; paragraphs are told by `\\n\\n`"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_lengths_are_read_and_written_alike() {
        for text in ["2026-05-29", "2024-02-29", "0001-12-31"] {
            assert_eq!(day(text).map(|day| Date(day).to_string()).as_deref(), Ok(text));
        }
        for (text, expected) in [("19m", 1140), ("7h 45m", 27_900), ("1d 2h", 93_600), ("0s", 0), ("59s", 59)] {
            assert_eq!(seconds(text), Ok(expected));
            assert_eq!(Elapsed(expected).to_string(), text);
        }
        assert_eq!(seconds("90m").map(|seconds| Elapsed(seconds).to_string()).as_deref(), Ok("1h 30m"));
    }

    #[test]
    fn each_format_takes_its_example_and_refuses_others() {
        for (name, bad) in [
            ("prose", vec!["", " ", " a", "a\n", "a\u{7}b"]),
            (
                "date",
                vec!["", "2026-13-01", "2026-02-29", "2026-5-29", "2026-05-29-", "2026-05", "2026-00-01", "29.05.2026"],
            ),
            (
                "date-time",
                vec![
                    "2026-11-30",
                    "2026-11-30T08:00Z",
                    "2026-11-30T24:00:00Z",
                    "2026-11-30T08:00:00",
                    "2026-11-30T08:00:00.Z",
                ],
            ),
            ("elapsed", vec!["", "45", "m", "45m 7h", "1h 1h", "1h  1m", "-1h", "367d", "99999999999999999999d", "1é"]),
            ("case-id", vec!["", "SW-1", "sw-0001", "SW0001", "SW-00011"]),
            ("slug", vec!["", "A", "a--b", "-a", "a b"]),
            (
                "web-address",
                vec!["", "example.com", "ftp://example.com", "https://", "https://a b.c", "https://me@host.x/"],
            ),
            ("language", vec!["", "e", "EN", "english"]),
        ] {
            let format = FORMATS.iter().find(|format| format.name == name).expect("a format of records");
            assert_eq!((format.test)(format.example), Ok(()), "{name}");
            for text in bad {
                let error = (format.test)(text).expect_err(text);
                assert!(!error.fault.is_empty() && !error.remedy.is_empty());
            }
        }
        assert_eq!(date_time("2026-11-14T12:33:49.617022Z"), Ok(()));
        assert_eq!(prose("one\n\ntwo"), Ok(()));
    }
}
