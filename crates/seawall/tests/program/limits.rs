//! An upstream with a limit on requests that tells what is left of it.

use crate::crowd::{ask, config};
use crate::process::Serve;
use seawall_lab::fleet::{self, FleetOptions, Rejection, RequestLimit, ServerOptions};
use std::net::SocketAddr;
use std::time::Duration;

/// Twenty requests at once, ten a second.
const LIMIT: u32 = 20;
const PER: Duration = Duration::from_secs(2);
const REQUESTS: u32 = 50;

/// Asks for all at once. How many were served, and how many attempts the upstream has refused.
fn served_and_refused(is_told: bool) -> (u32, u64) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let limited = ServerOptions {
        limit: Some(RequestLimit { requests: LIMIT, per: PER, is_told }),
        rejection: Rejection { retry_after: None, ..Rejection::default() },
        ..ServerOptions::fixed("s", 64, 10)
    };
    let options = FleetOptions::of(SocketAddr::from(([127, 0, 0, 1], 0)), vec![limited]);
    let upstream = runtime.block_on(fleet::start(options)).expect("the fleet starts");
    let serve = Serve::with_config(&config(&upstream, "", ""));
    let listen = serve.listen;
    let ask = move |number: u32| std::thread::spawn(move || ask(listen, &number.to_string()));
    let clients: Vec<_> = (0..REQUESTS).map(ask).collect();
    let statuses: Vec<u16> = clients.into_iter().map(|client| client.join().expect("a status")).collect();
    let served = u32::try_from(statuses.iter().filter(|status| **status == 200).count()).expect("a few");
    let refused = upstream.counts().by_status.get("429").copied().unwrap_or(0);
    runtime.block_on(upstream.shutdown());
    (served, refused)
}

/// What is left is told with each answer: it is used up to the last one, and next to nothing is refused. What is sent at
/// the same time over two connections may arrive in either order, so the last ones are not sure.
#[test]
fn what_is_left_of_a_limit_is_used_and_not_overdrawn() {
    let (served, refused) = served_and_refused(true);
    assert!(served >= REQUESTS - 2, "{served} served");
    assert!(refused <= 5, "{refused} refused");
    // Without being told it is found out by refusals.
    let (served_untold, refused_untold) = served_and_refused(false);
    assert!(refused_untold >= 3 * refused.max(4), "only {refused_untold} refused, {served_untold} served");
}
