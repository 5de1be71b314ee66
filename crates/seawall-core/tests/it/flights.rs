//! Flights: repeats join, what was left is held, and a distinct request reaches an upstream about once.

use crate::world::{Answer, World, at, equal, millis, request, script, serves, settings};
use seawall_core::classify::AttemptEnd;
use seawall_core::engine::{Arrival, Identity};
use seawall_core::id::RequestId;
use seawall_core::outcome::Outcome;
use seawall_core::settings::Capacity;

const ONE: Capacity = Capacity::Provisioned { size: 1 };

/// A request that says `content`, from a client that counts its attempts and has made so many before.
fn says(id: u64, content: u128, previous_attempts: u32) -> Arrival {
    let identity = Identity { fingerprint: content, key: None, previous_attempts, may_repeat: true };
    Arrival { identity: Some(identity), ..request(id) }
}

fn keyed(id: u64, key: u128) -> Arrival {
    let identity = Identity { fingerprint: 7, key: Some(key), previous_attempts: 0, may_repeat: true };
    Arrival { identity: Some(identity), ..request(id) }
}

#[test]
fn a_thousand_recognised_repeats_are_one_attempt_and_a_thousand_alike_are_a_thousand() {
    let mut world = World::new(&equal(1), vec![serves(millis(30_000))]);
    world.arrive(at(0), says(0, 1, 0));
    (1..1_000).for_each(|id| world.arrive(at(id), says(id, 1, 1)));
    world.run_until(at(20_000));
    assert_eq!((world.attempts.len(), world.joins.len()), (1, 999));
    assert_eq!(world.engine.view(world.now)[0].deployments[0].in_flight, 1, "who waits holds nothing");
    world.run_until(at(60_000));
    assert_eq!((world.count(Outcome::Served), world.attempts.len()), (1_000, 1));
    world.assert_settled();

    let mut world = World::new(&equal(1), vec![serves(millis(30_000))]);
    (0..1_000).for_each(|id| world.arrive(at(id), says(id, 1, 0)));
    world.run_until(at(100_000));
    assert_eq!((world.attempts.len(), world.joins.len()), (1_000, 0), "sampling is no repeating");
    world.assert_settled();
}

#[test]
fn the_same_key_is_the_same_request_and_another_key_is_another() {
    let mut world = World::new(&equal(1), vec![serves(millis(1_000))]);
    world.arrive(at(0), keyed(0, 1));
    world.arrive(at(10), keyed(1, 1));
    world.arrive(at(20), keyed(2, 2));
    world.run_until(at(10_000));
    assert_eq!((world.attempts.len(), world.joins.get(&RequestId(1))), (2, Some(&RequestId(0))));
    assert_eq!(world.count(Outcome::Served), 3);
    world.assert_settled();
}

/// A client's own timeout passes while the work runs; it asks again and gets that work's result.
#[test]
fn a_client_that_times_out_and_asks_again_has_its_work_done_once() {
    let mut world = World::new(&equal(1), vec![script(|_| Answer::ended(millis(8_000), AttemptEnd::Completed))]);
    world.arrive(at(0), says(0, 1, 0));
    world.leave(at(5_000), RequestId(0));
    world.arrive(at(5_600), says(1, 1, 1));
    world.run_until(at(30_000));
    assert_eq!((world.attempts.len(), world.outcome(0), world.outcome(1)), (1, Outcome::ClientGone, Outcome::Served));
    assert_eq!(world.responded_at(1), at(8_000));
    assert!(world.cancelled.is_empty());
    world.assert_settled();
}

/// The answer comes while nobody is there: who comes back within ten seconds has it at once, without another attempt.
#[test]
fn an_answer_that_nobody_was_there_for_is_kept() {
    let mut world = World::new(&equal(1), vec![script(|_| Answer::ended(millis(6_000), AttemptEnd::Completed))]);
    for (id, content) in [(0, 1), (1, 2)] {
        world.arrive(at(0), says(id, content, 0));
        world.leave(at(5_000), RequestId(id));
    }
    world.arrive(at(7_500), says(2, 1, 0));
    world.run_until(at(15_900));
    assert_eq!((world.outcome(2), world.responded_at(2)), (Outcome::Served, at(7_500)));
    assert_eq!(world.forgotten.len(), 0);
    world.run_until(at(16_000));
    assert_eq!((world.attempts.len(), world.forgotten.len()), (2, 2));
    world.arrive(at(17_000), says(3, 1, 1));
    world.run_until(at(60_000));
    assert_eq!(world.attempts.len(), 3, "what is forgotten is asked for anew");
    world.assert_settled();
}

