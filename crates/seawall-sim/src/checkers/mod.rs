//! What must hold in every run, of any scenario, with and without Seawall; looked for all the time. One invariant a file.
//!
//! A checker sees what happens, or how things stand, and tells what must not be. It changes nothing. What it tells ends
//! up in [`crate::World::violations`].

mod bounded_memory;
mod class_order;
mod one_outcome;
mod permits;
mod work_accounts;
mod work_conservation;

pub use bounded_memory::UnderWay;
pub(crate) use bounded_memory::{drained, memory, process_memory};
pub(crate) use class_order::{Boundaries, ClassOrder, Lane, Turn};
pub(crate) use one_outcome::{count, dropped, second_answer, unknown_end};
pub(crate) use permits::Permits;
pub(crate) use work_accounts::work_accounts;
pub(crate) use work_conservation::work_conservation;

use crate::Nanos;
use crate::calls::ActorId;
use seawall_cases::scenario::Clock;

/// A broken run may show the same a million times.
const KEPT: usize = 20;

/// What was seen that must never be seen.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    names: Vec<String>,
    seen: Vec<String>,
}

impl Findings {
    /// The names of the actors, in their order.
    pub(crate) fn name(&mut self, names: Vec<String>) {
        self.names = names;
    }

    /// Keeps what was seen of an actor, unless enough was seen before.
    pub(crate) fn report(&mut self, now: Nanos, actor: ActorId, what: &str) {
        if self.seen.len() >= KEPT {
            return;
        }
        let number = actor.index().to_string();
        let name = self.names.get(actor.index()).unwrap_or(&number);
        let what = format!("`{name}`: {what}");
        self.report_world(now, &what);
    }

    /// Keeps what was seen of nobody in particular.
    pub(crate) fn report_world(&mut self, now: Nanos, what: &str) {
        if self.seen.len() < KEPT {
            let at = Clock { nanos: now - now % crate::SECOND };
            self.seen.push(format!("{at} {what}"));
        }
    }

    /// The same, where something was seen.
    pub(crate) fn report_some(&mut self, now: Nanos, actor: ActorId, what: Option<String>) {
        if let Some(what) = what {
            self.report(now, actor, &what);
        }
    }

    pub(crate) fn seen(&self) -> &[String] {
        &self.seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_says_when_of_whom_and_what_and_no_more_than_twenty_are_kept() {
        let mut findings = Findings::default();
        findings.name(vec!["router".to_owned()]);
        for second in 0..30 {
            findings.report(36_000 * crate::SECOND + second * crate::SECOND + 7, ActorId(0), "it broke");
        }
        findings.report_some(0, ActorId(0), None);
        assert_eq!(findings.seen().len(), 20);
        assert_eq!(findings.seen()[1], "10:00:01 `router`: it broke");
    }
}
