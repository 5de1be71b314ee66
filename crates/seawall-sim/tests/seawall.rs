//! Seawall in the place of a router: what its processes hold, refuse, try again and lose.
#![expect(clippy::float_cmp, reason = "the floats are whole numbers")]

use seawall_cases::scenario::Scenario;
use seawall_core::id::{DeploymentId, PoolId, TenantId};
use seawall_core::protection::Protection;
use seawall_core::settings::{
    Capacity, Criticality, DeploymentSettings, Mode, PoolSettings, QueueSettings, Settings, TenantSettings,
    TimeoutSettings,
};
use seawall_core::time::Duration;
use seawall_sim::{Given, Options, Recorder, SECOND, Seawall, World};

/// One population without a rate of its own, one router, one model pool. `router`, `pool` and `rest` are written into the
/// scenario.
fn scenario(router: &str, pool: &str, rest: &str) -> Scenario {
    let text = format!(
        r#"
        [scenario]
        title = "Seawall in the place of a router"
        start = "10:00"
        end = "10:10"
        attempts_at = ["router"]

        [[population]]
        name = "clients"
        workload = "clients"
        to = "router"

        [[router]]
        name = "router"
        to = ["models"]
        {router}

        [[model_pool]]
        name = "models"
        latency = "1s"
        refusal_latency = "100ms"
        remembers = "1m"
        {pool}

        [with_seawall]
        replaces = ["router"]

        {rest}
        "#
    );
    let value = Scenario::value(&text).expect("the text is TOML");
    Scenario::from_value(value).expect("it is a scenario")
}

/// Runs to the end and then on until nothing is left.
fn run(scenario: &Scenario, seawall: Seawall) -> (Recorder, u64) {
    let options = Options { seawall, ..Options::default() };
    let mut world = World::of(scenario, &options).expect("it can be built");
    world.run_until(scenario.scenario.end.nanos);
    // The longest thing to wait for is the time limit of an attempt: ten minutes.
    world.drain(700 * SECOND);
    assert_eq!(world.violations(), [""; 0]);
    assert_eq!(world.under_way(), (0, 0, 0), "calls, requests and events are over");
    let hash = world.trace_hash();
    (world.into_recorder(), hash)
}

fn enforced(router: &str, pool: &str, rest: &str) -> Recorder {
    run(&scenario(router, pool, rest), Seawall::Enforcing).0
}

fn total(recorder: &Recorder, series: &str) -> f32 {
    recorder.values(series).expect("there is such a series").iter().sum()
}

fn burst(at: &str, count: u32, apart: &str) -> String {
    format!(
        r#"
        [[event]]
        name = "burst {at}"
        at = "{at}"
        actor = "clients"
        change = {{ burst = {{ count = {count}, apart = "{apart}" }} }}
        "#
    )
}

const ROUTER: &str = r#"
    instances = 2
    rate_per_second = 100.0
    memory_in_flight = 100
    restart = "10s"
"#;
const PLENTY: &str = "capacity_per_second = 1000.0";

#[test]
fn it_records_what_the_router_records() {
    let scenario = scenario(ROUTER, PLENTY, &burst("10:00:01", 10, "10ms"));
    let (naive, enforced) = (run(&scenario, Seawall::Absent).0, run(&scenario, Seawall::Enforcing).0);
    let missing: Vec<&str> = naive.names().filter(|name| !enforced.names().any(|other| other == *name)).collect();
    assert_eq!(missing, [""; 0]);
    for series in ["clients.succeeded", "router.attempts", "router.succeeded.clients", "router.upstream"] {
        assert_eq!((total(&naive, series), total(&enforced, series)), (10.0, 10.0), "{series}");
    }
    assert_eq!(enforced.mark_value("router.most_attempts"), Some(1.0));
    assert_eq!(enforced.mark_value("router.most_upstream"), Some(1.0));
}

#[test]
fn two_runs_with_one_seed_are_the_same_run() {
    let rest = burst("10:00:01", 300, "1ms");
    let pool = "capacity_per_second = 50.0";
    let hash = |seed| {
        let scenario = scenario(ROUTER, pool, &rest);
        let options = Options { seed, seawall: Seawall::Enforcing, ..Options::default() };
        let mut world = World::of(&scenario, &options).expect("it can be built");
        world.run_until(scenario.scenario.end.nanos);
        world.trace_hash()
    };
    assert_eq!(hash(1), hash(1));
    assert_ne!(hash(1), hash(2));
}

