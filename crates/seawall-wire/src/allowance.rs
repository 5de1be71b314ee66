//! What an upstream says is left of its limits, in whichever of the headers in use it says so.
//!
//! | what | OpenAI, Azure and many more | Anthropic |
//! | --- | --- | --- |
//! | left | `x-ratelimit-remaining-requests`, `-tokens` | `anthropic-ratelimit-requests-remaining`, `tokens-` |
//! | of | `x-ratelimit-limit-requests`, `-tokens` | `anthropic-ratelimit-requests-limit`, `tokens-` |
//! | until | `x-ratelimit-reset-requests`, `-tokens`: `6m0s`, `12ms`, seconds | `...-reset`: a time as in RFC 3339 |
//!
//! What makes no sense counts as not said: Azure, for one, tells -1 where it does not count.

use http::{HeaderMap, HeaderValue};
use seawall_core::capacity::{Allowance, Left};
use std::time::Duration;

/// A reset beyond this is a mistake: quotas are counted by the month at the most.
const BEYOND_BELIEF: Duration = Duration::from_hours(31 * 24);

/// The names of one limit's headers.
struct Names {
    remaining: &'static str,
    limit: &'static str,
    reset: &'static str,
}

const REQUESTS: [Names; 2] = [
    Names {
        remaining: "x-ratelimit-remaining-requests",
        limit: "x-ratelimit-limit-requests",
        reset: "x-ratelimit-reset-requests",
    },
    Names {
        remaining: "anthropic-ratelimit-requests-remaining",
        limit: "anthropic-ratelimit-requests-limit",
        reset: "anthropic-ratelimit-requests-reset",
    },
];
const TOKENS: [Names; 2] = [
    Names {
        remaining: "x-ratelimit-remaining-tokens",
        limit: "x-ratelimit-limit-tokens",
        reset: "x-ratelimit-reset-tokens",
    },
    Names {
        remaining: "anthropic-ratelimit-tokens-remaining",
        limit: "anthropic-ratelimit-tokens-limit",
        reset: "anthropic-ratelimit-tokens-reset",
    },
];

/// What the head of an answer says is left. `now`: the time since the Unix epoch, for resets that are a date; one in the
/// past is no time at all.
pub fn allowance(headers: &HeaderMap, now: Duration) -> Allowance {
    let left = |names: &[Names; 2]| names.iter().find_map(|names| left(headers, names, now));
    Allowance { requests: left(&REQUESTS), tokens: left(&TOKENS) }
}

fn left(headers: &HeaderMap, names: &Names, now: Duration) -> Option<Left> {
    let count = |name| headers.get(name).and_then(count);
    let remaining = count(names.remaining)?;
    let reset = headers.get(names.reset).and_then(|value| reset(value, now));
    Some(Left { remaining, limit: count(names.limit), reset })
}

fn text(value: &HeaderValue) -> Option<&str> {
    value.to_str().ok().map(str::trim)
}

/// Digits alone: the standard parser would take a plus sign, too.
fn count(value: &HeaderValue) -> Option<u64> {
    text(value).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok()
}

fn reset(value: &HeaderValue, now: Duration) -> Option<Duration> {
    let text = text(value)?;
    let wait = if text.len() > 10 && text.as_bytes()[10].eq_ignore_ascii_case(&b'T') {
        rfc3339(text)?.saturating_sub(now)
    } else {
        span(text)?
    };
    (wait <= BEYOND_BELIEF).then_some(wait)
}

/// Parts such as `1h2m3.5s` or `12ms`, in any order; a number without a unit is seconds.
fn span(text: &str) -> Option<Duration> {
    let mut sum = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|next: char| !next.is_ascii_digit() && next != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|next: char| !next.is_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let seconds = match unit {
            "d" => 86_400.0,
            "h" => 3_600.0,
            "m" => 60.0,
            "s" => 1.0,
            "" if after.is_empty() && digits == text.len() => 1.0,
            "ms" => 1e-3,
            "us" => 1e-6,
            "ns" => 1e-9,
            _ => return None,
        };
        let part = Duration::try_from_secs_f64(number.parse::<f64>().ok()? * seconds).ok()?;
        sum = sum.checked_add(part)?;
        rest = after;
    }
    (!text.is_empty()).then_some(sum)
}

