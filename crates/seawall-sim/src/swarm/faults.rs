//! What goes wrong in a random world, for how long, and when it is lifted.
//!
//! Nothing lasts longer than half a minute and a server has one fault at the most: a deployment that has been out for long
//! is rightly left alone for longer than a world may take to recover.

use super::dice::Dice;
use super::topology::{Server, ServerKind, Topology};
use crate::{Nanos, SECOND};
use seawall_cases::scenario::Clock;
use std::fmt::Write;

/// When the first fault may begin, and the last one, after the start of the run.
const FIRST_S: u32 = 40;
const LAST_S: u32 = 90;
const LONGEST_S: u32 = 30;

/// The faults of a world.
#[derive(Debug)]
pub(super) struct Faults {
    /// The sections of its scenario file.
    pub(super) text: String,
    /// The same in a few words.
    pub(super) words: String,
    /// When the last one is lifted.
    pub(super) lifted: Nanos,
}

/// What befalls somebody, and what lifts it again.
struct Fault {
    actor: String,
    begins: String,
    ends: Option<String>,
}

impl Faults {
    pub(super) fn draw(start: Nanos, topology: &Topology, dice: &mut Dice) -> Self {
        let mut built = Self { text: String::new(), words: String::new(), lifted: start };
        let mut hit: Vec<String> = Vec::new();
        for number in 0..dice.whole(1, 4) {
            let fault = draw(topology, dice);
            if hit.contains(&fault.actor) {
                continue;
            }
            hit.push(fault.actor.clone());
            let begins = start + Nanos::from(dice.whole(FIRST_S, LAST_S)) * SECOND;
            let ends = begins + Nanos::from(dice.whole(3, LONGEST_S)) * SECOND;
            built.add(&format!("fault-{number}"), begins, &fault.actor, &fault.begins);
            let comma = if number == 0 { "" } else { ", " };
            let _ = write!(built.words, "{comma}{} {} at {}", fault.actor, fault.begins, Clock { nanos: begins });
            if let Some(change) = &fault.ends {
                built.add(&format!("end-{number}"), ends, &fault.actor, change);
                let _ = write!(built.words, " for {} s", (ends - begins) / SECOND);
            }
            built.lifted = built.lifted.max(ends);
        }
        built
    }

    fn add(&mut self, name: &str, at: Nanos, actor: &str, change: &str) {
        let at = Clock { nanos: at };
        let _ = write!(
            self.text,
            "[[event]]\nname = \"{name}\"\nat = \"{at}\"\nactor = \"{actor}\"\nchange = {{ {change} }}\n"
        );
    }
}

fn draw(topology: &Topology, dice: &mut Dice) -> Fault {
    let of = |actor: &str, begins: String, ends: &str| Fault {
        actor: actor.to_owned(),
        begins,
        ends: (!ends.is_empty()).then(|| ends.to_owned()),
    };
    match dice.whole(0, 5) {
        0 if !topology.links.is_empty() => {
            let link = &topology.links[dice.whole(0, count(topology.links.len()) - 1) as usize];
            if dice.chance(0.5) {
                return of(link, format!("loss = {:.2}", dice.real(0.05, 0.6)), "loss = 0.0");
            }
            of(link, format!("delay = \"{}ms\"", dice.whole(500, 3_000)), "delay = \"10ms\"")
        }
        1 => {
            let name = &topology.populations[dice.whole(0, count(topology.populations.len()) - 1) as usize];
            of(name, format!("rate_factor = {:.2}", dice.real(1.5, 5.0)), "rate_factor = 1.0")
        }
        // What was restarted comes back by itself, within the time that a fault takes.
        2 => of("router", format!("restart = {:.2}", dice.real(0.3, 1.0)), ""),
        _ => {
            let server = &topology.servers[dice.whole(0, count(topology.servers.len()) - 1) as usize];
            at_server(server, dice)
        }
    }
}

fn at_server(server: &Server, dice: &mut Dice) -> Fault {
    let actor = server.name.clone();
    let (begins, ends) = match (dice.whole(0, 3), server.kind) {
        (0, ServerKind::Engine) => ("fault = \"errors\"".to_owned(), "fault = \"none\""),
        (1, ServerKind::Engine) => ("fault = \"silent\"".to_owned(), "fault = \"none\""),
        (2, _) => (format!("capacity_factor = {:.2}", dice.real(0.1, 0.7)), "capacity_factor = 1.0"),
        _ => ("down = true".to_owned(), "down = false"),
    };
    Fault { actor, begins, ends: Some(ends.to_owned()) }
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
