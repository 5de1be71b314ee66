//! Law 12: what is observed is forwarded at once, and the verdicts are what enforcing does.

use crate::world::{Answer, Call, World, at, ends, equal, millis, request, script, serves, settings, tenant};
use seawall_core::Engine;
use seawall_core::advice::Form;
use seawall_core::classify::AttemptEnd;
use seawall_core::engine::{Arrival, Input, Notice, Output, Scope, Verdict};
use seawall_core::id::{PoolId, RequestId, TenantId};
use seawall_core::outcome::Outcome;
use seawall_core::random::Random;
use seawall_core::settings::{Capacity, Mode, Settings};
use seawall_core::time::{Duration, Instant};

const TWO: Capacity = Capacity::Provisioned { size: 2 };

fn observing(mut settings: Settings) -> Settings {
    settings.set_mode(Mode::Observe);
    settings
}

/// An upstream with this many places that queues what is over them, first come first served.
fn queueing(places: usize, service: Duration) -> impl FnMut(&Call) -> Answer {
    let mut free_at = vec![Instant::ZERO; places];
    move |call| {
        let place = free_at.iter_mut().min().expect("there is a place");
        *place = call.now.max(*place) + service;
        Answer { after: place.since(call.now), end: AttemptEnd::Completed, headers: None }
    }
}

#[test]
fn a_full_deployment_takes_what_enforcing_would_let_wait_or_refuse() {
    let mut settings = settings(&[TWO]);
    settings.pools[0].queue.patience = millis(250);
    settings.pools[0].queue.max_waiting = 6;
    let world_of = |settings: &Settings| {
        let mut world = World::new(settings, vec![script(queueing(2, millis(100)))]);
        (0..10).for_each(|id| world.arrive(at(id), request(id)));
        world.run_until(at(10_000));
        world.assert_settled();
        world
    };
    let enforced = world_of(&settings);
    let observed = world_of(&observing(settings));
    let refused = Verdict::Refuse(Outcome::CapacityExhausted);
    // Two run. Six wait: four are let go after 98 and 198 ms, two are not after 250 ms. Two more are refused at once.
    let expected = [None, Some(Verdict::Wait), Some(refused)];
    let expected: Vec<_> = expected.into_iter().zip([2, 4, 4]).flat_map(|(one, count)| vec![one; count]).collect();
    let verdicts: Vec<_> = (0..10).map(|id| observed.response(id).observed).collect();
    assert_eq!(verdicts, expected);
    assert_eq!(observed.count(Outcome::Served), 10);
    assert!(observed.attempts.iter().all(|attempt| attempt.at == at(attempt.request.0)), "at once");
    assert!(observed.responses.values().all(|(_, respond)| respond.queued.is_zero() && respond.attempts == 1));
    assert_eq!(observed.most_running, [10]);
    // And that is what enforcing does.
    let done: Vec<_> = (0..10).map(|id| done(&enforced, id)).collect();
    assert_eq!(done, expected);
}

/// What an enforcing run did to a request, in the words of a verdict.
fn done(enforced: &World, id: u64) -> Option<Verdict> {
    let respond = enforced.response(id);
    match respond.outcome {
        Outcome::Served => (!respond.queued.is_zero()).then_some(Verdict::Wait),
        outcome => Some(Verdict::Refuse(outcome)),
    }
}

/// Bursts over what fits, with idle time between them: the verdict is what enforcing the same settings over the same
/// queueing upstream does, but for the few at the edge of what can be served in time, which is an estimate.
#[test]
fn over_an_upstream_that_queues_the_verdicts_are_what_enforcing_does() {
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let mut settings = settings(&[TWO]);
        settings.pools[0].queue.patience = millis(330);
        settings.pools[0].queue.max_waiting = 11;
        let mut times = Vec::new();
        for burst in 0..40_u64 {
            times.extend((0..random.below(30)).map(|_| at(burst * 5_000 + u64::from(random.below(90)))));
        }
        let run = |settings: &Settings| {
            let mut world = World::new(settings, vec![script(queueing(2, millis(100)))]);
            (0..).zip(&times).for_each(|(id, when)| world.arrive(*when, request(id)));
            world.run_until(at(1_000_000));
            world.assert_settled();
            world
        };
        let (enforced, observed) = (run(&settings), run(&observing(settings.clone())));
        let differ = |id: &u64| observed.response(*id).observed != done(&enforced, *id);
        let different = (0..times.len() as u64).filter(differ).count();
        assert!(different * 10 <= times.len(), "{different} of {} in seed {seed}", times.len());
        assert!(observed.verdicts(Verdict::Wait) > 100 && observed.count(Outcome::Served) == times.len());
    }
}

