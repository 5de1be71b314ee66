//! A token that is kept fresh in the background.
//!
//! No request waits for a token service: [`TokenCache::current`] reads what is there. A task fetches the first token at
//! the start, the next one when 80% of a token's life is over (plus or minus 5%, so that replicas and deployments do
//! not ask together), and after a failure again with a doubling, capped, jittered wait (equal jitter: half of it is
//! fixed). Meanwhile the last token serves until its very end, since an upstream that accepts it is the better judge.
//!
//! Edges: a token service that answers from its cache gives tokens with ever less life, so there is a shortest wait
//! between two fetches. Life is counted on the monotonic clock from when the request was sent; where that clock stood
//! still (a suspended machine) or a token was revoked, the upstream's 401 asks for a new one, at most once in 30 s.

use super::NoToken;
use super::fetch::{FetchError, Given, TokenService};
use crate::clock::Clock;
use arc_swap::ArcSwapOption;
use futures_util::FutureExt as _;
use http::HeaderValue;
use seawall_core::random::Random;
use seawall_core::time::Instant;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

/// A longer life than this is not relied on: services give at most about a day.
const LONGEST_LIFE: Duration = Duration::from_hours(24);

/// The times of the token cache. The defaults are for production; tests shorten them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// One exchange with a token service, connection included.
    pub exchange: Duration,
    /// The shortest wait between a token and its refresh, unless it ends before that.
    pub shortest_refresh: Duration,
    /// The wait after a first failure, before jitter; it doubles with each further one.
    pub first_retry: Duration,
    /// The longest wait after a failure.
    pub longest_retry: Duration,
    /// Refusals by upstreams ask for a new token at most once in this time.
    pub between_refusals: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            exchange: Duration::from_secs(5),
            shortest_refresh: Duration::from_secs(5),
            first_retry: Duration::from_secs(1),
            longest_retry: Duration::from_mins(1),
            between_refusals: Duration::from_secs(30),
        }
    }
}

impl Timing {
    /// How long after it was asked for a token with `life` is replaced.
    fn refresh(&self, life: Duration, random: &mut Random) -> Duration {
        let life = life.min(LONGEST_LIFE);
        let drawn = random.span(life * 3 / 4, life * 17 / 20);
        drawn.max(self.shortest_refresh.min(life))
    }

    /// The wait after the `failures`th failure in a row; no shorter than what the service `stated`, within the cap.
    fn retry(&self, failures: u32, stated: Option<Duration>, random: &mut Random) -> Duration {
        let doubled = self.first_retry.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1)));
        let capped = doubled.min(self.longest_retry);
        random.span(capped / 2, capped).max(stated.unwrap_or_default().min(self.longest_retry))
    }
}

/// How the fetching of one token goes. For status pages, readiness and tests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenStatus {
    /// Tokens had so far.
    pub fetched: u64,
    /// Failures so far.
    pub failed: u64,
    /// When the last token ends.
    pub expires: Option<Instant>,
    /// Why the last try failed; `None` after a success. Holds no secret.
    pub failure: Option<Arc<str>>,
}

#[derive(Debug)]
struct Token {
    header: HeaderValue,
    expires: Instant,
}

/// The token of one credential, and the means to refresh it.
#[derive(Debug)]
pub(super) struct TokenCache {
    service: TokenService,
    clock: Clock,
    timing: Timing,
    token: ArcSwapOption<Token>,
    status: watch::Sender<TokenStatus>,
    refused: Notify,
    last_refusal: Mutex<Option<Instant>>,
}

impl TokenCache {
    /// A cache without a token; [`Self::keep_fresh`] fills it.
    pub(super) fn new(service: TokenService, clock: Clock, timing: Timing) -> Self {
        Self {
            service,
            clock,
            timing,
            token: ArcSwapOption::empty(),
            status: watch::Sender::default(),
            refused: Notify::new(),
            last_refusal: Mutex::default(),
        }
    }

    /// The token's header value, unless there is none yet or it has ended.
    pub(super) fn current(&self) -> Result<HeaderValue, NoToken> {
        let token = self.token.load();
        match &*token {
            Some(token) if token.expires > self.clock.now() => Ok(token.header.clone()),
            other => Err(NoToken {
                service: self.service.name().to_owned(),
                expired: other.is_some(),
                failure: self.status.borrow().failure.clone(),
            }),
        }
    }

    /// How the fetching goes.
    pub(super) fn status(&self) -> watch::Receiver<TokenStatus> {
        self.status.subscribe()
    }

