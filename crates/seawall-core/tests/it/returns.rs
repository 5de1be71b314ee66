//! The return calendar as clients see it: who comes when told is let in, and they do not come all at once.
//!
//! The clients are those that a calendar is for: they come exactly when told, twice at the most, and have no other
//! patience. Behind the pool are eight slots that serve 40 requests a second. A trouble begins after half a minute.

use crate::world::{Answer, Call, World, at, millis, request, script, settings};
use seawall_core::advice::Form;
use seawall_core::engine::{Arrival, Identity, Respond};
use seawall_core::id::RequestId;
use seawall_core::outcome::Outcome;
use seawall_core::random::Random;
use seawall_core::settings::Capacity;
use seawall_core::time::{Duration, Instant};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

const SLOTS: u32 = 8;
const SERVICE: Duration = millis(200);
const BEGINS: Instant = at(30_000);
const ARRIVALS_END: Instant = at(240_000);
const TOLD: (Capacity, &str) = (Capacity::Provisioned { size: SLOTS }, "ceiling");
const FOUND: (Capacity, &str) = (Capacity::Standard { size: None }, "likelihood");
const SEEDS: [u64; 3] = [1, 2, 3];
const WINDOW: Duration = Duration::from_secs(5);

/// What happens for a while.
#[derive(Clone, Copy, Debug)]
struct Trouble {
    ends: Instant,
    /// New requests, in percent of what the slots serve: before and after, and meanwhile.
    load: [u32; 2],
    /// So many times slower.
    slower: u32,
}

/// Eight times as much as can be served, for 5 s.
const fn burst(load: u32) -> Trouble {
    Trouble { ends: at(35_000), load: [load, 800], slower: 1 }
}

/// A quarter of the speed for 30 s.
const fn slow(load: u32) -> Trouble {
    Trouble { ends: at(60_000), load: [load, load], slower: 4 }
}

/// A tenth of the speed for 30 s.
const fn slower(load: u32) -> Trouble {
    Trouble { ends: at(60_000), load: [load, load], slower: 10 }
}

/// As good as down for 20 s.
const fn down(load: u32) -> Trouble {
    Trouble { ends: at(50_000), load: [load, load], slower: 50 }
}

/// Troubles in which so many are refused that they come back over ten seconds and more.
const WAVES: [Trouble; 10] =
    [burst(50), burst(80), slow(50), slow(80), slow(95), slower(50), slower(80), slower(95), down(80), down(95)];

/// A request that somebody was told to make again.
#[derive(Clone, Copy, Debug)]
struct Return {
    at: Instant,
    content: u128,
    number: u32,
    is_let_in: bool,
    is_served: bool,
}

fn says(id: u64, content: u128, previous_attempts: u32) -> Arrival {
    let identity = Identity { fingerprint: content, key: None, previous_attempts, may_repeat: true };
    Arrival { identity: Some(identity), ..request(id) }
}

impl Trouble {
    fn lasts_at(self, now: Instant) -> bool {
        (BEGINS..self.ends).contains(&now)
    }

    /// When what starts now is done.
    fn done(self, starts: Instant) -> Instant {
        if !self.lasts_at(starts) {
            return starts + SERVICE;
        }
        let meanwhile = self.ends.since(starts) / self.slower;
        if meanwhile >= SERVICE {
            starts + SERVICE * self.slower
        } else {
            self.ends + SERVICE.saturating_sub(meanwhile)
        }
    }

    /// Everybody who came back, in the order in which they were told to.
    fn returns(self, (capacity, discovery): (Capacity, &str), seed: u64) -> Vec<Return> {
        let mut settings = settings(&[capacity]);
        settings.pools[0].discovery = discovery.into();
        let mut free = [Instant::ZERO; SLOTS as usize];
        let upstream = script(move |call: &Call| {
            let slot = free.iter_mut().min().expect("there are slots");
            *slot = self.done(call.now.max(*slot));
            Answer::served(slot.since(call.now))
        });
        let mut world = World::new(&settings, vec![upstream]);
        let first = self.arrive(&mut world, seed);
        let told: Rc<RefCell<BTreeMap<RequestId, Return>>> = Rc::default();
        let returns = Rc::clone(&told);
        world.clients(move |now, respond| {
            let mut returns = returns.borrow_mut();
            let next = first + returns.len() as u64;
            let again = again(now, respond, returns.get(&respond.request).copied())?;
            returns.insert(RequestId(next), again);
            Some((again.at.since(now), says(next, again.content, again.number)))
        });
        world.run_until(at(400_000));
        world.assert_settled();
        let of = |(id, told): (&RequestId, &Return)| {
            let answer = world.response(id.0);
            let is_served = answer.outcome == Outcome::Served;
            Return { is_let_in: is_served || !answer.queued.is_zero() || answer.attempts > 0, is_served, ..*told }
        };
        told.borrow().iter().map(of).collect()
    }

