//! The library of incidents: for each one a record of what was published, and a scenario that the simulator runs.
//!
//! A case is a folder of data. Nothing about one case is in code.

pub mod drill;
pub mod record;
pub mod scenario;
