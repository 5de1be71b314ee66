//! Bodies and headers on their way: F31, F33, F34.

use crate::support::chunk;
use crate::support::client::{CHAT, CHAT_PATH, End, chat, post};
use crate::support::plane::Setup;
use crate::support::upstream::{ANSWER, Call, Upstream};
use std::time::Duration;

const MIB: usize = 1 << 20;

#[tokio::test]
async fn f31_no_secret_of_a_caller_reaches_an_upstream() {
    let first = Upstream::always(503, "set-cookie: a=CANARY\r\nx-secret: CANARY\r\n", "{}").await;
    let second = Upstream::start(|call: Call| {
        call.json(
            200,
            "set-cookie: a=CANARY\r\nx-secret: CANARY\r\nconnection: openai-version\r\nopenai-version: CANARY\r\n",
            ANSWER,
        )
    })
    .await;
    let plane = Setup::new()
        .model("m", "[models.ejection]\nconsecutive_failures = 100", &[])
        .deployment(&format!("http://{}", first.address), "priority = 0\ncredential = { env = \"K1\" }")
        .deployment(&format!("http://{}", second.address), "priority = 1\ncredential = { env = \"K2\" }")
        .tenant("canary", "")
        .start()
        .await;
    let secrets = "Cookie: CANARY\r\nProxy-Authorization: CANARY\r\nX-Internal-Secret: CANARY\r\n\
                   X-Forwarded-For: CANARY\r\nConnection: x-hop, X-Client-Request-Id\r\nX-Hop: CANARY\r\n\
                   x-client-request-id: CANARY\r\nTE: trailers\r\nUpgrade: CANARY\r\nKeep-Alive: CANARY\r\n\
                   X-Goog-Api-Key: CANARY\r\nOpenAI-Organization: CANARY\r\nReferer: CANARY\r\n";
    let key = "secret-canary";
    for place in [
        format!("Authorization: Bearer {key}\r\n"),
        format!("AUTHORIZATION: bearer {key}\r\nauthorization: Bearer {key}\r\n"),
        format!("Api-Key: {key}\r\n"),
        format!("x-api-key: {key}\r\n"),
    ] {
        let path = format!("{CHAT_PATH}?api-key=CANARY&key={key}&beta=1");
        let answer = plane.ask(post(&path, &[place.as_str(), secrets].concat(), CHAT)).await;
        assert_eq!((answer.status, answer.attempts()), (200, "2"), "{answer:?}");
        assert!(!String::from_utf8_lossy(&answer.raw).contains("CANARY"), "{answer:?}");
    }
    for (upstream, own, other) in [(&first, "secret-k1", "secret-k2"), (&second, "secret-k2", "secret-k1")] {
        assert_eq!(upstream.count(), 4);
        for seen in upstream.seen() {
            let raw = String::from_utf8_lossy(&seen.raw).into_owned();
            assert!(!raw.to_lowercase().contains("canary") && !raw.contains(other), "{raw}");
            assert_eq!(seen.header("authorization"), Some(format!("Bearer {own}").as_str()));
            assert_eq!(seen.target(), "/v1/chat/completions?beta=1");
            for hop in ["te", "upgrade", "keep-alive", "proxy-authorization", "connection", "api-key", "x-api-key"] {
                assert_eq!(seen.header(hop), None, "{hop}: {raw}");
            }
        }
    }
    plane.stop().await;
}

#[tokio::test]
async fn f31_a_redirect_is_not_followed() {
    let other = Upstream::good().await;
    let location = format!("location: http://{}/v1/chat/completions\r\n", other.address);
    let upstream = Upstream::start(move |call: Call| {
        let location = location.clone();
        async move { call.answer(307, &location, "").await }
    })
    .await;
    let plane = Setup::m(&[upstream.address]).start().await;
    let answer = plane.ask(chat()).await;
    assert_eq!((answer.status, answer.header("location")), (503, None));
    assert_eq!((upstream.count(), other.count(), other.connections()), (1, 0, 0));
    plane.stop().await;
}

