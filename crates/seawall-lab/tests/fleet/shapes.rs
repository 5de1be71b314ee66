//! Every API: the form of answers, streams and errors.

use crate::support::{
    chat, events, fleet, get, get_json, instant, json_events, json_of, post, post_json, send, send_http2, streaming,
    text,
};
use http::StatusCode;
use seawall_lab::fleet::ServerOptions;
use serde_json::{Value, json};

fn usage_adds_up(usage: &Value) {
    let sum = usage["prompt_tokens"].as_u64().expect("a count") + usage["completion_tokens"].as_u64().expect("a count");
    assert_eq!(usage["total_tokens"], json!(sum));
}

#[tokio::test]
async fn chat_answers_whole() {
    let fleet = instant().await;
    let (status, body) = post_json(fleet.admin_addr(), "/v1/chat/completions", &chat()).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(body["object"], "chat.completion");
    assert!(body["id"].as_str().expect("an id").starts_with("chatcmpl-"));
    assert_eq!(body["model"], "demo-chat");
    assert!(body["created"].as_u64().expect("a time") > 1_700_000_000);
    let choice = &body["choices"][0];
    assert_eq!((&choice["index"], &choice["finish_reason"]), (&json!(0), &json!("stop")));
    assert_eq!(choice["message"]["role"], "assistant");
    let words = choice["message"]["content"].as_str().expect("text").split(' ').count();
    assert_eq!(body["usage"]["completion_tokens"], json!(words));
    assert!((16..=32).contains(&words), "{words}");
    usage_adds_up(&body["usage"]);
    fleet.shutdown().await;
}

#[tokio::test]
async fn chat_streams_the_same_text() {
    let fleet = instant().await;
    let mut asked = chat();
    let (_, whole) = post_json(fleet.admin_addr(), "/v1/chat/completions", &asked).await;
    asked["stream"] = json!(true);
    asked["stream_options"] = json!({"include_usage": true});
    let response = send(fleet.admin_addr(), post("/v1/chat/completions", &asked)).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream; charset=utf-8");
    let stream = text(response).await;
    let chunks = json_events(&stream);
    assert_eq!(chunks.last(), Some(&json!("[DONE]")));
    let chunks = &chunks[..chunks.len() - 1];
    assert!(chunks.iter().all(|chunk| chunk["object"] == "chat.completion.chunk" && chunk["id"] == chunks[0]["id"]));
    assert_eq!(chunks[0]["choices"][0]["delta"]["role"], "assistant");
    let usage = chunks.last().expect("a last chunk");
    assert_eq!(usage["choices"], json!([]));
    usage_adds_up(&usage["usage"]);
    let (others, _) = chunks.split_at(chunks.len() - 1);
    assert!(others.iter().all(|chunk| chunk["usage"].is_null() && chunk.get("usage").is_some()));
    assert_eq!(others.last().expect("a chunk")["choices"][0]["finish_reason"], "stop");
    let tokens = others
        .iter()
        .filter(|chunk| chunk["choices"][0]["delta"]["content"].as_str().is_some_and(|text| !text.is_empty()));
    assert_eq!(json!(tokens.count()), usage["usage"]["completion_tokens"]);
    // The bodies differ, so do the texts; the same streamed body gives the same text.
    assert_eq!(whole["object"], "chat.completion");
    let again = text(send(fleet.admin_addr(), post("/v1/chat/completions", &asked)).await).await;
    let words = |stream: &str| -> String {
        json_events(stream)
            .iter()
            .filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str().map(str::to_owned))
            .collect()
    };
    assert_eq!(words(&stream), words(&again));
    fleet.shutdown().await;
}

