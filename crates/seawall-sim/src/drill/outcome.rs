//! What a drill came to: who lost how much, for how long, with how many attempts and how long a wait.

use super::ground::Ground;
use super::world::{LONG, SEAWALL, population, workload};
use crate::actors::number;
use crate::recorder::Recorder;
use crate::spread::Spread;
use crate::{Nanos, SECOND};
use seawall_cases::drill::Drill;
use seawall_core::outcome::Outcome as Ending;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::Range;

/// A minute in which more than this part of its requests is lost is a bad one.
const BAD_ABOVE: f64 = 0.05;
const MINUTE: usize = 60;

/// The times of a drill, from the beginning of its run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// When its mechanisms begin.
    pub(super) trigger: Nanos,
    /// Until when requests are sent.
    pub(super) end: Nanos,
    /// When nothing is waited for any more.
    pub(super) over: Nanos,
}

/// What a drill came to.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Outcome {
    /// Requests that were sent from the trigger on, as simulated.
    pub sent: u64,
    /// Those of them that were never served.
    pub lost: u64,
    /// The same in percent of what was sent.
    pub lost_percent: f64,
    /// What was lost in percent of what was sent up to a minute before the trigger: this is not the mechanism's.
    pub quiet_lost_percent: f64,
    /// The longest time with a loss, all requests together.
    pub worst: Option<Worst>,
    /// By tenant and model.
    pub rows: Vec<Row>,
    /// Attempts at deployments for one request, on average.
    pub upstream_attempts: f64,
    /// The most for any one request.
    pub most_upstream_attempts: f64,
    /// Attempts at Seawall's door for one request, on average.
    pub door_attempts: f64,
    /// The most for any one request.
    pub most_door_attempts: f64,
    /// How long those that were served had waited in Seawall's line, in seconds: what half of them did not exceed.
    pub wait_p50_seconds: Option<f64>,
    /// What 99 of 100 did not exceed.
    pub wait_p99_seconds: Option<f64>,
    /// Attempts that Seawall refused, by reason.
    pub refused: BTreeMap<&'static str, u64>,
    /// A hash of everything that happened.
    pub trace_hash: String,
    /// What was seen that must never be seen.
    pub violations: Vec<String>,
}

/// The requests of one tenant for one model.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The tenant.
    pub tenant: String,
    /// The model.
    pub model: String,
    /// Whether these are the very long requests of the mechanism itself.
    pub is_long: bool,
    /// The number of the tenant.
    #[serde(skip)]
    pub tenant_number: usize,
    /// The number of the model's pool.
    #[serde(skip)]
    pub pool_number: usize,
    /// Requests that were sent from the trigger on, as simulated.
    pub sent: u64,
    /// Those of them that were never served.
    pub lost: u64,
    /// The same in percent.
    pub lost_percent: f64,
    /// Requests lost in an hour, in the real volume, as fast as from the trigger to the end of the drill.
    pub lost_per_hour: f64,
    /// The longest time with a loss.
    pub worst: Option<Worst>,
    /// Attempts at Seawall's door for one request, on average; all models of the tenant.
    pub door_attempts: f64,
    /// How long served requests of the tenant had waited in Seawall's line, in seconds: what half did not exceed.
    pub wait_p50_seconds: Option<f64>,
    /// What 99 of 100 did not exceed.
    pub wait_p99_seconds: Option<f64>,
}

/// The longest time in which more than 5% of what was sent was lost, to the minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Worst {
    /// Its length in minutes.
    pub minutes: usize,
    /// When its last minute is over, in minutes from the trigger.
    pub until_minute: usize,
    /// When the last bad minute of all is over, in minutes from the trigger.
    pub last_bad_minute: usize,
}

/// Sent and served requests by second.
struct Sent {
    sent: Vec<u64>,
    served: Vec<u64>,
}

impl Sent {
    fn of(recorder: &Recorder, population: &str) -> Self {
        let sent = recorder.values(&format!("{population}.requests")).unwrap_or(&[]);
        let served = recorder.values(&format!("{population}.served")).unwrap_or(&[]);
        Self {
            sent: sent.iter().map(|count| crate::random::nanos(f64::from(*count))).collect(),
            served: served.iter().map(|count| crate::random::nanos(f64::from(*count))).collect(),
        }
    }

