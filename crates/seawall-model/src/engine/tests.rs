//! Exact times in virtual time, and what holds in every run.

use super::*;
use alloc::vec;
use proptest::prelude::*;

const SECOND: Nanos = 1_000_000_000;
const MILLI: Nanos = 1_000_000;

/// Reads 1,000 prompt tokens and makes 100 output tokens a second, without slowing in a batch.
fn settings() -> EngineSettings {
    EngineSettings {
        slots: 2,
        prefill_tokens_per_second: 1000,
        decode_tokens_per_second: 100,
        batch_slowdown_ppm: 0,
        kv_tokens: 1000,
        waiting_limit: None,
        prefix_cache_tokens: 0,
        departure: Departure::FreesSlot,
        extra_latency: 0,
        fixed_service: None,
        order: Order::Arrival,
    }
}

fn job(prompt_tokens: u32, output_tokens: u32, report: Report) -> Job {
    Job { prompt_tokens, output_tokens, prefix: None, report }
}

fn accepted(submitted: Submitted) -> JobId {
    match submitted {
        Submitted::Accepted(id) => id,
        Submitted::Refused(refusal) => panic!("refused: {refusal:?}"),
    }
}

/// Runs as a host would, from event to event; gives (milliseconds, job, what).
fn drain(engine: &mut Engine) -> Vec<(Nanos, u64, EventKind)> {
    let mut seen = Vec::new();
    while let Some(at) = engine.next_event() {
        seen.extend(engine.advance(at).map(|event| (event.at / MILLI, event.job.0, event.kind)));
    }
    seen
}

const FINISHED: EventKind = EventKind::Finished { abandoned: false };

#[test]
fn one_job_is_prefilled_and_decoded_at_the_set_rates() {
    let mut engine = Engine::new(settings());
    accepted(engine.submit(0, job(100, 4, Report::EveryToken)));
    assert_eq!(
        drain(&mut engine),
        vec![
            (100, 0, EventKind::FirstToken),
            (110, 0, EventKind::Tokens(2)),
            (120, 0, EventKind::Tokens(3)),
            (130, 0, EventKind::Tokens(4)),
            (130, 0, FINISHED),
        ]
    );
    assert_eq!(engine.next_event(), None);
    let end = engine.snapshot();
    assert_eq!((end.running, end.waiting, end.kv_used_tokens), (0, 0, 0));
    assert_eq!((end.prompt_tokens, end.generation_tokens, end.finished), (100, 4, 1));
}

#[test]
fn reports_change_the_events_but_not_the_times() {
    for (report, wanted) in [
        (Report::Finish, vec![(130, 0, FINISHED)]),
        (Report::FirstToken, vec![(100, 0, EventKind::FirstToken), (130, 0, FINISHED)]),
    ] {
        let mut engine = Engine::new(settings());
        accepted(engine.submit(0, job(100, 4, report)));
        assert_eq!(drain(&mut engine), wanted);
    }
}

#[test]
fn prefills_go_one_after_the_other_and_the_third_job_waits_for_a_slot() {
    let mut engine = Engine::new(settings());
    for _ in 0..3 {
        accepted(engine.submit(0, job(100, 11, Report::FirstToken)));
    }
    assert_eq!((engine.snapshot().running, engine.snapshot().waiting), (2, 1));
    assert_eq!(
        drain(&mut engine),
        vec![
            (100, 0, EventKind::FirstToken),
            (200, 0, FINISHED),
            (200, 1, EventKind::FirstToken),
            (300, 1, FINISHED),
            (300, 2, EventKind::FirstToken),
            (400, 2, FINISHED),
        ]
    );
}

#[test]
fn a_batch_slows_each_of_its_sequences() {
    // Two decode at 100 / (1 + 1) = 50 tokens a second, the last one alone at 100.
    let mut engine = Engine::new(EngineSettings { batch_slowdown_ppm: 1_000_000, ..settings() });
    accepted(engine.submit(0, job(0, 11, Report::Finish)));
    accepted(engine.submit(0, job(0, 21, Report::Finish)));
    assert_eq!(drain(&mut engine), vec![(200, 0, FINISHED), (300, 1, FINISHED)]);
}

#[test]
fn memory_holds_jobs_back_and_refuses_what_never_fits() {
    let mut engine = Engine::new(settings());
    accepted(engine.submit(0, job(500, 100, Report::Finish)));
    accepted(engine.submit(0, job(300, 101, Report::Finish)));
    assert_eq!(engine.submit(0, job(1000, 1, Report::Finish)), Submitted::Refused(Refusal::TooLarge));
    let now = engine.snapshot();
    assert_eq!((now.running, now.waiting, now.kv_used_tokens, now.refused), (1, 1, 600, 1));
    // 500 ms prefill and 99 tokens; then 300 ms and 100 tokens.
    assert_eq!(drain(&mut engine), vec![(1490, 0, FINISHED), (2790, 1, FINISHED)]);
}

