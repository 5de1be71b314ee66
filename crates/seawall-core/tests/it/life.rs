//! Whole lives of single requests, step by step.

use crate::world::{Answer, World, at, ends, equal, millis, request, script, serves, settings, tenant};
use seawall_core::advice::Form;
use seawall_core::classify::{AttemptEnd, HealthEffect, Repeatability};
use seawall_core::engine::{Arrival, Input, Output};
use seawall_core::id::{RequestId, TenantId};
use seawall_core::outcome::Outcome;
use seawall_core::permit::Payment;
use seawall_core::settings::{Capacity, Criticality};
use seawall_core::time::{Duration, Instant};

#[test]
fn a_request_is_served_by_one_attempt() {
    let mut world = World::new(&equal(1), vec![serves(millis(200))]);
    world.arrive(at(5), request(1));
    world.run_until(at(1_000));
    let respond = *world.response(1);
    assert_eq!((respond.outcome, respond.form, respond.attempts), (Outcome::Served, None, 1));
    assert_eq!(respond.queued, Duration::ZERO);
    assert_eq!(world.responded_at(1), at(205));
    assert_eq!(world.attempts[0].payment, Payment::Admission);
    world.assert_settled();
}

#[test]
fn a_500_is_retried_at_once_on_another_deployment() {
    for seed in 0..20 {
        let mut settings = equal(2);
        settings.seed = seed;
        let mut first = true;
        let fail_once = move |_: &crate::world::Call| {
            let fails = std::mem::replace(&mut first, false);
            if fails { Answer::ended(millis(10), AttemptEnd::Failed) } else { Answer::served(millis(10)) }
        };
        let mut world = World::new(&settings, vec![script(fail_once), serves(millis(10))]);
        world.arrive_evenly(at(0), 10, 20);
        world.run_until(at(10_000));
        assert_eq!(world.count(Outcome::Served), 20);
        assert_eq!(world.attempts.len(), 21);
        let retry = world.attempts.iter().find(|attempt| attempt.number == 2).expect("one was retried");
        assert_eq!((retry.deployment, retry.payment), (1, Payment::RetryBudget));
        let both = world.attempts_of(retry.request.0);
        assert_eq!(both[1].at, both[0].at + millis(10), "without a pause");
        world.assert_settled();
    }
}

#[test]
fn a_failure_without_another_deployment_is_told() {
    let mut world = World::new(&equal(1), vec![ends(millis(10), AttemptEnd::Failed)]);
    world.arrive(at(0), request(1));
    world.run_until(at(1_000));
    assert_eq!((world.outcome(1), world.attempts.len()), (Outcome::UpstreamError, 1));
    let Some(Form::RetrySoon(wait)) = world.response(1).form else { panic!("{:?}", world.response(1).form) };
    assert!((millis(2_000)..=millis(8_000)).contains(&wait));
}

#[test]
fn two_failures_end_it_with_advice_to_stay_away() {
    let mut world = World::new(&equal(3), (0..3).map(|_| ends(millis(10), AttemptEnd::Failed)).collect());
    world.arrive(at(0), request(1));
    world.run_until(at(1_000));
    assert_eq!((world.outcome(1), world.attempts.len()), (Outcome::UpstreamErrorRetried, 2));
    assert_ne!(world.attempts[0].deployment, world.attempts[1].deployment);
    let Some(Form::WaitStop(wait)) = world.response(1).form else { panic!("{:?}", world.response(1).form) };
    assert!((millis(30_000)..=millis(58_000)).contains(&wait));
}

