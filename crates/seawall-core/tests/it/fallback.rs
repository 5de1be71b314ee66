//! Fallbacks between models: F11, F39 and F54 by way of a list, in virtual time with exact numbers.

use crate::world::{Answer, World, at, ends, millis, request, script, serves, settings};
use seawall_core::classify::AttemptEnd;
use seawall_core::engine::Arrival;
use seawall_core::id::{DeploymentId, PoolId};
use seawall_core::outcome::Outcome;
use seawall_core::permit::Payment;
use seawall_core::settings::{Capacity, Settings};

const ANY: Capacity = Capacity::Standard { size: None };
const ONE: Capacity = Capacity::Provisioned { size: 1 };

/// One model for each deployment, which falls back to all that come after it and then to those before it.
fn models(capacities: &[Capacity]) -> Settings {
    let mut settings = settings(capacities);
    let pools: Vec<PoolId> = (0..capacities.len()).map(PoolId::from_index).collect();
    let first = settings.pools[0].clone();
    settings.pools = pools
        .iter()
        .map(|own| {
            let mut pool = first.clone();
            pool.deployments = vec![DeploymentId::from_index(own.index())];
            let (before, after) = pools.split_at(own.index());
            pool.fallbacks = after[1..].iter().chain(before).copied().collect();
            pool
        })
        .collect();
    for (deployment, pool) in settings.deployments.iter_mut().zip(&pools) {
        deployment.pool = *pool;
    }
    settings.tenants[0].pools = pools;
    settings
}

/// F11: lists that refer to each other, and all upstreams fail: two attempts, at two models.
#[test]
fn f11_models_that_refer_to_each_other_are_tried_twice_in_all() {
    let failing = || (0..3).map(|_| ends(millis(5), AttemptEnd::Failed)).collect();
    let mut world = World::new(&models(&[ANY; 3]), failing());
    world.arrive(at(0), request(0));
    world.run_until(at(10_000));
    let attempts: Vec<_> = world.attempts_of(0).iter().map(|one| (one.deployment, one.payment)).collect();
    assert_eq!(attempts, [(0, Payment::Admission), (1, Payment::RetryBudget)]);
    assert_eq!((world.outcome(0), world.responded_at(0)), (Outcome::UpstreamErrorRetried, at(10)));
    world.assert_settled();

    // Two hundred at once: the budget bounds the second attempts (F39).
    let mut world = World::new(&models(&[ANY; 3]), failing());
    (0..200).for_each(|id| world.arrive(at(0), request(id)));
    world.run_until(at(10_000));
    assert_eq!(world.attempts.len(), 230, "10% of 200, and the floor of one a second");
    world.assert_settled();
}

/// F54: whatever sends a request to another deployment sends it to another model where there is none.
#[test]
fn f54_a_failure_of_the_only_deployment_goes_to_the_next_model_at_once() {
    for (end, payment) in [
        (AttemptEnd::Throttled { wait: Some(millis(30_000)) }, Payment::NotSentBucket),
        (AttemptEnd::Throttled { wait: None }, Payment::NotSentBucket),
        (AttemptEnd::NotSent, Payment::NotSentBucket),
        (AttemptEnd::Failed, Payment::RetryBudget),
        (AttemptEnd::TimedOut, Payment::RetryBudget),
        (AttemptEnd::CredentialRefused, Payment::RetryBudget),
    ] {
        let mut world = World::new(&models(&[ANY; 2]), vec![ends(millis(5), end), serves(millis(100))]);
        world.arrive(at(0), request(0));
        world.run_until(at(60_000));
        let attempts: Vec<_> = world.attempts_of(0).iter().map(|one| (one.deployment, one.at, one.payment)).collect();
        assert_eq!(attempts, [(0, at(0), Payment::Admission), (1, at(5), payment)], "{end:?}");
        assert_eq!(world.response(0).deployment, Some(DeploymentId(1)));
        assert_eq!((world.outcome(0), world.responded_at(0)), (Outcome::Served, at(105)), "{end:?}");
        world.assert_settled();
    }
    // And the client's own mistake does not.
    let mut world = World::new(&models(&[ANY; 2]), vec![ends(millis(5), AttemptEnd::ClientFault), serves(millis(1))]);
    world.arrive(at(0), request(0));
    world.run_until(at(60_000));
    assert_eq!((world.attempts.len(), world.outcome(0)), (1, Outcome::ClientError));
}

