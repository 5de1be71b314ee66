use super::*;

fn series(names: &[&str]) -> BTreeMap<String, Vec<(f64, f64)>> {
    let values = |factor: f64| (0..10).map(|minute| (540.0 + f64::from(minute), factor * f64::from(minute))).collect();
    names
        .iter()
        .zip([1.0, 5.0, 0.8, 0.2, 2.0, 3.0])
        .map(|(name, factor)| ((*name).to_owned(), values(factor)))
        .collect()
}

fn plot(runs: Vec<RunPlot<'_>>, marks: Vec<Mark>) -> Plot<'_> {
    Plot {
        title: "A \"storm\" & <more>",
        about: "small, seed 1".to_owned(),
        start: 540.0,
        end: 550.0,
        marks,
        capacity_is: "slots",
        runs,
        foot: "seawall replay small".to_owned(),
    }
}

const ALL: [&str; 6] = ["demand", "attempts", "goodput", "failed", "working", "waiting"];

#[test]
fn every_text_is_escaped_and_every_event_is_named() {
    let series = series(&ALL);
    let run = RunPlot { title: "As it happened", facts: String::new(), series: Some(&series) };
    let marks = vec![Mark { minute: 545.0, names: vec!["<script>".to_owned(), "b&c".to_owned()] }];
    let text = svg(&plot(vec![run], marks));
    assert!(text.contains("A &quot;storm&quot; &amp; &lt;more&gt;</text>"), "{text}");
    assert!(text.contains(">09:05 &lt;script&gt;, b&amp;c</text>"), "{text}");
    assert!(!text.contains("<script>"), "{text}");
}

#[test]
fn runs_share_their_axes_and_one_without_series_says_why() {
    let (series, small) = (series(&ALL), series(&["demand", "attempts"]));
    let runs = vec![
        RunPlot { title: "As it happened", facts: String::new(), series: Some(&series) },
        RunPlot { title: "Observed", facts: String::new(), series: Some(&small) },
        RunPlot { title: "With Seawall", facts: "not there yet".to_owned(), series: None },
    ];
    let text = svg(&plot(runs, Vec::new()));
    // The most attempts are 45 a second: both axes of attempts end at 60, and so does the one of capacity.
    assert_eq!(text.matches(">60</text>").count(), 3, "{text}");
    assert_eq!(text.matches(">09:05</text>").count(), 2, "a time axis below each run");
    assert!(text.contains(">not there yet</text>") && text.contains("class=\"note\""), "{text}");
}

#[test]
fn a_run_of_nothing_can_be_drawn() {
    let empty = BTreeMap::new();
    let flat: BTreeMap<String, Vec<(f64, f64)>> =
        ALL.iter().map(|name| ((*name).to_owned(), vec![(540.0, 0.0)])).collect();
    let run = |series| RunPlot { title: "As it happened", facts: String::new(), series: Some(series) };
    let mut plot = plot(vec![run(&empty), run(&flat)], Vec::new());
    plot.end = plot.start;
    let text = svg(&plot);
    assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
}
