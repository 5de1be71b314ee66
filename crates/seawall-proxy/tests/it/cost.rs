//! What requests cost, told to operators: F18, F43, F52.

use crate::flights::{AGAIN, FIRST, ask};
use crate::streams::five;
use crate::support::client::{CHAT, CHAT_STREAM, End, chat, chat_stream, post};
use crate::support::plane::{Plane, Setup};
use crate::support::upstream::{ANSWER, Call, DONE, FINISH, LAST_CHUNK, STREAM, Upstream, delta};
use serde_json::{Value, json};
use tokio::sync::watch;

/// Messages whose tokens are reckoned at 21.
const PROMPT: &str = r#"[{"role":"user","content":"seventy bytes of text, give or take a few, as I say"}]"#;
/// The end of a chat stream that tells its usage: 100 tokens read, 60 of them from a cache, and 200 made.
const USAGE: &str = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":200,\
                     \"prompt_tokens_details\":{\"cached_tokens\":60}}}\n\n";

fn body(rest: &str) -> String {
    format!("{{\"model\":\"m\",\"messages\":{PROMPT}{rest}}}")
}

/// An upstream that answers everything with this stream.
async fn streams(events: String) -> Upstream {
    Upstream::start(move |call: Call| {
        let events = events.clone();
        async move { call.stream(events).await }
    })
    .await
}

/// The last line of a log of so many.
async fn last_line(plane: &Plane, lines: usize) -> Value {
    let log = plane.log(lines).await;
    serde_json::from_str(log.lines().last().unwrap()).unwrap()
}

/// Tokens in and out, whether they are estimated, work, and whether that is.
fn cost(line: &Value) -> Value {
    let keys = ["input_tokens", "output_tokens", "tokens_estimated", "work_units", "work_is_estimated"];
    keys.iter().map(|key| line[key].clone()).collect()
}

/// Units that are settled: told, and estimated.
fn settled(plane: &Plane) -> (u64, u64) {
    let units = |estimated| plane.metric("seawall_work_units_total{", &[("model", "m"), ("estimated", estimated)]);
    (units("false"), units("true"))
}

fn status(plane: &Plane) -> Value {
    let mut all: Value = serde_json::from_str(&seawall_proxy::status::render(&plane.app)).unwrap();
    all["models"][0].take()
}