/// A body with every oddity that valid JSON has.
fn odd(model: &str) -> String {
    let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
    format!(
        " \r\n\t{{ {model} \"z\":1.0,\"seed\": 9007199254740993, \"logit_bias\": {{\"50256\": -1e-7}},\"x\":1E400,\
         \"t\":\"\\u00e9\\ud83d\\ude00\\u0000 é\",\"lone\":\"\\ud800\",\"dup\":1,\"dup\":2,\"\":{{\"\":null}},\
         \"deep\":{deep},\"messages\":[ ] , \"a\":1 }} \n"
    )
}

#[tokio::test]
async fn f33_bytes_are_equal_but_for_the_model() {
    let named = "\"model\" :  \"m\" ,";
    for (settings, sent, expected) in [
        ("", odd(named), odd(named)),
        ("model = \"m\"", odd(named), odd(named)),
        ("model = \"up-m\"", odd(named), odd("\"model\" :  \"up-m\" ,")),
    ] {
        let failing = Upstream::always(500, "", "{}").await;
        let good = Upstream::good().await;
        let plane = Setup::new()
            .model("m", "", &[])
            .deployment(&format!("http://{}", failing.address), &format!("priority = 0\n{settings}"))
            .deployment(&format!("http://{}", good.address), &format!("priority = 1\n{settings}"))
            .start()
            .await;
        let answer = plane.ask(post(CHAT_PATH, "", &sent)).await;
        assert_eq!((answer.status, answer.body.as_slice()), (200, ANSWER.as_bytes()));
        for upstream in [&failing, &good] {
            let seen = upstream.seen();
            assert_eq!(String::from_utf8_lossy(&seen[0].body), expected);
            assert!(!String::from_utf8_lossy(&seen[0].raw).to_lowercase().contains("seawall-"));
        }
        plane.stop().await;
    }
}

