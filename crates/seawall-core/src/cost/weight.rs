//! How much longer an output token takes than an input token, learned for each model.
//!
//! Servers are full by slots and by time: an answer holds its slot while its prompt is read and while its tokens are
//! made one after the other. The weight of an output token is therefore the time that making one takes over the time
//! that reading one takes, so that work is proportional to time in a slot. It is 2 until it is known. Only streams tell
//! both times: the first piece of the output comes when the prompt has been read, the last one when the last token has
//! been made. The first *byte* says nothing: many servers open a stream before they read.
//!
//! *Making* is the time from the first piece to the end over the tokens after the first one; the middle one of the
//! samples counts. An upstream that queues does so before the first piece, so this time is clean, but for clients that
//! read slowly: these make it longer, and fewer than half of them do not move the middle one.
//!
//! *Reading* is not: the time to the first piece holds the network, fixed costs and any queue of the upstream too. All
//! of these come on top, however long the prompt is. So what counts is by how much later the first piece of a longer
//! prompt came: the middle one of the slopes between all pairs of samples (Theil 1950, Sen 1968), which needs no base
//! time, cancels what is constant, and stays right where up to 29% of the samples are anything. Pairs are taken within
//! one deployment only, since another one has another distance, and from the half of the samples with the least in
//! flight there when they began: these have waited least. Where fewer than three of four pairs agree that a longer
//! prompt takes longer, a queue decides the times and not the prompt, and nothing is learned.
//!
//! The same holds where a model thinks unseen before its first piece, as long as it pleases.
//!
//! Bounds: from a half to 256. Beyond them one side is as good as free: at 256, an answer of 100 tokens weighs as much
//! as a prompt of 25,600. Left out: that prompts cost more than in proportion where they are very long.

use crate::id::DeploymentId;
use crate::time::Duration;
use alloc::vec::Vec;

/// Thousandths of a unit that an output token weighs before anything is known.
const AT_START: u64 = 2_000;
const LEAST: u64 = 500;
const MOST: u64 = 256_000;
/// Samples that are gathered for a reckoning: half of them make some 500 pairs.
const GATHERED: usize = 64;
/// Of shorter answers the time says too little.
const FEWEST_OUTPUT_TOKENS: u64 = 8;
/// Two prompts that differ by less say too little.
const LEAST_APART_TOKENS: i64 = 64;
/// With fewer pairs nothing is known.
const FEWEST_PAIRS: usize = 32;

/// One stream that came to its end, with the usage that its upstream told.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// Where it was served.
    pub deployment: DeploymentId,
    /// How many others were in flight there when it began.
    pub load: u32,
    /// Tokens of the input that were read anew.
    pub uncached_input_tokens: u64,
    /// From the dispatch to the first piece of the output.
    pub first_output: Duration,
    /// Tokens of the output.
    pub output_tokens: u64,
    /// From there to the end.
    pub rest: Duration,
}

/// A sample as it is kept.
#[derive(Clone, Copy, Debug)]
struct Sample {
    deployment: DeploymentId,
    load: u32,
    input_tokens: i64,
    first_output_nanos: i64,
    nanos_per_output_token: u64,
}

/// The weight of an output token of one model.
#[derive(Clone, Debug)]
pub struct OutputWeight {
    thousandths: u64,
    gathered: Vec<Sample>,
}

impl Default for OutputWeight {
    fn default() -> Self {
        Self { thousandths: AT_START, gathered: Vec::new() }
    }
}

impl OutputWeight {
    /// The present weight, in thousandths of the weight of an input token.
    pub const fn thousandths(&self) -> u64 {
        self.thousandths
    }

    /// A stream ended.
    pub fn observe(&mut self, timing: &Timing) {
        if timing.output_tokens < FEWEST_OUTPUT_TOKENS {
            return;
        }
        self.gathered.push(Sample {
            deployment: timing.deployment,
            load: timing.load,
            input_tokens: signed(timing.uncached_input_tokens),
            first_output_nanos: signed(nanos(timing.first_output)),
            nanos_per_output_token: nanos(timing.rest) / (timing.output_tokens - 1),
        });
        if self.gathered.len() == GATHERED {
            self.reckon();
        }
    }

    fn reckon(&mut self) {
        let mut calm = core::mem::take(&mut self.gathered);
        // The latest ones go first: of those with like load these are kept.
        calm.reverse();
        calm.sort_by_key(|sample| sample.load);
        calm.truncate(calm.len() / 2);
        let Some(reading) = nanos_per_input_token(&calm) else { return };
        let mut making: Vec<u64> = calm.iter().map(|sample| sample.nanos_per_output_token).collect();
        let making = at(&mut making, 2);
        self.thousandths = (making.saturating_mul(1_000) / reading).clamp(LEAST, MOST);
    }
}

