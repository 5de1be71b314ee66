//! What came of one run.
//!
//! **Good** is a request whose client had its answer before its patience was over, however many attempts that took.
//! Every request of the run counts; those of the last second have their whole patience too.
//!
//! **Recovered.** From some second on, every window of five seconds has at least 97% of the good answers that it should
//! have (90% where service is random, as the gates of the whole run), up to the next trouble or the last request. It should have as many as the oracle gave in it, or as were sent in
//! it where that is fewer: what a router lost before is told by its goodput, and is not lost again. What the servers
//! have taken up during the window and not finished counts as done: the oracle has nothing that is half done.
//!
//! Where service is random the oracle is told no more of it than a router can know: the mean. The numbers of answers then
//! vary with luck, by more than the 3% that are looked for; so a window also has enough if the *work* of its answers is.

use super::cell::{Cell, Router};
use super::oracle;
use super::scenario::{Plan, seconds};
use crate::actors::number;
use crate::calls::Facts;
use crate::recorder::Recorder;
use crate::spread::Spread;
use crate::{Nanos, SECOND};
use serde::{Deserialize, Serialize};

/// Length of a window in seconds.
const WINDOW: usize = 5;

/// What a run shows, wherever it was run: in the simulator, or on real sockets.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// When each distinct request was first sent, in order.
    pub requests: Vec<Nanos>,
    /// Those that were good.
    pub good: f64,
    /// Good answers of each second, by when they were given.
    pub done: Vec<f64>,
    /// Their work, as a multiple of the mean; empty where it is not known.
    pub worked: Vec<f64>,
    /// Requests that run in the servers at the end of each second.
    pub running: Vec<f64>,
    /// Attempts at the servers.
    pub upstream: f64,
    /// The most of them for one request.
    pub most_upstream: f64,
    /// Attempts of the clients at the router.
    pub attempts: f64,
    /// How long the good ones took.
    pub took: Spread,
}

/// The figures by which a run is judged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Distinct requests.
    pub requests: usize,
    /// Those that were good.
    pub good: f64,
    /// Those that the oracle would have served.
    pub oracle_good: usize,
    /// Good ones, as a part of the oracle's.
    pub goodput: f64,
    /// Attempts at the servers for each distinct request.
    pub upstream_attempts: f64,
    /// The most of them for one request.
    pub most_upstream: f64,
    /// Attempts of the clients at the router for each distinct request.
    pub client_attempts: f64,
    /// Half of the good ones had their answer within so many seconds of the first attempt.
    pub p50_seconds: f64,
    /// 99% of them.
    pub p99_seconds: f64,
    /// Seconds from the end of each trouble until the goodput was back; none: it was not before the next trouble, or
    /// the end.
    pub recovery_seconds: Vec<Option<f64>>,
    /// How long the goodput after each trouble was looked at: what a recovery that did not come lasted at the least.
    pub looked_at_seconds: Vec<f64>,
    /// The run by seconds.
    #[serde(skip)]
    pub course: Course,
}

/// What came of one run of a cell in the simulator.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// The cell's name.
    pub cell: String,
    /// The router's name.
    pub router: String,
    /// The seed.
    pub seed: u64,
    /// What it is judged by.
    #[serde(flatten)]
    pub figures: Figures,
    /// The most that waited in the router's line at the end of a second; of a naive router nothing is known.
    pub most_waiting: f64,
    /// How many things happened in the run.
    pub events: u64,
    /// Hash of everything that happened.
    pub trace_hash: String,
    /// What was seen that must never be seen.
    pub violations: Vec<String>,
}

impl Figures {
    /// The longest recovery; one that did not come counts with the time in which it did not.
    pub fn recovery(&self) -> f64 {
        longest(&self.recovery_seconds, &self.looked_at_seconds)
    }

    /// Whether the goodput came back after every trouble.
    pub fn is_back(&self) -> bool {
        self.recovery_seconds.iter().all(Option::is_some)
    }
}

/// The longest recovery of the mean course of these runs of one cell, as [`Figures::recovery`] has it.
///
/// Where service is random the answers of five seconds vary by chance as much as by what is looked for; those of all
/// seeds together vary less.
pub(super) fn recovery_of_all(runs: &[Outcome]) -> f64 {
    let Some((first, others)) = runs.split_first() else { return 0.0 };
    let course = others.iter().fold(first.figures.course.clone(), |all, run| all.and(&run.figures.course));
    longest(&course.recoveries(), &first.figures.looked_at_seconds)
}

fn longest(recoveries: &[Option<f64>], looked_at: &[f64]) -> f64 {
    let told = recoveries.iter().zip(looked_at);
    told.map(|(recovery, looked_at)| recovery.unwrap_or(*looked_at)).fold(0.0, f64::max)
}

/// What is read from the world, beside its series.
#[derive(Clone, Debug)]
pub(super) struct Trace {
    pub(super) router: Router,
    pub(super) seed: u64,
    pub(super) requests: Vec<Facts>,
    pub(super) events: u64,
    pub(super) hash: u64,
    pub(super) violations: Vec<String>,
}

