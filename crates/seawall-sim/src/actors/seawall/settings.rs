//! What Seawall in the place of a router is told: settings that were given as a whole, or else the same servers and
//! models as the router, and the engine's own defaults.

use super::super::Surroundings;
use crate::calls::ActorId;
use crate::construct::Given;
use crate::random::nanos;
use seawall_cases::scenario::Router;
use seawall_core::id::{DeploymentId, PoolId, TenantId};
use seawall_core::settings::{DeploymentSettings, Mode, PoolSettings, QueueSettings, Settings, TenantSettings};

/// The settings of an engine, and what its numbers stand for in the simulator.
#[derive(Debug)]
pub(super) struct Told {
    /// The settings; the seed is still to be set, each engine has its own.
    pub(super) settings: Settings,
    /// The actor that each deployment stands for, by the deployment's number.
    pub(super) targets: Vec<ActorId>,
    /// The tenant that each workload stands for, by the workload's number.
    tenants: Vec<TenantId>,
    /// The pool that each model stands for, by the model's number.
    pools: Vec<PoolId>,
}

impl Told {
    /// The tenant that a workload stands for; one that the engine does not know where nothing was told of it.
    pub(super) fn tenant(&self, workload: u16) -> TenantId {
        self.tenants.get(usize::from(workload)).copied().unwrap_or(TenantId(u32::MAX))
    }

    /// The pool that a model stands for; one that the engine does not know where nothing was told of it.
    pub(super) fn pool(&self, model: u16) -> PoolId {
        self.pools.get(usize::from(model)).copied().unwrap_or(PoolId(u32::MAX))
    }
}

/// The settings of an engine in the place of this router.
pub(super) fn told(router: &Router, around: &Surroundings<'_>, mode: Mode) -> Told {
    let mut told = around.given.map_or_else(|| of_router(router, around, mode), |given| of_given(given, around));
    if let Some(protection) = around.without {
        for pool in &mut told.settings.pools {
            pool.protections = pool.protections.without(protection);
        }
    }
    told
}

/// What was given: its modes, its tenants and its deployments are its own. A workload or a model that it does not know
/// gets a number that no engine knows, and so the answer that there is no such model.
fn of_given(given: &Given, around: &Surroundings<'_>) -> Told {
    let settings = given.settings.clone();
    let tenant = |workload: &&str| given.tenants.get(*workload).copied().unwrap_or(TenantId(u32::MAX));
    let pool = |model: &&str| given.pools.get(*model).copied().unwrap_or(PoolId(u32::MAX));
    Told {
        settings,
        targets: given.servers.iter().map(|server| around.id(server)).collect(),
        tenants: around.workloads.iter().map(tenant).collect(),
        pools: around.models.iter().map(pool).collect(),
    }
}

/// One pool for each model, one deployment for each server of a model, one tenant for each workload. The deployments are
/// of the standard kind and their size is not told: the engine has to find it. What nobody told is the engine's default,
/// but for the line: it is never longer than an instance's memory.
fn of_router(router: &Router, around: &Surroundings<'_>, mode: Mode) -> Told {
    let mut deployments = Vec::new();
    let mut targets = Vec::new();
    let servers: Vec<(&str, Vec<u16>)> = router.to.iter().map(|to| (to.as_str(), around.models_behind(to))).collect();
    let memory = nanos(f64::from(router.memory_in_flight) * around.scale);
    let models = around.models.iter().enumerate();
    let pools = models.map(|(index, model)| {
        let pool = PoolId::from_index(index);
        let first = deployments.len();
        for (server, models) in &servers {
            if models.iter().any(|number| usize::from(*number) == index) {
                deployments.push(deployment(format!("{server}/{model}"), pool, region(server, around)));
                targets.push(around.id(server));
            }
        }
        pool_settings(model, (first..deployments.len()).map(DeploymentId::from_index).collect(), memory, mode)
    });
    let mut settings = Settings { pools: pools.collect(), deployments, tenants: Vec::new(), seed: 0 };
    let all: Vec<PoolId> = (0..settings.pools.len()).map(PoolId::from_index).collect();
    settings.tenants = around.workloads.iter().map(|workload| tenant(workload, &all, mode)).collect();
    let tenants = (0..settings.tenants.len()).map(TenantId::from_index).collect();
    Told { settings, targets, tenants, pools: all }
}

fn region<'a>(server: &str, around: &Surroundings<'a>) -> &'a str {
    let pools = around.scenario.model_pool.iter().map(|pool| (&pool.name, &pool.region));
    let mut all = pools.chain(around.scenario.engine.iter().map(|engine| (&engine.name, &engine.region)));
    all.find(|(name, _)| *name == server).map_or("", |(_, region)| region.as_str())
}

fn deployment(name: String, pool: PoolId, region: &str) -> DeploymentSettings {
    DeploymentSettings { region: region.to_owned(), ..DeploymentSettings::new(name, pool) }
}

fn pool_settings(model: &str, deployments: Vec<DeploymentId>, memory: u64, mode: Mode) -> PoolSettings {
    let queue = QueueSettings::default();
    let most = u32::try_from(memory).unwrap_or(u32::MAX).max(1);
    PoolSettings {
        queue: QueueSettings { max_waiting: queue.max_waiting.min(most), ..queue },
        mode,
        ..PoolSettings::new(model, deployments)
    }
}

fn tenant(workload: &str, pools: &[PoolId], mode: Mode) -> TenantSettings {
    TenantSettings { mode, ..TenantSettings::new(workload, pools.to_vec()) }
}
