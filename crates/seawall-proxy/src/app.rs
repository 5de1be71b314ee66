//! What every part of the data plane shares, and the guard that ends each request exactly once.

use crate::access_log::AccessLog;
use crate::bytes_budget::BytesBudget;
use crate::clock::Clock;
use crate::driver::Driver;
use crate::flight::tally::Tally;
use crate::flight::{Flight, Head, Reader};
use crate::metrics::{Metrics, Readings};
use crate::record::{Finished, Record};
use crate::server::Connections;
use crate::upstream::Upstream;
use seawall_config::Config;
use seawall_core::engine::{Arrival, Input, Respond};
use seawall_core::id::{DeploymentId, RequestId};
use seawall_core::outcome::Outcome;
use seawall_wire::fingerprint::FingerprintKey;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Poll, ready};
use tokio::sync::oneshot;
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
    /// The secret under which requests are compared.
    pub fingerprint_key: FingerprintKey,
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
            settled: self.driver.settled(),
            flights: self.driver.flights(),
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
    /// Where the engine's word on it comes; `None`: the engine does not know it.
    told: Option<oneshot::Receiver<Respond>>,
    /// The engine's word, where it has come before the answer was told.
    respond: Option<Respond>,
    /// Its place in an answer. It goes last: who leaves is told to the engine first, which says what becomes of the
    /// rest.
    reader: Option<Reader>,
}

impl RequestGuard {
    /// A guard for a request whose head was just read.
    pub fn new(app: Arc<App>, record: Record) -> Self {
        let request = app.driver.next_request();
        Self { app, request, record: Some(Box::new(record)), told: None, respond: None, reader: None }
    }

    /// The record, to add what becomes known. A request that has ended has none.
    pub fn record(&mut self) -> &mut Record {
        self.record.as_mut().expect("the record is there until the request ends, and the guard is consumed then")
    }

    /// The model that was tried last, where it is not the one that was asked for.
    pub fn fallback(&self) -> Option<&str> {
        self.record.as_ref()?.fallback(self.app.config.core())
    }

    /// As [`RequestGuard::fallback`], where this deployment was tried last; `None`: none was.
    pub fn fallback_at(&self, deployment: Option<DeploymentId>) -> Option<&str> {
        self.record.as_ref()?.fallback_at(deployment, self.app.config.core())
    }

    /// Its place in an answer.
    pub const fn reader(&self) -> Option<&Reader> {
        self.reader.as_ref()
    }

    /// What the answer has cost, where this client has all of it.
    pub fn has_all(&self) -> Option<Tally> {
        self.reader.as_ref()?.has_all()
    }

    /// Tells the engine of this request. It reads the answer of its own flight from here on, or that of the one it
    /// joins.
    pub fn arrive(&mut self, arrival: Arrival, flight: Arc<Flight>) {
        let arrived = self.app.driver.arrive(arrival, &flight);
        self.told = Some(arrived.told);
        self.record().joined = arrived.joined.as_ref().map(|joined| joined.name);
        let flight = arrived.joined.unwrap_or(flight);
        self.reader = Some(Reader::new(flight, Arc::clone(&self.app)));
    }

    /// Waits for the answer to begin. The error is the engine's refusal; `None` there: it has lost the request.
    pub async fn begins(&mut self) -> Result<Arc<Head>, Option<Respond>> {
        let (Some(reader), Some(told)) = (&self.reader, &mut self.told) else { return Err(None) };
        let (head, respond) = std::future::poll_fn(|context| {
            if let Poll::Ready(Some(head)) = reader.poll_head(context) {
                return Poll::Ready((Some(head), None));
            }
            let respond = ready!(Pin::new(&mut *told).poll(context)).ok();
            // Between the two the answer may have come, and ended.
            let head = match reader.poll_head(context) {
                Poll::Ready(head) => head,
                Poll::Pending => None,
            };
            Poll::Ready((head, respond))
        })
        .await;
        self.respond = respond;
        head.ok_or(respond)
    }

    /// Ends the request by a refusal that is none of the engine's. Where the engine knows it, it is told that it is
    /// over.
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

    /// Ends a request whose answer has been told, as the engine said; as `outcome`, where the host knows better.
    pub fn answered(mut self, outcome: Option<Outcome>) {
        if self.word().is_none() {
            self.leave();
        }
        let respond = self.word();
        if let Some(respond) = &respond {
            self.take_over(respond);
        }
        self.close(outcome.or(respond.map(|respond| respond.outcome)).unwrap_or(Outcome::ClientGone));
    }

    /// The engine's word on this request, where it has come.
    fn word(&mut self) -> Option<Respond> {
        if self.respond.is_none() {
            self.respond = self.told.as_mut().and_then(|told| told.try_recv().ok());
        }
        self.respond
    }

    /// Tells the engine that nobody waits for this request any more.
    fn leave(&mut self) {
        if self.told.is_none() {
            return;
        }
        if self.word().is_none() {
            let so_far = self.reader.as_ref().and_then(Reader::so_far);
            let (tally, told) = so_far.map_or((None, None), |(tally, told)| (Some(tally), told));
            let record = self.record();
            record.tally = tally.unwrap_or(record.tally);
            let gone = Input::ClientGone(self.request);
            self.app.driver.tell_all(told.into_iter().chain([gone]));
        }
        if let Some(respond) = self.word() {
            self.take_over(&respond);
        }
    }

    fn take_over(&mut self, respond: &Respond) {
        let record = self.record();
        record.attempts = respond.attempts;
        record.deployment = respond.deployment.or(record.deployment);
        record.queued = respond.queued;
        record.observed = respond.observed;
        record.cost = respond.cost;
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
