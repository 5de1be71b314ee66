//! The runs of all drills, over all cores: first each drill on the file as it is, then each change of each drill.

use super::choice::CaseDrills;
use crate::parallel::{cores, side_by_side};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use seawall_cases::drill::Drill;
use seawall_sim::drill::{Change, Ground, Outcome, Verdict, verdict};

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
    let as_it_is = side_by_side(&drills, cores(), |(case, drill)| {
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
    let changed = side_by_side(&jobs, cores(), |(index, change)| {
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
