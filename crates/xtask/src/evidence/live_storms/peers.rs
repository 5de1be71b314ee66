//! The balancers that a live storm goes through: how each is installed, configured and started.
//!
//! Each is told the servers and nothing else, except where its row says so: HAProxy is told the slots, because its line
//! works only so. Time limits are longer than any client's patience, so that no row is about them. One worker or thread
//! where a balancer can be told: the storms need no more.

use crate::evidence::processes::Running;
use crate::repository::Repository;
use crate::tools::{debian, node, python};
use crate::{Failure, command, files};
use std::fs::File;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::Duration;

/// A configuration of a balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Peer {
    /// What the rows call it.
    pub(super) name: &'static str,
    /// How it is configured, for the page.
    pub(super) about: &'static str,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// `seawall storm` starts one by itself.
    Seawall,
    Nginx,
    /// Seconds in the line.
    Haproxy(u32),
    /// Filters, and what is added to the route and to the cluster's limits.
    Envoy {
        filters: &'static str,
        route: &'static str,
        limits: &'static str,
    },
    Litellm,
    Portkey,
    SglangRouter,
}

const fn envoy(name: &'static str, about: &'static str, [filters, route, limits]: [&'static str; 3]) -> Peer {
    Peer { name, about, kind: Kind::Envoy { filters, route, limits } }
}

/// Every configuration, in the order in which they are run.
pub(super) const PEERS: [Peer; 12] = [
    Peer { name: "seawall", about: "default configuration, no capacity told", kind: Kind::Seawall },
    Peer { name: "nginx", about: "as it is by default (a POST that was answered is not retried)", kind: Kind::Nginx },
    Peer {
        name: "haproxy-2s",
        about: "told the slots (`maxconn 4`), least connections, 2 s in its line",
        kind: Kind::Haproxy(2),
    },
    Peer { name: "haproxy-10s", about: "the same, 10 s in its line", kind: Kind::Haproxy(10) },
    envoy("envoy", "round robin, no retries", ["", "", ""]),
    envoy("envoy-retries", "three retries on 5xx, 429 and resets, within its default limit", ["", RETRIES, ""]),
    envoy("envoy-retry-budget", "the same within a retry budget of 20%", ["", RETRIES, BUDGET]),
    envoy("envoy-adaptive", "its adaptive concurrency filter (gradient)", [ADAPTIVE, "", ""]),
    envoy("envoy-admission", "its admission control filter, from 95% successes down", [ADMISSION, "", ""]),
    Peer { name: "litellm", about: "proxy with simple shuffle and three retries", kind: Kind::Litellm },
    Peer { name: "portkey", about: "gateway, load balance with three retries on 429 and 5xx", kind: Kind::Portkey },
    Peer { name: "sglang-router", about: "round robin, its default retries and breakers", kind: Kind::SglangRouter },
];

const RETRIES: &str = ", retry_policy: {retry_on: \"5xx,reset,connect-failure,retriable-status-codes\", \
    retriable_status_codes: [429], num_retries: 3}";
const BUDGET: &str = ", retry_budget: {budget_percent: {value: 20.0}, min_retry_concurrency: 3}";
const ADAPTIVE: &str = "
          - name: envoy.filters.http.adaptive_concurrency
            typed_config:
              \"@type\": type.googleapis.com/envoy.extensions.filters.http.adaptive_concurrency.v3.AdaptiveConcurrency
              enabled: {default_value: true, runtime_key: adaptive.enabled}
              gradient_controller_config:
                sample_aggregate_percentile: {value: 90}
                concurrency_limit_params: {concurrency_update_interval: 0.1s}
                min_rtt_calc_params: {interval: 60s, request_count: 50, jitter: {value: 10}}";
const ADMISSION: &str = "
          - name: envoy.filters.http.admission_control
            typed_config:
              \"@type\": type.googleapis.com/envoy.extensions.filters.http.admission_control.v3.AdmissionControl
              enabled: {default_value: true, runtime_key: admission.enabled}
              sampling_window: 10s
              sr_threshold: {default_value: {value: 95.0}, runtime_key: admission.threshold}
              aggression: {default_value: 1.0, runtime_key: admission.aggression}
              rps_threshold: {default_value: 5, runtime_key: admission.rps}
              max_rejection_probability: {default_value: {value: 80.0}, runtime_key: admission.most}
              success_criteria: {http_criteria: {http_success_status: [{start: 100, end: 400}]}}";

/// Ports that no two rows get: they are counted up, and one that somebody else has is left out.
static NEXT_PORT: AtomicU16 = AtomicU16::new(20_000);
/// The slowest is there after half a minute on an idle machine.
const STARTS_WITHIN: Duration = Duration::from_mins(2);
const LOOKS: Duration = Duration::from_millis(100);

/// A balancer that runs, and what `seawall storm` has to know of it.
pub(super) struct Started {
    process: Running,
    pub(super) arguments: Vec<String>,
}

impl Drop for Started {
    fn drop(&mut self) {
        self.process.terminate();
    }
}

/// The first of two ports in a row that nobody has, and nobody else gets.
fn two_ports() -> Result<u16, Failure> {
    let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    for _ in 0..1000 {
        let first = NEXT_PORT.fetch_add(2, Ordering::Relaxed);
        if is_free(first) && is_free(first + 1) {
            return Ok(first);
        }
    }
    Err(Failure::Usage("there are no two free ports from 20000 on".to_owned()))
}

impl Peer {
    /// Installs it, unless it is there.
    pub(super) fn install(&self, repository: &Repository) -> Result<(), Failure> {
        let debian = |program: &str, package: &str| {
            if command::works(Command::new("which").arg(program)) {
                return Ok(());
            }
            debian::install(&[package], &format!("measuring {program}"))
        };
        match self.kind {
            Kind::Seawall => Ok(()),
            Kind::Nginx => debian("nginx", "nginx-light"),
            Kind::Haproxy(_) => debian("haproxy", "haproxy"),
            Kind::Envoy { .. } => python::install(repository, python::ENVOY).map(|_| ()),
            Kind::Litellm => python::install(repository, python::LITELLM).map(|_| ()),
            Kind::Portkey => node::install(repository, node::PORTKEY).map(|_| ()),
            Kind::SglangRouter => python::install(repository, python::SGLANG_ROUTER).map(|_| ()),
        }
    }

    /// Starts it in `folder`, in front of servers that will be there; `None` where `seawall storm` does that itself.
    pub(super) fn start(&self, repository: &Repository, folder: &Path) -> Result<Option<Started>, Failure> {
        let (servers, own) = (two_ports()?, two_ports()?);
        let place = Place { folder, servers, port: own };
        let Some(mut command) = self.command(repository, &place)? else { return Ok(None) };
        let log = folder.join("log");
        let failed = Failure::file("create", &log);
        let file = File::create(&log).map_err(failed)?;
        let errors = file.try_clone().map_err(Failure::file("open", &log))?;
        command.current_dir(folder).stdin(Stdio::null()).stdout(file).stderr(errors);
        let line = command::line(&command);
        let process = command.spawn().map_err(|source| Failure::Start { command: line.clone(), source })?;
        let mut started = Started { process: Running::of(process), arguments: Vec::new() };
        wait_for(own, &log, &line)?;
        let arguments = [
            "--target".to_owned(),
            format!("http://127.0.0.1:{own}"),
            "--upstreams".to_owned(),
            format!("127.0.0.1:{servers}"),
            "--pid".to_owned(),
            started.process.id().to_string(),
        ];
        let header = (self.kind == Kind::Portkey).then(|| ["--header".to_owned(), place.portkey()]);
        started.arguments.extend(arguments.into_iter().chain(header.into_iter().flatten()));
        Ok(Some(started))
    }

    fn command(&self, repository: &Repository, place: &Place<'_>) -> Result<Option<Command>, Failure> {
        let config = place.folder.join("config");
        let port = place.port.to_string();
        let installed = |folder: &str, program: &str| repository.test_tools().join(folder).join(program);
        let mut command = match self.kind {
            Kind::Seawall => return Ok(None),
            Kind::Nginx => Command::new("nginx"),
            Kind::Haproxy(_) => Command::new("haproxy"),
            Kind::Envoy { .. } => Command::new(installed(python::ENVOY.folder, "bin/envoy")),
            Kind::Litellm => Command::new(installed(python::LITELLM.folder, "bin/litellm")),
            Kind::Portkey => Command::new("node"),
            Kind::SglangRouter => Command::new(installed(python::SGLANG_ROUTER.folder, "bin/smg")),
        };
        match self.kind {
            Kind::Seawall => {}
            Kind::Nginx => {
                files::write(&config, &place.nginx())?;
                command.arg("-c").arg(&config).arg("-p").arg(place.folder);
            }
            Kind::Haproxy(seconds) => {
                files::write(&config, &place.haproxy(seconds))?;
                command.args(["-db", "-f"]).arg(&config);
            }
            Kind::Envoy { filters, route, limits } => {
                let config = config.with_extension("yaml");
                files::write(&config, &place.envoy(filters, route, limits))?;
                command.arg("-c").arg(&config);
                command.args(["--use-dynamic-base-id", "--log-level", "error", "--concurrency", "1"]);
            }
            Kind::Litellm => {
                let config = config.with_extension("yaml");
                files::write(&config, &place.litellm())?;
                command.arg("--config").arg(&config);
                command.args(["--host", "127.0.0.1", "--port", &port, "--telemetry", "False", "--num_workers", "1"]);
                command.env("LITELLM_LOCAL_MODEL_COST_MAP", "True").env("LITELLM_MODE", "PRODUCTION");
                command.env("LITELLM_LOG", "ERROR").env("DISABLE_ADMIN_UI", "True").env("NO_DOCS", "True");
            }
            Kind::Portkey => {
                let program = "node_modules/@portkey-ai/gateway/build/start-server.js";
                command.arg(installed(node::PORTKEY.folder, program)).env("NODE_ENV", "production");
                command.args([&format!("--port={port}"), "--headless"]);
            }
            Kind::SglangRouter => {
                command.args(["launch", "--host", "127.0.0.1", "--port", &port, "--policy", "round_robin"]);
                command.args(["--prometheus-host", "127.0.0.1", "--prometheus-port", &(place.port + 1).to_string()]);
                command.args(["--log-level", "warn", "--worker-urls"]).args(place.urls());
            }
        }
        Ok(Some(command))
    }
}

/// Waits until something listens.
fn wait_for(port: u16, log: &Path, line: &str) -> Result<(), Failure> {
    for _ in 0..STARTS_WITHIN.as_millis() / LOOKS.as_millis() {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return Ok(());
        }
        thread::sleep(LOOKS);
    }
    let said = files::read(log).unwrap_or_default();
    let last: Vec<&str> = said.lines().rev().take(3).collect();
    let last: Vec<&str> = last.into_iter().rev().collect();
    Err(Failure::Usage(format!("`{line}` does not listen after {} s: {}", STARTS_WITHIN.as_secs(), last.join(" | "))))
}

