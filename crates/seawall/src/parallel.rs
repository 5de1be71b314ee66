//! Independent work over all cores.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// One for each core.
pub(crate) fn cores() -> NonZeroUsize {
    thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// The results of independent jobs, in their order, with so many threads. The first error ends everything.
pub(crate) fn side_by_side<T: Sync, R: Send>(
    jobs: &[T],
    threads: NonZeroUsize,
    run: impl Fn(&T) -> Result<R, String> + Sync,
) -> Result<Vec<R>, String> {
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
    thread::scope(|scope| {
        for _ in 0..threads.get().min(jobs.len()) {
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
        let squares = side_by_side(&jobs, cores(), |job| Ok(job * job));
        assert_eq!(squares, Ok(jobs.iter().map(|job| job * job).collect()));
        let one_fails = |job: &u32| if *job == 7 { Err("seven".to_owned()) } else { Ok(*job) };
        assert_eq!(side_by_side(&jobs, NonZeroUsize::MIN, one_fails), Err("seven".to_owned()));
        assert_eq!(side_by_side(&[], cores(), one_fails), Ok(Vec::new()));
    }
}
