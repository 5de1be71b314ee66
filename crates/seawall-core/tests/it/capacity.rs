//! Throttles, stated waits and spill-over.

use crate::world::{Answer, Call, World, at, equal, millis, request, script, serves, settings};
use seawall_core::advice::Form;
use seawall_core::classify::AttemptEnd;
use seawall_core::engine::Arrival;
use seawall_core::outcome::Outcome;
use seawall_core::settings::{Capacity, Settings};
use seawall_core::time::{Duration, Instant};

fn reserved_first(told: u32) -> Settings {
    let mut settings = settings(&[Capacity::Provisioned { size: told }, Capacity::Standard { size: None }]);
    settings.deployments[0].priority_group = 1;
    settings.deployments[1].priority_group = 2;
    settings
}

/// Serves five at a time, 200 ms each; refuses the sixth with a wait of 80 ms.
fn five_at_a_time(call: &Call) -> Answer {
    if call.running < 5 {
        Answer::served(millis(200))
    } else {
        Answer::ended(millis(1), AttemptEnd::Throttled { wait: Some(millis(80)) })
    }
}

/// F28. With the size told right nothing is ever refused; with a size told too large the refusals of the upstream say it.
#[test]
fn only_the_overflow_of_a_reservation_is_paid_by_use() {
    for told in [5, 6, 100] {
        let mut world = World::new(&reserved_first(told), vec![script(five_at_a_time), serves(millis(200))]);
        world.arrive_evenly(at(0), 40, 4_000);
        world.run_until(at(120_000));
        assert_eq!(world.count(Outcome::Served), 4_000, "told {told}");
        let throttled = world.attempts.len() - 4_000;
        assert_eq!(throttled > 0, told > 5, "the upstream refuses where the told size is too large: {throttled}");
        assert!(throttled < 400, "and it is learned from: {throttled}");
        let spilled = world.attempts.iter().filter(|attempt| attempt.deployment == 1).count();
        assert!((1_520..=2_200).contains(&spilled), "38% to 55% of 4,000: {spilled}, told {told}");
        // Of five places over 100 s.
        let busy = world.busy[0].as_millis() * 100 / 500_000;
        assert!(busy >= 75, "told {told}: busy share {busy}%");
        let slowest = world.responses.iter().map(|(id, (when, _))| when.since(at(id.0 * 25))).max();
        assert!(slowest < Some(millis(220)), "no sleep before the spill: {slowest:?}, told {told}");
        assert!(world.notices.is_empty(), "a refusal for want of capacity is no failure");
        world.assert_settled();
    }
}

#[test]
fn at_half_the_demand_next_to_nothing_spills() {
    for told in [5, 6, 100] {
        let mut world = World::new(&reserved_first(told), vec![script(five_at_a_time), serves(millis(200))]);
        world.arrive_evenly(at(0), 20, 2_000);
        world.run_until(at(120_000));
        assert_eq!(world.count(Outcome::Served), 2_000);
        let spilled = world.attempts_at(1);
        assert!(spilled < 40, "2% of 2,000: {spilled}, told {told}");
        world.assert_settled();
    }
}

/// F28 over both: a burst is over, the reservation gets everything back.
#[test]
fn when_demand_halves_the_reservation_takes_all_of_it_again() {
    for told in [5, 100] {
        let mut world = World::new(&reserved_first(told), vec![script(five_at_a_time), serves(millis(200))]);
        world.arrive_evenly(at(0), 40, 800);
        world.arrive_evenly(at(25_000), 20, 1_000);
        world.run_until(at(120_000));
        assert_eq!(world.count(Outcome::Served), 1_800);
        let later = world.attempts.iter().filter(|a| a.deployment == 1 && a.at >= at(25_000)).count();
        assert!(later < 20, "2% of 1,000: {later}, told {told}");
    }
}

/// A random world of the swarm showed it (seed 645): the last attempt of a request was what found out whether there was
/// room again, and so its client was refused at half load. Four places of 1 s, and five requests each 2.5 s.
#[test]
fn a_second_attempt_waits_for_a_place_that_is_known() {
    let four_at_a_time = |call: &Call| {
        let full = Answer::ended(millis(1), AttemptEnd::Throttled { wait: None });
        if call.running < 4 { Answer::served(millis(1_000)) } else { full }
    };
    let mut world = World::new(&equal(1), vec![script(four_at_a_time)]);
    for id in 0..500 {
        world.arrive(at(id / 5 * 2_500), request(id));
    }
    world.run_until(at(300_000));
    assert_eq!((world.count(Outcome::Served), world.attempts.len()), (500, 600));
    let when: Vec<_> = world.attempts_of(4).iter().map(|attempt| attempt.at).collect();
    assert_eq!(when, [at(0), at(1_000)], "when the first of the four has ended, not when the ceiling grows");
    world.assert_settled();
}

