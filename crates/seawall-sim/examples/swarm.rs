//! Runs random worlds: `cargo run --release -p seawall-sim --example swarm -- [--from SEED] [--seeds N] [--file]`
#![expect(clippy::print_stdout, reason = "an example talks to the terminal")]

use seawall_sim::swarm::Plan;

fn main() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |name: &str, default: u64| {
        let position = arguments.iter().position(|argument| argument == name);
        let text = position.and_then(|position| arguments.get(position + 1));
        text.map_or(Ok(default), |text| text.parse().map_err(|_| format!("{name} takes a whole number, not `{text}`")))
    };
    let (from, count) = (number("--from", 1)?, number("--seeds", 100)?);
    let (mut failed, mut events) = (0, 0);
    for seed in from..from.saturating_add(count) {
        let plan = Plan::new(seed);
        println!("{plan}");
        if arguments.iter().any(|argument| argument == "--file") {
            println!("{}", plan.text);
        }
        let report = plan.run();
        events += report.events;
        failed += u64::from(!report.failures.is_empty());
        for failure in &report.failures {
            println!("FAILED seed {seed}: {failure}");
        }
        let percents: Vec<String> = report.succeeded_percent.values().map(|percent| format!("{percent:.1}")).collect();
        println!("  {} events, succeeded {}", report.events, percents.join(" "));
    }
    println!("{failed} of {count} failed, {events} events");
    if failed == 0 { Ok(()) } else { Err(format!("{failed} worlds failed")) }
}
