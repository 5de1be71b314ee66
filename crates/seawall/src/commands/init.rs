//! `seawall init`: a commented config file to start from.

use crate::commands::serve::UpstreamArguments;
use crate::{Exit, console};
use clap::Args;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

/// Writes a commented config file: what `seawall serve --upstream` runs, to go on from.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    seawall init\n  \
    seawall init --upstream https://api.openai.com/v1 --key-env OPENAI_API_KEY --output -")]
pub struct Init {
    /// The upstream's address and credential.
    #[command(flatten)]
    pub upstream: UpstreamArguments,
    /// Where to write it; `-` for standard output. An existing file is never overwritten.
    #[arg(long, default_value = "seawall.toml", value_name = "FILE")]
    pub output: PathBuf,
}

const EXAMPLE_UPSTREAM: &str = "https://api.openai.com/v1";
const EXAMPLE_KEY: &str = "OPENAI_API_KEY";

pub(crate) fn run(init: &Init) -> Exit {
    let mut upstream = init.upstream.clone();
    if upstream.upstream.is_none() {
        upstream.upstream = Some(EXAMPLE_UPSTREAM.to_owned());
        upstream.key_env.get_or_insert_with(|| EXAMPLE_KEY.to_owned());
    }
    let Some(text) = upstream.config_text() else { return Exit::Usage };
    if init.output.as_os_str() == "-" {
        console::result(&text);
        return Exit::Done;
    }
    let file = init.output.display();
    let written = OpenOptions::new().write(true).create_new(true).open(&init.output);
    match written.and_then(|mut opened| opened.write_all(text.as_bytes())) {
        Ok(()) => {
            console::message(&format!(
                "wrote {file}. Next:\n  seawall check --config {file}\n  seawall serve --config {file}"
            ));
            Exit::Done
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            console::error(&format!("{file} exists already: choose another name with `--output`, or `--output -`"));
            Exit::Failed
        }
        Err(error) => {
            console::error(&format!("cannot write {file}: {error}"));
            Exit::Failed
        }
    }
}
