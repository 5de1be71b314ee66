//! Faults that are switched at run time, some of them for a time only.

use super::options::{ErrorForm, Rejection};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A second in nanoseconds.
const SECOND: u64 = 1_000_000_000;
/// Faults for a time that may be present on one server.
const MAX_TIMED: usize = 64;

/// Where a connection is reset.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ResetPoint {
    BeforeHeaders,
    MidStream,
}

/// What is wrong with a server; what is `None` is not set.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Patch {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) capacity_percent: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) extra_latency_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) hang_before_headers: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) hang_mid_stream: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reset: Option<ResetPoint>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) truncate: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error_mid_stream: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) omit_usage: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pad_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error_percent: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error_status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error_form: Option<ErrorForm>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) retry_after: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) retry_after_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) refuse: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) refuse_connections: Option<bool>,
}

impl Patch {
    /// This patch laid over another.
    fn over(self, below: Self) -> Self {
        Self {
            capacity_percent: self.capacity_percent.or(below.capacity_percent),
            extra_latency_ms: self.extra_latency_ms.or(below.extra_latency_ms),
            hang_before_headers: self.hang_before_headers.or(below.hang_before_headers),
            hang_mid_stream: self.hang_mid_stream.or(below.hang_mid_stream),
            reset: self.reset.or(below.reset),
            truncate: self.truncate.or(below.truncate),
            error_mid_stream: self.error_mid_stream.or(below.error_mid_stream),
            omit_usage: self.omit_usage.or(below.omit_usage),
            pad_bytes: self.pad_bytes.or(below.pad_bytes),
            error_percent: self.error_percent.or(below.error_percent),
            error_status: self.error_status.or(below.error_status),
            error_form: self.error_form.or(below.error_form),
            retry_after: self.retry_after.or(below.retry_after),
            retry_after_ms: self.retry_after_ms.or(below.retry_after_ms),
            refuse: self.refuse.or(below.refuse),
            refuse_connections: self.refuse_connections.or(below.refuse_connections),
        }
    }

    /// The dress of an error of the error share.
    pub(super) fn error(&self) -> Rejection {
        let plain = Rejection { status: 500, form: ErrorForm::Json, retry_after: None, retry_after_ms: None };
        self.dress(&plain)
    }

    /// A refusal of the server, with what is set here in place of its own dress.
    pub(super) fn dress(&self, own: &Rejection) -> Rejection {
        let told = self.retry_after.is_some() || self.retry_after_ms.is_some();
        Rejection {
            status: self.error_status.unwrap_or(own.status),
            form: self.error_form.unwrap_or(own.form),
            retry_after: if told { self.retry_after.clone() } else { own.retry_after.clone() },
            retry_after_ms: if told { self.retry_after_ms } else { own.retry_after_ms },
        }
    }
}

/// The body of `POST /fleet/faults`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Order {
    server: Option<Value>,
    #[serde(default)]
    pub(super) clear: bool,
    seconds: Option<u64>,
    capacity_percent: Option<u32>,
    extra_latency_ms: Option<u64>,
    hang_before_headers: Option<bool>,
    hang_mid_stream: Option<bool>,
    reset: Option<ResetPoint>,
    truncate: Option<bool>,
    error_mid_stream: Option<bool>,
    omit_usage: Option<bool>,
    pad_bytes: Option<u64>,
    error_percent: Option<u32>,
    error_status: Option<u16>,
    error_form: Option<ErrorForm>,
    retry_after_seconds: Option<Value>,
    retry_after_ms: Option<u64>,
    refuse: Option<bool>,
    refuse_connections: Option<bool>,
    brown_out: Option<BrownOut>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BrownOut {
    capacity_percent: u32,
    seconds: u64,
}

