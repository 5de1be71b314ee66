//! The storm set: its worlds do what the oracle is told that they can do, and its judge tells a storm from good service.

use seawall_core::protection::Protection;
use seawall_sim::storms::{Cell, Clients, Law, Length, Load, Outcome, Plan, Router, Row, SHAPES, Shape, Storm};
use seawall_sim::{Options, SECOND, World};

fn cell(shape: &str, law: Law, storm: Storm, load: u32, clients: Clients) -> Cell {
    let shape = Shape::by_name(shape).expect("a shape");
    Cell { shape, law, storm, load: Load(load), clients, length: Length::Short }
}

fn bench(storm: Storm, load: u32) -> Cell {
    cell("bench", Law::Fixed, storm, load, Clients::Mixed)
}

fn run(cell: Cell, router: Router, seed: u64) -> Outcome {
    cell.run(router, seed).expect("it runs")
}

#[test]
fn well_servers_do_what_the_loads_are_multiples_of() {
    for shape in SHAPES {
        let law = shape.laws[0];
        // A few random long ones make a mean slowly.
        let end: u32 = if law == Law::Fixed { 100 } else { 1000 };
        let mut plan = Plan::of(cell(shape.name, law, Storm::B, 120, Clients::Immediate)).expect("a plan");
        plan.scenario.event.clear();
        for engine in &mut plan.scenario.engine {
            engine.slots = shape.healthy_slots();
        }
        for clients in &mut plan.scenario.population {
            // Nobody leaves, so that all work counts.
            (clients.attempt_timeout, clients.patience) = (None, None);
        }
        let options = Options { end: Some(u64::from(end) * SECOND), ..Options::default() };
        let mut world = World::of(&plan.scenario, &options).expect("it can be built");
        world.run_until(u64::from(end) * SECOND);
        let recorder = world.into_recorder();
        let names = plan.engines.iter().map(|name| format!("{name}.finished"));
        let after_a_while = |name: String| recorder.values(&name).expect("servers")[50..end as usize].to_vec();
        let finished: f32 = names.flat_map(after_a_while).sum();
        let part = f64::from(finished) / f64::from(end - 50) / shape.capacity_per_second();
        let tolerance = if law == Law::Fixed { 0.002 } else { 0.05 };
        assert!((part - 1.0).abs() < tolerance, "{}: {part}", shape.name);
    }
}

#[test]
fn every_cell_can_be_planned_and_has_a_name_of_its_own() {
    let all: Vec<Cell> = Cell::all(Length::Short).chain(Cell::all(Length::TenMinutes)).collect();
    let names: std::collections::BTreeSet<String> = all.iter().map(ToString::to_string).collect();
    assert_eq!((all.len(), names.len()), (12_960, 12_960));
    assert!(names.contains("2x24x0.4/erlang-4/B/0.95/7x7/10m"), "{:?}", names.first());
    for cell in all.into_iter().filter(|cell| cell.load == Load(120)) {
        let plan = Plan::of(cell).expect("a plan");
        assert!(World::of(&plan.scenario, &Options::default()).is_ok(), "{cell}");
    }
}

#[test]
fn a_run_is_the_same_each_time_and_all_routers_get_the_same_arrivals() {
    let cell = cell("2x6x0.05", Law::Exponential, Storm::B, 80, Clients::Mixed);
    let naive = run(cell, Router::Naive, 1);
    assert_eq!(naive, run(cell, Router::Naive, 1));
    assert_ne!(naive.trace_hash, run(cell, Router::Naive, 2).trace_hash);
    for router in [Router::default(), Router::Told, Router::ToldTwice] {
        let seawall = run(cell, router, 1);
        assert_eq!(
            (seawall.figures.requests, seawall.figures.oracle_good),
            (naive.figures.requests, naive.figures.oracle_good)
        );
        assert_eq!(seawall.violations, [""; 0]);
    }
}

/// The yardsticks' peers, in virtual time: with cheap refusals a plain proxy loses what it refuses and comes back; where
/// servers work on for those who have left, it serves hardly anybody any more once they are well again.
#[test]
fn a_naive_router_comes_back_in_storm_a_and_never_in_storm_b() {
    let refused = run(bench(Storm::A, 200), Router::Naive, 1);
    assert!(refused.figures.goodput < 0.95 && (2.6..3.0).contains(&refused.figures.upstream_attempts), "{refused:?}");
    assert!((refused.figures.client_attempts - refused.figures.upstream_attempts).abs() < 1e-9, "{refused:?}");
    let stuck = run(bench(Storm::B, 80), Router::Naive, 1);
    assert!(stuck.figures.goodput < 0.4 && stuck.figures.recovery_seconds == [None], "{stuck:?}");
    assert_eq!((stuck.figures.recovery(), stuck.figures.is_back()), (25.0, false));
}

/// Where servers work on for those who have left, a repeat that is not recognised is work for a second time. Only the SDK
/// tells that it repeats, in the simulator as on the wire.
#[test]
fn only_clients_that_tell_it_are_known_to_come_again() {
    let ceiling = Router::Seawall("ceiling");
    let upstream =
        |clients| run(cell("bench", Law::Fixed, Storm::B, 200, clients), ceiling, 1).figures.upstream_attempts;
    let told = upstream(Clients::Sdk);
    assert!((told - 1.0).abs() < 0.02, "{told}");
    for clients in [Clients::Immediate, Clients::Vercel] {
        assert!(upstream(clients) > 1.5, "{clients}: {}", upstream(clients));
    }
}

