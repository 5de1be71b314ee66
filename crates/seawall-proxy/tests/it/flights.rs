//! Repeats join the work that is under way, and what a client has left is there when it comes back: F07.

use crate::streams::five;
use crate::support::client::{CHAT, CHAT_PATH, CHAT_STREAM, Client, End, Response, post};
use crate::support::plane::{Plane, Setup};
use crate::support::upstream::{ANSWER, Call, DONE, FINISH, LAST_CHUNK, STREAM, Upstream, delta};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// A client's first attempt, and its second.
pub(crate) const FIRST: &str = "x-stainless-retry-count: 0\r\n";
pub(crate) const AGAIN: &str = "x-stainless-retry-count: 1\r\n";

pub(crate) fn ask(headers: &str, body: &str) -> Vec<u8> {
    post(CHAT_PATH, headers, body)
}

/// Answers when the test says so: in one piece, or in a stream whose first events come at once.
pub(crate) async fn held(open: &watch::Sender<bool>) -> Upstream {
    let open = open.clone();
    Upstream::start(move |mut call: Call| {
        let mut opened = open.subscribe();
        async move {
            let is_stream = String::from_utf8_lossy(&call.seen.body).contains("\"stream\":true");
            if !is_stream {
                opened.wait_for(|open| *open).await.unwrap();
                return call.good().await;
            }
            call.send(STREAM).await;
            call.chunk(five()).await;
            opened.wait_for(|open| *open).await.unwrap();
            for number in 0..20 {
                call.chunk(delta(&number.to_string())).await;
            }
            call.chunk([FINISH, DONE].concat()).await;
            call.send(LAST_CHUNK).await;
            call.keep()
        }
    })
    .await
}

/// The stream of [`held`].
fn stream() -> String {
    let rest: String = (0..20).map(|number| delta(&number.to_string())).collect();
    [five(), rest, FINISH.to_owned(), DONE.to_owned()].concat()
}

/// So many clients on connections of their own, which have sent this.
async fn clients(plane: &Plane, count: usize, request: &[u8]) -> Vec<Client> {
    let mut clients = Vec::with_capacity(count);
    for _ in 0..count {
        let mut client = plane.client().await;
        client.send(request).await;
        clients.push(client);
    }
    clients
}

fn joined(plane: &Plane) -> u64 {
    plane.metric("seawall_joined_total{", &[])
}

/// Requests that the engine knows.
pub(crate) async fn known(plane: &Plane, count: usize) {
    plane.until("the engine knows them", |plane| plane.app.driver.live() == count).await;
}