impl Order {
    /// Reads and checks an order. The error names the key at fault, and for an unknown one all that there are.
    pub(super) fn read(body: &[u8]) -> Result<Self, String> {
        let order: Self = serde_json::from_slice(body).map_err(|error| format!("the fault order is wrong: {error}"))?;
        let checks = [
            ("capacity_percent", order.capacity_percent.map(u64::from), 0, 1000),
            ("brown_out.capacity_percent", order.brown_out.map(|brown_out| brown_out.capacity_percent.into()), 0, 1000),
            ("brown_out.seconds", order.brown_out.map(|brown_out| brown_out.seconds), 1, 86_400),
            ("seconds", order.seconds, 1, 86_400),
            ("extra_latency_ms", order.extra_latency_ms, 0, 3_600_000),
            ("error_percent", order.error_percent.map(u64::from), 0, 100),
            ("error_status", order.error_status.map(u64::from), 400, 599),
            ("pad_bytes", order.pad_bytes, 0, 256 * 1024 * 1024),
        ];
        for (key, value, least, most) in checks {
            if let Some(value) = value.filter(|value| !(least..=most).contains(value)) {
                return Err(format!("`{key}` is {value}; it must lie between {least} and {most}"));
            }
        }
        match &order.retry_after_seconds {
            Some(Value::String(text)) if http::HeaderValue::from_str(text).is_ok() => {}
            None | Some(Value::Number(_)) => {}
            Some(_) => return Err("`retry_after_seconds` must be a number, or a text to be sent as it is".to_owned()),
        }
        Ok(order)
    }

    /// Which server it is for: a name, an index, a region, or `*` (also where it says nothing).
    pub(super) fn server(&self) -> String {
        match &self.server {
            None => "*".to_owned(),
            Some(Value::String(name)) => name.clone(),
            Some(other) => other.to_string(),
        }
    }

    fn patch(&self) -> Patch {
        let any_error = self.error_status.is_some() || self.error_form.is_some();
        let refuses = self.refuse == Some(true);
        Patch {
            capacity_percent: self.capacity_percent,
            extra_latency_ms: self.extra_latency_ms,
            hang_before_headers: self.hang_before_headers,
            hang_mid_stream: self.hang_mid_stream,
            reset: self.reset,
            truncate: self.truncate,
            error_mid_stream: self.error_mid_stream,
            omit_usage: self.omit_usage,
            pad_bytes: self.pad_bytes,
            // Who says which error but not how often, and does not mean refusals, means always.
            error_percent: self.error_percent.or((any_error && !refuses).then_some(100)),
            error_status: self.error_status,
            error_form: self.error_form,
            retry_after: self.retry_after_seconds.as_ref().map(|value| match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            }),
            retry_after_ms: self.retry_after_ms,
            refuse: self.refuse,
            refuse_connections: self.refuse_connections,
        }
    }
}

/// The faults of one server.
#[derive(Debug, Default)]
pub(super) struct Faults {
    lasting: Patch,
    /// With the time at which each ends, the latest order last.
    timed: Vec<(u64, Patch)>,
}

impl Faults {
    /// Whether the order can be taken: the error says what is full and what helps.
    pub(super) fn check(&self, order: &Order) -> Result<(), String> {
        let more = usize::from(order.seconds.is_some()) + usize::from(order.brown_out.is_some());
        if !order.clear && self.timed.len() + more > MAX_TIMED {
            return Err(format!(
                "{MAX_TIMED} faults for a time are present already; clear them with {{\"clear\": true}}"
            ));
        }
        Ok(())
    }

    /// Takes an order that was checked.
    pub(super) fn apply(&mut self, now: u64, order: &Order) {
        if order.clear {
            *self = Self::default();
        }
        let patch = order.patch();
        match order.seconds {
            Some(seconds) => self.timed.push((now.saturating_add(seconds * SECOND), patch)),
            None => self.lasting = patch.over(std::mem::take(&mut self.lasting)),
        }
        if let Some(BrownOut { capacity_percent, seconds }) = order.brown_out {
            let slow = Patch { capacity_percent: Some(capacity_percent), ..Patch::default() };
            self.timed.push((now.saturating_add(seconds * SECOND), slow));
        }
    }

    /// What holds now; faults whose time is over are dropped.
    pub(super) fn present(&mut self, now: u64) -> Patch {
        self.timed.retain(|(until, _)| *until > now);
        self.timed.iter().fold(self.lasting.clone(), |below, (_, patch)| patch.clone().over(below))
    }

    /// When the next fault ends by itself.
    pub(super) fn next_end(&self) -> Option<u64> {
        self.timed.iter().map(|(until, _)| *until).min()
    }
}
