//! Each fault, and refusals in each dress.

use crate::support::{
    broken_text, chat, counters, events, fault, fleet, get_json, instant, json_events, json_of, order, post, post_json,
    send, send_http2, streaming, text, try_send, until_counters,
};
use http::StatusCode;
use seawall_lab::clock::Clock;
use seawall_lab::fleet::{EngineSettings, ErrorForm, FleetCounts, FleetHandle, Pacing, Rejection, ServerOptions};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::net::TcpStream;

const CHAT: &str = "/v1/chat/completions";

async fn clear(fleet: &FleetHandle) {
    fault(fleet, &json!({"clear": true})).await;
}

#[tokio::test]
async fn errors_come_in_both_forms_with_wait_headers() {
    let fleet = instant().await;
    let to = fleet.admin_addr();
    fault(&fleet, &json!({"error_percent": 100, "retry_after_seconds": 3, "retry_after_ms": 2500})).await;
    let response = send(to, post(CHAT, &chat())).await;
    assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(
        (&response.headers()["retry-after"], &response.headers()["retry-after-ms"]),
        (&"3".parse().unwrap(), &"2500".parse().unwrap())
    );
    assert_eq!(json_of(response).await.1["error"]["type"], "server_error");
    for status in [429, 503, 529] {
        clear(&fleet).await;
        fault(&fleet, &json!({"error_status": status})).await;
        let response = send(to, post(CHAT, &chat())).await;
        assert_eq!(response.status().as_u16(), status);
        assert!(!response.headers().contains_key("retry-after"));
    }
    fault(&fleet, &json!({"error_status": 529, "error_form": "sse-first-event", "retry_after_seconds": "soon"})).await;
    let response = send(to, post(CHAT, &streaming(chat()))).await;
    assert_eq!((response.status(), &response.headers()["retry-after"]), (StatusCode::OK, &"soon".parse().unwrap()));
    let stream = text(response).await;
    assert_eq!(json_events(&stream)[0]["error"]["code"], "server_is_overloaded");
    let asked = json!({"model": "m", "max_tokens": 5, "messages": [], "stream": true});
    let stream = text(send(to, post("/v1/messages", &asked)).await).await;
    assert_eq!(events(&stream)[0].0, Some("error"));
    assert_eq!(json_events(&stream)[0]["error"]["type"], "overloaded_error");
    clear(&fleet).await;
    assert_eq!(send(to, post(CHAT, &chat())).await.status(), StatusCode::OK);
    fleet.shutdown().await;
}

#[tokio::test]
async fn an_error_share_hits_the_same_requests_under_one_seed() {
    let mut runs = Vec::new();
    for _ in 0..2 {
        let fleet = instant().await;
        fault(&fleet, &json!({"error_percent": 30})).await;
        let mut failed = Vec::new();
        for _ in 0..100 {
            failed.push(send(fleet.admin_addr(), post(CHAT, &chat())).await.status() != StatusCode::OK);
        }
        runs.push(failed);
        fleet.shutdown().await;
    }
    assert_eq!(runs[0], runs[1]);
    let failures = runs[0].iter().filter(|failed| **failed).count();
    assert!((15..=45).contains(&failures), "{failures}");
}

#[tokio::test]
async fn refusals_wear_the_servers_own_dress() {
    let rejection = Rejection { status: 503, form: ErrorForm::Json, retry_after: None, retry_after_ms: Some(40) };
    let fleet = fleet(vec![ServerOptions { rejection, ..ServerOptions::instant("one") }]).await;
    fault(&fleet, &json!({"refuse": true})).await;
    let response = send(fleet.admin_addr(), post(CHAT, &chat())).await;
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(response.headers()["retry-after-ms"], "40");
    fault(&fleet, &json!({"refuse": true, "error_status": 429, "retry_after_seconds": 0.5})).await;
    let response = send(fleet.admin_addr(), post(CHAT, &chat())).await;
    assert_eq!((response.status().as_u16(), &response.headers()["retry-after"]), (429, &"0.5".parse().unwrap()));
    assert!(!response.headers().contains_key("retry-after-ms"));
    fleet.shutdown().await;
}

