//! Connections on both sides: F20, F63, early answers, the bound on connections.

use crate::support::chunk;
use crate::support::client::{CHAT_PATH, Client, chat, chat_stream, chat_stream_of, post};
use crate::support::plane::Setup;
use crate::support::upstream::{ANSWER, Call, STREAM, Upstream, delta};
use std::time::Duration;
use tokio::time::Instant;

/// How an upstream treats a connection after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum After {
    /// Closes it at once, without a word.
    Finish,
    /// Resets it when the next request comes.
    ResetOnWrite,
    /// Closes it when the next request comes.
    FinishOnWrite,
    /// Says that it will close it, and does not.
    SaysClose,
    /// Says that it keeps it for one second, and resets it when a request comes later than half of that.
    SaysOneSecond,
}

async fn serve(mut call: Call, after: After) -> Option<crate::support::upstream::Wire> {
    if call.on_connection > 0 {
        match after {
            After::ResetOnWrite | After::SaysClose => return call.reset(),
            After::FinishOnWrite => return call.finish().await,
            After::Finish | After::SaysOneSecond => {}
        }
    }
    let line = match after {
        After::SaysClose => "Connection: Keep-Alive, Close\r\n",
        After::SaysOneSecond => "Keep-Alive: timeout=1, max=100\r\n",
        After::Finish | After::ResetOnWrite | After::FinishOnWrite => "",
    };
    if after == After::Finish {
        let length = ANSWER.len();
        call.send(format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{ANSWER}")).await;
        return call.finish().await;
    }
    call.json(200, line, ANSWER).await
}

#[tokio::test]
async fn f20_an_upstream_that_closes_a_reused_connection_costs_no_request() {
    for after in [After::Finish, After::ResetOnWrite, After::FinishOnWrite, After::SaysClose, After::SaysOneSecond] {
        let upstream = Upstream::start(move |call| serve(call, after)).await;
        let plane = Setup::m(&[upstream.address]).start().await;
        let mut client = plane.client().await;
        let begun = Instant::now();
        for number in 0..50 {
            client.send(post(CHAT_PATH, &format!("x-client-request-id: {number}.\r\n"), r#"{"model":"m"}"#)).await;
            let answer = client.response().await;
            assert_eq!(answer.status, 200, "{after:?} {number}: {answer:?}");
        }
        assert!(begun.elapsed() < Duration::from_secs(5), "{after:?}: {:?}", begun.elapsed());
        for number in 0..50 {
            let id = format!("{number}.");
            let seen = upstream.seen();
            let same: Vec<_> = seen.iter().filter(|seen| seen.header("x-client-request-id") == Some(&id)).collect();
            assert!(same.len() <= 2, "{after:?}: request {number} came {} times", same.len());
            assert!(same.len() < 2 || same[0].connection != same[1].connection, "{after:?}: on a fresh connection");
        }
        if after == After::SaysClose {
            assert_eq!(upstream.count(), 50, "what says that it closes is not used again");
        }
        if after == After::SaysOneSecond {
            assert_eq!(upstream.connections(), 1);
        }
        let view = plane.deployment("u1");
        assert_eq!((view.health, view.share_percent), ("healthy", 100), "{after:?}");
        assert_eq!((plane.attempts("u1", "failed"), plane.outcomes("served")), (0, 50), "{after:?}");
        plane.stop().await;
    }
}

#[tokio::test]
async fn f20_an_answer_that_has_begun_is_never_asked_for_again() {
    let upstream = Upstream::start(|mut call: Call| async move {
        if call.on_connection == 0 {
            return call.good().await;
        }
        call.send("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{").await;
        call.reset()
    })
    .await;
    let plane = Setup::m(&[upstream.address]).start().await;
    assert_eq!(plane.ask(chat()).await.status, 200);
    let answer = plane.ask(chat()).await;
    assert_eq!((answer.status, answer.outcome(), answer.attempts()), (503, "upstream_error", "1"));
    assert_eq!(upstream.count(), 2);
    plane.stop().await;
}

#[tokio::test]
async fn an_early_answer_with_the_body_unread_neither_hangs_nor_poisons_the_next_request() {
    let bodies = ["x", "y"].map(|pad| format!(r#"{{"model":"m","pad":"{}"}}"#, pad.repeat(8 << 20)));
    for status in [413, 200, 503] {
        let upstream = Upstream::at_head(move |mut call: Call| async move {
            let length = ANSWER.len();
            call.send(format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n\r\n{ANSWER}")).await;
            // It keeps the connection, and reads nothing more.
            std::future::pending().await
        })
        .await;
        let plane = Setup::m(&[upstream.address]).start().await;
        for body in &bodies {
            let begun = Instant::now();
            let answer = plane.ask(post(CHAT_PATH, "", body)).await;
            assert_eq!(answer.status, status, "{answer:?}");
            assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
        }
        plane.stop().await;
    }
}

#[tokio::test]
async fn a_chunked_refusal_leaves_its_connection_usable() {
    let upstream = Upstream::start(|mut call: Call| async move {
        call.send("HTTP/1.1 404 X\r\ntransfer-encoding: chunked\r\n\r\n").await;
        call.send([chunk(r#"{"error":{}}"#), b"0\r\n\r\n".to_vec()].concat()).await;
        call.keep()
    })
    .await;
    let plane = Setup::m(&[upstream.address]).start().await;
    for _ in 0..5 {
        let answer = plane.ask(chat()).await;
        assert_eq!((answer.status, answer.text().as_str()), (404, r#"{"error":{}}"#));
    }
    assert_eq!(upstream.connections(), 1);
    plane.stop().await;
}

#[tokio::test]
async fn f63_idle_connections_hold_nothing() {
    let upstream = Upstream::start(|mut call: Call| async move {
        if call.number < 50 {
            return call.good().await;
        }
        call.send(STREAM).await;
        call.chunk(delta("x")).await;
        call.hang().await
    })
    .await;
    let plane = Setup::new()
        .model("m", "", &[])
        .deployment(&format!("http://{}", upstream.address), "capacity = { standard = 10 }")
        .start()
        .await;
    let mut idle = Vec::new();
    for _ in 0..50 {
        let mut client = plane.client().await;
        client.send(chat()).await;
        assert_eq!(client.response().await.status, 200);
        idle.push(client);
    }
    assert_eq!((plane.in_flight(), plane.app.connections.open()), (0, 50));
    // The told size can be used in full, and not more.
    let mut running = Vec::new();
    for _ in 0..10 {
        let mut client = plane.client().await;
        client.send(chat_stream()).await;
        client.events(1).await;
        running.push(client);
    }
    let mut eleventh = plane.client().await;
    eleventh.send(chat_stream()).await;
    plane.until("the eleventh waits", |plane| plane.waiting() == 1).await;
    assert_eq!(plane.in_flight(), 10);
    drop(running);
    eleventh.events(1).await;
    drop(eleventh);
    plane.stop().await;
}

#[tokio::test]
async fn f63_half_a_head_is_ended_by_its_time() {
    let upstream = Upstream::good().await;
    let plane = Setup::m(&[upstream.address]).server("header_timeout = \"300ms\"").start().await;
    let halves: [&[u8]; 6] = [
        b"",
        b"P",
        b"PRI * HTTP/2.0\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\nx: ",
        b"\r\n",
    ];
    let mut clients = Vec::new();
    for number in 0..120 {
        let mut client = plane.client().await;
        client.send(halves[number % halves.len()]).await;
        clients.push(client);
    }
    // Meanwhile others are served.
    assert_eq!(plane.ask(chat()).await.status, 200);
    plane.until("all ended", |plane| plane.app.connections.open() == 0).await;
    assert_eq!((plane.in_flight(), upstream.count()), (0, 1));
    plane.stop().await;
}

/// A small generator: the points of abortion only have to differ.
struct Lcg(u64);

impl Lcg {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

#[tokio::test]
async fn f63_three_hundred_aborted_requests_leave_every_permit() {
    let upstream = Upstream::start(|mut call: Call| async move {
        match call.number % 6 {
            0 => call.hang().await,
            1 => {
                call.send(STREAM).await;
                call.hang().await
            }
            2 => {
                call.send(STREAM).await;
                call.chunk(delta("x")).await;
                call.hang().await
            }
            3 => call.reset(),
            4 => call.json(429, "retry-after-ms: 20\r\n", "{}").await,
            _ => call.good().await,
        }
    })
    .await;
    let plane = Setup::new()
        .model("m", "[models.ejection]\nconsecutive_failures = 1000\nminimum_outcomes = 1000", &[])
        .deployment(&format!("http://{}", upstream.address), "capacity = { standard = 4 }")
        .start()
        .await;
    let mut random = Lcg(7);
    let mut open: Vec<Client> = Vec::new();
    for _ in 0..300 {
        let mut client = plane.client().await;
        let request = chat_stream();
        // Some stop in the middle of their own request.
        let cut = if random.below(5) == 0 { usize::try_from(random.below(200)).unwrap() } else { request.len() };
        client.send(&request[..cut.min(request.len())]).await;
        for _ in 0..random.below(30) {
            tokio::task::yield_now().await;
        }
        open.push(client);
        while open.len() > usize::try_from(random.below(12)).unwrap() {
            let client = open.swap_remove(usize::try_from(random.below(open.len() as u64)).unwrap());
            if random.below(2) == 0 {
                client.reset();
            }
        }
    }
    drop(open);
    plane.idle().await;
    // Answers that came when their clients had left are kept for ten seconds.
    plane.until("nothing is held", |plane| plane.app.bytes.used() == 0).await;
    plane.until("no connection is left", |plane| plane.app.connections.open() == 0).await;
    plane.stop().await;
}

#[tokio::test]
async fn f63_aborted_requests_leave_the_told_size_in_full() {
    let upstream = Upstream::start(|mut call: Call| async move {
        call.send(STREAM).await;
        call.chunk(delta("x")).await;
        call.hang().await
    })
    .await;
    // What the last of them have left runs on while others wait for its place, until it falls silent.
    let plane = Setup::new()
        .model("m", "[models.timeouts]\nidle = \"5s\"", &[])
        .deployment(&format!("http://{}", upstream.address), "capacity = { standard = 4 }")
        .start()
        .await;
    for round in 0..25 {
        let mut clients = Vec::new();
        for _ in 0..12 {
            let mut client = plane.client().await;
            client.send(chat_stream()).await;
            clients.push(client);
        }
        if round % 2 == 0 {
            plane.until("four run and eight wait", |plane| (plane.in_flight(), plane.waiting()) == (4, 8)).await;
        }
        drop(clients);
    }
    plane.idle().await;
    let mut clients = Vec::new();
    for number in 0..5 {
        let mut client = plane.client().await;
        client.send(chat_stream_of(number)).await;
        clients.push(client);
    }
    plane.until("four run and one waits", |plane| (plane.in_flight(), plane.waiting()) == (4, 1)).await;
    drop(clients);
    plane.stop().await;
}

#[tokio::test]
async fn a_connection_beyond_the_bound_is_told_so_in_the_contract_s_form() {
    let upstream = Upstream::good().await;
    let plane = Setup::m(&[upstream.address]).server("max_connections = 2").start().await;
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut client = plane.client().await;
        client.send(chat()).await;
        assert_eq!(client.response().await.status, 200);
        held.push(client);
    }
    for _ in 0..5 {
        let answer = plane.ask(chat()).await;
        assert_eq!((answer.status, answer.code().as_str(), answer.attempts()), (503, "too_many_connections", "0"));
        assert_eq!(answer.outcome(), "memory_full");
    }
    drop(held);
    plane.until("room again", |plane| plane.app.connections.open() == 0).await;
    assert_eq!(plane.ask(chat()).await.status, 200);
    plane.stop().await;
}
