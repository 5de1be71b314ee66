//! What the fingerprint of a body costs: `cargo run --release -p seawall-wire --example fingerprint_speed`.

#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "it measures a time, and says so")]

use http::HeaderMap;
use seawall_wire::body::peek;
use seawall_wire::fingerprint::{Asked, FingerprintKey};
use std::hint::black_box;
use std::time::Instant;

fn chat(turns: usize, words: usize) -> String {
    let turn = |number: usize| {
        let role = if number.is_multiple_of(2) { "user" } else { "assistant" };
        format!(r#"{{"role": "{role}", "content": "{}"}}"#, "where do boats wait? ".repeat(words))
    };
    let turns: Vec<String> = (0..turns).map(turn).collect();
    format!(r#"{{"model": "m", "stream": true, "temperature": 0.7, "messages": [{}]}}"#, turns.join(", "))
}

fn main() {
    let key = FingerprintKey::new(7);
    let headers = HeaderMap::new();
    for (turns, words) in [(1, 1), (3, 10), (10, 40), (40, 200), (4, 20_000)] {
        let body = chat(turns, words);
        let asked = Asked {
            tenant: 1,
            model: 2,
            presented_key: Some(b"a-key-of-usual-length-0123456789"),
            method: "POST",
            path_and_query: "/v1/chat/completions",
            headers: &headers,
            body: body.as_bytes(),
        };
        let rounds = 500_000 / (body.len() + 500) + 1;
        // The fastest of many short runs: what else the machine does takes time from the others.
        let time = |run: &dyn Fn()| {
            let once = || {
                let begun = Instant::now();
                (0..rounds).for_each(|_| run());
                begun.elapsed().as_nanos() / rounds as u128
            };
            (0..200).map(|_| once()).min().unwrap_or_default()
        };
        let hashed = time(&|| {
            black_box(key.fingerprint(black_box(&asked)));
        });
        let peeked = time(&|| drop(black_box(peek(black_box(body.as_bytes())))));
        let of_one_kib = hashed * 1024 / body.len() as u128;
        println!("{:>8} bytes: {hashed} ns ({of_one_kib} ns per KiB); peek alone {peeked} ns", body.len());
    }
}
