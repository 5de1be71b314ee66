//! OpenAI's chat completions and the older completions.

use super::{Answer, frame};
use crate::fleet::request::Operation;
use serde_json::{Value, json};
use std::fmt::Write as _;

fn finish_reason(answer: &Answer) -> &'static str {
    if answer.ask.cut { "length" } else { "stop" }
}

pub(super) fn whole_chat(answer: &Answer) -> Value {
    let choice = |index| {
        json!({
            "index": index,
            "message": {"role": "assistant", "content": answer.text(index), "refusal": null, "annotations": []},
            "logprobs": null,
            "finish_reason": finish_reason(answer),
        })
    };
    json!({
        "id": answer.id("chatcmpl-"),
        "object": "chat.completion",
        "created": answer.created,
        "model": answer.ask.model,
        "choices": (0..answer.ask.choices).map(choice).collect::<Vec<_>>(),
        "usage": answer.openai_usage(),
        "service_tier": "default",
        "system_fingerprint": "fp_seawall_fleet",
    })
}

pub(super) fn whole_completion(answer: &Answer) -> Value {
    let choice = |index| {
        json!({
            "text": answer.text(index), "index": index, "logprobs": null, "finish_reason": finish_reason(answer)
        })
    };
    json!({
        "id": answer.id("cmpl-"),
        "object": "text_completion",
        "created": answer.created,
        "model": answer.ask.model,
        "choices": (0..answer.ask.choices).map(choice).collect::<Vec<_>>(),
        "usage": answer.openai_usage(),
        "system_fingerprint": "fp_seawall_fleet",
    })
}

/// One chunk with these choices. Where the caller asked for usage, all chunks but the last say null.
fn chunk(answer: &Answer, choices: &Value, usage: Option<Value>) -> Value {
    let chat = answer.ask.operation == Operation::Chat;
    let mut chunk = json!({
        "id": answer.id(if chat { "chatcmpl-" } else { "cmpl-" }),
        "object": if chat { "chat.completion.chunk" } else { "text_completion" },
        "created": answer.created,
        "model": answer.ask.model,
        "system_fingerprint": "fp_seawall_fleet",
        "choices": choices,
    });
    if answer.ask.include_usage && !answer.omit_usage {
        chunk["usage"] = usage.unwrap_or(Value::Null);
    }
    chunk
}

fn delta(index: u32, delta: &Value, finish_reason: Option<&str>) -> Value {
    json!([{"index": index, "delta": delta, "logprobs": null, "finish_reason": finish_reason}])
}

pub(super) fn opening(answer: &Answer, frames: &mut String) {
    for choice in 0..answer.ask.choices {
        let role = json!({"role": "assistant", "content": "", "refusal": null});
        frame(frames, &chunk(answer, &delta(choice, &role, None), None));
    }
}

/// A token is the most frequent thing that the fleet sends, so its chunk is put together from parts that are made once.
pub(super) fn token(answer: &mut Answer, index: u32, frames: &mut String) {
    let (head, tail) = answer.envelope.take().unwrap_or_else(|| envelope(answer));
    let chat = answer.ask.operation == Operation::Chat;
    for choice in 0..answer.ask.choices {
        // The words need no escapes, and writing into a string cannot fail.
        let word = answer.word(choice, index);
        let _ = if chat {
            write!(frames, r#"{head}{{"index":{choice},"delta":{{"content":"{word}"}},{REST}}}{tail}"#)
        } else {
            write!(frames, r#"{head}{{"text":"{word}","index":{choice},{REST}}}{tail}"#)
        };
    }
    answer.envelope = Some((head, tail));
}

/// The last members of a choice that has not ended.
const REST: &str = r#""logprobs":null,"finish_reason":null"#;

/// A chunk's frame before and after its one choice.
fn envelope(answer: &Answer) -> (String, String) {
    let empty = chunk(answer, &json!([]), None).to_string();
    // Inside a string, such as the model's name, the quotes would be escaped.
    let (head, tail) = empty.split_once(r#""choices":[]"#).unwrap_or((&empty, ""));
    (format!(r#"data: {head}"choices":["#), format!("]{tail}\n\n"))
}

pub(super) fn ending(answer: &Answer, frames: &mut String) {
    let reason = finish_reason(answer);
    for choice in 0..answer.ask.choices {
        let choices = if answer.ask.operation == Operation::Chat {
            delta(choice, &json!({}), Some(reason))
        } else {
            json!([{"text": "", "index": choice, "logprobs": null, "finish_reason": reason}])
        };
        frame(frames, &chunk(answer, &choices, None));
    }
    if answer.ask.include_usage && !answer.omit_usage {
        frame(frames, &chunk(answer, &json!([]), Some(answer.openai_usage())));
    }
    frames.push_str("data: [DONE]\n\n");
}
