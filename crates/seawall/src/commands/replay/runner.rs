//! Every run of every seed of every case, over all cores.
//!
//! The runs need nothing of each other, so threads take them one by one from one list. A seed is judged as soon as its
//! last run is done, which lets go of what only the judging needs.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use seawall_cases::scenario::Run;
use seawall_sim::replay::{Part, SeedRuns, Step, Study};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Marks on the progress bar for one run.
const MARKS: u32 = 100;

struct Job<'a> {
    study: usize,
    seed: u64,
    step: Step<'a>,
}

/// One seed of one case while it is being run.
enum Seed<'a> {
    Open(BTreeMap<Step<'a>, Part>),
    Done(Box<SeedRuns>),
    Failed(String),
}

struct Shared<'a> {
    studies: &'a [Study<'a>],
    seeds: Range<u64>,
    jobs: Vec<Job<'a>>,
    next: AtomicUsize,
    stopped: AtomicBool,
    /// Study by study, seed by seed.
    results: Vec<Mutex<Seed<'a>>>,
    bar: ProgressBar,
}

/// Runs all seeds of all studies; for each study its seeds in order. The first error ends everything.
pub(super) fn run(studies: &[Study<'_>], seeds: Range<u64>) -> Result<Vec<Vec<SeedRuns>>, String> {
    let jobs = jobs(studies, &seeds);
    let bar = bar(jobs.len());
    let number = studies.len() * count(&seeds);
    let results = (0..number).map(|_| Mutex::new(Seed::Open(BTreeMap::new()))).collect();
    let (next, stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
    let shared = Shared { studies, seeds: seeds.clone(), jobs, next, stopped, results, bar };
    let threads = thread::available_parallelism().map_or(1, usize::from).min(shared.jobs.len());
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| shared.work());
        }
    });
    shared.bar.finish_and_clear();
    let mut all = Vec::new();
    let mut results = shared.results.into_iter();
    for _ in studies {
        let of_study = results.by_ref().take(count(&seeds));
        let done = of_study.map(|seed| match seed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Seed::Done(runs) => Ok(Some(*runs)),
            Seed::Failed(error) => Err(error),
            Seed::Open(_) => Ok(None),
        });
        all.push(done.collect::<Result<Vec<_>, String>>()?.into_iter().flatten().collect());
    }
    Ok(all)
}

fn count(seeds: &Range<u64>) -> usize {
    usize::try_from(seeds.end - seeds.start).expect("the number of seeds is bounded by the command line")
}

fn jobs<'a>(studies: &[Study<'a>], seeds: &Range<u64>) -> Vec<Job<'a>> {
    let mut jobs = Vec::new();
    for (study, one) in studies.iter().enumerate() {
        for seed in seeds.clone() {
            jobs.extend(one.steps().into_iter().map(|step| Job { study, seed, step }));
        }
    }
    jobs
}

/// A bar on standard error; nothing at all where that is no terminal.
fn bar(jobs: usize) -> ProgressBar {
    let length = jobs as u64 * u64::from(MARKS);
    let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{bar:24} {percent:>3}% {elapsed:>4}, {eta} left  {wide_msg}");
    bar.set_style(style.expect("the template is valid"));
    bar
}

impl<'a> Shared<'a> {
    fn work(&self) {
        while let Some(job) = self.jobs.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            if self.stopped.load(Ordering::Relaxed) {
                return;
            }
            let study = &self.studies[job.study];
            self.bar.set_message(format!("{}, seed {}: {}", study.case.slug, job.seed, described(study, job.step)));
            let mut marked = 0;
            let part = study.step(job.step, job.seed, |passed| {
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates")]
                let marks = ((passed * f64::from(MARKS)) as u32).min(MARKS);
                self.bar.inc(u64::from(marks.saturating_sub(marked)));
                marked = marked.max(marks);
            });
            self.bar.inc(u64::from(MARKS - marked));
            self.keep(job, part);
        }
    }

    fn keep(&self, job: &Job<'a>, part: Result<Part, String>) {
        let (study, index) = (&self.studies[job.study], usize::try_from(job.seed - self.seeds.start));
        let index = job.study * count(&self.seeds) + index.expect("a seed of the range");
        let mut seed = self.results[index].lock().unwrap_or_else(PoisonError::into_inner);
        let Seed::Open(parts) = &mut *seed else { return };
        match part {
            Ok(part) => {
                parts.insert(job.step, part);
                if parts.len() == study.steps().len() {
                    let parts = std::mem::take(parts);
                    *seed = Seed::Done(Box::new(study.judged(job.seed, parts)));
                }
            }
            Err(error) => {
                self.stopped.store(true, Ordering::Relaxed);
                *seed = Seed::Failed(format!("{}: {error}", study.case.slug));
            }
        }
    }
}

fn described(study: &Study<'_>, step: Step<'_>) -> String {
    match step {
        Step::Run(Run::AsItHappened | Run::Counterfactual) => "as it happened".to_owned(),
        Step::Run(Run::Observed) => "observed".to_owned(),
        Step::Run(Run::WithSeawall) => "with Seawall".to_owned(),
        Step::Counterfactual(name) => format!("counterfactual {name}"),
        Step::Varied(index, more) => {
            let value = &study.case.scenario.calibrated[index];
            format!("{}.{}, a tenth {}", value.actor, value.key, if more { "more" } else { "less" })
        }
    }
}
