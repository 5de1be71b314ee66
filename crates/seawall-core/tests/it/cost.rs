//! What requests cost: estimated when they arrive, in flight while they run, settled when they end.

use crate::world::{at, equal, request, settings, tenant};
use seawall_core::Engine;
use seawall_core::classify::AttemptEnd;
use seawall_core::cost::{Cost, Demand, Used, Work};
use seawall_core::engine::{Arrival, Identity, Input, Output, PoolView, Respond};
use seawall_core::id::{PoolId, RequestId, TenantId};
use seawall_core::outcome::Outcome;
use seawall_core::settings::{Capacity, Settings};
use seawall_core::time::Instant;

/// A prompt that was reckoned at 100 tokens.
const ASKED: Demand = Demand { input_tokens: 100, input_is_estimated: true, max_output_tokens: None, answers: 1 };
const TOLD: Used = Used {
    input_tokens: Some(80),
    cached_input_tokens: 30,
    output_tokens: 20,
    output_is_estimated: false,
    first_output: None,
};
/// 50 that were read anew, 30 from a cache, 20 made.
const TOLD_COST: Cost = Cost { work: Work::from_thousandths(50_000 + 3_000 + 40_000), is_estimated: false };

const fn counted(output_tokens: u64) -> Used {
    Used { input_tokens: None, cached_input_tokens: 0, output_tokens, output_is_estimated: true, first_output: None }
}

const fn estimated(units: u64) -> Cost {
    Cost { work: Work::from_thousandths(units * 1_000), is_estimated: true }
}

fn asks(id: u64) -> Arrival {
    Arrival { demand: ASKED, ..request(id) }
}

/// The same as every other one of these.
fn alike(id: u64, previous_attempts: u32) -> Arrival {
    let identity = Identity { fingerprint: 1, key: None, previous_attempts, may_repeat: true };
    Arrival { identity: Some(identity), ..asks(id) }
}

/// An engine and the time, in milliseconds, that moves on with every input.
struct Host {
    engine: Engine,
    now: u64,
    responses: Vec<Respond>,
}

impl Host {
    fn new(settings: &Settings) -> Self {
        Self { engine: Engine::new(Instant::ZERO, settings), now: 0, responses: Vec::new() }
    }

    fn tell(&mut self, inputs: &[Input]) {
        for input in inputs {
            self.now += 10;
            self.engine.handle(at(self.now), *input);
            while let Some(output) = self.engine.poll() {
                if let Output::Respond(respond) = output {
                    self.responses.push(respond);
                }
            }
        }
    }

    fn view(&self) -> PoolView {
        self.engine.view(at(self.now)).swap_remove(0)
    }

    /// Units in flight at the first deployment, and waiting.
    fn units(&self) -> (u64, u64) {
        let view = self.view();
        (view.deployments[0].work_in_flight.units(), view.work_waiting.units())
    }

    /// Units of a tenant that are settled: told, and estimated.
    fn settled(&self, tenant: u32) -> (u64, u64) {
        let all = self.engine.settled();
        let of = all.iter().find(|of| of.tenant == TenantId(tenant) && of.pool == PoolId(0));
        of.map_or((0, 0), |of| (of.work.counted.units(), of.work.estimated.units()))
    }

    fn cost(&self, request: u64) -> Cost {
        let respond = self.responses.iter().find(|respond| respond.request == RequestId(request));
        respond.expect("it has ended").cost
    }
}

fn ended(id: u64, number: u32, end: AttemptEnd) -> Input {
    Input::AttemptEnded(RequestId(id), number, end)
}

fn begun(id: u64) -> Input {
    Input::AttemptHeaders(RequestId(id), 1)
}

#[test]
fn work_waits_then_is_in_flight_and_then_is_settled() {
    let mut host = Host::new(&settings(&[Capacity::Provisioned { size: 1 }]));
    let short = Demand { max_output_tokens: Some(20), ..ASKED };
    host.tell(&[Input::Arrived(asks(1)), Input::Arrived(Arrival { demand: short, ..request(2) })]);
    assert_eq!(host.units(), (100 + 2 * 256, 100 + 2 * 20));
    host.tell(&[begun(1), Input::Used(RequestId(1), 1, TOLD), ended(1, 1, AttemptEnd::Completed)]);
    assert_eq!((host.cost(1), host.units()), (TOLD_COST, (140, 0)));
    host.tell(&[begun(2), ended(2, 1, AttemptEnd::Completed)]);
    assert_eq!((host.cost(2), host.units()), (estimated(140), (0, 0)), "the estimate stands");
    assert_eq!(host.settled(0), (93, 140));
}

