//! The simulator: a discrete-event world of clients, layers, routers and servers around the engine that serves.
//!
//! Time is whole nanoseconds since midnight on the post-mortem's clock; two things at the same time happen in the order
//! in which they were decided. Every actor and purpose has its own seeded random stream, nothing reads a clock, and
//! floats go through `libm`, so that the same seed gives the same trace on every machine; a hash of it says so.

pub mod actors;
mod calls;
mod checkers;
mod construct;
mod context;
pub mod drill;
mod events;
pub mod figures;
pub mod map;
#[cfg(test)]
mod properties;
mod random;
mod recorder;
pub mod replay;
mod retry;
mod slab;
mod spread;
pub mod storms;
pub mod swarm;
mod timeouts;
mod world;

pub use calls::{ActorId, Call, CallId, Facts, Reply, RequestId};
pub use checkers::UnderWay;
pub use construct::{Given, Options, Seawall, Unbuildable};
pub use context::{Actor, Context};
pub use random::Stream;
pub use recorder::{Recorder, SeriesId, SpreadId, Trail};
pub use retry::{Progress, RetryRule};
pub use slab::{Place, Slab};
pub use spread::Spread;
pub use timeouts::Timeouts;
pub use world::World;

/// Nanoseconds since midnight, or a number of nanoseconds.
pub type Nanos = u64;

/// The nanoseconds of a second.
pub const SECOND: Nanos = 1_000_000_000;
