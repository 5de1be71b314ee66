//! What requests cost, learned from the simulator's servers, which know every token.
#![expect(clippy::float_cmp, reason = "the floats are whole numbers")]

use seawall_cases::scenario::Scenario;
use seawall_core::classify::AttemptEnd;
use seawall_core::cost::{Demand, Used};
use seawall_core::engine::{Arrival, Input, Output};
use seawall_core::id::{DeploymentId, PoolId, RequestId, TenantId};
use seawall_core::settings::{Criticality, DeploymentSettings, PoolSettings, Settings, TenantSettings};
use seawall_core::time::{Duration, Instant};
use seawall_model::engine::{Engine as Server, EngineSettings, EventKind, Job, JobId, Report, Submitted};
use seawall_sim::{Options, SECOND, Seawall, World};
use std::collections::BTreeMap;

/// Two workloads at one server: labels of 20 tokens and now and then 60, reports of 400 and now and then 900.
const TWO_TENANTS: &str = r#"
    [scenario]
    title = "Two tenants whose answers differ in length"
    start = "10:00"
    end = "10:20"

    [[population]]
    name = "labels"
    workload = "labels"
    to = "router"
    work = { mean = "1s", prompt_tokens = 1000, output_tokens = 20 }

    [[population]]
    name = "long labels"
    workload = "labels"
    to = "router"
    work = { mean = "1s", prompt_tokens = 1000, output_tokens = 60 }

    [[population]]
    name = "reports"
    workload = "reports"
    to = "router"
    work = { mean = "1s", prompt_tokens = 200, output_tokens = 400 }

    [[population]]
    name = "long reports"
    workload = "reports"
    to = "router"
    work = { mean = "1s", prompt_tokens = 200, output_tokens = 900 }

    [[router]]
    name = "router"
    to = ["server"]
    instances = 1
    rate_per_second = 100.0
    memory_in_flight = 1000
    restart = "10s"

    [[engine]]
    name = "server"
    slots = 16
    waiting_limit = 0
    prefill_tokens_per_second = 20000
    decode_tokens_per_second = 100

    [with_seawall]
    replaces = ["router"]
"#;

fn burst(population: &str, at: &str, count: u32, apart: &str) -> String {
    format!(
        "\n[[event]]\nname = \"{population} {at}\"\nat = \"{at}\"\nactor = \"{population}\"\n\
         change = {{ burst = {{ count = {count}, apart = \"{apart}\" }} }}\n"
    )
}

#[test]
fn the_expected_output_of_each_tenant_is_that_of_its_own_answers() {
    // Of 100 answers 90 are short; then half of them are, so that four of five stay below the long ones only.
    let text = [
        TWO_TENANTS.to_owned(),
        burst("labels", "10:00:01", 90, "2s"),
        burst("long labels", "10:00:02", 10, "18s"),
        burst("reports", "10:00:01", 90, "2s"),
        burst("long reports", "10:00:02", 10, "18s"),
        burst("labels", "10:08:00", 40, "4s"),
        burst("long labels", "10:08:02", 40, "4s"),
    ];
    let scenario = Scenario::from_value(Scenario::value(&text.concat()).expect("TOML")).expect("a scenario");
    let options = Options { seawall: Seawall::Enforcing, ..Options::default() };
    let mut world = World::of(&scenario, &options).expect("it can be built");
    world.run_until(scenario.scenario.end.nanos);
    world.drain(700 * SECOND);
    assert_eq!(world.violations(), [""; 0]);
    let recorder = world.into_recorder();
    let expected = |workload: &str, second: usize| {
        recorder.values(&format!("router.expected_output.{workload}")).expect("there is such a series")[second]
    };
    // The first answer: nothing is known. Ten minutes later each has its own.
    let at_start = expected("labels", 1);
    let then = (expected("labels", 400), expected("reports", 400));
    let at_end = (expected("labels", 1_100), expected("reports", 1_100));
    assert_eq!((at_start, then, at_end), (256.0, (20.0, 400.0), (60.0, 400.0)));
    // Inputs are read anew and output tokens weigh two: nothing streams here.
    let labels = 130 * (1_000 + 2 * 20) + 50 * (1_000 + 2 * 60);
    let reports = 90 * (200 + 2 * 400) + 10 * (200 + 2 * 900);
    let work = recorder.values("router.work").expect("there is such a series").iter().map(|units| f64::from(*units));
    assert_eq!(work.sum::<f64>(), f64::from(labels + reports));
}

/// One model on one deployment whose capacity is not bounded.
fn settings() -> Settings {
    let pool = PoolSettings { discovery: "ceiling".to_owned(), ..PoolSettings::new("m", vec![DeploymentId(0)]) };
    let deployment = DeploymentSettings::new("d", PoolId(0));
    let tenant = TenantSettings::new("t", vec![PoolId(0)]);
    Settings { pools: vec![pool], deployments: vec![deployment], tenants: vec![tenant], seed: 1 }
}

