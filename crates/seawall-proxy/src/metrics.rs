//! Counters and gauges in Prometheus' text form.
//!
//! Labels are bounded by the configuration: tenants, models, deployments and the closed list of outcomes. A metric of
//! given labels is looked up by ids, and by its labels' text only when it is used for the first time.

use crate::driver::FlightCounts;
use crate::flight::mail::Made;
use crate::record::Finished;
use foldhash::fast::RandomState;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use seawall_core::classify::AttemptEnd;
use seawall_core::engine::{PoolView, Settled};
use seawall_core::id::DeploymentId;
use seawall_core::id::{PoolId, TenantId};
use seawall_core::outcome::{Cause, Outcome};
use seawall_core::permit::Payment;
use seawall_core::settings::Settings;
use seawall_wire::usage::Usage;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// The verdict on a deployment, beside those on requests.
const WOULD_EJECT: &str = "eject";

type Labels = Vec<(&'static str, String)>;
type Latency = Family<Labels, Histogram, fn() -> Histogram>;

/// Handles of metrics by what they count.
#[derive(Debug)]
struct Handles<K, M>(RwLock<HashMap<K, M, RandomState>>);

impl<K: Copy + Eq + Hash, M: Clone> Handles<K, M> {
    fn new() -> Self {
        Self(RwLock::default())
    }

    /// The handle of `key`; `make` finds it by its labels the first time.
    fn get(&self, key: K, make: impl FnOnce() -> M) -> M {
        if let Some(known) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return known.clone();
        }
        self.0.write().unwrap_or_else(PoisonError::into_inner).entry(key).or_insert_with(make).clone()
    }
}

/// What is counted and timed for one kind of ending.
#[derive(Clone, Debug)]
struct Ended {
    requests: Counter,
    joined: Counter,
    duration: Histogram,
    first_byte: Histogram,
}

/// What an answer has cost.
#[derive(Clone, Debug)]
struct Tokens {
    input: Counter,
    output: Counter,
}

type EndedKey = (Option<PoolId>, Option<TenantId>, Outcome);

