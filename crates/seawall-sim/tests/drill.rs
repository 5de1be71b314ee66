//! Drills: two configurations that differ in one setting lose differently, and the drill names that setting.

use seawall_cases::drill::{Drill, DrillFile};
use seawall_config::Plan;
use seawall_sim::SECOND;
use seawall_sim::drill::{Assumptions, Change, Cost, Ground, Outcome, Setup, Verdict, verdict};
use std::fmt::Write as _;

/// A file with one model, these deployments (name, region, keys) and these tenants (name, keys).
fn file(model: &str, deployments: &[(&str, &str)], tenants: &[(&str, &str)]) -> String {
    let mut text = format!("[[models]]\nname = \"chat\"\n{model}\n");
    for (region, keys) in deployments {
        write!(
            text,
            "[[models.deployments]]\nname = \"chat-{region}\"\nurl = \"https://{region}.example.com/v1\"\n\
             region = \"{region}\"\n{keys}\n"
        )
        .expect("a string takes any text");
    }
    for (name, keys) in tenants {
        write!(text, "[[tenants]]\nname = \"{name}\"\nkeys = [{{ env = \"{name}\" }}]\n{keys}\n")
            .expect("a string takes any text");
    }
    text
}

const SIZE_20: &str = "capacity = { standard = 20 }";
const SIZE_40: &str = "capacity = { standard = 40 }";
const TEAM: &[(&str, &str)] = &[("team", "")];

fn plan(text: &str) -> Plan {
    Plan::parse(text, "seawall.toml").expect("the file is right")
}

/// A drill with one mechanism, of two minutes.
fn drill(mechanism: &str) -> Drill {
    let text = format!(
        "[[drill]]\nname = \"a drill\"\nabout = \"it\"\nremedy = \"that\"\nafter = \"4m\"\n[[drill.mechanism]]\n{mechanism}\n"
    );
    DrillFile::parse(&text, "drill.toml").expect("the file is right").drill.remove(0)
}

const LOST: &str = "kind = \"region-lost\"\nlasts = \"2m\"";
const FAILS: &str = "kind = \"seven-by-seven\"\nlasts = \"2m\"";

struct Drilled {
    outcome: Outcome,
    tried: Vec<(Change, Outcome)>,
    verdict: Verdict,
}

impl Drilled {
    fn of(text: &str, mechanism: &str, load_percent: f64) -> Self {
        let plan = plan(text);
        let ground = Ground::new(&plan, Assumptions { load_percent, ..Assumptions::default() }).expect("it can be");
        let drill = drill(mechanism);
        let run = |setup: &Setup| {
            let outcome = ground.run(&drill, setup).expect("it runs");
            assert_eq!(outcome.violations, [""; 0]);
            outcome
        };
        let outcome = run(&ground.setup);
        let changes = ground.changes(&outcome).into_iter();
        let tried: Vec<(Change, Outcome)> = changes.map(|change| (change.clone(), run(&change.setup))).collect();
        let verdict = verdict(&outcome, &tried);
        Self { outcome, tried, verdict }
    }

    /// What is named, and its value in the file and in the run that was tried.
    fn named(&self) -> (&str, &str, &str) {
        let (Verdict::Decides { tried, .. } | Verdict::Holds { tried }) = self.verdict else {
            unreachable!("nothing is named: {:?}", self.verdict)
        };
        let change = &self.tried[tried].0;
        (&change.setting, &change.places[0].from, &change.to)
    }
}

#[test]
fn a_second_region_decides_about_a_region_that_is_lost() {
    let one = Drilled::of(&file("", &[("north", SIZE_40)], TEAM), LOST, 40.0);
    let two = Drilled::of(&file("", &[("north", SIZE_20), ("south", SIZE_20)], TEAM), LOST, 40.0);
    // Two of six minutes with nothing, and half of the capacity for the same load.
    assert!((25.0..40.0).contains(&one.outcome.lost_percent), "{:?}", one.outcome);
    assert!(two.outcome.lost_percent < 3.0, "{:?}", two.outcome);
    assert_eq!(one.named(), ("deployments", "1", "one more, in another region"));
    let worst = one.outcome.worst.expect("there are bad minutes");
    assert_eq!((worst.minutes, worst.until_minute), (2, 2));
    let Verdict::Decides { tried, .. } = one.verdict else { unreachable!("{:?}", one.verdict) };
    assert_eq!((one.tried[tried].0.cost, one.tried[tried].1.lost), (Cost::Capacity, 0));
}

#[test]
fn observing_or_enforcing_decides_about_a_deployment_that_fails() {
    let deployments = [("north", SIZE_40), ("south", SIZE_40)];
    let observed = Drilled::of(&file("mode = \"observe\"", &deployments, TEAM), FAILS, 40.0);
    let enforced = Drilled::of(&file("", &deployments, TEAM), FAILS, 40.0);
    assert!(observed.outcome.lost_percent > 25.0 && enforced.outcome.lost_percent < 1.0);
    assert_eq!(observed.named(), ("mode", "observe", "enforce"));
    assert_eq!(enforced.named(), ("mode", "enforce", "observe"));
    assert!(matches!(enforced.verdict, Verdict::Holds { .. }));
    // Nobody stops the clients' 49 attempts; nearly all of them go on to the deployment that fails.
    assert!((observed.outcome.most_door_attempts, observed.outcome.most_upstream_attempts) == (49.0, 49.0));
    assert!(enforced.outcome.upstream_attempts < 1.05, "{:?}", enforced.outcome);
}