    /// Schedules all first attempts; returns how many.
    fn arrive(self, world: &mut World, seed: u64) -> u64 {
        let mut random = Random::new(seed);
        let (mut now, mut id) = (Instant::ZERO, 0);
        while now < ARRIVALS_END {
            let load = self.load[usize::from(self.lasts_at(now))];
            let mean = SERVICE * 100 / SLOTS / load;
            now = now + random.span(Duration::ZERO, mean * 2);
            world.arrive(now, says(id, u128::from(id), 0));
            id += 1;
        }
        id
    }
}

/// What a client does that was answered.
fn again(now: Instant, respond: &Respond, before: Option<Return>) -> Option<Return> {
    let Some(Form::Wait(wait)) = respond.form else { return None };
    let (content, number) = before.map_or((u128::from(respond.request.0), 1), |told| (told.content, told.number + 1));
    (number <= 2).then_some(Return { at: now + wait, content, number, is_let_in: false, is_served: false })
}

/// How many of these count, in whole percent.
fn percent(returns: &[Return], counts: impl Fn(&Return) -> bool) -> usize {
    returns.iter().filter(|told| counts(told)).count() * 100 / returns.len().max(1)
}

/// After the trouble a slot is a place, even at 95% of the load, where next to nothing is to spare. When a trouble ends
/// nobody knows: who is told to come while it still lasts is let in, and then waits like all others.
#[test]
fn at_least_95_percent_of_those_who_return_in_their_slot_are_admitted() {
    for capacity in [TOLD, FOUND] {
        for trouble in WAVES {
            let all: Vec<Return> = SEEDS.iter().flat_map(|seed| trouble.returns(capacity, *seed)).collect();
            let after: Vec<Return> = all.iter().filter(|told| told.at >= trouble.ends).copied().collect();
            let (served, let_in) = (percent(&after, |told| told.is_served), percent(&all, |told| told.is_let_in));
            let what = format!("{capacity:?}, {trouble:?}: {served}% of {}, {let_in}% of {}", after.len(), all.len());
            assert!(after.len() >= 90 && served >= 95, "{what}");
            // While next to nothing is served, next to nobody can be.
            assert!(let_in >= if trouble.slower > 10 { 85 } else { 90 }, "{what}");
        }
    }
}

/// How many come in each whole window from the first return on.
fn windows(returns: &[Return]) -> Vec<usize> {
    let times: Vec<Instant> = returns.iter().map(|told| told.at).collect();
    let (Some(first), Some(last)) = (times.iter().copied().min(), times.iter().copied().max()) else {
        return Vec::new();
    };
    let window =
        |time: Instant| usize::try_from(time.since(first).as_nanos() / WINDOW.as_nanos()).expect("it is small");
    let mut counts = vec![0; window(last) + 1];
    for time in times {
        counts[window(time)] += 1;
    }
    counts.pop();
    counts
}

/// The 99.9% quantile of the most that fall into one of `windows`, where `count` are drawn uniformly.
fn likely_peak(count: usize, windows: usize) -> usize {
    let bound = u32::try_from(windows).expect("they are few");
    let (mut random, draws) = (Random::new(1), 2_000);
    let mut peak = || {
        let mut counts = vec![0; windows];
        for _ in 0..count {
            counts[random.below(bound) as usize] += 1;
        }
        counts.into_iter().max().unwrap_or(0)
    };
    let mut peaks: Vec<usize> = (0..draws).map(|_| peak()).collect();
    peaks.sort_unstable();
    peaks[draws - draws / 1_000 - 1]
}

#[test]
fn the_peak_of_the_returns_is_at_most_one_and_a_half_of_their_mean() {
    for capacity in [TOLD, FOUND] {
        for trouble in WAVES {
            for seed in SEEDS {
                let counts = windows(&trouble.returns(capacity, seed));
                let (all, peak) = (counts.iter().sum::<usize>(), counts.iter().copied().max().unwrap_or(0));
                assert!(counts.len() >= 2 && all >= 40, "it is no wave: {counts:?}");
                let is_flat = peak * counts.len() * 2 <= all * 3;
                assert!(
                    is_flat || peak <= likely_peak(all, counts.len()),
                    "{capacity:?} {trouble:?} {seed} {counts:?}"
                );
            }
        }
    }
}
