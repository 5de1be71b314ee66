//! What a schema cannot say about a drill file.

use super::{Drill, DrillFile, Mechanism};
use crate::scenario::{Fault, Span};

/// A drill is a matter of an hour or two; a run of days would take long and tell no more.
const LONGEST: Span = Span::from_secs(6 * 3600);

/// Everything that is wrong with drills that their schema cannot say.
pub(super) fn faults(file: &DrillFile) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (index, drill) in file.drill.iter().enumerate() {
        let mut push = |key: &str, message: String, remedy: &str| {
            let key = if key.is_empty() { format!("drill[{index}]") } else { format!("drill[{index}].{key}") };
            faults.push(Fault { key, message, remedy: remedy.to_owned() });
        };
        if file.drill[..index].iter().any(|other| other.name == drill.name) {
            push("name", format!("a second drill is called `{}`", drill.name), "give each drill its own name");
        }
        times(drill, &mut push);
        for (place, mechanism) in drill.mechanism.iter().enumerate() {
            let kind = mechanism.kind();
            if drill.mechanism[..place].iter().any(|other| other.kind() == kind) {
                let message =
                    format!("a second mechanism of this drill is `{kind}`, which befalls the same ones again");
                push(&format!("mechanism[{place}].kind"), message, "put it into a drill of its own");
            }
            if mechanism.lasts().nanos == 0 {
                let key = if matches!(mechanism, Mechanism::HotDocuments { .. }) { "work" } else { "lasts" };
                let message = format!("`{kind}` lasts no time, so nothing happens");
                push(&format!("mechanism[{place}].{key}"), message, "write for example `10m`");
            }
        }
    }
    faults
}

fn times(drill: &Drill, push: &mut impl FnMut(&str, String, &str)) {
    let whole = drill.quiet.nanos + drill.lasts().nanos + drill.after.nanos;
    if whole > LONGEST.nanos {
        let message = format!("this drill takes {}, which is more than {LONGEST}", Span { nanos: whole });
        push("", message, "shorten `lasts`, `quiet` or `after`");
    }
    if drill.after.nanos == 0 {
        let remedy = "write for example `10m`: what a mechanism leaves behind is a part of it";
        push("after", "nothing is watched after the mechanism is over".to_owned(), remedy);
    }
}
