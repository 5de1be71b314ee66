//! Methods of capacity discovery in front of upstreams with slots, while work always waits.

use rand_core::{Rng as _, SeedableRng as _};
use rand_pcg::Pcg32;
use seawall_core::capacity::{CapacityState, Hints, Learned, REGISTRY, Remembered};
use seawall_core::classify::AttemptEnd;
use seawall_core::id::AttemptId;
use seawall_core::protection::Protections;
use seawall_core::settings::Capacity;
use seawall_core::time::{Duration, Instant};
use std::collections::VecDeque;

const SERVICE: Duration = Duration::from_millis(200);

/// How long requests are served.
#[derive(Clone, Copy, Debug)]
enum Law {
    Fixed,
    /// Exponential, the same numbers in every run.
    Random,
}

/// An upstream with slots and a line, first in, first out, kept as full as its window and what arrives allow.
struct Upstream {
    state: CapacityState,
    law: Law,
    slots: u32,
    now: Instant,
    line: VecDeque<AttemptId>,
    running: Vec<(Instant, AttemptId)>,
    next: u64,
    /// When work arrives, each; none: it always waits.
    interval: Duration,
    random: Pcg32,
}

impl Upstream {
    fn new(method: &str, slots: u32, law: Law) -> Self {
        let hints = Hints { patience: Duration::from_secs(10), protections: Protections::default() };
        Self {
            state: CapacityState::new(Capacity::Standard { size: None }, method, hints),
            law,
            slots,
            now: Instant::ZERO,
            line: VecDeque::new(),
            running: Vec::new(),
            next: 0,
            interval: Duration::ZERO,
            random: Pcg32::seed_from_u64(7),
        }
    }

    /// One to which so many times as much work comes as it can do.
    fn at_load(method: &str, slots: u32, law: Law, load: f64) -> Self {
        let interval = SERVICE.mul_f64(1.0 / (f64::from(slots) * load));
        Self { interval, ..Self::new(method, slots, law) }
    }

    /// When the next piece of work arrives that has not been sent.
    fn next_arrives(&self) -> Instant {
        self.interval.checked_mul(u32::try_from(self.next).expect("few")).map_or(Instant::MAX, |at| Instant::ZERO + at)
    }

    fn waits(&self) -> bool {
        self.next_arrives() <= self.now
    }

    fn service(&mut self) -> Duration {
        match self.law {
            Law::Fixed => SERVICE,
            Law::Random => {
                let uniform = (f64::from(self.random.next_u32()) + 0.5) / 4_294_967_296.0;
                SERVICE.mul_f64(-libm::log(uniform))
            }
        }
    }

    fn fill(&mut self) {
        while self.state.has_room(self.now) && self.waits() {
            let attempt = AttemptId(self.next);
            self.next += 1;
            self.state.started(self.now, attempt, self.waits());
            self.line.push_back(attempt);
        }
        while self.running.len() < self.slots as usize
            && let Some(attempt) = self.line.pop_front()
        {
            let ends = self.now + self.service();
            self.running.push((ends, attempt));
            self.running.sort_unstable();
        }
    }

    /// Runs to `end`, and returns how much of the slots' time was used.
    fn run(&mut self, end: Instant) -> f64 {
        let (from, mut busy) = (self.now, 0.0);
        self.fill();
        loop {
            let ends = self.running.first().map_or(Instant::MAX, |(ends, _)| *ends);
            let arrives = if self.waits() { Instant::MAX } else { self.next_arrives() };
            let next = ends.min(arrives);
            if next > end {
                break;
            }
            busy += next.since(self.now).as_secs_f64() * f64::from(u32::try_from(self.running.len()).expect("a few"));
            self.now = next;
            if next == ends {
                let (_, attempt) = self.running.remove(0);
                self.state.ended(ends, attempt, self.waits(), AttemptEnd::Completed);
            }
            self.fill();
        }
        busy / (self.now.since(from).as_secs_f64() * f64::from(self.slots))
    }

    /// Lets what is there end without sending more, and then has everything refused that there is room for, with a wait.
    fn refuse_all(&mut self, now: Instant, wait: Duration) {
        while !self.running.is_empty() {
            let (ends, attempt) = self.running.remove(0);
            self.now = ends;
            self.state.ended(ends, attempt, true, AttemptEnd::Completed);
            self.running.extend(self.line.pop_front().map(|next| (ends + SERVICE, next)));
        }
        self.now = now;
        let first = self.next;
        while self.state.has_room(now) {
            self.state.started(now, AttemptId(self.next), true);
            self.next += 1;
        }
        for attempt in first..self.next {
            self.state.ended(now, AttemptId(attempt), true, AttemptEnd::Throttled { wait: Some(wait) });
        }
    }

    /// Runs for five more seconds: the middle one of the windows each quarter of a second.
    fn middle_window(&mut self) -> u32 {
        let from = self.now;
        let mut windows: Vec<u32> = (1..=20)
            .map(|step| {
                self.run(from + Duration::from_millis(250 * step));
                self.state.limit(self.now).expect("a window")
            })
            .collect();
        windows.sort_unstable();
        windows[10]
    }
}

