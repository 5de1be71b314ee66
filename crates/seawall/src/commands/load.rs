//! `seawall load`: an open-loop load, and what came of it.

use crate::commands::signals::StopSignals;
use crate::{Exit, console, durations};
use clap::Args;
use seawall_lab::load::{Arrivals, Client, Endpoint, Limit, LoadOptions, Mix, Model, ProgressLine, Size, Tenant};
use std::time::Duration;

/// Sends load at a fixed rate, whatever comes back (open loop: latency counts from the scheduled time), and reports
/// successes, latencies, times to the first token, and attempts.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    seawall load --rate 50 --duration 10s\n  \
    seawall load --rate 20 --stream-share 0.5 --profiles openai-python:70,immediate:20,vercel-ai:10\n  \
    seawall load --rate 5 --endpoint embeddings --models demo-embed --json")]
pub struct Load {
    /// Base URL, plain http.
    #[arg(long, default_value = "http://127.0.0.1:8080", value_name = "URL")]
    pub target: String,
    /// Permit a target that is not on this machine.
    #[arg(long)]
    pub allow_remote: bool,
    /// What is called: chat, completions, embeddings, responses or messages.
    #[arg(long, default_value = "chat", value_name = "NAME")]
    pub endpoint: Endpoint,
    /// Arrivals per second.
    #[arg(long, default_value_t = 10.0, value_name = "PER_SECOND")]
    pub rate: f64,
    /// How arrivals are spaced: constant or poisson.
    #[arg(long, default_value = "constant", value_name = "NAME")]
    pub arrivals: Arrivals,
    /// For how long, such as `30s`.
    #[arg(long, default_value = "30s", value_parser = durations::parse, value_name = "TIME")]
    pub duration: Duration,
    /// Stop after this many arrivals instead.
    #[arg(long, value_name = "NUMBER", conflicts_with = "duration")]
    pub count: Option<u64>,
    /// Arrivals of this first while are sent but not reported.
    #[arg(long, default_value = "0s", value_parser = durations::parse, value_name = "TIME")]
    pub warm_up: Duration,
    /// Sizes and their shares, such as `small:80,large:20`, or `512/64` for tokens in and out.
    #[arg(long, default_value = "small", value_name = "MIX")]
    pub sizes: Mix<Size>,
    /// Share of requests that ask for a stream, 0 to 1.
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub stream_share: f64,
    /// Models and their shares.
    #[arg(long, default_value = "demo-chat", value_name = "MIX")]
    pub models: Mix<Model>,
    /// Tenants with their keys and shares, such as `demo=demo-key:80,batch=demo-batch-key:20`.
    #[arg(long, default_value = "demo=demo-key", value_name = "MIX")]
    pub tenants: Mix<Tenant>,
    /// How clients retry: names of measured clients and their shares, `immediate`, `seven-by-seven` or `none`.
    #[arg(long, default_value = "openai-python", value_name = "MIX")]
    pub profiles: Mix<Client>,
    /// How long a caller waits for its answer, retries included.
    #[arg(long, default_value = "60s", value_parser = durations::parse, value_name = "TIME")]
    pub patience: Duration,
    /// The longest silence within an attempt, if not the client's own default.
    #[arg(long, value_parser = durations::parse, value_name = "TIME")]
    pub attempt_timeout: Option<Duration>,
    /// The most calls at once; arrivals beyond it are counted as not sent.
    #[arg(long, default_value_t = 10_000, value_name = "NUMBER")]
    pub max_in_flight: usize,
    /// Decides the schedule, every pick and every backoff.
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    pub seed: u64,
    /// Print the report as JSON.
    #[arg(long)]
    pub json: bool,
}

impl Load {
    fn options(&self) -> LoadOptions {
        let mut options = LoadOptions::new(&self.target);
        options.allow_remote = self.allow_remote;
        options.endpoint = self.endpoint;
        options.rate_per_second = self.rate;
        options.arrivals = self.arrivals;
        options.limit = self.count.map_or(Limit::Duration(self.duration), Limit::Count);
        options.warm_up = self.warm_up;
        options.sizes = self.sizes.clone();
        options.stream_share = self.stream_share;
        options.models = self.models.clone();
        options.tenants = self.tenants.clone();
        options.profiles = self.profiles.clone();
        options.patience = self.patience;
        options.attempt_timeout = self.attempt_timeout;
        options.max_in_flight = self.max_in_flight;
        options.seed = self.seed;
        options
    }
}

pub(crate) async fn run(load: Load) -> Exit {
    let mut signals = match StopSignals::listen() {
        Ok(signals) => signals,
        Err(error) => {
            console::error(&format!("cannot listen for signals: {error}"));
            return Exit::Failed;
        }
    };
    let line = ProgressLine::stderr();
    let ran = seawall_lab::load::run(load.options(), signals.next(), |progress| line.update(progress)).await;
    line.finish();
    match ran {
        Ok(report) if load.json => {
            let json = serde_json::to_string_pretty(&report).expect("plain data has a JSON form");
            console::result(&(json + "\n"));
            Exit::Done
        }
        Ok(report) => {
            console::result(&report.render());
            Exit::Done
        }
        Err(error) => {
            console::error(&error.to_string());
            Exit::Usage
        }
    }
}