#[tokio::test]
async fn a_length_limit_cuts_in_every_dialect() {
    let fleet = instant().await;
    let to = fleet.admin_addr();
    for name in ["max_tokens", "max_completion_tokens"] {
        let mut asked = chat();
        asked[name] = json!(5);
        let (_, body) = post_json(to, "/v1/chat/completions", &asked).await;
        assert_eq!(body["choices"][0]["finish_reason"], "length");
        assert_eq!(body["usage"]["completion_tokens"], 5);
    }
    let asked = json!({"model": "m", "input": "hi", "max_output_tokens": 3});
    let (_, body) = post_json(to, "/v1/responses", &asked).await;
    assert_eq!(body["status"], "incomplete");
    assert_eq!(body["incomplete_details"], json!({"reason": "max_output_tokens"}));
    assert_eq!(body["usage"]["output_tokens"], 3);
    let stream = text(send(to, post("/v1/responses", &streaming(asked))).await).await;
    assert_eq!(events(&stream).last().expect("an event").0, Some("response.incomplete"));
    let asked = json!({"model": "m", "max_tokens": 4, "messages": [{"role": "user", "content": "hi"}]});
    let (_, body) = post_json(to, "/v1/messages", &asked).await;
    assert_eq!(body["stop_reason"], "max_tokens");
    assert_eq!(body["usage"]["output_tokens"], 4);
    fleet.shutdown().await;
}

#[tokio::test]
async fn completions_answer_with_several_choices() {
    let fleet = instant().await;
    let asked = json!({"model": "m", "prompt": "once", "n": 2, "max_tokens": 6});
    let (status, body) = post_json(fleet.admin_addr(), "/v1/completions", &asked).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(body["object"], "text_completion");
    assert_eq!(body["choices"].as_array().expect("choices").len(), 2);
    assert_eq!(body["choices"][1]["index"], 1);
    assert_ne!(body["choices"][0]["text"], body["choices"][1]["text"]);
    assert_eq!(body["usage"]["completion_tokens"], 12);
    let stream = text(send(fleet.admin_addr(), post("/v1/completions", &streaming(asked))).await).await;
    let chunks = json_events(&stream);
    // Six tokens and one end for each choice, and the end mark.
    assert_eq!(chunks.len(), 2 * 7 + 1);
    assert!(chunks[..14].iter().all(|chunk| chunk["choices"][0]["text"].is_string() && chunk.get("usage").is_none()));
    fleet.shutdown().await;
}

#[tokio::test]
async fn responses_stream_all_events_in_order() {
    let fleet = instant().await;
    let asked = json!({"model": "m", "input": [{"role": "user", "content": "hi"}], "stream": true});
    let stream = text(send(fleet.admin_addr(), post("/v1/responses", &asked)).await).await;
    let seen = events(&stream);
    let mut names: Vec<&str> = seen.iter().map(|(name, _)| name.expect("each event has a name")).collect();
    names.dedup();
    assert_eq!(
        names,
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.completed",
        ]
    );
    let values = json_events(&stream);
    for (index, ((name, _), value)) in seen.iter().zip(&values).enumerate() {
        assert_eq!(value["type"], json!(name));
        assert_eq!(value["sequence_number"], json!(index));
    }
    let deltas: String = values.iter().filter_map(|value| value["delta"].as_str()).collect();
    let response = &values.last().expect("an event")["response"];
    assert_eq!(response["output"][0]["content"][0]["text"], json!(deltas));
    assert_eq!(response["status"], "completed");
    let usage = &response["usage"];
    assert_eq!(usage["output_tokens"], json!(deltas.split(' ').count()));
    assert!(usage["input_tokens_details"]["cached_tokens"].is_u64());
    fleet.shutdown().await;
}

