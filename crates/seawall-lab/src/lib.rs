//! Real sockets for experiments: simulated inference servers and an open-loop load generator.

pub mod clock;
pub mod fleet;
pub mod load;
