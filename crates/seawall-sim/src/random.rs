//! Seeded random streams, one for each actor and purpose, and the draws that actors need.

use rand_core::{Rng, SeedableRng, TryRng};
use rand_pcg::Pcg64Mcg;
pub(crate) use seawall_model::mix::mix;

/// One random stream (PCG XSL RR 128/64, O'Neill 2014). Streams of different names are independent, so that a change of
/// one actor does not shift the draws of another.
#[derive(Clone, Debug)]
pub struct Stream(Pcg64Mcg);

impl Stream {
    /// The stream of a run's seed with this name.
    pub fn new(seed: u64, name: &str) -> Self {
        // FNV-1a over the name, then one step of SplitMix64: both are the same on every machine.
        let hash =
            name.bytes().fold(0xcbf2_9ce4_8422_2325_u64 ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15), |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
        Self(Pcg64Mcg::seed_from_u64(mix(hash)))
    }

    /// A number in `0.0..1.0`.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit an f64 exactly")]
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A whole number of 64 bits: the seed of something else.
    pub fn whole(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A whole number in `0..bound`; 0 where `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        let product = u128::from(self.0.next_u64()) * bound as u128;
        usize::try_from(product >> 64).unwrap_or(0)
    }

    /// Whether something happens that happens in this part of cases.
    pub fn chance(&mut self, part: f64) -> bool {
        part > 0.0 && self.unit() < part
    }

    /// A span with this mean, exponentially distributed.
    pub fn exponential(&mut self, mean_nanos: f64) -> u64 {
        nanos(-libm::log(1.0 - self.unit()) * mean_nanos)
    }

    /// A span around `middle`, evenly within a part of it to both sides.
    #[expect(clippy::cast_precision_loss, reason = "spans are far below 2^53 microseconds")]
    pub fn around(&mut self, middle: u64, part: f64) -> u64 {
        if part <= 0.0 { middle } else { nanos(middle as f64 * (1.0 + part * (2.0 * self.unit() - 1.0))) }
    }

    /// A span between two, evenly.
    #[expect(clippy::cast_precision_loss, reason = "spans are far below 2^53 microseconds")]
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        if high <= low { low } else { low + nanos((high - low) as f64 * self.unit()) }
    }

    /// A span with this mean whose logarithm is normal with this deviation; the mean itself where that is 0.
    #[expect(clippy::cast_precision_loss, reason = "spans are far below 2^53 microseconds")]
    pub fn lognormal(&mut self, mean: u64, sigma: f64) -> u64 {
        if sigma <= 0.0 {
            return mean;
        }
        // Box and Muller's method, one of its two values.
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.unit()));
        let normal = radius * libm::cos(core::f64::consts::TAU * self.unit());
        nanos(mean as f64 * libm::exp(sigma * normal - sigma * sigma / 2.0))
    }

    /// A span with this mean: the sum of so many exponential ones with equal means (Erlang).
    pub fn erlang(&mut self, mean: u64, stages: u32) -> u64 {
        let sum: f64 = (0..stages).map(|_| -libm::log(1.0 - self.unit())).sum();
        #[expect(clippy::cast_precision_loss, reason = "spans are far below 2^53 microseconds")]
        nanos(mean as f64 * sum / f64::from(stages.max(1)))
    }

    /// A whole number from 1 with this mean, geometrically distributed.
    pub fn geometric(&mut self, mean: f64) -> u32 {
        if mean <= 1.0 {
            return 1;
        }
        let trials = libm::ceil(libm::log(1.0 - self.unit()) / libm::log(1.0 - 1.0 / mean));
        u32::try_from(nanos(trials)).unwrap_or(u32::MAX).max(1)
    }
}

impl TryRng for Stream {
    type Error = core::convert::Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        Ok(self.0.next_u32())
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        Ok(self.0.next_u64())
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Self::Error> {
        self.0.fill_bytes(bytes);
        Ok(())
    }
}

/// A float of nanoseconds as a whole number; 0 where it is negative or none.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates, which is what is wanted")]
pub(crate) fn nanos(value: f64) -> u64 {
    value as u64
}

/// The seed of something with this name in a run with this seed.
pub(crate) fn seed_of(seed: u64, name: &str) -> u64 {
    name.bytes().fold(mix(seed), |hash, byte| mix(hash ^ u64::from(byte)))
}

/// A fixed place in `0.0..1.0` for a number: which part of a roll-out it belongs to.
#[expect(clippy::cast_precision_loss, reason = "53 bits fit an f64 exactly")]
pub(crate) const fn place(number: u64) -> f64 {
    (mix(number) >> 11) as f64 / (1_u64 << 53) as f64
}
