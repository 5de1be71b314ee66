//! Ejection: caps, last candidate, probes, panic, a region that fails.

use crate::world::{Answer, Call, World, at, ends, equal, millis, script, serves, settings};
use seawall_core::classify::AttemptEnd;
use seawall_core::engine::Notice;
use seawall_core::outcome::Outcome;
use seawall_core::settings::Capacity;
use seawall_core::time::Instant;

fn fails_between(from: Instant, until: Instant) -> impl FnMut(&Call) -> Answer + Copy {
    move |call| {
        if call.now >= from && call.now < until {
            Answer::ended(millis(20), AttemptEnd::Failed)
        } else {
            Answer::served(millis(50))
        }
    }
}

/// F03: one failure of the only deployment fails one request.
#[test]
fn the_only_deployment_is_never_taken_out() {
    for retries in [1, 2] {
        let mut settings = equal(1);
        settings.pools[0].retry.max_attempts = retries;
        settings.pools[0].ejection.consecutive_failures = 1;
        settings.pools[0].ejection.base_time = millis(60_000);
        let mut world = World::new(&settings, vec![script(fails_between(at(0), at(1)))]);
        world.arrive_evenly(at(0), 10, 10);
        world.run_until(at(10_000));
        assert_eq!(world.outcome(0), Outcome::UpstreamError);
        assert_eq!(world.count(Outcome::Served), 9);
        assert_eq!(world.attempts.len(), 10);
        world.assert_settled();
    }
}

/// The last deployment that a boundary permits is tried although it is out.
#[test]
fn the_last_permitted_candidate_is_tried_although_it_is_out() {
    let mut settings = equal(3);
    settings.deployments[0].boundary = Some("eu".into());
    settings.tenants[0].boundary = Some("eu".into());
    let mut world =
        World::new(&settings, vec![script(fails_between(at(0), at(1_000))), serves(millis(1)), serves(millis(1))]);
    world.arrive_evenly(at(0), 10, 20);
    world.run_until(at(10_000));
    assert_eq!(world.attempts_at(0), 20);
    assert_eq!(world.count(Outcome::Served), 10);
    assert!(world.notices.iter().any(|(_, notice)| matches!(notice, Notice::Ejected { .. })));
    assert_eq!(world.health(0), "healthy");
    world.assert_settled();
}

#[test]
fn at_most_the_cap_is_out_at_once() {
    for (count, cap) in [(2, 1), (3, 1), (4, 1), (10, 3)] {
        let upstreams = (0..count).map(|_| ends(millis(20), AttemptEnd::Failed)).collect();
        let mut world = World::new(&equal(count), upstreams);
        world.arrive_evenly(at(0), 50, 3_000);
        let mut most = 0;
        for second in 1..70 {
            world.run_until(at(second * 1_000));
            most = most.max((0..count).filter(|index| ["ejected", "probing"].contains(&world.health(*index))).count());
        }
        assert_eq!(most, cap, "of {count}");
        assert!((0..count).all(|index| world.attempts_at(index) > 0));
        world.assert_settled();
    }
}

#[test]
fn half_of_the_told_capacity_stays() {
    let sizes = [20, 5, 5].map(|size| Capacity::Provisioned { size });
    let failing = || script(fails_between(at(0), at(30_000)));
    let mut world = World::new(&settings(&sizes), vec![failing(), serves(millis(50)), serves(millis(50))]);
    world.arrive_evenly(at(0), 20, 500);
    world.run_until(at(20_000));
    assert_eq!(world.health(0), "failing", "it is two thirds of the capacity");
    let kept = world.notices.iter().filter(|(_, notice)| matches!(notice, Notice::KeptFailing { .. })).count();
    assert_eq!(kept, 1, "told once");
    // One try a second while others can serve.
    let tries = world.attempts.iter().filter(|a| a.deployment == 0 && a.at >= at(2_000) && a.at < at(12_000)).count();
    assert!((9..=11).contains(&tries), "{tries}");
}

/// Failures that take long: the next try does not wait for the last one's end, and does not come earlier either.
#[test]
fn a_deployment_that_is_kept_in_is_tried_once_a_second_while_its_tries_run() {
    let sizes = [20, 5, 5].map(|size| Capacity::Provisioned { size });
    let slow = || ends(millis(3_000), AttemptEnd::TimedOut);
    let mut world = World::new(&settings(&sizes), vec![slow(), serves(millis(50)), serves(millis(50))]);
    world.arrive_evenly(at(0), 20, 600);
    world.run_until(at(30_000));
    assert_eq!(world.health(0), "failing");
    let tries = world.attempts.iter().filter(|a| a.deployment == 0 && a.at >= at(10_000) && a.at < at(20_000)).count();
    assert!((9..=11).contains(&tries), "{tries}");
}

