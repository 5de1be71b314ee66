//! `seawall drill`: what an incident would do to a configuration, and which setting decides it.

mod choice;
mod report;
mod runner;
mod text;

use crate::{Exit, console, durations};
use clap::Args;
use report::Report;
use seawall_config::Plan;
use seawall_lab::fleet::FleetOptions;
use seawall_sim::drill::{Assumptions, Ground};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Lets an incident's mechanism happen to your own models, deployments, tenants and limits, in the simulator, and says
/// what would be lost, for whom, for how long, with how many attempts, and which setting decides it.
///
/// Nothing is sent anywhere and no secret is looked up. Without --config it drills the demo of `seawall serve`. Each
/// setting is changed alone, with the same arrivals; the one whose change lowers the loss most is named with its line.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    seawall drill --all --config seawall.toml                    every case of the library\n  \
    seawall drill azure-2026-09-29-metadata --config seawall.toml\n  \
    seawall drill --all --config seawall.toml --load 50 --service 800ms --replicas 3\n  \
    seawall drill --all --config seawall.toml --max-loss 5       ends with 1 if more than 5% would be lost\n  \
    seawall drill --mechanisms mine.toml --config seawall.toml   mechanisms of your own")]
pub struct Drill {
    /// The case: the name of a folder of the case library.
    #[arg(value_name = "CASE", conflicts_with = "all")]
    pub case: Option<String>,
    /// Every case of the library.
    #[arg(long)]
    pub all: bool,
    /// A drill file of your own instead of a case.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["case", "all"])]
    pub mechanisms: Option<PathBuf>,
    /// The config file.
    #[arg(long, value_name = "FILE", env = "SEAWALL_CONFIG")]
    pub config: Option<PathBuf>,
    /// Part of each model's capacity that is used in quiet times, evenly over the tenants that may use it.
    #[arg(long, default_value = "70", value_name = "PERCENT", value_parser = load)]
    pub load: f64,
    /// Mean time to serve a request.
    #[arg(long, default_value = "4s", value_name = "TIME", value_parser = service)]
    pub service: Duration,
    /// Requests at once that a deployment serves whose size the file does not tell.
    #[arg(long, default_value_t = 20, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub slots: u32,
    /// Processes of Seawall.
    #[arg(long, default_value_t = 2, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub replicas: u32,
    /// How clients retry: a measured client; `seawall sim profiles` lists them.
    #[arg(long, default_value = "openai-python", value_name = "NAME")]
    pub profile: String,
    /// The tenant that a mechanism begins with (default: the one with the most requests).
    #[arg(long, value_name = "NAME")]
    pub tenant: Option<String>,
    /// The seed of everything that is drawn.
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    pub seed: u64,
    /// End with 1 if any drill loses more than this part of the requests.
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub max_loss: Option<f64>,
    /// Print everything as JSON.
    #[arg(long)]
    pub json: bool,
}

fn load(text: &str) -> Result<f64, String> {
    let load: f64 = text.parse().map_err(|_| "not a number: write for example `70`".to_owned())?;
    if (1.0..=1000.0).contains(&load) { Ok(load) } else { Err("it must lie between 1 and 1000".to_owned()) }
}

fn percent(text: &str) -> Result<f64, String> {
    let percent: f64 = text.parse().map_err(|_| "not a number: write for example `5`".to_owned())?;
    if (0.0..=100.0).contains(&percent) { Ok(percent) } else { Err("it must lie between 0 and 100".to_owned()) }
}

fn service(text: &str) -> Result<Duration, String> {
    let service = durations::parse(text)?;
    let fits = (Duration::from_millis(1)..=Duration::from_hours(1)).contains(&service);
    if fits { Ok(service) } else { Err("it must lie between 1ms and 1h".to_owned()) }
}

/// A drill that was not made: of a wrong call or a wrong file, or of something that broke.
struct Refused(Exit, String);

impl Refused {
    fn usage(message: String) -> Self {
        Self(Exit::Usage, message)
    }
}

pub(crate) fn run(drill: &Drill) -> Exit {
    match drilled(drill) {
        Ok(exit) => exit,
        Err(Refused(exit, message)) => {
            console::message(&message);
            exit
        }
    }
}

fn drilled(drill: &Drill) -> Result<Exit, Refused> {
    let cases = choice::cases(drill).map_err(Refused::usage)?;
    let plan = plan(drill).map_err(Refused::usage)?;
    let ground = Ground::new(&plan, drill.assumptions()).map_err(|error| Refused::usage(format!("error: {error}")))?;
    let results = runner::run(&ground, &cases).map_err(|error| Refused(Exit::Failed, format!("error: {error}")))?;
    let report = Report::new(&ground, drill.config.is_some(), drill.max_loss, results);
    if drill.json {
        console::result(&report.json());
    } else {
        console::result(&text::text(&report, console::is_result_coloured()));
    }
    Ok(if report.passes() { Exit::Done } else { Exit::Failed })
}

impl Drill {
    fn assumptions(&self) -> Assumptions {
        Assumptions {
            load_percent: self.load,
            service: u64::try_from(self.service.as_nanos()).unwrap_or(u64::MAX),
            slots: self.slots,
            replicas: self.replicas,
            profile: self.profile.clone(),
            tenant: self.tenant.clone(),
            seed: self.seed,
        }
    }
}

/// The file, or the demo as `seawall serve` makes it. An error is what people read.
fn plan(drill: &Drill) -> Result<Plan, String> {
    let plan = drill.config.as_ref().map_or_else(
        || {
            let nowhere = SocketAddr::from(([127, 0, 0, 1], 9));
            let fleet = FleetOptions::demo(nowhere);
            let regions: Vec<(&str, SocketAddr)> =
                fleet.servers.iter().map(|server| (server.region.as_str(), nowhere)).collect();
            Plan::parse(&seawall_config::demo(&regions), "(demo)")
        },
        |file| Plan::load(file),
    );
    plan.map_err(|errors| errors.render(console::is_coloured()))
}
