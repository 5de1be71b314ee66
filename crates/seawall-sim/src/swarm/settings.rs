//! Random settings of Seawall's engine for a random world.

use super::dice::Dice;
use super::topology::Topology;
use crate::construct::Given;
use seawall_core::id::{DeploymentId, PoolId, TenantId};
use seawall_core::routing;
use seawall_core::settings::{
    Capacity, Criticality, DeploymentKind, DeploymentSettings, EjectionSettings, PoolSettings, QueueSettings,
    RetrySettings, Settings, TenantSettings, TimeoutSettings,
};
use seawall_core::time::Duration;

/// The settings, and what they are in a few words.
pub(super) fn draw(topology: &Topology, dice: &mut Dice) -> (Given, String) {
    let policy =
        routing::REGISTRY[dice.whole(0, u32::try_from(routing::REGISTRY.len()).unwrap_or(1) - 1) as usize].name;
    let told = dice.chance(0.3);
    let queue = QueueSettings { patience: seconds(dice, 5, 30), max_waiting: dice.whole(20, 10_000) };
    let retry = RetrySettings { max_attempts: 2, ..RetrySettings::default() };
    let ejection = EjectionSettings { consecutive_failures: dice.whole(2, 6), ..EjectionSettings::default() };
    let timeouts = TimeoutSettings { first_byte: seconds(dice, 30, 600), ..TimeoutSettings::default() };
    let words = format!(
        "{policy}, sizes {}, patience {:?}, {} waiting, {} attempts, first byte {:?}",
        if told { "told" } else { "unknown" },
        queue.patience,
        queue.max_waiting,
        retry.max_attempts,
        timeouts.first_byte,
    );
    let mut settings = Settings { seed: dice.seed(), ..Settings::default() };
    let mut servers = Vec::new();
    for (model, name) in topology.models.iter().enumerate() {
        let pool = PoolId::from_index(model);
        let first = settings.deployments.len();
        for server in topology.servers.iter().filter(|server| server.models > model) {
            let group = u32::from(dice.chance(0.2));
            settings.deployments.push(DeploymentSettings {
                name: format!("{}/{name}", server.name),
                pool,
                region: String::new(),
                kind: DeploymentKind::Regional,
                boundary: None,
                // Of a server that serves two models each has its half.
                capacity: Capacity::Standard {
                    size: told.then(|| server.at_once.div_ceil(count(server.models)).max(1)),
                },
                weight: dice.whole(1, 3),
                priority_group: group,
                cancel_frees: None,
            });
            servers.push(server.door.clone());
        }
        settings.pools.push(PoolSettings {
            policy: policy.to_owned(),
            queue: queue.clone(),
            retry: retry.clone(),
            ejection: ejection.clone(),
            timeouts,
            ..PoolSettings::new(*name, (first..settings.deployments.len()).map(DeploymentId::from_index).collect())
        });
    }
    let pools: Vec<PoolId> = (0..settings.pools.len()).map(PoolId::from_index).collect();
    let tenants = ["workload-0", "workload-1"];
    settings.tenants = tenants.iter().map(|name| tenant(name, &pools, dice)).collect();
    let given = Given {
        servers,
        tenants: tenants.iter().enumerate().map(|(index, name)| ((*name).to_owned(), TenantId(count(index)))).collect(),
        pools: topology.models.iter().zip(pools).map(|(name, pool)| ((*name).to_owned(), pool)).collect(),
        settings,
    };
    (given, words)
}

fn tenant(name: &str, pools: &[PoolId], dice: &mut Dice) -> TenantSettings {
    TenantSettings {
        priority_ceiling: dice.one(&[Criticality::CriticalPlus, Criticality::Critical]),
        ..TenantSettings::new(name, pools.to_vec())
    }
}

fn seconds(dice: &mut Dice, low: u32, high: u32) -> Duration {
    Duration::from_secs(u64::from(dice.whole(low, high)))
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
