//! `seawall serve`: the router.

use crate::commands::fleet;
use crate::commands::signals::StopSignals;
use crate::{Exit, console};
use clap::Args;
use seawall_config::{Config, Errors, Overrides, SingleUpstream, SystemSource};
use seawall_lab::fleet::FleetHandle;
use seawall_proxy::admin_token::AdminToken;
use seawall_proxy::run::{Drained, Running, StartError};
use seawall_proxy::upstream::credential::IdentityEnvironment;
use secrecy::SecretString;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Routes OpenAI, Azure OpenAI and Anthropic requests over deployments.
///
/// Without --config and --upstream it serves a demo: a simulated fleet of three regions in the same process, models
/// demo-chat and demo-embed, keys demo-key and demo-batch-key.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    seawall serve\n  \
    seawall serve --config seawall.toml\n  \
    seawall serve --upstream https://api.openai.com/v1 --key-env OPENAI_API_KEY")]
pub struct Serve {
    /// The config file.
    #[arg(long, value_name = "FILE", env = "SEAWALL_CONFIG", conflicts_with = "upstream")]
    pub config: Option<PathBuf>,
    /// One upstream instead of a file.
    #[command(flatten)]
    pub upstream: UpstreamArguments,
    /// Where clients connect, instead of what the file says (default 127.0.0.1:8080).
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,
    /// Where operators connect, instead of what the file says (default 127.0.0.1:9090).
    #[arg(long, value_name = "ADDRESS")]
    pub admin: Option<SocketAddr>,
    /// The folder of the program's own files (default seawall-data).
    #[arg(long, value_name = "FOLDER")]
    pub data_dir: Option<PathBuf>,
    /// The token that admin calls which change something must carry (default admin-token in the data folder).
    #[arg(long, value_name = "FILE")]
    pub admin_token_file: Option<PathBuf>,
    /// The demo only: where the simulated fleet answers (default: free ports).
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDRESS", conflicts_with_all = ["config", "upstream"])]
    pub fleet_listen: SocketAddr,
}

/// One upstream, as the command line tells it.
#[derive(Clone, Debug, Args)]
pub struct UpstreamArguments {
    /// Route every model to this one upstream.
    #[arg(long, value_name = "URL")]
    pub upstream: Option<String>,
    /// The environment variable with the upstream's key.
    #[arg(long, value_name = "NAME", requires = "upstream")]
    pub key_env: Option<String>,
    /// The environment variable with the key that clients present (default: demo-key, on loopback only).
    #[arg(long, value_name = "NAME", requires = "upstream")]
    pub client_key_env: Option<String>,
}

impl UpstreamArguments {
    /// The config file that these arguments mean; `None` where they name no upstream.
    pub(crate) fn config_text(&self) -> Option<String> {
        self.upstream.as_deref().map(|url| {
            seawall_config::single_upstream(SingleUpstream {
                url,
                key_env: self.key_env.as_deref(),
                dialect: None,
                client_key_env: self.client_key_env.as_deref(),
            })
        })
    }
}