#[test]
fn a_full_queue_refuses_only_who_would_wait() {
    let mut engine = Engine::new(EngineSettings { slots: 1, waiting_limit: Some(1), ..settings() });
    accepted(engine.submit(0, job(0, 101, Report::Finish)));
    accepted(engine.submit(0, job(0, 101, Report::Finish)));
    assert_eq!(engine.submit(0, job(0, 1, Report::Finish)), Submitted::Refused(Refusal::QueueFull));
    // At one second the first has finished and the second has taken its slot.
    accepted(engine.submit(SECOND, job(0, 1, Report::Finish)));
    assert_eq!(drain(&mut engine), vec![(1000, 0, FINISHED), (2000, 1, FINISHED), (2000, 2, FINISHED)]);
    let mut none = Engine::new(EngineSettings { slots: 1, waiting_limit: Some(0), ..settings() });
    accepted(none.submit(0, job(0, 101, Report::Finish)));
    assert_eq!(none.submit(0, job(0, 1, Report::Finish)), Submitted::Refused(Refusal::QueueFull));
}

#[test]
fn the_waiting_jobs_take_turns_at_random() {
    let order = |seed| {
        let settings = EngineSettings { slots: 1, order: Order::Random { seed }, ..settings() };
        let mut engine = Engine::new(settings);
        for _ in 0..60 {
            accepted(engine.submit(0, job(0, 2, Report::Finish)));
        }
        drain(&mut engine).into_iter().map(|(_, job, _)| job).collect::<Vec<u64>>()
    };
    let (one, other) = (order(1), order(2));
    assert_eq!((one.clone(), one[0]), (order(1), 0));
    assert_ne!(one, other);
    let mut sorted = one.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, (0..60).collect::<Vec<u64>>());
    // Each third of the turns has jobs of every third.
    for part in one.chunks(20) {
        assert!((0..3).all(|third| part.iter().any(|job| job / 20 == third)), "{one:?}");
    }
}

#[test]
fn cached_prefixes_cost_no_prefill_and_the_oldest_go_first() {
    let mut engine = Engine::new(EngineSettings { prefix_cache_tokens: 150, slots: 1, ..settings() });
    let with = |hash| Job { prefix: Some(Prefix { hash, tokens: 80 }), ..job(100, 1, Report::Finish) };
    for hash in [1, 1, 2, 1] {
        accepted(engine.submit(0, with(hash)));
    }
    // 100 ms, then 20 ms from the cache; the second prefix pushes the first one out.
    let times: Vec<Nanos> = drain(&mut engine).into_iter().map(|(at, ..)| at).collect();
    assert_eq!(times, [100, 120, 220, 320]);
    let end = engine.snapshot();
    assert_eq!((end.prefix_queried_tokens, end.prefix_hit_tokens), (320, 80));
}

#[test]
fn leaving_frees_the_slot_or_not() {
    let mut engine = Engine::new(EngineSettings { slots: 1, ..settings() });
    let first = accepted(engine.submit(0, job(0, 101, Report::Finish)));
    let second = accepted(engine.submit(0, job(0, 101, Report::Finish)));
    accepted(engine.submit(0, job(0, 11, Report::Finish)));
    assert_eq!(engine.cancel(500 * MILLI, second), Cancelled::Freed);
    assert_eq!(engine.tokens(first), Some(51));
    assert_eq!(engine.cancel(500 * MILLI, first), Cancelled::Freed);
    assert_eq!(engine.cancel(500 * MILLI, first), Cancelled::Unknown);
    assert_eq!(drain(&mut engine), vec![(600, 2, FINISHED)]);
    let end = engine.snapshot();
    assert_eq!((end.generation_tokens, end.cancelled, end.finished, end.kv_used_tokens), (51 + 11, 2, 1, 0));

    let mut engine = Engine::new(EngineSettings { slots: 1, departure: Departure::KeepsRunning, ..settings() });
    let first = accepted(engine.submit(0, job(0, 101, Report::Finish)));
    accepted(engine.submit(0, job(0, 11, Report::Finish)));
    assert_eq!(engine.cancel(500 * MILLI, first), Cancelled::Continues);
    assert_eq!(drain(&mut engine), vec![(1000, 0, EventKind::Finished { abandoned: true }), (1100, 1, FINISHED)]);
}

