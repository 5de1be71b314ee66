//! Prints the configuration's reference page or its JSON schema; `cargo xtask generate` writes them to files.

use std::io::{self, Write as _};
use std::process::ExitCode;

fn main() -> io::Result<ExitCode> {
    let text = match std::env::args().nth(1).as_deref() {
        Some("markdown") => seawall_config::reference_markdown(),
        Some("schema") => seawall_config::schema_json(),
        _ => {
            writeln!(io::stderr(), "usage: config_reference markdown|schema")?;
            return Ok(ExitCode::from(2));
        }
    };
    let mut out = io::stdout().lock();
    writeln!(out, "{}", text.trim_end())?;
    Ok(ExitCode::SUCCESS)
}
