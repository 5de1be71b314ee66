//! What the methods are judged on.

use crate::world::{Law, Order, Phase, Scenario};

const LOADS: [f64; 3] = [0.8, 1.2, 2.0];

/// Scenarios that make one row.
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) scenarios: Vec<Scenario>,
}

/// Upstreams of one kind, and what happens to them for ten seconds.
#[derive(Clone, Copy)]
struct Shape {
    upstreams: usize,
    slots: u32,
    /// Mean service in seconds.
    mean: f64,
    /// In the brown-out: service takes so many times as long, and so many slots are left.
    slow: f64,
    left: u32,
}

impl Shape {
    const fn slowed(upstreams: usize, slots: u32, mean: f64, slow: f64) -> Self {
        Self { upstreams, slots, mean, slow, left: slots }
    }

    fn name(self) -> String {
        format!("{} x {} x {} s", self.upstreams, self.slots, self.mean)
    }

    /// 45 s with a brown-out from 12 to 22 s.
    fn storm(self, law: Law, load: f64) -> Scenario {
        Scenario {
            upstreams: self.upstreams,
            phases: vec![
                Phase { from: 0.0, slots: self.slots, slow: 1.0 },
                Phase { from: 12.0, slots: self.left, slow: self.slow },
                Phase { from: 22.0, slots: self.slots, slow: 1.0 },
            ],
            mean: self.mean,
            law,
            order: Order::Fifo,
            batching: false,
            places: None,
            streams: false,
            load,
            patience: 10.0,
            seconds: 45.0,
        }
    }
}

const BENCH: Shape = Shape::slowed(2, 4, 0.2, 4.0);
const MANY: Shape = Shape::slowed(2, 24, 0.4, 8.0);
const FEW: Shape = Shape { upstreams: 5, slots: 2, mean: 0.3, slow: 1.0, left: 1 };

const SIX: [Shape; 6] =
    [BENCH, Shape::slowed(2, 6, 0.05, 4.0), Shape::slowed(2, 3, 0.5, 3.0), MANY, FEW, Shape::slowed(2, 64, 0.2, 4.0)];

/// The six shapes, with constant and with exponential service: storm A (eight places behind the slots, more is refused)
/// and storm B (an unbounded line), at three loads.
pub(crate) fn shapes() -> Vec<Group> {
    let mut groups = Vec::new();
    for shape in SIX {
        for law in [Law::Fixed, Law::Exponential] {
            let storms = [Some(8), None].into_iter().flat_map(|places| LOADS.map(|load| (places, load)));
            let scenarios = storms.map(|(places, load)| Scenario { places, ..shape.storm(law, load) }).collect();
            groups.push(Group { name: format!("{}, {}", shape.name(), law.name()), scenarios });
        }
    }
    groups
}

/// A step of the slots at 30 s of 75 s, at 1.5 times the larger capacity.
pub(crate) fn steps() -> Vec<(String, Scenario)> {
    let laws = [
        (Law::Fixed, Order::Fifo),
        (Law::Exponential, Order::Fifo),
        (Law::Narrow(0.1), Order::Fifo),
        (Law::Erlang4, Order::Fifo),
        (Law::LogNormal, Order::Fifo),
        (Law::Exponential, Order::Random),
    ];
    let mut steps = Vec::new();
    for (from, to) in [(4_u32, 16_u32), (1, 16), (16, 4), (16, 1), (64, 4)] {
        for (law, order) in laws {
            let name = format!("{from} to {to}, {}{}", law.name(), order.suffix());
            let load = 1.5 * f64::from(from.max(to)) / f64::from(from);
            let phases = vec![Phase { from: 0.0, slots: from, slow: 1.0 }, Phase { from: 30.0, slots: to, slow: 1.0 }];
            let scenario = Scenario { phases, order, seconds: 75.0, ..BENCH.storm(law, load) };
            steps.push((name, scenario));
        }
    }
    steps
}

/// Other laws, lines that are not first in, first out, batching engines, long answers, a start in a brown-out.
pub(crate) fn groups() -> Vec<Group> {
    let mut groups = Vec::new();
    let mut add = |name: String, of: &dyn Fn(f64) -> Scenario| {
        groups.push(Group { name, scenarios: LOADS.map(of).into() });
    };
    for law in [Law::Narrow(0.1), Law::Narrow(0.3), Law::Erlang4, Law::LogNormal, Law::TwoPhase] {
        for shape in [BENCH, MANY, FEW] {
            add(format!("{}, {}", shape.name(), law.name()), &|load| shape.storm(law, load));
        }
    }
    for order in [Order::Random, Order::Lifo] {
        for (law, shape) in
            [(Law::Fixed, BENCH), (Law::Exponential, BENCH), (Law::Fixed, MANY), (Law::Exponential, MANY)]
        {
            let name = format!("{}, {}{}", shape.name(), law.name(), order.suffix());
            add(name, &|load| Scenario { order, ..shape.storm(law, load) });
        }
    }
    let batch = Shape::slowed(2, 16, 0.4, 4.0);
    for law in [Law::Fixed, Law::Exponential] {
        let name = format!("batching, {}, {}", batch.name(), law.name());
        add(name, &|load| Scenario { batching: true, ..batch.storm(law, load) });
    }
    let model = Shape::slowed(2, 32, 5.0, 4.0);
    for streams in [false, true] {
        let name = format!("long answers, {}{}", model.name(), if streams { ", streamed" } else { "" });
        add(name, &|load| {
            let mut scenario = model.storm(Law::Model, load);
            (scenario.phases[1].from, scenario.phases[2].from) = (60.0, 90.0);
            Scenario { streams, patience: 60.0, seconds: 180.0, ..scenario }
        });
    }
    for law in [Law::Fixed, Law::Exponential] {
        add(format!("{}, {}, starts in a brown-out of 20 s", BENCH.name(), law.name()), &|load| {
            let mut scenario = BENCH.storm(law, 4.0 * load);
            scenario.phases = vec![Phase { from: 0.0, slots: 4, slow: 4.0 }, Phase { from: 20.0, slots: 4, slow: 1.0 }];
            scenario
        });
    }
    groups
}

impl Law {
    /// Its name in a table.
    fn name(self) -> String {
        match self {
            Self::Fixed => "constant".to_owned(),
            Self::Exponential => "exponential".to_owned(),
            Self::Narrow(deviation) => format!("CV {deviation}"),
            Self::Erlang4 => "Erlang-4".to_owned(),
            Self::LogNormal => "lognormal".to_owned(),
            Self::TwoPhase => "two-phase".to_owned(),
            Self::Model => "0.3 to 30 s".to_owned(),
        }
    }
}

impl Order {
    /// What a table adds for it.
    const fn suffix(self) -> &'static str {
        match self {
            Self::Fifo => "",
            Self::Random => ", random order",
            Self::Lifo => ", last in, first out",
        }
    }
}
