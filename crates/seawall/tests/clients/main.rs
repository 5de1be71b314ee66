//! The real clients from their registries against the program, and a real inference server behind it.
//!
//! `cargo xtask test` installs the clients and tells the tests where they are.
#![expect(clippy::panic, reason = "what a test helper does not find fails the test that asked for it")]

mod contract;
mod leaving;
#[path = "../program/process.rs"]
#[expect(dead_code, reason = "shared with the tests of the program, which use more of it")]
mod process;
mod real_server;
mod sdks;
mod stacked;
mod upstream;

use std::path::PathBuf;
use std::process::Command;

/// A script of this folder, run by the Python that has the clients.
fn python(script: &str) -> Command {
    let mut command = Command::new(tool("SEAWALL_TEST_PYTHON"));
    command.arg(scripts().join(script)).env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// A script of this folder, run by Node with the clients' packages.
fn node(script: &str) -> Command {
    let mut command = Command::new("node");
    // Modules are looked up from the script's own folder: it is read from standard input inside the project instead.
    command.current_dir(tool("SEAWALL_TEST_NODE_PROJECT")).arg("--input-type=module");
    command.arg("--eval").arg(std::fs::read_to_string(scripts().join(script)).expect("the script is there"));
    command
}

fn tool(variable: &str) -> PathBuf {
    std::env::var_os(variable)
        .unwrap_or_else(|| {
            panic!("{variable} is not set: run the tests by `cargo xtask test`, which installs the clients")
        })
        .into()
}

fn scripts() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/clients/scripts")
}

/// Ends the program as an operator does; it must end well.
fn stop(serve: process::Serve) {
    serve.signal("TERM");
    assert_eq!(serve.end().code(), Some(0));
}

/// Runs a client's script to its end; its last line must be `ok`.
fn run(mut command: Command) {
    let output = command.output().expect("the client runs");
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.trim_end().ends_with("ok"), "{out}\n{error}");
}
