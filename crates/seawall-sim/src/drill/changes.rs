//! The changes that a drill tries, one at a time: settings of the file, and capacity that would have to be bought.

use super::ground::{Ground, Setup};
use super::keys::{MODEL_KEYS, ModelKey, Value};
use super::outcome::Outcome;
use seawall_config::Plan;
use seawall_core::id::{DeploymentId, PoolId};
use seawall_core::settings::{Capacity, Criticality, Mode};
use serde::Serialize;

/// A model that loses more than this part of what it is asked, in percent, is one whose settings are tried. Where none
/// does, those of all models are.
const TOUCHED_ABOVE: f64 = 1.0;

/// What a change costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cost {
    /// An edit of the file.
    Edit,
    /// An edit that gives up a promise about where data goes.
    Promise,
    /// Capacity that has to be bought.
    Capacity,
}

/// A place of the user's file that a change touches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The full key.
    pub key: String,
    /// The line of the key, or of the nearest section around it.
    pub line: Option<usize>,
    /// Whether the file says it; otherwise its default holds.
    pub is_written: bool,
    /// The present value.
    pub from: String,
}

/// One change, the same at every place that it touches.
#[derive(Clone, Debug, Serialize)]
pub struct Change {
    /// The setting, without the number of its model or tenant, for example `queue.patience`.
    pub setting: String,
    /// The value that is tried.
    pub to: String,
    /// What it costs.
    pub cost: Cost,
    /// Where the file says it, or could.
    pub places: Vec<Place>,
    /// What is run.
    #[serde(skip)]
    pub setup: Setup,
}

/// Collects changes; one without a place changes nothing and is none.
struct Changes<'a> {
    ground: &'a Ground<'a>,
    pools: Vec<usize>,
    list: Vec<Change>,
}

impl Ground<'_> {
    /// What to try after a drill came to this.
    pub fn changes(&self, outcome: &Outcome) -> Vec<Change> {
        let mut changes = Changes { ground: self, pools: touched(self, outcome), list: Vec::new() };
        for key in MODEL_KEYS {
            key.tries.iter().for_each(|value| changes.model(key, *value));
        }
        changes.tenant_modes();
        if self.setup.settings.tenants.len() > 1 {
            changes.ceilings();
        }
        changes.boundaries();
        changes.told_sizes();
        changes.capacity();
        changes.deployments();
        changes.list
    }
}

/// The models that lose something, or else all that anybody may use.
fn touched(ground: &Ground<'_>, outcome: &Outcome) -> Vec<usize> {
    let number_of = |above: f64| {
        let rows = outcome.rows.iter().filter(|row| row.lost_percent > above);
        let mut pools: Vec<usize> = rows.map(|row| row.pool_number).collect();
        pools.sort_unstable();
        pools.dedup();
        pools
    };
    let touched = number_of(TOUCHED_ABOVE);
    if !touched.is_empty() {
        return touched;
    }
    let mut all: Vec<usize> = ground.flows.iter().map(|flow| flow.pool).collect();
    all.sort_unstable();
    all.dedup();
    all
}

