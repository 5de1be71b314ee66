//! A drill: what an incident's mechanism would do to somebody's own configuration.
//!
//! A [`Ground`] is a checked file and what has to be assumed about the rest of the world: load, service times, how
//! clients retry. A [`Drill`](seawall_cases::drill::Drill) of a case happens to it in a world of its own: processes of
//! Seawall with the user's own settings, a serving engine for each deployment, a population for each tenant and model.
//! Which setting decides the loss is found by trying: the same arrivals again with one [`Change`] each. Nothing is
//! estimated: each figure comes out of a run.
//!
//! One run is a pure function; who has threads may run all changes of a drill side by side.

mod changes;
mod ground;
mod keys;
mod outcome;
mod verdict;
mod world;

pub use changes::{Change, Cost, Place};
pub use ground::{Assumptions, Flow, Ground, Setup};
pub use outcome::{Outcome, Row, Worst};
pub use verdict::{Verdict, verdict};
