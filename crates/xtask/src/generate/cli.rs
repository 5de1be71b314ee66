//! The page of the command line: the program's own help, command by command.

use crate::repository::Repository;
use crate::{Failure, command};
use std::fmt::Write as _;

const TITLE: &str = "# Command line\n\nWhat `seawall --help` and the help of each command say. \
                     Written by `cargo xtask generate`; do not edit.\n";

/// Asks the program for the help of every command, depth first.
pub(super) fn page(repository: &Repository) -> Result<String, Failure> {
    let mut page = TITLE.to_owned();
    let mut commands: Vec<Vec<String>> = vec![Vec::new()];
    while let Some(words) = commands.pop() {
        let help = help(repository, &words)?;
        section(&mut page, &words, &help);
        for name in subcommands(&help).into_iter().rev() {
            let mut longer = words.clone();
            longer.push(name);
            commands.push(longer);
        }
    }
    Ok(page)
}

fn help(repository: &Repository, words: &[String]) -> Result<String, Failure> {
    let mut cargo = command::cargo();
    // The width of the help follows the terminal; the page must not.
    cargo.current_dir(repository.root()).env("COLUMNS", "100").env_remove("CLICOLOR_FORCE");
    cargo.args(["run", "--quiet", "--package", "seawall", "--"]).args(words);
    let text = command::output(cargo.arg("--help"))?;
    if text.trim().is_empty() {
        return Err(Failure::Answer { command: command::line(&cargo), reason: "it printed no help".to_owned() });
    }
    Ok(text)
}

fn section(page: &mut String, words: &[String], help: &str) {
    let name = std::iter::once("seawall").chain(words.iter().map(String::as_str)).collect::<Vec<_>>().join(" ");
    let help: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
    write!(page, "\n## `{name}`\n\n```text\n{}\n```\n", help.join("\n")).expect("a string takes any text");
}

/// The names under `Commands:`, without `help` itself.
fn subcommands(help: &str) -> Vec<String> {
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    list.take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELP: &str = "An inference router.\n\nUsage: seawall <COMMAND>\n\nCommands:\n  serve  Routes requests\n         \
                        over deployments\n  check  Checks a file\n  help   Print this message\n\nOptions:\n  -h, --help\n";

    #[test]
    fn the_commands_are_read_from_the_help() {
        assert_eq!(subcommands(HELP), ["serve", "check"]);
        assert!(subcommands("Usage: seawall check\n").is_empty());
    }

    #[test]
    fn a_section_holds_the_help_of_one_command() {
        let mut page = String::new();
        section(&mut page, &["fleet".to_owned()], "Starts  \nservers\n\n");
        assert_eq!(page, "\n## `seawall fleet`\n\n```text\nStarts\nservers\n```\n");
    }
}