    fn add(&mut self, other: &Self) {
        for (mine, theirs) in [(&mut self.sent, &other.sent), (&mut self.served, &other.served)] {
            mine.resize(mine.len().max(theirs.len()), 0);
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine += theirs);
        }
    }

    fn within(&self, seconds: Range<usize>) -> (u64, u64) {
        let sum = |counts: &[u64]| counts.get(seconds.clone()).map_or(0, |counts| counts.iter().sum::<u64>());
        let (sent, served) = (sum(&self.sent), sum(&self.served));
        (sent, sent.saturating_sub(served))
    }

    fn worst(&self, seconds: Range<usize>) -> Option<Worst> {
        let end = seconds.end;
        let minutes = seconds.step_by(MINUTE).map(|from| self.within(from..(from + MINUTE).min(end)));
        worst(minutes.map(|(sent, lost)| percent(lost, sent) > BAD_ABOVE * 100.0))
    }
}

/// The longest run of bad minutes, the first of equals.
fn worst(minutes: impl Iterator<Item = bool>) -> Option<Worst> {
    let mut found: Option<Worst> = None;
    let mut length = 0;
    for (minute, is_bad) in minutes.enumerate() {
        length = if is_bad { length + 1 } else { 0 };
        if !is_bad {
            continue;
        }
        let until = minute + 1;
        let longest = found.filter(|worst| worst.minutes >= length);
        found = Some(longest.map_or(Worst { minutes: length, until_minute: until, last_bad_minute: until }, |worst| {
            Worst { last_bad_minute: until, ..worst }
        }));
    }
    found
}

/// A part of a whole in percent; 0 of nothing.
#[expect(clippy::cast_precision_loss, reason = "a simulation has far fewer than 2^53 requests")]
pub(super) fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

fn seconds(time: Nanos) -> usize {
    usize::try_from(time.div_ceil(SECOND)).unwrap_or(usize::MAX)
}

/// The sum of a series from a second on.
fn total_from(recorder: &Recorder, series: &str, second: usize) -> f64 {
    let values = recorder.values(series).and_then(|values| values.get(second..)).unwrap_or(&[]);
    values.iter().map(|value| f64::from(*value)).sum()
}

fn per(whole: f64, requests: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a simulation has far fewer than 2^53 requests")]
    let requests = requests as f64;
    if requests > 0.0 { whole / requests } else { 0.0 }
}

fn quantile(spread: &Spread, of_thousand: u64) -> Option<f64> {
    spread.quantile(of_thousand).map(|span| crate::actors::number_of(span) / crate::actors::number_of(SECOND))
}

impl Outcome {
    /// Reads what a run recorded.
    pub(super) fn read(
        ground: &Ground<'_>,
        drill: &Drill,
        times: Times,
        recorder: &Recorder,
        (trace_hash, violations): (u64, Vec<String>),
    ) -> Self {
        let (trigger, end) = (seconds(times.trigger), seconds(times.end));
        let mut all = Sent { sent: Vec::new(), served: Vec::new() };
        let mut rows = Vec::new();
        for (name, tenant, pool, in_small) in populations(ground, drill) {
            let sent = Sent::of(recorder, &name);
            rows.push(row(ground, (tenant, pool, name == LONG), &sent, trigger..end, in_small));
            all.add(&sent);
        }
        for row in &mut rows {
            let of_tenant = format!("{SEAWALL}.attempts.{}", workload(row.tenant_number));
            let waited = recorder.spread_of(&format!("{SEAWALL}.waited.{}", workload(row.tenant_number)));
            row.door_attempts = total_from(recorder, &of_tenant, trigger);
            row.wait_p50_seconds = waited.and_then(|spread| quantile(spread, 500));
            row.wait_p99_seconds = waited.and_then(|spread| quantile(spread, 990));
        }
        attempts_for_one(&mut rows);
        let mut waited = Spread::default();
        for tenant in 0..ground.setup.settings.tenants.len() {
            let of_tenant = recorder.spread_of(&format!("{SEAWALL}.waited.{}", workload(tenant)));
            if let Some(of_tenant) = of_tenant {
                waited.merge(of_tenant);
            }
        }
        let (sent, lost) = all.within(trigger..end);
        let (quiet_sent, quiet_lost) = all.within(0..trigger.saturating_sub(MINUTE));
        let mark = |name: &str| recorder.mark_value(&format!("{SEAWALL}.{name}")).unwrap_or(0.0);
        Self {
            sent,
            lost,
            lost_percent: percent(lost, sent),
            quiet_lost_percent: percent(quiet_lost, quiet_sent),
            worst: all.worst(trigger..end),
            rows,
            upstream_attempts: per(total_from(recorder, &format!("{SEAWALL}.upstream"), trigger), sent),
            most_upstream_attempts: mark("most_upstream"),
            door_attempts: per(total_from(recorder, &format!("{SEAWALL}.attempts"), trigger), sent),
            most_door_attempts: mark("most_attempts"),
            wait_p50_seconds: quantile(&waited, 500),
            wait_p99_seconds: quantile(&waited, 990),
            refused: refused(recorder, trigger),
            trace_hash: format!("{trace_hash:016x}"),
            violations,
        }
    }
}

