//! What a request costs, against a bare hyper proxy and nginx in one interleaved run.

use super::processes::{Running, free_port, median, wait_for};
use super::profile::Profile;
use crate::evidence::{Measurement, Record, Run};
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
    run: Run::Whole(run),
};

const ROUNDS: usize = 3;
const SECONDS: u32 = 4;
const CONNECTIONS: u32 = 64;
const RATE: u32 = 1_000;
const STREAMS: u32 = 200;
const HELD: [u32; 2] = [1_000, 5_000];
const HELD_SECONDS: u32 = 8;

/// A proxy under test.
struct Peer {
    name: &'static str,
    port: u16,
    process: Running,
    requests_us: Vec<f64>,
    chunks_us: Vec<f64>,
    slow_us: Vec<f64>,
    p50_us: Vec<f64>,
    held_kib: Vec<f64>,
}

struct Bench {
    program: PathBuf,
}

fn run(repository: &Repository) -> Result<Record, Failure> {
    need(&["taskset", "nginx"], "nginx-light util-linux")?;
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
            peer.slow_us.push((before - between) * 1e6 / f64::from(RATE * SECONDS));
            let chunks = bench.load(peer.port, "sse", STREAMS)?;
            peer.chunks_us.push((peer.process.processor_seconds()? - before) * 1e6 / chunks);
        }
    }
    for number in HELD {
        for peer in &mut peers {
            let idle = peer.process.resident_kib()?;
            let held = bench.hold(peer, number)?;
            peer.held_kib.push((held - idle) / f64::from(number));
        }
    }
    let profile = bench.profile(peers.last().expect("Seawall is the last one"), folder.path())?;
    Ok(record(&peers, median(direct), profile.as_ref()))
}

/// Installs what Debian has and says so where it may not.
pub(super) fn need(programs: &[&str], packages: &str) -> Result<(), Failure> {
    if programs.iter().all(|name| command::works(Command::new("which").arg(name))) {
        return Ok(());
    }
    report::say(&format!("installing {packages}"));
    let install = format!("apt-get update -q && apt-get install -qy --no-install-recommends {packages}");
    command::run(Command::new("sh").args(["-c", &install]).env("DEBIAN_FRONTEND", "noninteractive"))
        .map_err(|_| Failure::Usage(format!("run: sudo apt-get install {packages}")))
}

/// Builds the program and the bench, whose path it returns.
pub(super) fn build(repository: &Repository) -> Result<PathBuf, Failure> {
    build_program(repository)?;
    let mut cargo = command::cargo();
    cargo.current_dir(repository.root());
    cargo.args(["build", "--quiet", "--release", "--package", "seawall-lab", "--example", "bench"]);
    command::run(&mut cargo)?;
    Ok(repository.target().join("release/examples/bench"))
}

