//! What a storm goes through: a Seawall of its own, or a balancer that somebody has started.

use super::{Storm, StormError, memory};
use seawall_lab::fleet::FleetHandle;
use seawall_lab::load::{self, Limit, LoadOptions, Report};
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

/// How long a balancer may take until it passes a first request on.
const READY_WITHIN: Duration = Duration::from_secs(20);
/// One that refuses so many connections in a row is not there.
const REFUSED_PROBES: u32 = 10;
const BETWEEN_PROBES: Duration = Duration::from_millis(200);
const PROBE_PATIENCE: Duration = Duration::from_secs(5);
/// Lines of an own Seawall's log that are told when it ends by itself.
const LAST_LINES: usize = 5;
const MODEL: &str = "demo-chat";
/// Where an own Seawall finds the key of its clients.
const KEY_VARIABLE: &str = "SEAWALL_STORM_KEY";

/// Something that a storm goes through.
pub(super) struct Target {
    /// Its base URL.
    pub(super) url: String,
    /// Its process, where that is known.
    pub(super) process: Option<u32>,
    own: Option<Own>,
}

/// A Seawall that was started for one run; it is killed when dropped.
struct Own {
    child: Child,
    last_lines: Arc<Mutex<VecDeque<String>>>,
    _folder: TempDir,
}

impl Drop for Own {
    fn drop(&mut self) {
        // One that has ended already is only waited for.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Target {
    /// The balancer that the command line names, or a Seawall in front of these servers.
    pub(super) async fn of(storm: &Storm, fleet: &FleetHandle) -> Result<Self, StormError> {
        match &storm.target {
            None => own(storm, fleet).await.map_err(StormError::Failed),
            Some(url) => match storm.pid.filter(|process| !memory::is_there(*process)) {
                None => Ok(Self { url: url.clone(), process: storm.pid, own: None }),
                Some(process) => Err(StormError::Usage(format!(
                    "--pid: there is no process {process}; give the number of the balancer's main process, or leave \
                     --pid away"
                ))),
            },
        }
    }

    /// Waits until a request goes through it and reaches these servers.
    pub(super) async fn ready(&self, storm: &Storm, fleet: &FleetHandle) -> Result<(), StormError> {
        let listed: Vec<String> = fleet.servers().iter().map(|server| format!("http://{}", server.address)).collect();
        let upstreams = listed.join(" and ");
        let probes = async {
            let mut refused = 0;
            loop {
                let report = probe(&self.url, storm).await?;
                if report.succeeded == 1 {
                    return Ok::<_, load::LoadError>(None);
                }
                let is_refused = report.failures.iter().any(|failure| failure.kind == load::FailureKind::Refused);
                refused = if is_refused { refused + 1 } else { 0 };
                if refused >= REFUSED_PROBES {
                    return Ok(Some(report));
                }
                sleep(BETWEEN_PROBES).await;
            }
        };
        let tried = timeout(READY_WITHIN, probes).await;
        let tried = tried.map(|tried| tried.map_err(|error| StormError::Usage(error.to_string()))).ok().transpose()?;
        match tried {
            Some(None) if fleet.counts().requests == 0 => Err(StormError::Failed(format!(
                "{} answers, but not from the servers of this storm; point its upstreams at {upstreams}, or say with \
                 --upstreams where they are",
                self.url
            ))),
            Some(None) => Ok(()),
            Some(Some(last)) => Err(self.closed(&last, &upstreams)),
            None => {
                let last = probe(&self.url, storm).await.map_err(|error| StormError::Usage(error.to_string()))?;
                Err(self.closed(&last, &upstreams))
            }
        }
    }

    fn closed(&self, last: &Report, upstreams: &str) -> StormError {
        StormError::Failed(format!(
            "no request comes through {} ({}); start the balancer first, with its upstreams at {upstreams}, and see its \
             log",
            self.url,
            why(last)
        ))
    }

    /// What is wrong with its process, if anything is.
    pub(super) fn problem(&mut self) -> Option<String> {
        if let Some(own) = &mut self.own {
            let status = own.child.try_wait().ok().flatten()?;
            let lines = own.last_lines.lock().unwrap_or_else(PoisonError::into_inner);
            let lines: String = lines.iter().fold(String::new(), |mut text, line| {
                write!(text, "\n  {line}").expect("a string takes any text");
                text
            });
            return Some(format!("Seawall ended during the storm ({status}); its last lines:{lines}"));
        }
        let process = self.process.filter(|process| !memory::is_there(*process))?;
        Some(format!("process {process} ended during the storm; see the balancer's log, start it again and repeat"))
    }
}

/// One request, without any retry.
async fn probe(url: &str, storm: &Storm) -> Result<Report, load::LoadError> {
    let mut options = options(url, storm);
    options.limit = Limit::Count(1);
    options.rate_per_second = 1000.0;
    options.patience = PROBE_PATIENCE;
    options.profiles = "none".parse()?;
    load::run(options, std::future::pending(), |_| {}).await
}

/// A load as every run of this command has it, still without rate and clients.
pub(super) fn options(url: &str, storm: &Storm) -> LoadOptions {
    let mut options = LoadOptions::new(url);
    options.models = load::Mix::one(load::Model(MODEL.to_owned()));
    options.tenants = load::Mix::one(load::Tenant { name: "storm".to_owned(), key: storm.key.clone().into() });
    options.headers = storm.header.iter().map(|header| (header.0.clone(), header.1.clone())).collect();
    options.allow_remote = storm.allow_remote;
    options.seed = storm.seed;
    options
}

fn why(report: &Report) -> String {
    let failure = report.failures.first();
    failure.map_or_else(
        || "no answer".to_owned(),
        |failure| match (failure.status, &failure.code) {
            (Some(status), Some(code)) => format!("the last answer was {status}, `{code}`"),
            (Some(status), None) => format!("the last answer was {status}"),
            (None, _) => match failure.kind {
                load::FailureKind::Refused => "connections are refused".to_owned(),
                _ => "there was no answer".to_owned(),
            },
        },
    )
}

/// Starts a Seawall with a default configuration on free ports.
async fn own(storm: &Storm, fleet: &FleetHandle) -> Result<Target, String> {
    let folder = tempfile::tempdir().map_err(|error| format!("cannot make a temporary folder: {error}"))?;
    let file = folder.path().join("seawall.toml");
    std::fs::write(&file, config(fleet, folder.path())).map_err(|error| format!("cannot write its config: {error}"))?;
    let program = std::env::current_exe().map_err(|error| format!("cannot find this program's own file: {error}"))?;
    let mut command = Command::new(program);
    command.args(["--log", "warn", "serve", "--config"]).arg(&file).env(KEY_VARIABLE, &storm.key);
    command.env_remove("SEAWALL_CONFIG").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("cannot start a Seawall: {error}"))?;
    let stderr = child.stderr.take();
    let process = child.id();
    let own = Own { child, last_lines: Arc::default(), _folder: folder };
    let (sender, address) = oneshot::channel();
    let lines = Arc::clone(&own.last_lines);
    if let Some(stderr) = stderr {
        // Reads to the end, so that the program never waits for its reader.
        std::thread::spawn(move || read(stderr, sender, &lines));
    }
    let mut target = Target { url: String::new(), process: Some(process), own: Some(own) };
    match timeout(READY_WITHIN, address).await {
        Ok(Ok(address)) => target.url = format!("http://{address}"),
        _ => return Err(target.problem().unwrap_or_else(|| "Seawall does not say where it serves".to_owned())),
    }
    Ok(target)
}

