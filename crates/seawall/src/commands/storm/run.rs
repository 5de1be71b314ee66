//! One live run: servers, something to go through, clients, and what came of it.

use super::row::Row;
use super::target::{self, Target};
use super::watch::Watch;
use super::{Storm, StormError, fleet};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use seawall_lab::fleet::FleetCounts;
use seawall_lab::load::{self, Arrivals, Client, Ending, Limit, LoadOptions, Mix, Progress, Report};
use seawall_model::profile::Profile;
use seawall_sim::storms::{Cell, Figures, Plan, Router, Seen};
use seawall_sim::{Nanos, SECOND, Spread};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::time::Instant;

/// Calls at once: all of a run, so that every request is sent.
const MOST_IN_FLIGHT: usize = 1_000_000;
/// Parts of the mix of clients.
const PARTS: f64 = 10_000.0;
/// Where a balancer expects the servers, unless it is told.
const UPSTREAMS: ([u8; 4], u16) = ([127, 0, 0, 1], 9101);
const FREE: ([u8; 4], u16) = ([127, 0, 0, 1], 0);

/// One run that is to be made.
#[derive(Clone, Copy)]
pub(super) struct Job<'a> {
    pub(super) cell: Cell,
    pub(super) storm: &'a Storm,
}

impl Job<'_> {
    /// What the storm goes through, for people.
    pub(super) fn name(&self) -> &str {
        let default = if self.storm.target.is_some() { "target" } else { "seawall" };
        self.storm.name.as_deref().unwrap_or(default)
    }
}

/// What is known of the calls of a run.
#[derive(Debug, Default)]
struct Calls {
    /// When they should have been sent.
    sent: Vec<Nanos>,
    /// When the good ones were answered.
    answered: Vec<Nanos>,
    took: Spread,
    outcomes: BTreeMap<String, u64>,
}

/// Runs one storm.
pub(super) async fn run(job: Job<'_>) -> Result<Row, StormError> {
    let Job { cell, storm } = job;
    let plan = Plan::of(cell).map_err(StormError::Failed)?;
    let default = if storm.target.is_some() { UPSTREAMS } else { FREE };
    let listen = storm.upstreams.unwrap_or_else(|| SocketAddr::from(default));
    let servers = fleet::of(cell, &plan, listen, storm.seed).await.map_err(StormError::Failed)?;
    let mut target = Target::of(storm, &servers).await?;
    target.ready(storm, &servers).await?;
    servers.reset_counters();
    let (bar, mut calls, mut watch) = (bar(storm.requests), Calls::default(), Watch::default());
    let options = options(job, &plan, &target.url)?;
    let start = Instant::now();
    let report = tokio::select! {
        report = load::run_each(
            options,
            std::future::pending(),
            |progress| show(&bar, job, &plan, progress),
            |ended| calls.add(ended),
        ) => report.map_err(|error| StormError::Usage(error.to_string())),
        problem = watch.follow((cell, &plan), &servers, &mut target, start) => Err(StormError::Failed(problem)),
    };
    bar.finish_and_clear();
    let report = report?;
    if calls.answered.is_empty() {
        return Err(StormError::Failed(format!(
            "not one request of the storm was answered in time through {}, not even before the servers were slow: the \
             balancer hangs; see its log, start it again and repeat",
            target.url
        )));
    }
    let counts = servers.counts();
    drop(target);
    servers.shutdown().await;
    let simulated = simulated(job).await?;
    Ok(row(job, &plan, calls, (watch, counts, &report), simulated))
}

/// The load of the plan's clients.
fn options(job: Job<'_>, plan: &Plan, url: &str) -> Result<LoadOptions, StormError> {
    let mut options = target::options(url, job.storm);
    let populations = &plan.scenario.population;
    let all: f64 = populations.iter().map(|clients| clients.rate_per_second).sum();
    let profile = |clients: &seawall_cases::scenario::Population| {
        let name = clients.retry.profile.as_deref().unwrap_or("none");
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part of ten thousand")]
        let parts = (clients.rate_per_second / all * PARTS).round() as u64;
        (name.to_owned(), parts)
    };
    let router = plan.scenario.router.first().map_or("", |router| router.name.as_str());
    let entries: Vec<String> = populations.iter().map(profile).map(|(name, parts)| format!("{name}:{parts}")).collect();
    let mix: Result<Mix<Client>, load::LoadError> = entries.join(",").parse();
    options.profiles = mix.map_err(|error| StormError::Usage(error.to_string()))?;
    let behind_gateway = populations.iter().filter(|clients| clients.to != router);
    options.behind_gateway =
        behind_gateway.filter_map(|clients| Profile::by_name(&profile(clients).0)).map(Client).collect();
    let limits = populations.iter().filter_map(|clients| clients.attempt_timeout);
    let limits = limits.chain(plan.scenario.layer.iter().filter_map(|layer| layer.attempt_timeout));
    options.attempt_timeout = limits.map(|limit| Duration::from_nanos(limit.nanos)).next();
    options.rate_per_second = all;
    options.arrivals = Arrivals::Poisson;
    options.limit = Limit::Count(job.storm.requests.into());
    options.patience = Duration::from_nanos(plan.patience);
    options.max_in_flight = MOST_IN_FLIGHT;
    Ok(options)
}