/// Each population: its name, its tenant, its pool, and its simulated rate as a part of the real one.
fn populations(ground: &Ground<'_>, drill: &Drill) -> Vec<(String, usize, usize, f64)> {
    let flows = ground.flows.iter().map(|flow| {
        let in_small = flow.simulated_per_second / flow.per_second;
        (population(flow.tenant, flow.pool), flow.tenant, flow.pool, in_small)
    });
    let long = ground.long_pool(drill).map(|pool| (LONG.to_owned(), ground.tenant, pool, ground.scale));
    flows.chain(long).collect()
}

fn row(
    ground: &Ground<'_>,
    (tenant, pool, is_long): (usize, usize, bool),
    requests: &Sent,
    window: Range<usize>,
    in_small: f64,
) -> Row {
    let (sent, lost) = requests.within(window.clone());
    let hours = number(window.len()) / 3600.0;
    Row {
        tenant: ground.setup.settings.tenants[tenant].name.clone(),
        model: ground.setup.settings.pools[pool].name.clone(),
        is_long,
        tenant_number: tenant,
        pool_number: pool,
        sent,
        lost,
        lost_percent: percent(lost, sent),
        lost_per_hour: number(usize::try_from(lost).unwrap_or(usize::MAX)) / in_small / hours,
        worst: requests.worst(window),
        door_attempts: 0.0,
        wait_p50_seconds: None,
        wait_p99_seconds: None,
    }
}

/// From attempts of a tenant to attempts for one of its requests.
fn attempts_for_one(rows: &mut [Row]) {
    let mut sent: BTreeMap<usize, u64> = BTreeMap::new();
    for row in rows.iter() {
        *sent.entry(row.tenant_number).or_default() += row.sent;
    }
    for row in rows {
        row.door_attempts = per(row.door_attempts, sent[&row.tenant_number]);
    }
}

fn refused(recorder: &Recorder, trigger: usize) -> BTreeMap<&'static str, u64> {
    let endings =
        Ending::ALL.into_iter().map(|ending| (ending.label(), format!("{SEAWALL}.refused.{}", ending.label())));
    let connections = ("not_accepted", format!("{SEAWALL}.turned_away"));
    let counts = endings
        .chain([connections])
        .map(|(label, series)| (label, crate::random::nanos(total_from(recorder, &series, trigger))));
    counts.filter(|(_, count)| *count > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_run_of_bad_minutes_counts_and_the_last_bad_one_too() {
        let of = |minutes: &[u8]| worst(minutes.iter().map(|bad| *bad == 1));
        assert_eq!(of(&[0, 0, 0]), None);
        let found = |minutes, until_minute, last_bad_minute| Some(Worst { minutes, until_minute, last_bad_minute });
        assert_eq!(of(&[1, 1, 0, 1]), found(2, 2, 4));
        assert_eq!(of(&[1, 0, 1, 1, 1]), found(3, 5, 5));
        assert_eq!(of(&[0, 1, 0, 1, 0]), found(1, 2, 4));
    }

    #[test]
    fn losses_belong_to_the_second_in_which_a_request_was_sent() {
        let sent = Sent { sent: vec![10, 10, 10], served: vec![10, 4, 0] };
        assert_eq!((sent.within(0..3), sent.within(1..2), sent.within(2..9)), ((30, 16), (10, 6), (0, 0)));
        assert!((percent(6, 10) - 60.0).abs() < 1e-9 && percent(1, 0).abs() < 1e-9);
    }
}