/// The time out doubles within one trouble, not over the life of the process.
#[test]
fn after_a_whole_slow_start_the_next_time_out_is_short_again() {
    let troubles = |call: &Call| {
        let fails = [(0, 40_000), (200_000, 201_000)]
            .iter()
            .any(|(from, until)| call.now >= at(*from) && call.now < at(*until));
        if fails { Answer::ended(millis(20), AttemptEnd::Failed) } else { Answer::served(millis(50)) }
    };
    let mut world = World::new(&equal(3), vec![script(troubles), serves(millis(50)), serves(millis(50))]);
    world.arrive_evenly(at(0), 50, 12_000);
    world.run_until(at(300_000));
    let times: Vec<_> = world
        .notices
        .iter()
        .filter_map(|(when, notice)| match notice {
            Notice::Ejected { time, .. } => Some((when.as_nanos() / 1_000_000_000, time.as_millis())),
            _ => None,
        })
        .collect();
    assert!(times.len() >= 3, "{times:?}");
    assert!(times.iter().filter(|(when, _)| *when < 100).any(|(_, time)| *time >= 15_000), "it doubled: {times:?}");
    let last = times.last().expect("three or more");
    assert!(last.0 >= 200 && last.1 <= 12_500, "{times:?}");
}

/// The issue's own measure: 50 a second over three deployments, one of them fails everything for 60 s.
#[test]
fn a_region_that_fails_costs_almost_nothing() {
    for policy in ["priority", "weighted", "least_request", "round_robin", "peak_ewma"] {
        let mut settings = equal(3);
        settings.pools[0].policy = policy.into();
        let upstreams = vec![script(fails_between(at(5_000), at(65_000))), serves(millis(50)), serves(millis(50))];
        let mut world = World::new(&settings, upstreams);
        world.arrive_evenly(at(0), 50, 6_000);
        world.run_until(at(200_000));
        let served = world.count(Outcome::Served);
        assert!(served * 1_000 >= 6_000 * 999, "{policy}: {served}");
        let during = |at_: Instant| at_ >= at(5_000) && at_ < at(65_000);
        let attempts = world.attempts.iter().filter(|attempt| during(attempt.at)).count();
        let requests = world.arrivals.keys().filter(|id| during(at(id.0 * 20))).count();
        assert!(attempts * 100 <= requests * 103, "{policy}: {attempts} for {requests}");
        let back = world.attempts.iter().any(|attempt| attempt.deployment == 0 && attempt.at > at(110_000));
        assert!(back, "{policy}: it is used again");
        assert_eq!(world.health(0), "healthy");
        world.assert_settled();
    }
}

#[test]
fn who_comes_back_starts_slowly() {
    let mut world = World::new(&equal(3), {
        let recovers = |call: &Call| {
            if call.now < at(5_000) {
                Answer::ended(millis(20), AttemptEnd::Failed)
            } else {
                Answer::served(millis(2_000))
            }
        };
        vec![script(recovers), serves(millis(2_000)), serves(millis(2_000))]
    });
    world.arrive_evenly(at(0), 100, 8_000);
    world.run_until(at(200_000));
    let back =
        world.notices.iter().find(|(_, notice)| matches!(notice, Notice::Returned { .. })).expect("it is back").0;
    let share = |from: u64, until: u64| {
        let inside = |a: &&crate::world::Attempt| a.at >= back + millis(from) && a.at < back + millis(until);
        let all = world.attempts.iter().filter(inside).count();
        world.attempts.iter().filter(inside).filter(|a| a.deployment == 0).count() * 100 / all
    };
    let shares = [share(0, 3_000), share(12_000, 16_000), share(28_000, 36_000)];
    assert!(shares[0] <= 12 && shares[0] < shares[1] && shares[1] < shares[2], "{shares:?}");
    assert!((28..=40).contains(&shares[2]), "{shares:?}");
    assert_eq!(world.count(Outcome::Served), 8_000);
}

/// A failed probe doubles the time out; the probes are single attempts.
#[test]
fn probes_are_single_and_further_and_further_apart() {
    let mut world =
        World::new(&equal(3), vec![ends(millis(20), AttemptEnd::Failed), serves(millis(50)), serves(millis(50))]);
    world.arrive_evenly(at(0), 50, 15_000);
    world.run_until(at(400_000));
    assert_eq!(world.count(Outcome::Served), 15_000, "every probe had a second attempt");
    let mut tries: Vec<_> = world.attempts.iter().filter(|a| a.deployment == 0).map(|a| a.at).collect();
    tries.retain(|when| *when > at(2_000));
    let gaps: Vec<_> = tries.windows(2).map(|pair| pair[1].since(pair[0]).as_secs()).collect();
    // 10 s, 20 s, 40 s, 80 s, 160 s, each +/- 25%.
    assert!((3..=6).contains(&tries.len()), "{gaps:?}");
    assert!((7..=13).contains(&(tries[0].as_nanos() / 1_000_000_000)), "{:?}", tries[0]);
    assert!(gaps.windows(2).all(|pair| pair[1] * 10 >= pair[0] * 11), "{gaps:?}");
    world.assert_settled();
}

