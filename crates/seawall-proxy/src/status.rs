//! The JSON of `/statusz`: the process as it stands. Nothing in it is secret.

use crate::app::App;
use crate::metrics::weight;
use serde::Serialize;

#[derive(Serialize)]
struct Status<'a> {
    version: &'static str,
    draining: bool,
    requests: usize,
    flights: usize,
    flights_kept: usize,
    connections: usize,
    buffered_bytes: u64,
    buffered_bytes_limit: u64,
    access_log_dropped: u64,
    models: Vec<Model<'a>>,
}

#[derive(Serialize)]
struct Model<'a> {
    name: &'a str,
    policy: &'a str,
    mode: &'static str,
    waiting: usize,
    would_wait: usize,
    work_waiting: u64,
    work_in_flight: u64,
    expected_output_tokens: u64,
    output_token_weight: f64,
    deployments: Vec<Deployment<'a>>,
    tenants: Vec<Tenant<'a>>,
}

/// What a tenant's requests have cost at a model.
#[derive(Serialize)]
struct Tenant<'a> {
    name: &'a str,
    work_units: u64,
    work_units_estimated: u64,
    expected_output_tokens: u64,
}

#[derive(Serialize)]
struct Deployment<'a> {
    name: &'a str,
    region: &'a str,
    health: &'static str,
    in_flight: u32,
    work_in_flight: u64,
    limit: Option<u32>,
    closed_for_ms: u128,
    share_percent: u32,
    first_byte_ms: f64,
    connections: usize,
}

/// The text.
pub fn render(app: &App) -> String {
    let readings = app.readings();
    let settings = app.config.core();
    let deployment = |view: &seawall_core::engine::DeploymentView| {
        let known = &settings.deployments[view.deployment.index()];
        Deployment {
            name: &known.name,
            region: &known.region,
            health: view.health,
            in_flight: view.in_flight,
            work_in_flight: view.work_in_flight.units(),
            limit: view.limit,
            closed_for_ms: view.closed_for.as_millis(),
            share_percent: view.share_percent,
            first_byte_ms: view.latency.as_secs_f64() * 1e3,
            connections: app.upstreams[view.deployment.index()].connections.open(),
        }
    };
    let tenant = |settled: &seawall_core::engine::Settled| Tenant {
        name: &settings.tenants[settled.tenant.index()].name,
        work_units: settled.work.sum().units(),
        work_units_estimated: settled.work.estimated.units(),
        expected_output_tokens: settled.expected_output_tokens,
    };
    let models = readings.pools.iter().map(|pool| {
        let known = &settings.pools[pool.pool.index()];
        Model {
            name: &known.name,
            policy: &known.policy,
            mode: known.mode.name(),
            waiting: pool.waiting,
            would_wait: pool.would_wait,
            work_waiting: pool.work_waiting.units(),
            work_in_flight: pool.work_in_flight().units(),
            expected_output_tokens: pool.expected_output_tokens,
            output_token_weight: weight(pool),
            deployments: pool.deployments.iter().map(deployment).collect(),
            tenants: readings.settled.iter().filter(|settled| settled.pool == pool.pool).map(tenant).collect(),
        }
    });
    let status = Status {
        version: env!("CARGO_PKG_VERSION"),
        draining: app.draining.is_cancelled(),
        requests: app.driver.live(),
        flights: readings.flights.live,
        flights_kept: readings.flights.kept,
        connections: readings.connections,
        buffered_bytes: readings.buffered_bytes,
        buffered_bytes_limit: app.config.server().buffered_bytes,
        access_log_dropped: readings.dropped_lines,
        models: models.collect(),
    };
    serde_json::to_string_pretty(&status).expect("plain data has a JSON form") + "\n"
}
