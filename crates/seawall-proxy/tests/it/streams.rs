//! Streams, byte by byte, and clients that leave them: F04, F05, F43.

use crate::support::client::{Client, End, chat, chat_stream};
use crate::support::plane::{Plane, Setup};
use crate::support::upstream::{Call, DONE, FINISH, LAST_CHUNK, STREAM, Upstream, Wire, delta};
use std::time::Duration;
use tokio::time::Instant;

/// Five deltas.
pub(crate) fn five() -> String {
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
    for (leave, request) in
        [(Leave::Reset, chat_stream()), (Leave::Finish, chat_stream()), (Leave::Reset, chat()), (Leave::Finish, chat())]
    {
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
