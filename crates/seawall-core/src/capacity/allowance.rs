//! What an upstream says is left of its limits, before it refuses for them.
//!
//! Many tell with each answer how many requests and tokens they take before a time at which their limit is whole again.
//! What was sent after the answered attempt is not in that number yet, so it is taken off here; and what the limit fills
//! up by in the meantime is added, since most of them are buckets that fill all the time. When nothing is left the
//! deployment is closed until something is: that is the end of the reset where the limit is not told, and sooner where it
//! is.
//!
//! It is a statement and no proof. Resets beyond belief are bounded. Where the limit is not told, one that has nothing in
//! flight is asked once a second all the same; and where such an attempt is served although nothing was left, the
//! statement is not believed for a minute. A refusal with a wait of its own says more, and replaces it.

use crate::time::{Duration, Instant};

/// Limits in the field are counted by the minute. A longer reset is that of a quota of hours or days: a minute later it is
/// asked again, and a refusal tells the rest.
const LONGEST_RESET: Duration = Duration::from_mins(1);
/// As after a refusal without a wait.
const UNSTATED_RESET: Duration = super::UNSTATED_WAIT;
/// How long a statement keeps one closed that has nothing in flight: a wrong one must not stop a server that serves.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// What an answer says is left. Nothing where it says nothing, or nothing that makes sense.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowance {
    /// Of a limit on requests.
    pub requests: Option<Left>,
    /// Of a limit on tokens.
    pub tokens: Option<Left>,
}

impl Allowance {
    /// Whether it says nothing.
    pub const fn is_empty(&self) -> bool {
        self.requests.is_none() && self.tokens.is_none()
    }
}

/// What is left of one limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// How much, the answered request taken off.
    pub remaining: u64,
    /// How much it is when nothing has been asked for.
    pub limit: Option<u64>,
    /// How long until it is that much again.
    pub reset: Option<Duration>,
}

/// What had been sent to a deployment, an attempt included: its answer counts all of that and nothing later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    requests: u64,
    tokens: u64,
}

/// The limits of one deployment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Allowances {
    requests: Meter,
    tokens: Meter,
    /// When something was last sent.
    sent_at: Instant,
}

impl Allowances {
    /// An attempt is sent. `tokens`: what it is thought to take of a limit on them; only asked where there is one.
    pub(super) fn send(&mut self, now: Instant, tokens: impl FnOnce() -> u64) -> Sent {
        self.sent_at = now;
        self.requests.send(now, 1);
        if self.tokens.told.is_some() {
            self.tokens.send(now, tokens());
        }
        Sent { requests: self.requests.sent, tokens: self.tokens.sent }
    }

    /// The answer to the attempt that was sent as `sent` says this.
    pub(super) fn tell(&mut self, now: Instant, sent: Sent, allowance: Allowance) {
        if let Some(left) = allowance.requests {
            self.requests.tell(now, sent.requests, left);
        }
        if let Some(left) = allowance.tokens {
            self.tokens.tell(now, sent.tokens, left);
        }
    }

    /// The attempt that was sent as `sent` was served.
    pub(super) fn serve(&mut self, now: Instant, sent: Sent) {
        self.requests.serve(now, sent.requests);
        self.tokens.serve(now, sent.tokens);
    }

    /// It has refused, and said for how long.
    pub(super) fn forget(&mut self) {
        self.requests.told = None;
        self.tokens.told = None;
    }

    /// From when on there is enough for one attempt more; in the past where there is. `in_flight`: attempts there.
    pub(super) fn opens_at(&self, in_flight: u32) -> Instant {
        let asks_again = if in_flight == 0 { self.sent_at + ASK_AGAIN } else { Instant::MAX };
        self.requests.opens_at(1, asks_again).max(self.tokens.opens_at(self.tokens.usual(), asks_again))
    }
}