/// Without second attempts, and with a budget that never pays, somebody has to find out in the end.
#[test]
fn an_ejected_deployment_is_probed_although_no_second_attempt_could_follow() {
    for (max_attempts, percent, floor) in [(1, 10, 1), (2, 0, 0)] {
        let mut settings = equal(2);
        settings.pools[0].retry.max_attempts = max_attempts;
        settings.pools[0].retry.budget_percent = percent;
        settings.pools[0].retry.floor_per_second = floor;
        let mut world = World::new(&settings, vec![script(fails_between(at(0), at(2_000))), serves(millis(50))]);
        world.arrive_evenly(at(0), 20, 1_200);
        world.run_until(at(100_000));
        assert_eq!(world.health(0), "healthy");
        let later = world.attempts.iter().filter(|a| a.deployment == 0 && a.at > at(45_000)).count();
        assert!(later > 50, "{later}");
        world.assert_settled();
    }
}

/// Below half healthy, who still answers now and then shares the load; who answers nothing gets tries, and whoever has no
/// room meanwhile waits: a failure that is certain is worse.
#[test]
fn below_half_healthy_the_load_goes_to_all_that_answer() {
    let failing = || script(fails_between(at(1_000), at(20_000)));
    let half = || {
        let mut count = 0;
        script(move |call: &Call| {
            count += 1;
            let fails = count % 4 != 0 && (at(1_000)..at(20_000)).contains(&call.now);
            if fails { Answer::ended(millis(20), AttemptEnd::Failed) } else { Answer::served(millis(50)) }
        })
    };
    let mut settings = equal(3);
    settings.deployments.iter_mut().for_each(|deployment| deployment.capacity = Capacity::Standard { size: Some(2) });
    let mut world = World::new(&settings, vec![half(), failing(), serves(millis(50))]);
    world.arrive_evenly(at(0), 50, 2_000);
    world.run_until(at(100_000));
    let during = |index: usize| {
        let attempts = world.attempts.iter().filter(|attempt| attempt.deployment == index);
        attempts.filter(|attempt| attempt.at > at(5_000) && attempt.at < at(19_000)).count()
    };
    assert!(during(0) > 150, "it answers a quarter: {}", during(0));
    assert!((1..=3).contains(&during(1)), "probes only: {}", during(1));
    assert!(during(2) > 300, "{}", during(2));
    assert!((0..3).all(|index| world.health(index) == "healthy"), "they are back soon after it is over");
    let late = world.responses.iter().filter(|(id, _)| id.0 > 1_100);
    assert!(late.clone().all(|(_, (_, respond))| respond.outcome == Outcome::Served));
    world.assert_settled();
}

/// Two of three answer nothing, and the third has less room than is asked for: who finds that out, and who waits, is
/// served all the same.
#[test]
fn who_finds_out_that_nothing_is_answered_waits_for_room_elsewhere() {
    let failing = || script(fails_between(at(1_000), at(5_000)));
    let mut settings = equal(3);
    settings.deployments.iter_mut().for_each(|deployment| deployment.capacity = Capacity::Standard { size: Some(1) });
    let mut world = World::new(&settings, vec![failing(), failing(), serves(millis(50))]);
    world.arrive_evenly(at(0), 30, 300);
    world.run_until(at(60_000));
    // Those of the first second after it began found it out, three or more of each.
    let failed = world.responses.iter().filter(|(_, (_, respond))| respond.outcome != Outcome::Served);
    assert!(failed.clone().count() <= 10, "{}", failed.count());
    assert!(failed.clone().all(|(_, (when, _))| *when < at(2_000)), "{:?}", failed.collect::<Vec<_>>());
    world.assert_settled();
}

/// A probe whose client leaves, or that is throttled, decides nothing: the next one probes.
#[test]
fn an_undecided_probe_is_followed_by_another() {
    for undecided in
        [AttemptEnd::ClientGone, AttemptEnd::Throttled { wait: Some(millis(300)) }, AttemptEnd::ClientFault]
    {
        let script_of = move |call: &Call| match call.now {
            now if now < at(2_000) => Answer::ended(millis(20), AttemptEnd::Failed),
            now if now < at(16_000) => Answer::ended(millis(20), undecided),
            _ => Answer::served(millis(50)),
        };
        let mut world = World::new(&equal(2), vec![script(script_of), serves(millis(50))]);
        world.arrive_evenly(at(0), 20, 600);
        world.run_until(at(100_000));
        assert_eq!(world.health(0), "healthy", "{undecided:?}");
        let back = world.notices.iter().find(|(_, notice)| matches!(notice, Notice::Returned { .. }));
        let back = back.expect("it came back").0;
        assert!((at(16_000)..at(17_500)).contains(&back), "{undecided:?}: {back:?}");
        world.assert_settled();
    }
}