/// A minute at three halves of what two places serve. Nothing is held back, so at its end the upstream has a line of 600:
/// the verdicts do not follow it into the collapse: a third is refused, as when enforcing.
#[test]
fn a_lasting_overload_is_judged_by_what_enforcing_serves() {
    let mut settings = settings(&[TWO]);
    settings.pools[0].queue.patience = millis(2_000);
    let run = |settings: &Settings| {
        let mut world = World::new(settings, vec![script(queueing(2, millis(100)))]);
        world.arrive_evenly(at(0), 30, 1_800);
        world.run_until(at(200_000));
        world.assert_settled();
        world
    };
    let (enforced, observed) = (run(&settings), run(&observing(settings)));
    let refused = Verdict::Refuse(Outcome::CapacityExhausted);
    let counts = (enforced.count(Outcome::CapacityExhausted), observed.verdicts(refused), observed.most_running[0]);
    assert_eq!(counts, (563, 562, 602));
    assert_eq!(observed.count(Outcome::Served), 1_800);
}

/// The told size is too small: the upstream serves all at once. Enforcing would refuse a third; what is observed never
/// waits long enough in the shadow for that, and all but the first two are told to wait.
#[test]
fn an_upstream_that_serves_more_than_its_told_size_is_judged_by_what_it_serves() {
    let mut settings = settings(&[TWO]);
    settings.pools[0].queue.patience = millis(2_000);
    let mut world = World::new(&observing(settings), vec![serves(millis(100))]);
    world.arrive_evenly(at(0), 30, 1_800);
    world.run_until(at(200_000));
    assert_eq!(
        (world.verdicts(Verdict::Refuse(Outcome::CapacityExhausted)), world.verdicts(Verdict::Wait)),
        (0, 1_798)
    );
    assert_eq!(world.most_running, [4]);
    world.assert_settled();
}

/// Three deployments in turn, the first of them down for 30 s.
#[test]
fn traffic_stays_at_a_deployment_that_would_be_out() {
    let mut settings = equal(3);
    settings.pools[0].policy = "round_robin".into();
    settings.pools[0].retry.max_attempts = 1;
    let down = |call: &Call| {
        let end = if call.now < at(30_000) { AttemptEnd::Failed } else { AttemptEnd::Completed };
        Answer::ended(millis(10), end)
    };
    let mut world = World::new(&observing(settings), vec![script(down), serves(millis(10)), serves(millis(10))]);
    world.arrive_evenly(at(0), 30, 2_400);
    world.run_until(at(20_000));
    assert_ne!(world.health(0), "healthy", "its health is known");
    world.run_until(at(100_000));
    assert_eq!([0, 1, 2].map(|index| world.attempts_at(index)), [800; 3]);
    assert_eq!((world.count(Outcome::UpstreamError), world.count(Outcome::Served)), (300, 2_100));
    // It would have been out from its third failure on, but for its probes.
    let times: Vec<_> = world
        .notices
        .iter()
        .map(|(when, notice)| match notice {
            Notice::Ejected { time, mode: Mode::Observe, .. } => (*when, Some(*time)),
            Notice::Returned { mode: Mode::Observe, .. } => (*when, None),
            other => panic!("{other:?}"),
        })
        .collect();
    let spans = times.iter().filter_map(|(when, time)| time.map(|time| (*when, time)));
    assert_eq!(times[0].0, at(210));
    let to_it = world.attempts.iter().filter(|attempt| attempt.deployment == 0);
    let out = |when: Instant| spans.clone().any(|(from, time)| when >= from && when < from + time);
    let moved = to_it.filter(|attempt| out(attempt.at)).count();
    assert_eq!(world.verdicts(Verdict::MoveForHealth), moved);
    assert!(moved > 290, "{moved}");
    assert_eq!(times.last().map(|(_, time)| *time), Some(None), "it would be back: {times:?}");
    assert_eq!(world.health(0), "healthy");
    world.assert_settled();
}