/// Every metric of the process.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    settings: Arc<Settings>,
    ended: Handles<EndedKey, Ended>,
    ended_tokens: Handles<(PoolId, TenantId), Tokens>,
    ended_attempts: Handles<(DeploymentId, &'static str, Payment), Counter>,
    verdicts: Handles<(PoolId, &'static str), Counter>,
    requests: Family<Labels, Counter>,
    attempts: Family<Labels, Counter>,
    observed: Family<Labels, Counter>,
    tokens: Family<Labels, Counter>,
    work: Family<Labels, Counter<u64, AtomicU64>>,
    work_waiting: Family<Labels, Gauge>,
    work_in_flight: Family<Labels, Gauge>,
    expected_output: Family<Labels, Gauge>,
    output_weight: Family<Labels, Gauge<f64, AtomicU64>>,
    joined: Family<Labels, Counter>,
    flights: Gauge,
    flights_kept: Gauge,
    duration: Latency,
    first_byte: Latency,
    waiting: Family<Labels, Gauge>,
    in_flight: Family<Labels, Gauge>,
    healthy: Family<Labels, Gauge>,
    connections: Gauge,
    buffered_bytes: Gauge,
    dropped_lines: Counter<u64, AtomicU64>,
}

/// What is read off the process when it is asked for its metrics.
#[derive(Debug)]
pub struct Readings {
    /// The engine's pools.
    pub pools: Vec<PoolView>,
    /// What is settled.
    pub settled: Vec<Settled>,
    /// Flights.
    pub flights: FlightCounts,
    /// Connections of clients.
    pub connections: usize,
    /// Bytes of bodies and kept answers held.
    pub buffered_bytes: u64,
    /// Access log lines dropped so far.
    pub dropped_lines: u64,
}

fn latency() -> Histogram {
    // From a refusal in under a millisecond to an answer of ten minutes.
    Histogram::new([0.001, 0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0])
}

impl Metrics {
    /// All metrics at zero.
    pub fn new(settings: Arc<Settings>) -> Self {
        let make: fn() -> Histogram = latency;
        let mut metrics = Self {
            registry: Registry::with_prefix("seawall"),
            settings,
            ended: Handles::new(),
            ended_tokens: Handles::new(),
            ended_attempts: Handles::new(),
            verdicts: Handles::new(),
            requests: Family::default(),
            attempts: Family::default(),
            observed: Family::default(),
            tokens: Family::default(),
            work: Family::default(),
            work_waiting: Family::default(),
            work_in_flight: Family::default(),
            expected_output: Family::default(),
            output_weight: Family::default(),
            joined: Family::default(),
            flights: Gauge::default(),
            flights_kept: Gauge::default(),
            duration: Family::new_with_constructor(make),
            first_byte: Family::new_with_constructor(make),
            waiting: Family::default(),
            in_flight: Family::default(),
            healthy: Family::default(),
            connections: Gauge::default(),
            buffered_bytes: Gauge::default(),
            dropped_lines: Counter::default(),
        };
        metrics.register();
        metrics
    }

    fn register(&mut self) {
        let r = &mut self.registry;
        r.register(
            "requests",
            "Requests by their one outcome; cause tells ours from the caller's",
            self.requests.clone(),
        );
        r.register("attempts", "Attempts at upstreams by their end and by what paid for them", self.attempts.clone());
        r.register("observed", "What enforcing would have done to what was only observed", self.observed.clone());
        r.register("tokens", "Tokens as the upstreams reported them", self.tokens.clone());
        r.register("work_units", "Work that is settled; estimated tells what no upstream has told", self.work.clone());
        r.register("work_waiting", "Work units that wait for a deployment, by estimate", self.work_waiting.clone());
        let in_flight = self.work_in_flight.clone();
        r.register("work_in_flight", "Work units in flight at a deployment, by estimate", in_flight);
        let expected = self.expected_output.clone();
        r.register("expected_output_tokens", "Tokens that an answer of a model is thought to need", expected);
        let weight = self.output_weight.clone();
        r.register("output_token_weight", "Work units of an output token; an input token is one", weight);
        r.register("joined", "Requests that were answered by the work of another one", self.joined.clone());
        r.register("flights", "Distinct requests that wait or run", self.flights.clone());
        let kept = self.flights_kept.clone();
        r.register("flights_kept", "Complete answers that are kept for a client to come back", kept);
        let (whole, first) = (self.duration.clone(), self.first_byte.clone());
        r.register_with_unit("request_duration", "From the request's head to its end", Unit::Seconds, whole);
        r.register_with_unit("first_byte", "From the request's head to the answer's first byte", Unit::Seconds, first);
        r.register("waiting", "Requests that wait for a deployment", self.waiting.clone());
        r.register("in_flight", "Attempts in flight at a deployment", self.in_flight.clone());
        r.register("deployment_healthy", "1 while a deployment is healthy, and so in rotation", self.healthy.clone());
        r.register("connections", "Connections of clients", self.connections.clone());
        r.register(
            "buffered_bytes",
            "Bytes of request bodies, and of answers kept for others, held",
            self.buffered_bytes.clone(),
        );
        r.register("access_log_dropped", "Access log lines dropped by a slow sink", self.dropped_lines.clone());
    }

    /// Counts a finished request.
    pub fn finished(&self, finished: &Finished) {
        let Finished { record, outcome, ended } = finished;
        let key = (record.pool, record.tenant, *outcome);
        let handles = self.ended.get(key, || self.ended_handles(key));
        handles.requests.inc();
        if record.joined.is_some() {
            handles.joined.inc();
        }
        if let (Some(pool), Some(verdict)) = (record.pool, record.observed) {
            self.verdict(pool, verdict.label());
        }
        handles.duration.observe(ended.since(record.arrived).as_secs_f64());
        if let Some(first) = record.first_byte {
            handles.first_byte.observe(first.since(record.arrived).as_secs_f64());
        }
    }

    fn ended_handles(&self, (pool, tenant, outcome): EndedKey) -> Ended {
        let tenant = tenant.map_or("", |id| self.settings.tenants[id.index()].name.as_str());
        let model = pool.map_or("", |id| self.settings.pools[id.index()].name.as_str());
        let of_model = vec![("model", model.to_owned())];
        let of_tenant = [("model", model.to_owned()), ("tenant", tenant.to_owned())];
        let with = |more: &[(&'static str, &str)]| -> Labels {
            let more = more.iter().map(|(name, value)| (*name, (*value).to_owned()));
            of_tenant.iter().cloned().chain(more).collect()
        };
        let counted = with(&[("outcome", outcome.label()), ("cause", cause(outcome))]);
        Ended {
            requests: self.requests.get_or_create_owned(&counted),
            joined: self.joined.get_or_create_owned(&of_model),
            duration: self.duration.get_or_create_owned(&of_model),
            first_byte: self.first_byte.get_or_create_owned(&of_model),
        }
    }

    /// Counts what an answer has cost, once however many clients got it.
    pub fn tokens(&self, pool: PoolId, tenant: TenantId, usage: Usage) {
        let of = |kind: &str| {
            let model = self.settings.pools[pool.index()].name.clone();
            let tenant = self.settings.tenants[tenant.index()].name.clone();
            let labels = vec![("model", model), ("tenant", tenant), ("kind", kind.to_owned())];
            self.tokens.get_or_create_owned(&labels)
        };
        let handles = self.ended_tokens.get((pool, tenant), || Tokens { input: of("input"), output: of("output") });
        handles.input.inc_by(usage.input_tokens);
        handles.output.inc_by(usage.output_tokens);
    }

    /// Counts a deployment that would have been ejected.
    pub fn would_eject(&self, deployment: DeploymentId) {
        self.verdict(self.settings.deployments[deployment.index()].pool, WOULD_EJECT);
    }

    fn verdict(&self, pool: PoolId, verdict: &'static str) {
        let make = || {
            let model = self.settings.pools[pool.index()].name.clone();
            self.observed.get_or_create_owned(&vec![("model", model), ("verdict", verdict.to_owned())])
        };
        self.verdicts.get((pool, verdict), make).inc();
    }

    /// Counts an ended attempt.
    pub fn attempt(&self, attempt: Made, end: AttemptEnd) {
        let Made { deployment, payment, .. } = attempt;
        let make = || {
            let name = self.settings.deployments[deployment.index()].name.clone();
            let payment = ("payment", payment.label().to_owned());
            let labels = vec![("deployment", name), ("end", end.label().to_owned()), payment];
            self.attempts.get_or_create_owned(&labels)
        };
        self.ended_attempts.get((deployment, end.label(), payment), make).inc();
    }

    /// Takes over what is settled for one model and tenant.
    fn work_units(&self, settled: &Settled) {
        let Settled { pool, tenant, work, .. } = settled;
        for (estimated, work) in [("false", work.counted), ("true", work.estimated)] {
            let model = ("model", self.settings.pools[pool.index()].name.clone());
            let tenant = ("tenant", self.settings.tenants[tenant.index()].name.clone());
            let labels = vec![model, tenant, ("estimated", estimated.to_owned())];
            self.work.get_or_create_owned(&labels).inner().store(work.units(), Ordering::Relaxed);
        }
    }

    /// The text of `/metrics`.
    pub fn render(&self, readings: &Readings) -> String {
        for pool in &readings.pools {
            let model = self.settings.pools[pool.pool.index()].name.clone();
            let of_model = vec![("model", model)];
            self.waiting.get_or_create_owned(&of_model).set(gauge(pool.waiting as u64));
            self.work_waiting.get_or_create_owned(&of_model).set(gauge(pool.work_waiting.units()));
            self.expected_output.get_or_create_owned(&of_model).set(gauge(pool.expected_output_tokens));
            self.output_weight.get_or_create_owned(&of_model).set(weight(pool));
            for deployment in &pool.deployments {
                let name = self.settings.deployments[deployment.deployment.index()].name.clone();
                let labels = vec![("deployment", name)];
                self.in_flight.get_or_create_owned(&labels).set(gauge(u64::from(deployment.in_flight)));
                self.work_in_flight.get_or_create_owned(&labels).set(gauge(deployment.work_in_flight.units()));
                self.healthy.get_or_create_owned(&labels).set(i64::from(deployment.health == "healthy"));
            }
        }
        readings.settled.iter().for_each(|settled| self.work_units(settled));
        self.flights.set(gauge(readings.flights.live as u64));
        self.flights_kept.set(gauge(readings.flights.kept as u64));
        self.connections.set(gauge(readings.connections as u64));
        self.buffered_bytes.set(gauge(readings.buffered_bytes));
        self.dropped_lines.inner().store(readings.dropped_lines, Ordering::Relaxed);
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("writing into a string does not fail");
        text
    }
}

/// Work units of an output token.
pub fn weight(pool: &PoolView) -> f64 {
    f64::from(u32::try_from(pool.output_thousandths).unwrap_or(u32::MAX)) / 1e3
}

fn cause(outcome: Outcome) -> &'static str {
    match outcome.cause() {
        Cause::None => "none",
        Cause::Caller => "caller",
        Cause::Service => "service",
        Cause::Upstream => "upstream",
    }
}

fn gauge(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
