//! How figures are written for people.

use seawall_cases::scenario::Clock;

/// A figure: a time of day where it is one, or else a number with as many digits as tell something.
pub(crate) fn shown(value: f64, is_time: bool) -> String {
    if is_time { clock(value) } else { number(value) }
}

/// The clock time of a number of minutes since midnight, to the second.
pub(crate) fn clock(minutes: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates")]
    let seconds = (minutes * 60.0).round().clamp(0.0, 172_799.0) as u64;
    Clock { nanos: seconds * 1_000_000_000 }.to_string()
}

/// Four digits that count, and thousands set apart.
pub(crate) fn number(value: f64) -> String {
    let size = value.abs();
    let decimals = match size {
        _ if size >= 1000.0 || size == 0.0 => 0,
        _ if size >= 100.0 => 1,
        _ if size >= 10.0 => 2,
        _ if size >= 0.1 => 3,
        _ => 4,
    };
    let text = format!("{value:.decimals$}");
    let (whole, rest) = text.split_once('.').unwrap_or((&text, ""));
    let rest = rest.trim_end_matches('0');
    let dot = if rest.is_empty() { "" } else { "." };
    format!("{}{dot}{rest}", grouped(whole))
}

/// `1234567` as `1,234,567`.
fn grouped(whole: &str) -> String {
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |digits| ("-", digits));
    let mut text = sign.to_owned();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A range of values over seeds, or the one value.
pub(crate) fn range(low: f64, high: f64, is_time: bool) -> String {
    let (low, high) = (shown(low, is_time), shown(high, is_time));
    if low == high { low } else { format!("{low} to {high}") }
}

/// What a figure has to be.
pub(crate) fn wanted(low: Option<f64>, high: Option<f64>, is_time: bool) -> String {
    let say = |value| shown(value, is_time);
    match (low, high) {
        (Some(low), Some(high)) => range(low, high, is_time),
        (Some(low), None) if is_time => format!("{} or later", say(low)),
        (None, Some(high)) if is_time => format!("{} or earlier", say(high)),
        (Some(low), None) => format!("at least {}", say(low)),
        (None, Some(high)) => format!("at most {}", say(high)),
        (None, None) => "none".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_the_digits_that_tell_something() {
        let pairs = [
            (0.0, "0"),
            (49.0, "49"),
            (1.0999, "1.1"),
            (0.784_21, "0.784"),
            (0.001_23, "0.0012"),
            (18.0276, "18.03"),
            (-12_345.6, "-12,346"),
            (1_000_000.0, "1,000,000"),
            (999.96, "1,000"),
        ];
        for (value, text) in pairs {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn times_are_clock_times() {
        assert_eq!(clock(759.166_667), "12:39:10");
        assert_eq!(clock(1500.0), "25:00");
        assert_eq!(clock(-3.0), "00:00");
        assert_eq!(wanted(Some(745.0), Some(775.0), true), "12:25 to 12:55");
        assert_eq!(wanted(None, Some(1120.0), true), "18:40 or earlier");
        assert_eq!(wanted(Some(5.0), None, false), "at least 5");
        assert_eq!(wanted(None, None, false), "none");
    }
}
