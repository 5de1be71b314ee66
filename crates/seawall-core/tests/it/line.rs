//! The waiting line: bounds, deadlines, residency, and that nobody waits while there is room.

use crate::world::{Answer, Call, World, at, choose, equal, millis, request, script, serves, settings, tenant};
use seawall_core::advice::Form;
use seawall_core::classify::AttemptEnd;
use seawall_core::engine::{Arrival, Input, Output};
use seawall_core::id::{DeploymentId, RequestId, TenantId};
use seawall_core::outcome::Outcome;
use seawall_core::settings::{Capacity, Criticality, Settings};
use seawall_core::time::Duration;

const ONE: Capacity = Capacity::Provisioned { size: 1 };

/// F41 in its engine part: ten at a time, 1 s each, 100 a second for 20 s; deadlines and patience in equal parts.
#[test]
fn a_wait_ends_at_the_earlier_of_deadline_and_patience() {
    let mut settings = settings(&[Capacity::Provisioned { size: 10 }]);
    settings.pools[0].queue.patience = millis(5_000);
    settings.pools[0].queue.max_waiting = 1_000;
    let mut world = World::new(&settings, vec![serves(millis(1_000))]);
    let limits = [millis(500), millis(2_000), millis(30_000)];
    for id in 0..2_000_u64 {
        let now = at(id * 10);
        let limit = choose(&limits, id);
        // By deadline, by told patience, and by a client that leaves.
        let arrival = match id % 9 / 3 {
            0 => Arrival { deadline: Some(now + limit), ..request(id) },
            1 => Arrival { patience: Some(limit), ..request(id) },
            _ => request(id),
        };
        world.arrive(now, arrival);
        if id % 9 / 3 == 2 {
            world.leave(now + limit, RequestId(id));
        }
    }
    world.run_until(at(100_000));
    for attempt in &world.attempts {
        let waited = attempt.at.since(at(attempt.request.0 * 10));
        let limit = choose(&limits, attempt.request.0).min(millis(5_000));
        assert!(waited <= limit, "{attempt:?} waited {waited:?}");
    }
    for (id, (when, respond)) in &world.responses {
        let limit = choose(&limits, id.0).min(millis(5_000));
        let told = respond.outcome == Outcome::CapacityExhausted || respond.outcome == Outcome::DeadlineUnmeetable;
        if told && respond.attempts == 0 && world.arrivals[id].deadline != Some(*when) {
            let waited = when.since(at(id.0 * 10));
            // Who could not be answered in time any more is told before the end.
            let in_time = limit * 3 / 4 <= waited && waited <= limit;
            assert!(in_time || waited.is_zero(), "{id:?} {waited:?}");
            assert_eq!(respond.queued, waited, "the wait is told as it was: {id:?}");
        }
    }
    assert!(world.count(Outcome::Served) > 150);
    // Ten places, busy from the first to the last arrival.
    assert!(world.busy[0] >= millis(190_000), "{:?}", world.busy[0]);
    world.assert_settled();
}

#[test]
fn the_line_has_a_bound_and_what_is_over_it_is_told_at_once() {
    let mut settings = settings(&[ONE]);
    settings.pools[0].queue.max_waiting = 5;
    let mut world = World::new(&settings, vec![serves(millis(100))]);
    for id in 0..20 {
        world.arrive(at(0), request(id));
    }
    world.run_until(at(0));
    assert_eq!(world.count(Outcome::CapacityExhausted), 14);
    assert_eq!(world.engine.view(world.now)[0].waiting, 5);
    world.run_until(at(10_000));
    assert_eq!(world.count(Outcome::Served), 6);
    world.assert_settled();
}

/// Two boundaries, three deployments each inside one, and one without a promise.
fn resident(sizes: [Capacity; 3]) -> Settings {
    let mut settings = settings(&sizes);
    for (index, boundary) in [Some("eu"), Some("us"), None].into_iter().enumerate() {
        settings.deployments[index].boundary = boundary.map(Into::into);
        settings.tenants.push(tenant(boundary.unwrap_or("anywhere")));
        settings.tenants[index + 1].boundary = boundary.map(Into::into);
    }
    settings
}

const EU: TenantId = TenantId(1);
const US: TenantId = TenantId(2);

