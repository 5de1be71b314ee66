//! The metastability map: after which triggers, at which load and with which clients, does a system come back by itself?
//!
//! The method is that of the published experiments on metastable failures (Huang et al., OSDI 2022): sweep load, size
//! and length of a trigger, mark what recovered, draw the boundary. Here the sweep is over [`Cell`]s; each is one short
//! run of the same world, once with a naive router and once with Seawall in its place.

mod drawing;
mod grid;
mod judge;
mod run;
mod scenario;
mod tally;

pub use drawing::draw;
pub use grid::{CLIENTS, Cell, Client, Filter, LENGTHS, LOADS, Length, Load, SUBJECTS, Subject, TRIGGERS, Trigger};
pub use judge::{Outcome, Verdict};
pub use scenario::Plan;
pub use tally::{Results, Tally};