#[tokio::test]
async fn embeddings_come_as_numbers_or_base64() {
    let fleet = instant().await;
    let mut asked = json!({"model": "demo-embed", "input": ["a", "b"], "dimensions": 8});
    let (_, body) = post_json(fleet.admin_addr(), "/v1/embeddings", &asked).await;
    assert_eq!((&body["object"], body["data"].as_array().expect("data").len()), (&json!("list"), 2));
    let numbers: Vec<f64> = serde_json::from_value(body["data"][1]["embedding"].clone()).expect("numbers");
    assert_eq!(numbers.len(), 8);
    let length: f64 = numbers.iter().map(|number| number * number).sum();
    assert!((length - 1.0).abs() < 1e-4, "{length}");
    assert_eq!(body["usage"]["prompt_tokens"], body["usage"]["total_tokens"]);
    asked["encoding_format"] = json!("base64");
    let (_, body) = post_json(fleet.admin_addr(), "/v1/embeddings", &asked).await;
    // 32 bytes are 44 characters.
    assert_eq!(body["data"][0]["embedding"].as_str().expect("base64").len(), 44);
    let (_, body) = post_json(fleet.admin_addr(), "/v1/embeddings", &json!({"model": "m", "input": [1, 2, 3]})).await;
    assert_eq!(body["data"].as_array().expect("data").len(), 1);
    fleet.shutdown().await;
}

#[tokio::test]
async fn azure_paths_answer_for_their_deployment() {
    let fleet = instant().await;
    let to = fleet.admin_addr();
    let asked = json!({"messages": [{"role": "user", "content": "hi"}]});
    let path = "/openai/deployments/my-gpt/chat/completions?api-version=2024-10-21";
    let (status, body) = post_json(to, path, &asked).await;
    assert_eq!((status, &body["model"]), (StatusCode::OK, &json!("my-gpt")));
    let (status, body) = post_json(to, "/openai/v1/chat/completions", &chat()).await;
    assert_eq!((status, &body["model"]), (StatusCode::OK, &json!("demo-chat")));
    let (status, body) =
        post_json(to, "/openai/deployments/e/embeddings?api-version=2024-10-21", &json!({"input": "a"})).await;
    assert_eq!((status, &body["object"]), (StatusCode::OK, &json!("list")));
    let (status, _) = post_json(to, "/openai/deployments/e/messages", &chat()).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let (status, body) = json_of(send(to, post(path, &json!({}))).await).await;
    assert_eq!((status, &body["error"]["code"]), (StatusCode::BAD_REQUEST, &json!("400")));
    fleet.shutdown().await;
}

#[tokio::test]
async fn anthropic_messages_answer_and_stream() {
    let fleet = instant().await;
    let to = fleet.admin_addr();
    let asked = json!({"model": "claude", "max_tokens": 100, "messages": [{"role": "user", "content": "hi"}]});
    let (_, body) = post_json(to, "/v1/messages", &asked).await;
    assert_eq!(
        (&body["type"], &body["role"], &body["stop_reason"]),
        (&json!("message"), &json!("assistant"), &json!("end_turn"))
    );
    let stream = text(send(to, post("/v1/messages", &streaming(asked.clone()))).await).await;
    let mut names: Vec<&str> = events(&stream).iter().map(|(name, _)| name.expect("a name")).collect();
    names.dedup();
    assert_eq!(
        names,
        [
            "message_start",
            "content_block_start",
            "ping",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
            "message_stop",
        ]
    );
    let values = json_events(&stream);
    let deltas = values.iter().filter(|value| value["type"] == "content_block_delta").count();
    let last = values.iter().find(|value| value["type"] == "message_delta").expect("a message_delta");
    assert_eq!(last["usage"]["output_tokens"], json!(deltas));
    assert_eq!(values[0]["message"]["content"], json!([]));
    let (_, body) = post_json(to, "/v1/messages/count_tokens", &asked).await;
    assert!(body["input_tokens"].as_u64().expect("a count") > 0);
    let missing = json!({"model": "claude", "messages": []});
    let (status, body) = post_json(to, "/v1/messages", &missing).await;
    assert_eq!((status, &body["error"]["type"]), (StatusCode::BAD_REQUEST, &json!("invalid_request_error")));
    assert!(body["request_id"].is_string());
    fleet.shutdown().await;
}

