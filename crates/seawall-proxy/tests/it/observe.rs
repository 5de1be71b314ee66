//! Law 12 over sockets: what enforcing refuses, observing forwards, and the log and the metrics say so.

use crate::support::client::{CHAT, CHAT_PATH, chat, post};
use crate::support::plane::{Plane, Setup};
use crate::support::upstream::{Call, Upstream};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// One place and nowhere to wait.
const FULL: &str = "[models.queue]\nmax_waiting = 0";

/// Sends a request that the upstream holds, a second one meanwhile, and lets the first one end. Returns both statuses.
async fn two_at_once(mode: &str) -> (Upstream, Plane, [u16; 2]) {
    let gate = Arc::new(Semaphore::new(0));
    let held = Arc::clone(&gate);
    let upstream = Upstream::start(move |call: Call| {
        let gate = Arc::clone(&held);
        async move {
            if call.number == 0 {
                gate.acquire().await.expect("it stays open").forget();
            }
            call.good().await
        }
    })
    .await;
    let setup = Setup::new().model("m", &format!("mode = \"{mode}\"\n{FULL}"), &[]);
    let plane = setup.deployment(&format!("http://{}", upstream.address), "capacity = { standard = 1 }").start().await;
    let mut first = plane.client().await;
    first.send(chat()).await;
    upstream.called(1).await;
    let second = plane.ask(chat()).await.status;
    gate.add_permits(1);
    let first = first.response().await.status;
    plane.idle().await;
    (upstream, plane, [first, second])
}

#[tokio::test]
async fn a_full_deployment_takes_under_observe_what_it_refuses_under_enforce() {
    let (upstream, plane, statuses) = two_at_once("enforce").await;
    assert_eq!((statuses, upstream.count()), ([200, 429], 1));
    assert_eq!(plane.metric("seawall_observed_total", &[]), 0);
    assert!(!plane.log(2).await.contains("\"observed\""));
    plane.stop().await;

    let (upstream, plane, statuses) = two_at_once("observe").await;
    assert_eq!((statuses, upstream.count()), ([200, 200], 2));
    assert_eq!(plane.outcomes("served"), 2);
    let refused = [("model", "m"), ("verdict", "capacity_exhausted")];
    assert_eq!(plane.metric("seawall_observed_total{", &refused), 1);
    assert_eq!(plane.metric("seawall_observed_total{", &[]), 1, "the first one fitted");
    let log = plane.log(2).await;
    let observed = |line: &&str| line.contains("\"observed\":\"capacity_exhausted\"");
    let lines: Vec<_> = log.lines().filter(observed).collect();
    assert!(lines.len() == 1 && lines[0].contains("\"outcome\":\"served\""), "{log}");
    plane.stop().await;
}

/// A deployment that fails stays in rotation; that it would have left is counted, and `/statusz` says how it is.
#[tokio::test]
async fn a_deployment_that_would_be_ejected_is_counted_and_stays() {
    let bad = Upstream::always(500, "", "{}").await;
    let good = Upstream::good().await;
    let settings = "mode = \"observe\"\npolicy = \"round_robin\"";
    let plane = Setup::new().model("m", settings, &[bad.address, good.address]).start().await;
    for _ in 0..8 {
        plane.ask(chat()).await;
    }
    plane.idle().await;
    assert_eq!((bad.count(), good.count()), (4, 4));
    assert_eq!(plane.deployment("u1").health, "ejected");
    let verdict = |verdict| plane.metric("seawall_observed_total{", &[("model", "m"), ("verdict", verdict)]);
    // The first three would have been tried again; the third one's failure ejects, so the fourth would have gone elsewhere.
    assert_eq!((verdict("retry"), verdict("eject"), verdict("move_for_health")), (3, 1, 1));
    let status: serde_json::Value = serde_json::from_str(&seawall_proxy::status::render(&plane.app)).expect("JSON");
    assert_eq!((&status["models"][0]["mode"], &status["models"][0]["would_wait"]), (&"observe".into(), &0.into()));
    plane.stop().await;
}

/// A caller's deadline cuts what is enforced, and nothing of a tenant that is observed.
#[tokio::test]
async fn a_deadline_does_not_cut_a_tenant_that_is_observed() {
    let gate = Arc::new(Semaphore::new(0));
    let held = Arc::clone(&gate);
    let upstream = Upstream::start(move |call: Call| {
        let gate = Arc::clone(&held);
        async move {
            if call.number > 0 {
                return call.hang().await;
            }
            gate.acquire().await.expect("it stays open").forget();
            call.good().await
        }
    })
    .await;
    let setup = Setup::m(&[upstream.address]).tenant("watched", "mode = \"observe\"").tenant("held", "");
    let plane = setup.start().await;
    let ask = |tenant: &str| {
        let headers = format!("authorization: Bearer secret-{tenant}\r\nx-seawall-deadline-ms: 100\r\n");
        post(CHAT_PATH, &headers, CHAT)
    };
    let mut watched = plane.client().await;
    watched.send(ask("watched")).await;
    upstream.called(1).await;
    // The same deadline, and later: when it has passed, that of the first one has.
    assert_eq!(plane.ask(ask("held")).await.outcome(), "deadline_unmeetable");
    gate.add_permits(1);
    assert_eq!(watched.response().await.status, 200);
    plane.idle().await;
    let late = [("model", "m"), ("verdict", "deadline_unmeetable")];
    assert_eq!(plane.metric("seawall_observed_total{", &late), 1);
    plane.stop().await;
}
