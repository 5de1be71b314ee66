//! A recorder keeps every count in its second, carries levels on, and keeps the greatest of a mark.

use super::runner;
use crate::{Nanos, Recorder, SECOND};
use proptest::prelude::*;

const START: Nanos = 5 * SECOND;
const SECONDS: usize = 20;

/// Times with a value each, in order.
fn moments() -> impl Strategy<Value = Vec<(Nanos, u16)>> {
    let end = START + SECOND * SECONDS as Nanos;
    proptest::collection::vec((START..end, 0_u16..1_000), 0..200).prop_map(|mut moments| {
        moments.sort_unstable();
        moments
    })
}

fn second(at: Nanos) -> usize {
    usize::try_from((at - START) / SECOND).expect("a small number")
}

#[test]
fn counts_levels_and_marks_are_kept() {
    runner(300)
        .run(&moments(), |moments| {
            let mut recorder = Recorder::new(START, START + SECOND * SECONDS as Nanos);
            let [one, many] = ["a.one", "a.many"].map(|name| recorder.count(name.to_owned()));
            let (level, mark) = (recorder.level("a.level".to_owned()), recorder.mark("a.mark".to_owned()));
            prop_assert_eq!(recorder.count("a.one".to_owned()), one);
            for (at, value) in &moments {
                recorder.add(one, *at);
                recorder.add_many(many, *at, f64::from(*value));
                recorder.set(level, *at, f64::from(*value));
                recorder.raise(mark, f64::from(*value));
            }
            recorder.finish();
            let mut last = 0.0_f32;
            for now in 0..recorder.seconds() {
                let within = || moments.iter().filter(|(at, _)| second(*at) == now).map(|(_, value)| f32::from(*value));
                last = within().next_back().unwrap_or(last);
                // An empty sum of floats is -0.0.
                let wanted = [within().map(|_| 1.0).sum::<f32>() + 0.0, within().sum::<f32>() + 0.0, last];
                let got = ["a.one", "a.many", "a.level"].map(|name| recorder.values(name).expect("it was opened")[now]);
                prop_assert_eq!(got.map(f32::to_bits), wanted.map(f32::to_bits));
            }
            let greatest = moments.iter().map(|(_, value)| f64::from(*value)).reduce(f64::max);
            prop_assert_eq!(recorder.mark_value("a.mark"), greatest);
            prop_assert!(recorder.is_level("a.level") && !recorder.is_level("a.one"));
            Ok(())
        })
        .expect("they are");
}

#[test]
fn two_recorders_are_the_same_until_they_differ() {
    runner(100)
        .run(&(moments(), 0_usize..SECONDS), |(moments, differs)| {
            let record = |extra: Option<usize>| {
                let mut recorder = Recorder::new(START, START + SECOND * SECONDS as Nanos);
                let series = recorder.count("a.one".to_owned());
                for (at, _) in &moments {
                    recorder.add(series, *at);
                }
                if let Some(second) = extra {
                    recorder.add(series, START + SECOND * second as Nanos);
                }
                recorder
            };
            let same =
                |left: &Recorder, right: &Recorder| (left.trail().same_until(&right.trail()) * 60.0).round().to_bits();
            let minute = |second: usize| f64::from(u32::try_from(5 + second).expect("a small number")).to_bits();
            let (left, right) = (record(None), record(Some(differs)));
            prop_assert_eq!(same(&left, &right), minute(differs));
            prop_assert_eq!(same(&left, &record(None)), minute(left.seconds()));
            Ok(())
        })
        .expect("they are");
}

#[test]
fn what_is_told_after_the_end_is_not_kept() {
    let mut recorder = Recorder::new(0, SECOND);
    let series = recorder.count("a.one".to_owned());
    recorder.add(series, 10 * SECOND);
    assert_eq!(recorder.values("a.one"), Some([0.0, 0.0].as_slice()));
    assert_eq!((recorder.values("a.two"), recorder.mark_value("a.one")), (None, None));
}

#[test]
fn what_becomes_known_of_an_earlier_second_does_not_make_two_runs_differ_there() {
    let record = |later: bool| {
        let mut recorder = Recorder::new(START, START + SECOND * SECONDS as Nanos);
        let (known, earlier) = (recorder.count("a.one".to_owned()), recorder.count_of_earlier("a.served".to_owned()));
        if later {
            // In second 9 it becomes known what became of a request of second 3.
            recorder.add(known, START + 9 * SECOND);
            recorder.add(earlier, START + 3 * SECOND);
        }
        recorder
    };
    let same = record(false).trail().same_until(&record(true).trail()) * 60.0;
    assert!((same - 14.0).abs() < 1e-9, "{same}");
    assert_eq!(record(true).values("a.served").map(|values| values[3].to_bits()), Some(1.0_f32.to_bits()));
}