pub(crate) fn is_whole(answer: &Response, body: &str) {
    assert_eq!((answer.status, answer.attempts(), answer.end), (200, "1", End::Complete), "{answer:?}");
    assert!(answer.text() == body, "{answer:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f07_a_thousand_recognised_repeats_are_one_run_and_get_one_answer() {
    for (body, answer) in [(CHAT, ANSWER.to_owned()), (CHAT_STREAM, stream())] {
        let open = watch::Sender::new(false);
        let upstream = held(&open).await;
        let plane = Setup::m(&[upstream.address]).start().await;
        let mut all = clients(&plane, 1, &ask(FIRST, body)).await;
        upstream.called(1).await;
        // The order of members and white space are no difference.
        let stream = if body == CHAT { "" } else { r#""stream" : true,"# };
        let other = format!(r#"{{ "messages": [ {{"content":"hi","role":"user"}} ], {stream} "model" :"m" }}"#);
        all.extend(clients(&plane, 499, &ask(AGAIN, body)).await);
        all.extend(clients(&plane, 500, &ask(AGAIN, &other)).await);
        known(&plane, 1_000).await;
        assert_eq!((upstream.count(), plane.in_flight(), plane.waiting()), (1, 1, 0));
        open.send_replace(true);
        for client in &mut all {
            is_whole(&client.response().await, &answer);
        }
        plane.idle().await;
        assert_eq!((upstream.count(), plane.outcomes("served"), joined(&plane)), (1, 1_000, 999));
        assert_eq!(plane.metric("seawall_attempts_total{", &[]), 1);
        assert_eq!(plane.app.bytes.used(), 0);
        plane.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f07_a_thousand_unmarked_requests_that_are_the_same_are_a_thousand_runs() {
    let open = watch::Sender::new(false);
    let upstream = held(&open).await;
    // A thousand at once with no answer: no window of a new deployment is so large.
    let unbounded = "discovery = \"ceiling\"";
    let plane = Setup::new().model("m", unbounded, &[upstream.address]).start().await;
    let mut all = clients(&plane, 1_000, &ask("", CHAT)).await;
    upstream.called(1_000).await;
    open.send_replace(true);
    for client in &mut all {
        is_whole(&client.response().await, ANSWER);
    }
    assert_eq!((upstream.count(), joined(&plane)), (1_000, 0));
    plane.stop().await;
}

#[tokio::test]
async fn f07_who_joins_gets_its_whole_answer_when_the_first_leaves() {
    // Before the answer begins, and in the middle of it.
    for body in [CHAT, CHAT_STREAM] {
        let open = watch::Sender::new(false);
        let upstream = held(&open).await;
        let plane = Setup::m(&[upstream.address]).start().await;
        let mut first = plane.client().await;
        first.send(ask(FIRST, body)).await;
        upstream.called(1).await;
        let mut others = clients(&plane, 3, &ask(AGAIN, body)).await;
        known(&plane, 4).await;
        if body == CHAT_STREAM {
            first.events(5).await;
        }
        first.reset();
        known(&plane, 3).await;
        others.pop().unwrap().reset();
        known(&plane, 2).await;
        open.send_replace(true);
        let answer = if body == CHAT { ANSWER.to_owned() } else { stream() };
        for client in &mut others {
            is_whole(&client.response().await, &answer);
        }
        plane.idle().await;
        assert_eq!((upstream.count(), plane.outcomes("client_gone"), plane.outcomes("served")), (1, 2, 2));
        let log = plane.log(4).await;
        let lines: Vec<serde_json::Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let names: Vec<_> = lines.iter().filter(|line| line.get("joined").is_none()).collect();
        assert_eq!((names.len(), &names[0]["outcome"]), (1, &"client_gone".into()), "{log}");
        assert_eq!(lines.iter().filter(|line| line["joined"] == names[0]["request_id"]).count(), 3, "{log}");
        plane.stop().await;
    }
}

#[tokio::test]
async fn f07_a_client_that_times_out_and_asks_again_has_its_work_done_once() {
    for has_ended in [false, true] {
        let open = watch::Sender::new(false);
        let upstream = held(&open).await;
        let plane = Setup::m(&[upstream.address]).start().await;
        let mut first = plane.client().await;
        first.send(ask(FIRST, CHAT)).await;
        upstream.called(1).await;
        first.reset();
        known(&plane, 0).await;
        assert_eq!(plane.in_flight(), 1, "it goes on for its return");
        if has_ended {
            open.send_replace(true);
            plane.until("it ends", |plane| plane.in_flight() == 0).await;
            assert_eq!((plane.metric("seawall_flights_kept", &[]), plane.attempts("u1", "completed")), (1, 1));
        }
        let mut again = plane.client().await;
        again.send(ask(AGAIN, CHAT)).await;
        if !has_ended {
            known(&plane, 1).await;
            open.send_replace(true);
        }
        is_whole(&again.response().await, ANSWER);
        assert_eq!((upstream.count(), joined(&plane)), (1, 1));
        assert_eq!(plane.metric("seawall_tokens_total{", &[("kind", "output")]), 1, "they are counted once");
        plane.stop().await;
    }
}

#[tokio::test]
async fn f07_what_nobody_comes_back_for_is_closed_after_the_hold() {
    let upstream = Upstream::start(Call::hang).await;
    let plane = Setup::m(&[upstream.address]).start().await;
    let mut first = plane.client().await;
    first.send(ask(FIRST, CHAT)).await;
    upstream.called(1).await;
    let begun = Instant::now();
    first.reset();
    upstream.hung_up(1).await;
    let held = begun.elapsed();
    assert!(held >= Duration::from_secs(3) && held < Duration::from_millis(3_500), "{held:?}");
    plane.idle().await;
    assert_eq!((plane.attempts("u1", "client_gone"), plane.outcomes("client_gone")), (1, 1));
    plane.stop().await;
}

#[tokio::test]
async fn f07_another_tenant_another_key_and_another_body_never_join() {
    let open = watch::Sender::new(false);
    let upstream = held(&open).await;
    let plane = Setup::m(&[upstream.address]).tenant("red", "").tenant("blue", "").start().await;
    let mut all = Vec::new();
    for (number, (key, headers, body)) in [
        ("secret-red", "", CHAT.to_owned()),
        ("secret-blue", "", CHAT.to_owned()),
        ("secret-red", "openai-beta: x\r\n", CHAT.to_owned()),
        ("secret-red", "", CHAT.replace("hi", "ho")),
        ("secret-red", "", CHAT.replace("hi", "h\\u0069")),
        ("secret-red", "", CHAT.replace("}]}", "}],\"n\":1}")),
        ("secret-red", "", CHAT.replace("}]}", "}],\"n\":1.0}")),
    ]
    .into_iter()
    .enumerate()
    {
        let headers = format!("authorization: Bearer {key}\r\nidempotency-key: one\r\n{AGAIN}{headers}");
        all.extend(clients(&plane, 1, &ask(&headers, &body)).await);
        upstream.called(number + 1).await;
    }
    open.send_replace(true);
    for client in &mut all {
        is_whole(&client.response().await, ANSWER);
    }
    assert_eq!(joined(&plane), 0);
    plane.stop().await;
}

/// More than is kept of one answer.
#[tokio::test]
async fn f07_an_answer_that_is_too_long_is_sealed_and_still_whole_for_who_reads_it() {
    let piece = "x".repeat(64 * 1024);
    let step = watch::Sender::new(0);
    let (steps, sent) = (step.clone(), piece.clone());
    let upstream = Upstream::start(move |mut call: Call| {
        let (mut steps, piece) = (steps.subscribe(), sent.clone());
        async move {
            call.send(STREAM).await;
            for number in 0..40 {
                call.chunk(delta(&piece)).await;
                if [4, 20].contains(&number) {
                    steps.wait_for(|reached| *reached >= number).await.unwrap();
                }
            }
            call.chunk([FINISH, DONE].concat()).await;
            call.send(LAST_CHUNK).await;
            call.keep()
        }
    })
    .await;
    let plane = Setup::m(&[upstream.address]).start().await;
    let mut first = plane.client().await;
    first.send(ask(FIRST, CHAT_STREAM)).await;
    first.events(5).await;
    let mut second = plane.client().await;
    second.send(ask(AGAIN, CHAT_STREAM)).await;
    second.events(5).await;
    step.send_replace(4);
    tokio::join!(first.events(21), second.events(21));
    // Its beginning is gone: who comes now is served on its own.
    let mut third = plane.client().await;
    third.send(ask(AGAIN, CHAT_STREAM)).await;
    third.events(5).await;
    step.send_replace(20);
    let answer = [delta(&piece).repeat(40), FINISH.to_owned(), DONE.to_owned()].concat();
    let all = tokio::join!(first.response(), second.response(), third.response());
    for answer_of in [&all.0, &all.1, &all.2] {
        is_whole(answer_of, &answer);
    }
    plane.idle().await;
    assert_eq!((upstream.count(), joined(&plane), plane.app.bytes.used()), (2, 1, 0));
    plane.stop().await;
}

/// A stream that breaks is told to everybody who reads it, by an event and a broken connection.
#[tokio::test]
async fn f07_a_stream_that_breaks_breaks_for_all() {
    let open = watch::Sender::new(false);
    let opening = open.clone();
    let upstream = Upstream::start(move |mut call: Call| {
        let mut opened = opening.subscribe();
        async move {
            call.send(STREAM).await;
            call.chunk(five()).await;
            opened.wait_for(|open| *open).await.unwrap();
            call.reset()
        }
    })
    .await;
    let plane = Setup::m(&[upstream.address]).start().await;
    let mut all = clients(&plane, 1, &ask(FIRST, CHAT_STREAM)).await;
    all[0].events(5).await;
    all.extend(clients(&plane, 3, &ask(AGAIN, CHAT_STREAM)).await);
    for client in &mut all {
        client.events(5).await;
    }
    open.send_replace(true);
    for client in &mut all {
        let answer = client.response().await;
        assert_eq!((answer.status, answer.end), (200, End::Broken));
        let text = answer.text();
        let event = text.strip_prefix(&five()).unwrap().trim_start().strip_prefix("data: ").unwrap();
        let event: serde_json::Value = serde_json::from_str(event.trim_end()).unwrap();
        assert_eq!(event["error"]["code"], "upstream_error");
    }
    plane.idle().await;
    assert_eq!((upstream.count(), plane.outcomes("truncated")), (1, 4));
    plane.stop().await;
}

/// Who waits for an answer that does not come is refused as the first one is.
#[tokio::test]
async fn f07_a_flight_without_an_answer_is_refused_to_all() {
    for (status, body, told) in [(400, r#"{"error":{"message":"no","code":"bad_thing"}}"#, 400), (500, "{}", 503)] {
        let open = watch::Sender::new(false);
        let opening = open.clone();
        let upstream = Upstream::start(move |call: Call| {
            let mut opened = opening.subscribe();
            async move {
                opened.wait_for(|open| *open).await.unwrap();
                call.json(status, "", body).await
            }
        })
        .await;
        let plane = Setup::m(&[upstream.address]).start().await;
        let mut all = clients(&plane, 1, &ask(FIRST, CHAT)).await;
        upstream.called(1).await;
        all.extend(clients(&plane, 3, &ask(AGAIN, CHAT)).await);
        known(&plane, 4).await;
        open.send_replace(true);
        for client in &mut all {
            let answer = client.response().await;
            assert_eq!((answer.status, answer.attempts()), (told, "1"), "{answer:?}");
            if told == 400 {
                assert_eq!(answer.text(), body);
            }
        }
        assert_eq!((upstream.count(), joined(&plane)), (1, 3));
        plane.stop().await;
    }
}

/// Its own deadline holds for who joins, whatever the flight has.
#[tokio::test]
async fn f07_who_joins_has_its_own_deadline() {
    let open = watch::Sender::new(false);
    let upstream = held(&open).await;
    let plane = Setup::m(&[upstream.address]).start().await;
    let mut first = plane.client().await;
    first.send(ask(FIRST, CHAT)).await;
    upstream.called(1).await;
    let answer = plane.ask(ask(&format!("x-seawall-deadline-ms: 100\r\n{AGAIN}"), CHAT)).await;
    assert_eq!((answer.outcome(), upstream.count()), ("deadline_unmeetable", 1));
    open.send_replace(true);
    is_whole(&first.response().await, ANSWER);
    plane.stop().await;
}

/// A place in the line is held for its client, too, and its attempt is made whoever is there.
#[tokio::test]
async fn f07_a_place_in_the_line_is_there_for_the_repeat() {
    let open = watch::Sender::new(false);
    let upstream = held(&open).await;
    let plane = Setup::new()
        .model("m", "", &[])
        .deployment(&format!("http://{}", upstream.address), "capacity = { standard = 1 }")
        .start()
        .await;
    let mut running = plane.client().await;
    running.send(ask("", &CHAT.replace("hi", "first"))).await;
    upstream.called(1).await;
    let mut leaves = plane.client().await;
    leaves.send(ask(FIRST, CHAT)).await;
    plane.until("it waits", |plane| plane.waiting() == 1).await;
    leaves.reset();
    known(&plane, 1).await;
    assert_eq!(plane.waiting(), 1);
    open.send_replace(true);
    is_whole(&running.response().await, ANSWER);
    upstream.called(2).await;
    is_whole(&plane.ask(ask(AGAIN, CHAT)).await, ANSWER);
    assert_eq!((upstream.count(), joined(&plane)), (2, 1));
    plane.stop().await;
}
