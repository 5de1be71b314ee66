//! Servers that are asked how much they have to do, and say nothing of use.

use crate::support::client::chat_of;
use crate::support::plane::Setup;
use crate::support::upstream::{Call, Upstream, Wire};

/// Serves requests, and answers for its metrics page with `page`.
async fn with_page<F, A>(page: F) -> Upstream
where
    F: Fn(Call) -> A + Send + Sync + Clone + 'static,
    A: Future<Output = Option<Wire>> + Send + 'static,
{
    Upstream::start(move |call: Call| {
        let page = page.clone();
        async move { if call.seen.target() == "/metrics" { page(call).await } else { call.good().await } }
    })
    .await
}

#[tokio::test]
async fn a_page_that_says_nothing_of_use_costs_nothing() {
    let huge = "vllm:num_requests_running 1\nvllm:num_requests_waiting 90\n".repeat(60_000);
    let upstreams = [
        with_page(|call| call.answer(404, "", "no such page")).await,
        with_page(|call| call.answer(200, "", "<html>\u{fffd} vllm:num_requests_running{ 7")).await,
        with_page(move |call| call.answer(200, "", huge.clone())).await,
        with_page(Call::hang).await,
        with_page(|call| async { call.reset() }).await,
    ];
    let mut setup = Setup::new().model("m", "", &[]);
    for upstream in &upstreams {
        setup = setup.deployment(&format!("http://{}", upstream.address), "metrics_path = \"/metrics\"");
    }
    let plane = setup.start().await;
    for upstream in &upstreams {
        upstream.called(2).await;
    }
    for number in 0..10 {
        assert_eq!(plane.ask(chat_of(number)).await.status, 200);
    }
    for number in 1..=upstreams.len() {
        let deployment = plane.deployment(&format!("u{number}"));
        assert_eq!((deployment.limit, deployment.health), (Some(8), "healthy"), "u{number}");
    }
    plane.stop().await;
}

#[tokio::test]
async fn a_server_that_is_not_to_be_asked_is_not() {
    let page = |call: Call| call.answer(200, "", "vllm:num_requests_running 1\nvllm:num_requests_waiting 0\n");
    let (asked, other) = (with_page(page).await, with_page(page).await);
    let plane = Setup::new()
        .model("m", "", &[])
        .deployment(&format!("http://{}", asked.address), "metrics_path = \"/metrics\"")
        .deployment(&format!("http://{}", other.address), "")
        .start()
        .await;
    asked.called(3).await;
    assert_eq!(other.count(), 0);
    let seen = asked.seen();
    assert!(seen.iter().all(|seen| seen.head.starts_with("GET /metrics HTTP/1.1") && seen.body.is_empty()));
    assert!(seen.iter().all(|seen| seen.header("authorization").is_none()));
    assert_eq!(seen.last().map(|seen| seen.connection), Some(0), "over one connection");
    plane.stop().await;
}
