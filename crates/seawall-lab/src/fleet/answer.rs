//! Answers in the forms of each dialect: whole, and as the frames of a stream.
//!
//! The forms follow the public API references of OpenAI (chat, completions, responses, embeddings, models) and
//! Anthropic (messages). The text is words drawn from the seed and the content of the request, one word a token.

mod chat;
mod embeddings;
mod messages;
mod responses;

use super::request::{Ask, Operation, draw};
use bytes::Bytes;
use serde_json::{Value, json};
use std::fmt::Write as _;

const WORDS: [&str; 32] = [
    "the", "harbour", "holds", "water", "stone", "and", "light", "while", "boats", "wait", "for", "morning", "tides",
    "rise", "slowly", "against", "a", "wall", "of", "granite", "then", "fall", "back", "to", "open", "sea", "gulls",
    "circle", "over", "calm", "grey", "waves",
];

/// An answer to one request.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) ask: Ask,
    pub(super) seed: u64,
    /// Distinguishes the ids of equal requests.
    pub(super) number: u64,
    pub(super) created: u64,
    pub(super) omit_usage: bool,
    /// The number of the next event of a stream, in the dialect that numbers them.
    pub(super) sequence: u64,
    /// What stands around the choices of each chunk of a stream, once it was made.
    pub(super) envelope: Option<(String, String)>,
}

impl Answer {
    /// The token with this index of one choice, with the space before it.
    fn word(&self, choice: u32, index: u32) -> String {
        let drawn = draw(self.seed, self.ask.content, (u64::from(choice) << 32) + u64::from(index) + 1);
        let word = WORDS[usize::try_from(drawn % WORDS.len() as u64).unwrap_or(0)];
        if index == 0 { word.to_owned() } else { format!(" {word}") }
    }

    /// The whole text of one choice.
    fn text(&self, choice: u32) -> String {
        (0..self.ask.output_tokens).map(|index| self.word(choice, index)).collect()
    }

    fn id(&self, prefix: &str) -> String {
        let high = draw(self.seed, self.ask.content, u64::MAX);
        format!("{prefix}{high:016x}{:016x}", draw(self.seed, self.number, 7))
    }

    fn all_output_tokens(&self) -> u32 {
        self.ask.output_tokens.saturating_mul(self.ask.choices)
    }

    fn openai_usage(&self) -> Value {
        let (prompt, completion) = (self.ask.prompt_tokens, self.all_output_tokens());
        json!({
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt.saturating_add(completion),
            "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
            "completion_tokens_details": {
                "reasoning_tokens": 0, "audio_tokens": 0,
                "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0
            },
        })
    }

    /// The whole answer as JSON.
    pub(super) fn whole(&self) -> Bytes {
        let mut body = match self.ask.operation {
            Operation::Chat => chat::whole_chat(self),
            Operation::Completions => chat::whole_completion(self),
            Operation::Responses => responses::whole(self, responses::State::Ended),
            Operation::Embeddings => embeddings::whole(self),
            Operation::Messages => messages::whole(self),
            Operation::CountTokens | Operation::Models => json!({"input_tokens": self.ask.prompt_tokens}),
        };
        if self.omit_usage
            && let Some(object) = body.as_object_mut()
        {
            object.remove("usage");
        }
        Bytes::from(body.to_string())
    }

    /// The frames before the first token.
    pub(super) fn opening(&mut self) -> Bytes {
        let mut frames = String::new();
        match self.ask.operation {
            Operation::Responses => responses::opening(self, &mut frames),
            Operation::Messages => messages::opening(self, &mut frames),
            Operation::Chat => chat::opening(self, &mut frames),
            _ => {}
        }
        Bytes::from(frames)
    }

    /// The frames of one token.
    pub(super) fn token(&mut self, index: u32) -> Bytes {
        let mut frames = String::new();
        match self.ask.operation {
            Operation::Responses => responses::token(self, index, &mut frames),
            Operation::Messages => messages::token(self, index, &mut frames),
            _ => chat::token(self, index, &mut frames),
        }
        Bytes::from(frames)
    }

    /// The frames after the last token.
    pub(super) fn ending(&mut self) -> Bytes {
        let mut frames = String::new();
        match self.ask.operation {
            Operation::Responses => responses::ending(self, &mut frames),
            Operation::Messages => messages::ending(self, &mut frames),
            _ => chat::ending(self, &mut frames),
        }
        Bytes::from(frames)
    }
}

/// Adds one frame with an event name.
fn named_frame(frames: &mut String, name: &str, data: &Value) {
    // Writing into a string cannot fail.
    let _ = write!(frames, "event: {name}\ndata: {data}\n\n");
}

/// Adds one frame without an event name.
fn frame(frames: &mut String, data: &Value) {
    let _ = write!(frames, "data: {data}\n\n");
}

/// The list of models, in the form of the caller's dialect.
pub(super) fn models(names: &[String], anthropic: bool, created: u64) -> Value {
    if anthropic {
        let since = "2026-01-01T00:00:00Z";
        let entry = |name: &String| json!({"type": "model", "id": name, "display_name": name, "created_at": since});
        let data: Vec<Value> = names.iter().map(entry).collect();
        return json!({"data": data, "has_more": false, "first_id": names.first(), "last_id": names.last()});
    }
    let data: Vec<Value> = names.iter().map(|name| model(name, created)).collect();
    json!({"object": "list", "data": data})
}

/// One model in OpenAI's form.
pub(super) fn model(name: &str, created: u64) -> Value {
    json!({"id": name, "object": "model", "created": created, "owned_by": "seawall-fleet"})
}