/// One of two places of a minute each is gone until a second has passed; others answer in 50 ms.
fn one_more_after_a_second(call: &Call) -> Answer {
    if call.now < at(1_000) && call.running >= 2 {
        return Answer::ended(millis(1), AttemptEnd::Throttled { wait: None });
    }
    Answer::served(if call.request.0 < 2 { millis(60_000) } else { millis(50) })
}

/// A first attempt finds out that there is room, and who waits for a second one takes the place that it has proved.
#[test]
fn a_first_attempt_proves_the_place_of_a_second_one() {
    let mut world = World::new(&equal(1), vec![script(one_more_after_a_second)]);
    for (id, when) in [0, 0, 100, 2_000].into_iter().enumerate() {
        world.arrive(at(when), request(id as u64));
    }
    world.run_until(at(120_000));
    let when: Vec<_> = world.attempts_of(2).iter().map(|attempt| attempt.at).collect();
    assert_eq!(when, [at(100), at(2_050)]);
    assert_eq!(world.count(Outcome::Served), 4);
    world.assert_settled();
}

/// Where nothing proves a place it goes all the same, at the end of its patience rather than never.
#[test]
fn a_second_attempt_that_has_waited_in_vain_takes_any_room() {
    let mut world = World::new(&equal(1), vec![script(one_more_after_a_second)]);
    for (id, when) in [0, 0, 100].into_iter().enumerate() {
        world.arrive(at(when), request(id as u64));
    }
    world.run_until(at(120_000));
    let when: Vec<_> = world.attempts_of(2).iter().map(|attempt| attempt.at).collect();
    assert_eq!(when, [at(100), at(10_100)]);
    assert_eq!((world.outcome(2), world.response(2).queued), (Outcome::Served, millis(9_999)));
    world.assert_settled();
}

/// And at once where nobody may wait; but of two deployments with room it prefers the one whose room is known.
#[test]
fn a_second_attempt_that_cannot_wait_takes_any_room_and_known_room_first() {
    for (deployments, expected) in [(2, 1), (3, 2)] {
        let mut settings = equal(deployments);
        settings.pools[0].queue.max_waiting = 0;
        for (index, deployment) in settings.deployments.iter_mut().enumerate() {
            deployment.priority_group = u32::try_from(index).expect("a few");
        }
        let full = || Answer::ended(millis(1), AttemptEnd::Throttled { wait: None });
        // The first is full from 1 s on. The second refuses a second one in its first second.
        let upstream = |index: usize| {
            script(move |call: &Call| match index {
                0 if call.now < at(1_000) || call.request.0 == 3 => full(),
                1 if call.now < at(1_000) && call.running > 0 => full(),
                _ => Answer::served(millis(60_000)),
            })
        };
        let mut world = World::new(&settings, (0..deployments).map(upstream).collect());
        for (id, when) in [0, 50, 60, 20_000].into_iter().enumerate() {
            world.arrive(at(when), request(id as u64));
        }
        world.run_until(at(120_000));
        let went = world.attempts_of(3).last().map(|attempt| attempt.deployment);
        assert_eq!((world.outcome(3), went), (Outcome::Served, Some(expected)), "of {deployments}");
        world.assert_settled();
    }
}

fn throttles_until(opens: Instant, wait: Duration) -> impl FnMut(&Call) -> Answer {
    move |call| {
        if call.now < opens {
            Answer::ended(millis(5), AttemptEnd::Throttled { wait: Some(wait) })
        } else {
            Answer::served(millis(50))
        }
    }
}

/// F02, first and second run: the second attempt waits for the stated time, then serves.
#[test]
fn a_stated_wait_inside_the_deadline_is_waited_for() {
    for deadline in [None, Some(at(10_000))] {
        let mut world = World::new(&equal(1), vec![script(throttles_until(at(2_000), millis(2_000)))]);
        world.arrive(at(0), Arrival { deadline, ..request(1) });
        world.run_until(at(20_000));
        assert_eq!(world.outcome(1), Outcome::Served);
        let when: Vec<_> = world.attempts.iter().map(|attempt| attempt.at).collect();
        assert_eq!(when, [at(0), at(2_005)]);
        assert_eq!(world.response(1).queued, millis(2_000));
        world.assert_settled();
    }
}

