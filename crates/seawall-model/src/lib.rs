//! Pure models of the outside: a serving engine and the retry profiles of clients.
//!
//! Nothing here does I/O or reads a clock; time and randomness are arguments.
#![no_std]

extern crate alloc;

pub mod engine;
pub mod mix;
pub mod profile;
