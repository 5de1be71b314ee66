//! The retry budget in whole lives: amplification stays bounded, tenants do not pay for each other.

use crate::world::{Answer, Call, Upstream, World, at, ends, equal, millis, request, script, serves, tenant};
use seawall_core::advice::Form;
use seawall_core::classify::AttemptEnd;
use seawall_core::engine::{Arrival, Identity, Respond};
use seawall_core::id::{RequestId, TenantId};
use seawall_core::outcome::Outcome;
use seawall_core::permit::Payment;
use seawall_core::random::Random;
use seawall_core::time::{Duration, Instant};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Clients of the OpenAI SDK's rule: two retries, the stated wait obeyed, no retry where told not to. The id of a retry is
/// the first one's plus 100,000 for each.
fn sdk(_: Instant, respond: &Respond) -> Option<(Duration, Arrival)> {
    let wait = match respond.form? {
        Form::Wait(wait) | Form::RetrySoon(wait) | Form::Leave(wait) => wait,
        Form::WaitStop(_) | Form::Stop(_) | Form::StopHard | Form::Auth => return None,
    };
    (respond.request.0 < 200_000).then(|| (wait, request(respond.request.0 + 100_000)))
}

fn down_until(until: Instant) -> impl FnMut(&Call) -> Answer + Copy {
    move |call| {
        if call.now < until { Answer::ended(millis(5), AttemptEnd::Failed) } else { Answer::served(millis(50)) }
    }
}

/// F39, first and second run: 200 clients during an outage of all three deployments. What came before does not matter:
/// the bound is on the requests received.
#[test]
fn an_outage_is_not_multiplied() {
    for spacing in [0, 50, 290] {
        let upstreams = (0..3).map(|_| script(down_until(at(60_000)))).collect();
        let mut world = World::new(&equal(3), upstreams);
        world.clients(sdk);
        for id in 0..200 {
            world.arrive(at(id * spacing), request(id));
        }
        world.run_until(at(60_000));
        let (attempts, received) = (world.attempts.len(), world.arrivals.len());
        assert!(attempts * 10 <= received * 12, "{attempts} attempts for {received} requests, {spacing} ms apart");
        // A request with a retry count gets no more than a first one.
        for id in world.arrivals.keys().filter(|id| id.0 >= 100_000) {
            assert!(world.attempts_of(id.0).len() <= 2);
        }
        let repeats: Vec<_> = world.attempts.iter().filter(|a| a.request.0 >= 100_000).collect();
        let second = repeats.iter().filter(|attempt| attempt.number == 2).count();
        assert!(second * 10 <= repeats.len() * 2, "{second} of {}", repeats.len());
        world.run_until(at(300_000));
        world.assert_settled();
    }
}

/// F39: once the deployments are known to fail, a request makes one attempt.
#[test]
fn a_second_attempt_is_not_made_where_it_is_known_to_fail() {
    let mut world = World::new(&equal(3), (0..3).map(|_| ends(millis(5), AttemptEnd::Failed)).collect());
    world.arrive_evenly(at(0), 20, 1_000);
    world.run_until(at(100_000));
    let late = world.attempts.iter().filter(|attempt| attempt.at >= at(2_000));
    assert!(late.clone().count() > 900);
    assert!(late.clone().all(|attempt| attempt.number == 1), "{}", late.filter(|a| a.number > 1).count());
    // And its client is told to stay away.
    let forms = world.responses.values().filter(|(when, _)| *when >= at(2_000)).map(|(_, respond)| respond.form);
    assert!(forms.into_iter().all(|form| matches!(form, Some(Form::WaitStop(_)))));
    world.assert_settled();
}

/// F39, third run, and half of it: some of the attempts fail at random. Returns calls, served calls, and calls that
/// failed without a second attempt, of clients that keep to what they are told.
fn random_failures(percent: u32) -> (usize, usize, usize) {
    let draws = Rc::new(RefCell::new(Random::new(5)));
    let mut world = World::new(&equal(3), (0..3).map(|_| failing(percent, &draws)).collect());
    world.clients(sdk);
    world.arrive_evenly(at(0), 50, 10_000);
    world.run_until(at(500_000));
    let mut calls: BTreeMap<u64, bool> = BTreeMap::new();
    for (id, (_, respond)) in &world.responses {
        *calls.entry(id.0 % 100_000).or_default() |= respond.outcome == Outcome::Served;
    }
    let failed = world.responses.values().filter(|(_, respond)| respond.outcome != Outcome::Served);
    let single = failed.filter(|(_, respond)| respond.attempts == 1).count();
    assert!(world.attempts.len() * 100 <= world.arrivals.len() * 112);
    world.assert_settled();
    (calls.len(), calls.values().filter(|served| **served).count(), single)
}

