//! What came of the drills, for people.

use super::report::Report;
use super::runner::Drilled;
use crate::figures::number;
use crate::tables::{WIDTH, bold, lines, plain};
use seawall_sim::drill::{Change, Cost, Outcome, Place, Row, Verdict, Worst};
use std::fmt::Write as _;

/// Changes that are shown of all that were tried.
const SHOWN: usize = 5;
/// Places that are shown of a change.
const PLACES: usize = 4;

/// The whole report.
pub(super) fn text(report: &Report<'_>, coloured: bool) -> String {
    let mut text = head(report, coloured);
    for drilled in &report.drills {
        let title = bold(&format!("{}: {}", drilled.case, drilled.drill.name), coloured);
        say(&mut text, format_args!("\n{title}\n{}\n\n", wrapped(&drilled.drill.about)));
        text.push_str(&losses(drilled, coloured));
        text.push_str(&figures(&drilled.outcome));
        text.push_str(&decision(report, drilled, coloured));
    }
    text.push_str(&summary(report, coloured));
    text
}

fn say(text: &mut String, words: std::fmt::Arguments<'_>) {
    text.write_fmt(words).expect("a string takes any text");
}

/// The file, and what was assumed about everything else.
fn head(report: &Report<'_>, coloured: bool) -> String {
    let ground = report.ground;
    let (settings, assumed) = (&ground.setup.settings, &ground.assumptions);
    let mut text = format!(
        "{}: {}, {}, {}\n",
        bold(ground.plan.file(), coloured),
        counted(settings.pools.len(), "model"),
        counted(settings.deployments.len(), "deployment"),
        counted(settings.tenants.len(), "tenant"),
    );
    let words = format!(
        "assumed: {}% of each model's capacity in use, evenly over its tenants; {} a request; {} of Seawall; clients \
         retry as {} does; it begins with the tenant `{}`; seed {}",
        number(assumed.load_percent),
        assumed.service_text(),
        counted(assumed.replicas as usize, "process"),
        assumed.profile,
        ground.tenant_name(),
        assumed.seed,
    );
    say(&mut text, format_args!("{}\n", wrapped(&words)));
    for note in ground.notes() {
        say(&mut text, format_args!("{}\n", wrapped(&format!("note: {note}"))));
    }
    if !report.has_file {
        text.push_str("note: this is the demo of `seawall serve`; drill your own file with --config FILE\n");
    }
    text
}

/// Words in lines that are comfortable to read.
fn wrapped(words: &str) -> String {
    let mut lines = vec![String::new()];
    for word in words.split(' ') {
        let line = lines.last().map_or(0, |line| line.chars().count());
        if line > 0 && line + 1 + word.chars().count() > usize::from(WIDTH) - 5 {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            let space = if line.is_empty() { "" } else { " " };
            line.push_str(space);
            line.push_str(word);
        }
    }
    lines.join("\n")
}

fn counted(count: usize, thing: &str) -> String {
    let several = if thing.ends_with('s') { "es" } else { "s" };
    format!("{count} {thing}{}", if count == 1 { "" } else { several })
}

/// Who lost how much, for how long.
fn losses(drilled: &Drilled<'_>, coloured: bool) -> String {
    let mut table = plain(coloured);
    table.set_header([
        "tenant",
        "model",
        "sent",
        "lost",
        "lost an hour",
        "over 5% lost for",
        "until",
        "door attempts",
        "wait p50 / p99",
    ]);
    for row in &drilled.outcome.rows {
        table.add_row(cells(row));
    }
    if drilled.outcome.rows.len() > 1 {
        let outcome = &drilled.outcome;
        let (lasts, until) = times(outcome.worst);
        table.add_row([
            "all".to_owned(),
            String::new(),
            number(float(outcome.sent)),
            percent(outcome.lost_percent),
            number(outcome.rows.iter().map(|row| row.lost_per_hour).sum::<f64>().round()),
            lasts,
            until,
            attempts(outcome.door_attempts),
            waits(outcome.wait_p50_seconds, outcome.wait_p99_seconds),
        ]);
    }
    lines(&table)
}

fn cells(row: &Row) -> [String; 9] {
    let (lasts, until) = times(row.worst);
    [
        row.tenant.clone(),
        if row.is_long { format!("{} (long)", row.model) } else { row.model.clone() },
        number(float(row.sent)),
        percent(row.lost_percent),
        number(row.lost_per_hour.round()),
        lasts,
        until,
        attempts(row.door_attempts),
        waits(row.wait_p50_seconds, row.wait_p99_seconds),
    ]
}

