//! The only place that prints.

/// Says something that the reader asked for.
#[expect(clippy::print_stdout, reason = "a command line's answers go to its standard output")]
pub fn say(line: &str) {
    println!("{line}");
}

/// Says what went wrong.
#[expect(clippy::print_stderr, reason = "a command line's errors go to its standard error")]
pub fn problem(line: &str) {
    eprintln!("error: {line}");
}
