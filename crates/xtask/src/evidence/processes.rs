//! Processes that a measurement starts, watches and stops.

use crate::{Failure, command, files};
use serde_json::Value;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// Ticks of a processor second in `/proc`, on every Linux that Rust runs on.
const TICKS_PER_SECOND: f64 = 100.0;

/// What the program prints as JSON. It ends with 1 when a check fails, which is for the page to tell.
pub(super) fn answered(command: &mut Command) -> Result<Value, Failure> {
    let line = command::line(command);
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.map_err(|source| Failure::Start { command: line.clone(), source })?;
    if !matches!(output.status.code(), Some(0 | 1)) {
        return Err(Failure::Command { command: line, status: output.status.to_string() });
    }
    serde_json::from_slice(&output.stdout).map_err(|error| Failure::Answer { command: line, reason: error.to_string() })
}

/// A process that is killed when dropped.
#[derive(Debug)]
pub(super) struct Running(Child);

impl Running {
    /// Starts `command` without output.
    pub(super) fn start(command: &mut Command) -> Result<Self, Failure> {
        let shown = command::line(command);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        child.map(Self).map_err(|error| Failure::Usage(format!("`{shown}` does not start: {error}")))
    }

    /// One that was started elsewhere.
    pub(super) const fn of(child: Child) -> Self {
        Self(child)
    }

    /// Its number.
    pub(super) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Waits for its end.
    pub(super) fn wait(&mut self) {
        // One that cannot be waited for has ended.
        drop(self.0.wait());
    }

    /// Asks it to end, so that it ends its own children too, and gives it five seconds.
    pub(super) fn terminate(&mut self) {
        drop(command::output(Command::new("kill").arg(self.0.id().to_string())));
        for _ in 0..100 {
            if self.0.try_wait().is_ok_and(|ended| ended.is_some()) {
                return;
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Processor seconds used so far, all threads together.
    pub(super) fn processor_seconds(&self) -> Result<f64, Failure> {
        let text = files::read(format!("/proc/{}/stat", self.0.id()).as_ref())?;
        // The name in parentheses may hold spaces: fields count from behind it.
        let fields: Vec<&str> = text.rsplit(") ").next().unwrap_or("").split(' ').collect();
        let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
        Ok((ticks(11) + ticks(12)) / TICKS_PER_SECOND)
    }

    /// Resident memory in KiB.
    pub(super) fn resident_kib(&self) -> Result<f64, Failure> {
        let text = files::read(format!("/proc/{}/status", self.0.id()).as_ref())?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
        Ok(line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0.0))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A port that nobody uses now.
pub(super) fn free_port() -> Result<u16, Failure> {
    let found = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    found.map(|address| address.port()).map_err(|error| Failure::Usage(format!("there is no free port: {error}")))
}

/// The first of `count` ports in a row that nobody uses now.
pub(super) fn free_ports(count: u16) -> Result<u16, Failure> {
    let bound = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    for _ in 0..100 {
        let first = free_port()?;
        if first.checked_add(count).is_some() && (first..first + count).all(bound) {
            return Ok(first);
        }
    }
    Err(Failure::Usage(format!("there are no {count} free ports in a row")))
}

/// Waits until something listens on `port`.
pub(super) fn wait_for(port: u16) -> Result<(), Failure> {
    for _ in 0..200 {
        if std::net::TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(50));
    }
    Err(Failure::Usage(format!("nothing listens on port {port} after ten seconds")))
}

/// The middle one of several figures.
pub(super) fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}
