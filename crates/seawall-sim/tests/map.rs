//! The metastability map: its world is what it says, and its cells tell recovery from an overload that stays.

use seawall_sim::map::{Cell, Filter, Outcome, Plan, Results, Verdict, draw};
use seawall_sim::{Options, SECOND, World};

fn cells(words: &str) -> Vec<Cell> {
    let filter = Filter::parse(words).expect("words of the map");
    Cell::all().filter(|cell| filter.fits(*cell)).collect()
}

fn outcome(words: &str) -> Outcome {
    let cells = cells(words);
    assert_eq!(cells.len(), 1, "{words}");
    cells[0].run(1).expect("it runs")
}

#[test]
fn saturated_servers_do_what_the_load_is_a_part_of() {
    let mut plan = Plan::of(cells("naive,none,0.95,loss-50,5s")[0]).expect("a plan");
    plan.scenario.event.clear();
    plan.scenario.population[0].rate_per_second *= 2.0;
    // Nobody leaves, so that no work is lost.
    plan.scenario.population[0].attempt_timeout = None;
    plan.scenario.population[0].patience = None;
    for router in &mut plan.scenario.router {
        router.memory_in_flight = 1_000_000;
    }
    let mut world = World::of(&plan.scenario, &Options::default()).expect("it can be built");
    world.run_until(120 * SECOND);
    let recorder = world.into_recorder();
    let names = (0..10).map(|index| format!("engine-{index}.finished"));
    let finished: f32 = names.flat_map(|name| recorder.values(&name).expect("ten servers")[20..120].to_vec()).sum();
    let per_second = f64::from(finished) / 100.0;
    assert!(
        (0.99..1.01).contains(&(per_second / plan.capacity_per_second)),
        "{per_second} of {}",
        plan.capacity_per_second
    );
}

#[test]
fn every_cell_can_be_planned() {
    for cell in Cell::all() {
        let plan = Plan::of(cell).expect("a plan");
        assert!(World::of(&plan.scenario, &Options::default()).is_ok(), "{cell}");
        assert!((0.0..=1.0).contains(&plan.explained_loss) && plan.memory > 0.0, "{cell}");
    }
}

#[test]
fn a_cell_is_the_same_each_time_and_both_routers_get_the_same_arrivals() {
    let cell = cells("naive,sdk,0.7,arrivals-2x,5s")[0];
    let run = |cell: Cell, seed| cell.run(seed).expect("it runs");
    assert_eq!(run(cell, 1), run(cell, 1));
    assert_ne!(run(cell, 1).trace_hash, run(cell, 2).trace_hash);
    let seawall = cells("seawall,sdk,0.7,arrivals-2x,5s")[0];
    assert!((run(cell, 1).goodput_before - run(seawall, 1).goodput_before).abs() < 1e-9);
}

#[test]
fn a_short_dip_at_half_load_leaves_no_trace() {
    let outcome = outcome("naive,none,0.5,loss-50,5s");
    assert_eq!((outcome.verdict, outcome.recovery_seconds), (Verdict::Pass, Some(0.0)));
    assert!(outcome.worst_loss < 0.01 && outcome.goodput_at_end > 0.999, "{outcome:?}");
}

/// Ten servers are back at full speed for five minutes, and serve nobody: what they begin is given up before it ends.
#[test]
fn retries_keep_an_overload_alive_behind_a_naive_router() {
    let outcome = outcome("naive,sdk,0.95,loss-50,30s");
    assert_eq!((outcome.verdict, outcome.recovery_seconds), (Verdict::Stuck, None));
    assert!(outcome.goodput_at_end < 0.05 && outcome.attempts_at_end > 2.5, "{outcome:?}");
    // The same without retries comes back.
    let without = self::outcome("naive,none,0.95,loss-50,30s");
    assert!(without.verdict <= Verdict::Recovered && without.goodput_at_end > 0.99, "{without:?}");
}

#[test]
fn a_naive_router_crashes_where_seawall_refuses() {
    let naive = outcome("naive,none,0.85,arrivals-50x,5s");
    assert!(naive.crashes >= 1.0 && naive.verdict > Verdict::Pass, "{naive:?}");
    let seawall = outcome("seawall,none,0.85,arrivals-50x,5s");
    assert!(seawall.crashes < 1.0 && seawall.most_memory <= 1.0, "{seawall:?}");
    assert_eq!(seawall.violations, [] as [String; 0]);
}

#[test]
fn the_drawing_shows_what_was_run_and_leaves_the_rest_empty() {
    let results: Results =
        ["naive,none,0.5,loss-50,5s", "naive,sdk,0.95,loss-50,30s"].map(outcome).into_iter().collect();
    let (text, drawing) = (results.render(), draw(&results));
    assert!(text.contains("naive: 2 cells: 1 pass, 0 recovered with harm, 0 late, 1 stuck"), "{text}");
    assert_eq!(drawing.matches("<title>").count(), 2);
    assert_eq!(drawing.matches("#f2f4f6").count(), 574);
    assert!(drawing.starts_with("<svg ") && drawing.ends_with("</svg>\n"));
}
