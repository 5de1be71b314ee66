//! What a drill happens to: a user's settings, and what has to be assumed about the rest of the world.

use crate::actors::number;
use crate::random::nanos;
use crate::{Nanos, SECOND};
use seawall_cases::scenario::Span;
use seawall_config::{OverloadStatus, Plan, RefusalWording};
use seawall_core::id::DeploymentId;
use seawall_core::settings::{Capacity, Settings};
use seawall_model::profile::Profile;
use serde::Serialize;

/// New requests a second that are simulated at the most. Larger configurations are simulated in small: rates, sizes,
/// lines and floors in proportion.
const MOST_PER_SECOND: f64 = 50.0;

/// What the file does not say.
#[derive(Clone, Debug, PartialEq)]
pub struct Assumptions {
    /// Load of each model's capacity in quiet times, in percent.
    pub load_percent: f64,
    /// Mean time to serve a request.
    pub service: Nanos,
    /// Requests at once that a deployment serves whose size is not told.
    pub slots: u32,
    /// Processes of Seawall.
    pub replicas: u32,
    /// How clients retry: a name of the table of measured profiles.
    pub profile: String,
    /// The tenant that a mechanism begins with; `None`: the one with the most requests.
    pub tenant: Option<String>,
    /// The seed of all that is drawn.
    pub seed: u64,
}

impl Default for Assumptions {
    fn default() -> Self {
        Self {
            load_percent: 70.0,
            service: 4 * SECOND,
            slots: 20,
            replicas: 2,
            profile: "openai-python".to_owned(),
            tenant: None,
            seed: 1,
        }
    }
}

/// The settings of a run and the servers behind them, in the user's own numbers.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// What each engine is told.
    pub settings: Settings,
    /// Requests at once that each deployment serves, by its number.
    pub slots: Vec<u32>,
    /// The region of each deployment, by its number; where the file names none, its host.
    pub regions: Vec<String>,
    /// Connections of clients at once that a process takes.
    pub connections: u32,
}

/// The requests of one tenant for one model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flow {
    /// The tenant's number.
    pub tenant: usize,
    /// The pool's number.
    pub pool: usize,
    /// New requests a second.
    pub per_second: f64,
    /// The same, as simulated.
    pub simulated_per_second: f64,
}

/// A user's file with everything that was assumed.
#[derive(Clone, Debug)]
pub struct Ground<'a> {
    /// The file.
    pub plan: &'a Plan,
    /// What was assumed.
    pub assumptions: Assumptions,
    /// The file as it is.
    pub setup: Setup,
    /// Who asks for what.
    pub flows: Vec<Flow>,
    /// The tenant that a mechanism begins with.
    pub tenant: usize,
    /// Simulated volume as a part of the real one.
    pub scale: f64,
    pub(super) profile: &'static Profile,
}

impl<'a> Ground<'a> {
    /// A checked file under these assumptions. An error says which of them cannot be.
    pub fn new(plan: &'a Plan, assumptions: Assumptions) -> Result<Self, String> {
        let profile = Profile::by_name(&assumptions.profile).ok_or_else(|| {
            let names: Vec<&str> = Profile::ALL.iter().map(|profile| profile.name).collect();
            format!("there is no retry profile `{}`; there are {}", assumptions.profile, names.join(", "))
        })?;
        let setup = Setup::of(plan, assumptions.slots);
        let total: f64 = setup.slots.iter().map(|slots| f64::from(*slots)).sum();
        let scale = (MOST_PER_SECOND / assumptions.per_second(total)).min(1.0);
        let flows = flows(&setup, &assumptions, scale);
        let tenant = storming(&setup, &flows, assumptions.tenant.as_deref())?;
        Ok(Self { plan, assumptions, setup, flows, tenant, scale, profile })
    }

    /// The name of the tenant that a mechanism begins with.
    pub fn tenant_name(&self) -> &str {
        &self.setup.settings.tenants[self.tenant].name
    }

