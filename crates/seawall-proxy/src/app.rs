//! What every part of the data plane shares, and the guard that ends each request exactly once.

use crate::access_log::AccessLog;
use crate::bytes_budget::BytesBudget;
use crate::clock::Clock;
use crate::driver::Driver;
use crate::metrics::{Metrics, Readings};
use crate::record::{Finished, Record};
use crate::server::Connections;
use crate::upstream::Upstream;
use seawall_config::Config;
use seawall_core::classify::AttemptEnd;
use seawall_core::engine::{Input, Output, Respond};
use seawall_core::id::RequestId;
use seawall_core::outcome::Outcome;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The shared state of the process.
#[derive(Debug)]
pub struct App {
    /// The checked configuration.
    pub config: Config,
    /// The engine.
    pub driver: Arc<Driver>,
    /// How each deployment is reached; the index is the deployment's id.
    pub upstreams: Vec<Arc<Upstream>>,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// One line a request.
    pub access_log: AccessLog,
    /// Bytes of bodies held.
    pub bytes: Arc<BytesBudget>,
    /// Connections of clients.
    pub connections: Connections,
    /// The process goes away: nothing new is taken.
    pub draining: CancellationToken,
    /// The drain limit is over: what still runs is cut, with an error event.
    pub cut: CancellationToken,
}

impl App {
    /// The clock of the process.
    pub fn clock(&self) -> Clock {
        self.driver.clock
    }

    /// What `/metrics` reads off.
    pub fn readings(&self) -> Readings {
        Readings {
            pools: self.driver.view(),
            connections: self.connections.open(),
            buffered_bytes: self.bytes.used(),
            dropped_lines: self.access_log.dropped(),
        }
    }

    /// Writes the line of a request and counts it. Each request comes through here exactly once.
    pub fn finish(&self, record: Record, outcome: Outcome) {
        let finished = Finished { record, outcome, ended: self.clock().now() };
        self.metrics.finished(&finished);
        self.access_log.write(finished);
    }
}

/// A request from its head to its one outcome. Dropped before its end, it means that the client left.
#[derive(Debug)]
pub struct RequestGuard {
    /// The shared state.
    pub app: Arc<App>,
    /// The engine's id.
    pub request: RequestId,
    record: Option<Box<Record>>,
    /// Whether the engine knows it.
    admitted: bool,
}

impl RequestGuard {
    /// A guard for a request whose head was just read.
    pub fn new(app: Arc<App>, record: Record) -> Self {
        let request = app.driver.next_request();
        Self { app, request, record: Some(Box::new(record)), admitted: false }
    }

    /// The record, to add what becomes known. A request that has ended has none.
    pub fn record(&mut self) -> &mut Record {
        self.record.as_mut().expect("the record is there until the request ends, and the guard is consumed then")
    }

    /// The engine knows this request from here on.
    pub fn admitted(&mut self) {
        self.admitted = true;
    }

    /// Ends the request by a refusal that is none of the engine's. Where the engine knows it, it is told that it is over.
    pub fn refused(mut self, outcome: Outcome, status: u16) {
        self.leave();
        self.record().status = status;
        self.close(outcome);
    }

    /// Ends the request as the engine said.
    pub fn responded(mut self, respond: &Respond, status: u16) {
        self.take_over(respond);
        self.record().status = status;
        self.close(respond.outcome);
    }

    /// Tells the engine how the last attempt ended after an answer had begun, and ends the request as it says.
    pub fn attempt_ended(mut self, end: AttemptEnd) {
        let output = self.app.driver.tell(self.request, Input::AttemptEnded(self.request, end));
        self.count_attempt(end);
        if let Some(Output::Respond(respond)) = output {
            self.take_over(&respond);
            self.close(respond.outcome);
        }
    }

    /// Counts an ended attempt in the metrics.
    pub fn count_attempt(&mut self, end: AttemptEnd) {
        if let Some(deployment) = self.record().deployment {
            self.app.metrics.attempt(deployment, end);
        }
    }

    /// Tells the engine that nobody waits for this request any more.
    fn leave(&mut self) {
        if self.admitted
            && let Some(Output::Respond(respond)) = self.app.driver.tell(self.request, Input::ClientGone(self.request))
        {
            if respond.attempts > 0 {
                self.count_attempt(AttemptEnd::ClientGone);
            }
            self.take_over(&respond);
        }
    }

    fn take_over(&mut self, respond: &Respond) {
        let record = self.record();
        record.attempts = respond.attempts;
        record.deployment = respond.deployment.or(record.deployment);
        record.queued = respond.queued;
        record.observed = respond.observed;
    }

    fn close(&mut self, outcome: Outcome) {
        if let Some(record) = self.record.take() {
            self.app.finish(*record, outcome);
        }
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        if self.record.is_none() {
            return;
        }
        self.leave();
        self.close(Outcome::ClientGone);
    }
}
