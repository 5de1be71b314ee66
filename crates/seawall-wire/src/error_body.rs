//! Our own refusals as bodies and as stream events, in the caller's dialect.
//!
//! `error.type` is always there, `param` is null, codes are strings (the clients' parsers differ on anything else).
//! Anthropic's form has its own vocabulary of types and names the request in the body.

use crate::dialect::{Dialect, Endpoint};
use bytes::Bytes;
use serde_json::Value;

/// What a refusal says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorBody<'a> {
    /// `error.type`, in OpenAI's vocabulary; translated for Anthropic.
    pub error_type: &'a str,
    /// `error.code`.
    pub code: &'a str,
    /// The message for people.
    pub message: &'a str,
    /// Our id of the request.
    pub request_id: &'a str,
}

impl ErrorBody<'_> {
    /// The JSON body.
    pub fn to_json(&self, dialect: Dialect) -> Bytes {
        self.json(dialect).into()
    }

    /// The event that reports an error inside a running stream, ended by a blank line. A stream that broke off inside
    /// an event needs a blank line before it: see [`crate::sse::SseScanner::is_at_boundary`].
    pub fn to_event(&self, dialect: Dialect, endpoint: Endpoint) -> Bytes {
        let json = self.json(dialect);
        if dialect == Dialect::Anthropic {
            return format!("event: error\ndata: {json}\n\n").into();
        }
        if endpoint == Endpoint::Responses {
            // The SDKs take `type: error` as an event of its own and raise on a member `error`: it has both.
            let (code, message) = (quoted(self.code), quoted(self.message));
            let rest = &json[1..];
            let head = "event: error\ndata: {\"type\":\"error\"";
            return format!("{head},\"code\":{code},\"message\":{message},\"param\":null,{rest}\n\n").into();
        }
        format!("data: {json}\n\n").into()
    }

    fn json(&self, dialect: Dialect) -> String {
        let (code, message) = (quoted(self.code), quoted(self.message));
        match dialect {
            Dialect::OpenAi => {
                let error_type = quoted(self.error_type);
                format!("{{\"error\":{{\"message\":{message},\"type\":{error_type},\"param\":null,\"code\":{code}}}}}")
            }
            Dialect::Azure => {
                let error_type = quoted(self.error_type);
                format!("{{\"error\":{{\"code\":{code},\"message\":{message},\"type\":{error_type},\"param\":null}}}}")
            }
            Dialect::Anthropic => {
                let error_type = quoted(anthropic_type(self.error_type, self.code));
                let request_id = quoted(self.request_id);
                let error = format!("{{\"type\":{error_type},\"message\":{message}}}");
                format!("{{\"type\":\"error\",\"error\":{error},\"request_id\":{request_id}}}")
            }
        }
    }
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// Anthropic's word for an error of ours.
pub fn anthropic_type(error_type: &str, code: &str) -> &'static str {
    match (error_type, code) {
        (_, "model_not_found" | "unknown_path") => "not_found_error",
        (_, "invalid_api_key" | "missing_api_key") | ("authentication_error", _) => "authentication_error",
        (_, "request_too_large" | "body_too_large") => "request_too_large",
        ("permission_error", _) => "permission_error",
        ("not_found_error", _) => "not_found_error",
        ("invalid_request_error", _) => "invalid_request_error",
        ("rate_limit_error" | "insufficient_quota" | "conflict_error", _) => "rate_limit_error",
        ("service_unavailable_error" | "overloaded_error", _) => "overloaded_error",
        ("timeout_error", _) => "timeout_error",
        _ => "api_error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const BODY: ErrorBody<'_> = ErrorBody {
        error_type: "service_unavailable_error",
        code: "capacity_exhausted",
        message: "All \"busy\".\nPlease try again in 5s.",
        request_id: "req_1",
    };

    fn parsed(bytes: &[u8]) -> Value {
        serde_json::from_slice(bytes).unwrap()
    }

    #[test]
    fn each_dialect_has_its_form() {
        let inner = json!({"type": BODY.error_type, "code": BODY.code, "message": BODY.message, "param": null});
        for dialect in [Dialect::OpenAi, Dialect::Azure] {
            assert_eq!(parsed(&BODY.to_json(dialect)), json!({"error": inner}));
        }
        let anthropic = json!({
            "type": "error", "error": {"type": "overloaded_error", "message": BODY.message}, "request_id": "req_1"
        });
        assert_eq!(parsed(&BODY.to_json(Dialect::Anthropic)), anthropic);
    }

    #[test]
    fn events_are_one_line_of_data_that_our_own_scanner_reads() {
        for (dialect, endpoint, start) in [
            (Dialect::OpenAi, Endpoint::ChatCompletions, "data: {"),
            (Dialect::Azure, Endpoint::Responses, "event: error\ndata: {\"type\":\"error\""),
            (Dialect::Anthropic, Endpoint::Messages, "event: error\ndata: {"),
        ] {
            let event = BODY.to_event(dialect, endpoint);
            let text = std::str::from_utf8(&event).unwrap();
            assert!(text.starts_with(start) && text.ends_with("}\n\n"), "{text}");
            let mut scanner = crate::sse::SseScanner::new(endpoint);
            scanner.push(&event);
            let error = scanner.facts().error.clone().expect("the event is an error");
            assert_eq!(error.facts.message.as_deref(), Some(BODY.message));
            assert_eq!((scanner.facts().events, error.event), (1, 1));
        }
    }

    #[test]
    fn anthropic_words_cover_the_contract() {
        for (error_type, code, expected) in [
            ("invalid_request_error", "model_not_found", "not_found_error"),
            ("invalid_request_error", "invalid_json", "invalid_request_error"),
            ("invalid_request_error", "invalid_api_key", "authentication_error"),
            ("rate_limit_error", "shed_low_priority", "rate_limit_error"),
            ("insufficient_quota", "insufficient_quota", "rate_limit_error"),
            ("server_error", "upstream_error", "api_error"),
            ("timeout_error", "deadline_unmeetable", "timeout_error"),
        ] {
            assert_eq!(anthropic_type(error_type, code), expected, "{code}");
        }
    }
}
