//! Rules about files, so that review can be about design.
//!
//! One file for each family of rules; each takes a text and its name, so that a test can show the rule failing.

pub mod architecture;
pub mod changelog;
pub mod examples;
pub mod markdown;
pub mod places;
pub mod registries;
pub mod source;

use crate::repository::Repository;
use crate::{Failure, Violation};

/// Checks the whole work tree.
pub fn check(repository: &Repository) -> Result<(), Failure> {
    Failure::of("tidy", violations(repository)?)
}

/// What breaks a rule.
pub fn violations(repository: &Repository) -> Result<Vec<Violation>, Failure> {
    let mut found = source::violations(repository)?;
    found.extend(markdown::violations(repository)?);
    found.extend(places::violations(repository)?);
    found.extend(changelog::violations(repository)?);
    found.extend(registries::violations(repository)?);
    found.extend(architecture::violations(repository)?);
    found.extend(examples::violations(repository)?);
    found.sort();
    Ok(found)
}