#[test]
fn a_process_holds_what_fits_refuses_a_few_at_the_gate_and_does_not_accept_the_rest() {
    let router = "instances = 1\nrate_per_second = 1.0\nmemory_in_flight = 20\nrestart = \"10s\"";
    let recorder = enforced(router, PLENTY, &burst("10:00:01", 30, "1ms"));
    // Of 20 places 18 are for requests and 2 for refusals; ten connections are not accepted.
    assert_eq!(total(&recorder, "clients.succeeded"), 18.0);
    assert_eq!(total(&recorder, "router.refused"), 2.0);
    assert_eq!(total(&recorder, "router.refused.memory_full"), 2.0);
    assert_eq!(total(&recorder, "router.turned_away"), 10.0);
    assert_eq!((total(&recorder, "router.crashes"), total(&recorder, "router.failed")), (0.0, 12.0));
    // A refusal takes a tenth of a second, after the eighteen that came before: 18.1 s and 18.2 s after the first.
    let refused = recorder.values("router.refused").expect("there is such a series");
    assert_eq!((refused[18], refused[19], refused[20]), (0.0, 2.0, 0.0));
}

#[test]
fn a_naive_router_crashes_where_it_does_not() {
    let router = "instances = 1\nrate_per_second = 1.0\nmemory_in_flight = 20\nrestart = \"10s\"";
    let (recorder, _) = run(&scenario(router, PLENTY, &burst("10:00:01", 30, "1ms")), Seawall::Absent);
    assert_eq!((total(&recorder, "router.crashes"), total(&recorder, "clients.succeeded")), (1.0, 0.0));
}

#[test]
fn a_refusal_for_want_of_capacity_is_tried_at_most_twice_and_then_told() {
    // Nothing is ever placed: each request is tried, waits out the refusal, and is tried once more.
    let recorder = enforced(ROUTER, "capacity_per_second = 0.0", &burst("10:00:01", 5, "1s"));
    assert_eq!((total(&recorder, "router.upstream"), total(&recorder, "models.refused")), (10.0, 10.0));
    assert_eq!(recorder.mark_value("router.most_upstream"), Some(2.0));
    assert_eq!(total(&recorder, "router.refused.capacity_exhausted"), 5.0);
    assert_eq!(total(&recorder, "clients.failed"), 5.0);
}

#[test]
fn a_server_that_is_gone_is_told_as_such() {
    let down = r#"
        [[event]]
        name = "down"
        at = "10:00:00"
        actor = "models"
        change = { down = true }
    "#;
    let recorder = enforced(ROUTER, PLENTY, &format!("{down}{}", burst("10:00:01", 5, "1s")));
    assert_eq!(total(&recorder, "router.refused.no_healthy_deployment"), 5.0);
    assert_eq!(total(&recorder, "router.upstream"), 5.0);
}

#[test]
fn a_restarted_process_loses_what_it_held_and_comes_back_empty() {
    let restart = r#"
        [[event]]
        name = "restart"
        at = "10:00:02"
        actor = "router"
        change = { restart = 1.0 }
    "#;
    // Ten are at the model when both processes go away; ten come while none is up; ten come after 10 s.
    let bursts = ["10:00:01", "10:00:03", "10:00:15"].map(|at| burst(at, 10, "80ms")).join("");
    let recorder = enforced(ROUTER, PLENTY, &format!("{restart}{bursts}"));
    assert_eq!(total(&recorder, "router.unreachable"), 10.0);
    assert_eq!((total(&recorder, "clients.succeeded"), total(&recorder, "clients.failed")), (10.0, 20.0));
    assert_eq!(total(&recorder, "router.crashes"), 0.0);
}

#[test]
fn a_client_that_leaves_frees_what_it_held() {
    let mut scenario = scenario(ROUTER, PLENTY, &burst("10:00:01", 10, "10ms"));
    scenario.population[0].attempt_timeout = Some(seawall_cases::scenario::Span::from_millis(500));
    let (recorder, _) = run(&scenario, Seawall::Enforcing);
    assert_eq!((total(&recorder, "clients.timeouts"), total(&recorder, "clients.succeeded")), (10.0, 0.0));
    let in_flight = recorder.values("router.in_flight").expect("there is such a series");
    assert_eq!((in_flight[1], in_flight[2]), (0.0, 0.0));
}

