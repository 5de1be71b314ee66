//! Hosts that cross, repeat and get things wrong: nothing panics, nothing leaks.

use crate::world::{Answer, World, at, choose, equal, millis, request, script, serves, settings};
use seawall_core::Engine;
use seawall_core::classify::AttemptEnd;
use seawall_core::engine::{Arrival, Input, Output};
use seawall_core::id::{PoolId, RequestId, TenantId};
use seawall_core::outcome::Outcome;
use seawall_core::random::Random;
use seawall_core::settings::{Capacity, Settings};
use seawall_core::time::Instant;

/// F63(c): 10,000 requests whose clients leave at random points: waiting, running, relaying. Afterwards exactly ten run
/// at once again.
#[test]
fn aborts_at_random_points_leave_nothing_in_flight() {
    let mut settings = settings(&[Capacity::Provisioned { size: 4 }, Capacity::Provisioned { size: 6 }]);
    settings.pools[0].queue.max_waiting = 100;
    let (mut draws, mut answers) = (Random::new(3), Random::new(4));
    let mixed = move |_: &crate::world::Call| {
        let after = millis(u64::from(answers.below(80)));
        match answers.below(12) {
            0 => Answer::ended(after, AttemptEnd::Failed),
            1 => Answer::ended(after, AttemptEnd::Throttled { wait: Some(millis(40)) }),
            2 => Answer::ended(after, AttemptEnd::NotSent),
            3 => Answer::ended(after, AttemptEnd::StaleConnection),
            _ => Answer::served(after),
        }
    };
    let mut world = World::new(&settings, vec![script(mixed.clone()), script(mixed)]);
    for id in 0..10_000 {
        let arrived = at(id * 4 + u64::from(draws.below(10)));
        world.arrive(arrived, request(id));
        world.leave(arrived + millis(u64::from(draws.below(150))), RequestId(id));
    }
    world.run_until(at(200_000));
    assert!(world.count(Outcome::ClientGone) > 2_000);
    assert!(world.count(Outcome::Served) > 1_000);
    world.assert_settled();
    // Healthy again, then eleven long ones at once: ten run.
    let mut engine = world.engine;
    for id in 20_000..20_300 {
        let now = at(200_000 + (id - 20_000) * 1_000);
        engine.handle(now, Input::Arrived(request(id)));
        engine.handle(now, Input::AttemptEnded(RequestId(id), 1, AttemptEnd::Completed));
    }
    while engine.poll().is_some() {}
    let now = at(600_000);
    for id in 30_000..30_011 {
        engine.handle(now, Input::Arrived(request(id)));
    }
    let started = std::iter::from_fn(|| engine.poll()).filter(|output| matches!(output, Output::Dispatch(_))).count();
    assert_eq!(started, 10);
    assert_eq!(engine.view(now)[0].waiting, 1);
}

fn drained(engine: &mut Engine) -> Vec<Output> {
    std::iter::from_fn(|| engine.poll()).collect()
}

#[test]
fn an_arrival_with_an_id_in_use_is_ignored() {
    let one = settings(&[Capacity::Provisioned { size: 1 }]);
    let mut engine = Engine::new(Instant::ZERO, &one);
    for id in [1, 1, 2, 2] {
        engine.handle(at(0), Input::Arrived(request(id)));
    }
    assert_eq!(engine.live(), 2);
    assert_eq!(drained(&mut engine).len(), 1);
    assert_eq!(engine.view(at(0))[0].waiting, 1);
    engine.handle(at(1), Input::AttemptEnded(RequestId(1), 1, AttemptEnd::Completed));
    engine.handle(at(2), Input::AttemptEnded(RequestId(2), 1, AttemptEnd::Completed));
    let outcomes: Vec<_> = drained(&mut engine)
        .into_iter()
        .filter_map(|output| match output {
            Output::Respond(respond) => Some((respond.request.0, respond.outcome)),
            _ => None,
        })
        .collect();
    assert_eq!(outcomes, [(1, Outcome::Served), (2, Outcome::Served)]);
    assert_eq!(engine.live(), 0);
    assert_eq!(engine.view(at(2))[0].deployments[0].in_flight, 0);
}

