//! How a caller decides whether to come again: a plain rule, or a measured client from the table of profiles.

use crate::calls::Reply;
use crate::random::Stream;
use crate::{Nanos, SECOND};
use seawall_cases::scenario::{Form, Retry};
use seawall_model::profile::{Answer, Decision, Outcome, Profile};
use std::time::Duration;

/// A rule, checked.
#[derive(Clone, Debug)]
pub struct RetryRule {
    profile: Option<&'static Profile>,
    /// 0: without end.
    pub(crate) attempts: u32,
    wait: Nanos,
    wait_most: Nanos,
    doubles: bool,
    obeys_advice: bool,
    on: u8,
}

/// How far one request has come with its rule.
#[derive(Clone, Debug)]
pub enum Progress {
    /// Attempts so far, of a plain rule.
    Rule(u32),
    /// A measured client's own state.
    Client(Box<seawall_model::profile::Call<'static>>),
}

impl Progress {
    /// The number that the headers of an attempt give it; 0: they give none. A plain rule counts.
    pub fn told_attempt(&self, made: u16) -> u16 {
        match self {
            Self::Rule(_) => made,
            Self::Client(call) => call.told_attempt(),
        }
    }
}

const fn bit(form: Form) -> u8 {
    1 << form as u8
}

impl RetryRule {
    /// The rule that a scenario writes; an error names a profile that there is not.
    pub fn new(retry: &Retry) -> Result<Self, String> {
        let profile = match &retry.profile {
            None => None,
            Some(name) => Some(Profile::by_name(name).ok_or_else(|| {
                let names: Vec<&str> = Profile::ALL.iter().map(|profile| profile.name).collect();
                format!("there is no retry profile `{name}`; there are {}", names.join(", "))
            })?),
        };
        Ok(Self {
            profile,
            attempts: retry.attempts,
            wait: retry.wait.nanos,
            wait_most: retry.wait_most.map_or(retry.wait.nanos, |most| most.nanos),
            doubles: retry.doubles,
            obeys_advice: retry.obeys_advice,
            on: retry.on.iter().fold(0, |bits, form| bits | bit(*form)),
        })
    }

    /// The state of a request that has made no attempt yet.
    pub fn begin(&self) -> Progress {
        self.profile.map_or(Progress::Rule(0), |profile| Progress::Client(Box::new(profile.call())))
    }

    /// Whether it is a measured client.
    pub const fn profile(&self) -> Option<&'static Profile> {
        self.profile
    }

    /// After a failed attempt: the wait before the next one, or `None`: it gives up. `elapsed`: since the first.
    pub fn next(&self, progress: &mut Progress, reply: Reply, elapsed: Nanos, random: &mut Stream) -> Option<Nanos> {
        match progress {
            Progress::Client(call) => {
                let texts = Texts::of(reply);
                match call.next(&texts.answer(reply, elapsed), random) {
                    Decision::Stop => None,
                    Decision::RetryAfter { wait, .. } => Some(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX)),
                }
            }
            Progress::Rule(made) => {
                *made += 1;
                let form = reply.form?;
                let told_to_stop = self.obeys_advice && reply.stop;
                let is_spent = self.attempts > 0 && *made >= self.attempts;
                if is_spent || told_to_stop || self.on & bit(form) == 0 {
                    return None;
                }
                if self.obeys_advice && reply.wait_ms > 0 {
                    return Some(u64::from(reply.wait_ms) * 1_000_000);
                }
                let wait = random.between(self.wait, self.wait_most);
                Some(if self.doubles { wait << (*made - 1).min(20) } else { wait })
            }
        }
    }
}

/// The words of an answer's headers, for as long as a client reads them.
struct Texts {
    seconds: Option<String>,
    millis: Option<String>,
}

impl Texts {
    fn of(reply: Reply) -> Self {
        if reply.wait_ms == 0 {
            return Self { seconds: None, millis: None };
        }
        Self { seconds: Some(reply.wait_ms.div_ceil(1000).to_string()), millis: Some(reply.wait_ms.to_string()) }
    }

    fn answer(&self, reply: Reply, elapsed: Nanos) -> Answer<'_> {
        let outcome = match reply.form {
            None => Outcome::Status(200),
            Some(Form::Capacity) => Outcome::Status(429),
            Some(Form::Overloaded | Form::Unavailable) => Outcome::Status(503),
            Some(Form::Error) => Outcome::Status(500),
            Some(Form::ConnectionLost) => Outcome::Reset,
            Some(Form::ConnectionRefused) => Outcome::Refused,
            Some(Form::Timeout) => Outcome::ReadTimeout,
        };
        Answer {
            retry_after: self.seconds.as_deref(),
            retry_after_ms: self.millis.as_deref(),
            should_retry: reply.stop.then_some("false"),
            elapsed: Duration::from_nanos(elapsed),
            unix_seconds: elapsed / SECOND,
            ..Answer::new(outcome)
        }
    }
}
