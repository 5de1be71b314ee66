//! Request bodies: distinct for each call, the same on all its attempts.

use super::mix::Size;
use super::options::{Endpoint, LoadOptions};
use super::schedule::Arrival;
use bytes::Bytes;
use serde_json::{Value, json};

/// Everyday words of about a token each.
const WORDS: [&str; 16] = [
    "the ", "sea ", "wall ", "holds ", "back ", "each ", "wave ", "that ", "comes ", "from ", "far ", "and ", "then ",
    "goes ", "out ", "again ",
];

/// Makes bodies. The long part of each size is written once.
pub(super) struct Bodies {
    fillers: Vec<String>,
}

impl Bodies {
    pub(super) fn new(options: &LoadOptions) -> Self {
        let filler = |size: &Size| (0..size.prompt_tokens as usize).map(|word| WORDS[word % WORDS.len()]).collect();
        Self { fillers: options.sizes.entries().iter().map(|(size, _)| filler(size)).collect() }
    }

    /// The id by which this call's body differs from every other's, also from other seeds' runs.
    pub(super) fn id(options: &LoadOptions, arrival: &Arrival) -> String {
        format!("load-{}-{}", options.seed, arrival.number)
    }

    /// The body. The id stands in front of the prompt, so that no prefix cache serves one call from another, and in
    /// the field that names the end user.
    pub(super) fn body(&self, options: &LoadOptions, arrival: &Arrival) -> Bytes {
        let id = Self::id(options, arrival);
        let size = options.sizes.item(arrival.size);
        let model = &options.models.item(arrival.model).0;
        let prompt = format!("{id}: {}", self.fillers[arrival.size]);
        let max_tokens = size.max_tokens;
        let messages = || json!([{"role": "user", "content": prompt}]);
        let mut body = match options.endpoint {
            Endpoint::Chat => json!({"model": model, "messages": messages(), "max_tokens": max_tokens, "user": id}),
            Endpoint::Completions => json!({"model": model, "prompt": prompt, "max_tokens": max_tokens, "user": id}),
            Endpoint::Embeddings => json!({"model": model, "input": prompt, "user": id}),
            Endpoint::Responses => {
                json!({"model": model, "input": prompt, "max_output_tokens": max_tokens, "user": id})
            }
            Endpoint::Messages => json!({
                "model": model, "messages": messages(), "max_tokens": max_tokens, "metadata": {"user_id": id},
            }),
        };
        if arrival.stream {
            body["stream"] = Value::Bool(true);
            if matches!(options.endpoint, Endpoint::Chat | Endpoint::Completions) {
                body["stream_options"] = json!({"include_usage": true});
            }
        }
        Bytes::from(body.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::super::schedule::Schedule;
    use super::*;

    #[test]
    fn bodies_are_distinct_and_have_each_endpoints_form() {
        for (_, endpoint) in Endpoint::ALL {
            let options = LoadOptions { endpoint, stream_share: 1.0, ..LoadOptions::new("http://127.0.0.1:1") };
            let bodies = Bodies::new(&options);
            let made: Vec<_> = Schedule::new(&options).take(2).map(|arrival| bodies.body(&options, &arrival)).collect();
            assert_ne!(made[0], made[1]);
            let body: Value = serde_json::from_slice(&made[1]).unwrap();
            assert_eq!(body["model"], "demo-chat");
            assert!(body.to_string().contains("load-1-1: the sea wall"));
            assert_eq!(body["stream"] == true, endpoint != Endpoint::Embeddings);
            let limits = [&body["max_tokens"], &body["max_output_tokens"]];
            assert_eq!(limits.contains(&&json!(100)), endpoint != Endpoint::Embeddings);
            let user = if endpoint == Endpoint::Messages { &body["metadata"]["user_id"] } else { &body["user"] };
            assert_eq!(user, "load-1-1");
        }
    }
}