#[test]
fn a_boundary_decides_where_the_only_deployment_inside_it_is_lost() {
    let deployments =
        [("north", "capacity = { standard = 40 }\nboundary = \"eu\""), ("south", "capacity = { standard = 40 }")];
    let kept = Drilled::of(&file("", &deployments, &[("team", "boundary = \"eu\"")]), LOST, 40.0);
    assert!(kept.outcome.lost_percent > 25.0, "{:?}", kept.outcome);
    let boundary = kept.tried.iter().find(|(change, _)| change.setting == "boundary").expect("it is tried");
    assert_eq!((boundary.0.cost, boundary.0.places[0].from.as_str()), (Cost::Promise, "eu"));
    assert!(boundary.1.lost_percent < 1.0);
    let anywhere = Drilled::of(&file("", &deployments, TEAM), LOST, 40.0);
    assert!(anywhere.outcome.lost_percent < 1.0, "{:?}", anywhere.outcome);
    assert!(anywhere.tried.iter().all(|(change, _)| change.setting != "boundary"));
}

#[test]
fn arrivals_are_the_same_whatever_is_changed_and_a_seed_gives_the_same_run() {
    let text = file("", &[("north", SIZE_20), ("south", SIZE_20)], &[("team", ""), ("batch", "")]);
    let drilled = Drilled::of(&text, LOST, 70.0);
    assert!(drilled.tried.len() > 30);
    for (change, outcome) in &drilled.tried {
        assert_eq!(outcome.sent, drilled.outcome.sent, "{}", change.setting);
        assert!(change.places.iter().all(|place| place.line.is_some()), "{change:?}");
    }
    let plan = plan(&text);
    let ground = Ground::new(&plan, Assumptions::default()).expect("it can be");
    let again = ground.run(&drill(LOST), &ground.setup).expect("it runs");
    assert_eq!(again.trace_hash, drilled.outcome.trace_hash);
    let (change, outcome) = drilled.tried.last().expect("something is tried");
    let again = ground.run(&drill(LOST), &change.setup).expect("it runs");
    assert_eq!((&again.trace_hash, again.lost), (&outcome.trace_hash, outcome.lost));
    let other = Ground::new(&plan, Assumptions { seed: 2, ..Assumptions::default() }).expect("it can be");
    let other = other.run(&drill(LOST), &other.setup).expect("it runs");
    assert_ne!(other.trace_hash, drilled.outcome.trace_hash);
}

#[test]
fn what_is_assumed_is_told() {
    let deployments = [("north", ""), ("", SIZE_20)];
    let plan = plan(&file("", &deployments, TEAM).replace("https://.example", "https://south.example"));
    let ground = Ground::new(&plan, Assumptions::default()).expect("it can be");
    assert_eq!(ground.setup.regions, ["north", "south.example.com"]);
    assert_eq!(
        ground.notes(),
        [
            "no size is told of `chat-north`: 20 requests at once each are assumed",
            "no region is told of `chat-`: the host of each stands for it",
            "each of the 2 processes keeps to a told size by itself: together they may send a deployment 2 times as much, \
         and it refuses what it has no room for",
        ]
    );
    // 70% of 40 requests at once of 4 s each.
    assert!((ground.flows[0].per_second - 7.0).abs() < 1e-9);
    let wrong = |assumptions| Ground::new(&plan, assumptions).map(drop).expect_err("a mistake");
    let tenant = wrong(Assumptions { tenant: Some("taem".to_owned()), ..Assumptions::default() });
    assert_eq!(tenant, "there is no tenant `taem`; the tenants of the file are `team`");
    let profile = wrong(Assumptions { profile: "curl".to_owned(), ..Assumptions::default() });
    assert!(profile.contains("there is no retry profile `curl`; there are openai-python"), "{profile}");
}

#[test]
fn a_large_configuration_is_drilled_in_small() {
    let large = "capacity = { standard = 4000 }";
    let text = file("", &[("north", large), ("south", large)], TEAM);
    let plan = plan(&text);
    let ground = Ground::new(&plan, Assumptions { service: SECOND, ..Assumptions::default() }).expect("it can be");
    assert!((ground.flows[0].per_second - 5600.0).abs() < 1e-6);
    assert!((45.0..55.0).contains(&ground.flows[0].simulated_per_second), "{:?}", ground.flows);
    assert!(
        ground.notes().iter().any(|note| note.contains("simulated at 0.89% of their size")),
        "{:?}",
        ground.notes()
    );
    let outcome = ground.run(&drill(LOST), &ground.setup).expect("it runs");
    // The row speaks of the real volume: so many in six minutes.
    let row = &outcome.rows[0];
    let expected = row.lost_percent / 100.0 * 5600.0 * 3600.0;
    assert!((row.lost_per_hour / expected - 1.0).abs() < 0.05, "{} {expected}", row.lost_per_hour);
}
