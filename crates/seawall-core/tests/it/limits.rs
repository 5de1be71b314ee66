//! What upstreams say is left of their limits, and how much they have to do.

use crate::world::{at, equal, millis, request};
use seawall_core::Engine;
use seawall_core::advice::Form;
use seawall_core::capacity::{Allowance, Left, ServerLoad};
use seawall_core::classify::AttemptEnd;
use seawall_core::cost::Demand;
use seawall_core::engine::{Arrival, Input, Output, Respond};
use seawall_core::id::{DeploymentId, RequestId};
use seawall_core::outcome::Outcome;
use seawall_core::protection::Protection;
use seawall_core::settings::Settings;
use seawall_core::time::Instant;

/// The engine, and what it has done.
struct Host {
    engine: Engine,
    sent: Vec<(u64, DeploymentId)>,
    responses: Vec<Respond>,
}

impl Host {
    fn new(settings: &Settings) -> Self {
        Self { engine: Engine::new(Instant::ZERO, settings), sent: Vec::new(), responses: Vec::new() }
    }

    fn tell(&mut self, millis: u64, input: Input) {
        self.engine.handle(at(millis), input);
        while let Some(output) = self.engine.poll() {
            match output {
                Output::Dispatch(dispatch) => {
                    self.sent.push((dispatch.permit.request().0, dispatch.permit.deployment()));
                }
                Output::Respond(respond) => self.responses.push(respond),
                other => unreachable!("{other:?}"),
            }
        }
    }

    fn arrive(&mut self, millis: u64, ids: impl IntoIterator<Item = u64>) {
        ids.into_iter().for_each(|id| self.tell(millis, Input::Arrived(request(id))));
    }

    fn says(&mut self, millis: u64, id: u64, allowance: Allowance) {
        self.tell(millis, Input::Allowance(RequestId(id), 1, allowance));
    }

    fn ends(&mut self, millis: u64, id: u64, end: AttemptEnd) {
        self.tell(millis, Input::AttemptEnded(RequestId(id), 1, end));
    }

    fn sent(&self) -> Vec<u64> {
        self.sent.iter().map(|(id, _)| *id).collect()
    }

    /// What closes the first deployment, in milliseconds, and its health.
    fn state(&self, millis: u64) -> (u128, &'static str) {
        let view = self.engine.view(at(millis));
        let first = &view[0].deployments[0];
        (first.closed_for.as_millis(), first.health)
    }
}

fn requests(remaining: u64, limit: Option<u64>, reset_ms: Option<u64>) -> Allowance {
    Allowance { requests: Some(Left { remaining, limit, reset: reset_ms.map(millis) }), tokens: None }
}

#[test]
fn what_is_left_is_sent_and_the_rest_waits_for_the_reset() {
    let mut host = Host::new(&equal(1));
    host.arrive(0, 1..=3);
    host.says(100, 1, requests(4, None, Some(5_000)));
    host.ends(100, 1, AttemptEnd::Completed);
    // Two were sent after the first one: two are left.
    host.arrive(100, 4..=7);
    assert_eq!(host.sent(), [1, 2, 3, 4, 5]);
    assert_eq!(host.state(100), (5_000, "healthy"));
    assert_eq!(host.engine.next_deadline(), Some(at(5_100)));
    host.ends(200, 2, AttemptEnd::Completed);
    assert_eq!(host.sent().len(), 5, "room there is, but nothing left");
    host.tell(5_099, Input::Tick);
    assert_eq!(host.sent().len(), 5);
    host.tell(5_100, Input::Tick);
    assert_eq!(host.sent(), [1, 2, 3, 4, 5, 6, 7]);
    assert!(host.responses.iter().all(|respond| respond.outcome == Outcome::Served));
}

#[test]
fn a_later_answer_opens_it_again_and_a_told_limit_fills_up() {
    let mut host = Host::new(&equal(1));
    host.arrive(0, 1..=2);
    host.says(0, 1, requests(0, None, Some(5_000)));
    host.arrive(0, [3]);
    assert_eq!(host.sent(), [1, 2]);
    host.says(10, 2, requests(1, None, Some(5_000)));
    assert_eq!(host.sent(), [1, 2, 3]);
    // Ten in a second: the second of two is let go 200 ms later.
    host.says(20, 3, requests(0, Some(10), Some(1_000)));
    host.arrive(20, 4..=5);
    assert_eq!((host.sent().len(), host.engine.next_deadline()), (3, Some(at(120))));
    host.tell(120, Input::Tick);
    assert_eq!((host.sent().len(), host.engine.next_deadline()), (4, Some(at(220))));
    host.tell(220, Input::Tick);
    assert_eq!(host.sent(), [1, 2, 3, 4, 5]);
}

#[test]
fn the_others_take_over_and_a_refusal_has_the_last_word() {
    let mut host = Host::new(&equal(2));
    host.arrive(0, 1..=2);
    let first = host.sent.iter().find(|(_, deployment)| deployment.index() == 0).expect("one each").0;
    host.says(0, first, requests(0, None, Some(60_000)));
    host.arrive(0, 10..=12);
    assert!(host.sent[2..].iter().all(|(_, deployment)| deployment.index() == 1), "{:?}", host.sent);
    // Its own wait is shorter than the reset: it holds.
    host.ends(10, first, AttemptEnd::Throttled { wait: Some(millis(200)) });
    assert_eq!(host.state(10), (200, "healthy"));
}

