//! The page of the live storms.

use super::peers::PEERS;
use super::rows::{Kept, KeptRow, Key, RUNS};
use crate::Failure;
use crate::evidence::Record;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What live and simulated figures may differ by.
const TOLERANCE: f64 = 0.15;
/// Goodput that is less than this below another one is as good: two runs of one configuration differ as much.
const NOISE: f64 = 0.01;

/// The page, from the rows that there are.
pub(super) fn record(kept: &Kept, requests: u64) -> Result<Record, Failure> {
    let rows = kept.rows()?;
    let mut result = String::from("![The rows as bars](../plots/storms.svg)\n\n");
    result.push_str(&table(&rows));
    result.push_str("\n### Live and simulated\n\n");
    result.push_str(&simulated(&rows));
    Ok(Record {
        title: "Live retry storms".to_owned(),
        method: method(requests),
        result: result.trim_end().to_owned(),
        reading: reading(kept, &rows),
    })
}

fn number(row: &Value, name: &str) -> f64 {
    row[name].as_f64().unwrap_or(f64::NAN)
}

/// The rows of one storm and load, the best first.
fn of_run<'a>(rows: &'a [KeptRow], storm: &str, load: &str) -> Vec<&'a KeptRow> {
    let mut found: Vec<&KeptRow> = rows.iter().filter(|row| row.key.storm == storm && row.key.load == load).collect();
    found.sort_by(|one, other| number(&other.row, "goodput").total_cmp(&number(&one.row, "goodput")));
    found
}

/// The runs, first those of storm A.
fn runs() -> Vec<(&'static str, &'static str)> {
    let mut runs = RUNS.to_vec();
    runs.sort_unstable();
    runs
}

fn table(rows: &[KeptRow]) -> String {
    let mut text = String::from(
        "| storm | load | through | goodput | good | upstream | tries | p50 s | p99 s | back s | memory MB | late ms |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for (storm, load) in runs() {
        for kept in of_run(rows, storm, load) {
            text.push_str(&line(kept));
        }
    }
    text
}

fn line(kept: &KeptRow) -> String {
    let row = &kept.row;
    let figure = |name: &str| number(row, name);
    let name = if kept.key.peer == "seawall" { "**seawall**" } else { kept.key.peer };
    let memory = row["peak_memory_bytes"].as_f64().map_or_else(String::new, |bytes| format!("{:.0}", bytes / 1e6));
    format!(
        "| {} | {} | {name} | {:.3} | {:.3} | {:.2} | {:.2} | {:.1} | {:.1} | {} | {memory} | {:.0} |\n",
        kept.key.storm.to_uppercase(),
        kept.key.load,
        figure("goodput"),
        figure("good") / figure("requests"),
        figure("upstream_attempts"),
        figure("client_attempts"),
        figure("p50_seconds"),
        figure("p99_seconds"),
        back(row),
        figure("late_p99_ms"),
    )
}

/// Seconds until the goodput was back, or more than was looked at.
fn back(row: &Value) -> String {
    match (row["recovery_seconds"][0].as_f64(), row["looked_at_seconds"][0].as_f64()) {
        (Some(seconds), _) => format!("{seconds:.0}"),
        (None, Some(looked_at)) => format!("> {looked_at:.0}"),
        (None, None) => String::new(),
    }
}

/// Seawall's rows, beside the same storms in the simulator.
fn simulated(rows: &[KeptRow]) -> String {
    let mut text = String::from(
        "| storm | load | goodput live | simulated | upstream live | simulated | both within 15% |\n\
         | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for (storm, load) in runs() {
        let Some(kept) = rows.iter().find(|row| is_compared(row) && row.key.storm == storm && row.key.load == load)
        else {
            continue;
        };
        let (live, simulated) = (&kept.row, &kept.row["simulated"]);
        writeln!(
            text,
            "| {} | {load} | {:.3} | {:.3} | {:.2} | {:.2} | {} |",
            storm.to_uppercase(),
            number(live, "goodput"),
            number(simulated, "goodput"),
            number(live, "upstream_attempts"),
            number(simulated, "upstream_attempts"),
            if is_alike(kept) { "yes" } else { "no" }
        )
        .expect("a string takes any text");
    }
    text
}

fn is_compared(kept: &KeptRow) -> bool {
    kept.row["simulated"]["goodput"].is_number()
}

fn is_alike(kept: &KeptRow) -> bool {
    let differs = |name: &str| (number(&kept.row, name) / number(&kept.row["simulated"], name) - 1.0).abs();
    differs("goodput") <= TOLERANCE && differs("upstream_attempts") <= TOLERANCE
}

fn reading(kept: &Kept, rows: &[KeptRow]) -> String {
    let mut text = String::new();
    for (storm, load) in runs() {
        let found = of_run(rows, storm, load);
        let goodput = |row: &KeptRow| number(&row.row, "goodput");
        let seawall = found.iter().find(|row| row.key.peer == "seawall");
        let best = found.iter().find(|row| row.key.peer != "seawall");
        if let (Some(seawall), Some(best)) = (seawall, best) {
            let verdict = if goodput(seawall) >= goodput(best) - NOISE { "holds" } else { "does not hold" };
            writeln!(
                text,
                "* Storm {}, load {load}: Seawall {:.3}, the best of the others {:.3} ({}): \"at least as good\" {verdict}.",
                storm.to_uppercase(),
                goodput(seawall),
                goodput(best),
                best.key.peer
            )
            .expect("a string takes any text");
        }
    }
    let compared: Vec<&KeptRow> = rows.iter().filter(|row| is_compared(row)).collect();
    let alike = compared.iter().filter(|row| is_alike(row)).count();
    writeln!(text, "* Live and simulated: {alike} of {} within 15% in goodput and upstream attempts.", compared.len())
        .expect("a string takes any text");
    text.push_str(&made_of(rows));
    text.push_str(&missing(kept));
    text.push_str(LIMITS);
    text.trim_end().to_owned()
}

