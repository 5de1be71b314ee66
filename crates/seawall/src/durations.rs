//! Times on the command line: `250ms`, `10s`, `2m`, `1h`.

use std::time::Duration;

/// Reads a time.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let digits = text.find(|next: char| !next.is_ascii_digit() && next != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let seconds = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3_600.0,
        _ => return Err(format!("`{text}` has no unit: write for example `250ms`, `10s`, `2m` or `1h`")),
    };
    let number: f64 = number.parse().map_err(|_| format!("`{text}` begins with no number: write for example `10s`"))?;
    Duration::try_from_secs_f64(number * seconds).map_err(|_| format!("`{text}` is too long"))
}

#[cfg(test)]
mod tests {
    use super::parse;
    use std::time::Duration;

    #[test]
    fn units_are_read_and_their_absence_is_told() {
        assert_eq!(parse("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse("1.5s"), Ok(Duration::from_millis(1_500)));
        assert_eq!(parse("2m"), Ok(Duration::from_mins(2)));
        for text in ["", "10", "s", "1.2.3s", "-1s", "1d", "9e9h"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