impl Calls {
    fn add(&mut self, ended: load::EndedCall<'_>) {
        let sent = nanos(ended.scheduled);
        self.sent.push(sent);
        let name = match ended.ending {
            Ending::Success => {
                self.answered.push(sent + nanos(ended.latency));
                self.took.add(nanos(ended.latency));
                "answered in time".to_owned()
            }
            Ending::Failure { status: Some(status), .. } => format!("gave up after {status}"),
            Ending::Failure { kind: load::FailureKind::Patience, .. } => "patience over".to_owned(),
            Ending::Failure { kind, .. } => format!("gave up after {}", load::name_of(kind)),
            Ending::Cancelled => "cancelled".to_owned(),
        };
        *self.outcomes.entry(name).or_default() += 1;
    }
}

fn nanos(duration: Duration) -> Nanos {
    Nanos::try_from(duration.as_nanos()).unwrap_or(Nanos::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "counts of a run stay far below 2^53")]
const fn number(count: u64) -> f64 {
    count as f64
}

/// The same storm through Seawall in the simulator; of other balancers there is no model.
async fn simulated(job: Job<'_>) -> Result<Option<Figures>, StormError> {
    let Job { cell, storm } = job;
    if storm.target.is_some() {
        return Ok(None);
    }
    let seed = storm.seed;
    let ran = tokio::task::spawn_blocking(move || cell.run(Router::default(), seed)).await;
    let ran = ran.map_err(|error| StormError::Failed(format!("the simulator failed: {error}")))?;
    ran.map(|outcome| Some(outcome.figures)).map_err(StormError::Failed)
}

fn row(
    job: Job<'_>,
    plan: &Plan,
    mut calls: Calls,
    (watch, counts, report): (Watch, FleetCounts, &Report),
    simulated: Option<Figures>,
) -> Row {
    calls.sent.sort_unstable();
    let mut done = vec![0.0; usize::try_from(plan.end / SECOND).unwrap_or(0) + 1];
    for second in calls.answered.iter().map(|at| usize::try_from(at / SECOND).unwrap_or(usize::MAX)) {
        if let Some(count) = done.get_mut(second) {
            *count += 1.0;
        }
    }
    let figures = plan.judge(Seen {
        requests: calls.sent,
        good: number(calls.answered.len() as u64),
        done,
        worked: Vec::new(),
        running: watch.running,
        upstream: number(counts.requests),
        most_upstream: number(counts.most),
        attempts: number(report.attempts),
        took: calls.took,
    });
    Row {
        name: job.name().to_owned(),
        cell: job.cell.to_string(),
        storm: job.cell.storm.to_string(),
        load: job.cell.load.part(),
        seed: job.storm.seed,
        figures,
        outcomes: calls.outcomes,
        server_answers: counts.by_status,
        peak_memory_bytes: watch.peak_memory_bytes,
        late_p99_ms: report.scheduler_lag.p99_ms,
        simulated,
    }
}

/// A bar on standard error; nothing at all where that is no terminal.
fn bar(requests: u32) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(requests.into()), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{bar:24} {pos} of {len} requests {elapsed:>4}  {wide_msg}");
    bar.with_style(style.expect("the template is valid"))
}

fn show(bar: &ProgressBar, job: Job<'_>, plan: &Plan, progress: &Progress) {
    let now = nanos(progress.elapsed);
    let phase = match plan.troubles.first() {
        _ if progress.arrivals >= u64::from(job.storm.requests) => "the last answers",
        Some((from, _)) if now < *from => "all is well",
        Some((_, to)) if now < *to => "brown-out",
        _ => "after the brown-out",
    };
    let Cell { storm, load, .. } = job.cell;
    let ended = progress.succeeded + progress.failed;
    let good = (100 * progress.succeeded).checked_div(ended).unwrap_or(100);
    bar.set_position(progress.arrivals);
    bar.set_message(format!(
        "storm {storm} at {load} through {}: {phase}, {} under way, {good}% answered in time",
        job.name(),
        progress.in_flight
    ));
}
