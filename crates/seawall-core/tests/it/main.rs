//! The engine as its hosts see it: one conformance suite over every routing policy, whole lives in virtual time with exact
//! numbers, and laws under random inputs.

mod capacity;
mod conformance;
mod cost;
mod discovery;
mod ejection;
mod fallback;
mod flights;
mod interleavings;
mod life;
mod limits;
mod line;
mod observe;
mod properties;
mod retries;
mod returns;
mod robustness;
mod world;