const LIMITS: &str = "* One run each, one seed; differences of a point or two mean nothing. *Late* is by how much 99% of \
    the requests were sent too late at most: where it is tens of milliseconds, the machine was too busy and the row \
    tells less. LiteLLM takes about 15 ms of a core for a request, so what its rows show is partly that.\n";

/// Which state of the sources Seawall's rows are of: the page may be written later, with other balancers' rows.
fn made_of(rows: &[KeptRow]) -> String {
    let mut commits: Vec<String> = Vec::new();
    for row in rows.iter().filter(|row| row.key.peer == "seawall") {
        let told = format!("{} ({})", row.commit, row.date);
        if !commits.contains(&told) {
            commits.push(told);
        }
    }
    if commits.is_empty() { String::new() } else { format!("* Seawall's rows were run at {}.\n", commits.join(", ")) }
}

/// The rows that are not there, with the reason where one is known.
fn missing(kept: &Kept) -> String {
    let mut reasons: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for key in PEERS.iter().flat_map(|peer| Key::of(peer.name)).filter(|key| !kept.has(key)) {
        let why = kept.why_missing(&key).unwrap_or_else(|| "not run".to_owned());
        let why = why.lines().next().unwrap_or_default().to_owned();
        reasons.entry(why).or_default().push(key.to_string());
    }
    if reasons.is_empty() {
        return String::new();
    }
    let told = reasons.iter().map(|(why, keys)| format!("{} ({why})", keys.join(", ")));
    format!("* Missing: {}.\n", told.collect::<Vec<String>>().join("; "))
}

fn method(requests: u64) -> String {
    let about: Vec<String> = PEERS.iter().map(|peer| format!("* **{}**: {}", peer.name, peer.about)).collect();
    format!(
        "`seawall storm a|b --load 0.8|1.2|2 --requests {requests}` for each row: two simulated servers on real sockets, 4 slots \
         of 0.2 s each (40 requests a second together), at a quarter of their speed from second 10 to 20; {requests} clients' \
         requests (open loop, Poisson, every body different), each with 10 s of patience; fresh processes for every row. \
         Storm A: eight waiting places at each server, more is refused with a 503 at once, and who leaves frees its slot. \
         Storm B: a queue without bound, work goes on for those who have left, and clients give an attempt 5 s.\n\n\
         Clients: half OpenAI SDK for Python with its retry counter, a fifth three retries at once, a tenth two nested loops \
         of seven attempts, a fifth Vercel AI SDK (in storm B behind a gateway that tells it of a timeout).\n\n\
         *Goodput*: requests answered in time as a part of what a fluid oracle serves (one server as fast as all together, \
         earliest deadline first, the future is known). *Good*: as a part of all. *Upstream*: attempts that the servers \
         counted, for each distinct request; *tries*: attempts of the clients. *Back*: seconds from the brown-out's end until \
         every window of 5 s has 97% of the oracle's answers. *Memory*: the most that the balancer's processes had.\n\n\
         Who is in front of the servers, in pinned versions from Debian, PyPI and npm (`tools/peers`):\n\n{}",
        about.join("\n")
    )
}

#[cfg(test)]
mod tests {
    use super::super::rows::tests::{kept, write};
    use super::*;

    #[test]
    fn the_page_says_who_is_best_what_is_alike_and_what_is_missing() {
        let (_folder, kept) = kept();
        let (seawall, nginx) = (Key::of("seawall"), Key::of("nginx"));
        write(&kept, &seawall[0], 0.98, Some(0.99));
        write(&kept, &nginx[0], 0.93, None);
        write(&kept, &seawall[1], 0.80, Some(0.99));
        write(&kept, &nginx[1], 0.85, None);
        kept.miss(&nginx[2], "it did not start\nand more").expect("it is noted");
        let Record { result, reading, .. } = record(&kept, 3000).expect("a page");
        let rows: Vec<&str> = result.lines().filter(|line| line.starts_with("| A |")).collect();
        assert_eq!(
            rows,
            [
                "| A | 0.8 | **seawall** | 0.980 | 0.833 | 1.01 | 1.50 | 0.2 | 9.0 | 2 | 21 | 2 |",
                "| A | 0.8 | nginx | 0.930 | 0.833 | 1.01 | 1.50 | 0.2 | 9.0 | 2 | 21 | 2 |",
                "| A | 0.8 | 0.980 | 0.990 | 1.01 | 1.00 | yes |",
            ]
        );
        assert!(result.contains("| B | 0.8 | 0.800 | 0.990 | 1.01 | 1.00 | no |"), "{result}");
        assert!(reading.contains("Seawall 0.980, the best of the others 0.930 (nginx): \"at least as good\" holds."));
        assert!(reading.contains("0.850 (nginx): \"at least as good\" does not hold."), "{reading}");
        assert!(reading.contains("1 of 2 within 15%"), "{reading}");
        assert!(reading.contains("* Seawall's rows were run at abc (2026-11-30).\n"), "{reading}");
        assert!(reading.contains("nginx-a-1.2 (it did not start)") && reading.contains("seawall-a-1.2"), "{reading}");
    }

    #[test]
    fn a_goodput_that_does_not_come_back_is_told_with_the_time_looked_at() {
        let row = serde_json::json!({"recovery_seconds": [null], "looked_at_seconds": [73.0]});
        assert_eq!(back(&row), "> 73");
    }
}
