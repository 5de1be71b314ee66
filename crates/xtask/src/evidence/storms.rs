//! How much of what was possible is served in a retry storm: the whole storm set of the simulator.

use super::cost::build_program;
use super::processes::answered;
use crate::evidence::{Measurement, Record, Run};
use crate::repository::Repository;
use crate::{Failure, report};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// The entry of the table.
pub(super) const MEASUREMENT: Measurement = Measurement {
    name: "storms-simulated",
    summary: "goodput against an oracle, upstream attempts and recovery in simulated retry storms, with their gates",
    run: Run::Whole(run),
};

/// Part of the set: a heading, and what the program is asked for.
struct Part {
    heading: &'static str,
    arguments: &'static [&'static str],
}

const PARTS: [Part; 5] = [
    Part {
        heading: "Bench shape, all clients",
        arguments: &["--law", "fixed,exponential,lognormal", "--clients", "all", "--seeds", "20", "--told", "--naive"],
    },
    Part {
        heading: "The six shapes",
        arguments: &["--shape", "set", "--law", "fixed,exponential", "--clients", "all", "--seeds", "20", "--told"],
    },
    Part {
        heading: "Ten minutes with brown-outs of 30, 60, 120 and 30 s",
        arguments: &[
            "--ten-minutes",
            "--shape",
            "set",
            "--law",
            "fixed,exponential",
            "--load",
            "0.8,1.2,2",
            "--seeds",
            "2",
            "--told",
        ],
    },
    Part {
        heading: "Other laws of service",
        arguments: &["--shape", "set", "--law", "lognormal,erlang-4,cv-0.1", "--seeds", "5", "--told"],
    },
    Part {
        heading: "Other shapes",
        arguments: &[
            "--shape",
            "batch,llm,random-order,starts-ill,4-to-16,16-to-4,16-to-1,64-to-4",
            "--seeds",
            "5",
            "--told",
        ],
    },
];

/// One row of an answer.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    shape: String,
    law: String,
    storm: String,
    load: String,
    clients: String,
    router: String,
    figures: BTreeMap<String, f64>,
    /// The gates that do not hold.
    failed: Vec<String>,
    has_gates: bool,
}

fn run(repository: &Repository) -> Result<Record, Failure> {
    let program = build_program(repository)?;
    let mut parts = Vec::new();
    for part in &PARTS {
        report::say(part.heading);
        parts.push((part, rows(&program, part)?));
    }
    Ok(record(&parts))
}

fn rows(program: &Path, part: &Part) -> Result<Vec<Row>, Failure> {
    let mut storms = Command::new(program);
    storms.args(["sim", "storms", "--json"]).args(part.arguments);
    let answer = answered(&mut storms)?;
    let missing =
        || Failure::Answer { command: "seawall sim storms --json".to_owned(), reason: "a key is missing".to_owned() };
    let rows = answer["rows"].as_array().ok_or_else(missing)?;
    rows.iter().map(row).collect::<Option<_>>().ok_or_else(missing)
}

fn row(value: &Value) -> Option<Row> {
    let cell: Vec<&str> = value["cell"].as_str()?.split('/').collect();
    let word = |place: usize| cell.get(place).map(|word| (*word).to_owned());
    let gates = value["gates"].as_array()?;
    let failed = gates.iter().filter(|gate| gate["passes"] != true);
    let figures = value.as_object()?.iter().filter_map(|(name, value)| Some((name.clone(), value.as_f64()?)));
    Some(Row {
        shape: word(0)?,
        law: word(1)?,
        storm: word(2)?,
        load: word(3)?,
        clients: word(4)?,
        router: value["router"].as_str()?.to_owned(),
        figures: figures.collect(),
        failed: failed.map(|gate| gate["figure"].as_str().map(str::to_owned)).collect::<Option<_>>()?,
        has_gates: !gates.is_empty(),
    })
}