#[test]
fn an_arrival_for_a_pool_or_tenant_that_does_not_exist_is_answered() {
    let mut engine = Engine::new(Instant::ZERO, &equal(1));
    engine.handle(at(0), Input::Arrived(Arrival { pool: PoolId(9), ..request(1) }));
    engine.handle(at(0), Input::Arrived(Arrival { tenant: TenantId(9), ..request(2) }));
    let outcomes: Vec<_> = drained(&mut engine)
        .into_iter()
        .map(|output| match output {
            Output::Respond(respond) => (respond.request.0, respond.outcome, respond.attempts),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(outcomes, [(1, Outcome::ModelNotFound, 0), (2, Outcome::ModelNotFound, 0)]);
    assert_eq!(engine.live(), 0);
}

#[test]
fn a_pool_without_deployments_and_an_engine_without_settings_answer() {
    let mut empty = equal(1);
    empty.deployments.clear();
    empty.pools[0].deployments.clear();
    let mut engine = Engine::new(Instant::ZERO, &empty);
    engine.handle(at(0), Input::Arrived(request(1)));
    assert!(
        matches!(drained(&mut engine)[..], [Output::Respond(respond)] if respond.outcome == Outcome::NoHealthyDeployment)
    );
    let mut engine = Engine::new(Instant::ZERO, &Settings::default());
    engine.handle(at(0), Input::Arrived(request(1)));
    assert!(
        matches!(drained(&mut engine)[..], [Output::Respond(respond)] if respond.outcome == Outcome::ModelNotFound)
    );
}

#[test]
fn inputs_about_what_has_ended_are_ignored() {
    let mut engine = Engine::new(Instant::ZERO, &equal(2));
    engine.handle(at(0), Input::Arrived(request(1)));
    engine.handle(at(1), Input::ClientGone(RequestId(1)));
    assert_eq!(drained(&mut engine).len(), 2);
    for input in [
        Input::AttemptHeaders(RequestId(1), 1),
        Input::AttemptEnded(RequestId(1), 1, AttemptEnd::Completed),
        Input::ClientGone(RequestId(1)),
        Input::AttemptEnded(RequestId(77), 1, AttemptEnd::Failed),
    ] {
        engine.handle(at(2), input);
        assert_eq!(drained(&mut engine), []);
    }
    assert!(engine.view(at(2))[0].deployments.iter().all(|deployment| deployment.in_flight == 0));
}

/// A clock at both of its ends, and waits as long as a span can be.
#[test]
fn extreme_times_do_not_panic() {
    use seawall_core::time::Duration;
    let mut settings = equal(2);
    let ejection = &mut settings.pools[0].ejection;
    (ejection.base_time, ejection.max_time, ejection.slow_start) = (Duration::MAX, Duration::MAX, Duration::MAX);
    ejection.window = Duration::MAX;
    settings.pools[0].retry.window = Duration::ZERO;
    settings.pools[0].queue.patience = Duration::MAX;
    let mut engine = Engine::new(Instant::MAX, &settings);
    let ends = [
        AttemptEnd::Failed,
        AttemptEnd::Throttled { wait: Some(Duration::MAX) },
        AttemptEnd::Throttled { wait: Some(Duration::ZERO) },
        AttemptEnd::Completed,
    ];
    for id in 0..400_u64 {
        let now = choose(&[Instant::ZERO, Instant::MAX, at(5), at(1 << 40)], id);
        let deadline = choose(&[None, Some(Instant::MAX), Some(Instant::ZERO)], id);
        engine.handle(now, Input::Arrived(Arrival { deadline, patience: Some(Duration::MAX), ..request(id) }));
        engine.handle(now, Input::AttemptEnded(RequestId(id), 1, choose(&ends, id / 7)));
        engine.handle(now, Input::Tick);
        let _ = (engine.next_deadline(), engine.view(now));
        drained(&mut engine);
    }
}

/// At the end of time a request that waits for its bucket does not make the engine look again for ever.
#[test]
fn the_end_of_time_is_not_a_loop() {
    let mut settings = equal(1);
    settings.pools[0].retry.floor_per_second = 0;
    let mut engine = Engine::new(Instant::ZERO, &settings);
    engine.handle(at(0), Input::Arrived(request(1)));
    engine.handle(at(0), Input::AttemptEnded(RequestId(1), 1, AttemptEnd::Throttled { wait: None }));
    assert_eq!(engine.view(at(0))[0].waiting, 1);
    engine.handle(Instant::MAX, Input::Tick);
    assert_eq!(engine.live(), 0);
    engine.handle(Instant::MAX, Input::Arrived(request(2)));
    engine.handle(Instant::MAX, Input::AttemptEnded(RequestId(2), 1, AttemptEnd::Throttled { wait: None }));
    engine.handle(Instant::MAX, Input::Tick);
    assert_eq!(engine.live(), 0);
}

#[test]
fn the_same_inputs_give_the_same_outputs() {
    let run = |seed| {
        let mut settings = equal(4);
        settings.seed = seed;
        let mut world = World::new(&settings, (0..4).map(|_| serves(millis(70))).collect());
        world.arrive_evenly(at(0), 200, 2_000);
        world.run_until(at(60_000));
        world.attempts.iter().map(|attempt| (attempt.request, attempt.deployment, attempt.at)).collect::<Vec<_>>()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}