impl Changes<'_> {
    fn place(&self, key: String, from: String) -> Place {
        let place = self.ground.plan.place(&key);
        Place { key, line: place.line, is_written: place.is_written, from }
    }

    fn push(&mut self, setting: &str, to: impl Into<String>, cost: Cost, (setup, places): (Setup, Vec<Place>)) {
        if !places.is_empty() {
            self.list.push(Change { setting: setting.to_owned(), to: to.into(), cost, places, setup });
        }
    }

    fn model(&mut self, key: &ModelKey, value: Value) {
        let mut setup = self.ground.setup.clone();
        let mut places = Vec::new();
        for index in &self.pools {
            let pool = &mut setup.settings.pools[*index];
            if !(key.has)(pool, value) {
                let full = format!("{}.{}", Plan::model_key(PoolId::from_index(*index)), key.key);
                places.push(self.place(full, (key.shown)(pool)));
                (key.set)(pool, value);
            }
        }
        self.push(key.key, value.to_string(), Cost::Edit, (setup, places));
    }

    /// The full key of a tenant's setting; `None`: the tenant is not of the file but the one of clients without a key.
    fn tenant_key(&self, tenant: usize, key: &str) -> Option<String> {
        let section = format!("tenants[{tenant}]");
        self.ground.plan.place(&section).is_written.then(|| format!("{section}.{key}"))
    }

    fn tenant_modes(&mut self) {
        for mode in [Mode::Enforce, Mode::Observe] {
            let mut setup = self.ground.setup.clone();
            let mut places = Vec::new();
            for (index, tenant) in setup.settings.tenants.iter_mut().enumerate() {
                if tenant.mode != mode
                    && let Some(key) = self.tenant_key(index, "mode")
                {
                    places.push(self.place(key, tenant.mode.name().to_owned()));
                    tenant.mode = mode;
                }
            }
            self.push("mode (of tenants)", mode.name(), Cost::Edit, (setup, places));
        }
    }

    /// The class of the tenant that begins.
    fn ceilings(&mut self) {
        let index = self.ground.tenant;
        for ceiling in [Criticality::CriticalPlus, Criticality::Sheddable] {
            let mut setup = self.ground.setup.clone();
            let tenant = &mut setup.settings.tenants[index];
            let Some(key) = self.tenant_key(index, "priority_ceiling").filter(|_| tenant.priority_ceiling != ceiling)
            else {
                continue;
            };
            let place = self.place(key, tenant.priority_ceiling.name().to_owned());
            tenant.priority_ceiling = ceiling;
            self.push("priority_ceiling", ceiling.name(), Cost::Edit, (setup, vec![place]));
        }
    }

    /// Residency: what would be lost if data might go anywhere.
    fn boundaries(&mut self) {
        let mut setup = self.ground.setup.clone();
        let mut places = Vec::new();
        for (index, tenant) in setup.settings.tenants.iter_mut().enumerate() {
            let outside = self
                .ground
                .setup
                .settings
                .deployments
                .iter()
                .any(|one| one.boundary != tenant.boundary && tenant.pools.contains(&one.pool));
            let key = self.tenant_key(index, "boundary").filter(|_| outside && tenant.boundary.is_some());
            if let Some((key, boundary)) = key.zip(tenant.boundary.take_if(|_| outside)) {
                places.push(self.place(key, boundary));
            }
        }
        self.push("boundary", "none", Cost::Promise, (setup, places));
    }

    /// The deployments of the touched models.
    fn deployments_of_pools(&self) -> Vec<DeploymentId> {
        let pools = self.pools.iter().map(|pool| &self.ground.setup.settings.pools[*pool]);
        pools.flat_map(|pool| pool.deployments.iter().copied()).collect()
    }

    fn capacity_place(&self, id: DeploymentId) -> Place {
        let capacity = self.ground.setup.settings.deployments[id.index()].capacity;
        let from = match capacity {
            Capacity::Provisioned { size } => format!("provisioned {size}"),
            Capacity::Standard { size: Some(size) } => format!("standard {size}"),
            Capacity::Standard { size: None } => "standard".to_owned(),
        };
        self.place(format!("{}.capacity", self.ground.plan.deployment_key(id)), from)
    }

    /// Each process is told its part of a deployment's size, so that all together send no more than there is room for.
    fn told_sizes(&mut self) {
        let replicas = self.ground.assumptions.replicas.max(1);
        let mut setup = self.ground.setup.clone();
        let mut places = Vec::new();
        for id in self.deployments_of_pools() {
            let part = (setup.slots[id.index()] / replicas).max(1);
            let capacity = &mut setup.settings.deployments[id.index()].capacity;
            if capacity.size() != Some(part) {
                places.push(self.capacity_place(id));
                *capacity = resized(*capacity, part);
            }
        }
        let to = format!("its size / {replicas} processes");
        self.push("capacity (told size)", to, Cost::Edit, (setup, places));
    }

    fn capacity(&mut self) {
        let mut setup = self.ground.setup.clone();
        let mut places = Vec::new();
        for id in self.deployments_of_pools() {
            places.push(self.capacity_place(id));
            let slots = &mut setup.slots[id.index()];
            *slots = slots.saturating_mul(2);
            let capacity = &mut setup.settings.deployments[id.index()].capacity;
            if let Some(size) = capacity.size() {
                *capacity = resized(*capacity, size.saturating_mul(2));
            }
        }
        self.push("capacity (bought)", "twice as much", Cost::Capacity, (setup, places));
    }

    /// One more deployment of each touched model, like its largest one, in a region that the drill does not touch.
    fn deployments(&mut self) {
        let mut setup = self.ground.setup.clone();
        let mut places = Vec::new();
        for index in &self.pools {
            let Some(largest) = self.ground.setup.largest_of(*index) else { continue };
            let key = format!("{}.deployments", Plan::model_key(PoolId::from_index(*index)));
            let count = setup.settings.pools[*index].deployments.len();
            places.push(self.place(key, count.to_string()));
            let mut more = setup.settings.deployments[largest.index()].clone();
            more.name = format!("{} (one more)", more.name);
            "(another region)".clone_into(&mut more.region);
            setup.settings.pools[*index].deployments.push(DeploymentId::from_index(setup.settings.deployments.len()));
            setup.settings.deployments.push(more);
            setup.slots.push(setup.slots[largest.index()]);
            setup.regions.push("(another region)".to_owned());
        }
        self.push("deployments", "one more, in another region", Cost::Capacity, (setup, places));
    }
}

/// The same kind of capacity with another size.
const fn resized(capacity: Capacity, size: u32) -> Capacity {
    match capacity {
        Capacity::Provisioned { .. } => Capacity::Provisioned { size },
        Capacity::Standard { .. } => Capacity::Standard { size: Some(size) },
    }
}
