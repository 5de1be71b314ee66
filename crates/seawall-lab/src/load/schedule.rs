//! Who arrives when, decided before anything is sent.
//!
//! Arrivals depend on the options and the seed alone, never on answers: that is what keeps the measurement free of
//! coordinated omission (a slow target cannot slow the arrivals down and so hide its own slowness). Times and picks
//! come from two random streams, so that a change of spacing leaves the picks as they were.

use super::options::{Arrivals, Endpoint, Limit, LoadOptions};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::time::Duration;

/// One call to be made.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Arrival {
    /// Its number, from 0.
    pub(super) number: u64,
    /// Since the start of the run.
    pub(super) at: Duration,
    /// Whether it belongs to the warm-up.
    pub(super) warm_up: bool,
    /// Indexes into the options' mixes.
    pub(super) size: usize,
    pub(super) model: usize,
    pub(super) tenant: usize,
    pub(super) profile: usize,
    /// Whether it asks for a stream.
    pub(super) stream: bool,
    /// Seed of its client's backoff.
    pub(super) seed: u64,
}

/// The arrivals of a run, in order.
pub(super) struct Schedule<'a> {
    options: &'a LoadOptions,
    times: Pcg64Mcg,
    picks: Pcg64Mcg,
    at_seconds: f64,
    number: u64,
    measured: u64,
}

impl<'a> Schedule<'a> {
    pub(super) fn new(options: &'a LoadOptions) -> Self {
        let mut times = Pcg64Mcg::seed_from_u64(options.seed);
        let picks = Pcg64Mcg::seed_from_u64(options.seed ^ 0x9e37_79b9_7f4a_7c15);
        let at_seconds = match options.arrivals {
            Arrivals::Constant => 0.0,
            Arrivals::Poisson => exponential(&mut times, options.rate_per_second),
        };
        Self { options, times, picks, at_seconds, number: 0, measured: 0 }
    }
}

impl Iterator for Schedule<'_> {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        let options = self.options;
        let at = Duration::try_from_secs_f64(self.at_seconds).ok()?;
        let warm_up = at < options.warm_up;
        let over = match options.limit {
            Limit::Duration(duration) => at >= options.warm_up + duration,
            Limit::Count(count) => self.measured >= count,
        };
        if over {
            return None;
        }
        let arrival = Arrival {
            number: self.number,
            at,
            warm_up,
            size: options.sizes.pick(self.picks.next_u64()),
            model: options.models.pick(self.picks.next_u64()),
            tenant: options.tenants.pick(self.picks.next_u64()),
            profile: options.profiles.pick(self.picks.next_u64()),
            stream: unit(&mut self.picks) < options.stream_share && options.endpoint != Endpoint::Embeddings,
            seed: self.picks.next_u64(),
        };
        self.number += 1;
        self.measured += u64::from(!warm_up);
        self.at_seconds += match options.arrivals {
            Arrivals::Constant => 1.0 / options.rate_per_second,
            Arrivals::Poisson => exponential(&mut self.times, options.rate_per_second),
        };
        Some(arrival)
    }
}

/// A uniform draw in [0, 1).
fn unit(random: &mut impl Rng) -> f64 {
    f64::from(random.next_u32()) / 4_294_967_296.0
}

/// An exponential draw by inversion; libm's logarithm gives the same schedule on every machine.
fn exponential(random: &mut impl Rng, rate: f64) -> f64 {
    -libm::log(1.0 - unit(random)) / rate
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(arrivals: Arrivals) -> LoadOptions {
        LoadOptions {
            rate_per_second: 1_000.0,
            arrivals,
            limit: Limit::Duration(Duration::from_secs(10)),
            warm_up: Duration::from_secs(1),
            sizes: "small:80,medium:20".parse().unwrap(),
            profiles: "openai-python,none".parse().unwrap(),
            stream_share: 0.25,
            ..LoadOptions::new("http://127.0.0.1:1")
        }
    }

    #[test]
    fn a_seed_gives_one_schedule_and_another_seed_another() {
        for arrivals in [Arrivals::Constant, Arrivals::Poisson] {
            let options = options(arrivals);
            let (first, second): (Vec<_>, Vec<_>) =
                (Schedule::new(&options).collect(), Schedule::new(&options).collect());
            assert_eq!(first, second);
            let other = LoadOptions { seed: 2, ..options };
            assert_ne!(first, Schedule::new(&other).collect::<Vec<_>>());
        }
    }

    #[test]
    fn spacing_does_not_touch_the_picks() {
        let (constant, poisson) = (options(Arrivals::Constant), options(Arrivals::Poisson));
        for (first, second) in Schedule::new(&constant).zip(Schedule::new(&poisson)) {
            assert_eq!((first.size, first.stream, first.seed), (second.size, second.stream, second.seed));
        }
    }

    #[test]
    fn rates_and_shares_are_met() {
        let options = options(Arrivals::Constant);
        let all: Vec<_> = Schedule::new(&options).collect();
        assert!((10_999..=11_001).contains(&all.len()), "{}", all.len());
        assert_eq!(all[500].at.as_micros(), 500_000);
        assert_eq!(all.iter().filter(|arrival| arrival.warm_up).count(), 1_000);
        let share =
            |wanted: &dyn Fn(&Arrival) -> bool| all.iter().filter(|arrival| wanted(arrival)).count() * 100 / all.len();
        assert!((23..=27).contains(&share(&|arrival| arrival.stream)));
        assert!((78..=82).contains(&share(&|arrival| arrival.size == 0)));
        assert!((48..=52).contains(&share(&|arrival| arrival.profile == 0)));
    }

    #[test]
    fn poisson_gaps_have_the_mean_and_spread_of_an_exponential() {
        let options = options(Arrivals::Poisson);
        let times: Vec<_> = Schedule::new(&options).map(|arrival| arrival.at.as_secs_f64()).collect();
        assert!((10_600..=11_400).contains(&times.len()), "{}", times.len());
        let gaps: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        // A share of 1/e = 36.8% of exponential gaps is longer than the mean.
        let long = gaps.iter().filter(|gap| **gap > 0.001).count() * 1_000 / gaps.len();
        assert!((350..=386).contains(&long), "{long}");
    }

    #[test]
    fn a_count_ends_the_run_after_the_warm_up() {
        let options = LoadOptions { limit: Limit::Count(7), ..options(Arrivals::Constant) };
        let all: Vec<_> = Schedule::new(&options).collect();
        assert_eq!((all.len(), all.iter().filter(|arrival| !arrival.warm_up).count()), (1_007, 7));
        let embeddings = LoadOptions { endpoint: Endpoint::Embeddings, stream_share: 1.0, ..options };
        assert!(Schedule::new(&embeddings).all(|arrival| !arrival.stream));
    }
}
