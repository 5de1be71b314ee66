//! The run of one cell.

use super::cell::{Cell, Router};
use super::judge::{Outcome, Trace, judge};
use super::scenario::{Plan, given};
use crate::construct::{Options, Seawall};
use crate::random::seed_of;
use crate::world::World;

impl Cell {
    /// Runs it with a router. Each cell has a seed of its own, which `seed` and its name decide; all routers of a cell
    /// have the same, and so the same arrivals.
    pub fn run(self, router: Router, seed: u64) -> Result<Outcome, String> {
        let plan = Plan::of(self)?;
        let seawall = if router == Router::Naive { Seawall::Absent } else { Seawall::Enforcing };
        let without = if let Router::Without(protection) = router { Some(protection) } else { None };
        let options = Options { seed: seed_of(seed, &self.to_string()), seawall, without, ..Options::default() };
        let given = given(&plan, self, router);
        let mut world =
            World::given(&plan.scenario, &options, Some(&given)).map_err(|error| format!("{self}: {error}"))?;
        world.remember_requests();
        world.run_until(plan.end);
        let trace = Trace {
            router,
            seed,
            requests: world.take_requests(),
            events: world.events(),
            hash: world.trace_hash(),
            violations: world.violations().to_vec(),
        };
        judge(self, &plan, &world.into_recorder(), trace)
    }
}
