//! What the tests need besides Rust: installed in pinned versions below the build folder, never into the system.
//!
//! The one exception are Debian packages (`python3-venv`, `nodejs`, `npm`), installed only by root; everybody else is
//! told the command. A stamp holds exactly what an installation was made from, so that a second run costs nothing.

pub mod async_openai;
pub mod debian;
pub mod node;
pub mod python;
pub mod rust;
mod stamp;

pub use stamp::Stamp;

use crate::Failure;
use crate::repository::Repository;
use std::path::PathBuf;

/// Where the tests find the real clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clients {
    /// A Python interpreter that can import the clients.
    pub python: PathBuf,
    /// A folder whose `node_modules` holds the clients.
    pub node_project: PathBuf,
    /// The program that uses the Rust client.
    pub async_openai: PathBuf,
}

/// Installs the real clients, unless they are there already.
pub fn clients(repository: &Repository) -> Result<Clients, Failure> {
    let python = python::install(repository, python::CLIENTS)?.join("python");
    Ok(Clients {
        python,
        node_project: node::install(repository, node::CLIENTS)?,
        async_openai: async_openai::install(repository)?,
    })
}
