//! What a request costs, against a bare hyper proxy and nginx in one interleaved run.

use super::processes::{Running, free_port, median, wait_for};
use crate::evidence::{Measurement, Record};
use crate::repository::Repository;
use crate::{Failure, command, files, report};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The entry of the table.
pub(super) const MEASUREMENT: Measurement = Measurement {
    name: "cost",
    summary: "CPU per request and per SSE chunk, added latency, memory per held request; bare hyper, nginx, Seawall",
    run,
};

const ROUNDS: usize = 3;
const SECONDS: u64 = 4;
const CONNECTIONS: u64 = 64;
const RATE: u64 = 1_000;
const STREAMS: u64 = 200;
const HELD: u64 = 1_000;
const HELD_SECONDS: u64 = 8;

/// A proxy under test.
struct Peer {
    name: &'static str,
    port: u16,
    process: Running,
    requests_us: Vec<f64>,
    chunks_us: Vec<f64>,
    p50_us: Vec<f64>,
    held_kib: Vec<f64>,
}

struct Bench {
    program: PathBuf,
}

fn run(repository: &Repository) -> Result<Record, Failure> {
    need(&["taskset", "nginx"])?;
    let folder = tempfile::tempdir().map_err(Failure::file("create", "a temporary folder".as_ref()))?;
    let bench = Bench { program: build(repository)? };
    let upstream = free_port()?;
    let _upstream = bench.start("1", &["upstream", &upstream.to_string()])?;
    wait_for(upstream)?;
    let mut peers = peers(repository, &bench, upstream, folder.path())?;
    let mut direct = Vec::new();
    for round in 1..=ROUNDS {
        report::say(&format!("round {round} of {ROUNDS}"));
        direct.push(bench.load(upstream, "open", RATE)?);
        for peer in &mut peers {
            let before = peer.process.processor_seconds()?;
            let requests = bench.load(peer.port, "max", CONNECTIONS)?;
            let between = peer.process.processor_seconds()?;
            peer.requests_us.push((between - before) * 1e6 / requests);
            peer.p50_us.push(bench.load(peer.port, "open", RATE)?);
            let before = peer.process.processor_seconds()?;
            let chunks = bench.load(peer.port, "sse", STREAMS)?;
            peer.chunks_us.push((peer.process.processor_seconds()? - before) * 1e6 / chunks);
        }
    }
    for peer in &mut peers {
        let idle = peer.process.resident_kib()?;
        let held = bench.hold(peer, HELD)?;
        peer.held_kib.push((held - idle) / 1_000.0);
    }
    Ok(record(&peers, median(direct)))
}

/// Installs what Debian has and says so where it may not.
fn need(programs: &[&str]) -> Result<(), Failure> {
    if programs.iter().all(|name| command::works(Command::new("which").arg(name))) {
        return Ok(());
    }
    report::say("installing nginx-light and util-linux");
    let install = ["-c", "apt-get update -q && apt-get install -qy --no-install-recommends nginx-light util-linux"];
    command::run(Command::new("sh").args(install).env("DEBIAN_FRONTEND", "noninteractive"))
        .map_err(|_| Failure::Usage("run: sudo apt-get install nginx-light util-linux".to_owned()))
}

fn build(repository: &Repository) -> Result<PathBuf, Failure> {
    let mut cargo = command::cargo();
    cargo.current_dir(repository.root()).args(["build", "--quiet", "--release", "--package", "seawall"]);
    command::run(&mut cargo)?;
    let mut cargo = command::cargo();
    cargo.current_dir(repository.root());
    cargo.args(["build", "--quiet", "--release", "--package", "seawall-lab", "--example", "bench"]);
    command::run(&mut cargo)?;
    Ok(repository.target().join("release/examples/bench"))
}

fn peers(repository: &Repository, bench: &Bench, upstream: u16, folder: &Path) -> Result<Vec<Peer>, Failure> {
    let (bare, nginx, seawall, admin) = (free_port()?, free_port()?, free_port()?, free_port()?);
    let nginx_file = folder.join("nginx.conf");
    files::write(&nginx_file, &nginx_config(nginx, upstream, folder))?;
    let config = folder.join("seawall.toml");
    files::write(&config, &seawall_config(seawall, admin, upstream, folder))?;
    let mut serve = pinned("0", &repository.target().join("release/seawall"));
    serve.arg("serve").arg("--config").arg(&config).env("BENCH_KEY", "bench-key").env("TOKIO_WORKER_THREADS", "1");
    let bare_ports = [bare.to_string(), upstream.to_string()];
    let started = [
        ("bare hyper", bare, bench.start("0", &["bare", &bare_ports[0], &bare_ports[1]])?),
        ("nginx", nginx, Running::start(pinned("0", Path::new("nginx")).arg("-c").arg(&nginx_file))?),
        ("Seawall", seawall, Running::start(&mut serve)?),
    ];
    let peer = |(name, port, process)| {
        wait_for(port)?;
        let [requests_us, chunks_us, p50_us, held_kib] = [const { Vec::new() }; 4];
        Ok(Peer { name, port, process, requests_us, chunks_us, p50_us, held_kib })
    };
    started.into_iter().map(peer).collect()
}