#[tokio::test]
async fn a_full_queue_refuses() {
    let settings = EngineSettings { waiting_limit: Some(0), ..EngineSettings::fixed(1, 3_600_000_000_000) };
    let fleet = fleet(vec![ServerOptions { pacing: Pacing::Engine(settings), ..ServerOptions::new("one", "r") }]).await;
    let to = fleet.admin_addr();
    let first = tokio::spawn(try_send(to, post(CHAT, &chat())));
    until_counters(&fleet, |seen| seen["total"]["running"] == 1).await;
    let response = send(to, post(CHAT, &chat())).await;
    assert_eq!((response.status().as_u16(), &response.headers()["retry-after"]), (429, &"1".parse().unwrap()));
    first.abort();
    fleet.shutdown().await;
}

#[tokio::test]
async fn a_reset_before_the_headers_cuts_the_connection() {
    let fleet = instant().await;
    fault(&fleet, &json!({"reset": "before-headers"})).await;
    let error = try_send(fleet.admin_addr(), post(CHAT, &chat())).await.expect_err("no answer");
    assert!(error.is_incomplete_message() || format!("{error:?}").contains("ConnectionReset"), "{error:?}");
    assert_eq!(counters(&fleet).await["total"]["by_status"], json!({"reset": 1}));
    fleet.shutdown().await;
}

#[tokio::test]
async fn streams_break_in_the_middle_in_four_ways() {
    let fleet = instant().await;
    let to = fleet.admin_addr();
    for (order, breaks, error) in [
        (json!({"reset": "mid-stream"}), true, false),
        (json!({"truncate": true}), false, false),
        (json!({"error_mid_stream": true}), true, true),
    ] {
        clear(&fleet).await;
        fault(&fleet, &order).await;
        let (stream, broke) = broken_text(send(to, post(CHAT, &streaming(chat()))).await).await;
        assert_eq!(broke, breaks, "{order}");
        assert!(!stream.contains("[DONE]"), "{order}");
        assert_eq!(stream.contains("\"error\""), error, "{order}: {stream}");
        if order.get("reset").is_none() {
            // After a TCP reset the client's system may drop what it had received.
            assert!(stream.contains("\"content\""), "{order}: {stream}");
        }
    }
    fleet.shutdown().await;
}

#[tokio::test]
async fn whole_answers_break_too() {
    let fleet = instant().await;
    let to = fleet.admin_addr();
    for (order, breaks) in [(json!({"reset": "mid-stream"}), true), (json!({"truncate": true}), false)] {
        clear(&fleet).await;
        fault(&fleet, &order).await;
        let (body, broke) = broken_text(send(to, post(CHAT, &chat())).await).await;
        assert_eq!(broke, breaks, "{order}");
        assert!(serde_json::from_str::<Value>(&body).is_err(), "{body}");
    }
    fleet.shutdown().await;
}

#[tokio::test]
async fn a_stream_of_http2_is_reset_without_its_connection() {
    let fleet = instant().await;
    fault(&fleet, &json!({"reset": "mid-stream"})).await;
    let uri = format!("http://{}{CHAT}", fleet.admin_addr());
    let body = streaming(chat()).to_string();
    let request = http::Request::post(uri).body(http_body_util::Full::from(body)).expect("valid");
    let (stream, broke) = broken_text(send_http2(fleet.admin_addr(), request).await).await;
    assert!(broke && stream.contains("\"content\""), "{stream}");
    fleet.shutdown().await;
}

