//! When an upstream wants to be asked again, in whichever of the headers in use it says so.

use http::{HeaderMap, HeaderValue};
use std::time::{Duration, UNIX_EPOCH};

/// The longest wait taken as it is: Azure states up to a day.
pub const LONGEST_WAIT: Duration = Duration::from_hours(24);
/// A statement beyond this is a mistake, not a wait, and ignored; between the two it is held to [`LONGEST_WAIT`].
const BEYOND_BELIEF: Duration = Duration::from_hours(7 * 24);

/// The longest credible wait that an answer's headers state: `retry-after` (whole seconds, fractions, an HTTP date),
/// `retry-after-ms`, `x-ms-retry-after-ms`, and `llm_provider-retry-after` of upstreams that are LiteLLM proxies.
///
/// Garbage, negative numbers and absurd ones count as nothing said; so does a date in the past, and zero. `now` is the
/// time since the Unix epoch, for dates.
pub fn stated_wait(headers: &HeaderMap, now: Duration) -> Option<Duration> {
    let seconds = ["retry-after", "llm_provider-retry-after"].into_iter().flat_map(|name| headers.get_all(name));
    let millis = ["retry-after-ms", "x-ms-retry-after-ms"].into_iter().flat_map(|name| headers.get_all(name));
    seconds.filter_map(|value| seconds_or_date(value, now)).chain(millis.filter_map(|value| number(value, 1e-3))).max()
}

fn seconds_or_date(value: &HeaderValue, now: Duration) -> Option<Duration> {
    number(value, 1.0).or_else(|| {
        let date = httpdate::parse_http_date(value.to_str().ok()?.trim()).ok()?;
        credible(date.duration_since(UNIX_EPOCH).ok()?.checked_sub(now)?)
    })
}

fn number(value: &HeaderValue, unit: f64) -> Option<Duration> {
    let text = value.to_str().ok()?.trim();
    // Rust's own parser also takes "inf", "nan" and exponents: no upstream means these.
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return None;
    }
    credible_seconds(text.parse::<f64>().ok()? * unit)
}

/// A number of seconds as a wait, if it is one.
pub(crate) fn credible_seconds(seconds: f64) -> Option<Duration> {
    credible(Duration::try_from_secs_f64(seconds).ok()?)
}

fn credible(wait: Duration) -> Option<Duration> {
    (!wait.is_zero() && wait <= BEYOND_BELIEF).then(|| wait.min(LONGEST_WAIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1994-11-06 08:49:37 UTC.
    const NOW: Duration = Duration::from_secs(784_111_777);

    fn wait(pairs: &[(&'static str, &'static str)]) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        stated_wait(&headers, NOW)
    }

    #[test]
    fn every_form_is_read() {
        for (name, value, millis) in [
            ("retry-after", "17", 17_000),
            ("retry-after", " 2 ", 2_000),
            ("retry-after", "0.25", 250),
            ("retry-after", "Sun, 06 Nov 1994 08:49:47 GMT", 10_000),
            ("retry-after", "Sunday, 06-Nov-94 08:49:47 GMT", 10_000),
            ("retry-after", "Sun Nov  6 08:49:47 1994", 10_000),
            ("retry-after-ms", "1500", 1_500),
            ("x-ms-retry-after-ms", "1500.5", 1_500),
            ("llm_provider-retry-after", "30", 30_000),
            ("retry-after", "86400", 86_400_000),
            ("retry-after", "100000", 86_400_000),
        ] {
            let found = wait(&[(name, value)]).map(|wait| wait.as_millis());
            assert_eq!(found, Some(millis), "{name}: {value}");
        }
    }

    #[test]
    fn garbage_says_nothing() {
        for value in [
            "soon",
            "-1",
            "1000000000000",
            "",
            "inf",
            "nan",
            "1e3",
            "0",
            "0.0",
            "1.2.3",
            ".",
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1984 08:49:37 GMT",
            "Sun, 06 Nov 2094 08:49:37 GMT",
        ] {
            assert_eq!(wait(&[("retry-after", value)]), None, "{value}");
        }
        assert_eq!(wait(&[]), None);
    }

    #[test]
    fn the_longest_credible_one_holds() {
        let pairs = [
            ("retry-after", "2"),
            ("retry-after-ms", "2500"),
            ("retry-after", "1000000000000"),
            ("x-ms-retry-after-ms", "x"),
        ];
        assert_eq!(wait(&pairs), Some(Duration::from_millis(2_500)));
    }
}