/// Every deployment throttles, fails, serves and is full in turn: no attempt ever leaves its tenant's boundary.
#[test]
fn residency_holds_over_retries_spill_over_and_panic() {
    let ends = [
        AttemptEnd::Failed,
        AttemptEnd::NotSent,
        AttemptEnd::Completed,
        AttemptEnd::StaleConnection,
        AttemptEnd::Throttled { wait: Some(millis(30)) },
        AttemptEnd::TimedOut,
    ];
    for seed in 0..10 {
        let mut settings = resident([Capacity::Provisioned { size: 3 }; 3]);
        settings.seed = seed;
        settings.pools[0].retry.not_sent_percent = 100;
        settings.pools[0].retry.budget_percent = 100;
        let mut count = seed;
        let mixed = move |_: &Call| {
            count += 1;
            Answer::ended(millis(40 + count % 70), choose(&ends, count * 7 / 3))
        };
        let upstreams = (0..3).map(|_| script(mixed)).collect();
        let mut world = World::new(&settings, upstreams);
        for id in 0..2_000 {
            let tenant = TenantId(1 + u32::try_from(id % 3).expect("small"));
            world.arrive(at(id * 10), Arrival { tenant, ..request(id) });
        }
        world.run_until(at(100_000));
        let mut elsewhere = 0;
        for attempt in &world.attempts {
            match world.arrivals[&attempt.request].tenant {
                EU => assert_eq!(attempt.deployment, 0),
                US => assert_eq!(attempt.deployment, 1),
                _ => elsewhere += usize::from(attempt.deployment != 2),
            }
        }
        assert!(elsewhere > 20, "those who may go anywhere do: {elsewhere}");
        world.assert_settled();
    }
}

/// A tenant without any deployment inside its boundary is told at once, also while others wait.
#[test]
fn nobody_waits_for_a_deployment_that_does_not_exist() {
    let mut settings = settings(&[ONE]);
    settings.tenants.push(tenant("mars"));
    settings.tenants[1].boundary = Some("mars".into());
    let mut world = World::new(&settings, vec![serves(millis(1_000))]);
    let lost = |id| Arrival { tenant: TenantId(1), ..request(id) };
    world.arrive(at(0), lost(0));
    world.arrive(at(10), request(1));
    world.arrive(at(10), request(2));
    world.arrive(at(20), lost(3));
    world.run_until(at(50_000));
    for (id, when) in [(0, 0), (3, 20)] {
        assert_eq!((world.outcome(id), world.responded_at(id)), (Outcome::NoHealthyDeployment, at(when)));
    }
    world.assert_settled();
}

/// Those who wait for one place do not stand in the way of those who could go to another.
#[test]
fn a_full_boundary_does_not_block_the_others() {
    let mut settings = resident([ONE; 3]);
    settings.pools[0].queue.max_waiting = 4;
    let mut world = World::new(&settings, vec![serves(millis(1_000)), serves(millis(1_000)), serves(millis(1_000))]);
    for id in 0..5 {
        world.arrive(at(0), Arrival { tenant: EU, ..request(id) });
    }
    // The line is full of those who wait for `eu`; `us` is idle.
    world.arrive(at(10), Arrival { tenant: US, ..request(10) });
    world.run_until(at(10));
    assert_eq!(world.attempts_of(10).len(), 1);
    world.run_until(at(50_000));
    assert_eq!((world.outcome(10), world.responded_at(10)), (Outcome::Served, at(1_010)));
    world.assert_settled();
}

/// Two deployments closed by stated waits of different length: each one's line moves when its own wait is over, also
/// when the head of the line is somebody else.
#[test]
fn each_stated_wait_wakes_the_line_when_it_ends() {
    let throttle_then_serve = |wait: Duration, serve: Duration| {
        script(move |call: &Call| {
            if call.now == at(0) {
                Answer::ended(millis(1), AttemptEnd::Throttled { wait: Some(wait) })
            } else {
                Answer::served(serve)
            }
        })
    };
    let mut world = World::new(&resident([ONE; 3]), {
        vec![
            throttle_then_serve(millis(1_000), millis(9_000)),
            throttle_then_serve(millis(2_000), millis(10)),
            serves(millis(1)),
        ]
    });
    world.arrive(at(0), Arrival { tenant: EU, ..request(0) });
    world.arrive(at(0), Arrival { tenant: US, ..request(1) });
    world.arrive(at(10), Arrival { tenant: EU, criticality: Criticality::CriticalPlus, ..request(2) });
    world.arrive(at(10), Arrival { tenant: EU, criticality: Criticality::CriticalPlus, ..request(3) });
    world.arrive(at(20), Arrival { tenant: US, ..request(4) });
    world.run_until(at(100_000));
    assert_eq!(world.attempts_of(2)[0].at, at(1_001));
    // `us` opens at 2,001 ms, while a request for `eu` heads the line and `eu` is full.
    assert_eq!(world.attempts_of(1)[1].at, at(2_001));
    assert_eq!(world.attempts_of(4)[0].at, at(2_011));
    world.assert_settled();
}

