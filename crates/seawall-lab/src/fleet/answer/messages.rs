//! Anthropic's messages.

use super::{Answer, named_frame};
use serde_json::{Value, json};

fn stop_reason(answer: &Answer) -> &'static str {
    if answer.ask.cut { "max_tokens" } else { "end_turn" }
}

fn usage(answer: &Answer, output_tokens: u32) -> Value {
    json!({
        "input_tokens": answer.ask.prompt_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": output_tokens,
        "service_tier": "standard",
    })
}

fn message(answer: &Answer, content: &Value, stop_reason: Option<&str>, output_tokens: u32) -> Value {
    let mut message = json!({
        "id": answer.id("msg_"),
        "type": "message",
        "role": "assistant",
        "model": answer.ask.model,
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": null,
    });
    if !answer.omit_usage {
        message["usage"] = usage(answer, output_tokens);
    }
    message
}

pub(super) fn whole(answer: &Answer) -> Value {
    let content = json!([{"type": "text", "text": answer.text(0)}]);
    message(answer, &content, Some(stop_reason(answer)), answer.ask.output_tokens)
}

pub(super) fn opening(answer: &Answer, frames: &mut String) {
    let message = message(answer, &json!([]), None, 1);
    named_frame(frames, "message_start", &json!({"type": "message_start", "message": message}));
    let block = json!({"type": "text", "text": ""});
    let start = json!({"type": "content_block_start", "index": 0, "content_block": block});
    named_frame(frames, "content_block_start", &start);
    named_frame(frames, "ping", &json!({"type": "ping"}));
}

pub(super) fn token(answer: &Answer, index: u32, frames: &mut String) {
    let delta = json!({"type": "text_delta", "text": answer.word(0, index)});
    let event = json!({"type": "content_block_delta", "index": 0, "delta": delta});
    named_frame(frames, "content_block_delta", &event);
}

pub(super) fn ending(answer: &Answer, frames: &mut String) {
    named_frame(frames, "content_block_stop", &json!({"type": "content_block_stop", "index": 0}));
    let delta = json!({"stop_reason": stop_reason(answer), "stop_sequence": null});
    let mut event = json!({"type": "message_delta", "delta": delta});
    if !answer.omit_usage {
        event["usage"] = json!({"output_tokens": answer.ask.output_tokens});
    }
    named_frame(frames, "message_delta", &event);
    named_frame(frames, "message_stop", &json!({"type": "message_stop"}));
}
