//! Step 8: one attempt at one deployment, paid for by a permit.

pub mod pool;