#[test]
fn a_place_in_the_line_is_held_for_three_seconds() {
    let mut settings = settings(&[ONE]);
    settings.pools[0].queue.patience = millis(60_000);
    let mut world = World::new(&settings, vec![serves(millis(10_000))]);
    world.arrive(at(0), request(0));
    world.arrive(at(1), says(1, 1, 0));
    world.arrive(at(2), says(2, 2, 0));
    world.arrive(at(3), says(3, 3, 0));
    for id in [1, 2] {
        world.leave(at(5_000), RequestId(id));
    }
    world.arrive(at(6_000), says(4, 1, 1));
    world.run_until(at(7_999));
    assert_eq!(world.engine.view(world.now)[0].waiting, 3);
    world.run_until(at(8_000));
    assert_eq!(world.engine.view(world.now)[0].waiting, 2, "nobody has come back for the second");
    world.run_until(at(100_000));
    // The first has kept its place before the third.
    assert_eq!((world.responded_at(4), world.responded_at(3)), (at(20_000), at(30_000)));
    world.assert_settled();
}

#[test]
fn what_nobody_comes_back_for_is_cancelled_unless_others_wait() {
    let mut world = World::new(&equal(1), vec![script(|_| Answer::ended(millis(60_000), AttemptEnd::Completed))]);
    world.arrive(at(0), says(0, 1, 0));
    world.leave(at(1_000), RequestId(0));
    world.run_until(at(100_000));
    assert_eq!(world.cancelled, [(at(4_000), RequestId(0))]);
    world.assert_settled();

    // Where others wait, a credit that is free too early is spent on top of what still runs.
    let mut settings = settings(&[ONE]);
    settings.pools[0].queue.patience = millis(60_000);
    let mut world = World::new(&settings, vec![script(|_| Answer::ended(millis(20_000), AttemptEnd::Completed))]);
    world.arrive(at(0), says(0, 1, 0));
    world.arrive(at(1), says(1, 2, 0));
    world.leave(at(1_000), RequestId(0));
    world.run_until(at(100_000));
    assert_eq!((world.cancelled.len(), world.attempts_of(1)[0].at), (0, at(20_000)));
    world.assert_settled();
}

/// Whether a cancelled request frees its server decides what becomes of it, whoever waits: where it does, the credit is
/// free at once (a client that never repeats) or after the hold, and the next one in the line has it; where it does not,
/// the credit is kept until the work ends, and what was left goes on even where nobody waits.
#[test]
fn where_cancelling_frees_the_server_the_credit_is_free_at_once_else_when_the_work_ends() {
    let never_repeats = |arrival: Arrival| Arrival {
        identity: arrival.identity.map(|own| Identity { may_repeat: false, ..own }),
        ..arrival
    };
    for (frees, repeats, next_starts, cancelled) in [
        (Some(true), false, 1_000, 1),
        (Some(true), true, 4_000, 1),
        (Some(false), false, 20_000, 0),
        (Some(false), true, 20_000, 0),
        (None, false, 20_000, 0),
        (None, true, 20_000, 0),
    ] {
        let mut settings = settings(&[ONE]);
        settings.pools[0].queue.patience = millis(60_000);
        settings.deployments[0].cancel_frees = frees;
        let upstream = || vec![script(|_| Answer::ended(millis(20_000), AttemptEnd::Completed))];
        let first = if repeats { says(0, 1, 0) } else { never_repeats(says(0, 1, 0)) };
        let mut world = World::new(&settings, upstream());
        world.arrive(at(0), first);
        world.arrive(at(1), says(1, 2, 0));
        world.leave(at(1_000), RequestId(0));
        world.run_until(at(next_starts - 1));
        let view = &world.engine.view(world.now)[0];
        assert_eq!((view.waiting, view.deployments[0].in_flight), (1, 1), "{frees:?} {repeats}");
        world.run_until(at(100_000));
        let starts = world.attempts_of(1)[0].at;
        assert_eq!((starts, world.cancelled.len()), (at(next_starts), cancelled), "{frees:?} {repeats}");
        assert_eq!((world.outcome(1), world.attempts.len()), (Outcome::Served, 2));
        world.assert_settled();

        // Nobody waits: only where cancelling frees nothing it goes on.
        let mut world = World::new(&settings, upstream());
        world.arrive(at(0), first);
        world.leave(at(1_000), RequestId(0));
        let ends = match (frees, repeats) {
            (Some(false), _) => 20_000,
            (_, true) => 4_000,
            (_, false) => 1_000,
        };
        for (now, in_flight) in [(ends - 1, 1), (ends, 0)] {
            world.run_until(at(now));
            let found = world.engine.view(at(now))[0].deployments[0].in_flight;
            assert_eq!(found, in_flight, "{frees:?} {repeats} at {now}");
        }
        assert_eq!(world.cancelled.len(), usize::from(frees != Some(false)));
        world.run_until(at(100_000));
        world.assert_settled();
    }
}

