//! What the end of an attempt means: for health, for capacity, for a second attempt, for the client. One table.

use crate::time::Duration;

/// How an attempt ended, as the host saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptEnd {
    /// The answer was relayed to its end.
    Completed,
    /// The upstream refused the request as the client's mistake (4xx other than the ones below). Nothing was relayed
    /// yet: the host passes the upstream's words on.
    ClientFault,
    /// The same, where a model with a longer context might have answered it.
    ContextExceeded,
    /// The upstream is at its capacity or over a rate limit, in whatever form it says so.
    Throttled {
        /// The wait it stated.
        wait: Option<Duration>,
    },
    /// The upstream does not accept our credential.
    CredentialRefused,
    /// Not a byte was sent: refused, unreachable, no name, TLS failed, or no connection could be had.
    NotSent,
    /// A reused connection broke before a byte of the answer: most likely the upstream had just closed it.
    StaleConnection,
    /// A failure before the first byte to the client: a 5xx answer, a broken connection, an answer that is no answer.
    Failed,
    /// Silence for longer than the first-byte timeout.
    TimedOut,
    /// The answer broke off after its first byte had gone to the client.
    Truncated,
    /// The answer reported an error after its first byte had gone to the client.
    StreamError,
    /// The caller's own deadline passed first.
    DeadlinePassed,
    /// The client left first.
    ClientGone,
}

/// What an end says about the deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HealthEffect {
    /// It works.
    Success,
    /// It does not.
    Failure,
    /// It says nothing about health.
    Neutral,
}

/// Whether another attempt may be made, and what would pay for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeatability {
    /// Never: it is over, or bytes went out.
    Never,
    /// It never started: the small bucket pays.
    NeverStarted,
    /// It may have started; inference can be repeated safely: the retry budget pays.
    Repeatable,
}

impl AttemptEnd {
    /// What this end says about the deployment. Overload, a client's mistake and a caller's own deadline say nothing.
    pub const fn health(self) -> HealthEffect {
        match self {
            Self::Completed => HealthEffect::Success,
            Self::CredentialRefused
            | Self::NotSent
            | Self::Failed
            | Self::TimedOut
            | Self::Truncated
            | Self::StreamError => HealthEffect::Failure,
            Self::ClientFault
            | Self::ContextExceeded
            | Self::Throttled { .. }
            | Self::StaleConnection
            | Self::DeadlinePassed
            | Self::ClientGone => HealthEffect::Neutral,
        }
    }

    /// Whether another attempt may be made after this end.
    pub const fn repeatability(self) -> Repeatability {
        match self {
            Self::Throttled { .. } | Self::NotSent | Self::StaleConnection => Repeatability::NeverStarted,
            Self::CredentialRefused | Self::Failed | Self::TimedOut => Repeatability::Repeatable,
            Self::Completed
            | Self::ClientFault
            | Self::ContextExceeded
            | Self::Truncated
            | Self::StreamError
            | Self::DeadlinePassed
            | Self::ClientGone => Repeatability::Never,
        }
    }

    /// The label in logs and metrics.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::ClientFault => "client_fault",
            Self::ContextExceeded => "context_exceeded",
            Self::Throttled { .. } => "throttled",
            Self::CredentialRefused => "credential_refused",
            Self::NotSent => "not_sent",
            Self::StaleConnection => "stale_connection",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::Truncated => "truncated",
            Self::StreamError => "stream_error",
            Self::DeadlinePassed => "deadline_passed",
            Self::ClientGone => "client_gone",
        }
    }
}
