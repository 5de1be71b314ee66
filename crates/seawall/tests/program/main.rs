//! The program as people run it: whole processes over loopback.
#![expect(clippy::panic, reason = "what a test helper does not find fails the test that asked for it")]

mod arguments;
mod crowd;
mod demo;
mod drain;
mod drill;
mod left;
mod limits;
mod memory;
mod metrics_page;
mod process;
mod replay;
mod sim;
mod storm;
