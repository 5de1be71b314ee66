//! Methods of capacity discovery in front of upstreams with slots, while work always waits.

use rand_core::{Rng as _, SeedableRng as _};
use rand_pcg::Pcg32;
use seawall_core::capacity::{CapacityState, Hints, REGISTRY};
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

/// An upstream with slots and a line, first in, first out, kept as full as its window allows.
struct Upstream {
    state: CapacityState,
    law: Law,
    slots: u32,
    now: Instant,
    line: VecDeque<AttemptId>,
    running: Vec<(Instant, AttemptId)>,
    next: u64,
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
            random: Pcg32::seed_from_u64(7),
        }
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
        while self.state.has_room(self.now) {
            let attempt = AttemptId(self.next);
            self.next += 1;
            self.state.started(self.now, attempt, true);
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
        while self.running.first().is_some_and(|(ends, _)| *ends <= end) {
            let (ends, attempt) = self.running.remove(0);
            busy += ends.since(self.now).as_secs_f64()
                * (f64::from(u32::try_from(self.running.len()).expect("a few")) + 1.0);
            self.now = ends;
            self.state.ended(ends, attempt, true, AttemptEnd::Completed);
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

#[test]
fn likelihood_follows_a_step_within_ten_seconds() {
    for law in [Law::Fixed, Law::Random] {
        for (before, after) in [(4_u32, 16_u32), (16, 4), (64, 4), (16, 2)] {
            let mut upstream = Upstream::new("likelihood", before, law);
            upstream.run(at(30));
            upstream.slots = after;
            upstream.run(at(40));
            let window = upstream.middle_window();
            // One more at a time is how it is looked upwards from a small window.
            assert!((after..=3 * after + 1).contains(&window), "{law:?}, {before} to {after} slots: {window}");
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
        state.remember(40);
        assert_eq!((state.limit(at(0)), state.window()), (Some(40), Some(40)), "{}", entry.name);
        // A told size is not forgotten for it.
        let mut told = CapacityState::new(Capacity::Standard { size: Some(3) }, entry.name, hints);
        told.remember(40);
        assert_eq!((told.limit(at(0)), told.window()), (Some(3), None));
    }
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