/// A reservation of two in front of what is paid by use, as `priority` fills them.
#[test]
fn what_would_spill_over_stays() {
    let mut settings = settings(&[TWO, Capacity::Standard { size: Some(3) }]);
    settings.deployments[1].priority_group = 1;
    let mut world = World::new(&observing(settings), vec![serves(millis(100)), serves(millis(100))]);
    (0..7).for_each(|id| world.arrive(at(id), request(id)));
    world.run_until(at(1_000));
    let verdicts: Vec<_> = (0..7).map(|id| world.response(id).observed).collect();
    let (moved, waits) = (Some(Verdict::MoveForCapacity), Some(Verdict::Wait));
    assert_eq!(verdicts, [None, None, moved, moved, moved, waits, waits]);
    assert_eq!([world.attempts_at(0), world.attempts_at(1)], [7, 0]);
    world.assert_settled();
}

#[test]
fn a_throttle_closes_nothing() {
    let full = AttemptEnd::Throttled { wait: Some(millis(1_000)) };
    for (count, verdict) in [(1, Verdict::Wait), (2, Verdict::MoveForCapacity)] {
        let mut settings = equal(count);
        settings.pools[0].policy = "priority".into();
        settings.deployments.iter_mut().zip(0..).for_each(|(told, group)| told.priority_group = group);
        let throttles = move |call: &Call| {
            if call.now == at(0) { Answer::ended(millis(5), full) } else { Answer::served(millis(5)) }
        };
        let upstreams = std::iter::once(script(throttles)).chain((1..count).map(|_| serves(millis(5)))).collect();
        let mut world = World::new(&observing(settings), upstreams);
        [0, 100, 900, 1_500, 1_600].into_iter().zip(0..).for_each(|(when, id)| world.arrive(at(when), request(id)));
        world.run_until(at(500));
        assert_eq!(world.engine.view(world.now)[0].deployments[0].closed_for, millis(505), "its wait is known");
        world.run_until(at(10_000));
        assert_eq!(world.attempts_at(0), 5);
        let outcomes: Vec<_> = (0..5).map(|id| world.outcome(id)).collect();
        assert_eq!(outcomes[0], Outcome::CapacityExhausted);
        assert_eq!(outcomes[1..], [Outcome::Served; 4]);
        // The first one would have waited for its second attempt, or made it elsewhere.
        let first = if count == 1 { Verdict::Wait } else { Verdict::Retry };
        let verdicts: Vec<_> = (0..5).map(|id| world.response(id).observed).collect();
        assert_eq!(verdicts, [Some(first), Some(verdict), Some(verdict), None, None]);
        let Some(Form::Wait(wait)) = world.response(0).form else { panic!("{:?}", world.response(0).form) };
        assert!(wait >= millis(1_000), "what the upstream stated is passed on: {wait:?}");
        world.assert_settled();
    }
}

/// Every second attempt fails. The budget pays for a tenth of the 199 up to the last failure, and for its floor of ten.
#[test]
fn a_retry_is_counted_and_not_made() {
    let mut settings = equal(2);
    settings.pools[0].policy = "round_robin".into();
    settings.pools[0].ejection.consecutive_failures = 1_000;
    settings.pools[0].ejection.minimum_outcomes = 100_000;
    let mut world = World::new(&observing(settings), vec![ends(millis(1), AttemptEnd::Failed), serves(millis(1))]);
    world.arrive_evenly(at(0), 100, 200);
    world.run_until(at(10_000));
    assert_eq!((world.count(Outcome::UpstreamError), world.count(Outcome::Served)), (100, 100));
    assert_eq!(world.attempts.len(), 200);
    assert_eq!(world.verdicts(Verdict::Retry), 29);
    let told = world.responses.values().filter_map(|(_, respond)| respond.form);
    assert!(told.into_iter().all(|form| matches!(form, Form::RetrySoon(_))), "nobody is told to stay away");
    world.assert_settled();
}

