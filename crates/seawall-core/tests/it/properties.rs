//! Laws under random settings and random sequences of inputs.

use crate::world::{at, is_observed, millis, request, settings, tenant};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use seawall_core::Engine;
use seawall_core::advice::Form;
use seawall_core::classify::AttemptEnd;
use seawall_core::cost::{Demand, Used, Work};
use seawall_core::engine::{Arrival, Input, Output, PoolView, Scope, Settled};
use seawall_core::id::{PoolId, RequestId, TenantId};
use seawall_core::outcome::Outcome;
use seawall_core::permit::Payment;
use seawall_core::routing::REGISTRY;
use seawall_core::settings::{Capacity, Criticality, DeploymentSettings, Mode, Settings};
use seawall_core::time::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// One step of a host.
#[derive(Clone, Copy, Debug)]
enum Step {
    Arrive {
        tenant: u32,
        class: usize,
        deadline_ms: Option<u64>,
        patience_ms: Option<u64>,
        demand: Demand,
    },
    /// The running attempt at this place, counted from the oldest, ends.
    End {
        which: usize,
        end: AttemptEnd,
    },
    Headers {
        which: usize,
    },
    /// The host tells what the running attempt at this place has used until now.
    Used {
        which: usize,
        used: Used,
    },
    /// The request at this place among all that have arrived leaves, ended or not.
    Gone {
        which: usize,
    },
    Pass {
        ms: u64,
    },
}

fn any_end() -> impl Strategy<Value = AttemptEnd> {
    prop_oneof![
        4 => Just(AttemptEnd::Completed),
        1 => Just(AttemptEnd::ClientFault),
        1 => Just(AttemptEnd::ContextExceeded),
        2 => proptest::option::of(0_u64..70_000)
            .prop_map(|wait| AttemptEnd::Throttled { wait: wait.map(Duration::from_millis) }),
        1 => Just(AttemptEnd::CredentialRefused),
        2 => Just(AttemptEnd::NotSent),
        1 => Just(AttemptEnd::StaleConnection),
        4 => Just(AttemptEnd::Failed),
        1 => Just(AttemptEnd::TimedOut),
        1 => Just(AttemptEnd::Truncated),
        1 => Just(AttemptEnd::StreamError),
        1 => Just(AttemptEnd::DeadlinePassed),
        1 => Just(AttemptEnd::ClientGone),
    ]
}

fn any_tokens() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0_u64..5_000, 1 => any::<u64>(), 1 => Just(u64::MAX)]
}

/// The input is always reckoned, so that what is counted is what was told.
fn any_demand() -> impl Strategy<Value = Demand> {
    (any_tokens(), proptest::option::of(any_tokens()), 0_u32..5).prop_map(
        |(input_tokens, max_output_tokens, answers)| Demand {
            input_tokens,
            input_is_estimated: true,
            max_output_tokens,
            answers,
        },
    )
}

/// In one piece, so that weights stay what they are at the start.
fn any_used() -> impl Strategy<Value = Used> {
    (proptest::option::of(any_tokens()), any_tokens(), any_tokens(), any::<bool>()).prop_map(
        |(input_tokens, cached_input_tokens, output_tokens, output_is_estimated)| Used {
            input_tokens,
            cached_input_tokens,
            output_tokens,
            output_is_estimated,
            first_output: None,
        },
    )
}

/// The work of what an upstream has told, in thousandths of a unit; `None`: it has not told everything.
fn told(used: &Used) -> Option<u64> {
    let input = used.input_tokens.filter(|_| !used.output_is_estimated)?;
    let cached = used.cached_input_tokens.min(input);
    let parts = [(input - cached, 1_000), (cached, 100), (used.output_tokens, 2_000)];
    let all: u128 = parts.iter().map(|(tokens, weight)| u128::from(*tokens) * weight).sum();
    Some(u64::try_from(all).unwrap_or(u64::MAX).min(Work::MOST.thousandths()))
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0_u32..3, 0_usize..4, proptest::option::weighted(0.2, 0_u64..20_000),
              proptest::option::weighted(0.2, 0_u64..20_000), any_demand())
            .prop_map(|(tenant, class, deadline_ms, patience_ms, demand)| Step::Arrive {
                tenant, class, deadline_ms, patience_ms, demand,
            }),
        6 => (0_usize..64, any_end()).prop_map(|(which, end)| Step::End { which, end }),
        1 => (0_usize..64).prop_map(|which| Step::Headers { which }),
        3 => (0_usize..64, any_used()).prop_map(|(which, used)| Step::Used { which, used }),
        1 => (0_usize..256).prop_map(|which| Step::Gone { which }),
        3 => prop_oneof![4 => 0_u64..200, 2 => 0_u64..3_000, 1 => 0_u64..40_000].prop_map(|ms| Step::Pass { ms }),
    ]
}

