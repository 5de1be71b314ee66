//! What a run found: the same facts for machines (serde) and for people ([`Report::render`]).

use super::options::{Arrivals, Endpoint, LoadOptions};
pub use super::record::FailureKind;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The result of a run. Warm-up arrivals are in `warm_up_sent` and `warm_up_not_sent` and nowhere else.
///
/// `arrivals = sent + not_sent`, and `sent = succeeded + failed + cancelled`. Times count from when a call should have
/// been sent, not from when it was: a late start or a queue on this side is part of what the caller waits.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Base URL.
    pub target: String,
    /// What was called.
    pub endpoint: Endpoint,
    /// How arrivals were spaced.
    pub arrivals_spaced: Arrivals,
    /// Arrivals per second asked for.
    pub rate_per_second: f64,
    /// Seed.
    pub seed: u64,
    /// The whole run, warm-up and the wait for the last answers included.
    pub elapsed_seconds: f64,
    /// Whether the run was cancelled before its end.
    pub was_cancelled: bool,
    /// Warm-up calls sent.
    pub warm_up_sent: u64,
    /// Warm-up calls beyond the bound on calls at once.
    pub warm_up_not_sent: u64,
    /// Scheduled calls whose time came.
    pub arrivals: u64,
    /// Calls made.
    pub sent: u64,
    /// Arrivals beyond the bound on calls at once: nothing was sent for them.
    pub not_sent: u64,
    /// Calls that got a whole answer.
    pub succeeded: u64,
    /// Calls that did not.
    pub failed: u64,
    /// Calls that were still open when the run was cancelled.
    pub cancelled: u64,
    /// `succeeded / arrivals`: what was not sent did not succeed.
    pub success_ratio: f64,
    /// Calls sent per second of the time in which calls arrived.
    pub sent_per_second: f64,
    /// Successful ones among them, per second.
    pub succeeded_per_second: f64,
    /// Failures by kind, status and code, the most frequent first.
    pub failures: Vec<FailureCount>,
    /// Attempts begun.
    pub attempts: u64,
    /// Attempts per sent call.
    pub attempts_per_request: f64,
    /// The most attempts of one call.
    pub max_attempts: u32,
    /// Calls by their number of attempts.
    pub requests_by_attempts: BTreeMap<u32, u64>,
    /// Finished attempts by status or fault.
    pub attempt_answers: BTreeMap<String, u64>,
    /// Waits before retries.
    pub waits: WaitReport,
    /// All ended calls.
    pub latency: Quantiles,
    /// Successful calls.
    pub success_latency: Quantiles,
    /// From the scheduled time to the first output, of streams that succeeded.
    pub time_to_first_token: Quantiles,
    /// Between chunks with events, of streams that succeeded.
    pub gaps: Quantiles,
    /// Streams.
    pub streams: StreamReport,
    /// From the scheduled time to the start. If this is large, this machine is too busy and the run means little.
    pub scheduler_lag: Quantiles,
    /// Starts more than 10 ms late.
    pub late_starts: u64,
    /// Bytes of bodies received.
    pub bytes_received: u64,
    /// Connections opened.
    pub connections_opened: u64,
    /// Idle connections that the target had closed; their requests went, unsent so far, onto others.
    pub stale_connections: u64,
    /// Connections that this machine could not make (out of files or ports). Not the target's fault.
    pub local_limit_faults: u64,
    /// By retry profile, in the order of the mix.
    pub profiles: Vec<GroupReport>,
    /// By tenant, in the order of the mix.
    pub tenants: Vec<GroupReport>,
}

/// Failures of one kind.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct FailureCount {
    /// Why.
    pub kind: FailureKind,
    /// The last answer's status, if there was one.
    pub status: Option<u16>,
    /// The error's code, or else its type.
    pub code: Option<String>,
    /// How many calls.
    pub count: u64,
}

