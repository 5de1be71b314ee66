//! The policy engine of Seawall.
//!
//! This crate decides: who is admitted, who waits, where a request goes, whether it is tried again, what a caller is
//! told. It does no I/O and reads no clock, no thread, no global randomness and no hash-ordered map. Two hosts drive
//! it: the HTTP data plane with real time and sockets, and the simulator with virtual time.
#![no_std]

extern crate alloc;

pub mod advice;
pub mod budget;
pub mod calendar;
pub mod capacity;
pub mod classify;
pub mod cost;
pub mod engine;
pub mod health;
pub mod id;
pub mod latest;
pub mod load;
pub mod outcome;
pub mod past;
pub mod patience;
pub mod permit;
pub mod protection;
pub mod queue;
pub mod random;
pub mod rate;
pub mod routing;
pub mod service;
pub mod settings;
pub mod time;
pub mod window;

pub use engine::Engine;
