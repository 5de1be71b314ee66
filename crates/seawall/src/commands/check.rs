//! `seawall check`: every mistake of a config file at once.

use crate::{Exit, console};
use clap::Args;
use seawall_config::{Overrides, SystemSource};
use std::path::PathBuf;

/// Checks a config file and reports all of its mistakes at once, each with its place and a remedy.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  seawall check --config seawall.toml\n  seawall check --config seawall.toml --json"
)]
pub struct Check {
    /// The file.
    #[arg(long, value_name = "FILE", env = "SEAWALL_CONFIG")]
    pub config: PathBuf,
    /// Also look up every secret that the file names: environment variables and files.
    #[arg(long)]
    pub secrets: bool,
    /// Print the mistakes as JSON.
    #[arg(long)]
    pub json: bool,
}

pub(crate) fn run(check: &Check) -> Exit {
    let overrides = Overrides::default();
    let checked = if check.secrets {
        seawall_config::load(&check.config, &SystemSource, &overrides).map(drop)
    } else {
        seawall_config::check_file(&check.config, &overrides)
    };
    match checked {
        Ok(()) if check.json => {
            console::result("{\"ok\":true,\"problems\":[]}\n");
            Exit::Done
        }
        Ok(()) => {
            let without = if check.secrets { "" } else { " (secrets were not looked up: add --secrets)" };
            console::message(&format!("{}: ok{without}", check.config.display()));
            Exit::Done
        }
        Err(errors) if check.json => {
            console::result(&(errors.to_json() + "\n"));
            Exit::Usage
        }
        Err(errors) => {
            console::message(&errors.render(console::is_coloured()));
            Exit::Usage
        }
    }
}