fn any_settings() -> impl Strategy<Value = Settings> {
    let size = prop_oneof![
        (1_u32..4).prop_map(|size| Capacity::Provisioned { size }),
        proptest::option::of(1_u32..5).prop_map(|size| Capacity::Standard { size }),
    ];
    let deployment = (size, 1_u32..5, 0_u32..3, proptest::option::of(prop_oneof![Just("eu"), Just("us")]));
    let retry = (1_u32..3, 0_u32..60, 0_u32..3, 0_u32..60, 1_u64..12);
    let pool = (0..REGISTRY.len(), 0_u32..20, 0_u64..15_000, 1_u32..5, 1_u32..80);
    let mode = prop_oneof![4 => Just(Mode::Enforce), 1 => Just(Mode::Observe)];
    let modes = proptest::array::uniform4(mode);
    (proptest::collection::vec(deployment, 1..7), retry, pool, modes, any::<u64>()).prop_map(
        |(deployments, retry, pool, modes, seed)| {
            let sizes: Vec<_> = deployments.iter().map(|deployment| deployment.0).collect();
            let mut all = settings(&sizes);
            for (told, (_, weight, group, boundary)) in all.deployments.iter_mut().zip(deployments) {
                told.weight = weight;
                told.priority_group = group;
                told.boundary = boundary.map(Into::into);
            }
            all.tenants.extend([tenant("eu"), tenant("low")]);
            all.tenants[1].boundary = Some("eu".into());
            all.tenants[2].priority_ceiling = Criticality::SheddablePlus;
            all.pools[0].mode = modes[3];
            all.tenants.iter_mut().zip(modes).for_each(|(tenant, mode)| tenant.mode = mode);
            let settings = &mut all.pools[0];
            settings.policy = REGISTRY[pool.0].name.into();
            settings.queue.max_waiting = pool.1;
            settings.queue.patience = millis(pool.2);
            settings.ejection.consecutive_failures = pool.3;
            settings.ejection.max_ejected_percent = pool.4;
            settings.retry.max_attempts = retry.0;
            settings.retry.budget_percent = retry.1;
            settings.retry.floor_per_second = retry.2;
            settings.retry.not_sent_percent = retry.3;
            settings.retry.window = Duration::from_secs(retry.4);
            all.seed = seed;
            all
        },
    )
}

/// Drives an engine as a host does and checks every output.
struct Host<'a> {
    settings: &'a Settings,
    engine: Engine,
    now: Instant,
    arrivals: Vec<Arrival>,
    running: VecDeque<RequestId>,
    /// Where the attempt of each request went last.
    places: BTreeMap<RequestId, usize>,
    relaying: BTreeSet<RequestId>,
    attempts: BTreeMap<RequestId, u32>,
    ended: BTreeSet<RequestId>,
    /// What the running attempts have used, as far as that was told.
    used: BTreeMap<RequestId, Used>,
    /// The work that upstreams have told of attempts that ended, and that which responses told.
    told_work: u64,
    responded_work: u64,
    /// Times of first attempts and of both kinds of paid ones, in order.
    paid: BTreeMap<Payment, Vec<(Instant, TenantId)>>,
    trace: Vec<String>,
}

impl<'a> Host<'a> {
    fn new(settings: &'a Settings) -> Self {
        Self {
            settings,
            engine: Engine::new(Instant::ZERO, settings),
            now: Instant::ZERO,
            arrivals: Vec::new(),
            running: VecDeque::new(),
            places: BTreeMap::new(),
            relaying: BTreeSet::new(),
            attempts: BTreeMap::new(),
            ended: BTreeSet::new(),
            used: BTreeMap::new(),
            told_work: 0,
            responded_work: 0,
            paid: BTreeMap::new(),
            trace: Vec::new(),
        }
    }