/// One limit.
#[derive(Clone, Copy, Debug, Default)]
struct Meter {
    /// Units that were sent, and the attempts that they were sent with.
    sent: u64,
    attempts: u64,
    told: Option<Told>,
    /// The last attempt that was sent although nothing was left, as what had been sent with it.
    against: Option<u64>,
    /// Until when nothing that says "nothing left" is believed.
    doubted_until: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Told {
    left: Left,
    at: Instant,
    until: Instant,
    /// Units sent up to the answered attempt.
    sent: u64,
}

impl Told {
    /// Whether it says that nothing is left until it is reset, and not what fills up until then.
    fn leaves_nothing(&self, now: Instant) -> bool {
        self.left.remaining == 0 && self.left.limit.is_none() && now < self.until
    }
}

impl Meter {
    fn send(&mut self, now: Instant, units: u64) {
        self.sent = self.sent.saturating_add(units);
        self.attempts += 1;
        if self.told.is_some_and(|told| told.leaves_nothing(now)) {
            self.against = Some(self.sent);
        }
    }

    /// Units that an attempt usually takes, at least one.
    fn usual(&self) -> u64 {
        self.sent.checked_div(self.attempts).unwrap_or(1).max(1)
    }

    fn tell(&mut self, now: Instant, sent: u64, left: Left) {
        let is_doubted = left.remaining == 0 && left.limit.is_none() && now < self.doubted_until;
        // An answer that is late says less than one to what was sent after it.
        let is_late = self.told.is_some_and(|told| now < told.until && sent < told.sent);
        if is_doubted || is_late {
            return;
        }
        let until = now + left.reset.unwrap_or(UNSTATED_RESET).min(LONGEST_RESET);
        self.told = Some(Told { left, at: now, until, sent });
    }

    /// What was sent after "nothing left" was told is served: so something was.
    fn serve(&mut self, now: Instant, sent: u64) {
        if self.against == Some(sent) {
            (self.told, self.against) = (None, None);
            self.doubted_until = now + LONGEST_RESET;
        }
    }

