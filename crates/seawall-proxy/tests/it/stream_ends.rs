//! How streams end: F16, F52, and the first event of F54.

use crate::silence::FAST;
use crate::streams::{five, let_pass};
use crate::support::client::{CHAT_PATH, CHAT_STREAM, End, chat, chat_stream, post};
use crate::support::plane::Setup;
use crate::support::upstream::{Call, DONE, FINISH, LAST_CHUNK, STREAM, Upstream, Wire, delta};
use std::time::Duration;
use tokio::time::Instant;

/// Ways in which an upstream dies after five deltas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Death {
    Reset,
    NoLastChunk,
    TooShort,
    InsideAnEvent,
    NoFinish,
    Error,
    ErrorAndDone,
}

async fn die(mut call: Call, death: Death) -> Option<Wire> {
    if death == Death::TooShort {
        call.send("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 100000\r\n\r\n").await;
        call.send(five()).await;
        return call.finish().await;
    }
    call.send(STREAM).await;
    call.chunk(five()).await;
    let_pass().await;
    match death {
        Death::Reset => return call.reset(),
        Death::NoLastChunk | Death::TooShort => {}
        Death::InsideAnEvent => call.chunk("data: {\"choi").await,
        Death::NoFinish => call.send(LAST_CHUNK).await,
        Death::Error => {
            call.chunk("data: {\"error\":{\"message\":\"boom\",\"code\":\"x\"}}\n\n").await;
            call.send(LAST_CHUNK).await;
        }
        Death::ErrorAndDone => {
            call.chunk(["data: {\"error\":{\"message\":\"boom\",\"code\":\"x\"}}\n\n", DONE].concat()).await;
            call.send(LAST_CHUNK).await;
        }
    }
    call.finish().await
}

#[tokio::test]
async fn f16_a_stream_that_dies_never_looks_complete() {
    for death in [Death::Reset, Death::NoLastChunk, Death::TooShort, Death::InsideAnEvent, Death::NoFinish] {
        let dying = Upstream::start(move |call| die(call, death)).await;
        let good = Upstream::good().await;
        let plane = Setup::new()
            .model("m", "", &[])
            .deployment(&format!("http://{}", dying.address), "priority = 0")
            .deployment(&format!("http://{}", good.address), "priority = 1")
            .start()
            .await;
        let mut client = plane.client().await;
        client.send(chat_stream()).await;
        let answer = client.response().await;
        let text = answer.text();
        assert!(text.starts_with(&five()), "{death:?}: {text}");
        let last = text.trim_end().rsplit("\n\n").next().unwrap().strip_prefix("data: ").unwrap();
        let event: serde_json::Value = serde_json::from_str(last).unwrap();
        assert_eq!(event["error"]["code"], "upstream_error", "{death:?}: {text}");
        assert!(event["error"]["type"].is_string() && event["error"]["message"].is_string());
        assert!(!text.contains("[DONE]"), "{death:?}: {text}");
        // The raw bytes end right after the chunk of the error event, without a last chunk.
        assert_eq!(answer.end, End::Broken, "{death:?}");
        assert!(answer.raw.ends_with(format!("data: {last}\n\n\r\n").as_bytes()), "{death:?}: {answer:?}");
        client.closed().await;
        plane.idle().await;
        assert_eq!((dying.count(), good.count()), (1, 0), "{death:?}");
        assert_eq!((plane.outcomes("truncated"), plane.outcomes("served")), (1, 0), "{death:?}");
        plane.stop().await;
    }
}

#[tokio::test]
async fn f16_an_error_in_the_stream_passes_unchanged_and_counts_as_a_failure() {
    for death in [Death::Error, Death::ErrorAndDone] {
        let dying = Upstream::start(move |call| die(call, death)).await;
        let plane = Setup::m(&[dying.address]).start().await;
        let answer = plane.ask(chat_stream()).await;
        let done = if death == Death::ErrorAndDone { DONE } else { "" };
        let expected = format!("{}data: {{\"error\":{{\"message\":\"boom\",\"code\":\"x\"}}}}\n\n{done}", five());
        assert_eq!(answer.text(), expected);
        plane.idle().await;
        assert_eq!((plane.outcomes("stream_error"), plane.outcomes("served")), (1, 0), "{death:?}");
        assert_eq!(plane.attempts("u1", "stream_error"), 1, "{death:?}");
        plane.stop().await;
    }
}

#[tokio::test]
async fn f16_a_long_answer_in_one_piece_that_breaks_off_is_no_whole_answer() {
    let piece = vec![b' '; 300 * 1024];
    let dying = Upstream::start(move |mut call: Call| {
        let piece = piece.clone();
        async move {
            call.send("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 900000\r\n\r\n").await;
            call.send(piece).await;
            call.finish().await
        }
    })
    .await;
    let plane = Setup::m(&[dying.address]).start().await;
    let answer = plane.ask(chat()).await;
    assert_eq!((answer.status, answer.end, answer.body.len()), (200, End::Broken, 300 * 1024));
    plane.idle().await;
    assert_eq!(plane.outcomes("truncated"), 1);
    plane.stop().await;
}

/// What an upstream does once it has told its reason to finish.
#[derive(Debug, Clone, Copy)]
enum Ending {
    EndOfBody,
    Heartbeats,
    CloseOfConnection,
    DoneAndOpen,
    DoneAndMore,
    TwiceDone,
}

