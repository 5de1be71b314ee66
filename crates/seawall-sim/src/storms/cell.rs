//! The axes of the set, and its cells.

use super::shape::{SHAPES, Shape};
use crate::{Nanos, SECOND};
use seawall_core::capacity;
use seawall_core::protection::Protection;
use std::fmt;

/// How long one request takes in a slot, around the shape's mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// Always the mean.
    Fixed,
    /// Exponential.
    Exponential,
    /// Lognormal, with a standard deviation of its logarithm of 1.
    Lognormal,
    /// The sum of four exponential parts: a coefficient of variation of 0.5.
    Erlang,
    /// Lognormal with a coefficient of variation of 0.1.
    Narrow,
    /// Lognormal, with a standard deviation of its logarithm of 1.2: a few take very long.
    HeavyTail,
}

/// What the servers do with what they cannot do at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storm {
    /// Two waiting places for each slot; more is refused at once, and who leaves gives back slot and place.
    A,
    /// They queue without bound and work on for those who have left; clients give an attempt half of their patience.
    B,
}

/// Arrivals of new requests, in percent of the capacity of well servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load(pub u32);

/// Who sends the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clients {
    /// The OpenAI SDK for Python.
    Sdk,
    /// Three retries at once.
    Immediate,
    /// Two nested loops of seven attempts at once.
    SevenBySeven,
    /// The Vercel AI SDK.
    Vercel,
    /// Half SDK, a fifth immediate, a tenth seven by seven, a fifth Vercel.
    Mixed,
}

/// How long a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// One trouble, in a run as long as the shape says.
    Short,
    /// Ten minutes with troubles of 30, 60, 120 and 30 s.
    TenMinutes,
    /// One trouble when the shape says, and the last request is sent at this time.
    SentUntil(Nanos),
}

/// What stands between clients and servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Router {
    /// A naive router: each attempt to a server at random.
    Naive,
    /// Seawall, which is not told the slots and finds them with the method of this name, one of
    /// [`seawall_core::capacity::REGISTRY`].
    Seawall(&'static str),
    /// Seawall with the default method, and without this protection.
    Without(Protection),
    /// Seawall, which is told the slots.
    Told,
    /// Seawall, which is told twice the slots.
    ToldTwice,
}

/// The laws.
pub const LAWS: [Law; 6] = [Law::Fixed, Law::Exponential, Law::Lognormal, Law::Erlang, Law::Narrow, Law::HeavyTail];
/// The loads.
pub const LOADS: [Load; 6] = [Load(50), Load(80), Load(95), Load(120), Load(200), Load(1000)];
/// The clients.
pub const CLIENTS: [Clients; 5] =
    [Clients::Sdk, Clients::Immediate, Clients::SevenBySeven, Clients::Vercel, Clients::Mixed];

/// One cell: everything but the router and the seed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// The servers.
    pub shape: &'static Shape,
    /// Their service.
    pub law: Law,
    /// What they do with what they cannot do at once.
    pub storm: Storm,
    /// Arrivals.
    pub load: Load,
    /// Who sends them.
    pub clients: Clients,
    /// How long.
    pub length: Length,
}

impl fmt::Display for Law {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Fixed => "fixed",
            Self::Exponential => "exponential",
            Self::Lognormal => "lognormal",
            Self::Erlang => "erlang-4",
            Self::Narrow => "cv-0.1",
            Self::HeavyTail => "heavy-tail",
        })
    }
}

impl Law {
    /// Standard deviation of the logarithm, and exponential parts where it is made of some.
    pub(super) const fn parameters(self) -> (f64, Option<u32>) {
        match self {
            Self::Fixed => (0.0, None),
            Self::Exponential => (0.0, Some(1)),
            Self::Lognormal => (1.0, None),
            Self::Erlang => (0.0, Some(4)),
            // The square root of ln(1 + 0.1 * 0.1).
            Self::Narrow => (0.099_751_345, None),
            Self::HeavyTail => (1.2, None),
        }
    }
}

impl fmt::Display for Storm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::A => "A",
            Self::B => "B",
        })
    }
}

impl Load {
    /// As a multiple of the capacity.
    pub fn part(self) -> f64 {
        f64::from(self.0) / 100.0
    }
}

impl fmt::Display for Load {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.part().to_string())
    }
}

impl fmt::Display for Clients {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Sdk => "sdk",
            Self::Immediate => "immediate",
            Self::SevenBySeven => "7x7",
            Self::Vercel => "vercel",
            Self::Mixed => "mixed",
        })
    }
}

impl Default for Router {
    /// Seawall with the default method.
    fn default() -> Self {
        Self::Seawall(capacity::REGISTRY[0].name)
    }
}

impl fmt::Display for Router {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Naive => formatter.pad("naive"),
            Self::Seawall(method) => formatter.pad(&format!("seawall {method}")),
            Self::Without(protection) => formatter.pad(&format!("without {}", protection.name())),
            Self::Told => formatter.pad("told"),
            Self::ToldTwice => formatter.pad("told-twice"),
        }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { shape, law, storm, load, clients, length } = self;
        write!(formatter, "{}/{law}/{storm}/{load}/{clients}", shape.name)?;
        match length {
            Length::Short => Ok(()),
            Length::TenMinutes => formatter.write_str("/10m"),
            Length::SentUntil(until) => write!(formatter, "/{}ms", until / (SECOND / 1000)),
        }
    }
}

impl Cell {
    /// Every cell of a length, in order.
    pub fn all(length: Length) -> impl Iterator<Item = Self> {
        let served = SHAPES.iter().flat_map(|shape| shape.laws.iter().map(move |law| (shape, *law)));
        let stormed = served.flat_map(|(shape, law)| [Storm::A, Storm::B].map(|storm| (shape, law, storm)));
        let loaded = stormed.flat_map(|(shape, law, storm)| LOADS.map(|load| (shape, law, storm, load)));
        loaded.flat_map(move |(shape, law, storm, load)| {
            CLIENTS.map(|clients| Self { shape, law, storm, load, clients, length })
        })
    }
}
