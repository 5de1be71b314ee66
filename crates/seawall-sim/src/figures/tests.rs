//! Figures of hand-made series, with exact numbers.

use super::figures;
use crate::SECOND;
use crate::recorder::Recorder;
use seawall_cases::scenario::Scenario;
use std::collections::BTreeMap;

/// Ten minutes from 10:00: one request a second; from minute 2 to minute 5 each fails, and again in minute 6.
fn recorder() -> Recorder {
    let start = 36_000 * SECOND;
    let mut recorder = Recorder::new(start, start + 600 * SECOND);
    let (all, failed) = (recorder.count("a.all".into()), recorder.count("a.failed".into()));
    let (level, mark) = (recorder.level("a.level".into()), recorder.mark("a.most".into()));
    recorder.mark("a.never".into());
    for second in 0..600 {
        let now = start + second * SECOND;
        recorder.add(all, now);
        if (120..300).contains(&second) || (360..420).contains(&second) {
            recorder.add(failed, now);
        }
    }
    recorder.set(level, start + 100 * SECOND, 4.0);
    recorder.set(level, start + 200 * SECOND, 6.0);
    recorder.raise(mark, 3.0);
    recorder.raise(mark, 2.0);
    recorder.finish();
    recorder
}

fn read(measures: &[(&str, &str)]) -> Result<BTreeMap<String, f64>, String> {
    let figure = |(name, measure): &(&str, &str)| format!("[[figure]]\nname = \"{name}\"\nmeasure = {{ {measure} }}\n");
    let figures_text = measures.iter().map(figure).collect::<Vec<_>>().concat();
    let text = format!(
        "[scenario]\ntitle = \"t\"\nstart = \"10:00\"\nend = \"10:10\"\n{figures_text}[[population]]\nname = \"p\"\n\
         workload = \"w\"\nto = \"t\"\n[[tier]]\nname = \"t\"\nlatency = \"1s\"\n"
    );
    let scenario = Scenario::parse(&text, "test.toml").map_err(|errors| errors.to_string())?;
    figures(&scenario, 1.0, &recorder())
}

fn one(measure: &str) -> f64 {
    read(&[("x", measure)]).expect("a figure that can be read")["x"]
}

/// So many hundredths, rounded: figures are compared as whole numbers.
fn hundredths(value: f64) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "figures of these tests are small")]
    let rounded = libm::round(value * 100.0) as i64;
    rounded
}

#[test]
fn sums_rates_and_ratios_count_their_window_only() {
    assert_eq!(hundredths(one(r#"sum = { of = ["a.failed"] }"#)), 24_000);
    assert_eq!(hundredths(one(r#"sum = { of = ["a.failed", "a.all"], from = "10:02", until = "10:03" }"#)), 12_000);
    assert_eq!(hundredths(one(r#"rate = { of = ["a.all"], until = "10:05" }"#)), 100);
    assert_eq!(hundredths(one(r#"ratio = { of = ["a.failed"], to = ["a.all"] }"#)), 40);
    let other = r#"ratio = { of = ["a.failed"], to = ["a.failed"], from = "10:02", until = "10:03", to_window = { until = "10:04" } }"#;
    assert_eq!(hundredths(one(other)), 200);
    assert!(one(r#"ratio = { of = ["a.all"], to = ["a.failed"], until = "10:01" }"#).is_infinite());
}

#[test]
fn moving_windows_are_told_at_their_end() {
    let first =
        |rest: &str| one(&format!(r#"first = {{ of = ["a.failed"], to = ["a.all"], window = "60s", {rest} }}"#));
    // 31 of 60 failed at second 150, counted from 120.
    assert_eq!(hundredths(first("above = 0.5")), hundredths(600.0 + 150.0 / 60.0));
    assert_eq!(hundredths(first(r#"above = 0.5, holds = "2m", at_end = true"#)), hundredths(600.0 + 270.0 / 60.0));
    // Half of the window failed until second 449.
    assert_eq!(hundredths(first(r#"below = 0.5, from = "10:05", holds = "2m""#)), 60_750);
    assert!(first(r#"below = 0.5, from = "10:05", holds = "3m""#).is_nan());
    assert!(first("above = 1.0").is_nan());
    let rolling = |pick: &str| {
        one(&format!(r#"rolling = {{ of = ["a.failed"], to = ["a.all"], window = "60s", pick = "{pick}" }}"#))
    };
    assert_eq!((hundredths(rolling("greatest")), hundredths(rolling("least"))), (100, 0));
    assert_eq!(hundredths(rolling("when-greatest")), hundredths(600.0 + 179.0 / 60.0));
}

#[test]
fn levels_go_on_until_they_change() {
    let level = |pick: &str| one(&format!(r#"level = {{ of = ["a.level"], pick = "{pick}", until = "10:05" }}"#));
    assert_eq!((hundredths(level("greatest")), hundredths(level("least"))), (600, 0));
    assert_eq!(hundredths(level("mean")), hundredths((100.0 * 4.0 + 100.0 * 6.0) / 300.0));
}

#[test]
fn waves_are_counted_joined_and_measured() {
    let wave = |rest: &str| {
        one(&format!(r#"wave = {{ of = ["a.failed"], to = ["a.all"], window = "2s", above = 0.25, {rest} }}"#))
    };
    assert_eq!(hundredths(wave(r#"part = "count""#)), 200);
    assert_eq!(hundredths(wave(r#"part = "count", joins = "2m""#)), 100);
    assert_eq!(hundredths(wave(r#"part = "count", least = "2m""#)), 100);
    assert_eq!(hundredths(wave(r#"part = "sum", number = 2"#)), 6_000);
    assert_eq!(hundredths(wave(r#"part = "minutes""#)), hundredths(240.0 / 60.0 + 2.0 / 60.0));
    assert!(wave(r#"part = "begin", number = 3"#).is_nan());
    assert!(wave(r#"part = "end", number = 1, until = "10:04""#).is_nan());
}

#[test]
fn counts_marks_and_figures_of_figures() {
    assert_eq!(hundredths(one(r#"nth = { of = ["a.failed"], number = 20 }"#)), hundredths(600.0 + 139.0 / 60.0));
    assert_eq!(hundredths(one(r#"mark = "a.most""#)), 300);
    assert!(one(r#"mark = "a.never""#).is_nan());
    assert!(one(r#"autocorrelation = { of = ["a.failed"], lag = "1s" }"#) > 0.95);
    let both = [("x", r#"sum = { of = ["a.all"] }"#), ("y", r#"sum = { of = ["a.failed"] }"#)];
    for (measure, wanted) in [
        (r#"difference = ["x", "y"]"#, 36_000),
        (r#"quotient = ["y", "x"]"#, 40),
        (r#"least = ["x", "y"]"#, 24_000),
        (r#"greatest = ["x", "y"]"#, 60_000),
    ] {
        let all = read(&[both[0], both[1], ("z", measure)]).expect("figures that can be read");
        assert_eq!(hundredths(all["z"]), wanted, "{measure}");
    }
}

#[test]
fn names_that_there_are_not_are_told_with_those_that_there_are() {
    let mistake = |measure: &str| read(&[("x", measure)]).expect_err("a name that there is not");
    assert!(mistake(r#"sum = { of = ["a.filed"] }"#).contains("there are a.all, a.failed, a.level, a.most"));
    assert!(mistake(r#"sum = { of = ["b.all"] }"#).contains("there are series of a"));
    assert!(mistake(r#"least = ["y"]"#).contains("no figure `y` before this one"));
}
