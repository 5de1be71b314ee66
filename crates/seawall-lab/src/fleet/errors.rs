//! Errors and refusals in the form of the caller's dialect.

use super::body::{FleetBody, full};
use super::options::{ErrorForm, Rejection};
use super::request::Dialect;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::{Value, json};

/// An error for a caller.
#[derive(Clone, Debug)]
pub(super) struct ApiError {
    pub(super) status: u16,
    pub(super) message: String,
    pub(super) param: Option<&'static str>,
    pub(super) code: Option<&'static str>,
}

impl ApiError {
    pub(super) fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), param: None, code: None }
    }

    fn openai_type(&self) -> &'static str {
        match self.status {
            401 => "authentication_error",
            403 => "permission_error",
            429 => "rate_limit_error",
            503 => "service_unavailable_error",
            400..=499 => "invalid_request_error",
            _ => "server_error",
        }
    }

    fn anthropic_type(&self) -> &'static str {
        match self.status {
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            503 | 529 => "overloaded_error",
            504 => "timeout_error",
            400..=499 => "invalid_request_error",
            _ => "api_error",
        }
    }

    fn code(&self) -> Option<&'static str> {
        self.code.or(match self.status {
            401 => Some("invalid_api_key"),
            429 => Some("rate_limit_exceeded"),
            503 | 529 => Some("server_is_overloaded"),
            _ => None,
        })
    }

    /// The body in this dialect.
    pub(super) fn json(&self, dialect: Dialect, request_id: &str) -> Value {
        match dialect {
            Dialect::OpenAi => json!({"error": {
                "message": self.message, "type": self.openai_type(), "param": self.param, "code": self.code()
            }}),
            Dialect::Azure => json!({"error": {"code": self.status.to_string(), "message": self.message}}),
            Dialect::Anthropic => json!({
                "type": "error",
                "error": {"type": self.anthropic_type(), "message": self.message},
                "request_id": request_id,
            }),
        }
    }

    /// The event that tells this error inside a stream.
    pub(super) fn event(&self, dialect: Dialect, request_id: &str) -> String {
        let data = self.json(dialect, request_id);
        if dialect == Dialect::Anthropic {
            format!("event: error\ndata: {data}\n\n")
        } else {
            format!("data: {data}\n\n")
        }
    }

    /// The response in this dialect.
    pub(super) fn response(&self, dialect: Dialect, request_id: &str) -> Response<FleetBody> {
        json_response(self.status, &self.json(dialect, request_id))
    }
}

/// A refusal in the dress that is set.
pub(super) fn refusal(dress: &Rejection, message: &str, dialect: Dialect, request_id: &str) -> Response<FleetBody> {
    let error = ApiError::new(dress.status, message);
    let mut response = match dress.form {
        ErrorForm::Json => error.response(dialect, request_id),
        ErrorForm::SseFirstEvent => {
            let mut response = Response::new(full(error.event(dialect, request_id)));
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
            response
        }
    };
    if let Some(value) = dress.retry_after.as_deref().and_then(|text| HeaderValue::from_str(text).ok()) {
        response.headers_mut().insert(header::RETRY_AFTER, value);
    }
    if let Some(wait_ms) = dress.retry_after_ms {
        response.headers_mut().insert("retry-after-ms", HeaderValue::from(wait_ms));
    }
    response
}

/// The content type of a stream.
pub(super) const EVENT_STREAM: &str = "text/event-stream; charset=utf-8";

/// A JSON response.
pub(super) fn json_response(status: u16, body: &Value) -> Response<FleetBody> {
    text_response(status, "application/json", body.to_string())
}

/// A response with a text.
pub(super) fn text_response(status: u16, content_type: &'static str, body: String) -> Response<FleetBody> {
    let mut response = Response::new(full(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
