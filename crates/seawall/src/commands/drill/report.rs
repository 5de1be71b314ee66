//! What came of the drills: whether they pass, and how programs read them.

use super::runner::Drilled;
use seawall_sim::drill::{Change, Ground, Outcome, Verdict};
use serde::Serialize;

/// All drills of one call.
pub(super) struct Report<'a> {
    pub(super) ground: &'a Ground<'a>,
    /// Whether the file is the user's; otherwise it is the demo, whose lines nobody can look up.
    pub(super) has_file: bool,
    pub(super) max_loss: Option<f64>,
    pub(super) drills: Vec<Drilled<'a>>,
}

#[derive(Serialize)]
struct Answer<'a, T: Serialize> {
    config: &'a str,
    assumed: T,
    notes: Vec<String>,
    drills: Vec<OneDrill<'a>>,
    max_loss_percent: Option<f64>,
    pass: bool,
}

#[derive(Serialize)]
struct OneDrill<'a> {
    case: &'a str,
    name: &'a str,
    about: &'a str,
    mechanisms: Vec<&'static str>,
    outcome: &'a Outcome,
    #[serde(flatten)]
    verdict: Verdict,
    /// The setting that is named, by its name.
    setting: Option<&'a str>,
    tried: Vec<Tried<'a>>,
    remedy: &'a str,
}

#[derive(Serialize)]
struct Tried<'a> {
    #[serde(flatten)]
    change: &'a Change,
    lost: u64,
    lost_percent: f64,
    upstream_attempts: f64,
    wait_p99_seconds: Option<f64>,
}

impl<'a> Report<'a> {
    pub(super) const fn new(
        ground: &'a Ground<'a>,
        has_file: bool,
        max_loss: Option<f64>,
        drills: Vec<Drilled<'a>>,
    ) -> Self {
        Self { ground, has_file, max_loss, drills }
    }

    /// The drills that lose more than was allowed.
    pub(super) fn too_much(&self) -> impl Iterator<Item = &Drilled<'a>> {
        let most = self.max_loss.unwrap_or(100.0);
        self.drills.iter().filter(move |drilled| drilled.outcome.lost_percent > most)
    }

    /// What was seen in a run that must never be seen: a mistake of Seawall or of its simulator.
    pub(super) fn violations(&self) -> Vec<String> {
        let runs = self.drills.iter().flat_map(|drilled| {
            let changed = drilled.tried.iter().map(|(_, outcome)| outcome);
            [&drilled.outcome].into_iter().chain(changed).map(|outcome| (&drilled.drill.name, outcome))
        });
        runs.flat_map(|(name, outcome)| outcome.violations.iter().map(move |text| format!("{name}: {text}"))).collect()
    }

    pub(super) fn passes(&self) -> bool {
        self.too_much().next().is_none() && self.violations().is_empty()
    }

    /// One JSON object.
    pub(super) fn json(&self) -> String {
        let answer = Answer {
            config: self.ground.plan.file(),
            assumed: self.ground.told(),
            notes: self.ground.notes(),
            drills: self.drills.iter().map(one).collect(),
            max_loss_percent: self.max_loss,
            pass: self.passes(),
        };
        serde_json::to_string_pretty(&answer).expect("plain data has a JSON form") + "\n"
    }
}

impl Drilled<'_> {
    /// The change that is named.
    pub(super) fn named(&self) -> Option<&(Change, Outcome)> {
        match self.verdict {
            Verdict::Decides { tried, .. } | Verdict::Holds { tried } => self.tried.get(tried),
            Verdict::NoSetting | Verdict::Safe => None,
        }
    }
}

fn one<'a>(drilled: &'a Drilled<'_>) -> OneDrill<'a> {
    let tried = drilled.tried.iter().map(|(change, outcome)| Tried {
        change,
        lost: outcome.lost,
        lost_percent: outcome.lost_percent,
        upstream_attempts: outcome.upstream_attempts,
        wait_p99_seconds: outcome.wait_p99_seconds,
    });
    OneDrill {
        case: drilled.case,
        name: &drilled.drill.name,
        about: &drilled.drill.about,
        mechanisms: drilled.drill.mechanism.iter().map(seawall_cases::drill::Mechanism::kind).collect(),
        outcome: &drilled.outcome,
        verdict: drilled.verdict,
        setting: drilled.named().map(|(change, _)| change.setting.as_str()),
        tried: tried.collect(),
        remedy: &drilled.drill.remedy,
    }
}
