//! The simulated storm set: how much of what was possible does a router serve in a retry storm?
//!
//! Each [`Cell`] is one short world: some servers, clients that come again, and a brown-out in the middle. A run is
//! judged against a [fluid oracle](oracle), by the upstream attempts that one request cost, and by how soon the goodput
//! is back. [`Row`] puts the runs of a cell over several seeds together and holds them against the gates.

mod cell;
mod gate;
mod judge;
pub mod oracle;
mod row;
mod run;
mod scenario;
mod shape;

pub use cell::{CLIENTS, Cell, Clients, LAWS, LOADS, Law, Length, Load, Router, Storm};
pub use gate::{Bound, Gate};
pub use judge::{Figures, Outcome, Seen};
pub use row::Row;
pub use scenario::Plan;
pub use shape::{SHAPES, Shape, Trouble};
