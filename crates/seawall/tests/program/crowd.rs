//! Clients of a running `serve` in front of one server: one after the other, or many at once.

use crate::process::{Serve, get, post};
use seawall_lab::fleet::FleetHandle;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Of a tenth of a second or so each.
const MOST_LOOKS: u32 = 1_000;

/// The config of one model with the fleet's server behind it; further lines of the model and of the deployment.
pub(crate) fn config(fleet: &FleetHandle, model: &str, deployment: &str) -> String {
    format!(
        "[server]\nallow_anonymous = true\naccess_log = \"off\"\n[[models]]\nname = \"m\"\n{model}\n\
         [[models.deployments]]\nname = \"d\"\nurl = \"http://{}\"\n{deployment}\n",
        fleet.servers()[0].address
    )
}

/// Asks for one chat: the status.
pub(crate) fn ask(listen: SocketAddr, content: &str) -> u16 {
    let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":"{content}"}}]}}"#);
    post(listen, "/v1/chat/completions", "", &body).status
}

/// How much the deployment may have in flight, where that is bounded.
pub(crate) fn limit(serve: &Serve) -> Option<u64> {
    let status: serde_json::Value = serde_json::from_str(&get(serve.admin, "/statusz").body).expect("JSON");
    status["models"][0]["deployments"][0]["limit"].as_u64()
}

/// Many clients, each of which asks again as soon as it is answered.
pub(crate) struct Crowd {
    listen: SocketAddr,
    stop: Arc<AtomicBool>,
    clients: Vec<JoinHandle<()>>,
}

impl Crowd {
    pub(crate) fn of(serve: &Serve, size: u32) -> Self {
        let (listen, stop) = (serve.listen, Arc::new(AtomicBool::new(false)));
        let client = |client| {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || {
                for number in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    assert_eq!(ask(listen, &format!("{client} {number}")), 200);
                }
            })
        };
        let clients = (0..size).map(client).collect();
        Self { listen, stop, clients }
    }

    /// Goes on until this is so, looked at after each of a client's own requests; whether it came to be.
    pub(crate) fn until(self, mut is_so: impl FnMut() -> bool) -> bool {
        let came = (0..MOST_LOOKS).any(|number| {
            assert_eq!(ask(self.listen, &format!("look {number}")), 200);
            is_so()
        });
        self.stop.store(true, Ordering::Relaxed);
        for client in self.clients {
            client.join().expect("every request is served");
        }
        came
    }
}