/// Waits that clients sat out before they came again.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WaitReport {
    /// Waits that an answer stated and the client obeyed.
    pub stated: u64,
    /// Their sum.
    pub stated_seconds: f64,
    /// Waits by the client's own backoff, immediate ones included.
    pub own: u64,
    /// Their sum.
    pub own_seconds: f64,
}

/// Streams.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct StreamReport {
    /// Calls that asked for one.
    pub asked: u64,
    /// Those that got it whole.
    pub succeeded: u64,
    /// Ended cleanly, but without `[DONE]` (or the closing event of the endpoint).
    pub without_done: u64,
    /// Held an error event.
    pub error_event: u64,
    /// Connection lost in the middle.
    pub broken: u64,
    /// Fell silent.
    pub silent: u64,
    /// Gaps beyond the 65,536 that are kept of each stream.
    pub gaps_not_kept: u64,
}

/// A distribution of times in milliseconds, with three digits. All nought when `count` is.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Quantiles {
    /// Number of values.
    pub count: u64,
    /// Mean.
    pub mean_ms: f64,
    /// Median.
    pub p50_ms: f64,
    /// 90th percentile.
    pub p90_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// Largest value.
    pub max_ms: f64,
}

/// One group of callers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupReport {
    /// Its name.
    pub name: String,
    /// Calls made.
    pub sent: u64,
    /// Calls that succeeded.
    pub succeeded: u64,
    /// `succeeded / sent`.
    pub success_ratio: f64,
    /// Attempts per call.
    pub attempts_per_request: f64,
    /// All ended calls.
    pub latency: Quantiles,
}

/// `part / whole`, nought where `whole` is.
#[expect(clippy::cast_precision_loss, reason = "counts of a run stay far below 2^53")]
pub(super) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

impl Report {
    pub(super) fn empty(options: &LoadOptions) -> Self {
        Self {
            target: options.target.clone(),
            endpoint: options.endpoint,
            arrivals_spaced: options.arrivals,
            rate_per_second: options.rate_per_second,
            seed: options.seed,
            elapsed_seconds: 0.0,
            was_cancelled: false,
            warm_up_sent: 0,
            warm_up_not_sent: 0,
            arrivals: 0,
            sent: 0,
            not_sent: 0,
            succeeded: 0,
            failed: 0,
            cancelled: 0,
            success_ratio: 0.0,
            sent_per_second: 0.0,
            succeeded_per_second: 0.0,
            failures: Vec::new(),
            attempts: 0,
            attempts_per_request: 0.0,
            max_attempts: 0,
            requests_by_attempts: BTreeMap::new(),
            attempt_answers: BTreeMap::new(),
            waits: WaitReport::default(),
            latency: Quantiles::default(),
            success_latency: Quantiles::default(),
            time_to_first_token: Quantiles::default(),
            gaps: Quantiles::default(),
            streams: StreamReport::default(),
            scheduler_lag: Quantiles::default(),
            late_starts: 0,
            bytes_received: 0,
            connections_opened: 0,
            stale_connections: 0,
            local_limit_faults: 0,
            profiles: Vec::new(),
            tenants: Vec::new(),
        }
    }

