//! The shapes: which servers stand behind the router, and what befalls them.

use super::cell::Law;
use crate::{Nanos, SECOND};
use seawall_cases::scenario::EngineFault;

/// What befalls the servers of a shape for a while: every one, where nothing else is said.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Trouble {
    /// It works at this part of its speed.
    Slower(f64),
    /// It has so many slots.
    Slots(u32),
    /// So many of the servers fail in this way, the others go on.
    Fails(EngineFault, u32),
    /// So many of the servers are gone without a word, and have a quarter of their speed for ten seconds when they are
    /// back.
    Cold(u32),
}

/// Servers, and what befalls them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// Its name on the command line.
    pub name: &'static str,
    /// Whether it is one of the six shapes that the gates are for.
    pub is_of_the_set: bool,
    /// Servers.
    pub upstreams: u32,
    /// Slots of each at the beginning.
    pub slots: u32,
    /// Mean time that one request takes in a slot alone.
    pub service: Nanos,
    /// How much each further running request slows the others, in percent.
    pub batch_slowdown_percent: f64,
    /// Whether those that wait at a server take turns at random.
    pub random_order: bool,
    /// What befalls the servers.
    pub trouble: Trouble,
    /// When it begins and ends in a short run; an end after the run's means that it stays.
    pub times: (Nanos, Nanos),
    /// When the last request of a short run is sent.
    pub end: Nanos,
    /// How long a client waits in all, from the first time that it sent its request.
    pub patience: Nanos,
    /// The laws of service that it is run with, the usual one first.
    pub laws: &'static [Law],
}

/// Half a minute of life around ten seconds of trouble.
const BENCH: Shape = Shape {
    name: "bench",
    is_of_the_set: true,
    upstreams: 2,
    slots: 4,
    service: SECOND / 5,
    batch_slowdown_percent: 0.0,
    random_order: false,
    trouble: Trouble::Slower(0.25),
    times: (10 * SECOND, 20 * SECOND),
    end: 45 * SECOND,
    patience: 10 * SECOND,
    laws: &[Law::Fixed, Law::Exponential, Law::Lognormal, Law::Erlang, Law::Narrow],
};

/// A bench that changes its slots at second 20 and stays so.
const fn step(name: &'static str, from: u32, to: u32) -> Shape {
    let times = (20 * SECOND, Nanos::MAX);
    Shape { name, is_of_the_set: false, slots: from, trouble: Trouble::Slots(to), times, ..BENCH }
}

/// Five servers of the bench, of which some are in trouble from second 10 to second 20.
const fn five(name: &'static str, trouble: Trouble) -> Shape {
    Shape { name, is_of_the_set: false, upstreams: 5, trouble, ..BENCH }
}

/// Every shape: first the six of the set, then the others.
pub const SHAPES: &[Shape] = &[
    BENCH,
    Shape { name: "2x6x0.05", slots: 6, service: SECOND / 20, ..BENCH },
    Shape { name: "2x3x0.5", slots: 3, service: SECOND / 2, trouble: Trouble::Slower(1.0 / 3.0), ..BENCH },
    Shape { name: "2x24x0.4", slots: 24, service: 2 * SECOND / 5, trouble: Trouble::Slower(0.125), ..BENCH },
    Shape { name: "5x2x0.3", upstreams: 5, slots: 2, service: 3 * SECOND / 10, trouble: Trouble::Slots(1), ..BENCH },
    Shape { name: "2x64x0.2", slots: 64, ..BENCH },
    Shape {
        name: "batch",
        is_of_the_set: false,
        slots: 16,
        batch_slowdown_percent: 10.0,
        laws: &[Law::Fixed],
        ..BENCH
    },
    Shape {
        name: "llm",
        is_of_the_set: false,
        slots: 32,
        service: 3 * SECOND,
        times: (60 * SECOND, 90 * SECOND),
        end: 180 * SECOND,
        patience: 60 * SECOND,
        laws: &[Law::HeavyTail],
        ..BENCH
    },
    Shape { name: "random-order", is_of_the_set: false, random_order: true, ..BENCH },
    Shape { name: "starts-ill", is_of_the_set: false, times: (0, 20 * SECOND), ..BENCH },
    step("4-to-16", 4, 16),
    step("16-to-1", 16, 1),
    step("64-to-4", 64, 4),
    step("16-to-4", 16, 4),
    five("1-of-5-errors", Trouble::Fails(EngineFault::Errors, 1)),
    five("1-of-5-silent", Trouble::Fails(EngineFault::Silent, 1)),
    five("2-of-5-cold", Trouble::Cold(2)),
    five("4-of-5-errors", Trouble::Fails(EngineFault::Errors, 4)),
    five("5-of-5-errors", Trouble::Fails(EngineFault::Errors, 5)),
    five("3-of-5-half", Trouble::Fails(EngineFault::HalfErrors, 3)),
    five("5-of-5-half", Trouble::Fails(EngineFault::HalfErrors, 5)),
    five("3-of-5-throttle", Trouble::Fails(EngineFault::Throttles, 3)),
    // Clients that wait for less than what is usual.
    Shape { name: "impatient", is_of_the_set: false, patience: 3 * SECOND, ..BENCH },
    // For trials of live storms: a few seconds.
    Shape {
        name: "quick",
        is_of_the_set: false,
        service: SECOND / 20,
        times: (SECOND, 2 * SECOND),
        end: 4 * SECOND,
        patience: 3 * SECOND,
        laws: &[Law::Fixed],
        ..BENCH
    },
];

impl Shape {
    /// The shape of that name.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        SHAPES.iter().find(|shape| shape.name == name)
    }

    /// The speed of one server, as the slots that would do the same if none slowed another: `1` is one request alone.
    pub fn speed(&self, slots: u32) -> f64 {
        let slowed = 1.0 + self.batch_slowdown_percent / 100.0 * f64::from(slots.saturating_sub(1));
        f64::from(slots) / slowed
    }

    /// Slots of each server while it is well: the most that it ever has.
    pub fn healthy_slots(&self) -> u32 {
        match self.trouble {
            Trouble::Slots(slots) => self.slots.max(slots),
            Trouble::Slower(_) | Trouble::Fails(..) | Trouble::Cold(_) => self.slots,
        }
    }

    /// Requests a second that all servers together can do while they are well.
    pub fn capacity_per_second(&self) -> f64 {
        f64::from(self.upstreams) * self.speed(self.healthy_slots()) * 1e9 / crate::actors::number_of(self.service)
    }
}