#[tokio::test]
async fn f18_each_dialect_and_form_costs_what_its_upstream_told() {
    let start = concat!(
        r#"{"type":"message_start","message":{"usage":"#,
        r#"{"input_tokens":10,"cache_read_input_tokens":5,"output_tokens":1}}}"#
    );
    let piece = r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}"#;
    let end = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":42}}"#;
    let messages = [("message_start", start), ("content_block_delta", piece), ("message_delta", end)];
    let stop = [("message_stop", r#"{"type":"message_stop"}"#)];
    let messages = messages.iter().chain(&stop).map(|(name, data)| format!("event: {name}\ndata: {data}\n\n"));
    let response = r#"{"usage":{"input_tokens":7,"input_tokens_details":{"cached_tokens":2},"output_tokens":3}}"#;
    let completed =
        format!("event: response.completed\ndata: {{\"type\":\"response.completed\",\"response\":{response}}}\n\n");
    let message = r#"{"type":"message","usage":{"input_tokens":9,"cache_read_input_tokens":20,"output_tokens":4}}"#;
    let embedded = r#"{"object":"list","data":[],"usage":{"prompt_tokens":9,"total_tokens":9}}"#;
    let (azure, anthropic) =
        ("/openai/deployments/m/chat/completions?api-version=2024-10-21", "anthropic-version: 1\r\n");
    let chat_usage = [five().as_str(), FINISH, USAGE, DONE].concat();
    let cases = [
        ("/v1/chat/completions", "", CHAT, ANSWER.to_owned(), json!([3, 1, false, 5, false])),
        ("/v1/chat/completions", "", CHAT_STREAM, chat_usage.clone(), json!([100, 200, false, 446, false])),
        (azure, "", CHAT, ANSWER.to_owned(), json!([3, 1, false, 5, false])),
        (azure, "", CHAT_STREAM, chat_usage, json!([100, 200, false, 446, false])),
        ("/v1/responses", "", CHAT, response.to_owned(), json!([7, 3, false, 11, false])),
        ("/v1/responses", "", CHAT_STREAM, completed, json!([7, 3, false, 11, false])),
        ("/v1/messages", anthropic, CHAT, message.to_owned(), json!([29, 4, false, 19, false])),
        ("/v1/messages", anthropic, CHAT_STREAM, messages.collect(), json!([15, 42, false, 95, false])),
        (
            "/v1/embeddings",
            "",
            r#"{"model":"m","input":"some text"}"#,
            embedded.to_owned(),
            json!([9, 0, false, 9, false]),
        ),
    ];
    for (path, headers, request, answer, expected) in cases {
        let told = answer.clone();
        let upstream = Upstream::start(move |call: Call| {
            let told = told.clone();
            async move { if told.starts_with('{') { call.json(200, "", told).await } else { call.stream(told).await } }
        })
        .await;
        let dialect = if headers.is_empty() { "" } else { "dialect = \"anthropic\"" };
        let plane = Setup::new().model("m", "", &[]).deployment(&format!("http://{}", upstream.address), dialect);
        let plane = plane.start().await;
        let got = plane.ask(post(path, headers, request)).await;
        assert_eq!((got.text(), got.end), (answer, End::Complete), "the bytes pass through");
        plane.idle().await;
        let line = last_line(&plane, 1).await;
        assert_eq!(cost(&line), expected, "{path} {line}");
        assert_eq!(settled(&plane), (expected[3].as_u64().unwrap(), 0), "{path}");
        plane.stop().await;
    }
}

#[tokio::test]
async fn f18_what_is_not_told_is_estimated_and_marked() {
    let no_usage = r#"{"choices":[{"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}]}"#;
    let stream = [five().as_str(), FINISH, DONE].concat();
    let upstream = Upstream::start(move |call: Call| {
        let stream = stream.clone();
        async move {
            let is_stream = String::from_utf8_lossy(&call.seen.body).contains("\"stream\":true");
            if is_stream { call.stream(stream).await } else { call.json(200, "", no_usage).await }
        }
    })
    .await;
    let plane = Setup::m(&[upstream.address]).start().await;
    // 21 tokens are reckoned from 81 bytes. The stream had five pieces; of the others nothing is known but what the
    // request allows, or that 256 are usual.
    let cases = [
        (",\"stream\":true", json!([null, 5, true, 21 + 2 * 5, true]), 31),
        ("", json!([null, null, false, 21 + 2 * 256, true]), 564),
        (",\"max_tokens\":10,\"max_completion_tokens\":12", json!([null, null, false, 21 + 2 * 12, true]), 609),
        (",\"max_tokens\":10,\"n\":3", json!([null, null, false, 21 + 2 * 30, true]), 690),
    ];
    for (number, (rest, expected, sum)) in cases.into_iter().enumerate() {
        let answer = plane.ask(post("/v1/chat/completions", "", body(rest))).await;
        assert_eq!(answer.status, 200);
        plane.idle().await;
        let line = last_line(&plane, number + 1).await;
        assert_eq!(cost(&line), expected, "{rest} {line}");
        assert_eq!(settled(&plane), (0, sum), "{rest}");
    }
    plane.stop().await;
}

#[tokio::test]
async fn f18_an_error_answer_costs_nothing() {
    let refusals: [(u16, &str); 4] = [(500, ""), (400, ""), (429, "retry-after: 100\r\n"), (401, "")];
    for (code, headers) in refusals {
        let error = r#"{"error":{"message":"no","type":"x","code":"y"}}"#;
        let upstream = Upstream::always(code, headers, error).await;
        let plane = Setup::m(&[upstream.address]).start().await;
        let answer = plane.ask(chat()).await;
        assert_ne!(answer.status, 200);
        plane.idle().await;
        let line = last_line(&plane, 1).await;
        assert_eq!(cost(&line), json!([null, null, false, 0, false]), "{code} {line}");
        assert_eq!((settled(&plane), upstream.count()), ((0, 0), 1), "{code}");
        plane.stop().await;
    }
}

#[tokio::test]
async fn f18_a_second_attempt_costs_again() {
    // The first one is silent: its prompt has been sent.
    let (silent, good) = (Upstream::start(Call::hang).await, Upstream::good().await);
    let settings = "policy = \"priority\"\n[models.timeouts]\nfirst_byte = \"100ms\"";
    let plane = Setup::new()
        .model("m", settings, &[silent.address])
        .deployment(&format!("http://{}", good.address), "priority = 1")
        .start()
        .await;
    assert_eq!(plane.ask(chat()).await.attempts(), "2");
    plane.idle().await;
    let line = last_line(&plane, 1).await;
    assert_eq!(cost(&line), json!([3, 1, false, 8 + 5, true]), "{line}");
    assert_eq!(settled(&plane), (5, 8));
    plane.stop().await;
}

#[tokio::test]
async fn f18_a_client_that_leaves_midway_pays_for_what_was_made() {
    for (start, expected) in
        [(five(), json!([null, 5, true, 8 + 2 * 5, true])), (String::new(), json!([null, null, false, 8, true]))]
    {
        let upstream = Upstream::start(move |mut call: Call| {
            let start = start.clone();
            async move {
                if !start.is_empty() {
                    call.send(STREAM).await;
                    call.chunk(start).await;
                }
                call.hang().await
            }
        })
        .await;
        let plane = Setup::m(&[upstream.address]).start().await;
        let mut client = plane.client().await;
        client.send(chat_stream()).await;
        upstream.called(1).await;
        if expected[1] == 5 {
            client.events(5).await;
        }
        assert_eq!(plane.deployment("u1").work_in_flight.units(), 8 + 2 * 256);
        assert_eq!(status(&plane)["work_in_flight"], 8 + 2 * 256);
        client.reset();
        upstream.hung_up(1).await;
        plane.idle().await;
        let line = last_line(&plane, 1).await;
        assert_eq!((cost(&line), &line["outcome"]), (expected.clone(), &json!("client_gone")), "{line}");
        assert_eq!(settled(&plane), (0, expected[3].as_u64().unwrap()));
        assert_eq!(plane.deployment("u1").work_in_flight.units(), 0);
        plane.stop().await;
    }
}

#[tokio::test]
async fn f18_a_stream_that_breaks_off_costs_what_had_come() {
    let start =
        "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":50,\"output_tokens\":1}}}\n\n";
    let piece = "data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}\n\n";
    let upstream = Upstream::start(move |mut call: Call| async move {
        call.send(STREAM).await;
        call.chunk([start, &piece.repeat(4)].concat()).await;
        call.reset()
    })
    .await;
    let plane = Setup::new().model("m", "", &[]);
    let plane = plane.deployment(&format!("http://{}", upstream.address), "dialect = \"anthropic\"").start().await;
    let answer = plane.ask(post("/v1/messages", "anthropic-version: 1\r\n", CHAT_STREAM)).await;
    assert_eq!(answer.end, End::Broken);
    plane.idle().await;
    let line = last_line(&plane, 1).await;
    // The upstream's own word of one token was its first.
    assert_eq!(cost(&line), json!([50, 4, true, 50 + 2 * 4, true]), "{line}");
    assert_eq!(settled(&plane), (0, 58));
    plane.stop().await;
}

#[tokio::test]
async fn f43_the_usage_is_the_same_in_every_dress_of_a_stream() {
    let plain = [five().as_str(), FINISH, USAGE, DONE].concat();
    let dressed = [
        plain.replace('\n', "\r\n"),
        plain.replace('\n', "\r"),
        plain.replace("data: ", "data:"),
        format!("\u{feff}{}", plain.replace("data: ", ": X PROCESSING\nid: 1\nevent: x\nretry: 3\ndata: ")),
        plain.trim_end().to_owned(),
    ];
    for stream in dressed.into_iter().chain([plain]) {
        for size in [1, stream.len()] {
            let sent = stream.clone();
            let upstream = Upstream::start(move |mut call: Call| {
                let sent = sent.clone();
                async move {
                    call.send(STREAM).await;
                    let chunks: Vec<u8> = sent.as_bytes().chunks(size).flat_map(crate::support::chunk).collect();
                    call.send(chunks).await;
                    call.send(LAST_CHUNK).await;
                    call.keep()
                }
            })
            .await;
            let plane = Setup::m(&[upstream.address]).start().await;
            assert_eq!(plane.ask(chat_stream()).await.text(), stream);
            plane.idle().await;
            assert_eq!(cost(&last_line(&plane, 1).await), json!([100, 200, false, 446, false]), "{stream:?} by {size}");
            plane.stop().await;
        }
    }
}

#[tokio::test]
async fn f52_a_client_that_closes_at_done_pays_all_that_was_told() {
    let upstream = Upstream::start(|mut call: Call| async move {
        call.send(STREAM).await;
        call.chunk([&five(), FINISH, USAGE, DONE].concat()).await;
        call.hang().await
    })
    .await;
    let plane = Setup::m(&[upstream.address]).start().await;
    let mut client = plane.client().await;
    client.send(chat_stream()).await;
    client.until(|bytes| bytes.windows(DONE.len()).any(|window| window == DONE.as_bytes())).await;
    drop(client);
    plane.idle().await;
    let line = last_line(&plane, 1).await;
    assert_eq!((cost(&line), &line["outcome"]), (json!([100, 200, false, 446, false]), &json!("served")));
    assert_eq!(settled(&plane), (446, 0));
    plane.stop().await;
}

#[tokio::test]
async fn who_joins_costs_nothing_more() {
    let open = watch::Sender::new(false);
    let upstream = crate::flights::held(&open).await;
    let plane = Setup::m(&[upstream.address]).start().await;
    let (mut first, mut again) = (plane.client().await, plane.client().await);
    first.send(ask(FIRST, CHAT)).await;
    upstream.called(1).await;
    again.send(ask(AGAIN, CHAT)).await;
    plane.until("both are known", |plane| plane.app.driver.live() == 2).await;
    open.send_replace(true);
    tokio::join!(first.response(), again.response());
    plane.idle().await;
    let log = plane.log(2).await;
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut work: Vec<_> = lines.iter().map(|line| (line["joined"].is_string(), line["work_units"].as_u64())).collect();
    work.sort_unstable();
    assert_eq!((work, settled(&plane)), (vec![(false, Some(5)), (true, Some(0))], (5, 0)));
    plane.stop().await;
}

#[tokio::test]
async fn each_tenant_s_work_is_shown_and_its_answers_are_learned() {
    let long = streams([delta("a"), FINISH.to_owned(), USAGE.to_owned(), DONE.to_owned()].concat()).await;
    let plane = Setup::m(&[long.address]).tenant("reports", "").tenant("labels", "").start().await;
    let key = |name: &str| format!("authorization: Bearer secret-{name}\r\n");
    let asks = |name: &str, number: usize| {
        post("/v1/chat/completions", &key(name), CHAT_STREAM.replace("hi", &number.to_string()))
    };
    assert_eq!(status(&plane)["expected_output_tokens"], 256);
    for number in 0..8 {
        assert_eq!(plane.ask(asks("reports", number)).await.status, 200);
    }
    assert_eq!(plane.ask(asks("labels", 0)).await.status, 200);
    plane.idle().await;
    let shown = status(&plane);
    let of = |name: &str, units: u64| -> Value {
        let estimate = json!({"work_units_estimated": 0, "expected_output_tokens": 200});
        let mut shown = json!({"name": name, "work_units": units});
        shown.as_object_mut().unwrap().extend(estimate.as_object().unwrap().clone());
        shown
    };
    assert_eq!(shown["tenants"], json!([of("reports", 8 * 446), of("labels", 446)]), "{shown}");
    assert_eq!((&shown["expected_output_tokens"], &shown["output_token_weight"]), (&json!(200), &json!(2.0)));
    assert_eq!((&shown["work_waiting"], &shown["deployments"][0]["work_in_flight"]), (&json!(0), &json!(0)));
    for (name, value) in [("reports", 8 * 446), ("labels", 446)] {
        assert_eq!(plane.metric("seawall_work_units_total{", &[("tenant", name), ("estimated", "false")]), value);
    }
    assert_eq!(plane.metric("seawall_expected_output_tokens{", &[("model", "m")]), 200);
    plane.stop().await;
}
