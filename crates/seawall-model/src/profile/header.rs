//! Reads stated waits the way each client does, and the few words of an error that clients act on.

use super::{Answer, Forms, OnExcess, OnZero, Outcome, WaitReading};
use core::time::Duration;

/// What an answer states about waiting, after the layer's quirks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Stated {
    /// Nothing that this layer reads.
    Nothing,
    /// A wait that it obeys.
    Wait(Duration),
    /// A wait so long that it gives up.
    Stop,
}

impl WaitReading {
    pub(super) fn stated(&self, answer: &Answer<'_>) -> Stated {
        if let Outcome::Status(status) = answer.outcome
            && !self.on.is_empty()
            && !self.on.contains(&status)
        {
            return Stated::Nothing;
        }
        self.written(answer).map_or(Stated::Nothing, |wait| self.judge(wait))
    }

    fn written(&self, answer: &Answer<'_>) -> Option<Duration> {
        let millis = |read: bool, value: Option<&str>| value.filter(|_| read).and_then(|text| decimal(text, 1_000.0));
        let in_millis = millis(self.retry_after_ms, answer.retry_after_ms)
            .or_else(|| millis(self.x_ms_retry_after_ms, answer.x_ms_retry_after_ms));
        let in_seconds = self.retry_after.and_then(|forms| seconds(answer.retry_after?, forms, answer.unix_seconds));
        let header = if self.ms_wins { in_millis.or(in_seconds) } else { in_seconds.or(in_millis) };
        header.or_else(|| answer.error_message.filter(|_| self.message).and_then(try_again_in))
    }

    fn judge(&self, wait: Duration) -> Stated {
        if wait.is_zero() {
            return match self.on_zero {
                OnZero::Immediate => Stated::Wait(wait),
                OnZero::Ignore => Stated::Nothing,
            };
        }
        if wait < self.cap || (wait == self.cap && self.cap_obeyed) {
            return Stated::Wait(wait);
        }
        match self.on_excess {
            OnExcess::Ignore => Stated::Nothing,
            OnExcess::Stop => Stated::Stop,
            OnExcess::Clamp => Stated::Wait(self.cap),
            OnExcess::Immediate => Stated::Wait(Duration::ZERO),
        }
    }
}

fn seconds(text: &str, forms: Forms, unix_seconds: u64) -> Option<Duration> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    match forms {
        Forms::Integer => None,
        Forms::IntegerAndDate => date(text, unix_seconds),
        Forms::IntegerAndFraction => decimal(text, 1.0),
        Forms::All => decimal(text, 1.0).or_else(|| date(text, unix_seconds)),
    }
}

/// A decimal number of 1/`units` seconds. Negative, infinite and unreadable values are `None`.
fn decimal(text: &str, units: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(text.trim().parse::<f64>().ok()? / units).ok()
}

/// The time until an HTTP date (IMF-fixdate, RFC 9110, 5.6.7), nought where it has passed.
fn date(text: &str, unix_seconds: u64) -> Option<Duration> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut fields = text.split_once(", ")?.1.split(' ');
    let day: u64 = fields.next()?.parse().ok().filter(|day| (1..=31).contains(day))?;
    let name = fields.next()?;
    let month = MONTHS.iter().position(|month| *month == name)? as u64 + 1;
    let year: u64 = fields.next()?.parse().ok().filter(|year| (1970..=9999).contains(year))?;
    let mut clock = fields.next()?.split(':').map(|part| part.parse::<u64>().ok().filter(|part| *part < 61));
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    if hour > 23 || fields.next() != Some("GMT") {
        return None;
    }
    let at = days_since_epoch(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second;
    Some(Duration::from_secs(at.saturating_sub(unix_seconds)))
}

/// Days from 1970-01-01 in the proleptic Gregorian calendar, counted in years that begin in March so that the leap
/// day comes last.
fn days_since_epoch(year: u64, month: u64, day: u64) -> u64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let before_year = year * 365 + year / 4 - year / 100 + year / 400;
    before_year + (month * 153 + 2) / 5 + day - 1 - 719_468
}

/// The wait in "try again in 12s", "try again in 1.5 seconds", "try again in 20 ms".
fn try_again_in(message: &str) -> Option<Duration> {
    let rest = message.split_once("try again in ")?.1;
    let end = rest.find(|mark: char| !mark.is_ascii_digit() && mark != '.').unwrap_or(rest.len());
    let (number, unit) = rest.split_at(end);
    let unit = unit.trim_start();
    decimal(number, if unit.starts_with("ms") { 1_000.0 } else { 1.0 }).filter(|_| unit.starts_with(['s', 'm']))
}

/// Words that LangChain JS takes as "paying is due".
pub(super) fn names_billing(answer: &Answer<'_>) -> bool {
    let words = ["billing", "usage quota", "credit balance", "will reset at"];
    answer.error_message.is_some_and(|message| words.iter().any(|word| message.contains(word)))
}

/// Words in a stream's first event by which the Vercel provider takes it for a client's mistake, and no retry.
pub(super) fn names_mistake(answer: &Answer<'_>) -> bool {
    let words = ["invalid", "bad_request", "context_length", "not_found", "permission", "authentication"];
    let numeric = |text: &str| {
        text.parse::<u16>().is_ok_and(|code| (400..500).contains(&code) && ![408, 409, 429].contains(&code))
    };
    [answer.error_type, answer.error_code]
        .into_iter()
        .flatten()
        .any(|text| numeric(text) || words.iter().any(|word| text.contains(word)))
}
