//! Pace, departures, counters, guards, determinism.

use crate::support::{
    TOKEN, chat, counters, fault, fleet, get, get_json, instant, json_of, order, post, post_json, send, streaming,
    text, until_counters,
};
use http::StatusCode;
use http_body_util::BodyExt as _;
use seawall_lab::fleet::{Departure, EngineSettings, FleetError, FleetOptions, Pacing, ServerOptions, start};
use serde_json::{Value, json};
use std::time::Duration;

const CHAT: &str = "/v1/chat/completions";

#[tokio::test]
async fn a_demo_chat_takes_as_long_as_told_and_streams_at_pace() {
    let fleet = start(FleetOptions::demo(([127, 0, 0, 1], 0).into())).await.expect("free ports");
    let regions: Vec<&str> = fleet.servers().iter().map(|server| server.region.as_str()).collect();
    assert_eq!(regions, ["swedencentral", "eastus", "koreacentral"]);
    assert_eq!(fleet.servers()[0].address, fleet.admin_addr());
    let started = tokio::time::Instant::now();
    let (status, body) = post_json(fleet.servers()[1].address, CHAT, &chat()).await;
    let took = started.elapsed();
    assert_eq!(status, StatusCode::OK);
    // At 100 tokens a second the first one is there at once, so n tokens take n - 1 times 10 ms.
    let tokens = body["usage"]["completion_tokens"].as_u64().expect("a count");
    assert!(took >= Duration::from_millis(10 * (tokens - 1)), "{took:?} for {tokens}");
    let response = send(fleet.servers()[2].address, post(CHAT, &streaming(chat()))).await;
    let mut frames = response.into_body();
    let mut arrivals = Vec::new();
    while let Some(frame) = frames.frame().await {
        frame.expect("a whole stream");
        arrivals.push(tokio::time::Instant::now());
    }
    let span = *arrivals.last().expect("frames") - arrivals[0];
    assert!(arrivals.len() > 3 && span >= Duration::from_millis(150), "{} frames in {span:?}", arrivals.len());
    fleet.shutdown().await;
}

/// One slot, an answer that takes an hour.
fn endless(departure: Departure) -> ServerOptions {
    let settings = EngineSettings { departure, ..EngineSettings::fixed(1, 3_600_000_000_000) };
    ServerOptions { pacing: Pacing::Engine(settings), ..ServerOptions::new("one", "here") }
}

#[tokio::test]
async fn a_disconnect_frees_the_slot_where_that_is_set() {
    let fleet = fleet(vec![endless(Departure::FreesSlot)]).await;
    let to = fleet.admin_addr();
    for streams in [false, true] {
        let body = if streams { streaming(chat()) } else { chat() };
        let request = tokio::spawn(async move { text(send(to, post(CHAT, &body)).await).await });
        until_counters(&fleet, |seen| seen["total"]["running"] == 1).await;
        request.abort();
        let seen = until_counters(&fleet, |seen| seen["total"]["running"] == 0).await;
        assert_eq!(seen["total"]["waiting"], 0);
    }
    until_counters(&fleet, |seen| seen["total"]["disconnects"] == 2).await;
    fleet.shutdown().await;
}

#[tokio::test]
async fn a_disconnect_leaves_the_work_where_that_is_set() {
    let fleet = fleet(vec![endless(Departure::KeepsRunning)]).await;
    let to = fleet.admin_addr();
    let request = tokio::spawn(async move { text(send(to, post(CHAT, &chat())).await).await });
    until_counters(&fleet, |seen| seen["total"]["running"] == 1).await;
    request.abort();
    let seen = until_counters(&fleet, |seen| seen["total"]["disconnects"] == 1).await;
    assert_eq!(seen["total"]["running"], 1);
    fleet.shutdown().await;
}

