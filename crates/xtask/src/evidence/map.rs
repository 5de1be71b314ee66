//! After which triggers a system comes back by itself: the whole metastability map.

use super::cost::build_program;
use crate::evidence::{Measurement, Record, Run};
use crate::repository::Repository;
use crate::{Failure, command, files, report};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::Command;

/// The entry of the table.
pub(super) const MEASUREMENT: Measurement = Measurement {
    name: "map",
    summary: "which of 288 triggers a naive router and Seawall come back from by themselves, and the picture of it",
    run: Run::Whole(run),
};

/// Where the picture goes.
const PLOT: &str = "docs/plots/metastability-map.svg";
/// The routers, as the names of cells begin, and as people call them.
const ROUTERS: [(&str, &str); 2] = [("naive", "naive router"), ("seawall", "Seawall")];
const CLIENTS: [(&str, &str); 3] = [("none", "no retry"), ("sdk", "OpenAI SDK"), ("7x7", "7 x 7 at once")];
const VERDICTS: [&str; 4] = ["pass", "recovered", "late", "stuck"];

/// How many cells ended how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    all: usize,
    verdicts: [usize; 4],
    crashed: usize,
}

impl Tally {
    const fn in_time(&self) -> usize {
        self.verdicts[0] + self.verdicts[1]
    }
}

fn run(repository: &Repository) -> Result<Record, Failure> {
    let program = build_program(repository)?;
    files::write(&repository.path(PLOT), "")?;
    report::say("576 cells, about 15 minutes of one core; a run that was stopped goes on where it was");
    // Cells of another state of the sources are never mixed in: the program refuses its file.
    let commit =
        command::output(Command::new("git").current_dir(repository.root()).args(["rev-parse", "--short=12", "HEAD"]))?;
    let state = repository.target().join(format!("metastability-map-{}.state", commit.trim()));
    let mut map = Command::new(program);
    map.args(["sim", "map", "--json", "--svg"]).arg(repository.path(PLOT)).arg("--resume").arg(state);
    let text = command::output(&mut map)?;
    let answer = |reason: String| Failure::Answer { command: "seawall sim map --json".to_owned(), reason };
    let cells: Value = serde_json::from_str(&text).map_err(|error| answer(error.to_string()))?;
    let cells = cells["cells"].as_array().ok_or_else(|| answer("it has no `cells`".to_owned()))?;
    record(cells).ok_or_else(|| answer("a cell has no name or no verdict".to_owned()))
}

/// Counts the cells by the words of their names at these places.
fn tallies<'a>(cells: &'a [Value], places: &[usize]) -> Option<BTreeMap<Vec<&'a str>, Tally>> {
    let mut tallies: BTreeMap<Vec<&str>, Tally> = BTreeMap::new();
    for cell in cells {
        let words: Vec<&str> = cell["cell"].as_str()?.split('/').collect();
        let key = places.iter().map(|place| words.get(*place).copied()).collect::<Option<Vec<&str>>>()?;
        let verdict = cell["verdict"].as_str()?;
        let tally = tallies.entry(key).or_default();
        tally.all += 1;
        tally.verdicts[VERDICTS.iter().position(|known| *known == verdict)?] += 1;
        tally.crashed += usize::from(cell["crashes"].as_f64()? > 0.0);
    }
    Some(tallies)
}

fn row(name: &str, tally: &Tally) -> String {
    let [pass, recovered, late, stuck] = tally.verdicts;
    format!("| {name} | {} | {pass} | {recovered} | {late} | {stuck} | {} |\n", tally.all, tally.crashed)
}

fn record(cells: &[Value]) -> Option<Record> {
    let head = "| cells | all | pass | back in 30 s, with harm | back later | never | with crashes |\n\
                | --- | --- | --- | --- | --- | --- | --- |\n";
    let mut result = format!("![The map](../plots/metastability-map.svg)\n\n{head}");
    let routers = tallies(cells, &[0])?;
    let clients = tallies(cells, &[0, 1])?;
    for (word, name) in ROUTERS {
        result.push_str(&row(&format!("**{name}**"), routers.get(&vec![word])?));
        for (client, client_name) in CLIENTS {
            result.push_str(&row(&format!("{name}, {client_name}"), clients.get(&vec![word, client])?));
        }
    }
    result.push_str("\nThe same by trigger (all loads, lengths and clients):\n\n");
    result.push_str(head);
    for (key, tally) in tallies(cells, &[0, 3])? {
        result.push_str(&row(&key.join(", "), &tally));
    }
    let (naive, seawall) = (routers.get(&vec!["naive"])?, routers.get(&vec!["seawall"])?);
    Some(Record {
        title: "After which triggers the system comes back".to_owned(),
        method: METHOD.to_owned(),
        result: result.trim_end().to_owned(),
        reading: reading(naive, seawall),
    })
}