#[test]
fn a_deadline_is_judged_and_cuts_nothing() {
    let mut world = World::new(&observing(equal(1)), vec![serves(millis(100))]);
    let deadlines = [Some(at(0)), Some(at(60)), Some(at(120)), Some(at(1_000)), None];
    for (id, deadline) in (0..).zip(deadlines) {
        world.arrive(at(20), Arrival { deadline, ..request(id) });
    }
    world.run_until(at(1_000));
    assert_eq!(world.count(Outcome::Served), 5);
    let late = Some(Verdict::Refuse(Outcome::DeadlineUnmeetable));
    let verdicts: Vec<_> = (0..5).map(|id| world.response(id).observed).collect();
    assert_eq!(verdicts, [late, late, None, None, None]);
    world.assert_settled();
}

/// One place, 100 ms: the second of three would not have been let go by its deadline.
#[test]
fn a_wait_that_its_deadline_ends_is_a_refusal() {
    let one = settings(&[Capacity::Provisioned { size: 1 }]);
    let mut world = World::new(&observing(one), vec![script(queueing(1, millis(100)))]);
    let deadlines = [None, Some(at(99)), None];
    (0..).zip(deadlines).for_each(|(id, deadline)| world.arrive(at(0), Arrival { deadline, ..request(id) }));
    world.run_until(at(98));
    assert_eq!(world.engine.view(world.now)[0].would_wait, 2);
    world.run_until(at(99));
    assert_eq!(world.engine.view(world.now)[0].would_wait, 1);
    world.run_until(at(1_000));
    let verdicts: Vec<_> = (0..3).map(|id| world.response(id).observed).collect();
    assert_eq!(verdicts, [None, Some(Verdict::Refuse(Outcome::DeadlineUnmeetable)), Some(Verdict::Wait)]);
    world.assert_settled();
}

#[test]
fn residency_an_unknown_model_and_a_process_that_goes_away_refuse_as_ever() {
    let mut settings = equal(2);
    settings.deployments[1].boundary = Some("eu".into());
    settings.tenants.extend([tenant("eu"), tenant("us")]);
    settings.tenants[1].boundary = Some("eu".into());
    settings.tenants[2].boundary = Some("us".into());
    let mut world = World::new(&observing(settings), vec![serves(millis(1)), serves(millis(1))]);
    (0..20).for_each(|id| world.arrive(at(id), Arrival { tenant: TenantId(1), ..request(id) }));
    world.arrive(at(30), Arrival { tenant: TenantId(2), ..request(30) });
    world.drain(at(40));
    world.arrive(at(50), request(50));
    world.run_until(at(1_000));
    assert_eq!([world.attempts_at(0), world.attempts_at(1)], [0, 20]);
    assert_eq!((world.outcome(30), world.outcome(50)), (Outcome::NoHealthyDeployment, Outcome::Draining));
    assert!(world.responses.values().all(|(_, respond)| respond.observed.is_none()));
    world.assert_settled();
    let mut engine = world.engine;
    engine.handle(at(2_000), Input::Arrived(Arrival { pool: PoolId(9), ..request(60) }));
    assert!(matches!(engine.poll(), Some(Output::Respond(respond)) if respond.outcome == Outcome::ModelNotFound));
}

#[test]
fn observe_wins_wherever_it_is_said() {
    use Mode::{Enforce, Observe};
    for (pool, tenant, attempts) in [(Enforce, Enforce, 1), (Observe, Enforce, 3), (Enforce, Observe, 3)] {
        let mut settings = settings(&[Capacity::Provisioned { size: 1 }]);
        settings.pools[0].mode = pool;
        settings.tenants[0].mode = tenant;
        let mut world = World::new(&settings, vec![serves(millis(100))]);
        (0..3).for_each(|id| world.arrive(at(0), request(id)));
        world.run_until(at(0));
        assert_eq!(world.attempts.len(), attempts, "{pool:?} {tenant:?}");
        world.run_until(at(1_000));
        world.assert_settled();
    }
}

