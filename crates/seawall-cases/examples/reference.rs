//! Prints the reference pages and JSON schemas of records and scenarios; `cargo xtask generate` writes them to files.

use std::io::{self, Write as _};
use std::process::ExitCode;

fn main() -> io::Result<ExitCode> {
    let text = match std::env::args().nth(1).as_deref() {
        Some("record-markdown") => seawall_cases::record::reference_markdown(),
        Some("record-schema") => seawall_cases::record::schema_json(),
        Some("scenario-markdown") => seawall_cases::scenario::reference_markdown(),
        Some("scenario-schema") => seawall_cases::scenario::schema_json(),
        _ => {
            writeln!(io::stderr(), "usage: reference record-markdown|record-schema|scenario-markdown|scenario-schema")?;
            return Ok(ExitCode::from(2));
        }
    };
    let mut out = io::stdout().lock();
    writeln!(out, "{}", text.trim_end())?;
    Ok(ExitCode::SUCCESS)
}