fn record(parts: &[(&Part, Vec<Row>)]) -> Record {
    let mut result = String::new();
    let mut reading = String::new();
    for (part, rows) in parts {
        write!(result, "### {}\n\n`seawall sim storms {}`\n\n", part.heading, part.arguments.join(" "))
            .expect("a string takes any text");
        result.push_str(&table(rows));
        let judged: Vec<&Row> = rows.iter().filter(|row| row.has_gates).collect();
        let passed = judged.iter().filter(|row| row.failed.is_empty()).count();
        writeln!(
            reading,
            "* {}: {passed} of {} cells pass all their gates.{}",
            part.heading,
            judged.len(),
            worst(&judged)
        )
        .expect("a string takes any text");
    }
    Record {
        title: "Simulated retry storms".to_owned(),
        method: METHOD.to_owned(),
        result: result.trim_end().to_owned(),
        reading: reading.trim_end().to_owned(),
    }
}

/// The cell that has the least goodput, in words.
fn worst(rows: &[&Row]) -> String {
    let goodput = |row: &Row| row.figures.get("goodput").copied().unwrap_or(0.0);
    let worst = rows.iter().min_by(|left, right| goodput(left).total_cmp(&goodput(right)));
    worst.map_or_else(String::new, |row| {
        let Row { shape, law, storm, load, clients, .. } = row;
        format!(" The least goodput is {:.3} ({shape}, {law}, storm {storm}, load {load}, {clients}).", goodput(row))
    })
}

/// A line for each shape, law, storm and load: goodput of each kind of client, mean and worst seed, and the rest as the
/// worst of the clients. The other routers are told for mixed clients.
fn table(rows: &[Row]) -> String {
    let mut clients: Vec<&str> = Vec::new();
    let mut others: Vec<&str> = Vec::new();
    for row in rows {
        let (known, name) = if row.has_gates { (&mut clients, &row.clients) } else { (&mut others, &row.router) };
        if !known.contains(&name.as_str()) {
            known.push(name);
        }
    }
    let mut text = String::from("| shape | law | storm | load |");
    for name in &clients {
        write!(text, " {name} |").expect("a string takes any text");
    }
    text.push_str(" of told | upstream | back s | p50 s | p99 s |");
    for name in &others {
        write!(text, " {name} |").expect("a string takes any text");
    }
    text.push_str(" gates |\n|");
    text.push_str(&" --- |".repeat(10 + clients.len() + others.len()));
    text.push('\n');
    let mut rest = rows;
    while let Some(first) = rest.first() {
        let key = |row: &Row| (row.shape.clone(), row.law.clone(), row.storm.clone(), row.load.clone());
        let length = rest.iter().take_while(|row| key(row) == key(first)).count();
        let (line, more) = rest.split_at(length);
        text.push_str(&table_line(line, &clients, &others));
        rest = more;
    }
    text.push('\n');
    text
}

fn table_line(line: &[Row], clients: &[&str], others: &[&str]) -> String {
    let figure = |row: &Row, name: &str| row.figures.get(name).copied();
    let goodput = |row: Option<&Row>| {
        let told = row.and_then(|row| Some((figure(row, "goodput")?, figure(row, "worst_goodput")?)));
        told.map_or_else(String::new, |(mean, worst)| format!("{mean:.3} ({worst:.3})"))
    };
    let judged = || line.iter().filter(|row| row.has_gates);
    let most = |name: &str| judged().filter_map(|row| figure(row, name)).fold(0.0, f64::max);
    let first = &line[0];
    let mut text = format!("| {} | {} | {} | {} |", first.shape, first.law, first.storm, first.load);
    for name in clients {
        let row = judged().find(|row| row.clients == *name);
        write!(text, " {} |", goodput(row)).expect("a string takes any text");
    }
    let of_told = judged().filter_map(|row| figure(row, "of_told")).fold(f64::INFINITY, f64::min);
    let of_told = if of_told.is_finite() { format!("{of_told:.3}") } else { String::new() };
    write!(
        text,
        " {of_told} | {:.2} | {:.1} | {:.1} | {:.1} |",
        most("upstream_attempts"),
        most("recovery_seconds"),
        most("p50_seconds"),
        most("p99_seconds")
    )
    .expect("a string takes any text");
    for name in others {
        let row = line.iter().find(|row| row.router == *name && row.clients == "mixed");
        write!(text, " {} |", goodput(row)).expect("a string takes any text");
    }
    let mut failed: Vec<String> =
        judged().flat_map(|row| row.failed.iter().map(|gate| format!("{gate} ({})", row.clients))).collect();
    failed.sort();
    let verdict = if failed.is_empty() { "pass".to_owned() } else { failed.join(", ") };
    writeln!(text, " {verdict} |").expect("a string takes any text");
    text
}