/// A time as in RFC 3339, since the Unix epoch; `None` for one before it. Leap seconds count as the next second.
fn rfc3339(text: &str) -> Option<Duration> {
    let number = |from: usize, to: usize| {
        text.get(from..to).filter(|part| part.bytes().all(|byte| byte.is_ascii_digit()))?.parse::<i64>().ok()
    };
    let marks = [(4, b'-'), (7, b'-'), (13, b':'), (16, b':')];
    if text.len() < 20 || marks.iter().any(|(at, mark)| text.as_bytes()[*at] != *mark) {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let in_range = (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second <= 60;
    let zone = text.get(19..)?.trim_start_matches(|next: char| next == '.' || next.is_ascii_digit());
    let offset_minutes = match zone.as_bytes() {
        b"Z" | b"z" => 0,
        [sign @ (b'+' | b'-'), ..] if zone.len() == 6 && zone.as_bytes()[3] == b':' => {
            let start = text.len() - 6;
            let minutes = number(start + 1, start + 3)? * 60 + number(start + 4, start + 6)?;
            if *sign == b'-' { -minutes } else { minutes }
        }
        _ => return None,
    };
    let seconds = days_since_epoch(year, month, day) * 86_400 + hour * 3_600 + (minute - offset_minutes) * 60 + second;
    in_range.then_some(())?;
    u64::try_from(seconds).ok().map(Duration::from_secs)
}

/// Days from 1970-01-01 in the proleptic Gregorian calendar: years of 365.2425 days that begin in March, so that the leap
/// day is the last one.
const fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    365 * year + year / 4 - year / 100 + year / 400 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-01-01 00:00:00 UTC.
    const NEW_YEAR: Duration = Duration::from_hours(490_896);

    fn read(pairs: &[(&'static str, &str)]) -> Allowance {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        allowance(&headers, NEW_YEAR)
    }

    fn requests_reset(text: &str) -> Option<Duration> {
        let name = "x-ratelimit-reset-requests";
        read(&[("x-ratelimit-remaining-requests", "0"), (name, text)]).requests.unwrap().reset
    }

    #[test]
    fn resets_in_every_form() {
        for (text, millis) in [
            ("6m0s", 360_000),
            ("12ms", 12),
            ("1h2m3s", 3_723_000),
            ("2m59.56s", 179_560),
            ("1d", 86_400_000),
            ("0s", 0),
            ("0", 0),
            ("26", 26_000),
            (" 7.66 ", 7_660),
            ("2026-01-01T00:00:30Z", 30_000),
            ("2026-01-01t00:00:30.75z", 30_000),
            ("2026-01-01T01:30:05+01:30", 5_000),
            ("2025-12-31T16:00:05-08:00", 5_000),
            ("2025-12-31T23:59:59Z", 0),
            ("2024-02-29T12:00:00Z", 0),
        ] {
            assert_eq!(requests_reset(text).map(|reset| reset.as_millis()), Some(millis), "{text}");
        }
    }

    #[test]
    fn the_calendar_is_right() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T00:00:00Z", 951_782_400),
            ("2000-03-01T00:00:00Z", 951_868_800),
            ("2026-12-31T23:59:60Z", 1_798_761_600),
        ] {
            assert_eq!(rfc3339(text), Some(Duration::from_secs(seconds)), "{text}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_not_said() {
        for text in [
            "",
            "soon",
            "-1",
            "1e3",
            "s",
            "5x",
            "1.2.3s",
            "1m2",
            "inf",
            "NaN",
            "99999999999",
            "2026-13-01T00:00:00Z",
            "2026-01-01T00:00:00",
            "2026-01-01T25:00:00Z",
            "2026-01-01T00:00:00+1:0",
            "2126-01-01T00:00:00Z",
            "1969-12-31T23:59:59Z",
            "2026-01-01Tééééééééééé",
        ] {
            let header = HeaderValue::from_bytes(text.as_bytes()).unwrap();
            assert_eq!(reset(&header, NEW_YEAR), None, "{text}");
        }
        for text in ["", "-1", "+1", "1.5", "many", "1e3", "18446744073709551616"] {
            assert_eq!(read(&[("x-ratelimit-remaining-tokens", text)]), Allowance::default(), "{text}");
        }
    }

    #[test]
    fn the_first_family_that_makes_sense_counts() {
        let both = [("x-ratelimit-remaining-requests", "-1"), ("anthropic-ratelimit-requests-remaining", "4")];
        assert_eq!(read(&both).requests, Some(Left { remaining: 4, limit: None, reset: None }));
    }
}