/// Two places. An observed tenant takes four, so an enforced one waits until fewer than two are in flight, whoever they
/// belong to; and the observed one is judged as if it stood in the same line.
#[test]
fn an_enforced_tenant_is_bounded_by_all_that_is_in_flight() {
    let mut settings = settings(&[TWO]);
    settings.tenants.push(tenant("observed"));
    settings.tenants[1].mode = Mode::Observe;
    let mut world = World::new(&settings, vec![script(queueing(2, millis(100)))]);
    (0..4).for_each(|id| world.arrive(at(0), Arrival { tenant: TenantId(1), ..request(id) }));
    (10..13).for_each(|id| world.arrive(at(10), request(id)));
    world.run_until(at(50));
    let view = &world.engine.view(world.now)[0];
    let deployment = &view.deployments[0];
    assert_eq!((view.waiting, view.would_wait, deployment.in_flight, deployment.would_run), (3, 2, 4, 2));
    world.run_until(at(1_000));
    // At 100 ms two of the four have ended and two are in flight: no room before 200 ms.
    let started: Vec<_> = (10..13).map(|id| world.attempts_of(id)[0].at).collect();
    assert_eq!(started, [at(200), at(200), at(300)]);
    let verdicts: Vec<_> = (0..4).map(|id| world.response(id).observed).collect();
    assert_eq!(verdicts, [None, None, Some(Verdict::Wait), Some(Verdict::Wait)]);
    assert!((10..13).all(|id| world.response(id).observed.is_none()));
    assert_eq!(world.count(Outcome::Served), 7);
    world.assert_settled();
}

/// An enforced tenant leaves a deployment whose failures an observed one has seen; that one stays.
#[test]
fn health_is_common_to_both() {
    let mut settings = equal(2);
    settings.pools[0].policy = "round_robin".into();
    settings.tenants.push(tenant("observed"));
    settings.tenants[1].mode = Mode::Observe;
    let mut world = World::new(&settings, vec![ends(millis(1), AttemptEnd::Failed), serves(millis(1))]);
    for id in 0..20 {
        world.arrive(at(id * 10), Arrival { tenant: TenantId(1), ..request(id) });
    }
    for id in 100..120 {
        world.arrive(at(id * 10), request(id));
    }
    for id in 200..220 {
        world.arrive(at(id * 10), Arrival { tenant: TenantId(1), ..request(id) });
    }
    world.run_until(at(5_000));
    assert!(matches!(world.notices[0].1, Notice::Ejected { mode: Mode::Enforce, .. }), "{:?}", world.notices);
    let enforced = world.attempts.iter().filter(|attempt| (100..120).contains(&attempt.request.0));
    assert!(enforced.clone().count() == 20 && enforced.clone().all(|attempt| attempt.deployment == 1));
    assert_eq!(world.attempts_at(0), 20, "every second one of the observed");
    world.assert_settled();
}

fn dispatched(engine: &mut Engine) -> Vec<(u64, usize)> {
    let outputs = std::iter::from_fn(|| engine.poll());
    let place = |output| match output {
        Output::Dispatch(dispatch) => Some((dispatch.permit.request().0, dispatch.permit.deployment().index())),
        _ => None,
    };
    outputs.filter_map(place).collect()
}

/// What was learned while observing holds from the first enforced request on: who is out, who is closed, who is full.
#[test]
fn a_switch_to_enforce_needs_no_warm_up() {
    let mut settings = settings(&[TWO; 3]);
    settings.pools[0].policy = "round_robin".into();
    let mut engine = Engine::new(at(0), &observing(settings));
    // In turn: the first one fails, the second one has no capacity, the third one keeps what it gets.
    for id in 0..12 {
        engine.handle(at(id), Input::Arrived(request(id)));
        match id % 3 {
            0 => engine.handle(at(id), Input::AttemptEnded(RequestId(id), 1, AttemptEnd::Failed)),
            1 => {
                let full = AttemptEnd::Throttled { wait: Some(millis(5_000)) };
                engine.handle(at(id), Input::AttemptEnded(RequestId(id), 1, full));
            }
            _ => {}
        }
    }
    assert_eq!(dispatched(&mut engine).len(), 12);
    let everything = [Scope::Pool(PoolId(0)), Scope::Tenant(TenantId(0))];
    for scope in everything {
        engine.handle(at(20), Input::Switch(scope, Mode::Enforce));
    }
    // The four that run at the third one were let in when nothing was held back.
    engine.handle(at(20), Input::Arrived(request(20)));
    assert_eq!(dispatched(&mut engine), []);
    for id in [2, 5] {
        engine.handle(at(30), Input::AttemptEnded(RequestId(id), 1, AttemptEnd::Completed));
    }
    assert_eq!(dispatched(&mut engine), []);
    engine.handle(at(40), Input::AttemptEnded(RequestId(8), 1, AttemptEnd::Completed));
    assert_eq!(dispatched(&mut engine), [(20, 2)]);
    engine.handle(at(50), Input::ClientGone(RequestId(11)));
    engine.handle(at(50), Input::AttemptEnded(RequestId(20), 1, AttemptEnd::Completed));
    assert_eq!(engine.live(), 0);
}

