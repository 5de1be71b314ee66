//! The measured clients, as data.

use super::{
    Backoff, Faults, Forms, Identity, Layer, OnExcess, OnZero, Profile, QuotaStop, RetryCount, Statuses, WaitReading,
};
use core::time::Duration;

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A timer of 32 bits of milliseconds, signed: 24.8 days.
const TIMER_LIMIT: Duration = millis(i32::MAX as u64);

const ALL_FAULTS: Faults = Faults { refused: true, reset: true, read_timeout: true, first_event_error: false };
const NO_FAULTS: Faults = Faults { refused: false, reset: false, read_timeout: false, first_event_error: false };

const NO_WAIT: Backoff = Backoff {
    first: Duration::ZERO,
    max: Duration::ZERO,
    low_percent: 100,
    high_percent: 100,
    spread: Duration::ZERO,
    from_first: false,
    first_immediate: false,
};

const READS_NOTHING: WaitReading = WaitReading {
    retry_after: None,
    retry_after_ms: false,
    x_ms_retry_after_ms: false,
    ms_wins: false,
    on: &[],
    cap: Duration::MAX,
    cap_obeyed: true,
    on_excess: OnExcess::Ignore,
    on_zero: OnZero::Ignore,
    spread: Duration::ZERO,
    at_least_backoff: false,
    message: false,
};

/// The generated SDKs of OpenAI and Anthropic: 0.5 s doubling to 8 s, times 0.75 to 1.
const STAINLESS_BACKOFF: Backoff =
    Backoff { first: millis(500), max: seconds(8), low_percent: 75, high_percent: 100, ..NO_WAIT };

const STAINLESS_WAITS: WaitReading =
    WaitReading { retry_after: Some(Forms::All), retry_after_ms: true, ms_wins: true, ..READS_NOTHING };

const STAINLESS: Layer = Layer {
    attempts: 3,
    statuses: Statuses::ServerErrorsAnd(&[408, 409, 429]),
    faults: ALL_FAULTS,
    obeys_should_retry: true,
    header_makes_retry: false,
    bare_429_stops: false,
    quota_stop: QuotaStop::Never,
    backoff: STAINLESS_BACKOFF,
    waits: STAINLESS_WAITS,
    give_up_after: None,
};

/// Beyond 120 s this one stops, even where `x-should-retry` says true.
const OPENAI_PYTHON_LAYER: Layer =
    Layer { waits: WaitReading { cap: seconds(120), on_excess: OnExcess::Stop, ..STAINLESS_WAITS }, ..STAINLESS };

const ANONYMOUS: Identity = Identity {
    user_agent: None,
    retry_count: RetryCount::Absent,
    client_request_id: false,
    read_timeout_header: None,
    timeout_header: None,
};

const OPENAI_PYTHON_IDENTITY: Identity = Identity {
    user_agent: Some("OpenAI/Python 2.54.0"),
    retry_count: RetryCount::Counts,
    read_timeout_header: Some("600"),
    ..ANONYMOUS
};

const OPENAI_PYTHON: Profile = Profile {
    name: "openai-python",
    version: "openai 2.54.0 (Python)",
    inner: OPENAI_PYTHON_LAYER,
    outer: None,
    identity: OPENAI_PYTHON_IDENTITY,
    timeout: Some(seconds(600)),
};

const OPENAI_NODE: Profile = Profile {
    name: "openai-node",
    version: "openai 6.49.0 (Node)",
    inner: Layer {
        waits: WaitReading {
            on_zero: OnZero::Immediate,
            cap: TIMER_LIMIT,
            on_excess: OnExcess::Immediate,
            ..STAINLESS_WAITS
        },
        ..STAINLESS
    },
    outer: None,
    identity: Identity { user_agent: Some("OpenAI/JS 6.49.0"), retry_count: RetryCount::Counts, ..ANONYMOUS },
    timeout: Some(seconds(600)),
};

const ANTHROPIC_PYTHON: Profile = Profile {
    name: "anthropic-python",
    version: "anthropic 2.14.0 (Python)",
    inner: STAINLESS,
    outer: None,
    identity: Identity { user_agent: Some("Anthropic/Python 2.14.0"), ..OPENAI_PYTHON_IDENTITY },
    timeout: Some(seconds(600)),
};

const ANTHROPIC_NODE: Profile = Profile {
    name: "anthropic-node",
    version: "@anthropic-ai/sdk 1.14.0 (Node)",
    inner: Layer { waits: WaitReading { cap: TIMER_LIMIT, ..STAINLESS_WAITS }, ..STAINLESS },
    outer: None,
    identity: Identity {
        user_agent: Some("Anthropic/JS 1.14.0"),
        retry_count: RetryCount::Counts,
        timeout_header: Some("600"),
        ..ANONYMOUS
    },
    timeout: Some(seconds(600)),
};

