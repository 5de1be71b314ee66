//! Random streams: the same on every machine, independent by name, and with the means they promise.

use super::runner;
use crate::{SECOND, Stream};
use proptest::prelude::*;
use rand_core::Rng;

#[test]
fn draws_keep_their_bounds_and_come_again_with_their_seed() {
    let cases = (any::<u64>(), "[a-z/]{1,12}", 1_usize..1_000, 0_u64..SECOND, 0_u64..SECOND, 0.0_f64..1.0);
    runner(300)
        .run(&cases, |(seed, name, bound, low, high, part)| {
            let draws = |mut stream: Stream| {
                let around = stream.around(SECOND, part);
                let between = stream.between(low, high);
                (stream.unit(), stream.below(bound), around, between, stream.geometric(1.0 + part), stream.next_u64())
            };
            let (unit, below, around, between, geometric, word) = draws(Stream::new(seed, &name));
            prop_assert_eq!((unit, below, around, between, geometric, word), draws(Stream::new(seed, &name)));
            prop_assert_ne!(word, draws(Stream::new(seed, &format!("{name}x"))).5);
            prop_assert_ne!(word, draws(Stream::new(seed ^ 1, &name)).5);
            prop_assert!((0.0..1.0).contains(&unit) && below < bound && geometric >= 1);
            let least = (1.0 - part) * 1e9 - 1.0;
            prop_assert!(f64_of(around) >= least && f64_of(around) <= (1.0 + part) * 1e9);
            prop_assert!(between >= low && between <= low.max(high));
            Ok(())
        })
        .expect("they do");
}

#[expect(clippy::cast_precision_loss, reason = "small numbers")]
fn f64_of(value: u64) -> f64 {
    value as f64
}

fn mean(mut draw: impl FnMut() -> f64) -> f64 {
    (0..100_000).map(|_| draw()).sum::<f64>() / 100_000.0
}

#[test]
fn means_are_what_they_promise() {
    let mut stream = Stream::new(7, "means");
    let means = [
        mean(|| stream.unit()) / 0.5,
        mean(|| f64_of(stream.exponential(2e9))) / 2e9,
        mean(|| f64_of(stream.lognormal(3 * SECOND, 0.8))) / 3e9,
        mean(|| f64::from(stream.geometric(5.0))) / 5.0,
        mean(|| f64_of(stream.around(SECOND, 0.3))) / 1e9,
        mean(|| f64_of(stream.between(SECOND, 3 * SECOND))) / 2e9,
        mean(|| f64::from(u8::from(stream.chance(0.3)))) / 0.3,
    ];
    for (place, mean) in means.into_iter().enumerate() {
        assert!((0.985..1.015).contains(&mean), "draw {place}: {mean} times its mean");
    }
}

#[test]
fn the_edges_of_a_draw_draw_nothing_odd() {
    let mut stream = Stream::new(7, "edges");
    assert_eq!((stream.below(0), stream.below(1), stream.geometric(0.5)), (0, 0, 1));
    assert_eq!((stream.around(5, 0.0), stream.between(9, 3), stream.lognormal(4, 0.0)), (5, 9, 4));
    assert!(!stream.chance(0.0) && stream.chance(1.0));
}

/// Written down, so that every build and every machine has to agree.
#[test]
fn a_stream_is_the_same_on_every_machine() {
    let mut stream = Stream::new(42, "clients/arrivals");
    let words: Vec<u64> = (0..3).map(|_| stream.next_u64()).collect();
    let spans = [stream.exponential(1e9), stream.lognormal(SECOND, 0.5), u64::from(stream.geometric(9.0))];
    assert_eq!(words, [18_434_821_713_194_490_793, 7_538_848_621_346_664_458, 6_632_249_101_484_740_933]);
    assert_eq!(spans, [868_118_741, 1_032_870_850, 9]);
}