/// Who waits is let go at once; a second attempt that waits stays what it is.
#[test]
fn a_switch_to_observe_empties_the_line() {
    for scope in [Scope::Pool(PoolId(0)), Scope::Tenant(TenantId(0))] {
        let mut engine = Engine::new(at(0), &settings(&[TWO]));
        (0..5).for_each(|id| engine.handle(at(0), Input::Arrived(request(id))));
        let full = AttemptEnd::Throttled { wait: Some(millis(1_000)) };
        engine.handle(at(10), Input::AttemptEnded(RequestId(0), 1, full));
        assert_eq!(dispatched(&mut engine), [(0, 0), (1, 0)]);
        engine.handle(at(20), Input::Switch(scope, Mode::Observe));
        assert_eq!(dispatched(&mut engine), [(2, 0), (3, 0), (4, 0)]);
        assert_eq!(engine.view(at(20))[0].waiting, 1);
        for id in 1..5 {
            engine.handle(at(100), Input::AttemptEnded(RequestId(id), 1, AttemptEnd::Completed));
            let Some(Output::Respond(respond)) = engine.poll() else { panic!("no answer to {id}") };
            let waited = if id == 1 { millis(0) } else { millis(20) };
            let verdict = (id > 1).then_some(Verdict::Wait);
            assert_eq!((respond.outcome, respond.queued, respond.observed), (Outcome::Served, waited, verdict));
        }
        engine.handle(at(1_010), Input::Tick);
        assert_eq!(dispatched(&mut engine), [(0, 0)]);
        engine.handle(at(1_100), Input::AttemptEnded(RequestId(0), 2, AttemptEnd::Completed));
        let view = &engine.view(at(1_100))[0];
        assert_eq!((engine.live(), view.waiting, view.would_wait, view.deployments[0].would_run), (0, 0, 0, 0));
    }
}

/// A host that stands beside another router says where each request goes: what fails is blamed on where it went.
#[test]
fn what_a_host_has_sent_elsewhere_is_judged_there() {
    let mut world = World::new(
        &observing(equal(3)),
        vec![serves(millis(50)), ends(millis(1), AttemptEnd::Failed), serves(millis(50))],
    );
    (0..30).for_each(|id| world.mirror(at(id * 100), request(id), 1));
    (30..40).for_each(|id| world.mirror(at(id * 100), request(id), 2));
    // One that the pool does not have is as none: the policy picks.
    world.mirror(at(4_000), request(40), 9);
    world.run_until(at(10_000));
    world.assert_settled();
    assert_eq!((world.attempts_at(1), world.attempts_at(0) + world.attempts_at(2)), (30, 11));
    assert_eq!((world.health(0), world.health(1), world.health(2)), ("healthy", "ejected", "healthy"));
    // Three failures and it would have been out: the others would have been sent elsewhere.
    assert_eq!((world.verdicts(Verdict::Retry), world.verdicts(Verdict::MoveForHealth)), (3, 27));
}

#[test]
fn an_enforced_request_goes_where_the_engine_says() {
    let mut world = World::new(&equal(2), vec![serves(millis(1)), serves(millis(1))]);
    for id in 0..100 {
        world.mirror(at(id * 10), request(id), 0);
    }
    world.run_until(at(10_000));
    assert!(world.attempts_at(1) > 30, "half of them go to the other one");
}