    /// What had to be assumed that this file could have said, and what the figures leave out, a sentence each.
    pub fn notes(&self) -> Vec<String> {
        let settings = &self.setup.settings;
        let names = |wanted: &dyn Fn(usize) -> bool| {
            let all = settings.deployments.iter().enumerate().filter(|(index, _)| wanted(*index));
            all.map(|(_, deployment)| deployment.name.as_str()).collect::<Vec<_>>()
        };
        let mut notes = Vec::new();
        let untold = names(&|index| settings.deployments[index].capacity.size().is_none());
        if !untold.is_empty() {
            let slots = self.assumptions.slots;
            notes.push(format!("no size is told of {}: {slots} requests at once each are assumed", listed(&untold)));
        }
        let nowhere = names(&|index| settings.deployments[index].region.is_empty());
        if !nowhere.is_empty() {
            notes.push(format!("no region is told of {}: the host of each stands for it", listed(&nowhere)));
        }
        let replicas = self.assumptions.replicas;
        if replicas > 1 && untold.len() < settings.deployments.len() {
            notes.push(format!(
                "each of the {replicas} processes keeps to a told size by itself: together they may send a deployment \
                 {replicas} times as much, and it refuses what it has no room for"
            ));
        }
        if self.scale < 1.0 {
            let percent = self.scale * 100.0;
            notes.push(format!(
                "volumes are simulated at {percent:.2}% of their size: rates, sizes, lines and floors in proportion"
            ));
        }
        let server = self.plan.server();
        let is_worded = server.refusal_wording != RefusalWording::Uniform;
        if is_worded || server.overload_status != OverloadStatus::TooManyRequests {
            notes.push("refusals are simulated as 429 in the uniform wording, whatever `[server]` says".to_owned());
        }
        notes
    }
}

/// The first few of a list of names.
fn listed(names: &[&str]) -> String {
    const MOST: usize = 4;
    let shown = names.iter().take(MOST).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    if names.len() > MOST { format!("{shown} and {} more", names.len() - MOST) } else { shown }
}

impl Assumptions {
    /// New requests a second that load so many slots as assumed.
    fn per_second(&self, slots: f64) -> f64 {
        slots * self.load_percent / 100.0 / crate::actors::number_of(self.service) * crate::actors::number_of(SECOND)
    }

    /// The service time as text.
    pub fn service_text(&self) -> String {
        Span { nanos: self.service }.to_string()
    }
}

/// Everybody who may use a model asks for an equal part of what loads it.
fn flows(setup: &Setup, assumptions: &Assumptions, scale: f64) -> Vec<Flow> {
    let mut flows = Vec::new();
    for (tenant, settings) in setup.settings.tenants.iter().enumerate() {
        for pool in settings.pools.iter().map(|pool| pool.index()) {
            let users = setup.settings.tenants.iter();
            let users = users.filter(|other| other.pools.iter().any(|other| other.index() == pool)).count();
            let slots = |scale: f64| {
                let of_pool = &setup.settings.pools[pool].deployments;
                of_pool.iter().map(|id| f64::from(scaled(setup.slots[id.index()], scale))).sum::<f64>()
            };
            let each = |slots| assumptions.per_second(slots) / number(users.max(1));
            flows.push(Flow { tenant, pool, per_second: each(slots(1.0)), simulated_per_second: each(slots(scale)) });
        }
    }
    flows
}

fn storming(setup: &Setup, flows: &[Flow], told: Option<&str>) -> Result<usize, String> {
    let tenants = &setup.settings.tenants;
    if let Some(name) = told {
        return tenants.iter().position(|tenant| tenant.name == name).ok_or_else(|| {
            let names: Vec<String> = tenants.iter().map(|tenant| format!("`{}`", tenant.name)).collect();
            format!("there is no tenant `{name}`; the tenants of the file are {}", names.join(", "))
        });
    }
    let rate =
        |tenant: usize| -> f64 { flows.iter().filter(|flow| flow.tenant == tenant).map(|flow| flow.per_second).sum() };
    // The first of those that ask for the most.
    let largest = (0..tenants.len()).rev().max_by(|left, right| rate(*left).total_cmp(&rate(*right)));
    largest.ok_or_else(|| "the file has no tenant, so nobody sends a request".to_owned())
}