#[tokio::test]
async fn models_health_and_metrics_answer() {
    let fleet = fleet(vec![ServerOptions::new("one", "here")]).await;
    let to = fleet.admin_addr();
    post_json(to, "/v1/chat/completions", &chat()).await;
    let models = get_json(to, "/v1/models").await;
    assert_eq!(models["data"][1]["id"], "demo-embed");
    assert_eq!(get_json(to, "/v1/models/demo-chat").await["object"], "model");
    assert_eq!(send(to, get("/health")).await.status(), StatusCode::OK);
    let metrics = text(send(to, get("/metrics")).await).await;
    let value = |name: &str| -> f64 {
        let start = format!("vllm:{name}{{model_name=\"demo-chat\"}} ");
        let line = metrics.lines().find_map(|line| line.strip_prefix(start.as_str()));
        line.unwrap_or_else(|| panic!("no {name} in {metrics}")).parse().expect("a number")
    };
    assert!(value("num_requests_running").abs() < f64::EPSILON);
    assert!(value("prompt_tokens_total") >= 1.0);
    assert!(value("generation_tokens_total") >= 16.0);
    assert!((value("request_success_total") - 1.0).abs() < f64::EPSILON);
    assert!(value("kv_cache_usage_perc").abs() < f64::EPSILON);
    fleet.shutdown().await;
}

#[tokio::test]
async fn http2_without_tls_works() {
    let fleet = instant().await;
    let uri = format!("http://{}/v1/chat/completions", fleet.admin_addr());
    let request = http::Request::post(uri).body(http_body_util::Full::from(chat().to_string())).expect("valid");
    let response = send_http2(fleet.admin_addr(), request).await;
    assert_eq!((response.status(), response.version()), (StatusCode::OK, http::Version::HTTP_2));
    assert_eq!(json_of(response).await.1["object"], "chat.completion");
    fleet.shutdown().await;
}

#[tokio::test]
async fn bad_requests_say_what_is_wrong() {
    let fleet = fleet(vec![ServerOptions { only_listed_models: true, ..ServerOptions::instant("one") }]).await;
    let to = fleet.admin_addr();
    let wrong = [
        (json!({"messages": []}), "model"),
        (json!({"model": "demo-chat"}), "messages"),
        (json!({"model": "demo-chat", "messages": "hi"}), "messages"),
        (json!({"model": "demo-chat", "messages": [], "n": 0}), "n"),
    ];
    for (body, param) in wrong {
        let (status, answer) = post_json(to, "/v1/chat/completions", &body).await;
        assert_eq!((status, &answer["error"]["param"]), (StatusCode::BAD_REQUEST, &json!(param)), "{body}");
        assert_eq!(answer["error"]["type"], "invalid_request_error");
    }
    let (status, answer) = post_json(to, "/v1/chat/completions", &json!({"model": "other", "messages": []})).await;
    assert_eq!((status, &answer["error"]["code"]), (StatusCode::NOT_FOUND, &json!("model_not_found")));
    assert!(answer["error"]["message"].as_str().expect("a message").contains("demo-chat, demo-embed"));
    assert_eq!(send(to, get("/v1/chat/completions")).await.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(send(to, get("/nowhere")).await.status(), StatusCode::NOT_FOUND);
    fleet.shutdown().await;
}

#[tokio::test]
async fn a_key_is_asked_for_where_one_is_set() {
    let fleet = fleet(vec![ServerOptions { key: Some("right".into()), ..ServerOptions::instant("one") }]).await;
    for (name, value, wanted) in [
        ("authorization", "Bearer right", StatusCode::OK),
        ("api-key", "right", StatusCode::OK),
        ("x-api-key", "right", StatusCode::OK),
        ("authorization", "Bearer wrong", StatusCode::UNAUTHORIZED),
        ("x-other", "right", StatusCode::UNAUTHORIZED),
    ] {
        let mut request = post("/v1/chat/completions", &chat());
        request.headers_mut().insert(name, value.parse().expect("a header"));
        let (status, body) = json_of(send(fleet.admin_addr(), request).await).await;
        assert_eq!(status, wanted, "{name}: {value}: {body}");
    }
    fleet.shutdown().await;
}
