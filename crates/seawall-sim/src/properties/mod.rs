//! What holds of the simulator's foundations whatever is done with them. The cases are the same in every run.

mod events;
mod random;
mod recorder;
mod slab;
mod timeouts;

use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// The same cases on every machine and in every run.
fn runner(cases: u32) -> TestRunner {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}