/// A whole number in proportion; at least 1.
pub(super) fn scaled(count: u32, scale: f64) -> u32 {
    u32::try_from(nanos(libm::round(f64::from(count) * scale))).unwrap_or(u32::MAX).max(1)
}

impl Setup {
    fn of(plan: &Plan, slots: u32) -> Self {
        let settings = plan.core().clone();
        let deployments = settings.deployments.iter().enumerate();
        let region = |(index, deployment): (usize, &seawall_core::settings::DeploymentSettings)| {
            if deployment.region.is_empty() {
                return plan.host(DeploymentId::from_index(index)).to_owned();
            }
            deployment.region.clone()
        };
        Self {
            slots: settings.deployments.iter().map(|one| one.capacity.size().unwrap_or(slots)).collect(),
            regions: deployments.map(region).collect(),
            connections: plan.server().max_connections,
            settings,
        }
    }

    /// The same in small.
    pub(super) fn in_small(&self, scale: f64) -> Self {
        if scale >= 1.0 {
            return self.clone();
        }
        let mut small = self.clone();
        small.slots.iter_mut().for_each(|slots| *slots = scaled(*slots, scale));
        small.connections = scaled(small.connections, scale);
        for deployment in &mut small.settings.deployments {
            deployment.capacity = match deployment.capacity {
                Capacity::Provisioned { size } => Capacity::Provisioned { size: scaled(size, scale) },
                Capacity::Standard { size } => Capacity::Standard { size: size.map(|size| scaled(size, scale)) },
            };
        }
        for pool in &mut small.settings.pools {
            // A line or a floor of nothing stays one, and a floor may become one.
            if pool.queue.max_waiting > 0 {
                pool.queue.max_waiting = scaled(pool.queue.max_waiting, scale);
            }
            let floor = libm::round(f64::from(pool.retry.floor_per_second) * scale);
            pool.retry.floor_per_second = u32::try_from(nanos(floor)).unwrap_or(u32::MAX);
        }
        small
    }

    /// The slots of a pool.
    pub(super) fn slots_of(&self, pool: usize) -> u32 {
        self.settings.pools[pool].deployments.iter().map(|id| self.slots[id.index()]).sum()
    }

    /// The deployment of a pool with the most slots, the first of equals; `None`: it has none.
    pub(super) fn largest_of(&self, pool: usize) -> Option<DeploymentId> {
        let deployments = self.settings.pools[pool].deployments.iter().rev();
        deployments.copied().max_by_key(|id| self.slots[id.index()])
    }

    /// The region with the most slots, the first of equals.
    pub fn largest_region(&self) -> Option<&str> {
        let slots = |region: &String| -> u64 {
            let of_region = self.regions.iter().zip(&self.slots).filter(|(other, _)| *other == region);
            of_region.map(|(_, slots)| u64::from(*slots)).sum()
        };
        self.regions.iter().rev().max_by_key(|region| slots(region)).map(String::as_str)
    }
}

/// The assumptions as a program reads them.
#[derive(Clone, Debug, Serialize)]
pub struct Told<'a> {
    /// Percent of the capacity that is used in quiet times.
    pub load_percent: f64,
    /// Mean time to serve a request, in seconds.
    pub service_seconds: f64,
    /// Requests at once of a deployment whose size is not told.
    pub slots: u32,
    /// Processes of Seawall.
    pub replicas: u32,
    /// How clients retry.
    pub profile: &'a str,
    /// The tenant that a mechanism begins with.
    pub tenant: &'a str,
    /// The seed.
    pub seed: u64,
    /// Simulated volume as a part of the real one.
    pub scale: f64,
}

impl Ground<'_> {
    /// The assumptions as a program reads them.
    pub fn told(&self) -> Told<'_> {
        let assumptions = &self.assumptions;
        Told {
            load_percent: assumptions.load_percent,
            service_seconds: crate::actors::number_of(assumptions.service) / crate::actors::number_of(SECOND),
            slots: assumptions.slots,
            replicas: assumptions.replicas,
            profile: &assumptions.profile,
            tenant: self.tenant_name(),
            seed: assumptions.seed,
            scale: self.scale,
        }
    }
}
