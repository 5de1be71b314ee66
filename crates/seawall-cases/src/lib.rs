//! The library of incidents: for each one a record of what was published, and a scenario that the simulator runs.
//!
//! A case is a folder of data. Nothing about one case is in code: the build lists the folders.

pub mod drill;
mod library;
pub mod record;
pub mod scenario;

pub use library::{LibraryCase, library};