/// It hangs and nobody will come back for it: its credit is free as soon as no others wait, not when it times out.
#[test]
fn what_nobody_comes_back_for_is_looked_at_again() {
    let mut world = World::new(
        &settings(&[ONE]),
        vec![script(|call| Answer::served(if call.now == at(0) { millis(600_000) } else { millis(100) }))],
    );
    world.arrive(at(0), says(0, 1, 0));
    world.arrive(at(1), says(1, 2, 0));
    world.leave(at(1_000), RequestId(0));
    world.arrive(at(14_000), says(2, 3, 0));
    world.run_until(at(20_000));
    assert_eq!(world.outcome(1), Outcome::CapacityExhausted);
    assert_eq!((&world.cancelled[..], world.outcome(2)), (&[(at(13_000), RequestId(0))][..], Outcome::Served));
    world.assert_settled();
}

#[test]
fn what_had_begun_to_answer_is_cancelled_at_once_with_its_last_client() {
    let mut world = World::new(&equal(1), vec![serves(millis(10_000))]);
    world.arrive(at(0), says(0, 1, 0));
    world.arrive(at(100), says(1, 1, 1));
    world.leave(at(6_000), RequestId(0));
    world.leave(at(7_000), RequestId(1));
    world.run_until(at(100_000));
    assert_eq!(world.cancelled, [(at(7_000), RequestId(0))]);
    world.assert_settled();
}

/// The leader's client leaves at any of fifty moments: for the others nothing changes.
#[test]
fn the_departure_of_the_leader_changes_nothing_for_the_others() {
    for moment in 0..50 {
        let mut world = World::new(&equal(1), vec![serves(millis(10_000))]);
        world.arrive(at(0), says(0, 1, 0));
        (1..4).for_each(|id| world.arrive(at(id), says(id, 1, 1)));
        world.leave(at(10 + moment * 197), RequestId(0));
        world.run_until(at(100_000));
        assert_eq!((world.attempts.len(), world.outcome(0)), (1, Outcome::ClientGone));
        for id in 1..4 {
            assert_eq!((world.outcome(id), world.responded_at(id)), (Outcome::Served, at(10_000)));
        }
        world.assert_settled();
    }
}

/// Seven clients over seven layers without a word about each other: forty-nine arrivals of one failing request are two
/// attempts.
#[test]
fn a_request_that_fails_reaches_an_upstream_twice_at_the_most() {
    let mut world =
        World::new(&equal(2), (0..2).map(|_| script(|_| Answer::ended(millis(10), AttemptEnd::Failed))).collect());
    world.arrive(at(0), says(0, 1, 0));
    (1..49).for_each(|id| world.arrive(at(id * 100), says(id, 1, 0)));
    world.run_until(at(100_000));
    assert_eq!(world.attempts.len(), 2);
    assert_eq!(world.count(Outcome::RetryBudgetExhausted), 48);
    world.assert_settled();
}

/// A canary prompt is the same each time. While its upstream fails it counts as repeated; once it works, it is let in.
#[test]
fn the_same_prompt_sent_on_purpose_is_let_in_when_the_pool_has_no_trouble() {
    let fails_at_first = |call: &crate::world::Call| {
        if call.now < at(100) { Answer::ended(millis(10), AttemptEnd::Failed) } else { Answer::served(millis(10)) }
    };
    let mut world = World::new(&equal(2), (0..2).map(|_| script(fails_at_first)).collect());
    let canary = |id| Arrival {
        identity: says(id, 1, 0).identity.map(|own| Identity { may_repeat: false, ..own }),
        ..request(id)
    };
    world.arrive(at(0), canary(0));
    (1..30).for_each(|id| world.arrive(at(id * 1_000), canary(id)));
    world.run_until(at(100_000));
    assert!((20..=29).all(|id| world.outcome(id) == Outcome::Served));
    world.assert_settled();
}

/// Who was told to come back and does so is no repeat: neither its budget nor its number of attempts is asked.
#[test]
fn who_comes_back_when_told_counts_as_new() {
    let throttles = |call: &crate::world::Call| {
        if call.now < at(1_000) {
            Answer::ended(millis(1), AttemptEnd::Throttled { wait: Some(millis(20_000)) })
        } else {
            Answer::served(millis(10))
        }
    };
    let mut world = World::new(&equal(1), vec![script(throttles)]);
    world.arrive(at(0), says(0, 1, 0));
    world.run_until(at(100));
    let told = world.response(0).form;
    let Some(seawall_core::advice::Form::Wait(wait)) = told else { panic!("{told:?}") };
    world.arrive(at(1) + wait, says(1, 1, 1));
    world.run_until(at(100_000));
    assert_eq!(world.outcome(1), Outcome::Served);
    world.assert_settled();
}