/// At one in twenty, F39's 99% hold. At one in ten both attempts of one call in a hundred fail, and its client is told to
/// stay away: the most that two attempts and 10% of budget can give is 99% on average, and a spell of failures above the
/// budget takes a little of it. F39 asks for 99% there, which needs that client to come back.
#[test]
fn random_failures_are_hidden_up_to_what_two_attempts_can_hide() {
    let (calls, served, single) = random_failures(5);
    assert!(calls == 10_000 && served >= 9_950, "{served} of {calls}, {single} without a second attempt");
    let (calls, served, single) = random_failures(10);
    assert!(calls == 10_000 && served >= 9_850, "{served} of {calls}, {single} without a second attempt");
    assert!(single <= 30, "nearly every failure is tried again: {single}");
}

/// One tenant storms into failures, the other one's rare retries are paid all the same.
#[test]
fn a_storming_tenant_cannot_use_up_the_floor_of_another() {
    let mut settings = equal(3);
    settings.tenants.push(tenant("quiet"));
    // Failures by request, mixed with successes so that no deployment is ejected.
    let mixed = |call: &Call| {
        let storm = call.request.0 < 100_000;
        let fails = call.request.0.is_multiple_of(if storm { 3 } else { 5 });
        if fails { Answer::ended(millis(2), AttemptEnd::Failed) } else { Answer::served(millis(2)) }
    };
    settings.pools[0].ejection.consecutive_failures = 1_000;
    settings.pools[0].ejection.minimum_outcomes = 100_000;
    let mut world = World::new(&settings, (0..3).map(|_| script(mixed)).collect());
    world.arrive_evenly(at(0), 100, 6_000);
    for id in 0..60 {
        world.arrive(at(id * 1_000), Arrival { tenant: TenantId(1), ..request(100_000 + id) });
    }
    world.run_until(at(100_000));
    let paid = |quiet: bool| {
        let by = |a: &&crate::world::Attempt| a.payment == Payment::RetryBudget && (a.request.0 >= 100_000) == quiet;
        world.attempts.iter().filter(by).count()
    };
    assert_eq!(paid(true), 12, "each failure of the quiet tenant is tried again");
    // 2,000 failures of 6,000; paid: a tenth of the first attempts, and its half of the floor.
    assert!((550..=600 + 40).contains(&paid(false)), "{}", paid(false));
    world.assert_settled();
}

/// With nobody failing nothing is spent, and the deadline is never passed by a second attempt.
#[test]
fn a_second_attempt_ends_with_the_deadline() {
    let mut world =
        World::new(&equal(2), vec![ends(millis(80), AttemptEnd::Failed), ends(millis(80), AttemptEnd::Failed)]);
    world.arrive(at(0), Arrival { deadline: Some(at(100)), ..request(1) });
    world.arrive(at(1_000), Arrival { deadline: Some(at(1_080)), ..request(2) });
    world.run_until(at(10_000));
    assert_eq!(world.outcome(1), Outcome::DeadlineUnmeetable);
    assert_eq!(world.responded_at(1), at(100));
    assert_eq!(world.attempts_of(2).len(), 1, "no time is left for another");
    world.assert_settled();
}

/// A boundary that is full, with a line, takes nobody else's second attempt away.
#[test]
fn a_line_for_another_boundary_does_not_forbid_a_retry() {
    let mut settings = equal(3);
    settings.deployments[0].boundary = Some("eu".into());
    settings.deployments[0].capacity = seawall_core::settings::Capacity::Provisioned { size: 1 };
    settings.deployments[0].priority_group = 9;
    settings.deployments[2].priority_group = 1;
    settings.tenants.push(tenant("eu"));
    settings.tenants[1].boundary = Some("eu".into());
    let upstreams = vec![serves(millis(9_000)), ends(millis(10), AttemptEnd::Failed), serves(millis(10))];
    let mut world = World::new(&settings, upstreams);
    for id in 0..2 {
        world.arrive(at(0), Arrival { tenant: TenantId(1), ..request(id) });
    }
    world.arrive(at(100), request(2));
    world.run_until(at(200));
    assert_eq!(world.engine.view(world.now)[0].waiting, 1);
    assert_eq!((world.outcome(2), world.response(2).attempts), (Outcome::Served, 2));
    world.run_until(at(60_000));
    world.assert_settled();
}

