//! Reads the facts Seawall needs out of each LLM wire dialect and leaves the bytes alone (law 10).
//!
//! Nothing here does I/O, reads a clock or keeps a thread: bytes and headers come in, facts and bytes go out. Bodies
//! are never parsed into a tree and written again; a scanner finds the few members that matter and the place of the one
//! value that may be replaced, `model`.
//!
//! | module | question it answers |
//! | --- | --- |
//! | [`dialect`] | which endpoint of which surface is this? |
//! | [`body`] | which model, how long, does it stream? and: the same body with another model |
//! | [`headers`] | whose key is this? which headers go on, which come back? where does our credential stand? |
//! | [`client_signals`] | is this a repeat, how urgent is it, how long may it take? |
//! | [`fingerprint`] | is this the same request as that one? |
//! | [`upstream`] | at which path of that upstream, and does its body need the model? |
//! | [`sse`] | what has a stream told so far? |
//! | [`usage`] | how many tokens did it cost? |
//! | [`allowance`] | how much more does the upstream take before its limits? |
//! | [`engine_metrics`] | how much has the upstream to do? |
//! | [`wait_hint`] | when does the upstream want to see us again? |
//! | [`upstream_error`] | what does the upstream's answer mean? |
//! | [`error_body`], [`models`] | our own answers, in the caller's dialect |

pub mod allowance;
pub mod body;
pub mod client_signals;
pub mod dialect;
pub mod engine_metrics;
pub mod error_body;
pub mod fingerprint;
pub mod headers;
mod json;
pub mod models;
pub mod sse;
pub mod upstream;
pub mod upstream_error;
pub mod usage;
pub mod wait_hint;
