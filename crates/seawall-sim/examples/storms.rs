//! Runs cells of the storm set without the program, which takes longer to build: for whoever works on the engine.
//!
//! `cargo run --release -p seawall-sim --example storms -- bench/fixed [--only /mixed] [--seeds N] [--from N]
//! [--method NAME] [--told] [--naive] [--without-each] [--ten-minutes]`: the cells whose names begin so and end so.
#![expect(clippy::print_stdout, reason = "an example talks to the terminal")]

use seawall_core::capacity;
use seawall_core::protection::Protection;
use seawall_sim::storms::{Cell, Length, Outcome, Router, Row};

fn main() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| {
        let position = arguments.iter().position(|argument| argument == name)?;
        arguments.get(position + 1).cloned()
    };
    let flag = |name: &str| arguments.iter().any(|argument| argument == name);
    let number = |name: &str, default: u64| value(name).map_or(Ok(default), |text| text.parse().map_err(|_| text));
    let (first, count) = (number("--from", 1)?, number("--seeds", 1)?);
    let begin = arguments.first().ok_or("name the beginning of cells, such as bench/fixed/A")?;
    let end = value("--only").unwrap_or_else(|| "/mixed".to_owned());
    let length = if flag("--ten-minutes") { Length::TenMinutes } else { Length::Short };
    let method = value("--method").unwrap_or_else(|| capacity::REGISTRY[0].name.to_owned());
    let method = capacity::REGISTRY.iter().find(|entry| entry.name == method).ok_or("there is no such method")?;
    let mut routers = vec![Router::Seawall(method.name)];
    routers.extend(flag("--told").then_some(Router::Told));
    routers.extend(flag("--naive").then_some(Router::Naive));
    if flag("--without-each") {
        routers.extend(Protection::ALL.map(Router::Without));
    }
    println!("{:<36}{:<20} good goodput worst | upstream tries | p50 p99 | back worst | waiting", "cell", "router");
    let is_wanted = |cell: &Cell| {
        let name = cell.to_string();
        name.starts_with(begin) && name.trim_end_matches("/10m").ends_with(&end)
    };
    for cell in Cell::all(length).filter(is_wanted) {
        for router in &routers {
            let runs = (first..first + count).map(|seed| cell.run(*router, seed));
            let runs = runs.collect::<Result<Vec<Outcome>, String>>()?;
            print(&Row::of(cell, *router, &runs, None));
        }
    }
    Ok(())
}

fn print(row: &Row) {
    let failed = row.gates.iter().filter(|checked| checked.got.is_some() && !checked.passes);
    let failed: Vec<&str> = failed.map(|checked| checked.gate.figure.label()).collect();
    println!(
        "{:<36}{:<20} {:.3} {:.3} {:.3} | {:.2} {:.2} | {:.1} {:.1} | {:.1} {:.0} | {:.0} {}",
        row.cell,
        row.router,
        row.good,
        row.goodput,
        row.worst_goodput,
        row.upstream_attempts,
        row.client_attempts,
        row.p50_seconds,
        row.p99_seconds,
        row.recovery_seconds,
        row.worst_recovery_seconds,
        row.most_waiting,
        if failed.is_empty() { String::new() } else { format!("FAIL {}", failed.join(", ")) }
    );
    for violation in &row.violations {
        println!("violation: {violation}");
    }
}