#[test]
fn the_estimate_follows_each_tenants_own_answers() {
    let mut all = equal(1);
    all.tenants.push(tenant("reports"));
    let mut host = Host::new(&all);
    let mut id = 0;
    let mut answer = |host: &mut Host, of: u32, tokens: u64| {
        id += 1;
        host.tell(&[Input::Arrived(Arrival { tenant: TenantId(of), ..asks(id) })]);
        let in_flight = host.units().0;
        let used = Used { output_tokens: tokens, ..TOLD };
        host.tell(&[begun(id), Input::Used(RequestId(id), 1, used), ended(id, 1, AttemptEnd::Completed)]);
        in_flight
    };
    // 4, 8, .. 80 tokens against 400, 800, .. 8000: the eighth decile is 64 and 6400.
    for number in 1..=20 {
        answer(&mut host, 0, number * 4);
        answer(&mut host, 1, number * 400);
    }
    let expected = |tenant| host.engine.expected_output_tokens(PoolId(0), TenantId(tenant));
    assert_eq!((expected(0), expected(1)), (64, 6_400));
    // Half of all answers are short: the eighth decile of them all is that of 40.
    assert_eq!(host.view().expected_output_tokens, 4_800);
    assert_eq!((answer(&mut host, 0, 1), answer(&mut host, 1, 1)), (100 + 2 * 64, 100 + 2 * 6_400));
    assert_eq!(host.engine.expected_output_tokens(PoolId(9), TenantId(0)), 0, "there is no such model");
}

#[test]
fn a_second_attempt_costs_again_and_a_failed_one_nothing() {
    let mut host = Host::new(&equal(2));
    host.tell(&[Input::Arrived(asks(1)), ended(1, 1, AttemptEnd::Failed)]);
    assert_eq!(host.settled(0), (0, 0), "an error answer is free");
    host.tell(&[Input::Used(RequestId(1), 1, counted(999)), Input::Used(RequestId(1), 2, TOLD)]);
    host.tell(&[ended(1, 2, AttemptEnd::Completed)]);
    assert_eq!((host.cost(1), host.settled(0)), (TOLD_COST, (93, 0)));
    // The first one was silent until its time was over: its prompt had been sent.
    host.tell(&[Input::Arrived(asks(2)), ended(2, 1, AttemptEnd::TimedOut)]);
    host.tell(&[Input::Used(RequestId(2), 2, TOLD), ended(2, 2, AttemptEnd::Completed)]);
    assert_eq!(host.cost(2), estimated(100).plus(TOLD_COST));
    assert_eq!((host.settled(0), host.units()), ((186, 100), (0, 0)));
}

#[test]
fn f18_who_leaves_midway_pays_for_what_was_made() {
    let mut host = Host::new(&equal(1));
    let leaves = |host: &mut Host, arrival: Arrival| {
        let id = arrival.request;
        host.tell(&[Input::Arrived(arrival), begun(id.0), Input::Used(id, 1, counted(3)), Input::ClientGone(id)]);
    };
    leaves(&mut host, asks(1));
    assert_eq!((host.cost(1), host.settled(0)), (estimated(106), (0, 106)));
    // The attempt of a flight is ended by its host: until then more is made.
    leaves(&mut host, alike(2, 0));
    assert_eq!((host.cost(2), host.settled(0), host.units().0), (estimated(106), (0, 106), 612));
    host.tell(&[Input::Used(RequestId(2), 1, counted(5)), ended(2, 1, AttemptEnd::ClientGone)]);
    assert_eq!((host.settled(0), host.units()), ((0, 106 + 110), (0, 0)));
    // Nothing has come yet, but the prompt has been sent.
    host.tell(&[Input::Arrived(asks(3)), Input::ClientGone(RequestId(3))]);
    assert_eq!((host.cost(3), host.units()), (estimated(100), (0, 0)));
}

#[test]
fn who_joins_costs_nothing_more() {
    let mut host = Host::new(&equal(1));
    host.tell(&[Input::Arrived(alike(1, 0)), Input::Arrived(alike(2, 1)), Input::Arrived(alike(3, 1))]);
    assert_eq!(host.units(), (612, 0));
    host.tell(&[begun(1), Input::Used(RequestId(1), 1, TOLD), ended(1, 1, AttemptEnd::Completed)]);
    assert_eq!([1, 2, 3].map(|id| host.cost(id)), [TOLD_COST, Cost::NONE, Cost::NONE]);
    assert!(host.responses.iter().all(|respond| respond.outcome == Outcome::Served));
    assert_eq!((host.settled(0), host.units()), ((93, 0), (0, 0)));
}

#[test]
fn a_word_about_another_attempt_is_ignored() {
    let mut host = Host::new(&equal(2));
    host.tell(&[Input::Used(RequestId(1), 1, TOLD), Input::Arrived(asks(1)), Input::Used(RequestId(1), 2, TOLD)]);
    host.tell(&[Input::Used(RequestId(1), 0, TOLD), ended(1, 1, AttemptEnd::Completed)]);
    assert_eq!(host.cost(1), estimated(612));
    host.tell(&[Input::Used(RequestId(1), 1, TOLD), ended(1, 1, AttemptEnd::Completed)]);
    assert_eq!((host.settled(0), host.units()), ((0, 612), (0, 0)));
}
