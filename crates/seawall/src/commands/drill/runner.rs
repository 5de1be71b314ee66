//! The runs of all drills, over all cores: first each drill on the file as it is, then each change of each drill.

use super::choice::CaseDrills;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use seawall_cases::drill::Drill;
use seawall_sim::drill::{Change, Ground, Outcome, Verdict, verdict};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// What a drill came to, as the file is and with each change.
#[derive(Debug)]
pub(super) struct Drilled<'a> {
    pub(super) case: &'a str,
    pub(super) drill: &'a Drill,
    pub(super) outcome: Outcome,
    pub(super) tried: Vec<(Change, Outcome)>,
    pub(super) verdict: Verdict,
}

/// Runs every drill. The first error ends everything.
pub(super) fn run<'a>(ground: &Ground<'_>, cases: &'a [CaseDrills]) -> Result<Vec<Drilled<'a>>, String> {
    let of_case = |case: &'a CaseDrills| case.drills.iter().map(|drill| (case.case.as_str(), drill));
    let drills: Vec<(&str, &Drill)> = cases.iter().flat_map(of_case).collect();
    let bar = bar(drills.len());
    let as_it_is = side_by_side(&drills, |(case, drill)| {
        bar.set_message(format!("{case}, {}: the file as it is", drill.name));
        let outcome = ground.run(drill, &ground.setup);
        bar.inc(1);
        outcome
    })?;
    let mut jobs: Vec<(usize, Change)> = Vec::new();
    for (index, outcome) in as_it_is.iter().enumerate() {
        jobs.extend(ground.changes(outcome).into_iter().map(|change| (index, change)));
    }
    bar.inc_length(jobs.len() as u64);
    let changed = side_by_side(&jobs, |(index, change)| {
        let (case, drill) = drills[*index];
        bar.set_message(format!("{case}, {}: {} {}", drill.name, change.setting, change.to));
        let outcome = ground.run(drill, &change.setup);
        bar.inc(1);
        outcome
    })?;
    bar.finish_and_clear();
    let mut all: Vec<Drilled<'_>> = drills
        .iter()
        .zip(as_it_is)
        .map(|((case, drill), outcome)| Drilled { case, drill, outcome, tried: Vec::new(), verdict: Verdict::Safe })
        .collect();
    for ((index, change), outcome) in jobs.into_iter().zip(changed) {
        all[index].tried.push((change, outcome));
    }
    for drilled in &mut all {
        drilled.verdict = verdict(&drilled.outcome, &drilled.tried);
    }
    Ok(all)
}

/// A bar on standard error; nothing at all where that is no terminal.
fn bar(runs: usize) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(runs as u64), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{bar:24} {pos} of {len} runs {elapsed:>4}, {eta} left  {wide_msg}");
    bar.set_style(style.expect("the template is valid"));
    bar
}

/// The results of independent jobs, in their order.
fn side_by_side<T: Sync, R: Send>(jobs: &[T], run: impl Fn(&T) -> Result<R, String> + Sync) -> Result<Vec<R>, String> {
    let results: Vec<Mutex<Option<Result<R, String>>>> = jobs.iter().map(|_| Mutex::new(None)).collect();
    let (next, stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(index).filter(|_| !stopped.load(Ordering::Relaxed)) else { return };
            let result = run(job);
            stopped.fetch_or(result.is_err(), Ordering::Relaxed);
            *results[index].lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from).min(jobs.len());
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    // A job without a result was not begun any more, because another one failed: that one's error is in the list.
    let done = results.into_iter().filter_map(|result| result.into_inner().unwrap_or_else(PoisonError::into_inner));
    done.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_jobs_and_an_error_ends_all() {
        let jobs: Vec<u32> = (0..100).collect();
        let squares = side_by_side(&jobs, |job| Ok(job * job));
        assert_eq!(squares, Ok(jobs.iter().map(|job| job * job).collect()));
        let one_fails = |job: &u32| if *job == 7 { Err("seven".to_owned()) } else { Ok(*job) };
        assert_eq!(side_by_side(&jobs, one_fails), Err("seven".to_owned()));
        assert_eq!(side_by_side(&[], one_fails), Ok(Vec::new()));
    }
}