/// Streams `count` answers of this server, one arrival each `apart`; the weight of an output token at the end, in
/// thousandths, and how many streams were served.
fn streamed(server: EngineSettings, count: u64, apart: Duration) -> (u64, u64) {
    let mut engine = seawall_core::Engine::new(Instant::ZERO, &settings());
    let mut server = Server::new(server);
    let mut jobs: BTreeMap<JobId, (RequestId, u32, u32, Instant)> = BTreeMap::new();
    let apart = u64::try_from(apart.as_nanos()).expect("a short span");
    let (mut sent, mut answered, mut now) = (0, 0, 0);
    loop {
        let sends = (sent < count).then_some(sent * apart);
        let Some(next) = sends.into_iter().chain(server.next_event()).min() else { break };
        now = next.max(now);
        for event in server.advance(now).collect::<Vec<_>>() {
            let (request, prompt, output, first_output) = jobs[&event.job];
            let used = Used {
                input_tokens: Some(u64::from(prompt)),
                cached_input_tokens: 0,
                output_tokens: u64::from(output),
                output_is_estimated: false,
                first_output: Some(first_output),
            };
            let at = Instant::from_nanos(event.at);
            match event.kind {
                EventKind::FirstToken => drop(jobs.insert(event.job, (request, prompt, output, at))),
                EventKind::Tokens(_) => {}
                EventKind::Finished { .. } => {
                    engine.handle(at, Input::Used(request, 1, used));
                    engine.handle(at, Input::AttemptEnded(request, 1, AttemptEnd::Completed));
                }
            }
        }
        if sends == Some(next) {
            let demand = Demand { input_tokens: 1, ..Demand::default() };
            engine.handle(Instant::from_nanos(now), Input::Arrived(arrival(sent, demand)));
            sent += 1;
        }
        while let Some(output) = engine.poll() {
            match output {
                Output::Dispatch(dispatch) => {
                    let id = dispatch.permit.request();
                    let mixed = u32::try_from(id.0 * 37 % 64).expect("it is small");
                    let (prompt_tokens, output_tokens) = (200 + mixed * 100, 50 + mixed % 7 * 30);
                    let job = Job { prompt_tokens, output_tokens, prefix: None, report: Report::FirstToken };
                    let Submitted::Accepted(job) = server.submit(now, job) else { continue };
                    jobs.insert(job, (id, prompt_tokens, output_tokens, Instant::MAX));
                    // The server opens its stream at once, before it has read the prompt.
                    engine.handle(Instant::from_nanos(now), Input::AttemptHeaders(id, 1));
                }
                Output::Respond(_) => answered += 1,
                Output::Join(_) | Output::Cancel(_) | Output::Forget(_) | Output::Notice(_) => {}
            }
        }
    }
    (engine.view(Instant::from_nanos(now))[0].output_thousandths, answered)
}

fn arrival(id: u64, demand: Demand) -> Arrival {
    Arrival {
        request: RequestId(id),
        tenant: TenantId(0),
        pool: PoolId(0),
        criticality: Criticality::Critical,
        deadline: None,
        patience: None,
        identity: None,
        demand,
    }
}

#[test]
fn the_weight_of_an_output_token_is_that_of_the_server() {
    let server = EngineSettings {
        slots: 16,
        prefill_tokens_per_second: 20_000,
        decode_tokens_per_second: 100,
        batch_slowdown_ppm: 0,
        waiting_limit: None,
        extra_latency: 30_000_000,
        ..EngineSettings::default()
    };
    let alone = Duration::from_secs(4);
    // A token is read in 50 us and made in 10 ms, and the constant 30 ms say nothing.
    assert_eq!(streamed(server.clone(), 63, alone), (2_000, 63));
    assert_eq!(streamed(server.clone(), 64, alone), (200_000, 64));
    let quick = EngineSettings { prefill_tokens_per_second: 2_000, ..server.clone() };
    assert_eq!(streamed(quick, 64, alone), (20_000, 64));
    // Several at a time: prompts wait for each other, and each answer slows the others.
    let batching = EngineSettings { batch_slowdown_ppm: 10_000, ..server };
    let busy = [600, 400, 300, 220].map(|apart| streamed(batching.clone(), 1_000, Duration::from_millis(apart)));
    assert_eq!(busy, [202_889, 205_205, 207_750, 210_923].map(|weight| (weight, 1_000)));
    // More than it can read: how long it takes to the first byte is up to the queue, and nothing is learned from that.
    assert_eq!(streamed(batching, 1_000, Duration::from_millis(150)), (2_000, 1_000));
}