    /// An upstream refused the token: asks for a new one, unless that was done a moment ago.
    pub(super) fn refused(&self) {
        let now = self.clock.now();
        let mut last = self.last_refusal.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_none_or(|last| now.since(last) >= self.timing.between_refusals) {
            *last = Some(now);
            tracing::warn!(service = self.service.name(), "an upstream refused the token; asking for a new one");
            self.refused.notify_one();
        }
    }

    /// Fetches and refreshes until `stop`.
    pub(super) async fn keep_fresh(self: Arc<Self>, mut random: Random, stop: CancellationToken) {
        let mut failures = 0;
        loop {
            let asked = self.clock.now();
            let result = tokio::select! {
                () = stop.cancelled() => return,
                result = self.service.fetch(self.timing.exchange) => result,
            };
            let next = match result {
                Ok(given) => {
                    failures = 0;
                    let life = given.life;
                    self.keep(given, asked);
                    // A refusal that came meanwhile was about the token before this one.
                    self.refused.notified().now_or_never();
                    asked + self.timing.refresh(life, &mut random)
                }
                Err(error) => {
                    failures = u32::saturating_add(failures, 1);
                    let wait = self.timing.retry(failures, error.retry_after(), &mut random);
                    self.note_failure(&error, wait);
                    self.clock.now() + wait
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep_until(self.clock.to_tokio(next)) => {}
                () = self.refused.notified() => {}
            }
        }
    }

    fn keep(&self, given: Given, asked: Instant) {
        let expires = asked + given.life;
        self.token.store(Some(Arc::new(Token { header: given.header, expires })));
        let life_seconds = given.life.as_secs();
        tracing::info!(service = self.service.name(), life_seconds, "got a token");
        self.status.send_modify(|status| {
            status.fetched += 1;
            status.expires = Some(expires);
            status.failure = None;
        });
    }

    fn note_failure(&self, error: &FetchError, wait: Duration) {
        let valid_for =
            self.token.load().as_ref().map_or(Duration::ZERO, |token| token.expires.since(self.clock.now()));
        tracing::warn!(
            service = self.service.name(),
            %error,
            retry_in_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
            token_valid_for_seconds = valid_for.as_secs(),
            "got no token"
        );
        self.status.send_modify(|status| {
            status.failed += 1;
            status.failure = Some(error.to_string().into());
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::IdentityEnvironment;
    use super::*;
    use crate::upstream::tls::Connectors;

    const HOUR: Duration = Duration::from_hours(1);

    #[test]
    fn refusals_ask_for_a_new_token_at_most_once_in_their_time() {
        let environment = IdentityEnvironment::default();
        let clock = Clock::start();
        let service = TokenService::managed_identity(None, &environment, &Connectors::new(), clock).unwrap();
        let mut cache = TokenCache::new(service, clock, Timing::default());
        let asks = |cache: &TokenCache| {
            cache.refused();
            cache.refused.notified().now_or_never().is_some()
        };
        assert!(asks(&cache));
        assert!(!asks(&cache));
        cache.timing.between_refusals = Duration::ZERO;
        assert!(asks(&cache));
    }

    #[test]
    fn refreshes_around_four_fifths_of_a_life() {
        let mut random = Random::new(1);
        let drawn: Vec<Duration> = (0..200).map(|_| Timing::default().refresh(HOUR, &mut random)).collect();
        assert!(drawn.iter().all(|wait| (HOUR * 3 / 4..=HOUR * 17 / 20).contains(wait)));
        let (first, last) = (drawn.iter().min().unwrap(), drawn.iter().max().unwrap());
        assert!(*last > *first + HOUR / 12, "the draws are spread: {first:?} to {last:?}");
    }

    #[test]
    fn a_token_with_little_life_left_is_not_asked_for_all_the_time() {
        let mut random = Random::new(1);
        let timing = Timing::default();
        assert_eq!(timing.refresh(Duration::from_secs(2), &mut random), Duration::from_secs(2));
        assert_eq!(timing.refresh(Duration::from_secs(6), &mut random), Duration::from_secs(5));
        assert!(timing.refresh(Duration::MAX, &mut random) > HOUR);
    }

    #[test]
    fn the_wait_after_failures_doubles_to_its_cap_and_heeds_the_service() {
        let mut random = Random::new(1);
        let timing = Timing::default();
        for (failures, seconds) in [(1, 1), (2, 2), (4, 8), (7, 60), (u32::MAX, 60)] {
            let (low, high) = (Duration::from_millis(seconds * 500), Duration::from_secs(seconds));
            assert!((low..=high).contains(&timing.retry(failures, None, &mut random)), "{failures}");
        }
        assert_eq!(timing.retry(1, Some(Duration::from_secs(20)), &mut random), Duration::from_secs(20));
        assert_eq!(timing.retry(1, Some(HOUR), &mut random), timing.longest_retry);
    }
}
