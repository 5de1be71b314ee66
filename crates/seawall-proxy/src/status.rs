//! The JSON of `/statusz`: the process as it stands. Nothing in it is secret.

use crate::app::App;
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
    deployments: Vec<Deployment<'a>>,
}

#[derive(Serialize)]
struct Deployment<'a> {
    name: &'a str,
    region: &'a str,
    health: &'static str,
    in_flight: u32,
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
            limit: view.limit,
            closed_for_ms: view.closed_for.as_millis(),
            share_percent: view.share_percent,
            first_byte_ms: view.latency.as_secs_f64() * 1e3,
            connections: app.upstreams[view.deployment.index()].connections.open(),
        }
    };
    let models = readings.pools.iter().map(|pool| {
        let known = &settings.pools[pool.pool.index()];
        Model {
            name: &known.name,
            policy: &known.policy,
            mode: known.mode.name(),
            waiting: pool.waiting,
            would_wait: pool.would_wait,
            deployments: pool.deployments.iter().map(deployment).collect(),
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