const METHOD: &str = "`seawall sim storms`: simulated servers in a brown-out, clients that come again (open loop, Poisson), \
    and Seawall's engine between them in its one default configuration; every run with each seed. A request is good if \
    its client has its answer within its patience (10 s) of the first attempt. Goodput is the good requests as a part of \
    what a fluid oracle serves: one server as fast as all slots together, earliest deadline first, who cannot be served \
    in time is dropped, the future is known. The first figure is the mean over the seeds, in brackets is the worst seed.\n\n\
    A shape's name is servers x slots x seconds of service; bench is 2 x 4 x 0.2 s. In the brown-out (seconds 10 to 20 \
    of 45) the servers have a quarter of their speed (2x3: a third, 2x24: an eighth, 5x2: one slot of two). Storm A: two \
    waiting places for each slot, more is refused at once, and who leaves frees the slot. Storm B: a queue without bound, \
    work goes on for those who have left, and clients give an attempt 5 s. Load: new requests as a multiple of what well \
    servers can do. Clients: the OpenAI SDK as measured, three retries at once, two nested loops of seven attempts, the \
    Vercel SDK, and a mix of them (50, 20, 10, 20%). *Told*: the same policy, told the slots of the servers; *told-twice*: \
    twice as many.\n\n\
    *Upstream*: attempts at the servers for each distinct request. *Back*: seconds from the brown-out's end until every \
    window of 5 s has 97% of the oracle's answers (or of those that are sent, where that is fewer); a run in which that \
    does not happen counts with its whole rest. Gates, for means over seeds: bench with fixed service 0.97, at load 10 \
    0.95 (A) and 0.92 (B), bench with random service 0.90, other shapes 0.95 of told; upstream at most 1.10; back within \
    5 s, in storm B at load 0.8 within 2 s. Upstream, back, p50 and p99 are of the worst kind of client.";

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn told(clients: &str, router: &str, goodput: f64, passes: &[bool]) -> Value {
        let gates: Vec<Value> = passes.iter().map(|passes| json!({"figure": "goodput", "passes": passes})).collect();
        json!({
            "cell": format!("bench/fixed/A/1.2/{clients}"), "router": router, "goodput": goodput,
            "worst_goodput": goodput - 0.01, "of_told": 0.99, "upstream_attempts": 1.0, "recovery_seconds": 0.5,
            "p50_seconds": 8.0, "p99_seconds": 9.0, "gates": gates,
        })
    }

    #[test]
    fn a_line_has_every_kind_of_client_and_the_other_routers() {
        let values = [
            told("sdk", "seawall x", 0.98, &[true]),
            told("mixed", "seawall x", 0.5, &[false]),
            told("mixed", "told", 0.99, &[]),
        ];
        let rows: Vec<Row> = values.iter().map(|value| row(value).expect("a whole row")).collect();
        let text = table(&rows);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[0],
            "| shape | law | storm | load | sdk | mixed | of told | upstream | back s | p50 s | p99 s | told | gates |"
        );
        assert_eq!(lines[0].matches('|').count(), lines[1].matches('|').count());
        let line = "| bench | fixed | A | 1.2 | 0.980 (0.970) | 0.500 (0.490) | 0.990 | 1.00 | 0.5 | 8.0 | 9.0 | \
                    0.990 (0.980) | goodput (mixed) |";
        assert_eq!(lines[2..], [line, ""]);
        assert_eq!(row(&json!({"cell": "bench/fixed"})), None);
    }

    #[test]
    fn the_reading_counts_what_passes_and_names_the_worst() {
        let values = [told("sdk", "seawall x", 0.98, &[true]), told("mixed", "seawall x", 0.5, &[false])];
        let rows: Vec<Row> = values.iter().map(|value| row(value).expect("a whole row")).collect();
        let record = record(&[(&PARTS[0], rows)]);
        assert_eq!(
            record.reading,
            "* Bench shape, all clients: 1 of 2 cells pass all their gates. The least goodput is 0.500 (bench, fixed, \
             storm A, load 1.2, mixed)."
        );
    }
}