/// While the model is down its requests begin at the next one, and cost one attempt each; now and then one finds out
/// whether it works again, and then they come back.
#[test]
fn a_model_that_is_down_is_asked_once_a_second_until_it_works_again() {
    let down = script(|call| {
        if call.now < at(60_000) { Answer::ended(millis(5), AttemptEnd::Failed) } else { Answer::served(millis(50)) }
    });
    let mut world = World::new(&models(&[ANY; 2]), vec![down, serves(millis(50))]);
    world.arrive_evenly(at(0), 10, 900);
    world.run_until(at(120_000));
    assert_eq!(world.count(Outcome::Served), 900);
    let before = world.attempts.iter().filter(|one| one.deployment == 0 && one.at < at(60_000)).count();
    assert!((55..=65).contains(&before), "{before}");
    let after = world.attempts.iter().filter(|one| one.deployment == 0 && one.at >= at(61_100)).count();
    assert!(after >= 285, "{after}");
    world.assert_settled();
}

/// A model that only makes requests wait keeps them; where it would refuse them, the next one takes them.
#[test]
fn who_has_to_wait_stays_and_who_would_be_refused_moves_on() {
    let mut world = World::new(&models(&[ONE; 2]), vec![serves(millis(4_000)), serves(millis(100))]);
    for id in 0..2 {
        world.arrive(at(id), request(id));
    }
    world.run_until(at(4_050));
    assert_eq!(world.attempts_of(1)[0].deployment, 0, "it has waited");
    world.run_until(at(60_000));

    let mut settings = models(&[ONE; 2]);
    settings.pools[0].queue.max_waiting = 1;
    let mut world = World::new(&settings, vec![serves(millis(4_000)), serves(millis(100))]);
    for id in 0..3 {
        world.arrive(at(id), request(id));
    }
    world.run_until(at(60_000));
    assert_eq!((world.attempts_of(2)[0].deployment, world.responded_at(2)), (1, at(102)));
    assert_eq!((world.attempts_of(2)[0].payment, world.count(Outcome::Served)), (Payment::Admission, 3));
    world.assert_settled();

    // Its patience ends while all of the first model hangs.
    let mut world = World::new(&models(&[ONE; 2]), vec![serves(millis(600_000)), serves(millis(100))]);
    for id in 0..2 {
        world.arrive(at(id), request(id));
    }
    world.run_until(at(30_000));
    assert_eq!((world.outcome(1), world.attempts_of(1)[0].deployment), (Outcome::Served, 1));
}

/// Rights, boundaries and a full fallback hold: nobody gets by way of a list what it may not have.
#[test]
fn a_list_opens_no_model_that_the_tenant_may_not_use() {
    let down = || vec![ends(millis(5), AttemptEnd::Failed), serves(millis(100)), serves(millis(100))];
    let mut settings = models(&[ANY; 3]);
    settings.tenants[0].pools = vec![PoolId(0), PoolId(2)];
    let mut world = World::new(&settings, down());
    world.arrive(at(0), request(0));
    world.run_until(at(10_000));
    assert_eq!(world.attempts_of(0)[1].deployment, 2);

    let mut settings = models(&[ANY; 3]);
    settings.tenants[0].boundary = Some("eu".into());
    for index in [0, 2] {
        settings.deployments[index].boundary = Some("eu".into());
    }
    let mut world = World::new(&settings, down());
    world.arrive(at(0), request(0));
    world.run_until(at(10_000));
    assert_eq!(world.attempts_of(0)[1].deployment, 2);

    // The second is full: the third takes it.
    let mut world = World::new(&models(&[ANY, ONE, ANY]), down());
    world.arrive(at(0), Arrival { pool: PoolId(1), ..request(0) });
    world.arrive(at(1), request(1));
    world.run_until(at(10_000));
    assert_eq!(world.attempts_of(1)[1].deployment, 2);
    world.assert_settled();
}