#[test]
fn without_bounded_wait_nobody_is_refused_after_ten_seconds() {
    // Two a second are placed, and the upstream's refusals close it; a hundred come at once.
    let run = |without: Option<Protection>| {
        let scenario = scenario(ROUTER, "capacity_per_second = 2.0", &burst("10:00:01", 100, "1ms"));
        let options = Options { seawall: Seawall::Enforcing, without, ..Options::default() };
        let mut world = World::of(&scenario, &options).expect("it can be built");
        world.run_until(scenario.scenario.end.nanos);
        let recorder = world.into_recorder();
        let refused = recorder.values("router.refused.capacity_exhausted").expect("there is such a series");
        // Apart from those whose second attempt is refused, too.
        refused[8..13].iter().sum::<f32>()
    };
    let (bounded, without) = (run(None), run(Some(Protection::BoundedWait)));
    assert!(bounded > 3.0 * without.max(1.0), "{bounded} and {without}");
}

#[test]
fn what_is_no_router_cannot_be_replaced() {
    let build = |replaces: &str| {
        let mut scenario = scenario(ROUTER, PLENTY, "");
        scenario.with_seawall.as_mut().expect("there is such a section").replaces = vec![replaces.to_owned()];
        World::of(&scenario, &Options::default()).map(drop).map_err(|error| error.to_string())
    };
    let key = "with_seawall.replaces[0]";
    let no_router = format!("{key}: `models` is a model_pool, which Seawall does not replace; name a `[[router]]`");
    assert_eq!(build("models"), Err(no_router));
    let unknown = format!("{key}: there is no actor `x`; the actors are `clients`, `models`, `router`");
    assert_eq!(build("x"), Err(unknown));
    assert_eq!(build("router"), Ok(()));
}

/// Two engines behind Seawall with whole settings: a pool that is not the first, a tenant that is not the first.
fn given() -> (Scenario, Given) {
    let mut scenario = scenario(ROUTER, PLENTY, "");
    let engines = r#"
        [[engine]]
        name = "near"
        slots = 1
        fixed_service = "5s"

        [[engine]]
        name = "far"
        slots = 1
        fixed_service = "5s"
    "#;
    let only =
        Scenario::value(&format!("[scenario]\ntitle = \"engines\"\nstart = \"10:00\"\nend = \"10:10\"\n{engines}"));
    scenario.engine = Scenario::from_value(only.expect("the text is TOML")).expect("it is a scenario").engine;
    scenario.router[0].to = vec!["near".to_owned(), "far".to_owned()];
    scenario.router[0].instances = 1;
    let deployment = |name: &str, group| DeploymentSettings {
        region: name.to_owned(),
        capacity: Capacity::Standard { size: Some(1) },
        priority_group: group,
        ..DeploymentSettings::new(name, PoolId(1))
    };
    let pool = |name: &str, deployments| PoolSettings {
        discovery: "ceiling".to_owned(),
        queue: QueueSettings { patience: Duration::from_secs(2), ..QueueSettings::default() },
        timeouts: TimeoutSettings { connect: Duration::from_secs(3), ..TimeoutSettings::default() },
        ..PoolSettings::new(name, deployments)
    };
    let tenant = |name: &str| TenantSettings {
        priority_ceiling: Criticality::Critical,
        ..TenantSettings::new(name, vec![PoolId(1)])
    };
    let settings = Settings {
        pools: vec![pool("unused", Vec::new()), pool("chat", vec![DeploymentId(0), DeploymentId(1)])],
        deployments: vec![deployment("near", 0), deployment("far", 1)],
        tenants: vec![tenant("nobody"), tenant("somebody")],
        seed: 0,
    };
    let given = Given {
        settings,
        servers: vec!["near".to_owned(), "far".to_owned()],
        tenants: [("clients".to_owned(), TenantId(1))].into(),
        pools: [("model".to_owned(), PoolId(1))].into(),
    };
    (scenario, given)
}

