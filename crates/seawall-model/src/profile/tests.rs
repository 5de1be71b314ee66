//! The measured tables, encoded: attempts by answer, waits by header, and what each client says about itself.

use super::{Answer, Call, Decision, Outcome, Profile, RetryCount};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;
use rand_core::SeedableRng;
use rand_pcg::Pcg32;

const QUOTA: Option<&str> = Some("insufficient_quota");

fn profile(name: &str) -> &'static Profile {
    Profile::by_name(name).expect("the tests name existing profiles")
}

fn status(status: u16) -> Answer<'static> {
    Answer::new(Outcome::Status(status))
}

fn limited(retry_after: &'static str) -> Answer<'static> {
    Answer { retry_after: Some(retry_after), ..status(429) }
}

/// The waits of a call whose every answer is the same.
fn waits(name: &str, answer: &Answer<'_>) -> Vec<Duration> {
    let mut random = Pcg32::seed_from_u64(11);
    let mut call = profile(name).call();
    let mut waits = Vec::new();
    while let Decision::RetryAfter { wait, .. } = call.next(answer, &mut random) {
        waits.push(wait);
        assert!(waits.len() <= 100, "{name} never stops");
    }
    assert_eq!(call.retries() as usize, waits.len());
    waits
}

fn attempts(name: &str, answer: &Answer<'_>) -> usize {
    waits(name, answer).len() + 1
}

/// The columns of the table of attempts by answer, in its order.
fn columns() -> [(&'static str, Answer<'static>); 17] {
    [
        ("503", status(503)),
        ("503 x-should-retry: false", Answer { should_retry: Some("false"), ..status(503) }),
        ("429 bare", status(429)),
        ("429 retry-after 30", limited("30")),
        (
            "429 x-should-retry: false, insufficient_quota",
            Answer { should_retry: Some("false"), error_type: QUOTA, error_code: QUOTA, ..status(429) },
        ),
        ("402", status(402)),
        ("400", status(400)),
        ("403", status(403)),
        ("408", status(408)),
        ("409", status(409)),
        ("422", status(422)),
        ("502", status(502)),
        ("504", status(504)),
        ("529", status(529)),
        ("refused", Answer::new(Outcome::Refused)),
        ("reset", Answer::new(Outcome::Reset)),
        ("read timeout", Answer::new(Outcome::ReadTimeout)),
    ]
}

#[test]
fn attempts_by_answer_equal_the_measured_table() {
    const SDK: [usize; 17] = [3, 1, 3, 3, 1, 1, 1, 1, 3, 3, 1, 3, 3, 3, 3, 3, 3];
    let measured: [(&str, [usize; 17]); 12] = [
        ("openai-python", SDK),
        ("openai-node", SDK),
        ("anthropic-python", SDK),
        ("anthropic-node", SDK),
        ("langchain-python", SDK),
        ("llama-index", [12, 3, 12, 12, 3, 1, 1, 1, 4, 4, 1, 12, 12, 12, 12, 12, 12]),
        ("langchain-js", [7, 7, 1, 7, 1, 1, 1, 1, 7, 1, 7, 7, 7, 7, 7, 7, 7]),
        ("vercel-ai", [3, 3, 3, 3, 3, 1, 1, 1, 3, 3, 1, 3, 3, 3, 3, 3, 1]),
        ("azure-core-python", [4, 4, 1, 4, 1, 1, 1, 1, 1, 1, 1, 1, 4, 1, 1, 1, 1]),
        ("azure-core-js", [4, 4, 1, 4, 1, 1, 1, 1, 4, 1, 1, 4, 4, 4, 4, 4, 1]),
        ("async-openai", [4, 4, 4, 4, 1, 1, 1, 1, 1, 1, 1, 4, 4, 4, 4, 1, 1]),
        ("litellm-router", [3, 3, 3, 3, 3, 1, 1, 3, 3, 3, 1, 3, 3, 3, 3, 3, 3]),
    ];
    let mut wrong = Vec::new();
    for (name, row) in measured {
        for ((column, answer), expected) in columns().into_iter().zip(row) {
            let found = attempts(name, &answer);
            if found != expected {
                wrong.push(format!("{name}, {column}: {found} instead of {expected}"));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn quota_without_should_retry_stops_only_those_who_read_it() {
    let quota = Answer { error_type: QUOTA, error_code: QUOTA, ..status(429) };
    for (name, expected) in [
        ("openai-python", 3),
        ("anthropic-node", 3),
        ("vercel-ai", 3),
        ("llama-index", 12),
        ("async-openai", 1),
        ("langchain-js", 1),
    ] {
        assert_eq!(attempts(name, &quota), expected, "{name}");
    }
    let type_only = Answer { error_code: None, retry_after: Some("30"), ..quota };
    let code_only = Answer { error_type: None, retry_after: Some("30"), ..quota };
    assert_eq!((attempts("async-openai", &type_only), attempts("async-openai", &code_only)), (1, 4));
    assert_eq!((attempts("langchain-js", &type_only), attempts("langchain-js", &code_only)), (7, 1));
}

#[test]
fn contract_answers_get_the_measured_attempts() {
    let stop_soft = Answer { should_retry: Some("false"), ..limited("30") };
    for (name, expected) in [
        ("openai-python", 1),
        ("openai-node", 1),
        ("anthropic-python", 1),
        ("vercel-ai", 3),
        ("langchain-js", 7),
        ("azure-core-python", 4),
        ("azure-core-js", 4),
        ("litellm-router", 3),
        ("llama-index", 3),
    ] {
        assert_eq!(attempts(name, &stop_soft), expected, "{name}");
        let least = waits(name, &stop_soft).into_iter().min();
        assert!(least.is_none_or(|wait| wait >= Duration::from_secs(30)), "{name} waits {least:?}");
    }
    for name in Profile::ALL.iter().map(|profile| profile.name) {
        for terminal in [400, 402, 404, 413] {
            assert_eq!(attempts(name, &status(terminal)), 1, "{name} {terminal}");
        }
        assert_eq!(attempts(name, &status(200)), 1, "{name} repeats a success");
    }
}

#[test]
fn retry_after_on_a_terminal_error_is_retried_by_azure_core_python_only() {
    let terminal = Answer { retry_after: Some("3"), ..status(400) };
    for profile in Profile::ALL {
        let expected = if profile.name == "azure-core-python" { 4 } else { 1 };
        assert_eq!(attempts(profile.name, &terminal), expected, "{}", profile.name);
    }
    let in_millis = Answer { retry_after_ms: Some("3000"), ..status(429) };
    assert_eq!(attempts("azure-core-python", &in_millis), 1, "milliseconds make no retry of a 429");
    let delay = Answer { retry_after_ms: Some("3000"), ..status(503) };
    assert_eq!(waits("azure-core-python", &delay), [Duration::from_secs(3); 3], "but they are a delay on a 503");
}

#[test]
fn should_retry_true_overrules_the_status_and_a_wait_beyond_the_cap_overrules_it() {
    let told = Answer { should_retry: Some("true"), ..status(400) };
    assert_eq!(attempts("openai-python", &told), 3);
    assert_eq!(attempts("vercel-ai", &told), 1);
    let beyond = Answer { should_retry: Some("true"), ..limited("121") };
    assert_eq!(attempts("openai-python", &beyond), 1);
    assert_eq!(waits("openai-python", &limited("120")), [Duration::from_mins(2); 2]);
}

/// How a wait is met: exactly, by the client's own backoff, or by giving up.
#[derive(Debug, Eq, PartialEq)]
enum Met {
    Millis(u64),
    Backoff,
    Stop,
}

impl core::fmt::Display for Met {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Millis(wait_ms) => write!(formatter, "{wait_ms}"),
            Self::Backoff => formatter.write_str("-"),
            Self::Stop => formatter.write_str("x"),
        }
    }
}

fn met(name: &str, answer: &Answer<'_>) -> Met {
    let mut random = Pcg32::seed_from_u64(3);
    match profile(name).call().next(answer, &mut random) {
        Decision::Stop => Met::Stop,
        Decision::RetryAfter { told: false, .. } => Met::Backoff,
        Decision::RetryAfter { wait, .. } => Met::Millis(u64::try_from(wait.as_millis()).expect("waits are short")),
    }
}

/// Columns: retry-after 7, 2.5, a date in 30 s, 0, 59, 60, 3600, 2200000 (25.5 days), then `retry-after-ms` 1500 and
/// `x-ms-retry-after-ms` 1500, each beside a retry-after of 30. In milliseconds; `-` is the own backoff, `x` the end.
const QUIRKS: [(&str, &str); 10] = [
    ("openai-python", "7000 2500 30000 - 59000 60000 x x 1500 30000"),
    ("openai-node", "7000 2500 30000 0 59000 60000 3600000 0 1500 30000"),
    ("anthropic-python", "7000 2500 30000 - 59000 60000 3600000 2200000000 1500 30000"),
    ("anthropic-node", "7000 2500 30000 - 59000 60000 3600000 - 1500 30000"),
    ("langchain-js", "7000 2500 30000 - 59000 60000 x x 30000 30000"),
    ("vercel-ai", "7000 2500 30000 0 59000 - - - 1500 30000"),
    ("azure-core-python", "7000 2500 30000 - 59000 60000 3600000 2200000000 30000 30000"),
    ("azure-core-js", "7000 2500 30000 0 59000 60000 3600000 0 1500 1500"),
    ("async-openai", "7000 - - 0 59000 60000 3600000 2200000000 30000 30000"),
    ("immediate", "- - - - - - - - - -"),
];

#[test]
fn each_header_is_read_with_the_measured_quirks() {
    // Sunday, 6 November 1994, 08:49:37 is 784111777 s after the epoch.
    let date = Answer { unix_seconds: 784_111_747, ..limited("Sun, 06 Nov 1994 08:49:37 GMT") };
    let plain = ["0", "59", "60", "3600", "2200000"].map(limited);
    let millis = Answer { retry_after_ms: Some("1500"), ..limited("30") };
    let azure = Answer { x_ms_retry_after_ms: Some("1500"), ..limited("30") };
    let answers: Vec<_> =
        [limited("7"), limited("2.5"), date].into_iter().chain(plain).chain([millis, azure]).collect();
    for (name, expected) in QUIRKS {
        let found: Vec<_> = answers.iter().map(|answer| met(name, answer).to_string()).collect();
        assert_eq!(found.join(" "), expected, "{name}");
    }
}

#[test]
fn litellm_router_adds_up_to_three_quarters_of_a_second() {
    for wait in waits("litellm-router", &limited("30")) {
        assert!((30_000..=30_750).contains(&wait.as_millis()), "{wait:?}");
    }
    assert_eq!(met("litellm-router", &limited("2.5")), Met::Backoff);
    assert_eq!(met("litellm-router", &limited("61")), Met::Backoff);
    let millis = Answer { retry_after_ms: Some("1500"), ..status(429) };
    assert_eq!(met("litellm-router", &millis), Met::Backoff);
}

#[test]
fn own_backoff_follows_each_law() {
    let down = status(503);
    let exact = |name: &str| waits(name, &down).iter().map(Duration::as_millis).collect::<Vec<_>>();
    assert_eq!(exact("vercel-ai"), [2_000, 4_000]);
    assert_eq!(exact("async-openai"), [100, 200, 400]);
    assert_eq!(exact("azure-core-python"), [0, 1_600, 3_200]);
    assert_eq!(exact("immediate"), [0; 3]);
    assert_eq!(exact("seven-by-seven"), [0; 48]);
    let ranges: [(&str, &[(u128, u128)]); 4] = [
        ("openai-python", &[(375, 500), (750, 1_000)]),
        ("azure-core-js", &[(500, 1_000), (1_000, 2_000), (2_000, 4_000)]),
        ("litellm-router", &[(500, 1_250), (1_000, 1_750)]),
        (
            "langchain-js",
            &[(1_000, 2_000), (2_000, 4_000), (4_000, 8_000), (8_000, 16_000), (16_000, 32_000), (32_000, 64_000)],
        ),
    ];
    for (name, expected) in ranges {
        let found = exact(name);
        assert_eq!(found.len(), expected.len(), "{name}");
        for (wait, (low, high)) in found.iter().zip(expected) {
            assert!((low..=high).contains(&wait), "{name}: {wait} not in {low}..={high}");
        }
    }
}

#[test]
fn llama_index_caps_the_outer_wait_and_ends_after_a_minute() {
    let long = limited("300");
    assert_eq!(waits("llama-index", &long), [Duration::from_mins(2); 2], "the SDK gives up, the outer layer sleeps");
    let late = Answer { elapsed: Duration::from_secs(61), ..long };
    assert_eq!(attempts("llama-index", &late), 1);
    let inner_only = Answer { elapsed: Duration::from_secs(61), ..status(503) };
    assert_eq!(attempts("llama-index", &inner_only), 4);
}

#[test]
fn nested_loops_make_seven_attempts_of_a_limit_and_49_of_a_failure() {
    assert_eq!(attempts("seven-by-seven", &status(429)), 7);
    assert_eq!(attempts("seven-by-seven", &Answer::new(Outcome::Reset)), 49);
    assert_eq!(profile("seven-by-seven").max_attempts(), 49);
    assert_eq!(attempts("none", &status(503)), 1);
    assert_eq!(Profile::immediate(5).max_attempts(), 6);
}

#[test]
fn a_first_event_in_error_is_retried_by_two_clients_unless_it_is_the_clients_fault() {
    let failed = Answer::new(Outcome::FirstEventError);
    for profile in Profile::ALL {
        let expected = if ["vercel-ai", "litellm-router"].contains(&profile.name) { 3 } else { 1 };
        assert_eq!(attempts(profile.name, &failed), expected, "{}", profile.name);
    }
    for code in ["insufficient_quota", "context_length_exceeded", "404"] {
        let named = Answer { error_code: Some(code), ..failed };
        assert_eq!((attempts("vercel-ai", &named), attempts("litellm-router", &named)), (1, 3), "{code}");
    }
    assert_eq!(attempts("vercel-ai", &Answer { error_code: Some("429"), ..failed }), 3);
}

#[test]
fn langchain_js_reads_the_message() {
    let said = |message| Answer { error_message: Some(message), ..status(429) };
    assert_eq!(met("langchain-js", &said("Please try again in 12s.")), Met::Millis(12_000));
    assert_eq!(met("langchain-js", &said("try again in 2.5 seconds")), Met::Millis(2_500));
    assert_eq!(met("langchain-js", &said("try again in soon")), Met::Stop);
    assert_eq!(met("langchain-js", &said("try again in 9s; see your billing page")), Met::Stop);
    assert_eq!(met("openai-python", &said("Please try again in 12s.")), Met::Backoff);
}

#[test]
fn an_answer_that_is_no_json_stops_async_openai_on_a_limit_only() {
    assert_eq!(attempts("async-openai", &Answer { json_body: false, ..limited("1") }), 1);
    assert_eq!(attempts("async-openai", &Answer { json_body: false, ..status(503) }), 4);
}

#[test]
fn unreadable_headers_are_as_good_as_none() {
    for text in
        ["", "-3", "NaN", "inf", "soon", "Sun, 06 Foo 1994 08:49:37 GMT", "Sun, 06 Nov 1994 99:49:37 GMT", "1e400"]
    {
        for profile in Profile::ALL.iter().filter(|profile| profile.inner.attempts > 1) {
            let answer = Answer { retry_after: Some(text), retry_after_ms: Some(text), ..status(503) };
            assert!(matches!(met(profile.name, &answer), Met::Backoff), "{} {text:?}", profile.name);
        }
    }
    assert_eq!(met("openai-python", &limited("99999999999999999999999")), Met::Stop);
    let passed = Answer { unix_seconds: 2_000_000_000, ..limited("Sun, 06 Nov 1994 08:49:37 GMT") };
    assert_eq!(met("openai-python", &passed), Met::Backoff);
}

fn header(call: &Call<'_>, name: &str) -> Option<String> {
    call.request_headers("id-1").into_iter().find(|(found, _)| *found == name).map(|(_, value)| value)
}

#[test]
fn each_client_says_what_it_was_seen_to_say() {
    let counter = |name: &str| {
        let mut call = profile(name).call();
        let mut random = Pcg32::seed_from_u64(1);
        let mut counts = Vec::new();
        loop {
            let told = header(&call, "x-stainless-retry-count");
            // What the simulator tells is what the header tells, counted from 1.
            let count = told.as_ref().map_or(0, |count| count.parse::<u16>().expect("a number") + 1);
            assert_eq!(call.told_attempt(), count);
            counts.push(told);
            if call.next(&status(503), &mut random) == Decision::Stop {
                return counts;
            }
        }
    };
    let texts = |counts: &[u8]| counts.iter().map(|count| Some(count.to_string())).collect::<Vec<_>>();
    assert_eq!(counter("openai-python"), texts(&[0, 1, 2]));
    assert_eq!(counter("llama-index"), texts(&[0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3]));
    assert_eq!(counter("langchain-js"), texts(&[0; 7]));
    assert_eq!(counter("vercel-ai"), [None, None, None]);
    // One id for all attempts tells that they may be repeats, and not which.
    assert_eq!(profile("azure-core-python").call().told_attempt(), 1);
    for (name, key, value) in [
        ("openai-python", "x-stainless-read-timeout", Some("600")),
        ("langchain-python", "x-stainless-read-timeout", None),
        ("llama-index", "x-stainless-read-timeout", Some("60")),
        ("litellm-router", "x-stainless-read-timeout", Some("6000")),
        ("anthropic-node", "x-stainless-timeout", Some("600")),
        ("openai-node", "x-stainless-timeout", None),
        ("azure-core-python", "x-ms-client-request-id", Some("id-1")),
        ("azure-core-js", "x-ms-client-request-id", Some("id-1")),
        ("async-openai", "user-agent", None),
        ("openai-node", "user-agent", Some("OpenAI/JS 6.49.0")),
    ] {
        assert_eq!(header(&profile(name).call(), key).as_deref(), value, "{name} {key}");
    }
}

#[test]
fn names_are_unique_and_found() {
    for (index, profile) in Profile::ALL.iter().enumerate() {
        assert_eq!(Profile::by_name(profile.name), Some(profile));
        assert!(Profile::ALL[..index].iter().all(|other| other.name != profile.name));
        assert!(!profile.version.is_empty());
        assert!(profile.identity.retry_count != RetryCount::Counts || profile.identity.user_agent.is_some());
    }
    assert!(Profile::by_name("OpenAI-Python").is_none());
}
