//! The policy engine of Seawall.
//!
//! This crate decides: who is admitted, who waits, where a request goes, whether it is tried again, what a caller is
//! told. It does no I/O and reads no clock, no thread, no global randomness and no hash-ordered map. Two hosts drive
//! it: the HTTP data plane with real time and sockets, and the simulator with virtual time.
#![no_std]

extern crate alloc;

pub mod id;
pub mod settings;
pub mod time;