    fn opens_at(&self, needed: u64, asks_again: Instant) -> Instant {
        let Some(told) = self.told else { return Instant::ZERO };
        let since = self.sent.saturating_sub(told.sent);
        let missing = since.saturating_add(needed).saturating_sub(told.left.remaining);
        if missing == 0 {
            return Instant::ZERO;
        }
        // It fills up evenly from what is left to all of it.
        let Some(limit) = told.left.limit else { return told.until.min(asks_again) };
        let fills = limit.saturating_sub(told.left.remaining);
        let Some(reset) = told.left.reset.filter(|_| missing <= fills) else { return told.until };
        let nanos = (reset.as_nanos().saturating_mul(u128::from(missing))).div_ceil(u128::from(fills));
        let wait = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        (told.at + wait).min(told.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn requests(remaining: u64, limit: Option<u64>, reset_ms: Option<u64>) -> Allowance {
        let reset = reset_ms.map(Duration::from_millis);
        Allowance { requests: Some(Left { remaining, limit, reset }), tokens: None }
    }

    fn send(allowances: &mut Allowances, count: u32) -> Sent {
        (0..count).map(|_| allowances.send(at(0), || 0)).last().expect("at least one")
    }

    #[test]
    fn what_was_sent_since_is_taken_off() {
        let mut allowances = Allowances::default();
        assert_eq!(allowances.opens_at(0), Instant::ZERO);
        let first = send(&mut allowances, 1);
        send(&mut allowances, 3);
        allowances.tell(at(100), first, requests(5, None, Some(2_000)));
        assert_eq!(allowances.opens_at(4), Instant::ZERO, "two are left");
        send(&mut allowances, 1);
        assert_eq!(allowances.opens_at(5), Instant::ZERO, "one is left");
        let last = send(&mut allowances, 1);
        assert_eq!(allowances.opens_at(6), at(2_100));
        // An earlier answer that comes late says less, a later one says more.
        allowances.tell(at(200), Sent { requests: 0, tokens: 0 }, requests(9, None, Some(2_000)));
        assert_eq!(allowances.opens_at(6), at(2_100));
        allowances.tell(at(300), last, requests(1, None, Some(2_000)));
        assert_eq!(allowances.opens_at(6), Instant::ZERO);
    }

    #[test]
    fn a_limit_that_is_told_fills_up_evenly() {
        let mut allowances = Allowances::default();
        let sent = send(&mut allowances, 1);
        allowances.tell(at(0), sent, requests(0, Some(60), Some(60_000)));
        assert_eq!(allowances.opens_at(3), at(1_000));
        send(&mut allowances, 2);
        assert_eq!(allowances.opens_at(3), at(3_000), "the third one from now");
        // More than it ever holds: when it is full again.
        send(&mut allowances, 100);
        assert_eq!(allowances.opens_at(3), at(60_000));
    }

    #[test]
    fn resets_are_bounded() {
        for (limit, reset_ms, opens) in [
            (None, None, 100),
            (None, Some(0), 0),
            (None, Some(7), 7),
            (None, Some(86_400_000), 60_000),
            (Some(10), Some(86_400_000), 60_000),
            (Some(0), Some(5_000), 5_000),
            (Some(u64::MAX), Some(u64::MAX), 1),
        ] {
            let mut allowances = Allowances::default();
            let sent = send(&mut allowances, 1);
            allowances.tell(at(0), sent, requests(0, limit, reset_ms));
            let opened = allowances.opens_at(1);
            assert_eq!(opened.since(Instant::ZERO).as_millis(), opens, "{limit:?} {reset_ms:?}");
        }
        let mut allowances = Allowances::default();
        let sent = send(&mut allowances, 1);
        allowances.tell(at(0), sent, requests(u64::MAX, Some(3), Some(9)));
        assert_eq!(allowances.opens_at(1), Instant::ZERO);
    }

    #[test]
    fn tokens_are_counted_once_somebody_limits_them() {
        let mut allowances = Allowances::default();
        let sent = allowances.send(at(0), || unreachable!("nobody limits tokens"));
        let tokens = |remaining| Allowance {
            requests: None,
            tokens: Some(Left { remaining, limit: None, reset: Some(Duration::from_secs(9)) }),
        };
        allowances.tell(at(0), sent, tokens(1_000));

        let first = allowances.send(at(0), || 300);
        allowances.send(at(0), || 500);
        // 200 are left, and 400 are usual.
        assert_eq!(allowances.opens_at(3), at(9_000));
        allowances.tell(at(0), first, tokens(900));
        assert_eq!(allowances.opens_at(3), Instant::ZERO, "400 are left");
        allowances.forget();
        assert_eq!(allowances.opens_at(3), Instant::ZERO);
    }

    #[test]
    fn a_statement_that_is_wrong_is_not_believed_for_long() {
        let mut allowances = Allowances::default();
        let sent = send(&mut allowances, 2);
        allowances.tell(at(10), sent, requests(0, None, Some(60_000)));
        allowances.serve(at(10), sent);
        assert_eq!(allowances.opens_at(1), at(60_010), "what was sent before proves nothing");
        assert_eq!(allowances.opens_at(0), at(1_000), "nothing is in flight: it is asked again");
        let again = allowances.send(at(1_000), || 0);
        assert_eq!(allowances.opens_at(1), at(60_010));
        allowances.tell(at(1_100), again, requests(0, None, Some(60_000)));
        allowances.serve(at(1_100), again);
        assert_eq!(allowances.opens_at(1), Instant::ZERO);
        allowances.tell(at(1_200), again, requests(0, None, Some(60_000)));
        assert_eq!(allowances.opens_at(1), Instant::ZERO, "it has said so before");
        allowances.tell(at(61_100), again, requests(0, None, Some(60_000)));
        assert_eq!(allowances.opens_at(1), at(121_100), "a minute later it may be right");
    }
}