    /// The report in lines for people, ending with a line break. Rows that have nothing to say are left out.
    pub fn render(&self) -> String {
        let mut text = String::new();
        self.write(&mut text).expect("writing to a string does not fail");
        text
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let Self { target, sent, succeeded, failed, .. } = self;
        writeln!(out, "target      {target} ({}), seed {}", name_of(&self.endpoint), self.seed)?;
        let cancelled = if self.was_cancelled { ", cancelled" } else { "" };
        writeln!(out, "run         {:.1} s{cancelled}, {} warm-up calls", self.elapsed_seconds, self.warm_up_sent)?;
        writeln!(
            out,
            "sent        {sent} of {} arrivals, {:.1}/s of {:.1}/s asked for",
            self.arrivals, self.sent_per_second, self.rate_per_second
        )?;
        writeln!(out, "success     {succeeded}, {:.2}% of arrivals", self.success_ratio * 100.0)?;
        if failed + self.not_sent + self.cancelled > 0 {
            writeln!(out, "no success  {failed} failed, {} not sent, {} cancelled", self.not_sent, self.cancelled)?;
        }
        for failure in &self.failures {
            let status = failure.status.map_or(String::new(), |status| format!(" {status}"));
            let code = failure.code.as_ref().map_or(String::new(), |code| format!(" {}", code.escape_debug()));
            writeln!(out, "  {:>8}  {}{status}{code}", failure.count, name_of(&failure.kind))?;
        }
        let answers: Vec<_> = self.attempt_answers.iter().map(|(label, count)| format!("{label}: {count}")).collect();
        writeln!(
            out,
            "attempts    {}, {:.3} per request, at most {} ({})",
            self.attempts,
            self.attempts_per_request,
            self.max_attempts,
            answers.join(", ")
        )?;
        if self.waits.stated + self.waits.own > 0 {
            let WaitReport { stated, stated_seconds, own, own_seconds } = &self.waits;
            writeln!(out, "waits       {stated} stated ({stated_seconds:.1} s), {own} own ({own_seconds:.1} s)")?;
        }
        self.write_times(out)?;
        self.write_groups(out)?;
        self.write_warnings(out)
    }

    fn write_times(&self, out: &mut String) -> std::fmt::Result {
        writeln!(out, "{:20}{:>9}{:>11}{:>11}{:>11}{:>11}", "times in ms", "count", "p50", "p90", "p99", "max")?;
        for (name, times) in [
            ("  latency", &self.latency),
            ("  of successes", &self.success_latency),
            ("  first token", &self.time_to_first_token),
            ("  gaps", &self.gaps),
            ("  start lag", &self.scheduler_lag),
        ] {
            if times.count > 0 {
                let Quantiles { count, p50_ms, p90_ms, p99_ms, max_ms, .. } = times;
                writeln!(out, "{name:20}{count:>9}{p50_ms:>11.2}{p90_ms:>11.2}{p99_ms:>11.2}{max_ms:>11.2}")?;
            }
        }
        let StreamReport { asked, succeeded, without_done, error_event, broken, silent, .. } = self.streams;
        if asked > 0 {
            writeln!(
                out,
                "streams     {succeeded} of {asked} whole; {without_done} without [DONE], {error_event} with an error \
                 event, {broken} broken, {silent} silent"
            )?;
        }
        Ok(())
    }

    fn write_groups(&self, out: &mut String) -> std::fmt::Result {
        for (title, groups) in [("client", &self.profiles), ("tenant", &self.tenants)] {
            if groups.len() < 2 {
                continue;
            }
            writeln!(out, "{title:20}{:>9}{:>11}{:>11}{:>11}{:>11}", "sent", "success", "attempts", "p50", "p99")?;
            for group in groups {
                writeln!(
                    out,
                    "  {:18}{:>9}{:>10.2}%{:>11.3}{:>11.2}{:>11.2}",
                    group.name,
                    group.sent,
                    group.success_ratio * 100.0,
                    group.attempts_per_request,
                    group.latency.p50_ms,
                    group.latency.p99_ms
                )?;
            }
        }
        Ok(())
    }

    fn write_warnings(&self, out: &mut String) -> std::fmt::Result {
        if self.local_limit_faults > 0 {
            writeln!(
                out,
                "warning: {} connections failed on this machine (out of files or ports), not at the target; raise \
                 `ulimit -n` or lower --max-in-flight",
                self.local_limit_faults
            )?;
        }
        if self.not_sent > 0 {
            writeln!(out, "warning: arrivals were not sent at the bound on calls at once; raise --max-in-flight")?;
        }
        if self.late_starts * 100 > self.sent {
            writeln!(
                out,
                "warning: {} calls started more than 10 ms late; this machine is too busy, so lower the rate",
                self.late_starts
            )?;
        }
        Ok(())
    }
}

/// The name that serde gives a unit variant.
pub fn name_of(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name,
        _ => String::new(),
    }
}