fn nginx_config(port: u16, upstream: u16, folder: &Path) -> String {
    let folder = folder.display();
    format!(
        "daemon off;\nmaster_process off;\nworker_processes 1;\npid {folder}/nginx.pid;\nerror_log {folder}/error.log;\n\
         events {{ worker_connections 20000; }}\nhttp {{\n  access_log {folder}/nginx-access.log;\n  \
         client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;\n  \
         uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;\n  keepalive_requests 1000000000;\n  \
         upstream behind {{ server 127.0.0.1:{upstream}; keepalive 4096; keepalive_requests 1000000000; }}\n  \
         server {{\n    listen 127.0.0.1:{port} backlog=4096;\n    location / {{\n      proxy_pass http://behind;\n      \
         proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_buffering off;\n    }}\n  }}\n}}\n"
    )
}

/// The default configuration: keys, limits, metrics and the access log are on.
fn seawall_config(port: u16, admin: u16, upstream: u16, folder: &Path) -> String {
    let folder = folder.display();
    format!(
        "[server]\nlisten = \"127.0.0.1:{port}\"\nadmin = \"127.0.0.1:{admin}\"\ndata_dir = \"{folder}/data\"\n\
         access_log = \"{folder}/access.log\"\n[[models]]\nname = \"bench\"\n[[models.deployments]]\nname = \"bench\"\n\
         url = \"http://127.0.0.1:{upstream}/v1\"\n[[tenants]]\nname = \"bench\"\nkeys = [{{ env = \"BENCH_KEY\" }}]\n"
    )
}

fn pinned(core: &str, program: &Path) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", core]).arg(program);
    command
}

impl Bench {
    fn start(&self, core: &str, arguments: &[&str]) -> Result<Running, Failure> {
        Running::start(pinned(core, &self.program).args(arguments))
    }

    fn load(&self, port: u16, mode: &str, number: u64) -> Result<f64, Failure> {
        let arguments = ["load", &port.to_string(), mode, &number.to_string(), &SECONDS.to_string()];
        let printed = command::output(pinned("1", &self.program).args(arguments))?;
        printed.trim().parse().map_err(|_| Failure::Usage(format!("`bench load {mode}` printed {printed:?}")))
    }

    /// Resident memory of the peer while `number` requests are held.
    fn hold(&self, peer: &Peer, number: u64) -> Result<f64, Failure> {
        let mut command = pinned("1", &self.program);
        let arguments = ["load", &peer.port.to_string(), "hold", &number.to_string(), &HELD_SECONDS.to_string()];
        let failed = |error| Failure::Usage(format!("`bench load hold` failed: {error}"));
        let mut child = command.args(arguments).stdout(Stdio::piped()).spawn().map_err(failed)?;
        let mut lines = BufReader::new(child.stdout.take().expect("standard output is piped")).lines();
        let _all_sent = lines.next();
        // All are sent; a moment later all have reached the upstream.
        std::thread::sleep(std::time::Duration::from_secs(1));
        let held = peer.process.resident_kib()?;
        child.wait().map_err(failed)?;
        Ok(held)
    }
}

fn record(peers: &[Peer], direct_us: f64) -> Record {
    let figure =
        |peer: &Peer| [&peer.requests_us, &peer.chunks_us, &peer.p50_us, &peer.held_kib].map(|all| median(all.clone()));
    let floor = figure(&peers[0]);
    let mut result = String::from(
        "| proxy | CPU per request | ratio | CPU per SSE chunk | ratio | added p50 at 1,000/s | memory per held request |\n\
         | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for peer in peers {
        let [request, chunk, p50, held] = figure(peer);
        writeln!(
            result,
            "| {} | {request:.1} us | {:.2} | {chunk:.1} us | {:.2} | {:.0} us | {held:.1} KiB |",
            peer.name,
            request / floor[0],
            chunk / floor[1],
            p50 - direct_us,
        )
        .expect("a string takes any text");
    }
    let seawall = figure(peers.last().expect("Seawall is the last one"));
    Record {
        title: "What a request costs".to_owned(),
        method: format!(
            "Each proxy has one worker, pinned to core 0; upstream and load on core 1. {ROUNDS} rounds, each visits every\n\
             proxy once; medians. CPU is the process's own accounting (`/proc`). Requests: {CONNECTIONS} connections, one\n\
             request after the other for {SECONDS} s, bodies of about 1 KB, answers of 0.4 KB. Latency: {RATE} requests a\n\
             second on a fixed schedule, counted from the scheduled time, the same load straight to the upstream\n\
             subtracted. SSE: {STREAMS} streams of 50 chunks, one each 100 ms. Memory: growth of the resident set per\n\
             request while {HELD} are held.\n\nSeawall runs its default configuration: keys, limits, metrics, access log\n\
             to a file. nginx writes its access log too."
        ),
        result,
        reading: format!(
            "Seawall costs {:.2} times the bare proxy per request (target of this stage: at most 2; of the overload engine\n\
             with everything on: 1.5) and {:.2} times per chunk.\n\nThe largest cost that remains, by `perf record -p PID` on\n\
             Seawall under this load: the kernel's socket work, as for every proxy; in its own code, copying of memory\n\
             (the future of a request is large, and is moved), then allocation and readings of the clock.\n\n\
             The load's timer shares core 1 with the upstream, which adds the same noise of milliseconds to every row of\n\
             the latency column: compare its rows with each other, not with the target of 0.05 ms, which this does not\n\
             resolve yet.",
            seawall[0] / floor[0],
            seawall[1] / floor[1],
        ),
    }
}