#[test]
fn a_light_load_is_served_whole_and_at_once() {
    let light = run(cell("2x64x0.2", Law::Fixed, Storm::A, 50, Clients::Sdk), Router::Naive, 1);
    // A quarter of the speed is half of what is asked for.
    assert!(light.figures.goodput > 0.9 && light.figures.recovery_seconds == [Some(0.0)], "{light:?}");
    assert!((0.2..0.21).contains(&light.figures.p50_seconds), "{light:?}");
}

#[test]
fn a_row_is_the_means_of_its_seeds_and_the_worst_of_them() {
    let cell = bench(Storm::A, 200);
    let runs = [1, 2].map(|seed| run(cell, Router::Naive, seed));
    let row = Row::of(cell, Router::default(), &runs, Some(&runs));
    assert_eq!((row.seeds, row.of_told), (2, Some(1.0)));
    assert!((row.goodput - f64::midpoint(runs[0].figures.goodput, runs[1].figures.goodput)).abs() < 1e-12);
    assert!((row.worst_goodput - runs[0].figures.goodput.min(runs[1].figures.goodput)).abs() < 1e-12);
    // Far more attempts than are allowed.
    assert!(!row.passes() && row.gates.iter().any(|checked| checked.passes));
    assert!(Row::of(cell, Router::Naive, &runs, None).gates.is_empty());
}

#[test]
fn ten_minutes_have_four_troubles() {
    let cell = Cell { length: Length::TenMinutes, ..bench(Storm::A, 80) };
    let outcome = run(cell, Router::Naive, 1);
    assert_eq!(outcome.figures.recovery_seconds.len(), 4);
    assert_eq!(outcome.figures.looked_at_seconds, [60.0, 90.0, 90.0, 60.0]);
}

/// Goodput, attempts saved, seconds of recovery saved, seconds of the slowest 1% saved: what the engine has more than
/// without a protection, mean of two seeds.
fn bought(cell: Cell, protection: Protection) -> [f64; 4] {
    let figures = |router| {
        let runs = [1, 2].map(|seed| run(cell, router, seed));
        let row = Row::of(cell, router, &runs, None);
        [row.goodput, -row.upstream_attempts, -row.recovery_seconds, -row.p99_seconds]
    };
    let (with, without) = (figures(Router::default()), figures(Router::Without(protection)));
    [0, 1, 2, 3].map(|index| with[index] - without[index])
}

/// Where all fail at once the fault is before them. No freeze of health is needed for it: nobody is left out afterwards.
#[test]
fn a_fault_of_all_leaves_nobody_out() {
    for (storm, load, clients) in
        [(Storm::A, 50, Clients::Mixed), (Storm::A, 95, Clients::Sdk), (Storm::B, 80, Clients::Immediate)]
    {
        let runs =
            [1, 2].map(|seed| run(cell("5-of-5-errors", Law::Fixed, storm, load, clients), Router::default(), seed));
        let row = Row::of(bench(storm, load), Router::default(), &runs, None);
        assert!(row.recovery_seconds <= 3.0, "{storm:?} {load}: {row:?}");
    }
}

/// What buys nothing anywhere would have to go.
#[test]
fn each_protection_buys_something_somewhere() {
    let (goodput, attempts, recovery, latency) = (0, 1, 2, 3);
    let mixed = Clients::Mixed;
    let places = [
        (Protection::CapacityDiscovery, "bench", Storm::B, 200, mixed, goodput, 0.3),
        (Protection::StatedWaits, "3-of-5-throttle", Storm::B, 80, mixed, goodput, 0.1),
        (Protection::BoundedWait, "bench", Storm::B, 120, Clients::Immediate, goodput, 0.3),
        (Protection::LearnedPatience, "impatient", Storm::A, 120, mixed, goodput, 0.3),
        (Protection::ArrivalTest, "bench", Storm::A, 200, mixed, recovery, 5.0),
        (Protection::DeadlineHeadroom, "bench", Storm::B, 120, mixed, goodput, 0.2),
        (Protection::FlightTable, "bench", Storm::B, 200, mixed, goodput, 0.4),
        (Protection::RepeatStanding, "bench", Storm::B, 200, Clients::Immediate, goodput, 0.1),
        (Protection::RetryBudget, "5-of-5-half", Storm::A, 50, mixed, attempts, 0.04),
        (Protection::ReturnCalendar, "4-of-5-errors", Storm::A, 200, mixed, goodput, 0.1),
        (Protection::Ejection, "1-of-5-errors", Storm::A, 80, mixed, goodput, 0.05),
        (Protection::PanicMode, "3-of-5-half", Storm::B, 120, mixed, recovery, 5.0),
        (Protection::SlowStart, "2-of-5-cold", Storm::B, 50, mixed, latency, 0.05),
    ];
    let named: Vec<Protection> = places.iter().map(|place| place.0).collect();
    assert_eq!(named, Protection::ALL);
    let mut missed = Vec::new();
    for (protection, shape, storm, load, clients, figure, least) in places {
        let got = bought(cell(shape, Law::Fixed, storm, load, clients), protection);
        if got[figure] < least {
            missed.push(format!("{}: {got:?}", protection.name()));
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}
