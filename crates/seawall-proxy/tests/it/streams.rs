//! Streams, byte by byte: F04, F05, F14, F16, F43, F52.

use crate::support::client::{CHAT_PATH, CHAT_STREAM, Client, End, chat, chat_stream, post};
use crate::support::plane::{Plane, Setup};
use crate::support::upstream::{Call, DONE, FINISH, LAST_CHUNK, STREAM, Upstream, Wire, delta};
use std::time::Duration;
use tokio::time::Instant;

/// Five deltas.
fn five() -> String {
    (0..5).map(|number| delta(&format!("é好🙂 {number}"))).collect()
}

/// How a client leaves.
#[derive(Debug, Clone, Copy)]
enum Leave {
    Reset,
    Finish,
}

impl Leave {
    fn leave(self, client: Client) {
        match self {
            Self::Reset => client.reset(),
            Self::Finish => drop(client),
        }
    }
}

async fn nothing_is_left(plane: Plane, upstream: &Upstream, begun: Instant) {
    upstream.hung_up(1).await;
    plane.idle().await;
    assert!(begun.elapsed() < Duration::from_millis(500), "{:?}", begun.elapsed());
    assert_eq!(upstream.count(), 1);
    assert_eq!((plane.attempts("u1", "client_gone"), plane.outcomes("client_gone")), (1, 1));
    assert_eq!(plane.deployment("u1").health, "healthy");
    plane.stop().await;
}

#[tokio::test]
async fn f04_a_client_that_leaves_in_mid_stream_frees_its_upstream() {
    for leave in [Leave::Reset, Leave::Finish] {
        let upstream = Upstream::start(|mut call: Call| async move {
            call.send(STREAM).await;
            call.chunk(five()).await;
            call.hang().await
        })
        .await;
        let plane = Setup::m(&[upstream.address]).start().await;
        let mut client = plane.client().await;
        client.send(chat_stream()).await;
        client.events(5).await;
        assert_eq!(plane.deployment("u1").in_flight, 1);
        let begun = Instant::now();
        leave.leave(client);
        nothing_is_left(plane, &upstream, begun).await;
    }
}

#[tokio::test]
async fn f04_a_client_that_leaves_before_the_first_byte_frees_its_upstream() {
    for (leave, request) in [
        (Leave::Reset, chat_stream()),
        (Leave::Finish, chat_stream()),
        (Leave::Reset, chat()),
        (Leave::Finish, chat()),
    ] {
        let upstream = Upstream::start(Call::hang).await;
        let plane = Setup::m(&[upstream.address]).start().await;
        let mut client = plane.client().await;
        client.send(request).await;
        upstream.called(1).await;
        let begun = Instant::now();
        leave.leave(client);
        nothing_is_left(plane, &upstream, begun).await;
    }
}

/// Sends the two parts of a stream so that they arrive apart.
async fn in_two(mut call: Call, stream: Vec<u8>, at: usize) -> Option<Wire> {
    call.send(STREAM).await;
    for part in [&stream[..at], &stream[at..]] {
        if !part.is_empty() {
            call.chunk(part).await;
        }
        let_pass().await;
    }
    call.send(LAST_CHUNK).await;
    call.keep()
}