#[test]
fn each_stage_can_be_left() {
    let settings = EngineSettings { extra_latency: 50 * MILLI, slots: 3, ..settings() };
    for left_at in [50, 120, 160] {
        let mut engine = Engine::new(settings.clone());
        let id = accepted(engine.submit(0, job(100, 11, Report::Finish)));
        assert_eq!(engine.cancel(left_at * MILLI, id), Cancelled::Freed);
        assert_eq!((drain(&mut engine), engine.snapshot().running), (vec![], 0));
        assert_eq!(engine.next_event(), None);
    }
}

#[test]
fn capacity_and_latency_change_at_run_time() {
    let mut engine = Engine::new(settings());
    accepted(engine.submit(0, job(100, 11, Report::Finish)));
    // Half of the prefill at full speed, half at a quarter, then 20 ms of decode; then nothing for a second.
    engine.set_capacity_percent(50 * MILLI, 25);
    engine.set_capacity_percent(250 * MILLI, 100);
    engine.set_capacity_percent(270 * MILLI, 0);
    assert_eq!(engine.next_event(), None);
    engine.set_capacity_ppm(1270 * MILLI, 1_000_000);
    engine.set_extra_latency(1270 * MILLI, 7 * MILLI);
    accepted(engine.submit(1270 * MILLI, job(0, 1, Report::Finish)));
    assert_eq!(drain(&mut engine), vec![(1277, 1, FINISHED), (1350, 0, FINISHED)]);
}

#[test]
fn slots_can_be_taken_away_and_given_back() {
    let mut engine = Engine::new(settings());
    for _ in 0..3 {
        accepted(engine.submit(0, job(0, 11, Report::Finish)));
    }
    engine.set_slots(0, 0);
    assert_eq!(engine.snapshot().running, 2);
    engine.set_slots(SECOND, 1);
    assert_eq!(drain(&mut engine), vec![(100, 0, FINISHED), (100, 1, FINISHED), (1100, 2, FINISHED)]);
}

#[test]
fn fixed_service_takes_its_time_whatever_the_request() {
    let mut engine = Engine::new(EngineSettings::fixed(2, 120 * SECOND));
    accepted(engine.submit(0, job(100_000, 4, Report::EveryToken)));
    accepted(engine.submit(0, job(1, 1, Report::Finish)));
    accepted(engine.submit(0, job(1, 0, Report::Finish)));
    assert_eq!(
        drain(&mut engine),
        vec![
            (30_000, 0, EventKind::FirstToken),
            (60_000, 0, EventKind::Tokens(2)),
            (90_000, 0, EventKind::Tokens(3)),
            (120_000, 0, EventKind::Tokens(4)),
            (120_000, 0, FINISHED),
            (120_000, 1, FINISHED),
            (240_000, 2, FINISHED),
        ]
    );
}

#[test]
fn an_embedding_ends_with_its_prefill() {
    let mut engine = Engine::new(settings());
    accepted(engine.submit(0, job(100, 0, Report::EveryToken)));
    assert_eq!(drain(&mut engine), vec![(100, 0, FINISHED)]);
}

#[test]
fn time_that_runs_backwards_is_no_time() {
    let mut engine = Engine::new(settings());
    accepted(engine.submit(SECOND, job(0, 11, Report::Finish)));
    assert_eq!(engine.advance(0).count(), 0);
    assert_eq!(drain(&mut engine), vec![(1100, 0, FINISHED)]);
}

#[test]
fn looking_often_or_rarely_gives_the_same_events() {
    let run = |step: Nanos| {
        let mut engine = Engine::new(EngineSettings { batch_slowdown_ppm: 70_000, ..settings() });
        for index in 0..20 {
            accepted(engine.submit(u64::from(index) * MILLI, job(7 + index, 3 + index, Report::EveryToken)));
        }
        let mut seen = Vec::new();
        let mut now = 20 * MILLI;
        while engine.next_event().is_some() {
            now += step;
            seen.extend(engine.advance(now));
        }
        seen
    };
    assert_eq!(run(MILLI / 3), run(10 * SECOND));
}

/// One call at the engine, a time after the one before.
#[derive(Clone, Debug)]
enum Call {
    Submit(u32, u32, Report),
    Cancel(usize),
    Capacity(u32),
}

fn calls() -> impl Strategy<Value = Vec<(Nanos, Call)>> {
    let report = prop_oneof![Just(Report::Finish), Just(Report::FirstToken), Just(Report::EveryToken)];
    let call = prop_oneof![
        6 => (0..600u32, 0..60u32, report).prop_map(|(prompt, output, report)| Call::Submit(prompt, output, report)),
        2 => any::<usize>().prop_map(Call::Cancel),
        1 => (1..200u32).prop_map(Call::Capacity),
    ];
    proptest::collection::vec((0..300 * MILLI, call), 1..80)
}

