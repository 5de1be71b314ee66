//! OpenAI's embeddings: unit vectors drawn from the content, as numbers or as base64 of little-endian floats.

use super::Answer;
use crate::fleet::request::draw;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

pub(super) fn whole(answer: &Answer) -> Value {
    let entry = |index| {
        let vector = vector(answer, index);
        let embedding = if answer.ask.base64 {
            let bytes: Vec<u8> = vector.iter().flat_map(|number| number.to_le_bytes()).collect();
            json!(STANDARD.encode(bytes))
        } else {
            json!(vector)
        };
        json!({"object": "embedding", "index": index, "embedding": embedding})
    };
    json!({
        "object": "list",
        "data": (0..answer.ask.inputs).map(entry).collect::<Vec<_>>(),
        "model": answer.ask.model,
        "usage": {"prompt_tokens": answer.ask.prompt_tokens, "total_tokens": answer.ask.prompt_tokens},
    })
}

fn vector(answer: &Answer, input: u32) -> Vec<f32> {
    let raw: Vec<f32> = (0..answer.ask.dimensions)
        .map(|dimension| {
            let drawn = draw(answer.seed, answer.ask.content, (u64::from(input) << 32) + u64::from(dimension) + 1);
            let sixteen_bits = u16::try_from(drawn % 65_536).unwrap_or(0);
            f32::from(sixteen_bits) / 32_768.0 - 1.0
        })
        .collect();
    let length = raw.iter().map(|number| number * number).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
    raw.into_iter().map(|number| number / length).collect()
}