async fn end(mut call: Call, ending: Ending) -> Option<Wire> {
    call.send(STREAM).await;
    call.chunk([five().as_str(), FINISH].concat()).await;
    match ending {
        Ending::EndOfBody => {}
        Ending::CloseOfConnection => return call.finish().await,
        Ending::Heartbeats => {
            // Three in each idle time.
            let mut beat = tokio::time::interval(Duration::from_millis(100));
            for _ in 0..50 {
                beat.tick().await;
                call.chunk(": hb\n\n").await;
            }
            return call.hang().await;
        }
        Ending::DoneAndOpen => {
            call.chunk(DONE).await;
            return call.hang().await;
        }
        Ending::DoneAndMore => call.chunk([DONE, &delta("more")].concat()).await,
        Ending::TwiceDone => call.chunk([DONE, DONE].concat()).await,
    }
    call.send(LAST_CHUNK).await;
    call.keep()
}

#[tokio::test]
async fn f52_what_ends_a_stream() {
    let plain = [five().as_str(), FINISH].concat();
    for (ending, expected, connections) in [
        // Nothing is made up: where the upstream sends no [DONE], the client gets none.
        (Ending::EndOfBody, plain.clone(), 1),
        (Ending::CloseOfConnection, plain.clone(), 2),
        (Ending::DoneAndOpen, [plain.as_str(), DONE].concat(), 2),
        (Ending::DoneAndMore, [plain.as_str(), DONE, &delta("more")].concat(), 1),
        (Ending::TwiceDone, [plain.as_str(), DONE, DONE].concat(), 1),
    ] {
        let upstream = Upstream::start(move |call| end(call, ending)).await;
        let plane = Setup::new().model("m", FAST, &[upstream.address]).start().await;
        for _ in 0..2 {
            let begun = Instant::now();
            let answer = plane.ask(chat_stream()).await;
            assert_eq!((answer.text(), answer.end), (expected.clone(), End::Complete), "{ending:?}");
            assert!(begun.elapsed() < Duration::from_secs(1), "{ending:?}");
            plane.idle().await;
        }
        assert_eq!(plane.outcomes("served"), 2, "{ending:?}");
        assert_eq!(upstream.connections(), connections, "{ending:?}");
        plane.stop().await;
    }
}

#[tokio::test]
async fn f52_heartbeats_after_the_reason_to_finish_do_not_hold_the_stream() {
    let upstream = Upstream::start(move |call| end(call, Ending::Heartbeats)).await;
    let plane = Setup::new().model("m", FAST, &[upstream.address]).start().await;
    let begun = Instant::now();
    let answer = plane.ask(chat_stream()).await;
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    assert_eq!(answer.end, End::Complete);
    let text = answer.text();
    let rest = text.strip_prefix(&[five().as_str(), FINISH].concat()).unwrap();
    assert!(rest.replace(": hb\n\n", "").is_empty(), "{rest}");
    plane.idle().await;
    assert_eq!(plane.outcomes("served"), 1);
    plane.stop().await;
}

#[tokio::test]
async fn f52_a_responses_stream_ends_with_its_own_last_event() {
    let stream = "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{}}\n\n\
                  event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"usage\":null}}\n\n";
    let upstream = Upstream::start(move |call: Call| call.stream(stream)).await;
    let plane = Setup::m(&[upstream.address]).start().await;
    let answer = plane.ask(post("/v1/responses", "", CHAT_STREAM)).await;
    assert_eq!((answer.text().as_str(), answer.end), (stream, End::Complete));
    plane.idle().await;
    assert_eq!(plane.outcomes("served"), 1);
    plane.stop().await;
}

#[tokio::test]
async fn f52_a_client_that_closes_at_done_has_its_whole_answer() {
    let upstream = Upstream::start(|mut call: Call| async move {
        call.send(STREAM).await;
        call.chunk([&delta("x"), FINISH, DONE].concat()).await;
        call.hang().await
    })
    .await;
    let plane = Setup::m(&[upstream.address]).start().await;
    let mut client = plane.client().await;
    client.send(chat_stream()).await;
    client.until(|bytes| bytes.windows(DONE.len()).any(|window| window == DONE.as_bytes())).await;
    drop(client);
    plane.idle().await;
    assert_eq!((plane.outcomes("served"), plane.outcomes("client_gone")), (1, 0));
    assert_eq!(plane.attempts("u1", "completed"), 1);
    plane.stop().await;
}

#[tokio::test]
async fn f54_a_client_s_mistake_told_as_a_stream_s_first_event_is_a_json_error() {
    let own = r#"{"error":{"code":"content_filter","message":"no","innererror":{"x":1.0}}}"#;
    let flat = r#"{"type":"error","code":"context_length_exceeded","message":"too long","param":null}"#;
    let cases = [
        (CHAT_PATH, format!(": hi\n\ndata: {own}\n\n{DONE}"), Some(own), "content_filter"),
        (
            CHAT_PATH,
            "data: {\"error\":\ndata: {\"code\":\"invalid\",\"message\":\"m\"}}\r\n\r\n".to_owned(),
            None,
            "invalid",
        ),
        ("/v1/responses", format!("event: error\ndata: {flat}\n\n"), None, "context_length_exceeded"),
    ];
    for (path, events, exact, code) in cases {
        let upstream = Upstream::start(move |call: Call| {
            let events = events.clone();
            async move { call.stream(events).await }
        })
        .await;
        let plane = Setup::m(&[upstream.address]).start().await;
        let answer = plane.ask(post(path, "", CHAT_STREAM)).await;
        assert_eq!((answer.status, answer.outcome()), (400, "client_error"), "{answer:?}");
        assert_eq!(answer.header("content-type"), Some("application/json"), "{answer:?}");
        assert_eq!(answer.code(), code, "{answer:?}");
        if let Some(exact) = exact {
            assert_eq!(answer.text(), exact);
        }
        assert_eq!(plane.deployment("u1").health, "healthy");
        plane.stop().await;
    }
}