/// Sits directly on the OpenAI SDK; passes no timeout by default, so the header is absent.
const LANGCHAIN_PYTHON: Profile = Profile {
    name: "langchain-python",
    version: "langchain-openai 1.4.3",
    identity: Identity { read_timeout_header: None, ..OPENAI_PYTHON_IDENTITY },
    ..OPENAI_PYTHON
};

const LANGCHAIN_JS: Profile = Profile {
    name: "langchain-js",
    version: "@langchain/openai 1.5.8, core 1.4.0",
    inner: Layer {
        attempts: 7,
        statuses: Statuses::AllBut(&[400, 401, 402, 403, 404, 405, 406, 407, 409, 413]),
        faults: ALL_FAULTS,
        obeys_should_retry: false,
        header_makes_retry: false,
        bare_429_stops: true,
        quota_stop: QuotaStop::CodeOrMessage,
        backoff: Backoff { first: seconds(1), max: seconds(3_600), low_percent: 100, high_percent: 200, ..NO_WAIT },
        waits: WaitReading {
            retry_after: Some(Forms::All),
            on: &[429],
            cap: seconds(60),
            on_excess: OnExcess::Stop,
            // A nought is still a stated wait (so the 429 is retried), and then the longer backoff holds.
            on_zero: OnZero::Immediate,
            at_least_backoff: true,
            message: true,
            ..READS_NOTHING
        },
        give_up_after: None,
    },
    outer: None,
    identity: Identity {
        user_agent: Some("langchainjs-openai/1.5.8"),
        retry_count: RetryCount::AlwaysZero,
        ..ANONYMOUS
    },
    timeout: Some(seconds(600)),
};

/// Three tries of an OpenAI SDK that itself retries three times; the outer layer knows only the classes that mean
/// "connection", "limit" and "server", and sleeps a stated wait even when the SDK had given up over it.
const LLAMA_INDEX: Profile = Profile {
    name: "llama-index",
    version: "llama-index-llms-openai 0.8.3",
    inner: Layer { attempts: 4, ..OPENAI_PYTHON_LAYER },
    outer: Some(Layer {
        attempts: 3,
        statuses: Statuses::ServerErrorsAnd(&[429]),
        obeys_should_retry: false,
        backoff: Backoff { first: seconds(1), max: seconds(20), from_first: true, ..NO_WAIT },
        waits: WaitReading {
            retry_after: Some(Forms::IntegerAndFraction),
            cap: seconds(120),
            on_excess: OnExcess::Clamp,
            ..READS_NOTHING
        },
        give_up_after: Some(seconds(60)),
        ..STAINLESS
    }),
    identity: Identity { read_timeout_header: Some("60"), ..OPENAI_PYTHON_IDENTITY },
    timeout: Some(seconds(60)),
};

const VERCEL_AI: Profile = Profile {
    name: "vercel-ai",
    version: "ai 6.0.326, @ai-sdk/openai 3.0.141",
    inner: Layer {
        obeys_should_retry: false,
        faults: Faults { read_timeout: false, first_event_error: true, ..ALL_FAULTS },
        quota_stop: QuotaStop::FirstEvent,
        backoff: Backoff { first: seconds(2), max: seconds(3_600), ..NO_WAIT },
        waits: WaitReading { cap: seconds(60), cap_obeyed: false, on_zero: OnZero::Immediate, ..STAINLESS_WAITS },
        ..STAINLESS
    },
    outer: None,
    identity: Identity { user_agent: Some("ai/6.0.326 ai-sdk/provider-utils/4.0.0"), ..ANONYMOUS },
    timeout: None,
};

const AZURE_CORE_PYTHON: Profile = Profile {
    name: "azure-core-python",
    version: "azure-ai-inference 1.0.0b9, azure-core 1.41",
    inner: Layer {
        attempts: 4,
        statuses: Statuses::Only(&[500, 503, 504]),
        faults: NO_FAULTS,
        obeys_should_retry: false,
        header_makes_retry: true,
        backoff: Backoff { first: millis(800), max: seconds(120), first_immediate: true, ..NO_WAIT },
        waits: WaitReading {
            retry_after: Some(Forms::All),
            retry_after_ms: true,
            x_ms_retry_after_ms: true,
            ..READS_NOTHING
        },
        ..STAINLESS
    },
    outer: None,
    identity: Identity { user_agent: Some("azsdk-python-ai-inference/1.0.0b9"), client_request_id: true, ..ANONYMOUS },
    timeout: Some(seconds(300)),
};

