//! The data plane: sockets, bodies, streams and timers around the engine.

pub mod access_log;
pub mod clock;
pub mod driver;
pub mod metrics;
pub mod record;
pub mod upstream;
