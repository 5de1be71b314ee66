//! The data plane over loopback sockets: each test is a field case, or a law, on raw bytes.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's helpers may fail the test")]

mod advice;
mod bodies;
mod connections;
mod contract_rows;
mod cost;
mod deadlines;
mod drain;
mod failover;
mod fallback;
mod flights;
mod golden;
mod leaders;
mod memory;
mod observe;
mod polls;
mod silence;
mod stream_ends;
mod streams;
mod support;