fn read(stderr: impl Read, sender: oneshot::Sender<SocketAddr>, last_lines: &Mutex<VecDeque<String>>) {
    let mut sender = Some(sender);
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        if let Some(address) = serves_on(&line)
            && let Some(sender) = sender.take()
        {
            // Nobody waits for it any more once the time for it is over.
            let _ = sender.send(address);
        }
        let mut lines = last_lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() >= LAST_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }
}

/// The address in the first line of `seawall serve`.
fn serves_on(line: &str) -> Option<SocketAddr> {
    line.split_once("serves on http://")?.1.split_whitespace().next()?.parse().ok()
}

/// Models, deployments and a tenant: everything else is the default, and no capacity is told.
fn config(fleet: &FleetHandle, folder: &Path) -> String {
    let folder = folder.display();
    let mut text = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\ndata_dir = \"{folder}/data\"\naccess_log = \"off\"\n\
         [[models]]\nname = \"{MODEL}\"\n"
    );
    for server in fleet.servers() {
        let (name, address) = (&server.name, server.address);
        write!(text, "[[models.deployments]]\nname = \"{name}\"\nurl = \"http://{address}/v1\"\n")
            .expect("a string takes any text");
    }
    text + &format!("[[tenants]]\nname = \"storm\"\nkeys = [{{ env = \"{KEY_VARIABLE}\" }}]\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_banner_tells_the_address() {
        let line = "seawall 0.1.0 serves on http://127.0.0.1:4711   admin on http://127.0.0.1:9090 (/statusz)";
        assert_eq!(serves_on(line), Some(SocketAddr::from(([127, 0, 0, 1], 4711))));
        assert_eq!(serves_on("draining: nothing new is taken"), None);
    }

    #[test]
    fn only_the_last_lines_are_kept() {
        let (sender, address) = oneshot::channel();
        let kept = Mutex::default();
        let text = "serves on http://127.0.0.1:1 x\nserves on http://127.0.0.1:2\n3\n4\n5\n6\n7\n";
        read(text.as_bytes(), sender, &kept);
        assert_eq!(address.blocking_recv().expect("it is told").port(), 1);
        assert_eq!(*kept.lock().expect("nobody panicked"), ["3", "4", "5", "6", "7"]);
    }
}
