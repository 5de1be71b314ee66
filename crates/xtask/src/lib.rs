//! Checks and generators of this repository, as functions that tests can call.
//!
//! Each check takes what it judges as an argument (a parsed graph, a source text, a folder), so that a test can add a
//! violation and see the failure.

pub mod ci;
pub mod clock;
pub mod command;
pub mod deny;
pub mod evidence;
pub mod failure;
pub mod files;
pub mod generate;
pub mod layers;
pub mod purity;
pub mod report;
pub mod repository;
pub mod rust_source;
pub mod spelling;
pub mod test;
pub mod tidy;
pub mod tools;

pub use failure::{Failure, Violation};