/// How long the longest bad time was, and when the last bad minute was over.
fn times(worst: Option<Worst>) -> (String, String) {
    worst.map_or_else(
        || ("-".to_owned(), "-".to_owned()),
        |worst| (format!("{} min", worst.minutes), format!("minute {}", worst.last_bad_minute)),
    )
}

fn percent(value: f64) -> String {
    format!("{value:.1}%")
}

fn attempts(value: f64) -> String {
    format!("{value:.2}")
}

fn waits(half: Option<f64>, most: Option<f64>) -> String {
    match (half, most) {
        (Some(half), Some(most)) => format!("{} / {}", seconds(half), seconds(most)),
        _ => "-".to_owned(),
    }
}

fn seconds(seconds: f64) -> String {
    if seconds < 0.001 {
        "0 s".to_owned()
    } else if seconds < 1.0 {
        format!("{:.0} ms", seconds * 1000.0)
    } else {
        format!("{seconds:.1} s")
    }
}

#[expect(clippy::cast_precision_loss, reason = "a simulation has far fewer than 2^53 requests")]
const fn float(count: u64) -> f64 {
    count as f64
}

fn figures(outcome: &Outcome) -> String {
    let mut text = format!(
        "attempts for one request: {:.2} at deployments (at most {:.0}), {:.2} at Seawall's door (at most {:.0})\n",
        outcome.upstream_attempts, outcome.most_upstream_attempts, outcome.door_attempts, outcome.most_door_attempts,
    );
    if outcome.quiet_lost_percent >= 0.05 {
        let quiet = percent(outcome.quiet_lost_percent);
        say(
            &mut text,
            format_args!("{quiet} were lost before anything happened: the load alone is too much for this file\n"),
        );
    }
    text
}

/// Which setting decides, where it stands, and what else was tried.
fn decision(report: &Report<'_>, drilled: &Drilled<'_>, coloured: bool) -> String {
    let lost = percent(drilled.outcome.lost_percent);
    let mut text = String::new();
    match drilled.verdict {
        Verdict::Decides { tried, edit } => {
            named(&mut text, report, drilled, tried, coloured);
            let cost = drilled.tried[tried].0.cost;
            if let Some(edit) = edit {
                let (change, outcome) = &drilled.tried[edit];
                let (what, now) = (changed(change), percent(outcome.lost_percent));
                say(
                    &mut text,
                    format_args!("by an edit of the file alone: {} {what} lowers it to {now}\n", change.setting),
                );
                places(&mut text, report, change);
            } else if cost != Cost::Edit {
                let remedy = &drilled.drill.remedy;
                let words = format!("no edit of the file alone lowers it noticeably; what would: {remedy}");
                say(&mut text, format_args!("{}\n", wrapped(&words)));
            }
        }
        Verdict::NoSetting => {
            let words = format!("no setting of today's Seawall decides it: each was changed, and {lost} stay lost");
            let remedy = format!("what would: {}", drilled.drill.remedy);
            say(&mut text, format_args!("{}\n{}\n", bold(&words, coloured), wrapped(&remedy)));
        }
        Verdict::Holds { tried } => named(&mut text, report, drilled, tried, coloured),
        Verdict::Safe => {
            say(&mut text, format_args!("{}\n", bold("little is lost, whichever setting is changed alone", coloured)));
        }
    }
    text.push_str(&tried(drilled, coloured));
    text
}

fn named(text: &mut String, report: &Report<'_>, drilled: &Drilled<'_>, index: usize, coloured: bool) {
    let (change, outcome) = &drilled.tried[index];
    let (before, after) = (percent(drilled.outcome.lost_percent), percent(outcome.lost_percent));
    let (setting, what) = (&change.setting, changed(change));
    let words = match drilled.verdict {
        Verdict::Holds { .. } => format!("kept so by {setting}: {what} would raise the loss from {before} to {after}"),
        _ => format!("decided by {setting}: {what} lowers the loss from {before} to {after}"),
    };
    say(text, format_args!("{}{}\n", bold(&words, coloured), price(change.cost)));
    places(text, report, change);
}

/// A change in words: the new value instead of the old one.
fn changed(change: &Change) -> String {
    let mut olds: Vec<&str> = change.places.iter().map(|place| place.from.as_str()).collect();
    olds.dedup();
    let old = olds.first().copied().unwrap_or_default();
    let more = if olds.len() > 1 { " and others" } else { "" };
    format!("{} instead of {old}{more}", change.to)
}