    fn input(&mut self, input: Input) {
        self.engine.handle(self.now, input);
        while let Some(output) = self.engine.poll() {
            self.trace.push(format!("{:?} {output:?}", self.now));
            match output {
                Output::Dispatch(dispatch) => {
                    let permit = dispatch.permit;
                    self.check_attempt(permit.request(), permit.deployment().index(), permit.payment());
                    assert_eq!(permit.number(), self.attempts[&permit.request()]);
                }
                Output::Respond(respond) => {
                    assert!(!self.running.contains(&respond.request), "no answer while an attempt runs");
                    assert!(self.ended.insert(respond.request), "one answer for one arrival");
                    assert_eq!(respond.attempts, self.attempts.get(&respond.request).copied().unwrap_or(0));
                    check_form(respond.outcome, respond.form);
                    self.responded_work += respond.cost.work.thousandths();
                    assert!(
                        respond.observed.is_none() || self.observes(respond.request),
                        "a verdict on what is observed"
                    );
                }
                Output::Notice(_) => {}
                Output::Join(_) | Output::Cancel(_) | Output::Forget(_) => unreachable!("nothing here has an identity"),
            }
        }
        let view = &self.engine.view(self.now)[0];
        let most = self.settings.pools[0].queue.max_waiting as usize;
        assert!(view.waiting <= most && view.would_wait <= most, "the line has a bound");
        let in_flight: u32 = view.deployments.iter().map(|deployment| deployment.in_flight).sum();
        assert_eq!(in_flight as usize, self.running.len());
        check_work(view);
        assert_eq!(self.engine.live(), self.running.len() + view.waiting, "who is neither running nor waiting ended");
    }

    /// The attempt of this request is over, told or not.
    fn attempt_is_over(&mut self, request: RequestId) {
        self.told_work += self.used.remove(&request).as_ref().and_then(told).unwrap_or(0);
    }

    fn observes(&self, request: RequestId) -> bool {
        is_observed(self.settings, &self.arrivals[usize::try_from(request.0).expect("small")])
    }

    /// What is observed is forwarded at once wherever it may go.
    fn check_forwarded(&self, arrival: &Arrival) {
        let boundary = &self.settings.tenants[arrival.tenant.index()].boundary;
        let permitted = |told: &DeploymentSettings| boundary.is_none() || *boundary == told.boundary;
        if self.settings.deployments.iter().any(permitted) {
            assert!(self.running.contains(&arrival.request), "one attempt at once");
        } else {
            assert!(self.ended.contains(&arrival.request), "it may go nowhere");
        }
    }

    fn check_attempt(&mut self, request: RequestId, deployment: usize, payment: Payment) {
        assert!(!self.ended.contains(&request), "no attempt after the answer");
        assert!(!self.running.contains(&request), "one attempt at a time");
        assert!(!self.relaying.contains(&request), "no attempt after the first byte");
        let arrival = self.arrivals[usize::try_from(request.0).expect("small")];
        let most_attempts = if self.observes(request) {
            1
        } else {
            assert!(arrival.deadline.is_none_or(|deadline| deadline > self.now));
            let there = self.running.iter().filter(|running| self.places[*running] == deployment).count();
            let told = self.settings.deployments[deployment].capacity.size();
            assert!(told.is_none_or(|size| there < size as usize), "a told size is kept, whoever fills it");
            self.settings.pools[0].retry.max_attempts
        };
        let boundary = &self.settings.tenants[arrival.tenant.index()].boundary;
        assert!(boundary.is_none() || *boundary == self.settings.deployments[deployment].boundary, "residency");
        let made = self.attempts.entry(request).or_default();
        *made += 1;
        assert!(*made <= most_attempts);
        assert_eq!(payment == Payment::Admission, *made == 1, "what follows the first is paid for");
        self.running.push_back(request);
        self.places.insert(request, deployment);
        self.paid.entry(payment).or_default().push((self.now, arrival.tenant));
        self.check_budget(payment, arrival.tenant);
    }