#[tokio::test]
async fn hangs_last_until_the_client_leaves() {
    let fleet = instant().await;
    let to = fleet.admin_addr();
    fault(&fleet, &json!({"hang_before_headers": true})).await;
    let hanging = tokio::spawn(try_send(to, post(CHAT, &chat())));
    until_counters(&fleet, |seen| seen["total"]["requests"] == 1).await;
    assert!(!hanging.is_finished());
    hanging.abort();
    until_counters(&fleet, |seen| seen["total"]["disconnects"] == 1).await;
    clear(&fleet).await;
    fault(&fleet, &json!({"hang_mid_stream": true})).await;
    let response = send(to, post(CHAT, &streaming(chat()))).await;
    assert_eq!(response.status(), StatusCode::OK);
    // Half of the tokens have come; nothing that ends the stream follows.
    until_counters(&fleet, |seen| seen["total"]["generation_tokens"].as_u64() >= Some(8)).await;
    drop(response);
    until_counters(&fleet, |seen| seen["total"]["disconnects"] == 2).await;
    fleet.shutdown().await;
}

#[tokio::test]
async fn refused_connections_close_the_port_and_open_it_again() {
    let fleet = fleet(vec![ServerOptions::instant("one"), ServerOptions::instant("two")]).await;
    let second = fleet.servers()[1].address;
    fault(&fleet, &json!({"server": "two", "refuse_connections": true})).await;
    let refused = async {
        while TcpStream::connect(second).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(crate::support::LONG, refused).await.expect("the port closes");
    assert_eq!(send(fleet.admin_addr(), post(CHAT, &chat())).await.status(), StatusCode::OK);
    fault(&fleet, &json!({"server": 1, "clear": true})).await;
    let open = async {
        while TcpStream::connect(second).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(crate::support::LONG, open).await.expect("the port opens again");
    assert_eq!(send(second, post(CHAT, &chat())).await.status(), StatusCode::OK);
    fleet.shutdown().await;
}

#[tokio::test]
async fn latency_padding_and_missing_usage() {
    let fleet = instant().await;
    let to = fleet.admin_addr();
    fault(&fleet, &json!({"extra_latency_ms": 120, "pad_bytes": 100_000, "omit_usage": true})).await;
    let start = tokio::time::Instant::now();
    let body = text(send(to, post(CHAT, &chat())).await).await;
    assert!(start.elapsed() >= Duration::from_millis(120));
    assert_eq!(body.len(), 100_000);
    let value: Value = serde_json::from_str(&body).expect("padding keeps it JSON");
    assert!(value.get("usage").is_none());
    let mut asked = streaming(chat());
    asked["stream_options"] = json!({"include_usage": true});
    let stream = text(send(to, post(CHAT, &asked)).await).await;
    assert!(stream.len() > 100_000 && !stream.contains("usage"));
    assert_eq!(json_events(&stream).last(), Some(&json!("[DONE]")));
    fleet.shutdown().await;
}

#[tokio::test]
async fn a_brown_out_slows_and_ends_by_itself() {
    let fleet = fleet(vec![ServerOptions::fixed("one", 4, 50)]).await;
    let to = fleet.admin_addr();
    fault(&fleet, &json!({"brown_out": {"capacity_percent": 0, "seconds": 1}})).await;
    let present = get_json(to, "/fleet/faults").await;
    assert_eq!(present["servers"][0]["faults"], json!({"capacity_percent": 0}));
    let start = tokio::time::Instant::now();
    let response = send(to, post(CHAT, &chat())).await;
    assert_eq!(response.status(), StatusCode::OK);
    // Nothing moves for the second; the order came a little before the start was taken.
    assert!(start.elapsed() > Duration::from_millis(600), "{:?}", start.elapsed());
    assert_eq!(get_json(to, "/fleet/faults").await["servers"][0]["faults"], json!({}));
    fault(&fleet, &json!({"capacity_percent": 25})).await;
    let start = tokio::time::Instant::now();
    send(to, post(CHAT, &chat())).await;
    assert!(start.elapsed() >= Duration::from_millis(200), "{:?}", start.elapsed());
    fleet.shutdown().await;
}

#[tokio::test]
async fn a_timed_fault_reverts() {
    let fleet = instant().await;
    fault(&fleet, &json!({"error_percent": 100, "seconds": 1})).await;
    let to = fleet.admin_addr();
    assert_eq!(send(to, post(CHAT, &chat())).await.status(), StatusCode::INTERNAL_SERVER_ERROR);
    let reverted = async { while send(to, post(CHAT, &chat())).await.status() != StatusCode::OK {} };
    tokio::time::timeout(crate::support::LONG, reverted).await.expect("the fault ends");
    fleet.shutdown().await;
}

#[tokio::test]
async fn faults_select_by_name_index_region_and_star() {
    let servers = vec![
        ServerOptions { region: "north".to_owned(), ..ServerOptions::instant("a") },
        ServerOptions { region: "north".to_owned(), ..ServerOptions::instant("b") },
        ServerOptions { region: "south".to_owned(), ..ServerOptions::instant("c") },
    ];
    let fleet = fleet(servers).await;
    for (server, hit) in [
        (json!("b"), [false, true, false]),
        (json!(2), [false, false, true]),
        (json!("north"), [true, true, false]),
        (json!("*"), [true, true, true]),
    ] {
        clear(&fleet).await;
        fault(&fleet, &json!({"server": server, "error_percent": 100})).await;
        for (one, hit) in fleet.servers().iter().zip(hit) {
            let (status, _) = post_json(one.address, CHAT, &chat()).await;
            assert_eq!(status != StatusCode::OK, hit, "{server} {}", one.name);
        }
    }
    let (status, answer) = order(&fleet, &json!({"server": "nobody"})).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(answer["error"]["message"].as_str().expect("a message").contains("a, b, c"), "{answer}");
    fleet.shutdown().await;
}

#[tokio::test]
async fn wrong_orders_name_the_key_and_the_remedy() {
    let fleet = instant().await;
    for (wrong, parts) in [
        (json!({"capacity": 5}), vec!["unknown field `capacity`", "capacity_percent", "brown_out", "seconds"]),
        (json!({"error_percent": 101}), vec!["`error_percent` is 101", "between 0 and 100"]),
        (json!({"error_status": 200}), vec!["`error_status` is 200", "between 400 and 599"]),
        (json!({"reset": "later"}), vec!["later", "before-headers", "mid-stream"]),
        (json!({"brown_out": {"percent": 5}}), vec!["unknown field `percent`", "capacity_percent"]),
        (json!({"seconds": 0}), vec!["`seconds` is 0"]),
        (json!({"retry_after_seconds": true}), vec!["`retry_after_seconds`"]),
    ] {
        let (status, answer) = order(&fleet, &wrong).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{wrong}");
        let message = answer["error"]["message"].as_str().expect("a message");
        assert!(parts.iter().all(|part| message.contains(part)), "{wrong}: {message}");
    }
    fleet.shutdown().await;
}

#[tokio::test]
async fn a_speed_lasts_while_connections_come_and_faults_slow_it_further() {
    let fleet = fleet(vec![ServerOptions::fixed("one", 4, 20)]).await;
    let took = async |least_ms: u64| {
        let clock = Clock::start();
        let (status, _) = post_json(fleet.admin_addr(), "/v1/chat/completions", &chat()).await;
        assert_eq!(status, StatusCode::OK);
        assert!(clock.now() >= least_ms * 1_000_000, "{} of {least_ms} ms", clock.now());
    };
    took(20).await;
    fleet.set_speed_ppm(250_000);
    // Each call is a connection of its own.
    took(80).await;
    took(80).await;
    let counts = fleet.counts();
    assert_eq!((counts.requests, counts.distinct, counts.most, counts.running), (3, 1, 3, 0));
    assert_eq!(counts.by_status, [("200".to_owned(), 3)].into());
    fleet.reset_counters();
    assert_eq!(fleet.counts(), FleetCounts::default());
    fleet.shutdown().await;
}
