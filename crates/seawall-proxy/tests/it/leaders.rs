//! The client that began a flight leaves at any moment of it: for the others nothing changes (F07).

use crate::flights::{AGAIN, FIRST, ask, is_whole, known};
use crate::support::client::CHAT_STREAM;
use crate::support::plane::Setup;
use crate::support::upstream::{Call, DONE, FINISH, LAST_CHUNK, STREAM, Upstream, delta};
use seawall_core::random::Random;
use tokio::sync::watch;

/// Deltas of a stream.
const DELTAS: u32 = 30;

fn text(number: u32) -> String {
    delta(&format!("é好🙂 {number}"))
}

/// Sends so many deltas as the test says, each in two pieces, and the head with the first.
async fn stepped(open: &watch::Sender<u32>) -> Upstream {
    let open = open.clone();
    Upstream::start(move |mut call: Call| {
        let mut opened = open.subscribe();
        async move {
            for number in 0..DELTAS {
                opened.wait_for(|open| *open > number).await.unwrap();
                if number == 0 {
                    call.send(STREAM).await;
                }
                let text = text(number).into_bytes();
                call.chunk(&text[..text.len() / 2]).await;
                call.chunk(&text[text.len() / 2..]).await;
            }
            call.chunk([FINISH, DONE].concat()).await;
            call.send(LAST_CHUNK).await;
            call.keep()
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f07_the_departure_of_the_leader_at_any_of_fifty_moments_changes_nothing_for_the_others() {
    let whole: String = (0..DELTAS).map(text).chain([FINISH.to_owned(), DONE.to_owned()]).collect();
    let open = watch::Sender::new(0);
    let upstream = stepped(&open).await;
    let plane = Setup::m(&[upstream.address]).start().await;
    let mut random = Random::new(50);
    for round in 0..50 {
        let body = CHAT_STREAM.replace("hi", &format!("round {round}"));
        let moment = random.below(DELTAS);
        let early = random.below(4);
        open.send_replace(0);
        let mut leader = plane.client().await;
        leader.send(ask(FIRST, &body)).await;
        upstream.called(round + 1).await;
        let mut others = Vec::new();
        for number in 0..4 {
            // Some join before the answer begins, the others in the middle of it.
            if number == early {
                open.send_replace(moment);
                leader.events(moment as usize).await;
            }
            let mut other = plane.client().await;
            other.send(ask(AGAIN, &body)).await;
            others.push(other);
        }
        known(&plane, 5).await;
        leader.reset();
        known(&plane, 4).await;
        open.send_replace(DELTAS);
        for other in &mut others {
            is_whole(&other.response().await, &whole);
        }
        plane.idle().await;
        assert_eq!(upstream.count(), round + 1, "round {round}, after {moment}");
    }
    assert_eq!((plane.outcomes("client_gone"), plane.outcomes("served")), (50, 200));
    assert_eq!(plane.metric("seawall_attempts_total{", &[]), 50);
    plane.stop().await;
}