/// Builds the program, whose path it returns.
pub(super) fn build_program(repository: &Repository) -> Result<PathBuf, Failure> {
    let mut cargo = command::cargo();
    cargo.current_dir(repository.root()).args(["build", "--quiet", "--release", "--package", "seawall"]);
    command::run(&mut cargo)?;
    Ok(repository.target().join("release/seawall"))
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
        let [requests_us, chunks_us, slow_us, p50_us, held_kib] = [const { Vec::new() }; 5];
        Ok(Peer { name, port, process, requests_us, chunks_us, slow_us, p50_us, held_kib })
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

/// The default configuration: keys, limits, metrics and the access log are on. The upstream stands there twice, because
/// one deployment has at most 4,096 connections.
fn seawall_config(port: u16, admin: u16, upstream: u16, folder: &Path) -> String {
    let folder = folder.display();
    let deployment =
        |name| format!("[[models.deployments]]\nname = \"{name}\"\nurl = \"http://127.0.0.1:{upstream}/v1\"\n");
    format!(
        "[server]\nlisten = \"127.0.0.1:{port}\"\nadmin = \"127.0.0.1:{admin}\"\ndata_dir = \"{folder}/data\"\n\
         access_log = \"{folder}/access.log\"\n[[models]]\nname = \"bench\"\n{}{}[[tenants]]\nname = \"bench\"\n\
         keys = [{{ env = \"BENCH_KEY\" }}]\n",
        deployment("one"),
        deployment("two"),
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

    fn load(&self, port: u16, mode: &str, number: u32) -> Result<f64, Failure> {
        let arguments = ["load", &port.to_string(), mode, &number.to_string(), &SECONDS.to_string()];
        let printed = command::output(pinned("1", &self.program).args(arguments))?;
        printed.trim().parse().map_err(|_| Failure::Usage(format!("`bench load {mode}` printed {printed:?}")))
    }

    /// Resident memory of the peer while `number` requests are held.
    fn hold(&self, peer: &Peer, number: u32) -> Result<f64, Failure> {
        let mut command = pinned("1", &self.program);
        let arguments = ["load", &peer.port.to_string(), "hold", &number.to_string(), &HELD_SECONDS.to_string()];
        let failed = |error| Failure::Usage(format!("`bench load hold` failed: {error}"));
        let mut child = command.args(arguments).stdout(Stdio::piped()).spawn().map_err(failed)?;
        let mut lines = BufReader::new(child.stdout.take().expect("standard output is piped")).lines();
        let _all_sent = lines.next();
        // All are sent; a moment later all have reached the upstream.
        std::thread::sleep(std::time::Duration::from_secs(1));
        let held = peer.process.resident_kib()?;
        let answered = lines.next().and_then(Result::ok);
        child.wait().map_err(failed)?;
        if answered.as_deref() != Some(number.to_string().as_str()) {
            return Err(Failure::Usage(format!("{}: {number} were held, answered were {answered:?}", peer.name)));
        }
        Ok(held)
    }

    /// Where the peer's processor time goes under the load of requests.
    fn profile(&self, peer: &Peer, folder: &Path) -> Result<Option<Profile>, Failure> {
        let mut command = pinned("1", &self.program);
        let (port, connections, seconds) = (peer.port.to_string(), CONNECTIONS.to_string(), SECONDS.to_string());
        let mut load = Running::start(command.args(["load", &port, "max", &connections, &seconds]))?;
        let profile = Profile::of(peer.process.id(), u64::from(SECONDS) - 1, folder);
        load.wait();
        profile
    }
}

fn record(peers: &[Peer], direct_us: f64, profile: Option<&Profile>) -> Record {
    let figure = |peer: &Peer| [&peer.requests_us, &peer.slow_us, &peer.chunks_us].map(|all| median(all.clone()));
    let floor = figure(&peers[0]);
    let mut result = String::from(
        "| proxy | CPU per request | ratio | at 1,000/s | ratio | CPU per SSE chunk | ratio | added p50 at 1,000/s \
         | memory per request, 1,000 held | 5,000 held |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for peer in peers {
        write!(result, "| {} ", peer.name).expect("a string takes any text");
        for (cost, floor) in figure(peer).iter().zip(floor) {
            write!(result, "| {cost:.1} us | {:.2} ", cost / floor).expect("a string takes any text");
        }
        let (added, held) = (median(peer.p50_us.clone()) - direct_us, &peer.held_kib);
        writeln!(result, "| {added:.0} us | {:.1} KiB | {:.1} KiB |", held[0], held[1])
            .expect("a string takes any text");
    }
    let [request, slow, chunk] = figure(peers.last().expect("Seawall is the last one"));
    let largest = profile.map_or_else(
        || "`perf` is not here or may not look, so the largest cost that remains is not named.".to_owned(),
        |profile| format!("The largest cost that remains: {}.", profile.largest()),
    );
    if let Some(profile) = profile {
        write!(result, "\nWhere Seawall's time goes, under the load of requests:\n\n{}", profile.table(request))
            .expect("a string takes any text");
    }
    Record {
        title: "What a request costs".to_owned(),
        method: format!(
            "Each proxy has one worker, pinned to core 0; upstream and load on core 1. {ROUNDS} rounds, each visits every\n\
             proxy once; medians. CPU is the process's own accounting (`/proc`). Requests: {CONNECTIONS} connections, one\n\
             request after the other for {SECONDS} s, bodies of about 1 KB, answers of 0.4 KB. At {RATE}/s: requests on a\n\
             fixed schedule, latency counted from the scheduled time, the same load straight to the upstream subtracted.\n\
             SSE: {STREAMS} streams of 50 chunks, one each 100 ms. Memory: growth of the resident set per request while\n\
             so many are held, one run each.\n\nSeawall runs its default configuration: keys, limits, metrics, access\n\
             log to a file. nginx writes its access log too. The profile is `perf record` of Seawall."
        ),
        result,
        reading: format!(
            "Seawall costs {:.2} times the bare proxy per request (target of this stage: at most 2; of the overload engine\n\
             with everything on: 1.5), {:.2} times at 1,000/s, where caches are cold for both, and {:.2} times per chunk\n\
             (target 1.2).\n\n{largest}",
            request / floor[0],
            slow / floor[1],
            chunk / floor[2],
        ),
    }
}