#[tokio::test]
async fn answers_depend_on_seed_and_content_only() {
    let mut texts: Vec<Vec<String>> = Vec::new();
    for seed in [7, 7, 8] {
        let mut options = FleetOptions::of(
            ([127, 0, 0, 1], 0).into(),
            vec![ServerOptions::instant("a"), ServerOptions::instant("b")],
        );
        options.seed = seed;
        let fleet = start(options).await.expect("free ports");
        let mut run = Vec::new();
        for content in ["one", "two", "three"] {
            let asked = json!({"model": "m", "messages": [{"role": "user", "content": content}]});
            let other_model = json!({"model": "another", "messages": [{"role": "user", "content": content}]});
            let (_, first) = post_json(fleet.servers()[0].address, CHAT, &asked).await;
            let (_, second) = post_json(fleet.servers()[1].address, CHAT, &other_model).await;
            assert_eq!(first["choices"], second["choices"], "neither server nor model matters");
            run.push(first["choices"][0]["message"]["content"].as_str().expect("text").to_owned());
        }
        texts.push(run);
        fleet.shutdown().await;
    }
    assert_eq!(texts[0], texts[1]);
    assert_ne!(texts[0], texts[2]);
    assert_ne!(texts[0][0], texts[0][1]);
}

#[tokio::test]
async fn attempts_are_counted_by_id_and_by_fingerprint() {
    let fleet = fleet(vec![ServerOptions::instant("a"), ServerOptions::instant("b")]).await;
    let (first, second) = (fleet.servers()[0].address, fleet.servers()[1].address);
    fault(&fleet, &json!({"server": "a", "error_percent": 100})).await;
    for (to, path, model, id) in [
        (first, CHAT, "m", "request-1"),
        (second, "/openai/deployments/other/chat/completions?api-version=1", "renamed", "request-1"),
        (second, CHAT, "m", "request-2"),
    ] {
        let content = if id == "request-1" { "one" } else { "two" };
        let body = json!({"model": model, "messages": [{"role": "user", "content": content}]});
        let mut request = post(path, &body);
        request.headers_mut().insert("x-request-id", id.parse().expect("a header"));
        send(to, request).await;
    }
    let seen = counters(&fleet).await;
    for table in ["by_request_id", "by_fingerprint"] {
        let table = &seen["attempts"][table];
        assert_eq!((&table["distinct"], &table["attempts"], &table["max_attempts"]), (&json!(2), &json!(3), &json!(2)));
        assert_eq!((&table["mean_attempts"], &table["untracked_attempts"]), (&json!(1.5), &json!(0)));
    }
    assert_eq!(seen["attempts"]["by_request_id"]["rows"][0], json!({"key": "request-1", "attempts": 2}));
    assert_eq!(seen["servers"][0]["by_status"], json!({"500": 1}));
    assert_eq!(seen["total"]["by_status"], json!({"200": 2, "500": 1}));
    assert_eq!(seen["total"]["requests"], 3);
    let mut request = post("/fleet/counters/reset", &json!({}));
    request.headers_mut().insert("x-admin-token", TOKEN.parse().expect("a header"));
    let (status, reset) = json_of(send(fleet.admin_addr(), request).await).await;
    assert_eq!((status, &reset["total"]["requests"]), (StatusCode::OK, &json!(0)));
    assert_eq!(reset["attempts"]["by_request_id"]["distinct"], 0);
    fleet.shutdown().await;
}

