//! The runs of one cell over several seeds, as one row.

use super::cell::{Cell, Router};
use super::gate::{Bound, Gate};
use super::judge::{Outcome, recovery_of_all};
use crate::actors::number;
use serde::Serialize;

/// A cell with one router, over its seeds.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The cell's name.
    pub cell: String,
    /// The router's name.
    pub router: String,
    /// Seeds.
    pub seeds: usize,
    /// Good requests as a part of all, mean.
    pub good: f64,
    /// Good requests as a part of the oracle's, mean.
    pub goodput: f64,
    /// The same of the worst seed.
    pub worst_goodput: f64,
    /// The goodput as a part of that of the router that is told the slots, where that was run.
    pub of_told: Option<f64>,
    /// Attempts at the servers for each distinct request, mean.
    pub upstream_attempts: f64,
    /// The same of the worst seed.
    pub worst_upstream_attempts: f64,
    /// Attempts of the clients for each distinct request, mean.
    pub client_attempts: f64,
    /// Seconds to the answer of half of the good ones, mean.
    pub p50_seconds: f64,
    /// Seconds to the answer of 99% of the good ones, mean.
    pub p99_seconds: f64,
    /// Seconds until the goodput of all seeds together was back; if it was not, the time looked at.
    pub recovery_seconds: f64,
    /// The same of the worst single seed.
    pub worst_recovery_seconds: f64,
    /// Seeds on which the goodput did not come back.
    pub not_back: usize,
    /// The most that waited in the router's line, of all seeds.
    pub most_waiting: f64,
    /// What must never be seen, of all seeds.
    pub violations: Vec<String>,
    /// The gates, each with whether it holds.
    pub gates: Vec<Checked>,
}

/// A gate, and what came of it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Checked {
    /// The gate.
    #[serde(flatten)]
    pub gate: Gate,
    /// The figure's value; none: the run that it is compared with is not there.
    pub got: Option<f64>,
    /// Whether the value is within the bound.
    pub passes: bool,
}

impl Row {
    /// The row of these runs of a cell with one router. `told` are the runs with the same seeds of the router that is told
    /// the slots. The gates are those of the router that is not told: the others have none.
    pub fn of(cell: Cell, router: Router, runs: &[Outcome], told: Option<&[Outcome]>) -> Self {
        let mean = |figure: &dyn Fn(&Outcome) -> f64| mean(runs, figure);
        let most = |figure: &dyn Fn(&Outcome) -> f64| runs.iter().map(figure).fold(0.0, f64::max);
        let goodput = mean(&|run| run.figures.goodput);
        let told = told.map(|told| self::mean(told, &|run| run.figures.goodput)).filter(|told| *told > 0.0);
        let mut row = Self {
            cell: cell.to_string(),
            router: router.to_string(),
            seeds: runs.len(),
            good: mean(&|run| run.figures.good / number(run.figures.requests.max(1))),
            goodput,
            worst_goodput: runs.iter().map(|run| run.figures.goodput).fold(f64::INFINITY, f64::min),
            of_told: told.map(|told| goodput / told),
            upstream_attempts: mean(&|run| run.figures.upstream_attempts),
            worst_upstream_attempts: most(&|run| run.figures.upstream_attempts),
            client_attempts: mean(&|run| run.figures.client_attempts),
            p50_seconds: mean(&|run| run.figures.p50_seconds),
            p99_seconds: mean(&|run| run.figures.p99_seconds),
            recovery_seconds: recovery_of_all(runs),
            worst_recovery_seconds: most(&|run| run.figures.recovery()),
            not_back: runs.iter().filter(|run| !run.figures.is_back()).count(),
            most_waiting: most(&|run| run.most_waiting),
            violations: runs.iter().flat_map(|run| run.violations.clone()).collect(),
            gates: Vec::new(),
        };
        if matches!(router, Router::Seawall(_)) {
            row.gates = Gate::of(cell).into_iter().map(|gate| row.check(gate)).collect();
        }
        row
    }

    fn check(&self, gate: Gate) -> Checked {
        let got = match gate.figure {
            Bound::Goodput => Some(self.goodput),
            Bound::OfTold => self.of_told,
            Bound::Good => Some(self.good),
            Bound::UpstreamAttempts => Some(self.upstream_attempts),
            Bound::Recovery => Some(self.recovery_seconds),
        };
        Checked { gate, got, passes: got.is_some_and(|got| gate.holds(got)) }
    }

    /// Whether all gates hold and nothing was seen that must never be seen.
    pub fn passes(&self) -> bool {
        self.violations.is_empty() && self.gates.iter().all(|checked| checked.passes)
    }
}

fn mean(runs: &[Outcome], figure: &dyn Fn(&Outcome) -> f64) -> f64 {
    runs.iter().map(figure).sum::<f64>() / number(runs.len().max(1))
}
