//! What the set asks of Seawall.

use super::cell::{Cell, Law, Load, Storm};
use serde::Serialize;

/// The part of the oracle's good answers in a window from which on goodput counts as back: what the gates ask of a whole
/// run of the bench shape. Random service costs every router a few percent at any time, one that is told the slots, too.
pub(super) fn recovered(law: Law) -> f64 {
    if law == Law::Fixed { 0.97 } else { 0.90 }
}

/// Which figure a gate is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// Good requests as a part of the oracle's, at least.
    Goodput,
    /// The same as a part of what Seawall reaches where it is told the slots, at least.
    OfTold,
    /// Good requests as a part of all, at least.
    Good,
    /// Attempts at the servers for each distinct request, at most.
    UpstreamAttempts,
    /// Seconds until the goodput is back, at most.
    Recovery,
}

/// One bound.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Gate {
    /// The figure.
    pub figure: Bound,
    /// Its bound.
    pub bound: f64,
}

impl Gate {
    /// The gates of a cell, for means over seeds: those of the bench shape for the fixed and the random laws, and of the
    /// other shapes as a part of what the same policy reaches where it is told the slots.
    pub fn of(cell: Cell) -> Vec<Self> {
        let gate = |figure, bound| Self { figure, bound };
        let is_tenfold = cell.load == Load(1000);
        let goodput = match (cell.shape.name, cell.law) {
            ("bench", Law::Fixed) if is_tenfold && cell.storm == Storm::A => gate(Bound::Goodput, 0.95),
            ("bench", Law::Fixed) if is_tenfold => gate(Bound::Goodput, 0.92),
            ("bench", Law::Fixed) => gate(Bound::Goodput, 0.97),
            ("bench", _) => gate(Bound::Goodput, 0.90),
            _ => gate(Bound::OfTold, 0.95),
        };
        let is_early = cell.storm == Storm::B && cell.load == Load(80);
        let mut gates =
            vec![goodput, gate(Bound::UpstreamAttempts, 1.10), gate(Bound::Recovery, if is_early { 2.0 } else { 5.0 })];
        if cell.shape.name == "bench" && cell.law == Law::Fixed && cell.storm == Storm::A && cell.load == Load(80) {
            gates.push(gate(Bound::Good, 0.99));
        }
        gates
    }

    /// Whether a value is within the bound. What a float cannot tell apart from the bound is.
    pub fn holds(self, value: f64) -> bool {
        match self.figure {
            Bound::Goodput | Bound::OfTold | Bound::Good => value >= self.bound - 1e-9,
            Bound::UpstreamAttempts | Bound::Recovery => value <= self.bound + 1e-9,
        }
    }
}

impl Bound {
    /// The figure's name in a table.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Goodput => "goodput",
            Self::OfTold => "of told",
            Self::Good => "good",
            Self::UpstreamAttempts => "upstream",
            Self::Recovery => "recovery",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storms::{Clients, Length, Shape};

    fn gates(shape: &str, law: Law, storm: Storm, load: u32) -> Vec<(Bound, f64)> {
        let shape = Shape::by_name(shape).expect("a shape");
        let cell = Cell { shape, law, storm, load: Load(load), clients: Clients::Mixed, length: Length::Short };
        Gate::of(cell).iter().map(|gate| (gate.figure, gate.bound)).collect()
    }

    #[test]
    fn each_cell_has_the_bounds_of_its_kind() {
        let with = |figure, bound, recovery| {
            vec![(figure, bound), (Bound::UpstreamAttempts, 1.10), (Bound::Recovery, recovery)]
        };
        assert_eq!(gates("bench", Law::Fixed, Storm::A, 200), with(Bound::Goodput, 0.97, 5.0));
        assert_eq!(gates("bench", Law::Fixed, Storm::A, 1000), with(Bound::Goodput, 0.95, 5.0));
        assert_eq!(gates("bench", Law::Fixed, Storm::B, 1000), with(Bound::Goodput, 0.92, 5.0));
        assert_eq!(gates("bench", Law::Lognormal, Storm::B, 80), with(Bound::Goodput, 0.90, 2.0));
        assert_eq!(gates("2x64x0.2", Law::Fixed, Storm::A, 80), with(Bound::OfTold, 0.95, 5.0));
        assert_eq!(gates("bench", Law::Fixed, Storm::A, 80).last(), Some(&(Bound::Good, 0.99)));
    }

    #[test]
    fn a_bound_holds_at_the_bound() {
        let at_least = Gate { figure: Bound::Goodput, bound: 0.97 };
        let at_most = Gate { figure: Bound::Recovery, bound: 2.0 };
        assert_eq!([0.97, 0.969].map(|value| at_least.holds(value)), [true, false]);
        assert_eq!([2.0, 2.1].map(|value| at_most.holds(value)), [true, false]);
    }
}