/// F54, as the table that the engine lives by: end, health, second attempt, ending with one attempt and no other place.
#[test]
fn the_table_of_ends() {
    use AttemptEnd as End;
    use HealthEffect::{Failure, Neutral, Success};
    use Repeatability::{Never, NeverStarted, Repeatable};
    let throttled = End::Throttled { wait: Some(millis(20_000)) };
    let table = [
        (End::Completed, Success, Never, Outcome::Served),
        (End::ClientFault, Neutral, Never, Outcome::ClientError),
        (End::ContextExceeded, Neutral, Never, Outcome::ClientError),
        (throttled, Neutral, NeverStarted, Outcome::CapacityExhausted),
        (End::CredentialRefused, Failure, Repeatable, Outcome::UpstreamAuth),
        (End::NotSent, Failure, NeverStarted, Outcome::NoHealthyDeployment),
        (End::Failed, Failure, Repeatable, Outcome::UpstreamError),
        (End::TimedOut, Failure, Repeatable, Outcome::UpstreamTimeout),
        (End::Truncated, Failure, Never, Outcome::Truncated),
        (End::StreamError, Failure, Never, Outcome::StreamError),
        (End::DeadlinePassed, Neutral, Never, Outcome::DeadlineUnmeetable),
        (End::ClientGone, Neutral, Never, Outcome::ClientGone),
    ];
    for (end, health, repeatability, alone) in table {
        assert_eq!(end.health(), health, "{end:?}");
        assert_eq!(end.repeatability(), repeatability, "{end:?}");
        let mut world = World::new(&equal(1), vec![ends(millis(1), end)]);
        world.arrive(at(0), request(1));
        world.run_until(at(60_000));
        assert_eq!((world.outcome(1), world.attempts.len()), (alone, 1), "{end:?}");
        // With a second deployment: served by it where another attempt is allowed.
        let mut settings = equal(2);
        settings.deployments[1].priority_group = 1;
        let mut world = World::new(&settings, vec![ends(millis(1), end), serves(millis(1))]);
        world.arrive(at(0), request(1));
        world.run_until(at(60_000));
        let again = repeatability != Never;
        let expected = if again { Outcome::Served } else { alone };
        assert_eq!((world.outcome(1), world.attempts.len()), (expected, 1 + usize::from(again)), "{end:?}");
        assert_eq!((world.attempts_at(0), world.attempts_at(1)), (1, usize::from(again)), "{end:?}");
        world.assert_settled();
    }
}

#[test]
fn a_stale_connection_is_replaced_by_a_fresh_one_to_the_same_deployment() {
    let mut engine = seawall_core::Engine::new(Instant::ZERO, &equal(2));
    engine.handle(at(0), Input::Arrived(request(1)));
    let Some(Output::Dispatch(first)) = engine.poll() else { panic!("no attempt") };
    assert!(!first.fresh_connection);
    engine.handle(at(1), Input::AttemptEnded(RequestId(1), 1, AttemptEnd::StaleConnection));
    let Some(Output::Dispatch(second)) = engine.poll() else { panic!("no second attempt") };
    assert!(second.fresh_connection);
    assert_eq!(second.permit.deployment(), first.permit.deployment());
    assert_eq!((second.permit.payment(), second.permit.number()), (Payment::NotSentBucket, 2));
    engine.handle(at(2), Input::AttemptEnded(RequestId(1), 2, AttemptEnd::StaleConnection));
    assert!(
        matches!(engine.poll(), Some(Output::Respond(respond)) if respond.outcome == Outcome::UpstreamErrorRetried)
    );
}

#[test]
fn a_stale_connection_is_not_replaced_inside_a_stated_wait() {
    let mut settings = settings(&[Capacity::Standard { size: None }]);
    settings.pools[0].retry.not_sent_percent = 100;
    let mut count = 0;
    let answer = move |_: &crate::world::Call| {
        count += 1;
        match count {
            1 => Answer::ended(millis(20), AttemptEnd::StaleConnection),
            2 => Answer::ended(millis(10), AttemptEnd::Throttled { wait: Some(millis(500)) }),
            _ => Answer::served(millis(10)),
        }
    };
    let mut world = World::new(&settings, vec![script(answer)]);
    world.arrive(at(0), request(1));
    world.arrive(at(0), request(2));
    world.run_until(at(5_000));
    assert_eq!(world.count(Outcome::Served), 2);
    let second: Vec<_> = world.attempts.iter().filter(|attempt| attempt.number == 2).map(|a| a.at).collect();
    assert!(second.iter().all(|when| *when >= at(510)), "{second:?}");
    world.assert_settled();
}

#[test]
fn after_the_first_byte_nothing_is_tried_again_whatever_the_host_says() {
    for end in [AttemptEnd::Failed, AttemptEnd::TimedOut, AttemptEnd::NotSent, AttemptEnd::StaleConnection] {
        let relayed = move |_: &crate::world::Call| Answer { after: millis(20), end, headers: Some(millis(10)) };
        let mut world = World::new(&equal(2), vec![script(relayed), script(relayed)]);
        world.arrive(at(0), request(1));
        world.run_until(at(60_000));
        assert_eq!((world.outcome(1), world.attempts.len()), (Outcome::Truncated, 1), "{end:?}");
        assert_eq!(world.response(1).form, None);
        world.assert_settled();
    }
}