/// By how much each further token of a prompt delays the first piece; `None` where the samples do not agree that it
/// does.
fn nanos_per_input_token(samples: &[Sample]) -> Option<u64> {
    let mut slopes: Vec<i64> = Vec::new();
    for (index, one) in samples.iter().enumerate() {
        for other in &samples[..index] {
            // Neither is negative, so no difference overflows.
            let apart = one.input_tokens - other.input_tokens;
            if one.deployment == other.deployment && apart.abs() >= LEAST_APART_TOKENS {
                slopes.push((one.first_output_nanos - other.first_output_nanos) / apart);
            }
        }
    }
    if slopes.len() < FEWEST_PAIRS {
        return None;
    }
    let agree = at(&mut slopes, 4) > 0;
    u64::try_from(at(&mut slopes, 2)).ok().filter(|_| agree)
}

/// The value below which a part of them lies, in order of size: one of so many equal parts. There is at least one
/// value.
fn at<T: Copy + Ord>(values: &mut [T], parts: usize) -> T {
    let place = values.len() / parts;
    *values.select_nth_unstable(place).1
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: DeploymentId = DeploymentId(0);
    const AFAR: DeploymentId = DeploymentId(1);

    /// A stream of a server that reads 20,000 tokens a second and makes 100, behind a wait.
    fn stream(deployment: DeploymentId, load: u32, input: u64, output: u64, wait_ms: u64) -> Timing {
        Timing {
            deployment,
            load,
            uncached_input_tokens: input,
            first_output: Duration::from_millis(wait_ms) + Duration::from_micros(input * 50),
            output_tokens: output,
            rest: Duration::from_millis((output - 1) * 10),
        }
    }

    /// The inputs of a mix, from 100 to 3,250 tokens.
    fn input(number: u64) -> u64 {
        100 + number * 37 % 64 * 50
    }

    fn learned(streams: impl Iterator<Item = Timing>) -> u64 {
        let mut weight = OutputWeight::default();
        streams.for_each(|timing| weight.observe(&timing));
        weight.thousandths()
    }

    #[test]
    fn it_is_two_until_enough_streams_have_ended() {
        let streams = |count| learned((0..count).map(|number| stream(HERE, 0, input(number), 20, 30)));
        assert_eq!((streams(63), streams(64)), (2_000, 200_000));
    }

    #[test]
    fn neither_the_distance_nor_the_queue_of_an_upstream_counts() {
        // Two deployments, one of them 300 ms away; every second stream waits half a second behind others.
        let far = |number: u64| if number % 4 < 2 { (HERE, 5) } else { (AFAR, 300) };
        let queued = |number: u64| if number.is_multiple_of(2) { (12, 500) } else { (3, 0) };
        let mixed = |number| {
            let ((deployment, distance), (load, wait)) = (far(number), queued(number));
            stream(deployment, load, input(number), 50, distance + wait)
        };
        assert_eq!(learned((0..64).map(mixed)), 200_000);
        // A quarter of the calm ones is anything.
        let outlier = |number: u64| {
            let usual = mixed(number);
            let strange = Duration::from_secs(number % 7);
            if number % 8 == 1 { Timing { first_output: strange, ..usual } } else { usual }
        };
        assert_eq!(learned((0..64).map(outlier)), 200_000);
    }

    #[test]
    fn nothing_is_learned_where_a_queue_decides_or_where_prompts_are_alike() {
        let waits = |number: u64| number * 7_919 % 64 * 100;
        let queue = learned((0..256).map(|number| stream(HERE, 20, input(number), 50, waits(number))));
        let alike = learned((0..256).map(|number| stream(HERE, 0, 1_000 + number % 4, 50, 5)));
        let short = learned((0..256).map(|number| stream(HERE, 0, input(number), 7, 5)));
        assert_eq!((queue, alike, short), (2_000, 2_000, 2_000));
    }

    #[test]
    fn it_keeps_to_its_bounds_and_follows_a_change() {
        let slow = |number| Timing { rest: Duration::from_mins(1), ..stream(HERE, 0, input(number), 50, 5) };
        let quick = |number| Timing { rest: Duration::ZERO, ..stream(HERE, 0, input(number), 50, 5) };
        assert_eq!(learned((0..64).map(slow)), 256_000);
        assert_eq!(learned((0..64).map(slow).chain((0..64).map(quick))), 500);
        let odd = Timing { first_output: Duration::MAX, rest: Duration::MAX, ..stream(HERE, 0, 0, 50, 5) };
        let extreme = |number: u64| {
            let tokens = if number.is_multiple_of(2) { u64::MAX } else { 0 };
            Timing { uncached_input_tokens: tokens, output_tokens: u64::MAX, ..odd }
        };
        assert_eq!(learned((0..64).map(extreme)), 2_000);
    }
}