/// F09: a request with more tokens than its model holds is asked of one deployment, then once of a model with a longer
/// context, out of the one budget; no other mistake of a client moves, and none counts against a deployment.
#[test]
fn f09_what_is_too_long_goes_to_a_longer_context_once() {
    let mut settings = models(&[ANY; 3]);
    (settings.pools[0].fallbacks, settings.pools[0].context_fallbacks) = (vec![PoolId(2)], vec![PoolId(1)]);
    let ending = |end| move || ends(millis(5), end);
    let (too_long, wrong) = (ending(AttemptEnd::ContextExceeded), ending(AttemptEnd::ClientFault));
    let mut world = World::new(&settings, vec![too_long(), serves(millis(100)), serves(millis(100))]);
    world.arrive(at(0), request(0));
    world.run_until(at(1_000));
    let attempts: Vec<_> = world.attempts_of(0).iter().map(|one| (one.deployment, one.at, one.payment)).collect();
    assert_eq!(attempts, [(0, at(0), Payment::Admission), (1, at(5), Payment::RetryBudget)]);
    assert_eq!((world.outcome(0), world.responded_at(0)), (Outcome::Served, at(105)));
    world.assert_settled();

    // Too long there as well: two attempts, and nothing else is tried.
    let mut world = World::new(&settings, vec![too_long(), too_long(), serves(millis(100))]);
    world.arrive(at(0), request(0));
    world.run_until(at(1_000));
    assert_eq!((world.outcome(0), world.attempts.len(), world.attempts_at(2)), (Outcome::ClientError, 2, 0));

    // The first model is closed by a wait: it begins at the fallback, and visits none twice.
    (settings.pools[0].fallbacks, settings.pools[0].context_fallbacks) = (vec![PoolId(1)], vec![PoolId(1), PoolId(2)]);
    let closed = || ends(millis(1), AttemptEnd::Throttled { wait: Some(millis(40_000)) });
    let mut world = World::new(&settings, vec![closed(), too_long(), serves(millis(100))]);
    world.arrive(at(0), request(0));
    world.arrive(at(1_000), request(1));
    world.run_until(at(5_000));
    let tried: Vec<_> = world.attempts_of(1).iter().map(|one| one.deployment).collect();
    assert_eq!((tried, world.outcome(1)), (vec![1, 2], Outcome::Served));
    // The one that was throttled has had its two attempts.
    assert_eq!((world.outcome(0), world.attempts_of(0).len()), (Outcome::ClientError, 2));

    // Ten in a row: no other mistake moves, and nobody is out. Without a payment, a rule or a right it stays.
    let mut poor = settings.clone();
    (poor.pools[0].retry.budget_percent, poor.pools[0].retry.floor_per_second) = (0, 0);
    let mut bare = settings.clone();
    bare.pools[0].context_fallbacks.clear();
    let mut barred = settings.clone();
    barred.tenants[0].pools = vec![PoolId(0)];
    let mut single = settings.clone();
    single.pools[0].retry.max_attempts = 1;
    for (settings, first) in
        [(&settings, wrong()), (&poor, too_long()), (&bare, too_long()), (&barred, too_long()), (&single, too_long())]
    {
        let mut world = World::new(settings, vec![first, serves(millis(1)), serves(millis(1))]);
        (0..10).for_each(|id| world.arrive(at(id * 100), request(id)));
        world.run_until(at(10_000));
        assert_eq!((world.attempts_at(0), world.attempts.len(), world.count(Outcome::ClientError)), (10, 10, 10));
        assert_eq!(world.health(0), "healthy");
        world.assert_settled();
    }
}
