//! How a request ends: a closed list (law 9).

/// The one ending of a request. The label is safe for metrics and never changes its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// The upstream's answer reached its end.
    Served,
    /// The upstream refused the request as the client's own mistake; its words are passed on.
    ClientError,
    /// The upstream's answer broke off after its first byte had gone to the client.
    Truncated,
    /// The upstream's answer reported an error of its own after its first byte had gone to the client.
    StreamError,
    /// The client left before its answer was complete.
    ClientGone,
    /// No key, a wrong key, or several different keys.
    Unauthenticated,
    /// The model does not exist, or this key may not use it.
    ModelNotFound,
    /// The request cannot be understood: path, method, header or body.
    InvalidRequest,
    /// The body is larger than the configured limit.
    TooLarge,
    /// The body did not arrive in time.
    SlowUpload,
    /// The process is at its bound of buffered bytes or connections.
    MemoryFull,
    /// The process is going away.
    Draining,
    /// The caller's own deadline passed, or cannot be met.
    DeadlineUnmeetable,
    /// Every deployment is busy and the wait would be longer than the request may wait.
    CapacityExhausted,
    /// The model has no deployment that this tenant may use and that can be tried.
    NoHealthyDeployment,
    /// The same request is under way, and its answer cannot be shared any more.
    DuplicateInFlight,
    /// A repeat of a request that failed at an upstream, which neither its budget nor the bound on its attempts allows.
    RetryBudgetExhausted,
    /// The upstream failed and no second attempt was made.
    UpstreamError,
    /// The upstream was silent for too long and no second attempt was made.
    UpstreamTimeout,
    /// The upstream failed, and so did the second attempt.
    UpstreamErrorRetried,
    /// The upstream does not accept the credential configured for it.
    UpstreamAuth,
}

impl Outcome {
    /// Every outcome, for tables and metrics.
    pub const ALL: [Self; 21] = [
        Self::Served,
        Self::ClientError,
        Self::Truncated,
        Self::StreamError,
        Self::ClientGone,
        Self::Unauthenticated,
        Self::ModelNotFound,
        Self::InvalidRequest,
        Self::TooLarge,
        Self::SlowUpload,
        Self::MemoryFull,
        Self::Draining,
        Self::DeadlineUnmeetable,
        Self::CapacityExhausted,
        Self::DuplicateInFlight,
        Self::RetryBudgetExhausted,
        Self::NoHealthyDeployment,
        Self::UpstreamError,
        Self::UpstreamTimeout,
        Self::UpstreamErrorRetried,
        Self::UpstreamAuth,
    ];

    /// The label in metrics, logs and `x-seawall-outcome`.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Served => "served",
            Self::ClientError => "client_error",
            Self::Truncated => "truncated",
            Self::StreamError => "stream_error",
            Self::ClientGone => "client_gone",
            Self::Unauthenticated => "unauthenticated",
            Self::ModelNotFound => "model_not_found",
            Self::InvalidRequest => "invalid_request",
            Self::TooLarge => "too_large",
            Self::SlowUpload => "slow_upload",
            Self::MemoryFull => "memory_full",
            Self::Draining => "draining",
            Self::DeadlineUnmeetable => "deadline_unmeetable",
            Self::CapacityExhausted => "capacity_exhausted",
            Self::DuplicateInFlight => "duplicate_in_flight",
            Self::RetryBudgetExhausted => "retry_budget_exhausted",
            Self::NoHealthyDeployment => "no_healthy_deployment",
            Self::UpstreamError => "upstream_error",
            Self::UpstreamTimeout => "upstream_timeout",
            Self::UpstreamErrorRetried => "upstream_error_retried",
            Self::UpstreamAuth => "upstream_auth",
        }
    }

    /// Whether the upstream failed at it in a way that is likely to pass, and another attempt might be served.
    pub const fn is_failure_that_may_pass(self) -> bool {
        matches!(self, Self::UpstreamError | Self::UpstreamTimeout | Self::UpstreamAuth)
    }

    /// Who caused it: an alert on our own failures counts [`Cause::Service`] and [`Cause::Upstream`] only.
    pub const fn cause(self) -> Cause {
        match self {
            Self::Served => Cause::None,
            Self::ClientError
            | Self::ClientGone
            | Self::Unauthenticated
            | Self::ModelNotFound
            | Self::InvalidRequest
            | Self::TooLarge
            | Self::SlowUpload
            | Self::DuplicateInFlight
            | Self::RetryBudgetExhausted
            | Self::DeadlineUnmeetable => Cause::Caller,
            Self::MemoryFull | Self::Draining | Self::CapacityExhausted => Cause::Service,
            Self::Truncated
            | Self::StreamError
            | Self::NoHealthyDeployment
            | Self::UpstreamError
            | Self::UpstreamTimeout
            | Self::UpstreamErrorRetried
            | Self::UpstreamAuth => Cause::Upstream,
        }
    }
}

/// Who caused an ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// Nothing went wrong.
    None,
    /// The caller: its key, its request, its deadline, or it left.
    Caller,
    /// This service is out of capacity, or going away.
    Service,
    /// An upstream failed.
    Upstream,
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;

    #[test]
    fn labels_are_distinct() {
        let labels: BTreeSet<_> = Outcome::ALL.iter().map(|outcome| outcome.label()).collect();
        assert_eq!(labels.len(), Outcome::ALL.len());
    }
}
