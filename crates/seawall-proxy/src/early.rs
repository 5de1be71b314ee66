//! Refusals from before the engine knows a request.

use http::StatusCode;
use seawall_core::advice::{self, Form};
use seawall_core::outcome::Outcome;
use seawall_core::random::Random;
use std::sync::atomic::{AtomicU64, Ordering};

/// Why a request is refused before the engine knows it.
#[derive(Debug)]
pub struct Early {
    /// Its outcome.
    pub outcome: Outcome,
    /// In which form it is told.
    pub form: Form,
    /// A status of the situation's own.
    pub status: Option<StatusCode>,
    /// A code more exact than the outcome's.
    pub code: Option<&'static str>,
    /// The `Allow` header, where the method was wrong.
    pub allow: Option<&'static str>,
    /// What happened and what to do.
    pub message: String,
}

impl Early {
    /// A refusal without a status or code of its own.
    pub fn new(outcome: Outcome, message: impl Into<String>) -> Self {
        let form = advice::advise(outcome, None, false, &mut jitter()).unwrap_or(Form::StopHard);
        Self { outcome, form, status: None, code: None, allow: None, message: message.into() }
    }

    /// With the code of the exact mistake.
    #[must_use]
    pub fn code(mut self, code: &'static str) -> Self {
        self.code = Some(code);
        self
    }

    /// With the status of the exact mistake.
    #[must_use]
    pub fn status(mut self, status: StatusCode) -> Self {
        self.status = Some(status);
        self
    }

    /// With the methods that the path takes.
    #[must_use]
    pub fn allow(mut self, methods: &'static str) -> Self {
        self.allow = Some(methods);
        self
    }
}

/// A stream for one drawing: consecutive seeds give unrelated draws, which is all that spreading returns needs.
fn jitter() -> Random {
    static DRAWN: AtomicU64 = AtomicU64::new(0x5EA_3A11);
    Random::new(DRAWN.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed))
}
