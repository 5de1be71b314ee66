//! The run of one cell.

use super::grid::{Cell, Subject};
use super::judge::{Outcome, Trace, judge};
use super::scenario::Plan;
use crate::construct::{Options, Seawall};
use crate::random::seed_of;
use crate::world::World;

impl Cell {
    /// Runs it. Each cell has a seed of its own, which `seed` and its name decide; the two routers of a cell have the
    /// same, and so the same arrivals.
    pub fn run(self, seed: u64) -> Result<Outcome, String> {
        let plan = Plan::of(self)?;
        let seawall = if self.subject == Subject::Seawall { Seawall::Enforcing } else { Seawall::Absent };
        let options = Options { seed: self.seed(seed), seawall, ..Options::default() };
        let mut world = World::of(&plan.scenario, &options).map_err(|error| format!("{self}: {error}"))?;
        world.run_until(plan.end);
        let trace = Trace { events: world.events(), hash: world.trace_hash(), violations: world.violations().to_vec() };
        judge(self, &plan, &world.into_recorder(), trace)
    }

    fn seed(self, seed: u64) -> u64 {
        let [_, words @ ..] = self.words();
        seed_of(seed, &words.join("/"))
    }
}