    /// The law of the budget at the moment of payment. A payment lives a window longer than the first attempts that
    /// allowed it, so what a window may hold is bounded by the first attempts of two windows.
    fn check_budget(&self, payment: Payment, tenant: TenantId) {
        let retry = &self.settings.pools[0].retry;
        let percent = match payment {
            Payment::Admission => return,
            Payment::RetryBudget => retry.budget_percent,
            Payment::NotSentBucket => retry.not_sent_percent,
        };
        // A window forgets a tenth at a time: it never forgets early, at the latest a tenth late.
        let within = |payment: &Payment, span: Duration, who: Option<TenantId>| {
            let paid = self.paid.get(payment).map_or(&[][..], Vec::as_slice);
            let inside =
                |(when, by): &&(Instant, TenantId)| self.now.since(*when) < span && who.is_none_or(|who| who == *by);
            u64::try_from(paid.iter().filter(inside).count()).expect("small")
        };
        let window = retry.window;
        let floor = u64::from(retry.floor_per_second) * window.as_secs();
        for who in [None, Some(tenant)] {
            let extra = within(&payment, window * 9 / 10, who);
            let first = within(&Payment::Admission, window * 2, who);
            assert!(extra <= first * u64::from(percent) / 100 + floor, "{payment:?}: {extra} for {first} + {floor}");
        }
    }

    fn pass(&mut self, span: Duration) {
        let until = self.now + span;
        let mut ticks = 0;
        while let Some(due) = self.engine.next_deadline().filter(|due| *due <= until) {
            self.now = self.now.max(due);
            self.input(Input::Tick);
            ticks += 1;
            assert!(ticks < 10_000, "time passes");
        }
        self.now = until;
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Arrive { tenant, class, deadline_ms, patience_ms, demand } => {
                let arrival = Arrival {
                    tenant: TenantId(tenant),
                    criticality: Criticality::ALL[class],
                    deadline: deadline_ms.map(|ms| self.now + millis(ms)),
                    patience: patience_ms.map(millis),
                    demand,
                    ..request(self.arrivals.len() as u64)
                };
                self.arrivals.push(arrival);
                self.input(Input::Arrived(arrival));
                if is_observed(self.settings, &arrival) {
                    self.check_forwarded(&arrival);
                }
            }
            Step::End { which, end } => {
                if !self.running.is_empty() {
                    let request = self.running.remove(which % self.running.len()).expect("it is in range");
                    self.attempt_is_over(request);
                    self.input(Input::AttemptEnded(request, self.attempts[&request], end));
                }
            }
            Step::Headers { which } => {
                if !self.running.is_empty() {
                    let request = self.running[which % self.running.len()];
                    self.relaying.insert(request);
                    self.input(Input::AttemptHeaders(request, self.attempts[&request]));
                }
            }
            Step::Used { which, used } => {
                if !self.running.is_empty() {
                    let request = self.running[which % self.running.len()];
                    self.used.insert(request, used);
                    self.input(Input::Used(request, self.attempts[&request], used));
                }
            }
            Step::Gone { which } => {
                if !self.arrivals.is_empty() {
                    let request = self.arrivals[which % self.arrivals.len()].request;
                    self.running.retain(|running| *running != request);
                    self.attempt_is_over(request);
                    self.input(Input::ClientGone(request));
                    assert!(self.ended.contains(&request));
                }
            }
            Step::Pass { ms } => self.pass(millis(ms)),
        }
    }

    /// All attempts end, time passes: everything is over.
    fn settle(&mut self) {
        for _ in 0..self.arrivals.len() * 4 + 10 {
            while let Some(request) = self.running.pop_front() {
                self.attempt_is_over(request);
                self.input(Input::AttemptEnded(request, self.attempts[&request], AttemptEnd::Completed));
            }
            self.pass(millis(1_000));
            if self.engine.live() == 0 {
                break;
            }
        }
        assert_eq!(self.engine.live(), 0, "everything ends");
        assert_eq!(self.ended.len(), self.arrivals.len(), "with one answer each");
        let view = &self.engine.view(self.now)[0];
        let sum =
            |work: fn(&Settled) -> Work| self.engine.settled().iter().map(|of| work(of).thousandths()).sum::<u64>();
        assert_eq!(sum(|of| of.work.counted), self.told_work, "what was told is what is counted");
        assert_eq!(sum(|of| of.work.sum()), self.responded_work, "every request knows its part");
        assert!(view.would_wait == 0 && view.deployments.iter().all(|view| view.would_run == 0), "nor in the shadow");
    }
}