#[tokio::test]
async fn f33_what_would_be_read_in_two_ways_is_refused() {
    let upstream = Upstream::good().await;
    let plane = Setup::new().model("m", "", &[upstream.address]).model("n", "", &[upstream.address]).start().await;
    let deep = format!(r#"{{"model":"m","x":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    for (body, code) in [
        (deep.as_str(), "invalid_json"),
        (r#"{"model":"m","model":"n"}"#, "duplicate_member"),
        (r#"{"model":"m","Model":"n"}"#, "duplicate_member"),
        (r#"{"mod\u0065l":"m","model":"n"}"#, "duplicate_member"),
        (r#"{"model":"m""#, "invalid_json"),
        ("\u{feff}{\"model\":\"m\"}", "invalid_json"),
        ("", "invalid_json"),
        ("[]", "invalid_json"),
        (r#"{"model":7}"#, "invalid_type"),
        (r#"{"messages":[]}"#, "missing_model"),
    ] {
        let answer = plane.ask(post(CHAT_PATH, "", body)).await;
        assert_eq!((answer.status, answer.code().as_str()), (400, code), "{answer:?}");
    }
    assert_eq!(upstream.count(), 0);
    plane.stop().await;
}

#[tokio::test]
async fn f34_a_large_body_arrives_equal_on_both_attempts() {
    let failing = Upstream::always(503, "", "{}").await;
    let good = Upstream::good().await;
    let plane = Setup::new()
        .model("m", "", &[])
        .deployment(&format!("http://{}", failing.address), "priority = 0")
        .deployment(&format!("http://{}", good.address), "priority = 1")
        .server("max_body = \"8MiB\"")
        .start()
        .await;
    // The model stands after the image.
    let image: String = (0..8 * MIB - 1024).map(|at| char::from(b'A' + u8::try_from(at % 26).unwrap())).collect();
    let body = format!(r#"{{"messages":[{{"url":"data:{image}"}}],"model":"m"}}"#);
    for chunked in [false, true] {
        let answer = if chunked {
            let mut client = plane.client().await;
            client.send(head("transfer-encoding: chunked\r\n")).await;
            for piece in body.as_bytes().chunks(MIB - 7) {
                client.send(chunk(piece)).await;
            }
            client.send("0\r\n\r\n").await;
            client.response().await
        } else {
            plane.ask(post(CHAT_PATH, "", &body)).await
        };
        assert_eq!((answer.status, answer.attempts()), (200, "2"), "{answer:?}");
        for upstream in [&failing, &good] {
            let seen = upstream.seen();
            assert!(seen.last().unwrap().body == body.as_bytes(), "the bytes differ");
            assert_eq!(seen.last().unwrap().header("transfer-encoding"), None);
        }
    }
    plane.idle().await;
    assert_eq!(plane.app.bytes.used(), 0);
    plane.stop().await;
}

fn head(lines: &str) -> String {
    format!("POST {CHAT_PATH} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n{lines}\r\n")
}

#[tokio::test]
async fn f34_a_body_over_the_limit_is_refused_before_it_is_read() {
    let upstream = Upstream::good().await;
    let limit = 2 * MIB;
    let plane = Setup::m(&[upstream.address]).server("max_body = \"2MiB\"").start().await;
    // Not a byte of the body is sent, with Expect and without.
    for expect in ["", "expect: 100-continue\r\n"] {
        for length in [limit + 1, 4 * limit] {
            let mut client = plane.client().await;
            client.send(head(&format!("content-length: {length}\r\n{expect}"))).await;
            let answer = client.response().await;
            assert_eq!((answer.status, answer.code().as_str()), (413, "request_too_large"));
            assert!(answer.text().contains("2097152"), "the limit is named: {answer:?}");
            assert!(answer.raw.starts_with(b"HTTP/1.1 413"), "no 100 was sent");
        }
    }
    // With Expect and within the limit the 100 comes.
    let mut client = plane.client().await;
    client.send(head(&format!("content-length: {}\r\nexpect: 100-continue\r\n", CHAT.len()))).await;
    client.until(|bytes| bytes.starts_with(b"HTTP/1.1 100")).await;
    client.send(CHAT).await;
    assert_eq!(client.response().await.status, 200);
    assert_eq!(upstream.count(), 1);
    plane.stop().await;
}

#[tokio::test]
async fn f34_a_client_that_sends_it_all_before_it_reads_gets_its_413() {
    let upstream = Upstream::good().await;
    let plane = Setup::m(&[upstream.address]).server("max_body = \"1MiB\"").start().await;
    let body = format!(r#"{{"model":"m","x":"{}"}}"#, "y".repeat(4 * MIB));
    for _ in 0..5 {
        let mut client = plane.client().await;
        assert!(client.send(post(CHAT_PATH, "", &body)).await, "the whole body is taken");
        assert_eq!(client.response().await.status, 413);
        let mut client = plane.client().await;
        client.send(head("transfer-encoding: chunked\r\n")).await;
        for piece in body.as_bytes().chunks(64 * 1024) {
            assert!(client.send(chunk(piece)).await, "every chunk is taken");
        }
        client.send("0\r\n\r\n").await;
        assert_eq!(client.response().await.status, 413);
    }
    // The same for other refusals at the gate.
    for (path, headers, status) in [(CHAT_PATH, "content-encoding: gzip\r\n", 400), ("/v1/nothing", "", 404)] {
        let mut client = plane.client().await;
        let half = &body[..MIB - 100];
        assert!(client.send(post(path, headers, half)).await);
        assert_eq!(client.response().await.status, status);
    }
    assert_eq!(upstream.count(), 0);
    plane.stop().await;
}

#[tokio::test]
async fn f34_the_budget_of_bytes_refuses_what_does_not_fit() {
    let upstream = Upstream::good().await;
    let plane = Setup::m(&[upstream.address]).server("max_body = \"1MiB\"\nbuffered_bytes = \"2MiB\"").start().await;
    let body = format!(r#"{{"model":"m","x":"{}"}}"#, "y".repeat(MIB - 1024));
    let mut slow = Vec::new();
    for _ in 0..2 {
        let mut client = plane.client().await;
        client.send(head(&format!("content-length: {}\r\n", body.len()))).await;
        slow.push(client);
    }
    plane.until("both are reserved", |plane| plane.app.bytes.used() == 2 * body.len() as u64).await;
    for request in [
        post(CHAT_PATH, "", &body),
        [head("transfer-encoding: chunked\r\n").into_bytes(), chunk(&body), b"0\r\n\r\n".to_vec()].concat(),
    ] {
        let answer = plane.ask(request).await;
        assert_eq!((answer.status, answer.code().as_str()), (503, "memory_full"));
        assert!(plane.app.bytes.used() <= 2 * MIB as u64);
    }
    // What was reserved is kept for those who have it.
    for client in &mut slow {
        client.send(&body).await;
        assert_eq!(client.response().await.status, 200);
    }
    plane.idle().await;
    assert_eq!((plane.app.bytes.used(), upstream.count()), (0, 2));
    plane.stop().await;
}

#[tokio::test]
async fn f34_a_stalled_upload_is_ended_by_its_time() {
    let upstream = Upstream::good().await;
    let plane = Setup::m(&[upstream.address]).server("body_timeout = \"200ms\"").start().await;
    for lines in ["content-length: 1000\r\n", "transfer-encoding: chunked\r\n"] {
        let mut client = plane.client().await;
        client.send(head(lines)).await;
        client.send(chunk("{")).await;
        let answer = client.response().await;
        assert_eq!((answer.status, answer.code().as_str()), (408, "slow_upload"));
        client.closed().await;
    }
    assert_eq!((upstream.count(), plane.app.bytes.used()), (0, 0));
    plane.stop().await;
}

#[tokio::test]
async fn f34_large_answers_pass_in_one_piece_and_in_pieces() {
    for length in [1, 256 * 1024 - 1, 256 * 1024, 256 * 1024 + 1, 3 * MIB] {
        let whole: Vec<u8> = (0..length).map(|at| u8::try_from(at % 251).unwrap()).collect();
        let sent = whole.clone();
        let upstream = Upstream::start(move |mut call: Call| {
            let sent = sent.clone();
            async move {
                if call.number == 0 {
                    return call.json(200, "", sent).await;
                }
                call.send("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n")
                    .await;
                for piece in sent.chunks(100_000) {
                    call.chunk(piece).await;
                }
                call.send("0\r\n\r\n").await;
                call.keep()
            }
        })
        .await;
        let plane = Setup::m(&[upstream.address]).start().await;
        for _ in 0..2 {
            let answer = plane.ask(chat()).await;
            assert!(answer.body == whole && answer.end == End::Complete, "{length}");
        }
        plane.idle().await;
        assert_eq!((plane.outcomes("served"), upstream.connections()), (2, 1), "{length}");
        plane.stop().await;
    }
}

#[tokio::test]
async fn a_slow_reader_slows_its_upstream() {
    let stalled = std::sync::Arc::new(tokio::sync::Notify::new());
    let stall = std::sync::Arc::clone(&stalled);
    let upstream = Upstream::start(move |mut call: Call| {
        let stall = std::sync::Arc::clone(&stall);
        async move {
            call.send(crate::support::upstream::STREAM).await;
            let event = format!("data: {}\n\n", "x".repeat(64 * 1024));
            // More than all the buffers in between hold.
            for _ in 0..2_000 {
                if tokio::time::timeout(Duration::from_millis(300), call.chunk(&event)).await.is_err() {
                    stall.notify_one();
                    return call.hang().await;
                }
            }
            panic!("128 MB were read ahead of a client that reads nothing");
        }
    })
    .await;
    let plane = Setup::m(&[upstream.address]).start().await;
    let mut client = plane.client().await;
    client.send(crate::support::client::chat_stream()).await;
    client.events(1).await;
    crate::support::in_time("the upstream stalls", stalled.notified()).await;
    assert_eq!(plane.in_flight(), 1);
    drop(client);
    upstream.hung_up(1).await;
    plane.stop().await;
}

#[tokio::test]
async fn f18_the_usage_of_a_long_answer_is_read_as_it_passes() {
    let vectors = "0.5,".repeat(200_000);
    let body = format!(r#"{{"data":[{vectors}0],"usage":{{"prompt_tokens":7,"completion_tokens":3}}}}"#);
    let upstream = Upstream::start(move |call: Call| {
        let body = body.clone();
        async move { call.json(200, "", body).await }
    })
    .await;
    let plane = Setup::m(&[upstream.address]).start().await;
    assert_eq!(plane.ask(chat()).await.end, End::Complete);
    let log = plane.log(1).await;
    assert!(log.contains(r#""input_tokens":7,"output_tokens":3,"tokens_estimated":false"#), "{log}");
    plane.stop().await;
}
