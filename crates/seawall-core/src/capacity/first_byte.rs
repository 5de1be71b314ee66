//! `first_byte`: for answers that stream, the number of answers that have begun and not ended is the slots in use.
//!
//! While nearly all that is in flight is being answered and work waits, each further answer that begins raises the window
//! by one: it doubles with each round of first bytes, however long the answers are. Once a good part waits upstream the
//! window comes down to a quarter above the most answers of late. As long as answers end at once after their first byte
//! they do not stream, and `likelihood` decides.

use super::likelihood::Likelihood;
use super::pace::{Roof, seconds, whole};
use super::{Discovery, Ending, Hints, Learned, Moment};
use crate::id::AttemptId;
use crate::time::Instant;
use alloc::collections::BTreeMap;

const START: f64 = 8.0;
/// Completions that tell whether answers stream, and over which the most answers are taken.
const RECENT: u32 = 16;
/// Above this share of those in flight nearly all are being answered; below the next one a good part waits.
const NEARLY_ALL: f64 = 0.8;
const GOOD_PART: f64 = 0.7;
/// An answer streams if it takes this share of its residence.
const STREAMS: f64 = 0.1;

/// See the module.
#[derive(Debug)]
pub(super) struct FirstByte {
    window: f64,
    flying: BTreeMap<AttemptId, (Instant, Option<Instant>)>,
    answering: u32,
    /// The most that were being answered in this run of completions and in the one before.
    most: [u32; 2],
    completed: u32,
    /// Streamed answers of late less others, between plus and minus [`RECENT`].
    streams: i64,
    roof: Roof,
    others: Likelihood,
}

impl FirstByte {
    pub(super) fn new(hints: Hints) -> Self {
        Self {
            window: START,
            flying: BTreeMap::new(),
            answering: 0,
            most: [0; 2],
            completed: 0,
            streams: 0,
            roof: Roof::default(),
            others: Likelihood::new(hints),
        }
    }

    const fn decides(&self) -> bool {
        self.streams > 4
    }

    /// A run of completions is over: down to what was answered in it, where a good part waited.
    fn run_over(&mut self, beside: f64) {
        let most = f64::from(self.most[0].max(self.most[1]));
        if most < GOOD_PART * beside && self.window > 1.25 * most + 2.0 {
            self.window = 1.25 * most + 1.0;
        }
        self.most = [self.answering, self.most[0]];
        self.completed = 0;
    }
}

impl Discovery for FirstByte {
    fn started(&mut self, moment: Moment, attempt: AttemptId) {
        self.flying.insert(attempt, (moment.now, None));
        self.others.started(moment, attempt);
    }

    fn first_byte(&mut self, moment: Moment, attempt: AttemptId) {
        if let Some((_, first)) = self.flying.get_mut(&attempt)
            && first.is_none()
        {
            *first = Some(moment.now);
            self.answering += 1;
            self.most[0] = self.most[0].max(self.answering);
            let in_flight = f64::from(moment.in_flight);
            let full = in_flight >= f64::from(whole(self.window.min(self.roof.at(moment.now))));
            if moment.waiting && full && f64::from(self.answering) >= NEARLY_ALL * in_flight {
                self.window = (self.window + 1.0).min(self.roof.at(moment.now));
            }
        }
    }

    fn ended(&mut self, moment: Moment, attempt: AttemptId, how: Ending) {
        self.others.ended(moment, attempt, how);
        let Some((sent, first)) = self.flying.remove(&attempt) else { return };
        self.answering -= u32::from(first.is_some());
        match how {
            Ending::Completed => {
                self.roof.answer(moment.now, sent, moment.waiting);
                let answer = first.map_or(0.0, |first| seconds(moment.now.since(first)));
                let streamed = answer > STREAMS * seconds(moment.now.since(sent));
                let most = i64::from(RECENT);
                self.streams = (self.streams + if streamed { 1 } else { -1 }).clamp(-most, most);
                self.completed += 1;
                if self.completed >= RECENT.max(whole(self.window) / 2) {
                    self.run_over(f64::from(moment.in_flight) + 1.0);
                }
            }
            Ending::Throttled => self.window = self.window.min(self.roof.refuse(moment.now, moment.in_flight)),
            Ending::Failed | Ending::Abandoned => {}
        }
    }

    fn limit(&self, now: Instant) -> Option<u32> {
        if self.decides() { Some(whole(self.window.min(self.roof.at(now)))) } else { self.others.limit(now) }
    }

    fn rises_at(&self, now: Instant) -> Option<Instant> {
        self.roof.lifts(now)
    }

    fn learned(&self) -> Option<Learned> {
        if self.decides() {
            return Some(Learned { window: whole(self.window), is_proven: true });
        }
        self.others.learned()
    }

    fn start_from(&mut self, learned: Learned) {
        self.window = f64::from(learned.window);
        self.others.start_from(learned);
    }
}