const METHOD: &str = "`seawall sim map`: 576 runs of one simulated world, half of them with a naive router and half \
    with Seawall in its place, the same arrivals for both. Ten servers with 20 slots each do 100 requests a second of \
    2 s each, and queue what does not fit (as vLLM does by default); four router instances hold 2,000 requests each \
    and crash on one more. Whoever talks to the wire waits 10 s for an attempt, a person 60 s in all. The load before \
    the trigger is 50, 70, 85 or 95% of the servers' capacity.\n\n\
    Triggers, for 5, 30 and 120 s: the servers lose 50, 90 or 100% of their speed; 2, 10 or 50 times the arrivals; a \
    cache that answers half of the requests is gone and comes back empty; five documents whose prompts keep one \
    server each busy for that long. Clients: none retries; the OpenAI SDK for Python as it was measured; seven \
    attempts at once, each of which a layer makes seven attempts of.\n\n\
    Goodput counts requests by when they were sent, and only those that had their answer in time. Expected of a 10 s \
    window is the least of what was asked for, and of what the servers can do and the cache had. *Pass*: from 30 s \
    after the trigger's end to the end of the run (5 minutes later) every window has at least 90% of what is expected; \
    no window from the trigger on lost more than the lost capacity and 10 points; no router crashed. *With harm*: back \
    in 30 s, but with a deeper loss or a crash. *Never*: not back after 5 minutes, although nothing is wrong any more.";

fn reading(naive: &Tally, seawall: &Tally) -> String {
    let mut text = format!(
        "Behind the naive router {} of {} cells are back within 30 s, {} of them without harm, and {} never come back. ",
        naive.in_time(),
        naive.all,
        naive.verdicts[0],
        naive.verdicts[3]
    );
    write!(
        text,
        "With Seawall's engine as it is today {} are back within 30 s, {} without harm, and {} never come back; no \
         process crashed in {} of {}.\n\n",
        seawall.in_time(),
        seawall.verdicts[0],
        seawall.verdicts[3],
        seawall.all - seawall.crashed,
        seawall.all
    )
    .expect("a string takes any text");
    let is_worse = seawall.verdicts[3] > naive.verdicts[3];
    text.push_str(if is_worse {
        "Seawall is stuck more often than the naive router. That is no mistake of the count: a crash throws away the \
         whole backlog, and with it the overload. Seawall does not crash, but what it holds and what the servers queue \
         is served so late that the clients have left: bounded memory alone does not end an overload. That takes a \
         bound on waiting that is shorter than the clients' patience, and a limit on what the servers are given."
    } else {
        "What remains stuck with Seawall is what its overload control has to end: see the dark cells of its part."
    });
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(name: &str, verdict: &str, crashes: f64) -> Value {
        serde_json::json!({ "cell": name, "verdict": verdict, "crashes": crashes })
    }

    #[test]
    fn cells_are_counted_by_the_words_of_their_names() {
        let cells = [
            cell("naive/none/0.5/loss-50/5s", "pass", 0.0),
            cell("naive/sdk/0.5/loss-50/5s", "stuck", 2.0),
            cell("seawall/sdk/0.5/loss-50/5s", "recovered", 0.0),
        ];
        let by_router = tallies(&cells, &[0]).expect("whole cells");
        assert_eq!(by_router[&vec!["naive"]], Tally { all: 2, verdicts: [1, 0, 0, 1], crashed: 1 });
        assert_eq!(by_router[&vec!["seawall"]].in_time(), 1);
        assert_eq!(tallies(&cells, &[1, 3]).expect("whole cells").len(), 2);
        assert_eq!(tallies(&[cell("naive/none", "odd", 0.0)], &[0]), None);
        // Without cells of each kind there is no record.
        assert_eq!(record(&cells), None);
    }
}
