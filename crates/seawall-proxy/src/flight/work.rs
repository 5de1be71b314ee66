//! The work of a flight until it has an answer: the attempts that the engine permits, one after the other.

use super::mail::{Made, Mail};
use crate::app::App;
use crate::clock::unix_time;
use crate::gate::Inference;
use crate::outgoing::outgoing;
use crate::upstream::Upstream;
use crate::upstream::attempt::{Answer, attempt};
use http::HeaderMap;
use http::request::Parts;
use seawall_core::engine::Input;
use seawall_core::id::{DeploymentId, RequestId};
use seawall_core::time::{Duration, Instant};
use std::sync::Arc;

/// An answer that begins.
#[derive(Debug)]
pub struct Begun {
    /// What has been read of it.
    pub answer: Answer,
    /// Whose it is.
    pub upstream: Arc<Upstream>,
    /// The deployment's id.
    pub deployment: DeploymentId,
    /// Attempts made.
    pub attempts: u32,
    /// The longest pause between two pieces.
    pub idle: Duration,
    /// When the caller's deadline ends it.
    pub deadline: Option<Instant>,
}

/// Makes the attempts; `None`: there is no answer, and the engine has said so to everybody who waits.
pub async fn work(
    app: Arc<App>,
    flight: RequestId,
    mail: Arc<Mail>,
    head: Parts,
    taken: Box<Inference>,
) -> Option<Begun> {
    loop {
        let dispatch = mail.next().await?;
        let made = Made::of(&dispatch);
        let (deployment, attempts) = (made.deployment, made.number);
        let (idle, deadline) = (dispatch.timeouts.idle, dispatch.deadline);
        let upstream = &app.upstreams[deployment.index()];
        let attempted = match outgoing(&head, &taken, upstream) {
            Ok(outgoing) => attempt(dispatch, upstream, outgoing, app.clock()).await,
            Err(incompatible) => Err(incompatible),
        };
        let failed = match attempted {
            Ok(answer) => {
                let upstream = Arc::clone(upstream);
                return Some(Begun { answer, upstream, deployment, attempts, idle, deadline });
            }
            Err(failed) => failed,
        };
        let end = failed.end;
        let allowance = failed.answered.as_ref().and_then(|answered| allowance(flight, attempts, &answered.1));
        app.metrics.attempt(made, end);
        // Whoever is told that it failed looks for the words at once.
        mail.failed(failed);
        app.driver.tell_all(allowance.into_iter().chain([Input::AttemptEnded(flight, attempts, end)]));
    }
}

/// What the head of an answer says of how much its upstream takes before its limits, where it says that.
pub fn allowance(flight: RequestId, attempts: u32, headers: &HeaderMap) -> Option<Input> {
    let allowance = seawall_wire::allowance::allowance(headers, unix_time());
    (!allowance.is_empty()).then_some(Input::Allowance(flight, attempts, allowance))
}
