//! Asks servers that tell how much they have to do, once a second, for as long as the process serves.
//!
//! It costs them a small page, and us nothing but its advice where they do not answer: time and bytes are bounded, and
//! who says nothing of use is warned about once.

use super::Upstream;
use super::attempt::stated_keep_alive;
use crate::app::App;
use http::header::{ACCEPT, HOST};
use http::{HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use seawall_core::capacity::ServerLoad;
use seawall_core::engine::Input;
use seawall_core::id::DeploymentId;
use seawall_core::random::Random;
use seawall_wire::engine_metrics::server_load;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// From one answer to the next question, give or take a tenth, so that many instances do not ask together.
const INTERVAL: Duration = Duration::from_secs(1);
/// How long the page may take.
const TIMEOUT: Duration = Duration::from_secs(1);
/// The longest page that is read. Those of servers with many histograms have about 200 KiB.
const LARGEST_BYTES: usize = 2 << 20;
/// What is told now and then is told: a server that says nothing is one that fails so often in a row.
const FAILURES: u32 = 3;

/// Why a page says nothing.
#[derive(Debug, thiserror::Error)]
enum PollError {
    #[error("no answer within {TIMEOUT:?}")]
    TimedOut,
    #[error(transparent)]
    Connect(#[from] super::pool::ConnectError),
    #[error(transparent)]
    Http(#[from] hyper::Error),
    #[error("`metrics_path` does not form an address: {0}")]
    Path(#[from] http::Error),
    #[error("it answers with {0}")]
    Status(StatusCode),
    #[error("the page is broken or longer than {LARGEST_BYTES} bytes: {0}")]
    Body(Box<dyn std::error::Error + Send + Sync>),
    #[error("the page tells neither vLLM's nor SGLang's running and waiting requests")]
    OtherPage,
}

/// Asks every deployment that has such a page, until `stop`.
pub fn spawn(app: &Arc<App>, seed: u64, stop: &CancellationToken) {
    for (index, upstream) in app.upstreams.iter().enumerate() {
        if let Some(path) = upstream.config.metrics_path.clone() {
            let deployment = DeploymentId::from_index(index);
            let random = Random::new(seed ^ index as u64);
            let asks = ask(Arc::clone(app), Arc::clone(upstream), path, deployment, random);
            let stop = stop.clone();
            tokio::spawn(async move { stop.run_until_cancelled(asks).await });
        }
    }
}

async fn ask(app: Arc<App>, upstream: Arc<Upstream>, path: String, deployment: DeploymentId, mut random: Random) {
    let name = &app.config.core().deployments[deployment.index()].name;
    let mut failures = 0_u32;
    loop {
        tokio::time::sleep(random.span(INTERVAL * 9 / 10, INTERVAL * 11 / 10)).await;
        let asked = tokio::time::timeout(TIMEOUT, load(&upstream, &path)).await;
        match asked.unwrap_or(Err(PollError::TimedOut)) {
            Ok(load) => {
                if failures >= FAILURES {
                    tracing::info!(deployment = name, "tells again how much it has to do");
                }
                failures = 0;
                app.driver.tell(Input::ServerLoad(deployment, load));
            }
            Err(error) => {
                failures = failures.saturating_add(1);
                if failures == FAILURES {
                    tracing::warn!(
                        deployment = name, path, %error,
                        "does not tell how much it has to do, and is served without that: correct or remove its \
                         `metrics_path`; SGLang needs `--enable-metrics`"
                    );
                }
            }
        }
    }
}

async fn load(upstream: &Upstream, path: &str) -> Result<ServerLoad, PollError> {
    let request = Request::get(path)
        .header(HOST, upstream.host.clone())
        .header(ACCEPT, HeaderValue::from_static("text/plain"))
        .body(Full::default())?;
    let mut connection = upstream.connections.get(false, TIMEOUT).await?;
    let response = connection.sender().send_request(request).await?;
    let (head, body) = response.into_parts();
    if head.status != StatusCode::OK {
        return Err(PollError::Status(head.status));
    }
    let page = Limited::new(body, LARGEST_BYTES).collect().await.map_err(PollError::Body)?.to_bytes();
    upstream.connections.put(connection, stated_keep_alive(&head.headers));
    server_load(&page, upstream.config.model.as_deref()).ok_or(PollError::OtherPage)
}