/// F02, third run: nobody sleeps towards a time that lies past the deadline or the patience.
#[test]
fn a_stated_wait_beyond_the_deadline_is_passed_on_at_once() {
    for deadline in [None, Some(at(10_000))] {
        let mut world = World::new(&equal(1), vec![script(throttles_until(at(60_000), millis(60_000)))]);
        world.arrive(at(0), Arrival { deadline, ..request(1) });
        world.run_until(at(5));
        assert_eq!((world.outcome(1), world.attempts.len()), (Outcome::CapacityExhausted, 1));
        let Some(Form::WaitStop(wait)) = world.response(1).form else { panic!("{:?}", world.response(1).form) };
        assert!((millis(30_000)..=millis(58_000)).contains(&wait));
        // The next one is told at once, without an attempt.
        world.arrive(at(10_000), request(2));
        world.run_until(at(10_000));
        assert_eq!((world.outcome(2), world.response(2).attempts), (Outcome::CapacityExhausted, 0));
        let Some(Form::Wait(wait)) = world.response(2).form else { panic!("{:?}", world.response(2).form) };
        assert!(wait >= millis(50_005), "not before the upstream is ready: {wait:?}");
        world.assert_settled();
    }
}

/// Whoever comes back when told is served; nothing is sent into the wait.
#[test]
fn nothing_is_sent_into_a_stated_wait() {
    let mut world = World::new(&equal(1), vec![script(throttles_until(at(20_000), millis(20_000)))]);
    world.arrive_evenly(at(0), 10, 100);
    world.run_until(at(15_000));
    assert_eq!(world.attempts.len(), 1);
    assert!(
        world
            .responses
            .values()
            .all(|(when, respond)| { matches!(respond.form, Some(Form::Wait(wait)) if *when + wait >= at(20_000)) })
    );
    world.arrive(at(20_005), request(1_000));
    world.run_until(at(30_000));
    assert_eq!(world.outcome(1_000), Outcome::Served);
    world.assert_settled();
}

/// F59(a): refusals leave nothing behind; after them exactly the configured number runs at once, neither more nor less.
#[test]
fn refusals_leave_nothing_behind() {
    let mut settings = settings(&[Capacity::Provisioned { size: 1 }]);
    settings.pools[0].queue.max_waiting = 0;
    let mut world = World::new(&settings, vec![serves(millis(10_000))]);
    world.arrive(at(0), request(0));
    for id in 1..60 {
        world.arrive(at(id * 100), request(id));
    }
    world.arrive(at(10_001), request(60));
    world.arrive(at(10_002), request(61));
    world.run_until(at(60_000));
    assert_eq!((world.outcome(0), world.outcome(60)), (Outcome::Served, Outcome::Served));
    assert_eq!(world.count(Outcome::CapacityExhausted), 60);
    assert_eq!(world.attempts.len(), 2);
    let waits = world.responses.values().filter_map(|(_, respond)| respond.form);
    // Who comes when it is known that one is served in ten seconds, and six a second ask, has no place in the calendar.
    let told = |form: &Form| matches!(form, Form::Wait(_) | Form::WaitStop(_));
    assert!(waits.clone().all(|form| told(&form)), "{:?}", waits.collect::<Vec<_>>());
    world.assert_settled();
}

/// Answers of two minutes at half of the told size, clients without deadlines: nobody is refused, nobody waits.
#[test]
fn long_answers_at_half_load_are_never_refused() {
    let mut world = World::new(&settings(&[Capacity::Provisioned { size: 20 }; 3]), {
        (0..3).map(|_| serves(Duration::from_mins(2))).collect()
    });
    // 60 places of 120 s: half load is one each 4 s.
    for id in 0..300 {
        world.arrive(at(id * 4_000), request(id));
    }
    world.run_until(at(2_000_000));
    assert_eq!(world.count(Outcome::Served), 300);
    assert!(world.responses.values().all(|(_, respond)| respond.queued.is_zero() && respond.attempts == 1));
    assert!(world.most_running.iter().all(|most| *most <= 20));
    world.assert_settled();
}