/// There is work in flight, or waiting, only where something is.
fn check_work(view: &PoolView) {
    assert!(view.waiting > 0 || view.work_waiting == Work::ZERO);
    for deployment in &view.deployments {
        assert!(deployment.in_flight > 0 || deployment.work_in_flight == Work::ZERO);
        let most = Work::MOST.thousandths() * u64::from(deployment.in_flight);
        assert!(deployment.work_in_flight.thousandths() <= most);
    }
}

fn check_form(outcome: Outcome, form: Option<Form>) {
    let bounds = millis(501)..=millis(58_000);
    match form {
        Some(Form::Wait(wait) | Form::RetrySoon(wait)) => assert!(bounds.contains(&wait), "{outcome:?} {wait:?}"),
        Some(Form::WaitStop(wait) | Form::Stop(wait)) => {
            assert!(bounds.contains(&wait) && wait >= millis(30_000), "{outcome:?} {wait:?}");
        }
        Some(Form::Leave(wait)) => assert!(wait <= millis(500), "{outcome:?} {wait:?}"),
        Some(Form::StopHard | Form::Auth) => {}
        None => assert!(
            matches!(
                outcome,
                Outcome::Served
                    | Outcome::ClientError
                    | Outcome::Truncated
                    | Outcome::StreamError
                    | Outcome::ClientGone
            ),
            "{outcome:?}"
        ),
    }
}