/// Lets everything that is ready run, sockets included.
pub(crate) async fn let_pass() {
    for _ in 0..8 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn f05_a_character_may_be_cut_anywhere() {
    let stream = [five(), FINISH.to_owned(), DONE.to_owned()].concat().into_bytes();
    let sent = stream.clone();
    let upstream = Upstream::start(move |call: Call| {
        let at = call.number.min(sent.len());
        in_two(call, sent.clone(), at)
    })
    .await;
    let plane = Setup::m(&[upstream.address]).start().await;
    let mut client = plane.client().await;
    for at in 0..=stream.len() {
        client.send(chat_stream()).await;
        let answer = client.response().await;
        assert!(answer.body == stream && answer.end == End::Complete, "cut at {at}: {}", answer.text());
    }
    plane.stop().await;
}

#[tokio::test]
async fn f05_and_f43_a_byte_a_chunk_arrives_as_it_was_sent() {
    let stream = format!(
        "\u{feff}: hello\r\n\r\n{}: X PROCESSING\n\nevent: x\nid: 1\nretry: 10\n{FINISH}\r\n{DONE}",
        five().replace("\n\n", "\r\r")
    );
    let sent = stream.clone();
    let upstream = Upstream::start(move |mut call: Call| {
        let sent = sent.clone();
        async move {
            call.send(STREAM).await;
            for byte in sent.as_bytes() {
                call.chunk([*byte]).await;
                tokio::task::yield_now().await;
            }
            call.send(LAST_CHUNK).await;
            call.keep()
        }
    })
    .await;
    let plane = Setup::m(&[upstream.address]).start().await;
    let answer = plane.ask(chat_stream()).await;
    assert_eq!((answer.text(), answer.end), (stream, End::Complete));
    plane.idle().await;
    assert_eq!(plane.outcomes("served"), 1);
    plane.stop().await;
}

#[tokio::test]
async fn f43_each_event_is_forwarded_when_it_ends() {
    let (step, _) = tokio::sync::watch::channel(0_usize);
    let steps = step.clone();
    let upstream = Upstream::start(move |mut call: Call| {
        let mut steps = steps.subscribe();
        async move {
            call.send(STREAM).await;
            for number in 0..5 {
                call.chunk(format!("data: {number}\r\n\r\n")).await;
                steps.wait_for(|reached| *reached > number).await.unwrap();
            }
            call.chunk(DONE).await;
            call.send(LAST_CHUNK).await;
            call.keep()
        }
    })
    .await;
    let plane = Setup::m(&[upstream.address]).start().await;
    let mut client = plane.client().await;
    client.send(chat_stream()).await;
    for number in 0..5 {
        let wanted = format!("data: {number}\r\n\r\n").into_bytes();
        client.until(|bytes| bytes.windows(wanted.len()).any(|window| window == wanted)).await;
        step.send_modify(|reached| *reached += 1);
    }
    assert_eq!(client.response().await.end, End::Complete);
    plane.stop().await;
}

const FAST: &str = "[models.timeouts]\nfirst_byte = \"300ms\"\nconnect = \"300ms\"\nidle = \"300ms\"";

#[tokio::test]
async fn f14_silence_from_byte_one_ends_in_time() {
    for request in [chat_stream(), chat()] {
        let upstream = Upstream::start(Call::hang).await;
        let plane = Setup::new().model("m", FAST, &[upstream.address]).start().await;
        let begun = Instant::now();
        let answer = plane.ask(request).await;
        let took = begun.elapsed();
        assert_eq!((answer.status, answer.outcome()), (504, "upstream_timeout"));
        assert!(took >= Duration::from_millis(300) && took < Duration::from_secs(2), "{took:?}");
        upstream.hung_up(1).await;
        plane.stop().await;
    }
}

/// What a silent upstream says before it falls silent.
async fn silent_after(words: &'static str) -> (Upstream, Upstream) {
    let silent = Upstream::start(move |mut call: Call| async move {
        call.send(words).await;
        call.hang().await
    })
    .await;
    (silent, Upstream::good().await)
}

#[tokio::test]
async fn f14_another_deployment_serves_while_nothing_but_comments_came() {
    let comments = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n\
                    8\r\n: ping\n\n\r\n8\r\n: ping\n\n\r\n";
    for (words, request) in [("", chat_stream()), ("", chat()), (STREAM, chat_stream()), (comments, chat_stream())] {
        let (silent, good) = silent_after(words).await;
        let plane = Setup::new()
            .model("m", FAST, &[])
            .deployment(&format!("http://{}", silent.address), "priority = 0")
            .deployment(&format!("http://{}", good.address), "priority = 1")
            .start()
            .await;
        let begun = Instant::now();
        let answer = plane.ask(request).await;
        assert_eq!((answer.status, answer.attempts()), (200, "2"), "{words:?} {answer:?}");
        assert!(begun.elapsed() < Duration::from_secs(2));
        silent.hung_up(1).await;
        assert_eq!((silent.count(), good.count()), (1, 1));
        plane.stop().await;
    }
}

#[tokio::test]
async fn f14_a_handshake_that_never_ends_is_bounded_by_itself() {
    // Its backlog is full and nobody accepts.
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&"127.0.0.1:0".parse::<std::net::SocketAddr>().unwrap().into()).unwrap();
    socket.listen(0).unwrap();
    let address = socket.local_addr().unwrap().as_socket().unwrap();
    let mut held = Vec::new();
    while let Ok(Ok(stream)) =
        tokio::time::timeout(Duration::from_millis(100), tokio::net::TcpStream::connect(address)).await
    {
        held.push(stream);
    }
    let good = Upstream::good().await;
    let timeouts = "[models.timeouts]\nconnect = \"300ms\"";
    let plane = Setup::new()
        .model("m", timeouts, &[])
        .deployment(&format!("http://{address}"), "priority = 0")
        .deployment(&format!("http://{}", good.address), "priority = 1")
        .start()
        .await;
    let begun = Instant::now();
    let answer = plane.ask(chat_stream()).await;
    assert_eq!((answer.status, answer.attempts()), (200, "2"));
    assert!(begun.elapsed() >= Duration::from_millis(300) && begun.elapsed() < Duration::from_secs(2));
    assert_eq!(plane.attempts("u1", "not_sent"), 1);
    plane.stop().await;
}

#[tokio::test]
async fn f14_a_slow_answer_in_one_piece_is_bounded_between_its_pieces() {
    // Six pieces, each within the idle time, together longer than the time for the first byte.
    let slow = Upstream::start(|mut call: Call| async move {
        call.send("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 12\r\n\r\n").await;
        let mut beat = tokio::time::interval(Duration::from_millis(100));
        for _ in 0..6 {
            beat.tick().await;
            call.send("[]").await;
        }
        call.keep()
    })
    .await;
    let plane = Setup::new().model("m", FAST, &[slow.address]).start().await;
    let answer = plane.ask(chat()).await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "[][][][][][]"), "{answer:?}");
    plane.stop().await;
    // The first piece and then silence.
    let (silent, good) = silent_after("HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n[").await;
    let slow_first_byte = "[models.timeouts]\nfirst_byte = \"60s\"\nidle = \"200ms\"";
    let plane = Setup::new()
        .model("m", slow_first_byte, &[])
        .deployment(&format!("http://{}", silent.address), "priority = 0")
        .deployment(&format!("http://{}", good.address), "priority = 1")
        .start()
        .await;
    let answer = plane.ask(chat()).await;
    assert_eq!((answer.status, answer.attempts()), (200, "2"));
    plane.stop().await;
}

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
        (CHAT_PATH, "data: {\"error\":\ndata: {\"code\":\"invalid\",\"message\":\"m\"}}\r\n\r\n".to_owned(), None, "invalid"),
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
