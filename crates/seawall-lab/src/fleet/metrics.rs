//! `GET /metrics` under the names of a vLLM server.

use super::server::{Server, lock};
use std::fmt::Write as _;

/// The content type of the text form.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The metrics of one server in Prometheus' text form. Without an engine the gauges are 0.
pub(super) fn text(server: &Server) -> String {
    let now = server.snapshot();
    let counters = lock(&server.counters).clone();
    let model = server.options.models.first().map_or("any", String::as_str).replace(['"', '\\', '\n'], "_");
    let usage = share(now.kv_used_tokens, now.kv_capacity_tokens);
    let answered = counters.by_status.get("200").copied().unwrap_or(0);
    let rows: [(&str, &str, &str, f64); 10] = [
        ("num_requests_running", "gauge", "Requests in the batch.", f64::from(now.running)),
        ("num_requests_waiting", "gauge", "Requests that wait.", f64::from(now.waiting)),
        ("gpu_cache_usage_perc", "gauge", "KV memory in use; 1 is all.", usage),
        ("kv_cache_usage_perc", "gauge", "KV memory in use; 1 is all.", usage),
        ("prompt_tokens_total", "counter", "Prompt tokens.", number(counters.prompt_tokens)),
        ("generation_tokens_total", "counter", "Output tokens.", number(counters.generation_tokens)),
        ("request_success_total", "counter", "Requests answered.", number(answered)),
        ("prefix_cache_queries_total", "counter", "Prefix tokens looked up.", number(now.prefix_queried_tokens)),
        ("prefix_cache_hits_total", "counter", "Prefix tokens found.", number(now.prefix_hit_tokens)),
        ("num_preemptions_total", "counter", "Preemptions: none, as memory is reserved.", 0.0),
    ];
    let mut text = String::new();
    for (name, kind, help, value) in rows {
        // Writing into a string cannot fail.
        let _ = write!(
            text,
            "# HELP vllm:{name} {help}\n# TYPE vllm:{name} {kind}\nvllm:{name}{{model_name=\"{model}\"}} {value}\n"
        );
    }
    text
}

#[expect(clippy::cast_precision_loss, reason = "the text form has floats; counts stay far below 2^52")]
fn number(count: u64) -> f64 {
    count as f64
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { number(part) / number(whole) }
}
