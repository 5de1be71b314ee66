//! A limit on requests over time, as the field's interfaces have one: a bucket that fills evenly, and headers that tell
//! what is left in it.

use super::body::{Cut, FleetBody};
use super::errors::refusal;
use super::options::RequestLimit;
use super::request::Route;
use super::server::{Server, Visit, lock};
use super::socket::Resettable;
use http::{HeaderMap, HeaderValue, Request, Response};
use hyper::body::Incoming;
use std::sync::{Arc, Mutex};

/// The bucket of one server, as in the generic cell rate algorithm: all it holds is when it will be full.
#[derive(Debug)]
pub(super) struct Bucket {
    limit: RequestLimit,
    full_at: Mutex<u64>,
}

/// What a request found in the bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    /// Whether there was one left for it.
    pub(super) is_served: bool,
    /// How many are left, and in how many nanoseconds all of them are.
    remaining: u64,
    reset_nanos: u64,
}

impl Bucket {
    pub(super) fn new(limit: RequestLimit) -> Self {
        Self { limit, full_at: Mutex::new(0) }
    }

    /// Takes one, if there is one left.
    pub(super) fn take(&self, now: u64) -> Taken {
        let whole = u64::try_from(self.limit.per.as_nanos()).unwrap_or(u64::MAX).max(1);
        let each = (whole / u64::from(self.limit.requests.max(1))).max(1);
        let mut full_at = lock(&self.full_at);
        let missing = full_at.saturating_sub(now);
        let is_served = missing.saturating_add(each) <= whole;
        let reset_nanos = if is_served { missing + each } else { missing };
        *full_at = now.saturating_add(reset_nanos);
        Taken { is_served, remaining: whole.saturating_sub(reset_nanos) / each, reset_nanos }
    }

    /// Tells what is left, where this server tells that.
    pub(super) fn tell(&self, taken: Taken, headers: &mut HeaderMap) {
        if !self.limit.is_told {
            return;
        }
        headers.insert("x-ratelimit-limit-requests", HeaderValue::from(self.limit.requests));
        headers.insert("x-ratelimit-remaining-requests", HeaderValue::from(taken.remaining));
        let reset = format!("{}ms", taken.reset_nanos.div_ceil(1_000_000));
        if let Ok(reset) = HeaderValue::try_from(reset) {
            headers.insert("x-ratelimit-reset-requests", reset);
        }
    }
}

impl Server {
    /// Answers an inference request, if the limit on them allows it.
    pub(super) async fn infer_within_limit(
        self: &Arc<Self>,
        route: &Route,
        request: Request<Incoming>,
        connection: Arc<Resettable>,
        request_id: &str,
    ) -> Result<Response<FleetBody>, Cut> {
        let Some(bucket) = &self.bucket else { return self.infer(route, request, connection, request_id).await };
        let taken = bucket.take(self.clock.now());
        let mut response = if taken.is_served {
            self.infer(route, request, connection, request_id).await?
        } else {
            let dress = self.present_faults().dress(&self.options.rejection);
            let words = "Rate limit reached for requests.";
            Visit::new(Arc::clone(self), None, request_id).ended(refusal(&dress, words, route.dialect, request_id))
        };
        bucket.tell(taken, response.headers_mut());
        Ok(response)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_bucket_fills_evenly_and_refuses_what_is_not_in_it() {
        let bucket = Bucket::new(RequestLimit { requests: 4, per: Duration::from_nanos(400), is_told: true });
        let left = |taken: Taken| (taken.is_served, taken.remaining, taken.reset_nanos);
        let burst: Vec<_> = (0..5).map(|_| left(bucket.take(1_000))).collect();
        assert_eq!(burst, [(true, 3, 100), (true, 2, 200), (true, 1, 300), (true, 0, 400), (false, 0, 400)]);
        assert_eq!(left(bucket.take(1_099)), (false, 0, 301));
        assert_eq!(left(bucket.take(1_100)), (true, 0, 400));
        assert_eq!(left(bucket.take(9_000)), (true, 3, 100));
        let mut headers = HeaderMap::new();
        bucket.tell(Taken { is_served: true, remaining: 3, reset_nanos: 1_500_001 }, &mut headers);
        assert_eq!(headers["x-ratelimit-reset-requests"], "2ms");
        assert_eq!((headers.len(), &headers["x-ratelimit-remaining-requests"]), (3, &HeaderValue::from(3)));
    }
}
