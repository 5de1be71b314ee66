//! OpenAI's responses.

use super::{Answer, named_frame};
use serde_json::{Value, json};

/// How far a response has come.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum State {
    InProgress,
    Ended,
}

fn status(answer: &Answer) -> &'static str {
    if answer.ask.cut { "incomplete" } else { "completed" }
}

fn part(text: &str) -> Value {
    json!({"type": "output_text", "annotations": [], "logprobs": [], "text": text})
}

fn item(answer: &Answer, status: &str, content: &Value) -> Value {
    json!({
        "id": answer.id("msg_"), "type": "message", "status": status, "role": "assistant", "content": content
    })
}

fn usage(answer: &Answer) -> Value {
    let (input, output) = (answer.ask.prompt_tokens, answer.ask.output_tokens);
    json!({
        "input_tokens": input,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": input.saturating_add(output),
    })
}

pub(super) fn whole(answer: &Answer, state: State) -> Value {
    let ended = state == State::Ended;
    let output = if ended { json!([item(answer, status(answer), &json!([part(&answer.text(0))]))]) } else { json!([]) };
    let incomplete = (ended && answer.ask.cut).then(|| json!({"reason": "max_output_tokens"}));
    json!({
        "id": answer.id("resp_"),
        "object": "response",
        "created_at": answer.created,
        "status": if ended { status(answer) } else { "in_progress" },
        "background": false,
        "error": null,
        "incomplete_details": incomplete,
        "instructions": null,
        "max_output_tokens": null,
        "max_tool_calls": null,
        "model": answer.ask.model,
        "output": output,
        "parallel_tool_calls": true,
        "previous_response_id": null,
        "prompt_cache_key": null,
        "reasoning": {"effort": null, "summary": null},
        "safety_identifier": null,
        "service_tier": "default",
        "store": false,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}, "verbosity": "medium"},
        "tool_choice": "auto",
        "tools": [],
        "top_logprobs": 0,
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": if ended && !answer.omit_usage { usage(answer) } else { Value::Null },
        "user": null,
        "metadata": {},
    })
}

fn event(answer: &mut Answer, frames: &mut String, name: &str, mut data: Value) {
    data["type"] = json!(name);
    data["sequence_number"] = json!(answer.sequence);
    answer.sequence += 1;
    named_frame(frames, name, &data);
}

/// Members that name the one text part of the one output item.
fn place(answer: &Answer) -> Value {
    json!({"item_id": answer.id("msg_"), "output_index": 0, "content_index": 0})
}

pub(super) fn opening(answer: &mut Answer, frames: &mut String) {
    let response = whole(answer, State::InProgress);
    event(answer, frames, "response.created", json!({"response": response}));
    event(answer, frames, "response.in_progress", json!({"response": response}));
    let empty = item(answer, "in_progress", &json!([]));
    event(answer, frames, "response.output_item.added", json!({"output_index": 0, "item": empty}));
    let mut added = place(answer);
    added["part"] = part("");
    event(answer, frames, "response.content_part.added", added);
}

pub(super) fn token(answer: &mut Answer, index: u32, frames: &mut String) {
    let mut delta = place(answer);
    delta["delta"] = json!(answer.word(0, index));
    delta["logprobs"] = json!([]);
    event(answer, frames, "response.output_text.delta", delta);
}

pub(super) fn ending(answer: &mut Answer, frames: &mut String) {
    let text = answer.text(0);
    let mut done = place(answer);
    done["text"] = json!(text);
    done["logprobs"] = json!([]);
    event(answer, frames, "response.output_text.done", done);
    let mut done = place(answer);
    done["part"] = part(&text);
    event(answer, frames, "response.content_part.done", done);
    let ended = item(answer, status(answer), &json!([part(&text)]));
    event(answer, frames, "response.output_item.done", json!({"output_index": 0, "item": ended}));
    let last = if answer.ask.cut { "response.incomplete" } else { "response.completed" };
    let response = whole(answer, State::Ended);
    event(answer, frames, last, json!({"response": response}));
}