/// Why `serve` does not start.
#[derive(Debug, thiserror::Error)]
enum ServeError {
    #[error("{}", .0.render(console::is_coloured()))]
    Config(Errors),
    #[error("error: {0}")]
    Fleet(#[from] seawall_lab::fleet::FleetError),
    #[error("error: {0}")]
    Token(#[from] seawall_proxy::admin_token::TokenError),
    #[error("error: {0}")]
    Start(#[from] StartError),
    #[error("error: cannot listen for signals: {0}")]
    Signals(#[from] std::io::Error),
}

impl From<Errors> for ServeError {
    fn from(errors: Errors) -> Self {
        Self::Config(errors)
    }
}

pub(crate) async fn run(serve: Serve) -> Exit {
    match serve_until_stopped(&serve).await {
        Ok(exit) => exit,
        Err(error) => {
            console::message(&error.to_string());
            if matches!(error, ServeError::Config(_)) { Exit::Usage } else { Exit::Failed }
        }
    }
}

async fn serve_until_stopped(serve: &Serve) -> Result<Exit, ServeError> {
    let mut signals = StopSignals::listen()?;
    let overrides = serve.overrides();
    let (config, demo) = match (&serve.config, serve.upstream.config_text()) {
        (Some(file), _) => (seawall_config::load(file, &SystemSource, &overrides)?, None),
        (None, Some(text)) => (seawall_config::parse(&text, "(--upstream)", &SystemSource, &overrides)?, None),
        (None, None) => {
            let (config, fleet) = start_demo(serve, &overrides).await?;
            (config, Some(fleet))
        }
    };
    let token = AdminToken::load_or_create(&config.server().admin_token_file)?;
    let running = seawall_proxy::run::start(config, token, identity()).await?;
    console::message(&banner(&running, demo.as_ref()));
    tokio::select! {
        () = signals.next() => {}
        () = running.drain_asked() => {}
    }
    running.begin_drain();
    console::message("draining: nothing new is taken; stop again to leave at once");
    let exit = tokio::select! {
        drained = running.drain() => match drained {
            Drained::Complete => Exit::Done,
            Drained::Cut(requests) => {
                console::message(&format!("the drain limit was reached: {requests} requests were cut off"));
                Exit::Cut
            }
        },
        () = signals.next() => Exit::Cut,
    };
    if let Some(fleet) = demo {
        fleet.shutdown().await;
    }
    Ok(exit)
}

impl Serve {
    fn overrides(&self) -> Overrides {
        Overrides {
            listen: self.listen,
            admin: self.admin,
            data_dir: self.data_dir.clone(),
            admin_token_file: self.admin_token_file.clone(),
        }
    }
}

/// The fleet first, then the configuration that points at it.
async fn start_demo(serve: &Serve, overrides: &Overrides) -> Result<(Config, FleetHandle), ServeError> {
    // Where the token stands is the configuration's to say, and the fleet needs it before its addresses are known.
    let somewhere = [("demo", SocketAddr::from(([127, 0, 0, 1], 9)))];
    let token_file = Config::demo(&somewhere, overrides)?.server().admin_token_file.clone();
    let token = AdminToken::load_or_create(&token_file)?;
    let fleet = fleet::start(serve.fleet_listen, 1, &token).await?;
    let regions: Vec<(&str, SocketAddr)> =
        fleet.servers().iter().map(|server| (server.region.as_str(), server.address)).collect();
    Ok((Config::demo(&regions, overrides)?, fleet))
}

/// What managed identity needs of the environment.
#[expect(clippy::disallowed_methods, reason = "the program is the place that reads the environment")]
fn identity() -> IdentityEnvironment {
    IdentityEnvironment {
        endpoint: std::env::var("IDENTITY_ENDPOINT").ok(),
        header: std::env::var("IDENTITY_HEADER").ok().map(SecretString::from),
        ..IdentityEnvironment::default()
    }
}

fn banner(running: &Running, demo: Option<&FleetHandle>) -> String {
    let (listen, admin) = (running.listen, running.admin);
    let mut text = format!(
        "seawall {} serves on http://{listen}   admin on http://{admin} (/statusz, /metrics, /livez, /readyz)",
        env!("CARGO_PKG_VERSION")
    );
    if let Some(fleet) = demo {
        text.push_str("\ndemo: three simulated regions in this process\n");
        text.push_str(&fleet::describe(fleet));
        write!(
            text,
            "\n\nTry it from another terminal:\n\n  \
             curl -s {listen}/v1/chat/completions -H 'Authorization: Bearer demo-key' \\\n    \
             -d '{{\"model\":\"demo-chat\",\"messages\":[{{\"role\":\"user\",\"content\":\"hi\"}}]}}'\n\n  \
             python3 -c 'from openai import OpenAI; print(OpenAI(base_url=\"http://{listen}/v1\", \
             api_key=\"demo-key\").chat.completions.create(model=\"demo-chat\", \
             messages=[{{\"role\": \"user\", \"content\": \"hi\"}}]).choices[0].message.content)'\n\n  \
             cargo run --release -- load --target http://{listen} --rate 50 --duration 10s\n"
        )
        .expect("a string takes any text");
    }
    text
}