const fn price(cost: Cost) -> &'static str {
    match cost {
        Cost::Edit => "",
        Cost::Promise => ", if its data may go elsewhere",
        Cost::Capacity => ", which has to be bought",
    }
}

fn places(text: &mut String, report: &Report<'_>, change: &Change) {
    for place in change.places.iter().take(PLACES) {
        say(text, format_args!("  {}\n", at(report, place)));
    }
    if change.places.len() > PLACES {
        say(text, format_args!("  and {} more\n", change.places.len() - PLACES));
    }
}

fn at(report: &Report<'_>, Place { key, line, is_written, from }: &Place) -> String {
    let file = report.ground.plan.file();
    match line.filter(|_| report.has_file) {
        Some(line) if *is_written => format!("{file}:{line}: {key} = {from}"),
        Some(line) => format!("{file}:{line}: {key}, not written there yet: {from} is the default"),
        None => format!("{key}, now {from}"),
    }
}

/// The changes that did most, either way.
fn tried(drilled: &Drilled<'_>, coloured: bool) -> String {
    let distance = |outcome: &Outcome| outcome.lost.abs_diff(drilled.outcome.lost);
    let mut all: Vec<&(Change, Outcome)> = drilled.tried.iter().filter(|(_, outcome)| distance(outcome) > 0).collect();
    all.sort_by_key(|(_, outcome)| std::cmp::Reverse(distance(outcome)));
    if all.is_empty() {
        return format!("tried: {}, none of them changed what is lost\n", counted(drilled.tried.len(), "change"));
    }
    let mut table = plain(coloured);
    table.set_header(["changed alone", "from", "to", "lost", "attempts", "wait p99"]);
    for (change, outcome) in all.iter().take(SHOWN) {
        table.add_row([
            change.setting.clone(),
            change.places.first().map_or_else(String::new, |place| place.from.clone()),
            change.to.clone(),
            percent(outcome.lost_percent),
            attempts(outcome.upstream_attempts),
            outcome.wait_p99_seconds.map_or_else(|| "-".to_owned(), seconds),
        ]);
    }
    let (made, shown) = (drilled.tried.len(), all.len().min(SHOWN));
    format!("\n{shown} of {made} changes, those that did most (attempts are those at deployments):\n{}", lines(&table))
}

/// A line a drill, and whether they pass.
fn summary(report: &Report<'_>, coloured: bool) -> String {
    let mut text = String::from("\n");
    for drilled in &report.drills {
        let what = match drilled.verdict {
            Verdict::Decides { .. } => "decided by",
            Verdict::Holds { .. } => "kept so by",
            Verdict::NoSetting => "no setting decides it",
            Verdict::Safe => "no single setting endangers it",
        };
        let setting = drilled.named().map_or("", |(change, _)| change.setting.as_str());
        let lost = percent(drilled.outcome.lost_percent);
        say(
            &mut text,
            format_args!("{:24} {lost:>6} lost, {}\n", drilled.drill.name, format!("{what} {setting}").trim_end()),
        );
    }
    for drilled in report.too_much() {
        let most = percent(report.max_loss.unwrap_or_default());
        let words = format!("{} loses more than the {most} of --max-loss", drilled.drill.name);
        say(&mut text, format_args!("{}\n", bold(&words, coloured)));
    }
    for violation in report.violations() {
        say(&mut text, format_args!("must never be seen: {violation}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_words_are_wrapped_between_words_only() {
        let text = "word ".repeat(60);
        let lines = wrapped(text.trim_end());
        assert!(lines.lines().all(|line| line.len() <= 115 && !line.starts_with(' ') && !line.ends_with(' ')));
        assert_eq!(lines.replace('\n', " "), text.trim_end());
        assert_eq!((wrapped("short"), wrapped(&"x".repeat(200)).len()), ("short".to_owned(), 200));
    }

    #[test]
    fn figures_are_written_for_people() {
        assert_eq!([0.0, 0.0204, 0.999, 10.24].map(seconds), ["0 s", "20 ms", "999 ms", "10.2 s"]);
        assert_eq!((counted(1, "process"), counted(2, "process"), counted(0, "model")), {
            ("1 process".to_owned(), "2 processes".to_owned(), "0 models".to_owned())
        });
        let worst = Worst { minutes: 3, until_minute: 8, last_bad_minute: 14 };
        assert_eq!(times(Some(worst)), ("3 min".to_owned(), "minute 14".to_owned()));
        assert_eq!((times(None).0, waits(Some(0.0), None)), ("-".to_owned(), "-".to_owned()));
    }
}