/// What became of the jobs of a run.
#[derive(Debug, Default, Eq, PartialEq)]
struct Ends {
    accepted: Vec<JobId>,
    refused: u64,
    freed: Vec<JobId>,
    events: Vec<Event>,
}

fn play(settings: &EngineSettings, calls: &[(Nanos, Call)]) -> (Engine, Ends) {
    let (mut engine, mut ends, mut now) = (Engine::new(settings.clone()), Ends::default(), 0);
    for (later, call) in calls {
        now += later;
        ends.events.extend(engine.advance(now));
        match call {
            Call::Submit(prompt, output, report) => match engine.submit(now, job(*prompt, *output, *report)) {
                Submitted::Accepted(id) => ends.accepted.push(id),
                Submitted::Refused(_) => ends.refused += 1,
            },
            Call::Cancel(which) => {
                if let Some(id) = which.checked_rem(ends.accepted.len()).map(|index| ends.accepted[index])
                    && engine.cancel(now, id) == Cancelled::Freed
                {
                    ends.freed.push(id);
                }
            }
            Call::Capacity(percent) => engine.set_capacity_percent(now, *percent),
        }
        check(settings, &engine);
    }
    while let Some(at) = engine.next_event() {
        ends.events.extend(engine.advance(at));
        check(settings, &engine);
    }
    (engine, ends)
}

/// Bounds hold, and nothing that could run waits.
fn check(settings: &EngineSettings, engine: &Engine) {
    let now = engine.snapshot();
    assert!(now.running <= settings.slots && now.kv_used_tokens <= settings.kv_tokens);
    assert!(settings.waiting_limit.is_none_or(|limit| now.waiting <= limit));
    if let Some(first) = engine.waiting.first() {
        assert!(!engine.fits(&engine.sequences[first].job), "the head of the queue could run: {now:?}");
    }
    assert_eq!(now.accepted, now.finished + now.cancelled + u64::from(now.running + now.waiting));
}

fn any_settings() -> impl Strategy<Value = EngineSettings> {
    let departure = prop_oneof![Just(Departure::FreesSlot), Just(Departure::KeepsRunning)];
    let fixed = proptest::option::of(1..500 * MILLI);
    (1..6u32, 0..200_000u32, proptest::option::of(0..8u32), departure, fixed, 0..50 * MILLI).prop_map(
        |(slots, batch_slowdown_ppm, waiting_limit, departure, fixed_service, extra_latency)| EngineSettings {
            slots,
            batch_slowdown_ppm,
            waiting_limit,
            departure,
            fixed_service,
            extra_latency,
            prefix_cache_tokens: 0,
            ..settings()
        },
    )
}

proptest! {
    #[test]
    fn each_job_ends_in_exactly_one_way(settings in any_settings(), calls in calls()) {
        let (engine, ends) = play(&settings, &calls);
        let mut ended: Vec<JobId> = ends
            .events
            .iter()
            .filter(|event| matches!(event.kind, EventKind::Finished { .. }))
            .map(|event| event.job)
            .chain(ends.freed.iter().copied())
            .collect();
        ended.sort_unstable();
        prop_assert_eq!(&ended, &ends.accepted);
        let end = engine.snapshot();
        prop_assert_eq!((end.running, end.waiting, end.kv_used_tokens), (0, 0, 0));
        prop_assert_eq!(end.refused, ends.refused);
        prop_assert!(ends.events.is_sorted_by_key(|event| event.at));
    }

    #[test]
    fn the_same_calls_give_the_same_events(settings in any_settings(), calls in calls()) {
        prop_assert_eq!(play(&settings, &calls).1, play(&settings, &calls).1);
    }

    /// Work is conserved: with enough jobs and no one leaving, decoding takes as long as the rate says.
    #[test]
    fn work_is_conserved(lengths in proptest::collection::vec(1..40u32, 1..60)) {
        let mut engine = Engine::new(EngineSettings { slots: 1, kv_tokens: u64::MAX, ..settings() });
        for length in &lengths {
            accepted(engine.submit(0, job(10, *length, Report::Finish)));
        }
        let end = drain(&mut engine).last().expect("jobs finish").0;
        let wanted: Nanos = lengths.iter().map(|length| 10 + u64::from(length - 1) * 10).sum();
        prop_assert_eq!(end, wanted);
    }
}
