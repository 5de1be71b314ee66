//! The same seed gives the same run: twice, in every build profile, on every machine.

use seawall_cases::scenario::Scenario;
use seawall_sim::{Options, Seawall, World};

/// Every kind of actor, ten minutes.
const EVERYTHING: &str = include_str!("data/everything.toml");

struct Trace {
    hash: String,
    events: u64,
    counted: Vec<(String, u64)>,
}

fn trace(seed: u64, seawall: Seawall) -> Trace {
    let scenario = Scenario::parse(EVERYTHING, "everything.toml").expect("a good scenario");
    let options = Options { seed, seawall, ..Options::default() };
    let mut world = World::of(&scenario, &options).expect("it can be built");
    world.run_until(scenario.scenario.end.nanos);
    assert_eq!(world.violations(), [] as [String; 0]);
    let (hash, events) = (format!("{:016x}", world.trace_hash()), world.events());
    let recorder = world.into_recorder();
    let bits = |name: &str| recorder.values(name).expect("it is one of its names").iter().map(|value| value.to_bits());
    let sum = |name: &str| bits(name).fold(0_u64, |sum, bits| sum.rotate_left(7) ^ u64::from(bits));
    Trace { hash, events, counted: recorder.names().map(|name| (name.to_owned(), sum(name))).collect() }
}

/// Hash and number of events of a seed.
fn told(seed: u64, seawall: Seawall) -> (String, u64) {
    let Trace { hash, events, .. } = trace(seed, seawall);
    (hash, events)
}

/// The numbers are written down, so that the dev profile, the release profile and every machine have to agree. A change
/// of what actors do changes them: look at why, then write the new ones down.
#[test]
fn traces_are_the_same_on_every_machine_and_in_every_build() {
    let naive = [1, 2, 3].map(|seed| told(seed, Seawall::Absent));
    let expected = [("c559eb3891d9900a", 348_487), ("a888aee250aeed9c", 347_117), ("f482f94acc954ce9", 363_234)];
    let expected = expected.map(|(hash, events)| (hash.to_owned(), events));
    assert_eq!(naive, expected);
    let expected = ("457e49383ecd6a48".to_owned(), 324_250);
    assert_eq!(told(1, Seawall::Enforcing), expected);
}

#[test]
fn the_same_seed_gives_the_same_run_twice() {
    for seawall in [Seawall::Absent, Seawall::Observing, Seawall::Enforcing] {
        let (one, other) = (trace(7, seawall), trace(7, seawall));
        assert_eq!((one.hash, one.events, one.counted), (other.hash, other.events, other.counted), "{seawall:?}");
    }
    assert_ne!(told(7, Seawall::Absent), told(8, Seawall::Absent));
}
