//! `cargo xtask test`: every test, with the tools that the tests need.

use crate::repository::Repository;
use crate::tools::{self, Clients, rust};
use crate::{Failure, command, files};
use std::path::PathBuf;

/// The interpreter with the Python clients, for the tests.
pub const PYTHON: &str = "SEAWALL_TEST_PYTHON";
/// The folder of the Node project with the clients, for the tests.
pub const NODE_PROJECT: &str = "SEAWALL_TEST_NODE_PROJECT";
/// The program that uses the Rust client, for the tests.
pub const ASYNC_OPENAI: &str = "SEAWALL_TEST_ASYNC_OPENAI";
/// Test programs that need the clients are named `clients` or `clients_...`, wherever they are.
const CLIENT_TESTS: &str = "binary(/^clients/)";
const CLIENT_PREFIX: &str = "clients";

/// What to run.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Options {
    /// Leave out the tests that run real clients, and do not install these
    #[arg(long)]
    pub no_clients: bool,
    /// Run only the tests whose names contain one of these
    pub filters: Vec<String>,
}

/// Installs what is missing and runs the tests; documentation tests too, unless filters are given.
pub fn run(repository: &Repository, options: &Options) -> Result<(), Failure> {
    let nextest = rust::install(repository, rust::NEXTEST)?;
    let clients = if options.no_clients { None } else { Some(tools::clients(repository)?) };
    let mut tests = rust::start(rust::NEXTEST, &nextest);
    tests.current_dir(repository.root()).args(arguments(options, has_client_tests(repository)?));
    if let Some(Clients { python, node_project, async_openai }) = clients {
        tests.env(PYTHON, python).env(NODE_PROJECT, node_project).env(ASYNC_OPENAI, async_openai);
    }
    command::run(&mut tests)?;
    if options.filters.is_empty() {
        command::run(command::cargo().current_dir(repository.root()).args([
            "test",
            "--workspace",
            "--doc",
            "--quiet",
        ]))?;
    }
    Ok(())
}

/// The runner refuses a filter that matches no program, so it is given only if there is one.
fn has_client_tests(repository: &Repository) -> Result<bool, Failure> {
    for folder in files::entries(&repository.path("crates"))? {
        let tests = files::entries(&folder.join("tests"))?;
        let named =
            |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(CLIENT_PREFIX));
        if tests.iter().any(named) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn arguments(options: &Options, has_client_tests: bool) -> Vec<String> {
    let mut arguments: Vec<String> = ["run", "--workspace", "--no-fail-fast"].map(str::to_owned).into();
    if options.no_clients && has_client_tests {
        arguments.extend(["--filterset".to_owned(), format!("not {CLIENT_TESTS}")]);
    }
    arguments.extend(options.filters.iter().cloned());
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_clients_their_tests_are_left_out() {
        let options = Options { no_clients: true, filters: vec!["routing".to_owned()] };
        let line = arguments(&options, true).join(" ");
        assert_eq!(line, "run --workspace --no-fail-fast --filterset not binary(/^clients/) routing");
        assert_eq!(arguments(&options, false).join(" "), "run --workspace --no-fail-fast routing");
    }

    #[test]
    fn client_tests_are_found_by_their_names() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let repository = Repository::at(folder.path());
        files::write(&repository.path("crates/a/tests/serve.rs"), "").expect("the folder can be written");
        assert!(!has_client_tests(&repository).expect("the folder can be listed"));
        files::write(&repository.path("crates/b/tests/clients/main.rs"), "").expect("the folder can be written");
        assert!(has_client_tests(&repository).expect("the folder can be listed"));
    }

    #[test]
    fn everything_runs_by_default() {
        assert_eq!(arguments(&Options::default(), true).join(" "), "run --workspace --no-fail-fast");
    }
}
