//! Adds up finished calls. One owner, no locks: calls hand their records over when they end.

use super::mix::Mix;
use super::options::LoadOptions;
use super::record::{AnswerLabel, CallRecord, Ending, FailureKind};
use super::report::{FailureCount, GroupReport, Quantiles, Report, StreamReport, WaitReport, ratio};
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::time::Duration;

/// A start this long after its scheduled time counts as late.
const LATE_AFTER: Duration = Duration::from_millis(10);
/// Kinds of failure that are told apart; further ones share one row, since codes come from the target.
const MAX_FAILURE_ROWS: usize = 200;

/// A histogram of microseconds with three digits, which grows as it needs to.
struct Times(Histogram<u64>);

impl Times {
    fn new() -> Self {
        Self(Histogram::new(3).expect("three digits are within the histogram's range"))
    }

    fn add(&mut self, time: Duration) {
        self.add_micros(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    }

    fn add_micros(&mut self, micros: u64) {
        // Not `saturating_record`: that one clamps to the present range, where this one widens it.
        self.0.record(micros).expect("a histogram without a set range widens to every value");
    }

    fn quantiles(&self) -> Quantiles {
        let millis = |micros: u64| Duration::from_micros(micros).as_secs_f64() * 1_000.0;
        Quantiles {
            count: self.0.len(),
            mean_ms: if self.0.is_empty() { 0.0 } else { self.0.mean() / 1_000.0 },
            p50_ms: millis(self.0.value_at_quantile(0.5)),
            p90_ms: millis(self.0.value_at_quantile(0.9)),
            p99_ms: millis(self.0.value_at_quantile(0.99)),
            max_ms: millis(self.0.max()),
        }
    }
}

struct Group {
    name: String,
    sent: u64,
    succeeded: u64,
    attempts: u64,
    latency: Times,
}

impl Group {
    fn of<T>(mix: &Mix<T>, name: impl Fn(&T) -> String) -> Vec<Self> {
        let group = |item| Self { name: name(item), sent: 0, succeeded: 0, attempts: 0, latency: Times::new() };
        mix.entries().iter().map(|(item, _)| group(item)).collect()
    }

    fn add(&mut self, record: &CallRecord) {
        self.sent += 1;
        self.attempts += u64::from(record.attempts);
        self.succeeded += u64::from(record.ending == Ending::Success);
        if record.ending != Ending::Cancelled {
            self.latency.add(record.latency);
        }
    }

    fn report(self) -> GroupReport {
        GroupReport {
            success_ratio: ratio(self.succeeded, self.sent),
            attempts_per_request: ratio(self.attempts, self.sent),
            latency: self.latency.quantiles(),
            name: self.name,
            sent: self.sent,
            succeeded: self.succeeded,
        }
    }
}

/// The sums of a run.
pub(super) struct Tally {
    report: Report,
    failures: BTreeMap<(FailureKind, Option<u16>, Option<String>), u64>,
    answers: BTreeMap<AnswerLabel, u64>,
    latency: Times,
    success_latency: Times,
    first_output: Times,
    gaps: Times,
    lag: Times,
    profiles: Vec<Group>,
    tenants: Vec<Group>,
    wait_told: Duration,
    wait_own: Duration,
}

impl Tally {
    pub(super) fn new(options: &LoadOptions) -> Self {
        Self {
            report: Report::empty(options),
            failures: BTreeMap::new(),
            answers: BTreeMap::new(),
            latency: Times::new(),
            success_latency: Times::new(),
            first_output: Times::new(),
            gaps: Times::new(),
            lag: Times::new(),
            profiles: Group::of(&options.profiles, |client| client.0.name.to_owned()),
            tenants: Group::of(&options.tenants, |tenant| tenant.name.clone()),
            wait_told: Duration::ZERO,
            wait_own: Duration::ZERO,
        }
    }

    /// The sums so far.
    pub(super) fn so_far(&self) -> &Report {
        &self.report
    }

    pub(super) fn arrived(&mut self, warm_up: bool, is_sent: bool) {
        let report = &mut self.report;
        match (warm_up, is_sent) {
            (true, true) => report.warm_up_sent += 1,
            (true, false) => report.warm_up_not_sent += 1,
            (false, true) => (report.arrivals, report.sent) = (report.arrivals + 1, report.sent + 1),
            (false, false) => (report.arrivals, report.not_sent) = (report.arrivals + 1, report.not_sent + 1),
        }
    }