/// A deployment is out, another one is full with long answers: once a second who waits finds out whether it works again,
/// although nothing ended and nobody arrived.
#[test]
fn who_waits_finds_out_whether_what_is_out_is_back() {
    let mut settings = settings(&[Capacity::Provisioned { size: 3 }; 2]);
    settings.deployments[1].priority_group = 1;
    settings.pools[0].ejection.base_time = millis(4_000);
    let recovers = |call: &Call| {
        if call.now < at(1_000) { Answer::ended(millis(1), AttemptEnd::Failed) } else { Answer::served(millis(10)) }
    };
    let mut world = World::new(&settings, vec![serves(millis(100_000)), script(recovers)]);
    for id in 0..6 {
        world.arrive(at(id * 10), request(id));
    }
    world.run_until(at(500));
    assert_eq!(world.health(1), "ejected");
    world.arrive(at(600), request(10));
    world.run_until(at(200_000));
    assert_eq!(world.outcome(10), Outcome::Served);
    let started = world.attempts_of(10)[0].at;
    assert!((at(1_000)..=at(1_100)).contains(&started), "{started:?}");
    world.assert_settled();
}

/// A learned ceiling whose time to grow has passed on a deployment that nobody asks must not keep the engine busy.
#[test]
fn a_ceiling_that_nobody_looks_at_does_not_spin() {
    let mut settings = resident([Capacity::Standard { size: None }; 3]);
    settings.deployments[2].boundary = Some("eu".into());
    let mut count = 0;
    let mixed = move |call: &Call| {
        count += 1;
        if call.now > at(1_000) || count % 2 == 1 {
            return Answer::served(millis(30_000));
        }
        Answer::ended(millis(1), AttemptEnd::Throttled { wait: Some(millis(100)) })
    };
    let mut world = World::new(&settings, vec![script(mixed), serves(millis(100)), script(mixed)]);
    for id in 0..40 {
        world.arrive(at(id), Arrival { tenant: EU, ..request(id) });
        world.arrive(at(id * 700), Arrival { tenant: US, ..request(1_000 + id) });
    }
    world.run_until(at(200_000));
    for id in 1_000..1_040 {
        assert_eq!(world.outcome(id), Outcome::Served);
    }
    world.assert_settled();
}

/// A second attempt that the bucket does not pay for yet waits for the bucket, not for ever, and blocks nobody.
#[test]
fn an_unpaid_second_attempt_waits_for_the_bucket() {
    let mut settings = equal(1);
    settings.pools[0].retry.not_sent_percent = 0;
    settings.pools[0].retry.window = millis(2_000);
    let throttles_first = |call: &Call| {
        if call.now < at(100) {
            Answer::ended(millis(1), AttemptEnd::Throttled { wait: Some(millis(100)) })
        } else {
            Answer::served(millis(10))
        }
    };
    let mut world = World::new(&settings, vec![script(throttles_first)]);
    for id in 0..6 {
        world.arrive(at(0), request(id));
    }
    world.arrive(at(500), request(10));
    world.run_until(at(20_000));
    assert_eq!(world.count(Outcome::Served), 7);
    assert_eq!(world.responded_at(10), at(510));
    let mut second: Vec<_> = world.attempts.iter().filter(|a| a.number == 2).map(|a| a.at).collect();
    second.sort_unstable();
    // Two in a window of 2 s.
    assert!(second.windows(3).all(|three| three[2].since(three[0]) >= millis(1_700)), "{second:?}");
    world.assert_settled();
}

/// Thousands wait for one full place while another one, which they may not use or which is out, has room: each input
/// looks at the head of each line, not at all who wait.
#[test]
fn a_long_line_costs_no_walk_for_each_input() {
    let mut settings = resident([ONE; 3]);
    settings.pools[0].queue.max_waiting = 50_000;
    settings.pools[0].queue.patience = millis(1_000_000_000);
    let mut world = World::new(&settings, vec![serves(millis(900_000_000)), serves(millis(1)), serves(millis(1))]);
    for id in 0..20_001 {
        world.arrive(at(0), Arrival { tenant: EU, ..request(id) });
    }
    // With a walk over the whole line for each of these it would be 400 million steps, minutes instead of a second.
    for id in 0..10_000 {
        world.arrive(at(1 + id * 2), Arrival { tenant: US, ..request(100_000 + id) });
    }
    world.run_until(at(100_000));
    assert_eq!(world.count(Outcome::Served), 10_000);
    assert_eq!(world.engine.view(world.now)[0].waiting, 20_000);
}

#[test]
fn a_wait_without_patience_is_refused_at_the_next_tick() {
    let mut engine = seawall_core::Engine::new(at(0), &settings(&[ONE]));
    engine.handle(at(0), Input::Arrived(request(0)));
    assert!(matches!(engine.poll(), Some(Output::Dispatch(_))));
    engine.handle(at(0), Input::Arrived(Arrival { patience: Some(Duration::ZERO), ..request(1) }));
    assert_eq!(engine.poll(), None);
    assert_eq!(engine.next_deadline(), Some(at(0)));
    engine.handle(at(0), Input::Tick);
    let Some(Output::Respond(respond)) = engine.poll() else { panic!("no answer") };
    assert!(matches!((respond.outcome, respond.form), (Outcome::CapacityExhausted, Some(Form::Wait(_)))));
    assert_eq!(respond.deployment, None::<DeploymentId>);
}