const AZURE_CORE_JS: Profile = Profile {
    name: "azure-core-js",
    version: "@azure-rest/ai-inference, core-rest-pipeline 1.24",
    inner: Layer {
        attempts: 4,
        statuses: Statuses::ServerErrorsAndBut(&[408], &[501, 505]),
        faults: Faults { read_timeout: false, ..ALL_FAULTS },
        obeys_should_retry: false,
        bare_429_stops: true,
        backoff: Backoff { first: seconds(1), max: seconds(64), low_percent: 50, high_percent: 100, ..NO_WAIT },
        waits: WaitReading {
            x_ms_retry_after_ms: true,
            on: &[429, 503],
            on_zero: OnZero::Immediate,
            cap: TIMER_LIMIT,
            on_excess: OnExcess::Immediate,
            ..STAINLESS_WAITS
        },
        ..STAINLESS
    },
    outer: None,
    identity: Identity { user_agent: Some("azsdk-js-ai-inference-rest/1.0.0"), client_request_id: true, ..ANONYMOUS },
    timeout: None,
};

const ASYNC_OPENAI: Profile = Profile {
    name: "async-openai",
    version: "async-openai 0.43.0 (Rust)",
    inner: Layer {
        attempts: 4,
        statuses: Statuses::ServerErrorsAnd(&[429]),
        faults: Faults { refused: true, ..NO_FAULTS },
        obeys_should_retry: false,
        quota_stop: QuotaStop::ErrorType,
        backoff: Backoff { first: millis(100), max: seconds(8), ..NO_WAIT },
        waits: WaitReading { retry_after: Some(Forms::Integer), on_zero: OnZero::Immediate, ..READS_NOTHING },
        ..STAINLESS
    },
    outer: None,
    identity: ANONYMOUS,
    timeout: None,
};

const LITELLM_ROUTER: Profile = Profile {
    name: "litellm-router",
    version: "litellm 1.108.7, Router with one deployment",
    inner: Layer {
        statuses: Statuses::ServerErrorsAnd(&[403, 408, 409, 429]),
        faults: Faults { first_event_error: true, ..ALL_FAULTS },
        obeys_should_retry: false,
        backoff: Backoff { first: millis(500), max: seconds(8), spread: millis(750), ..NO_WAIT },
        waits: WaitReading {
            retry_after: Some(Forms::IntegerAndDate),
            cap: seconds(60),
            spread: millis(750),
            ..READS_NOTHING
        },
        ..STAINLESS
    },
    outer: None,
    identity: Identity {
        user_agent: Some("AsyncOpenAI/Python 2.54.0"),
        retry_count: RetryCount::AlwaysZero,
        read_timeout_header: Some("6000"),
        ..ANONYMOUS
    },
    timeout: Some(seconds(6_000)),
};

/// Home-made loops: no backoff, no header read.
const HOME_MADE: Layer = Layer {
    attempts: 4,
    statuses: Statuses::ServerErrorsAnd(&[408, 429]),
    faults: ALL_FAULTS,
    obeys_should_retry: false,
    backoff: NO_WAIT,
    waits: READS_NOTHING,
    ..STAINLESS
};

pub(super) const fn immediate(retries: u16) -> Profile {
    Profile {
        name: "immediate",
        version: "a loop without waits",
        inner: Layer { attempts: retries.saturating_add(1), ..HOME_MADE },
        outer: None,
        identity: ANONYMOUS,
        timeout: None,
    }
}

/// Two layers of six immediate retries, as in a field case: a limit (429) ends after the inner one, every other
/// failure goes through both.
const SEVEN_BY_SEVEN: Profile = Profile {
    name: "seven-by-seven",
    version: "two nested loops without waits",
    inner: Layer { attempts: 7, ..HOME_MADE },
    outer: Some(Layer { attempts: 7, statuses: Statuses::ServerErrorsAnd(&[408]), ..HOME_MADE }),
    identity: ANONYMOUS,
    timeout: None,
};

const NONE: Profile = Profile {
    name: "none",
    version: "a client that never retries",
    inner: Layer { attempts: 1, statuses: Statuses::Never, faults: NO_FAULTS, ..HOME_MADE },
    outer: None,
    identity: ANONYMOUS,
    timeout: None,
};

pub(super) const ALL: &[Profile] = &[
    OPENAI_PYTHON,
    OPENAI_NODE,
    ANTHROPIC_PYTHON,
    ANTHROPIC_NODE,
    LANGCHAIN_PYTHON,
    LANGCHAIN_JS,
    LLAMA_INDEX,
    VERCEL_AI,
    AZURE_CORE_PYTHON,
    AZURE_CORE_JS,
    ASYNC_OPENAI,
    LITELLM_ROUTER,
    immediate(3),
    SEVEN_BY_SEVEN,
    NONE,
];