    pub(super) fn add(&mut self, record: &CallRecord) {
        if record.warm_up {
            return;
        }
        self.profiles[record.profile].add(record);
        self.tenants[record.tenant].add(record);
        self.lag.add(record.lag);
        self.report.late_starts += u64::from(record.lag > LATE_AFTER);
        self.report.attempts += u64::from(record.attempts);
        self.report.max_attempts = self.report.max_attempts.max(record.attempts);
        *self.report.requests_by_attempts.entry(record.attempts).or_default() += 1;
        self.report.bytes_received += record.bytes;
        for answer in &record.answers {
            *self.answers.entry(*answer).or_default() += 1;
        }
        self.add_waits(record);
        self.add_ending(record);
    }

    fn add_waits(&mut self, record: &CallRecord) {
        for wait in &record.waits {
            let (count, total) = if wait.told {
                (&mut self.report.waits.stated, &mut self.wait_told)
            } else {
                (&mut self.report.waits.own, &mut self.wait_own)
            };
            *count += 1;
            *total = total.saturating_add(wait.duration);
        }
    }

    fn add_ending(&mut self, record: &CallRecord) {
        self.report.streams.asked += u64::from(record.stream);
        match &record.ending {
            Ending::Cancelled => self.report.cancelled += 1,
            Ending::Success => {
                self.report.succeeded += 1;
                self.report.streams.succeeded += u64::from(record.stream);
                self.latency.add(record.latency);
                self.success_latency.add(record.latency);
                if let Some(first) = record.first_output {
                    self.first_output.add(first);
                }
                for micros in &record.gaps_micros {
                    self.gaps.add_micros(u64::from(*micros));
                }
                self.report.streams.gaps_not_kept += record.gaps_not_kept;
            }
            Ending::Failure { kind, status, code } => {
                self.report.failed += 1;
                self.latency.add(record.latency);
                self.add_stream_failure(*kind);
                let mut key = (*kind, *status, code.clone());
                if self.failures.len() >= MAX_FAILURE_ROWS && !self.failures.contains_key(&key) {
                    key.2 = Some("(further codes)".to_owned());
                }
                *self.failures.entry(key).or_default() += 1;
            }
        }
    }

    fn add_stream_failure(&mut self, kind: FailureKind) {
        let streams: &mut StreamReport = &mut self.report.streams;
        match kind {
            FailureKind::StreamWithoutDone => streams.without_done += 1,
            FailureKind::StreamError | FailureKind::FirstEventError => streams.error_event += 1,
            FailureKind::StreamBroken => streams.broken += 1,
            FailureKind::StreamSilent => streams.silent += 1,
            _ => {}
        }
    }

    /// The report of a run that took `elapsed`, of which calls arrived for `arriving` after the warm-up.
    pub(super) fn finish(self, elapsed: Duration, arriving: Duration) -> Report {
        let mut report = self.report;
        report.success_ratio = ratio(report.succeeded, report.arrivals);
        report.attempts_per_request = ratio(report.attempts, report.sent);
        report.elapsed_seconds = elapsed.as_secs_f64();
        let per_second = |count: u64| {
            if arriving.is_zero() { 0.0 } else { ratio(count, 1) / arriving.as_secs_f64() }
        };
        report.sent_per_second = per_second(report.sent);
        report.succeeded_per_second = per_second(report.succeeded);
        report.waits = WaitReport {
            stated_seconds: self.wait_told.as_secs_f64(),
            own_seconds: self.wait_own.as_secs_f64(),
            ..report.waits
        };
        report.failures = self
            .failures
            .into_iter()
            .map(|((kind, status, code), count)| FailureCount { kind, status, code, count })
            .collect();
        report.failures.sort_by_key(|failure| std::cmp::Reverse(failure.count));
        report.attempt_answers = self
            .answers
            .into_iter()
            .map(|(label, count)| match label {
                AnswerLabel::Status(status) => (status.to_string(), count),
                AnswerLabel::Fault(fault) => (fault.to_owned(), count),
            })
            .collect();
        report.latency = self.latency.quantiles();
        report.success_latency = self.success_latency.quantiles();
        report.time_to_first_token = self.first_output.quantiles();
        report.gaps = self.gaps.quantiles();
        report.scheduler_lag = self.lag.quantiles();
        report.profiles = self.profiles.into_iter().map(Group::report).collect();
        report.tenants = self.tenants.into_iter().map(Group::report).collect();
        report
    }
}
