//! Prints the reference pages and JSON schemas of records, scenarios and drills; `cargo xtask generate` writes them.

use std::io::{self, Write as _};
use std::process::ExitCode;

fn main() -> io::Result<ExitCode> {
    let text = match std::env::args().nth(1).as_deref() {
        Some("record-markdown") => seawall_cases::record::reference_markdown(),
        Some("record-schema") => seawall_cases::record::schema_json(),
        Some("scenario-markdown") => seawall_cases::scenario::reference_markdown(),
        Some("scenario-schema") => seawall_cases::scenario::schema_json(),
        Some("drill-markdown") => seawall_cases::drill::reference_markdown(),
        Some("drill-schema") => seawall_cases::drill::schema_json(),
        _ => {
            writeln!(io::stderr(), "usage: cases_reference (record|scenario|drill)-(markdown|schema)")?;
            return Ok(ExitCode::from(2));
        }
    };
    let mut out = io::stdout().lock();
    writeln!(out, "{}", text.trim_end())?;
    Ok(ExitCode::SUCCESS)
}