fn at(seconds: u64) -> Instant {
    Instant::from_millis(1_000 * seconds)
}

#[test]
fn likelihood_finds_the_slots_and_keeps_them_busy() {
    for law in [Law::Fixed, Law::Random] {
        for slots in [2_u32, 4, 16, 64] {
            let mut upstream = Upstream::new("likelihood", slots, law);
            upstream.run(at(10));
            let busy = upstream.run(at(40));
            let window = upstream.middle_window();
            assert!((slots..=3 * slots).contains(&window), "{law:?}, {slots} slots: {window}");
            assert!(busy > 0.95, "{law:?}, {slots} slots: busy {busy}");
        }
    }
}

/// What random services do is a matter of luck, so the middle one of nine runs counts. Sixty-four slots that become four
/// serve as many of 200 ms at random as sixty-four of 3 s that hardly vary: that takes twice as long to tell.
#[test]
fn likelihood_follows_a_step_within_ten_seconds() {
    for law in [Law::Fixed, Law::Random] {
        for (before, after) in [(4_u32, 16_u32), (16, 4), (64, 4), (16, 2)] {
            let told_by = if before == 64 && matches!(law, Law::Random) { 50 } else { 40 };
            let mut windows: Vec<u32> = (0..9)
                .map(|seed| {
                    let mut upstream = Upstream::new("likelihood", before, law);
                    upstream.random = Pcg32::seed_from_u64(seed);
                    upstream.run(at(30));
                    upstream.slots = after;
                    upstream.run(at(told_by));
                    upstream.middle_window()
                })
                .collect();
            windows.sort_unstable();
            // One more at a time is how it is looked upwards from a small window.
            assert!((after..=3 * after + 1).contains(&windows[4]), "{law:?}, {before} to {after} slots: {windows:?}");
        }
    }
}

/// A quota that is used up says when to come back, and nothing of how much is taken at once.
#[test]
fn likelihood_has_its_window_again_soon_after_a_quota_was_used_up() {
    for slots in [4_u32, 16] {
        let mut upstream = Upstream::new("likelihood", slots, Law::Fixed);
        upstream.run(at(25));
        for second in [30, 32, 34, 36, 38] {
            upstream.refuse_all(at(second), Duration::from_secs(2));
        }
        upstream.now = at(40);
        upstream.run(at(41));
        let busy = upstream.run(at(50));
        let window = upstream.middle_window();
        assert!((slots..=3 * slots).contains(&window), "{slots} slots: {window}");
        assert!(busy > 0.95, "{slots} slots: busy {busy}");
    }
}

/// What is in flight is a cohort of its own while it is not seen; a first byte shows it long before an end does.
#[test]
fn first_byte_counts_the_answers_that_have_begun() {
    let hints = Hints { patience: Duration::from_mins(1), protections: Protections::default() };
    let mut state = CapacityState::new(Capacity::Standard { size: None }, "first_byte", hints);
    let answer = |state: &mut CapacityState, now, first: u64| {
        for id in first..first + 8 {
            state.started(now, AttemptId(id), true);
        }
        for id in first..first + 8 {
            state.first_byte(now + Duration::from_millis(100), AttemptId(id), true);
        }
        for id in first..first + 8 {
            state.ended(now + Duration::from_secs(5), AttemptId(id), true, AttemptEnd::Completed);
        }
    };
    answer(&mut state, at(0), 0);
    // Eight of eight were answered at once: one more for each of the last ones.
    let window = state.limit(at(5)).unwrap();
    assert!((9..=12).contains(&window), "{window}");
}

#[test]
fn a_remembered_window_is_where_every_method_with_one_starts() {
    for entry in REGISTRY.iter().filter(|entry| entry.name != "ceiling") {
        let hints = Hints { patience: Duration::from_secs(10), protections: Protections::default() };
        let mut state = CapacityState::new(Capacity::Standard { size: None }, entry.name, hints);
        assert_eq!(state.limit(at(0)), Some(8), "{}", entry.name);
        assert_eq!(state.learned(at(0)), None, "{}: the window that every one starts from says nothing", entry.name);
        assert!(state.remember(at(1), remembered(40, 7_200)), "{}", entry.name);
        assert_eq!(state.limit(at(1)), Some(40), "{}", entry.name);
        assert_eq!(state.learned(at(11)), Some(remembered(40, 7_210)), "{}: it ages", entry.name);
        // A told size is not forgotten for it.
        let mut told = CapacityState::new(Capacity::Standard { size: Some(3) }, entry.name, hints);
        assert!(!told.remember(at(0), remembered(40, 0)));
        assert_eq!((told.limit(at(0)), told.learned(at(0))), (Some(3), None));
    }
}