/// Judges the simulated run of a cell.
pub(super) fn judge(cell: Cell, plan: &Plan, recorder: &Recorder, trace: Trace) -> Result<Outcome, String> {
    let series = |actor: &str, metric: &str| {
        let name = format!("{actor}.{metric}");
        recorder.values(&name).ok_or_else(|| format!("the storm set's scenario has no `{name}`"))
    };
    let all = |actors: &[String], metric: &str| {
        let each: Result<Vec<&[f32]>, String> = actors.iter().map(|actor| series(actor, metric)).collect();
        each.map(|each| added(&each))
    };
    let took = plan.populations.iter().filter_map(|name| recorder.spread_of(&format!("{name}.took")));
    let seen = Seen {
        requests: trace.requests.iter().map(|facts| facts.arrived).collect(),
        good: sum(&all(&plan.populations, "served")?),
        done: all(&plan.populations, "succeeded")?,
        worked: all(&plan.populations, "work_done")?.iter().map(|work| work / seconds(plan.work)).collect(),
        running: all(&plan.engines, "running")?,
        upstream: sum(&added(&[series("router", "upstream")?])),
        most_upstream: recorder.mark_value("router.most_upstream").unwrap_or(0.0),
        attempts: sum(&added(&[series("router", "attempts")?])),
        took: took.fold(Spread::default(), |mut all, one| {
            all.merge(one);
            all
        }),
    };
    Ok(Outcome {
        cell: cell.to_string(),
        router: trace.router.to_string(),
        seed: trace.seed,
        figures: plan.judge(seen),
        most_waiting: series("router", "waiting")
            .map_or(0.0, |waiting| added(&[waiting]).iter().fold(0.0, |most, now| f64::max(most, *now))),
        events: trace.events,
        trace_hash: format!("{:016x}", trace.hash),
        violations: trace.violations,
    })
}

impl Plan {
    /// Holds what was seen of a run of this plan against the oracle.
    pub fn judge(&self, seen: Seen) -> Figures {
        let jobs: Vec<oracle::Job> = seen.requests.iter().map(|sent| self.job(*sent)).collect();
        let answers = oracle::answers(&jobs, &self.capacity);
        let oracle_good = answers.iter().flatten().count();
        let each = 1.0 / number(jobs.len().max(1));
        let course = Course {
            enough: self.enough,
            done: seen.done,
            worked: seen.worked,
            running: seen.running,
            sent: by_second(jobs.iter().map(|job| job.sent), self.end),
            possible: by_second(answers.iter().flatten().copied(), self.end),
            looked_at: looked_at(self),
        };
        let quantile = |of_thousand| seen.took.quantile(of_thousand).map_or(0.0, seconds);
        let span = |(from, until): &(usize, usize)| number(until.saturating_sub(*from));
        Figures {
            requests: jobs.len(),
            good: seen.good,
            oracle_good,
            goodput: seen.good / number(oracle_good.max(1)),
            upstream_attempts: seen.upstream * each,
            most_upstream: seen.most_upstream,
            client_attempts: seen.attempts * each,
            p50_seconds: quantile(500),
            p99_seconds: quantile(990),
            recovery_seconds: course.recoveries(),
            looked_at_seconds: course.looked_at.iter().map(span).collect(),
            course,
        }
    }
}

/// From the end of each trouble to the next one, or to the last request: in whole seconds.
fn looked_at(plan: &Plan) -> Vec<(usize, usize)> {
    let troubles = plan.troubles.iter().enumerate();
    let spans = troubles.map(|(index, (_, over))| {
        let until = plan.troubles.get(index + 1).map_or(plan.sent_until, |(next, _)| *next);
        (second(*over), second(until))
    });
    spans.collect()
}

/// A run by seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Course {
    /// The part of what is expected that counts as recovered.
    enough: f64,
    /// Good answers, when they were given.
    done: Vec<f64>,
    /// Their work, as a multiple of the mean.
    worked: Vec<f64>,
    /// Requests that run in the servers, at the end of the second.
    running: Vec<f64>,
    /// Distinct requests, when they were first sent.
    sent: Vec<f64>,
    /// The oracle's answers.
    possible: Vec<f64>,
    /// From the end of each trouble to the next one.
    looked_at: Vec<(usize, usize)>,
}

impl Course {
    /// Of each trouble: seconds from its end until the goodput was back.
    fn recoveries(&self) -> Vec<Option<f64>> {
        let recovered = |(from, until): &(usize, usize)| self.recovered(*from, *until).map(|at| number(at - from));
        self.looked_at.iter().map(recovered).collect()
    }

    /// What happened in this run and in another one of the same cell.
    fn and(self, other: &Self) -> Self {
        let both = |ours: &[f64], theirs: &[f64]| ours.iter().zip(theirs).map(|(one, two)| one + two).collect();
        Self {
            done: both(&self.done, &other.done),
            worked: both(&self.worked, &other.worked),
            running: both(&self.running, &other.running),
            sent: both(&self.sent, &other.sent),
            possible: both(&self.possible, &other.possible),
            ..self
        }
    }