/// The same cases on every machine and in every run.
fn runner(cases: u32) -> TestRunner {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

#[test]
fn the_laws_hold_for_every_host_that_keeps_the_contract() {
    let strategy = (any_settings(), proptest::collection::vec(any_step(), 1..300));
    runner(250)
        .run(&strategy, |(settings, steps)| {
            let run = || {
                let mut host = Host::new(&settings);
                for step in &steps {
                    host.step(*step);
                }
                host.settle();
                host.trace
            };
            prop_assert_eq!(run(), run(), "the same inputs give the same outputs");
            Ok(())
        })
        .expect("the laws hold");
}

/// Law 12: whatever upstreams answer, one attempt at once for each arrival that may go somewhere, and no second one. The
/// shadow keeps the bounds that enforcing would have kept.
#[test]
fn what_is_observed_gets_one_attempt_at_once_and_no_second_one() {
    let strategy = (any_settings(), proptest::collection::vec(any_step(), 1..300));
    runner(250)
        .run(&strategy, |(mut settings, steps)| {
            settings.set_mode(Mode::Observe);
            let mut host = Host::new(&settings);
            for step in &steps {
                host.step(*step);
                let view = &host.engine.view(host.now)[0];
                prop_assert_eq!(view.waiting, 0);
                for (view, told) in view.deployments.iter().zip(&settings.deployments) {
                    prop_assert!(told.capacity.size().is_none_or(|size| view.would_run <= size), "{view:?}");
                }
            }
            host.settle();
            prop_assert!(host.attempts.values().all(|made| *made == 1));
            Ok(())
        })
        .expect("what is observed is forwarded");
}

/// Nobody waits while there is room that it may use and nothing is owed: the line is empty, or every place that could
/// take the head of it is full, closed or out.
#[test]
fn nobody_waits_beside_a_free_healthy_place() {
    let strategy = (any_settings(), proptest::collection::vec(any_step(), 1..200));
    runner(150)
        .run(&strategy, |(mut settings, steps)| {
            for tenant in &mut settings.tenants {
                tenant.boundary = None;
            }
            // Nothing is owed to a bucket, and no place is left out as the one that failed.
            settings.pools[0].retry.max_attempts = 1;
            let mut host = Host::new(&settings);
            for step in &steps {
                host.step(*step);
                let view = &host.engine.view(host.now)[0];
                let free = view.deployments.iter().any(|deployment| {
                    deployment.health == "healthy"
                        && deployment.closed_for.is_zero()
                        && deployment.limit.is_none_or(|limit| deployment.in_flight < limit)
                });
                prop_assert!(view.waiting == 0 || !free, "{view:?}");
            }
            Ok(())
        })
        .expect("nobody waits in vain");
}

#[derive(Clone, Copy, Debug)]
enum Noise {
    Arrived(u64, u32, u32, Option<u64>, Demand),
    Used(u64, u32, Used),
    Headers(u64),
    Ended(u64, u32, AttemptEnd),
    Gone(u64),
    Switch(Scope, Mode),
    Drain,
    Tick,
}

fn any_noise() -> impl Strategy<Value = (u64, Noise)> {
    let noise = prop_oneof![
        6 => (0_u64..20, 0_u32..5, 0_u32..3, proptest::option::of(0_u64..100_000), any_demand())
            .prop_map(|(id, tenant, pool, deadline, demand)| Noise::Arrived(id, tenant, pool, deadline, demand)),
        2 => (0_u64..22).prop_map(Noise::Headers),
        2 => (0_u64..22, 1_u32..3, any_used(), proptest::option::of(any::<u64>().prop_map(Instant::from_nanos)))
            .prop_map(|(id, number, used, first_output)| Noise::Used(id, number, Used { first_output, ..used })),
        6 => (0_u64..22, 1_u32..3, any_end()).prop_map(|(id, number, end)| Noise::Ended(id, number, end)),
        1 => (0_u64..22).prop_map(Noise::Gone),
        1 => (prop_oneof![(0_u32..3).prop_map(|id| Scope::Pool(PoolId(id))),
                          (0_u32..5).prop_map(|id| Scope::Tenant(TenantId(id)))],
              prop_oneof![Just(Mode::Enforce), Just(Mode::Observe)])
            .prop_map(|(scope, mode)| Noise::Switch(scope, mode)),
        1 => Just(Noise::Tick),
    ];
    let noise = prop_oneof![200 => noise, 1 => Just(Noise::Drain)];
    (prop_oneof![20 => 0_u64..100_000, 1 => Just(u64::MAX / 1_000_000)], noise)
}

/// A host that keeps no contract: ids that are unknown, used again and crossed, a clock that jumps both ways.
#[test]
fn no_order_of_inputs_panics_or_leaks() {
    let strategy = (any_settings(), proptest::collection::vec(any_noise(), 1..300));
    runner(250)
        .run(&strategy, |(settings, noise)| {
            let mut engine = Engine::new(at(50_000), &settings);
            let (mut begun, mut answered) = (0, 0);
            let mut live = 0;
            for (ms, noise) in noise {
                let input = match noise {
                    Noise::Arrived(id, tenant, pool, deadline, demand) => Input::Arrived(Arrival {
                        tenant: TenantId(tenant),
                        pool: PoolId(pool),
                        deadline: deadline.map(at),
                        demand,
                        ..request(id)
                    }),
                    Noise::Used(id, number, used) => Input::Used(RequestId(id), number, used),
                    Noise::Headers(id) => Input::AttemptHeaders(RequestId(id), 1),
                    Noise::Ended(id, number, end) => Input::AttemptEnded(RequestId(id), number, end),
                    Noise::Gone(id) => Input::ClientGone(RequestId(id)),
                    Noise::Switch(scope, mode) => Input::Switch(scope, mode),
                    Noise::Drain => Input::Drain,
                    Noise::Tick => Input::Tick,
                };
                engine.handle(at(ms), input);
                let outputs: Vec<_> = std::iter::from_fn(|| engine.poll()).collect();
                let answers = outputs.iter().filter(|output| matches!(output, Output::Respond(_))).count();
                answered += answers;
                begun += engine.live() + answers - live;
                live = engine.live();
                prop_assert_eq!(begun, answered + live);
                let view = engine.view(at(ms));
                let in_flight: u32 = view[0].deployments.iter().map(|deployment| deployment.in_flight).sum();
                prop_assert_eq!(live, in_flight as usize + view[0].waiting);
                prop_assert!(view[0].would_wait <= live);
            }
            // Everybody leaves: nothing is left.
            for id in 0..22 {
                engine.handle(Instant::MAX, Input::ClientGone(RequestId(id)));
            }
            prop_assert_eq!(engine.live(), 0);
            let view = engine.view(Instant::MAX);
            prop_assert_eq!((view[0].waiting, view[0].would_wait), (0, 0));
            prop_assert_eq!(view[0].work_waiting, Work::ZERO);
            prop_assert!(view[0].deployments.iter().all(|view| view.work_in_flight == Work::ZERO));
            prop_assert!(view[0].deployments.iter().all(|view| (view.in_flight, view.would_run) == (0, 0)));
            Ok(())
        })
        .expect("nothing panics or leaks");
}
