//! What is learned of capacities over a restart, and what becomes of a file that says nothing of use.

use crate::support::client::chat;
use crate::support::plane::{DATA, Plane, Setup};
use crate::support::upstream::Upstream;
use seawall_proxy::memory::FILE;
use seawall_proxy::run::Drained;
use std::net::SocketAddr;
use tempfile::TempDir;

/// What a run wrote that learned this of the deployment `u1`, a moment ago.
fn kept(address: SocketAddr, window: u32) -> serde_json::Value {
    let entry = serde_json::json!({
        "deployment": "u1", "url": format!("http://{address}/v1"), "model": "m", "discovery": "likelihood",
        "window": window, "is_proven": true, "learned_at": seawall_proxy::clock::unix_seconds(),
    });
    serde_json::json!({"format": 1, "deployments": [entry]})
}

fn folder_with(content: impl AsRef<[u8]>) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join(DATA)).unwrap();
    std::fs::write(folder.path().join(DATA).join(FILE), content).unwrap();
    folder
}

fn read(folder: &TempDir) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(folder.path().join(DATA).join(FILE)).unwrap()).unwrap()
}

async fn started_with(upstream: &Upstream, content: impl AsRef<[u8]>) -> Plane {
    Setup::m(&[upstream.address]).start_in(folder_with(content)).await
}

#[tokio::test]
async fn a_window_is_where_it_was_before_the_restart_and_is_kept_for_the_next_one() {
    let upstream = Upstream::good().await;
    let mut content = kept(upstream.address, 40);
    let plane = started_with(&upstream, content.to_string()).await;
    assert_eq!(plane.deployment("u1").limit, Some(40));
    // Nothing was at work: it is kept with the age that it has.
    let (drained, folder) = plane.drain_keeping().await;
    assert_eq!(drained, Drained::Complete);
    let mut again = read(&folder);
    let learned_at = |of: &mut serde_json::Value| of["deployments"][0]["learned_at"].take().as_u64().unwrap();
    assert!(learned_at(&mut again).abs_diff(learned_at(&mut content)) <= 2);
    assert_eq!(again, content);
    assert_eq!(std::fs::read_dir(folder.path().join(DATA)).unwrap().count(), 1, "nothing is left of the write");
}

#[tokio::test]
async fn another_deployment_has_another_window() {
    let upstream = Upstream::good().await;
    let good = kept(upstream.address, 40);
    let others = [
        ("deployment", "u2".into()),
        ("url", "http://127.0.0.1:9/v1".into()),
        ("model", "n".into()),
        ("model", serde_json::Value::Null),
        ("discovery", "aimd".into()),
        ("learned_at", (seawall_proxy::clock::unix_seconds() - 86_402).into()),
    ];
    for (name, value) in others {
        let mut other = good.clone();
        other["deployments"][0][name] = value;
        let plane = started_with(&upstream, other.to_string()).await;
        assert_eq!(plane.deployment("u1").limit, Some(8), "{name}");
        plane.stop().await;
    }
    // A told size is none that a file could change.
    let settings = "capacity = { standard = 3 }";
    let told = Setup::new().model("m", "", &[]).deployment(&format!("http://{}", upstream.address), settings);
    let plane = told.start_in(folder_with(good.to_string())).await;
    assert_eq!(plane.deployment("u1").limit, Some(3));
    plane.stop().await;
}

#[tokio::test]
async fn a_file_that_says_nothing_of_use_costs_nothing() {
    let upstream = Upstream::good().await;
    let good = kept(upstream.address, 40).to_string();
    let bad = [
        String::new(),
        good[..good.len() / 2].to_owned(),
        good.replace("\"format\":1", "\"format\":2"),
        good.replace("40", "-40"),
        good.replace("40", "4.5e300"),
        "null".to_owned(),
        "\u{0}".repeat(100),
        " ".repeat(9 << 20),
    ];
    for content in bad {
        assert_ne!(content, good);
        let plane = started_with(&upstream, &content).await;
        assert_eq!(plane.deployment("u1").limit, Some(8), "{content:.80}");
        assert_eq!(plane.ask(chat()).await.status, 200);
        plane.stop().await;
    }
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_to_costs_nothing() {
    let upstream = Upstream::good().await;
    // Written: the window. Then the folder is a file, and even root cannot make one in it.
    let plane = started_with(&upstream, kept(upstream.address, 40).to_string()).await;
    let data = plane.folder().join(DATA);
    std::fs::remove_dir_all(&data).unwrap();
    std::fs::write(&data, "no folder").unwrap();
    assert_eq!(plane.ask(chat()).await.status, 200);
    let (drained, folder) = plane.drain_keeping().await;
    assert_eq!(drained, Drained::Complete);
    assert_eq!(std::fs::read_to_string(folder.path().join(DATA)).unwrap(), "no folder");
    // And so it starts, too.
    let plane = Setup::m(&[upstream.address]).start_in(folder).await;
    assert_eq!((plane.deployment("u1").limit, plane.ask(chat()).await.status), (Some(8), 200));
    plane.stop().await;
}

#[tokio::test]
async fn nothing_is_written_where_nothing_is_learned() {
    let upstream = Upstream::good().await;
    let plane = Setup::m(&[upstream.address]).start().await;
    assert_eq!(plane.ask(chat()).await.status, 200);
    plane.idle().await;
    let (_, folder) = plane.drain_keeping().await;
    assert!(!folder.path().join(DATA).exists());
}