/// Where a balancer and its servers are.
struct Place<'a> {
    folder: &'a Path,
    /// The port of the first server; the second has the next one.
    servers: u16,
    port: u16,
}

impl Place<'_> {
    fn addresses(&self) -> [String; 2] {
        [self.servers, self.servers + 1].map(|port| format!("127.0.0.1:{port}"))
    }

    fn urls(&self) -> [String; 2] {
        self.addresses().map(|address| format!("http://{address}"))
    }

    fn nginx(&self) -> String {
        let Self { port, .. } = self;
        let folder = self.folder.display();
        let [first, second] = self.addresses();
        format!(
            "worker_processes 1;\ndaemon off;\npid {folder}/pid;\nerror_log {folder}/errors warn;\n\
             events {{ worker_connections 8192; }}\n\
             http {{\n  access_log off;\n  client_body_temp_path {folder}/body;\n  proxy_temp_path {folder}/proxy;\n  \
             fastcgi_temp_path {folder}/fastcgi;\n  uwsgi_temp_path {folder}/uwsgi;\n  scgi_temp_path {folder}/scgi;\n  \
             upstream servers {{ server {first}; server {second}; keepalive 64; }}\n  \
             server {{\n    listen 127.0.0.1:{port} backlog=4096;\n    location / {{\n      proxy_pass http://servers;\n      \
             proxy_http_version 1.1;\n      proxy_set_header Connection \"\";\n      proxy_read_timeout 120s;\n    }}\n  }}\n\
             }}\n"
        )
    }

    fn haproxy(&self, seconds: u32) -> String {
        let Self { port, .. } = self;
        let [first, second] = self.addresses();
        format!(
            "global\n  maxconn 8000\n  nbthread 1\ndefaults\n  mode http\n  timeout connect 5s\n  timeout client 120s\n  \
             timeout server 120s\n  timeout queue {seconds}s\n  http-reuse always\nfrontend clients\n  \
             bind 127.0.0.1:{port} backlog 4096\n  default_backend servers\nbackend servers\n  balance leastconn\n  \
             server first {first} maxconn 4\n  server second {second} maxconn 4\n"
        )
    }

    fn envoy(&self, filters: &str, route: &str, limits: &str) -> String {
        let Self { port, servers, .. } = self;
        let second = servers + 1;
        format!(
            r#"static_resources:
  listeners:
  - name: clients
    address: {{socket_address: {{address: 127.0.0.1, port_value: {port}}}}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: clients
          route_config:
            virtual_hosts:
            - name: all
              domains: ["*"]
              routes:
              - match: {{prefix: "/"}}
                route: {{cluster: servers, timeout: 120s{route}}}
          http_filters:{filters}
          - name: envoy.filters.http.router
            typed_config: {{"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}
  clusters:
  - name: servers
    type: STATIC
    lb_policy: ROUND_ROBIN
    connect_timeout: 5s
    circuit_breakers:
      thresholds: [{{max_connections: 20000, max_pending_requests: 20000, max_requests: 20000{limits}}}]
    load_assignment:
      cluster_name: servers
      endpoints:
      - lb_endpoints:
        - endpoint: {{address: {{socket_address: {{address: 127.0.0.1, port_value: {servers}}}}}}}
        - endpoint: {{address: {{socket_address: {{address: 127.0.0.1, port_value: {second}}}}}}}
"#
        )
    }

    fn litellm(&self) -> String {
        let model = |url: &String| {
            format!(
                "  - model_name: demo-chat\n    litellm_params:\n      model: openai/demo-chat\n      api_base: {url}/v1\n      \
                 api_key: unused\n"
            )
        };
        let models: String = self.urls().iter().map(model).collect();
        format!(
            "model_list:\n{models}litellm_settings:\n  telemetry: false\n  request_timeout: 120\n  num_retries: 3\n\
             router_settings:\n  routing_strategy: simple-shuffle\n  num_retries: 3\ngeneral_settings:\n  master_key: demo-key\n"
        )
    }

    /// The configuration of Portkey's gateway, which comes with each request.
    fn portkey(&self) -> String {
        let target = |url: String| {
            format!(
                r#"{{"provider":"openai","api_key":"unused","custom_host":"{url}/v1","weight":1,"retry":{{"attempts":3,"on_status_codes":[429,500,502,503,504]}}}}"#
            )
        };
        let [first, second] = self.urls().map(target);
        format!(r#"x-portkey-config: {{"strategy":{{"mode":"loadbalance"}},"targets":[{first},{second}]}}"#)
    }
}

/// The folder in which a balancer keeps its files during one run.
pub(super) fn folder(repository: &Repository, row: &str) -> Result<PathBuf, Failure> {
    let folder = repository.target().join("storms").join("run").join(row);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(Failure::file("remove", &folder))?;
    }
    std::fs::create_dir_all(&folder).map_err(Failure::file("create", &folder))?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> Place<'static> {
        Place { folder: Path::new("/run"), servers: 100, port: 90 }
    }

    #[test]
    fn no_two_rows_get_the_same_ports() {
        let (first, second) = (two_ports().expect("two ports"), two_ports().expect("two ports"));
        assert!(second >= first + 2);
    }

    #[test]
    fn each_balancer_is_told_both_servers() {
        for text in [
            place().nginx(),
            place().haproxy(2),
            place().envoy(ADAPTIVE, RETRIES, BUDGET),
            place().litellm(),
            place().portkey(),
            place().urls().join(" "),
        ] {
            assert!(text.contains("100") && text.contains("101"), "{text}");
        }
        assert!(place().haproxy(2).contains("timeout queue 2s") && place().haproxy(2).contains("maxconn 4\n"));
        let envoy = place().envoy(ADAPTIVE, RETRIES, BUDGET);
        for part in [ADAPTIVE, RETRIES, BUDGET] {
            assert!(envoy.contains(part), "{envoy}");
        }
        let config = place().portkey();
        let json = config.strip_prefix("x-portkey-config: ").expect("a header");
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(json).expect("JSON")["targets"][1]["retry"]["attempts"],
            3
        );
    }

    #[test]
    fn names_are_unique() {
        let names: std::collections::BTreeSet<&str> = PEERS.iter().map(|peer| peer.name).collect();
        assert_eq!(names.len(), PEERS.len());
    }
}