/// F47: a client's mistakes, early hang-ups and short deadlines eject nothing.
#[test]
fn what_a_client_does_wrong_is_nobody_elses_failure() {
    let wrongs = [(AttemptEnd::ClientFault, None), (AttemptEnd::ClientGone, None), (AttemptEnd::Completed, Some(1))];
    for (wrong, deadline_ms) in wrongs {
        let upstream = move || {
            script(move |call: &crate::world::Call| {
                let end = if call.request.0 < 1_000 { wrong } else { AttemptEnd::Completed };
                Answer { after: millis(50), end, headers: None }
            })
        };
        let mut settings = equal(2);
        settings.tenants.push(tenant("good"));
        let mut world = World::new(&settings, vec![upstream(), upstream()]);
        for id in 0..200 {
            let when = at(id * 100);
            world.arrive(when, Arrival { deadline: deadline_ms.map(|ms| when + millis(ms)), ..request(id) });
            world.arrive(when, Arrival { tenant: TenantId(1), ..request(1_000 + id) });
        }
        world.run_until(at(30_000));
        for id in 1_000..1_200 {
            let arrived = at((id - 1_000) * 100);
            assert_eq!(world.outcome(id), Outcome::Served);
            assert_eq!(world.responded_at(id), arrived + millis(50), "no added latency");
        }
        assert_eq!(world.count(Outcome::Served), 200);
        assert_eq!(world.attempts.len(), 400);
        assert!(world.notices.is_empty(), "{:?}", world.notices);
        assert_eq!((world.health(0), world.health(1)), ("healthy", "healthy"));
        world.assert_settled();
    }
}

#[test]
fn a_request_that_comes_too_late_makes_no_attempt() {
    let mut world = World::new(&equal(1), vec![serves(millis(1))]);
    world.arrive(at(10), Arrival { deadline: Some(at(10)), ..request(1) });
    world.run_until(at(100));
    assert_eq!(world.outcome(1), Outcome::DeadlineUnmeetable);
    assert!(matches!(world.response(1).form, Some(Form::Stop(_))));
    assert!(world.attempts.is_empty());
}

#[test]
fn a_draining_process_serves_what_it_has_and_sends_the_rest_away() {
    let mut world = World::new(&settings(&[Capacity::Provisioned { size: 1 }]), vec![serves(millis(1_000))]);
    for id in 0..3 {
        world.arrive(at(0), request(id));
    }
    world.drain(at(100));
    world.arrive(at(200), request(3));
    world.run_until(at(10_000));
    assert_eq!(world.count(Outcome::Served), 3);
    assert_eq!(world.responded_at(2), at(3_000));
    assert_eq!((world.outcome(3), world.responded_at(3)), (Outcome::Draining, at(200)));
    assert!(matches!(world.response(3).form, Some(Form::Leave(wait)) if wait <= millis(500)));
    world.assert_settled();
}

#[test]
fn a_claimed_class_is_lowered_to_the_ceiling_and_the_highest_goes_first() {
    let mut settings = settings(&[Capacity::Provisioned { size: 1 }]);
    settings.tenants.push(tenant("low"));
    settings.tenants[1].priority_ceiling = Criticality::Sheddable;
    let mut world = World::new(&settings, vec![serves(millis(100))]);
    world.arrive(at(0), request(0));
    let claims = Arrival { tenant: TenantId(1), criticality: Criticality::CriticalPlus, ..request(1) };
    world.arrive(at(1), claims);
    world.arrive(at(2), Arrival { criticality: Criticality::SheddablePlus, ..request(2) });
    world.arrive(at(3), request(3));
    world.arrive(at(4), Arrival { criticality: Criticality::CriticalPlus, ..request(4) });
    world.run_until(at(10_000));
    let order: Vec<_> = world.attempts.iter().map(|attempt| attempt.request.0).collect();
    assert_eq!(order, [0, 4, 3, 2, 1]);
    assert_eq!(world.response(1).queued, millis(399));
    world.assert_settled();
}