fn run_given(scenario: &mut Scenario, given: &Given, events: &str) -> Recorder {
    let header = "[scenario]\ntitle = \"events\"\nstart = \"10:00\"\nend = \"10:10\"\n";
    let value = Scenario::value(&format!("{header}{events}")).expect("the text is TOML");
    scenario.event = Scenario::from_value(value).expect("it is a scenario").event;
    let options = Options { seawall: Seawall::Enforcing, ..Options::default() };
    let mut world = World::given(scenario, &options, Some(given)).expect("it can be built");
    world.run_until(scenario.scenario.end.nanos * 2);
    assert_eq!((world.violations(), world.under_way()), (&[][..], (0, 0, 0)));
    world.into_recorder()
}

#[test]
fn whole_settings_decide_about_sizes_patience_and_groups() {
    let (mut scenario, given) = given();
    // Two are served at once, each deployment having its size; one waits for its patience of 2 s and is refused.
    let seen = run_given(&mut scenario, &given, &burst("10:00:01", 3, "10ms"));
    assert_eq!((total(&seen, "near.finished"), total(&seen, "far.finished")), (1.0, 1.0));
    assert_eq!(total(&seen, "router.refused.capacity_exhausted"), 1.0);
    assert_eq!(seen.values("router.refused").expect("there is such a series")[3], 1.0);
    let waited = seen.spread_of("router.waited.clients").expect("there is such a spread");
    assert_eq!((waited.total(), waited.quantile(990)), (2, Some(0)));
    // With patience for the service of another it is served, after what is left of 5 s.
    let mut patient = given.clone();
    patient.settings.pools[1].queue.patience = Duration::from_secs(10);
    let seen = run_given(&mut scenario, &patient, &burst("10:00:01", 3, "10ms"));
    assert_eq!((total(&seen, "clients.succeeded"), total(&seen, "router.refused")), (3.0, 0.0));
    let waited = seen.spread_of("router.waited.clients").expect("there is such a spread");
    let longest = waited.quantile(1000).expect("there are three");
    assert!((4_980_000_000..5_140_000_000).contains(&longest), "{longest}");
}

#[test]
fn a_server_that_is_silent_costs_the_time_for_connecting() {
    let (mut scenario, given) = given();
    let silent = r#"
        [[event]]
        name = "silent"
        at = "10:00:00"
        actor = "near"
        change = { fault = "silent" }
    "#;
    let seen = run_given(&mut scenario, &given, &format!("{silent}{}", burst("10:00:01", 1, "1ms")));
    // 10 ms at the router, 3 s for the connection that cannot be made, 5 s at the other server.
    assert_eq!((total(&seen, "router.upstream"), total(&seen, "clients.succeeded")), (2.0, 1.0));
    assert_eq!(seen.values("clients.succeeded").expect("there is such a series")[9], 1.0);
}

#[test]
fn observed_settings_are_only_looked_at() {
    let (mut scenario, mut given) = given();
    given.settings.set_mode(Mode::Observe);
    let seen = run_given(&mut scenario, &given, &burst("10:00:01", 6, "10ms"));
    // Everything is forwarded at once to the first group, past the told size: one is served and the rest refused there.
    assert_eq!((total(&seen, "router.upstream"), total(&seen, "clients.succeeded")), (6.0, 1.0));
    assert_eq!((total(&seen, "near.refused"), total(&seen, "far.finished")), (5.0, 0.0));
}

#[test]
fn what_matters_more_goes_first() {
    let rest = r#"
        [[population]]
        name = "batch"
        workload = "batch"
        criticality = "sheddable"
        to = "router"

        [[engine]]
        name = "server"
        slots = 2
        fixed_service = "1s"

        [[event]]
        name = "batch"
        at = "10:00:01"
        actor = "batch"
        change = { burst = { count = 30, apart = "10ms" } }
    "#;
    let mut scenario = scenario(ROUTER, PLENTY, &format!("{rest}{}", burst("10:00:03", 4, "10ms")));
    scenario.router[0].to = vec!["server".to_owned()];
    scenario.router[0].instances = 1;
    let (recorder, _) = run(&scenario, Seawall::Enforcing);
    // Two a second are served. The four that come when more than twenty wait are served next, behind what runs already.
    let served = recorder.values("clients.succeeded").expect("there is such a series");
    assert_eq!((served[..8].iter().sum::<f32>(), total(&recorder, "clients.succeeded")), (4.0, 4.0));
    assert!(recorder.values("router.waiting").expect("there is such a series")[3] > 20.0);
    assert!(total(&recorder, "router.refused.capacity_exhausted") > 5.0, "some of the batch wait for ten seconds");
}
