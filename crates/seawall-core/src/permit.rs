//! Law 1: no attempt without a permit.

use crate::id::{AttemptId, DeploymentId, RequestId};

/// The right to make one attempt at one deployment. Only the engine makes one, it cannot be cloned, and the host's
/// dispatch consumes it: so the number of attempts is what the engine counted, in every configuration.
///
/// ```compile_fail
/// fn twice(permit: seawall_core::permit::AttemptPermit) {
///     let copy = permit.clone();
///     drop((permit, copy));
/// }
/// ```
#[derive(Debug, PartialEq, Eq)]
#[must_use = "an attempt that was paid for must be made and its end reported"]
pub struct AttemptPermit {
    request: RequestId,
    attempt: AttemptId,
    deployment: DeploymentId,
    payment: Payment,
    number: u32,
}

/// What paid for an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Payment {
    /// Admission: the first attempt of a request.
    Admission,
    /// The retry budget.
    RetryBudget,
    /// The small bucket for attempts that replace one that never started.
    NotSentBucket,
}

impl Payment {
    /// The label in logs and metrics.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Admission => "admission",
            Self::RetryBudget => "retry_budget",
            Self::NotSentBucket => "not_sent_bucket",
        }
    }
}

impl AttemptPermit {
    pub(crate) const fn mint(
        request: RequestId,
        attempt: AttemptId,
        deployment: DeploymentId,
        payment: Payment,
        number: u32,
    ) -> Self {
        Self { request, attempt, deployment, payment, number }
    }

    /// The request it serves.
    pub const fn request(&self) -> RequestId {
        self.request
    }

    /// The attempt's own id.
    pub const fn attempt(&self) -> AttemptId {
        self.attempt
    }

    /// Where it goes.
    pub const fn deployment(&self) -> DeploymentId {
        self.deployment
    }

    /// What paid for it.
    pub const fn payment(&self) -> Payment {
        self.payment
    }

    /// 1 for the first attempt of the request, 2 for the second.
    pub const fn number(&self) -> u32 {
        self.number
    }
}