#[test]
fn what_is_old_or_known_better_is_not_remembered() {
    let hints = Hints { patience: Duration::from_secs(10), protections: Protections::default() };
    let mut state = CapacityState::new(Capacity::Standard { size: None }, "likelihood", hints);
    assert!(!state.remember(at(0), remembered(40, 86_401)));
    assert_eq!(state.limit(at(0)), Some(8));
    assert!(state.remember(at(0), remembered(0, 86_400)), "a day is not too old");
    assert_eq!(state.limit(at(0)), Some(1), "at least one");
    assert!(!state.remember(at(0), remembered(40, 0)), "once");
    assert_eq!(state.limit(at(0)), Some(1));
    // A refusal is as good a reason to remember as a full window; an answer at an empty one is none.
    let mut state = CapacityState::new(Capacity::Standard { size: None }, "likelihood", hints);
    state.started(at(0), AttemptId(0), false);
    state.ended(at(1), AttemptId(0), false, AttemptEnd::Completed);
    assert_eq!(state.learned(at(1)), None);
    state.started(at(1), AttemptId(1), false);
    state.ended(at(2), AttemptId(1), false, AttemptEnd::Throttled { wait: None });
    assert_eq!(state.learned(at(5)).map(|learned| learned.age), Some(Duration::from_secs(3)));
}

/// A restart under 1.2 times the load: the window is where it was from the first request on, and the slots are busy.
#[test]
fn a_restart_under_overload_starts_at_the_window_of_before() {
    for law in [Law::Fixed, Law::Random] {
        let mut before = Upstream::at_load("likelihood", 64, law, 1.2);
        before.run(at(30));
        let learned = before.state.learned(before.now).expect("a window at work");
        assert!((64..=192).contains(&learned.learned.window), "{law:?}: {learned:?}");
        assert_eq!((learned.learned.is_proven, learned.age < Duration::from_secs(1)), (true, true), "{law:?}");

        let after = |remembered: Option<Remembered>| {
            let mut upstream = Upstream::at_load("likelihood", 64, law, 1.2);
            if let Some(remembered) = remembered {
                assert!(upstream.state.remember(Instant::ZERO, remembered));
            }
            let busy = upstream.run(at(1));
            (upstream.state.limit(upstream.now).expect("a window"), busy)
        };
        let ((fresh, idle), (restarted, busy)) = (after(None), after(Some(learned)));
        assert!((64..=192).contains(&restarted), "{law:?}: {restarted}");
        // The first work for all slots needs a sixth of a second to arrive.
        assert!(busy > 0.85, "{law:?}: busy {busy}");
        assert!(idle < busy - 0.1, "{law:?}: {idle} with nothing remembered, and a window of {fresh}");
    }
}

/// What is remembered may be wrong by the time it is used: it is corrected like any other window.
#[test]
fn a_wrong_memory_is_corrected_in_either_direction() {
    for law in [Law::Fixed, Law::Random] {
        for (slots, window) in [(64_u32, 3_u32), (16, 400), (4, 60)] {
            let mut upstream = Upstream::new("likelihood", slots, law);
            assert!(upstream.state.remember(Instant::ZERO, remembered(window, 60)));
            upstream.run(at(10));
            let found = upstream.middle_window();
            assert!((slots..=3 * slots + 1).contains(&found), "{law:?}, {slots} slots, {window}: {found}");
        }
    }
}

fn remembered(window: u32, age_s: u64) -> Remembered {
    Remembered { learned: Learned { window, is_proven: true }, age: Duration::from_secs(age_s) }
}

/// Whatever happens in whatever order, a window is at least one, and the same happenings give the same window.
#[test]
fn any_course_of_events_leaves_a_usable_window() {
    for entry in REGISTRY {
        for seed in 0..20 {
            let windows = |seed| {
                let mut random = Pcg32::seed_from_u64(seed);
                let hints = Hints { patience: Duration::from_secs(10), protections: Protections::default() };
                let mut state = CapacityState::new(Capacity::Standard { size: None }, entry.name, hints);
                let (mut flying, mut now, mut windows) = (Vec::new(), Instant::ZERO, Vec::new());
                for id in 0..3_000 {
                    now = now + Duration::from_micros(u64::from(random.next_u32() % 40_000));
                    let waiting = random.next_u32() % 4 > 0;
                    if random.next_u32() % 2 == 0 || flying.is_empty() {
                        state.started(now, AttemptId(id), waiting);
                        flying.push(AttemptId(id));
                        continue;
                    }
                    let attempt = flying.remove(random.next_u32() as usize % flying.len());
                    match random.next_u32() % 8 {
                        0 => state.ended(now, attempt, waiting, AttemptEnd::Throttled { wait: None }),
                        1 => state.ended(now, attempt, waiting, AttemptEnd::Failed),
                        2 => state.ended(now, attempt, waiting, AttemptEnd::ClientGone),
                        3 => {
                            state.first_byte(now, attempt, waiting);
                            state.ended(now + Duration::from_millis(9), attempt, waiting, AttemptEnd::Completed);
                        }
                        _ => state.ended(now, attempt, waiting, AttemptEnd::Completed),
                    }
                    assert!(state.limit(now).is_none_or(|limit| limit >= 1), "{}", entry.name);
                    assert!(state.opens_at(now).is_none_or(|opens| opens > now), "{}", entry.name);
                    windows.push(state.limit(now));
                }
                windows
            };
            assert_eq!(windows(seed), windows(seed), "{}", entry.name);
        }
    }
}