#[test]
fn while_requests_wait_there_are_no_retries() {
    use seawall_core::settings::Capacity;
    let mut settings = crate::world::settings(&[Capacity::Provisioned { size: 1 }, Capacity::Provisioned { size: 1 }]);
    settings.pools[0].ejection.consecutive_failures = 1_000;
    settings.pools[0].ejection.minimum_outcomes = 100_000;
    let upstreams = vec![ends(millis(100), AttemptEnd::Failed), serves(millis(130))];
    let mut world = World::new(&settings, upstreams);
    for id in 0..40 {
        world.arrive(at(0), request(id));
    }
    world.run_until(at(60_000));
    assert_eq!(world.attempts.iter().filter(|attempt| attempt.number > 1 && attempt.at < at(2_000)).count(), 0);
    let failed: Vec<_> = world.responses.values().filter(|(_, r)| r.outcome == Outcome::UpstreamError).collect();
    assert!(failed.len() > 10);
    assert!(failed.iter().all(|(_, respond)| matches!(respond.form, Some(Form::WaitStop(_)))));
    assert_eq!(world.responses.keys().next(), Some(&RequestId(0)));
    world.assert_settled();
}

/// One upstream of which so many percent of the attempts fail at random.
fn failing(percent: u32, draws: &Rc<RefCell<Random>>) -> Upstream {
    let draws = Rc::clone(draws);
    script(move |_| {
        if draws.borrow_mut().below(100) < percent {
            Answer::ended(millis(20), AttemptEnd::Failed)
        } else {
            Answer::served(millis(50))
        }
    })
}

/// Layers that all retry on their own and obey nothing: until one is served they make 72 requests in twelve seconds. The
/// id of a request is its user's plus 100,000 for each before it.
fn stack(_: Instant, respond: &Respond) -> Option<(Duration, Arrival)> {
    let next = respond.request.0 + 100_000;
    (respond.outcome != Outcome::Served && next < 7_200_000).then(|| (millis(167), of_user(next)))
}

fn of_user(id: u64) -> Arrival {
    let fingerprint = u128::from(id % 100_000);
    let identity = Identity { fingerprint, key: None, previous_attempts: 0, may_repeat: true };
    Arrival { identity: Some(identity), ..request(id) }
}

/// Users of such a stack, 50 a second, while so many percent of the attempts fail: attempts for the first 3,000, after whom
/// others still come, and the most for one of them.
fn stacked(deployments: usize, percent: u32) -> (usize, usize) {
    let draws = Rc::new(RefCell::new(Random::new(5)));
    let upstreams = (0..deployments).map(|_| failing(percent, &draws)).collect();
    let mut world = World::new(&equal(deployments), upstreams);
    world.clients(stack);
    for user in 0..3_600 {
        world.arrive(at(user * 20), of_user(user));
    }
    world.run_until(at(200_000));
    world.assert_settled();
    let mut attempts: BTreeMap<u64, usize> = BTreeMap::new();
    for user in world.attempts.iter().map(|attempt| attempt.request.0 % 100_000).filter(|user| *user < 3_000) {
        *attempts.entry(user).or_default() += 1;
    }
    assert_eq!(attempts.len(), 3_000, "everybody is tried");
    (attempts.values().sum(), attempts.values().max().copied().unwrap_or_default())
}

/// Without a budget each of them makes 72 attempts where everything fails. Where nothing works only the floor pays, one a
/// second; else a tenth of the first attempts does so, too. No user has more than two within a minute.
#[test]
fn a_stack_of_retrying_layers_reaches_upstreams_about_once_for_each_call() {
    for (deployments, percent, most_of_100) in [(1, 100, 103), (2, 100, 103), (2, 50, 115), (2, 30, 115), (3, 20, 115)]
    {
        let (attempts, most) = stacked(deployments, percent);
        println!("{deployments} deployments, {percent}% fail: {attempts} attempts, {most} for one");
        assert!(attempts <= 30 * most_of_100 && most <= 2, "{deployments}, {percent}%: {attempts}, {most} for one");
    }
}

/// Whose request fails is told to come back soon only where that is paid for, and at the second failure to stay away.
/// Three deployments of which all fail are tried by their clients no more often than one.
#[test]
fn a_client_is_told_to_come_back_for_one_more_attempt() {
    for deployments in [1, 3] {
        let mut settings = equal(deployments);
        (settings.pools[0].retry.max_attempts, settings.pools[0].retry.budget_percent) = (1, 0);
        let mut world = World::new(&settings, (0..deployments).map(|_| ends(millis(5), AttemptEnd::Failed)).collect());
        world.clients(|_, respond| match respond.form? {
            Form::RetrySoon(wait) => Some((wait, of_user(respond.request.0 + 100_000))),
            _ => None,
        });
        for user in 0..30 {
            world.arrive(at(0), of_user(user));
        }
        world.run_until(at(60_000));
        // The floor of ten seconds pays for ten, and they come when they were told.
        assert_eq!((world.attempts.len(), world.count(Outcome::UpstreamErrorRetried)), (40, 10), "{deployments}");
        let paid = world.attempts.iter().filter(|one| one.payment == Payment::RetryBudget);
        assert_eq!(paid.count(), 10);
        world.assert_settled();
    }
}