    /// The second from which on all windows up to `until` have enough; `None`: not even the last one has.
    fn recovered(&self, from: usize, until: usize) -> Option<usize> {
        let last = until.checked_sub(WINDOW).filter(|last| *last >= from)?;
        let ill = (from..=last).rev().find(|begin| !self.has_enough(*begin));
        match ill {
            None => Some(from),
            Some(begin) if begin == last => None,
            Some(begin) => Some(begin + 1),
        }
    }

    fn has_enough(&self, begin: usize) -> bool {
        let in_window = |values: &[f64]| values.iter().skip(begin).take(WINDOW).sum::<f64>();
        let level = |second: usize| self.running.get(second).copied().unwrap_or(0.0);
        let before = begin.checked_sub(1).map_or(0.0, level);
        let taken_up = level(begin + WINDOW - 1) - before;
        let done = in_window(&self.done).max(in_window(&self.worked));
        done + taken_up >= self.enough * in_window(&self.possible).min(in_window(&self.sent))
    }
}

fn second(at: Nanos) -> usize {
    usize::try_from(at / SECOND).unwrap_or(usize::MAX)
}

/// How many of these times are in each second.
fn by_second(times: impl Iterator<Item = Nanos>, end: Nanos) -> Vec<f64> {
    let mut counts = vec![0.0; second(end) + 1];
    for time in times {
        if let Some(count) = counts.get_mut(second(time)) {
            *count += 1.0;
        }
    }
    counts
}

/// Several series as one.
fn added(series: &[&[f32]]) -> Vec<f64> {
    let length = series.iter().map(|values| values.len()).max().unwrap_or(0);
    let mut sums = vec![0.0; length];
    for values in series {
        for (sum, value) in sums.iter_mut().zip(*values) {
            *sum += f64::from(*value);
        }
    }
    sums
}

fn sum(values: &[f64]) -> f64 {
    values.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Thirty seconds in which ten answers a second were possible, and as many requests were sent.
    fn course() -> Course {
        let ten = vec![10.0; 30];
        Course {
            enough: 0.97,
            done: ten.clone(),
            worked: vec![0.0; 30],
            running: vec![4.0; 30],
            sent: ten.clone(),
            possible: ten,
            looked_at: vec![(10, 30)],
        }
    }

    #[test]
    fn a_course_that_keeps_up_is_back_at_once() {
        assert_eq!(course().recovered(10, 30), Some(10));
        // One of fifty less is within three percent, two are not.
        let mut course = course();
        course.done[12] = 9.0;
        assert_eq!(course.recovered(10, 30), Some(10));
        course.done[12] = 8.0;
        assert_eq!(course.recovered(10, 30), Some(13));
    }

    #[test]
    fn it_is_back_when_no_window_up_to_the_end_lacks_anything() {
        let mut course = course();
        course.done[10] = 0.0;
        course.done[20] = 0.0;
        assert_eq!(course.recovered(10, 30), Some(21));
        assert_eq!(course.recovered(10, 25), None);
        assert_eq!(course.recovered(10, 20), Some(11));
        // A window that is not whole says nothing.
        assert_eq!(course.recovered(26, 30), None);
    }

    #[test]
    fn what_was_lost_before_is_not_missed_again() {
        let mut course = course();
        // The oracle works a backlog off that this router has refused.
        course.possible = vec![15.0; 30];
        assert_eq!(course.recovered(10, 30), Some(10));
        // One that has a backlog and does not work it off is behind.
        course.sent = vec![15.0; 30];
        assert_eq!(course.recovered(10, 30), None);
    }

    #[test]
    fn what_the_servers_have_taken_up_counts_as_done() {
        let mut course = course();
        course.done[14] = 6.0;
        assert_eq!(course.recovered(10, 30), Some(15));
        course.running[14] = 8.0;
        course.done[15] = 14.0;
        assert_eq!(course.recovered(10, 30), Some(10));
    }

    #[test]
    fn a_bad_second_of_one_seed_is_not_one_of_all() {
        let (mut bad, good) = (course(), course());
        bad.done[12] = 8.0;
        assert_eq!((bad.recoveries(), good.recoveries()), (vec![Some(3.0)], vec![Some(0.0)]));
        assert_eq!(bad.and(&good).recoveries(), [Some(0.0)]);
    }

    #[test]
    fn the_work_of_few_answers_counts_where_they_are_large() {
        let mut course = course();
        course.done[20] = 4.0;
        assert_eq!(course.recovered(10, 30), Some(21));
        course.worked = vec![9.8; 30];
        assert_eq!(course.recovered(10, 30), Some(10));
    }

    #[test]
    fn each_second_has_its_own() {
        assert_eq!(by_second([0, SECOND - 1, SECOND, 9 * SECOND].into_iter(), 2 * SECOND), [2.0, 1.0, 0.0]);
        assert_eq!(added(&[&[1.0, 2.0], &[3.0]]), [4.0, 2.0]);
    }
}