#[tokio::test]
async fn changes_need_the_token_and_a_loopback_host() {
    let fleet = instant().await;
    let to = fleet.admin_addr();
    for path in ["/fleet/faults", "/fleet/counters/reset"] {
        for bearer in [None, Some("Bearer wrong")] {
            let mut request = post(path, &json!({}));
            if let Some(bearer) = bearer {
                request.headers_mut().insert("authorization", bearer.parse().expect("a header"));
            }
            let (status, answer) = json_of(send(to, request).await).await;
            assert_eq!(status, StatusCode::UNAUTHORIZED);
            let message = answer["error"]["message"].as_str().expect("a message");
            assert!(message.contains("stands in the test's support module"), "{message}");
        }
    }
    for host in ["evil.example", "127.0.0.1.evil.example:80", "10.0.0.1", "[::2]:5"] {
        for mut request in [get("/fleet/counters"), post("/fleet/faults", &json!({}))] {
            request.headers_mut().insert("host", host.parse().expect("a header"));
            let bearer = format!("Bearer {TOKEN}").parse().expect("a header");
            request.headers_mut().insert("authorization", bearer);
            assert_eq!(send(to, request).await.status(), StatusCode::FORBIDDEN, "{host}");
        }
    }
    for host in ["localhost:9100", "127.0.0.1:80", "[::1]:5"] {
        let mut request = get("/fleet/counters");
        request.headers_mut().insert("host", host.parse().expect("a header"));
        assert_eq!(send(to, request).await.status(), StatusCode::OK, "{host}");
    }
    let (status, _) = order(&fleet, &json!({})).await;
    assert_eq!(status, StatusCode::OK);
    fleet.shutdown().await;
}

#[tokio::test]
async fn admin_endpoints_are_on_the_first_address_only() {
    let fleet = fleet(vec![ServerOptions::instant("a"), ServerOptions::instant("b")]).await;
    let listed = get_json(fleet.admin_addr(), "/fleet/servers").await;
    assert_eq!(listed["servers"][1]["address"], json!(fleet.servers()[1].address.to_string()));
    assert_eq!(send(fleet.servers()[1].address, get("/fleet/counters")).await.status(), StatusCode::NOT_FOUND);
    assert_eq!(send(fleet.admin_addr(), get("/fleet/nothing")).await.status(), StatusCode::NOT_FOUND);
    fleet.shutdown().await;
}

#[tokio::test]
async fn options_that_cannot_be_are_refused() {
    let loopback = |port| std::net::SocketAddr::from(([127, 0, 0, 1], port));
    let nothing = start(FleetOptions::of(loopback(0), Vec::new())).await;
    assert!(matches!(nothing, Err(FleetError::NoServers)));
    let twice = vec![ServerOptions::instant("a"), ServerOptions::instant("a")];
    assert!(
        matches!(start(FleetOptions::of(loopback(0), twice)).await, Err(FleetError::SameName(name)) if name == "a")
    );
    let high = start(FleetOptions::demo(loopback(65_534))).await;
    assert!(matches!(high, Err(FleetError::PortRange { port: 65_534, count: 3 })));
    let taken = tokio::net::TcpListener::bind(loopback(0)).await.expect("a free port");
    let address = taken.local_addr().expect("it is bound");
    let busy = start(FleetOptions::of(address, vec![ServerOptions::instant("a")])).await;
    assert!(matches!(busy, Err(FleetError::Bind { address: named, .. }) if named == address));
}

#[tokio::test]
async fn bodies_beyond_the_bound_are_refused() {
    let fleet = instant().await;
    let body = json!({"model": "m", "prompt": "a".repeat(64 * 1024 * 1024)});
    let request = post("/v1/completions", &body);
    // The server may close the connection before it has read all; then there is no answer to look at.
    if let Ok(response) = crate::support::try_send(fleet.admin_addr(), request).await {
        assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
    }
    until_counters(&fleet, |seen: &Value| seen["total"]["by_status"]["413"] == 1).await;
    fleet.shutdown().await;
}

#[tokio::test]
async fn shutdown_closes_the_ports_and_cuts_what_is_open() {
    let fleet = fleet(vec![endless(Departure::FreesSlot)]).await;
    let to = fleet.admin_addr();
    let open = tokio::spawn(crate::support::try_send(to, post(CHAT, &chat())));
    until_counters(&fleet, |seen| seen["total"]["running"] == 1).await;
    fleet.shutdown().await;
    assert!(open.await.expect("the task ends").is_err());
    assert!(tokio::net::TcpStream::connect(to).await.is_err());
}
