//! `seawall fleet`: simulated inference servers on real ports.

use crate::commands::signals::StopSignals;
use crate::{Exit, console};
use clap::Args;
use seawall_lab::fleet::{self, FleetHandle, FleetOptions};
use seawall_proxy::admin_token::AdminToken;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Runs simulated inference servers (three regions) with faults that can be switched on while they run.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    seawall fleet --listen 127.0.0.1:9100\n  \
    curl -s 127.0.0.1:9100/fleet/counters\n  \
    curl -s 127.0.0.1:9100/fleet/faults -H \"Authorization: Bearer $(cat seawall-data/admin-token)\" \\\n    \
      -d '{\"server\":\"eastus\",\"error_percent\":100,\"seconds\":60}'")]
pub struct Fleet {
    /// Where the first server and the fleet's own calls answer; the others take the ports after it (0: free ports).
    #[arg(long, default_value = "127.0.0.1:9100", value_name = "ADDRESS")]
    pub listen: SocketAddr,
    /// The seed of all that is drawn: lengths of answers, texts, shares of errors.
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    pub seed: u64,
    /// The folder of the program's own files, with the token of calls that change something.
    #[arg(long, default_value = "seawall-data", value_name = "FOLDER")]
    pub data_dir: PathBuf,
    /// The token's file, if it is not `admin-token` in the data folder.
    #[arg(long, value_name = "FILE")]
    pub admin_token_file: Option<PathBuf>,
}

pub(crate) async fn run(fleet: Fleet) -> Exit {
    let file = fleet.admin_token_file.unwrap_or_else(|| fleet.data_dir.join("admin-token"));
    let token = match AdminToken::load_or_create(&file) {
        Ok(token) => token,
        Err(error) => {
            console::error(&error.to_string());
            return Exit::Failed;
        }
    };
    let (mut signals, running) = match (StopSignals::listen(), start(fleet.listen, fleet.seed, &token).await) {
        (Ok(signals), Ok(running)) => (signals, running),
        (Err(error), _) => {
            console::error(&format!("cannot listen for signals: {error}"));
            return Exit::Failed;
        }
        (_, Err(error)) => {
            console::error(&error.to_string());
            return Exit::Failed;
        }
    };
    console::message(&format!(
        "fleet of simulated inference servers (token: {})\n{}",
        token.hint(),
        describe(&running)
    ));
    signals.next().await;
    running.shutdown().await;
    Exit::Done
}

/// Starts the demo's fleet.
pub(crate) async fn start(listen: SocketAddr, seed: u64, token: &AdminToken) -> Result<FleetHandle, fleet::FleetError> {
    let mut options = FleetOptions::demo(listen);
    options.seed = seed;
    options.admin_token = Some(token.secret().clone());
    options.token_hint = token.hint();
    fleet::start(options).await
}

/// A line a server, and where the fleet's own calls answer.
pub(crate) fn describe(running: &FleetHandle) -> String {
    let mut text = String::new();
    for server in running.servers() {
        writeln!(text, "  {:<16} http://{}", server.region, server.address).expect("a string takes any text");
    }
    let admin = running.admin_addr();
    write!(text, "  faults           POST http://{admin}/fleet/faults   counters: GET http://{admin}/fleet/counters")
        .expect("a string takes any text");
    text
}
