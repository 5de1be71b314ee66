//! A running data plane.

use super::client::{Client, Response};
use super::in_time;
use seawall_config::{CredentialSource, Overrides, SourceError};
use seawall_core::engine::DeploymentView;
use seawall_proxy::admin_token::AdminToken;
use seawall_proxy::app::App;
use seawall_proxy::run::{Drained, Running, start};
use seawall_proxy::upstream::credential::IdentityEnvironment;
use secrecy::SecretString;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// Gives for each environment variable its name in lower case, with `secret-` in front.
struct Names;

impl CredentialSource for Names {
    fn environment(&self, name: &str) -> Result<SecretString, SourceError> {
        Ok(SecretString::from(format!("secret-{}", name.to_lowercase())))
    }

    fn file(&self, _: &Path) -> Result<SecretString, SourceError> {
        Err(SourceError::Missing)
    }
}

/// The access log, in the plane's folder.
const LOG: &str = "access.log";
/// The data folder, in the plane's folder.
pub(crate) const DATA: &str = "data";

/// A config's text, part by part.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    text: String,
    tenants: bool,
    server: String,
}

impl Setup {
    /// Nothing yet but the listeners.
    pub(crate) fn new() -> Self {
        Self { text: String::new(), tenants: false, server: "drain_limit = \"1s\"\n".to_owned() }
    }

    /// The model `m` on these upstreams, named `u1`, `u2` and so on.
    pub(crate) fn m(addresses: &[SocketAddr]) -> Self {
        Self::new().model("m", "", addresses)
    }

    /// Lines for `[server]`; `drain_limit` is 1 s unless they say otherwise.
    pub(crate) fn server(mut self, lines: &str) -> Self {
        if lines.contains("drain_limit") {
            self.server.clear();
        }
        self.server.push_str(lines);
        self.server.push('\n');
        self
    }

    /// A model with these settings, and deployments with the next names.
    pub(crate) fn model(mut self, name: &str, settings: &str, addresses: &[SocketAddr]) -> Self {
        let _ = writeln!(self.text, "[[models]]\nname = \"{name}\"\n{settings}");
        for address in addresses {
            self = self.deployment(&format!("http://{address}"), "");
        }
        self
    }

    /// One more deployment of the last model, with the next name.
    pub(crate) fn deployment(mut self, url: &str, settings: &str) -> Self {
        let number = self.text.matches("[[models.deployments]]").count() + 1;
        let _ = writeln!(self.text, "[[models.deployments]]\nname = \"u{number}\"\nurl = \"{url}\"\n{settings}");
        self
    }

    /// A tenant with the key `secret-NAME`.
    pub(crate) fn tenant(mut self, name: &str, settings: &str) -> Self {
        self.tenants = true;
        let variable = name.to_uppercase();
        let _ = writeln!(self.text, "[[tenants]]\nname = \"{name}\"\nkeys = [{{ env = \"{variable}\" }}]\n{settings}");
        self
    }

    /// Starts it.
    pub(crate) async fn start(self) -> Plane {
        self.start_in(tempfile::tempdir().expect("a folder")).await
    }

    /// Starts it in a folder that something may be in already.
    pub(crate) async fn start_in(self, folder: TempDir) -> Plane {
        let text = format!(
            "[server]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\naccess_log = \"{}\"\n\
             data_dir = \"{}\"\nallow_anonymous = {}\n{}\n{}",
            folder.path().join(LOG).display(),
            folder.path().join(DATA).display(),
            !self.tenants,
            self.server,
            self.text
        );
        let config = seawall_config::parse(&text, "test.toml", &Names, &Overrides::default())
            .unwrap_or_else(|errors| panic!("{errors}"));
        let token = AdminToken::load_or_create(&folder.path().join("admin-token")).expect("a token");
        let running = start(config, token, IdentityEnvironment::default()).await.expect("it starts");
        let (address, admin, app) = (running.listen, running.admin, Arc::clone(running.app()));
        Plane { running, address, admin, app, folder }
    }
}

/// The data plane.
#[derive(Debug)]
pub(crate) struct Plane {
    running: Running,
    /// Where clients connect.
    pub(crate) address: SocketAddr,
    /// Where operators connect.
    pub(crate) admin: SocketAddr,
    /// Its state.
    pub(crate) app: Arc<App>,
    folder: TempDir,
}

impl Plane {
    /// A new connection.
    pub(crate) async fn client(&self) -> Client {
        Client::connect(self.address).await
    }

    /// Asks on a new connection.
    pub(crate) async fn ask(&self, request: impl AsRef<[u8]>) -> Response {
        let mut client = self.client().await;
        client.send(request).await;
        client.response().await
    }

    /// A deployment as it stands.
    pub(crate) fn deployment(&self, name: &str) -> DeploymentView {
        let named = |view: &DeploymentView| self.app.config.core().deployments[view.deployment.index()].name == name;
        let mut views = self.app.driver.view().into_iter().flat_map(|pool| pool.deployments);
        views.find(named).unwrap_or_else(|| panic!("no deployment {name}"))
    }

    /// Requests that wait, in all pools.
    pub(crate) fn waiting(&self) -> usize {
        self.app.driver.view().iter().map(|pool| pool.waiting).sum()
    }

    /// Attempts in flight, in all pools.
    pub(crate) fn in_flight(&self) -> u32 {
        self.app.driver.view().iter().flat_map(|pool| &pool.deployments).map(|view| view.in_flight).sum()
    }

    /// Requests that ended so.
    pub(crate) fn outcomes(&self, outcome: &str) -> u64 {
        self.metric("seawall_requests_total{", &[("outcome", outcome)])
    }

    /// Attempts at a deployment that ended so.
    pub(crate) fn attempts(&self, deployment: &str, end: &str) -> u64 {
        self.metric("seawall_attempts_total{", &[("deployment", deployment), ("end", end)])
    }

    /// The sum of the series that have these labels.
    pub(crate) fn metric(&self, start: &str, labels: &[(&str, &str)]) -> u64 {
        let text = self.app.metrics.render(&self.app.readings());
        let has = |line: &str| labels.iter().all(|(name, value)| line.contains(&format!("{name}=\"{value}\"")));
        let lines = text.lines().filter(|line| line.starts_with(start) && has(line));
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
    }

    /// The access log, once it has so many lines.
    pub(crate) async fn log(&self, lines: usize) -> String {
        let read = |plane: &Self| std::fs::read_to_string(plane.folder.path().join(LOG)).unwrap_or_default();
        self.until("the lines of the log", |plane| read(plane).lines().count() >= lines).await;
        read(self)
    }

    /// Where its files are.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Polls until `reached`, which real events make true.
    pub(crate) async fn until(&self, what: &str, reached: impl Fn(&Self) -> bool) {
        in_time(what, async {
            while !reached(self) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
    }

    /// Waits until nothing runs or waits.
    pub(crate) async fn idle(&self) {
        self.until("nothing in flight", |plane| plane.app.driver.live() == 0 && plane.in_flight() == 0).await;
        assert_eq!(self.waiting(), 0);
    }

    /// Stops it, once nothing is in flight.
    pub(crate) async fn stop(self) {
        self.idle().await;
        self.drain().await;
    }

    /// Drains it.
    pub(crate) async fn drain(self) -> Drained {
        self.drain_keeping().await.0
    }

    /// Drains it and gives its folder back.
    pub(crate) async fn drain_keeping(self) -> (Drained, TempDir) {
        let Self { running, folder, .. } = self;
        (in_time("drain", running.drain()).await, folder)
    }
}