/// Ten a second are served, eight come, and two hundred at once: whoever is told to come back does so at that moment. They
/// are let in, and do not come together.
#[test]
fn who_comes_back_in_its_slot_is_let_in_and_slots_are_spread() {
    const RETURN: u64 = 1_000_000;
    let mut settings = settings(&[ONE]);
    settings.pools[0].queue.patience = millis(4_000);
    let mut world = World::new(&settings, vec![serves(millis(100))]);
    let obeys = |_: seawall_core::time::Instant, respond: &seawall_core::engine::Respond| {
        let Some(seawall_core::advice::Form::Wait(wait)) = respond.form else { return None };
        let id = respond.request.0;
        (id < RETURN).then(|| (wait, says(id + RETURN, u128::from(id), 1)))
    };
    world.clients(obeys);
    (0..1_000).for_each(|id| world.arrive(at(id * 125), says(id, u128::from(id), 0)));
    (1_000..1_200).for_each(|id| world.arrive(at(20_000), says(id, u128::from(id), 0)));
    world.run_until(at(300_000));
    let returned: Vec<u64> = world.arrivals.keys().map(|request| request.0).filter(|id| *id >= RETURN).collect();
    let let_in = returned.iter().filter(|id| world.outcome(**id) == Outcome::Served).count();
    assert!(returned.len() > 80 && let_in * 100 >= returned.len() * 95, "{let_in} of {}", returned.len());
    // By windows of five seconds, from the first to the last.
    let windows = returned.iter().map(|id| {
        let (told, respond) = &world.responses[&RequestId(id - RETURN)];
        let Some(seawall_core::advice::Form::Wait(wait)) = respond.form else { unreachable!("it was told a wait") };
        (*told + wait).as_nanos() / 5_000_000_000
    });
    let mut counts = std::collections::BTreeMap::new();
    windows.for_each(|window| *counts.entry(window).or_insert(0_u32) += 1);
    let (first, last) = (counts.keys().next().expect("some"), counts.keys().next_back().expect("some"));
    let mean = f64::from(counts.values().sum::<u32>()) / f64::from(u32::try_from(last - first + 1).expect("small"));
    let peak = f64::from(*counts.values().max().expect("some"));
    assert!(peak <= 1.5 * mean, "{counts:?}");
    world.assert_settled();
}

/// A sealed answer is under way: asking for it again and again does not run it again and again.
#[test]
fn what_is_sealed_counts_as_an_attempt_until_it_has_been_of_use() {
    let mut world = World::new(&equal(1), vec![script(|_| Answer::ended(millis(9_000), AttemptEnd::Completed))]);
    world.arrive(at(0), says(0, 1, 0));
    world.seal(at(1_000), RequestId(0));
    world.arrive(at(2_000), says(1, 1, 1));
    world.seal(at(3_000), RequestId(1));
    world.arrive(at(4_000), says(2, 1, 1));
    // The first one has been served by then.
    world.arrive(at(10_000), says(3, 1, 1));
    world.run_until(at(30_000));
    let outcomes = [0, 1, 2, 3].map(|id| world.outcome(id));
    assert_eq!(outcomes, [Outcome::Served, Outcome::Served, Outcome::RetryBudgetExhausted, Outcome::Served]);
    assert_eq!(world.attempts.len(), 3);
    world.assert_settled();
}

/// An answer too long to keep: who reads it already has all of it, who comes now begins anew, and where nobody reads
/// it, nobody could.
#[test]
fn a_sealed_answer_is_joined_by_nobody_and_ends_where_nobody_reads_it() {
    let long = || script(|_| Answer::ended(millis(9_000), AttemptEnd::Completed));
    let mut world = World::new(&equal(1), vec![long()]);
    world.arrive(at(0), says(0, 1, 0));
    world.arrive(at(1_000), says(1, 1, 1));
    world.seal(at(2_000), RequestId(0));
    world.arrive(at(3_000), says(2, 1, 1));
    world.run_until(at(30_000));
    assert_eq!((world.joins.len(), world.attempts.len(), world.count(Outcome::Served)), (1, 2, 3));
    world.assert_settled();

    let mut world = World::new(&equal(1), vec![long()]);
    world.arrive(at(0), says(0, 1, 0));
    world.leave(at(1_000), RequestId(0));
    world.seal(at(2_000), RequestId(0));
    world.run_until(at(30_000));
    assert_eq!(world.cancelled, [(at(2_000), RequestId(0))]);
    world.assert_settled();
}
