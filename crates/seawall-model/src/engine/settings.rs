//! What goes into the engine and what comes out of it.

/// Nanoseconds since an origin that the host chooses, or a span of them.
pub type Nanos = u64;

/// How an engine is built. [`EngineSettings::default`] is a mid-size server; [`EngineSettings::fixed`] a pure delay.
#[derive(Clone, Debug)]
pub struct EngineSettings {
    /// Sequences that run at the same time.
    pub slots: u32,
    /// Prompt tokens read in a second, by all sequences together, one after the other.
    pub prefill_tokens_per_second: u32,
    /// Output tokens in a second of a sequence that decodes alone.
    pub decode_tokens_per_second: u32,
    /// How much each further decoding sequence slows the others: with `n` decoding the rate is divided by
    /// `1 + (n - 1) * ppm / 1,000,000`.
    pub batch_slowdown_ppm: u32,
    /// Tokens that the KV memory holds; a sequence holds its prompt and its whole output.
    pub kv_tokens: u64,
    /// Jobs that may wait; `None` is without a bound.
    pub waiting_limit: Option<u32>,
    /// Tokens that the prefix cache holds, beside the KV memory; 0 switches it off.
    pub prefix_cache_tokens: u64,
    /// What happens to a job whose client leaves.
    pub departure: Departure,
    /// A delay between the end of the prefill and the first token; the slot is held meanwhile.
    pub extra_latency: Nanos,
    /// Where set, each job takes exactly this long in its slot at full capacity, however long its prompt and its
    /// output; its tokens come evenly spread. Neither the rates nor the batch size matter then.
    pub fixed_service: Option<Nanos>,
    /// Whose turn it is when a slot is free.
    pub order: Order,
}

impl Default for EngineSettings {
    fn default() -> Self {
        Self {
            slots: 16,
            prefill_tokens_per_second: 20_000,
            decode_tokens_per_second: 100,
            batch_slowdown_ppm: 10_000,
            kv_tokens: 262_144,
            waiting_limit: Some(64),
            prefix_cache_tokens: 65_536,
            departure: Departure::FreesSlot,
            extra_latency: 0,
            fixed_service: None,
            order: Order::Arrival,
        }
    }
}

impl EngineSettings {
    /// A server with `slots` slots in which each job takes `service`, with an unbounded waiting queue.
    pub fn fixed(slots: u32, service: Nanos) -> Self {
        Self { slots, waiting_limit: None, fixed_service: Some(service), kv_tokens: u64::MAX / 4, ..Self::default() }
    }
}

/// Which of the waiting jobs comes first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Order {
    /// The one that came first.
    Arrival,
    /// Any of them, as likely as any other.
    Random {
        /// Decides the draws.
        seed: u64,
    },
}

/// What happens to a job whose client leaves.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Departure {
    /// Its slot, or its place in the queue, is free at once.
    FreesSlot,
    /// It goes on to its end, as with servers that do not watch their connections.
    KeepsRunning,
}

/// One request as the engine sees it.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// Tokens of the prompt.
    pub prompt_tokens: u32,
    /// Tokens of the answer; 0 (an embedding) finishes at the end of the prefill.
    pub output_tokens: u32,
    /// A beginning of the prompt that other jobs may share.
    pub prefix: Option<Prefix>,
    /// Which events to make.
    pub report: Report,
}

impl Job {
    pub(super) fn kv_tokens(&self) -> u64 {
        u64::from(self.prompt_tokens) + u64::from(self.output_tokens)
    }
}

/// A beginning of a prompt, by its hash.
#[derive(Clone, Copy, Debug)]
pub struct Prefix {
    /// Equal hashes are taken for equal prefixes.
    pub hash: u64,
    /// Its length.
    pub tokens: u32,
}

/// Which events a job makes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Report {
    /// Its finish only.
    Finish,
    /// Its first token and its finish.
    FirstToken,
    /// Its first token, each further token, its finish.
    EveryToken,
}

/// A job within one engine, in order of arrival.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct JobId(pub u64);

/// The answer to a submission.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Submitted {
    /// It runs or waits; it ends in one `Finished` event or one [`Cancelled::Freed`].
    Accepted(JobId),
    /// It was not taken.
    Refused(Refusal),
}

/// Why a job was not taken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Refusal {
    /// The waiting queue is full.
    QueueFull,
    /// Prompt and output are larger than the whole KV memory.
    TooLarge,
}

/// What a cancellation did.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Cancelled {
    /// The job has ended; its slot or place is free.
    Freed,
    /// The job goes on without its client.
    Continues,
    /// There is no such job any more.
    Unknown,
}

/// Something that happened to a job.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Event {
    /// When.
    pub at: Nanos,
    /// To which job.
    pub job: JobId,
    /// What.
    pub kind: EventKind,
}

/// What happened.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum EventKind {
    /// The first output token is there.
    FirstToken,
    /// So many output tokens are there.
    Tokens(u32),
    /// The job has ended with its whole output.
    Finished {
        /// Its client had left before.
        abandoned: bool,
    },
}

/// The state of an engine, and totals since its start.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Snapshot {
    /// Sequences in slots.
    pub running: u32,
    /// Jobs that wait.
    pub waiting: u32,
    /// KV memory in use.
    pub kv_used_tokens: u64,
    /// KV memory at all.
    pub kv_capacity_tokens: u64,
    /// Prompt tokens whose prefill has ended, cached ones included.
    pub prompt_tokens: u64,
    /// Output tokens of jobs that have ended.
    pub generation_tokens: u64,
    /// Prefix tokens that were looked up in the prefix cache.
    pub prefix_queried_tokens: u64,
    /// Prefix tokens that were found there.
    pub prefix_hit_tokens: u64,
    /// Jobs taken.
    pub accepted: u64,
    /// Jobs refused.
    pub refused: u64,
    /// Jobs that finished, abandoned ones included.
    pub finished: u64,
    /// Jobs that ended by cancellation.
    pub cancelled: u64,
}