#[test]
fn who_cannot_wait_for_the_reset_is_told_when_it_is() {
    let mut host = Host::new(&equal(1));
    host.arrive(0, 1..=2);
    host.says(0, 1, requests(0, None, Some(30_000)));
    host.arrive(0, [3]);
    let respond = host.responses.pop().expect("its patience is ten seconds");
    assert_eq!(respond.outcome, Outcome::CapacityExhausted);
    let Some(Form::Wait(wait) | Form::WaitStop(wait)) = respond.form else { panic!("{respond:?}") };
    assert!((millis(30_000)..millis(45_000)).contains(&wait), "{wait:?}");
}

#[test]
fn tokens_are_counted_by_their_estimate() {
    let mut host = Host::new(&equal(1));
    let demand = Demand { input_tokens: 100, max_output_tokens: Some(100), ..Demand::default() };
    let ask = |host: &mut Host, id| host.tell(0, Input::Arrived(Arrival { demand, ..request(id) }));
    let tokens = |remaining| Allowance {
        requests: None,
        tokens: Some(Left { remaining, limit: None, reset: Some(millis(4_000)) }),
    };
    ask(&mut host, 1);
    host.says(0, 1, tokens(700));
    (2..=9).for_each(|id| ask(&mut host, id));
    // Three of 200 fit, and the rest of 100 is not enough for one more.
    assert_eq!(host.sent(), [1, 2, 3, 4]);
    assert_eq!(host.state(0), (4_000, "healthy"));
}

#[test]
fn nonsense_closes_nothing_for_long_and_switched_off_nothing_at_all() {
    let closed = |settings: &Settings, allowance| {
        let mut host = Host::new(settings);
        host.arrive(0, 1..=2);
        host.says(0, 1, allowance);
        host.state(0).0
    };
    let pool = equal(1);
    for (allowance, closed_for) in [
        (Allowance::default(), 0),
        (requests(0, None, Some(0)), 0),
        (requests(0, Some(0), Some(0)), 0),
        (requests(u64::MAX, Some(u64::MAX), Some(u64::MAX)), 0),
        (requests(0, None, None), 100),
        (requests(0, None, Some(u64::MAX)), 60_000),
        (requests(0, Some(2), Some(3_600_000)), 60_000),
    ] {
        assert_eq!(closed(&pool, allowance), closed_for, "{allowance:?}");
    }
    let mut off = equal(1);
    off.pools[0].protections = off.pools[0].protections.without(Protection::StatedWaits);
    assert_eq!(closed(&off, requests(0, None, Some(9_000))), 0);
    // Of an attempt that is over, or never was, it says nothing.
    let mut host = Host::new(&pool);
    host.arrive(0, [1]);
    host.says(0, 2, requests(0, None, Some(9_000)));
    host.tell(0, Input::Allowance(RequestId(1), 2, requests(0, None, Some(9_000))));
    assert_eq!(host.state(0).0, 0);
}

/// An upstream that always says that nothing is left, and serves: it is believed once, and then left alone.
#[test]
fn a_healthy_upstream_is_not_shut_off_by_what_it_says() {
    let mut host = Host::new(&equal(1));
    let nothing = requests(0, None, Some(60_000));
    let mut served = 0;
    for step in 0..120 {
        let now = 100 * step;
        host.arrive(now, [step]);
        for (id, _) in host.sent.split_off(0) {
            host.says(now, id, nothing);
            host.ends(now, id, AttemptEnd::Completed);
            served += 1;
        }
        host.tell(now, Input::Tick);
    }
    // It is asked again after a second.
    assert!(served >= 110, "{served} of 120");
}

#[test]
fn a_server_that_keeps_requests_waiting_gets_no_more_until_it_is_silent() {
    let mut host = Host::new(&equal(1));
    host.arrive(0, 1..=10);
    let limit = |host: &Host, millis| host.engine.view(at(millis))[0].deployments[0].limit;
    let load = Input::ServerLoad(DeploymentId::from_index(0), ServerLoad { running: 4, waiting: 6 });
    host.tell(1_000, load);
    assert_eq!(limit(&host, 1_000), None);
    host.tell(2_000, load);
    assert_eq!(limit(&host, 2_000), Some(5));
    host.arrive(2_000, [11]);
    assert_eq!((host.sent().len(), host.engine.next_deadline()), (10, Some(at(6_000))));
    for id in 1..=5 {
        host.ends(2_500, id, AttemptEnd::Completed);
    }
    assert_eq!(host.sent().len(), 10, "five are there, and five is the ceiling");
    host.tell(6_000, Input::Tick);
    assert_eq!((host.sent().len(), limit(&host, 6_000)), (11, None));
    // One that nobody knows, and a pool in which nothing is to be found out.
    host.tell(7_000, Input::ServerLoad(DeploymentId::from_index(9), ServerLoad { running: 4, waiting: 6 }));
    let mut off = equal(1);
    off.pools[0].protections = off.pools[0].protections.without(Protection::CapacityDiscovery);
    let mut host = Host::new(&off);
    host.arrive(0, 1..=10);
    host.tell(1_000, load);
    host.tell(2_000, load);
    assert_eq!(limit(&host, 2_000), None);
}
