//! A slab does what a map from numbers that never come twice does.

use super::runner;
use crate::{Place, Slab};
use proptest::prelude::*;
use std::collections::BTreeMap;

#[test]
fn places_are_as_good_as_numbers_that_never_come_twice() {
    let steps = proptest::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 1..300);
    runner(200)
        .run(&steps, |steps| {
            let mut slab = Slab::default();
            let mut plain: BTreeMap<Place, usize> = BTreeMap::new();
            let mut given: Vec<Place> = Vec::new();
            for (number, (inserts, which)) in steps.into_iter().enumerate() {
                if inserts || given.is_empty() {
                    let place = slab.insert(number);
                    prop_assert!(!given.contains(&place));
                    given.push(place);
                    plain.insert(place, number);
                } else {
                    let place = *which.get(&given);
                    prop_assert_eq!(slab.remove(place), plain.remove(&place));
                }
                prop_assert_eq!(slab.len(), plain.len());
                prop_assert_eq!(slab.is_empty(), plain.is_empty());
            }
            for place in given {
                prop_assert_eq!(slab.get(place).copied(), plain.get(&place).copied());
                prop_assert_eq!(slab.get_mut(place).copied(), plain.get(&place).copied());
            }
            Ok(())
        })
        .expect("they are");
}
