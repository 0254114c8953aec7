//! Help texts that fit on a screen.

use super::CliHome;

/// The width of a terminal.
const COLUMNS: usize = 80;

/// The maximum number of lines of `-h`: commands that start a server or a sandbox have many options.
const LINES_MAX: usize = 30;

/// The same for the list of all commands: the height of a terminal on a laptop. The build for fleets
/// has one more.
const COMMANDS_LINES_MAX: usize = 36 + cfg!(feature = "fleet") as usize;

/// Returns the subcommands that a help text lists.
fn listed(help: &str) -> Vec<String> {
    let mut lines = help.lines().skip_while(|it| *it != "Commands:").skip(1);
    let mut names = Vec::new();
    for line in lines.by_ref().take_while(|it| !it.is_empty()) {
        let name = line.strip_prefix("  ").filter(|it| !it.starts_with(' '));
        names.extend(
            name.and_then(|it| it.split_whitespace().next())
                .map(str::to_owned),
        );
    }
    names.retain(|it| it != "help");
    names
}

fn fits(words: &[String], help: &str, lines_max: usize) {
    let lines = help.lines().count();
    assert!(lines <= lines_max, "{words:?} has {lines} lines:\n{help}");
    for line in help.lines() {
        assert!(line.chars().count() <= COLUMNS, "{words:?}: {line}");
    }
}

#[test]
fn the_help_of_every_command_fits_a_screen() {
    let home = CliHome::new();
    let top = home.run(&["--help"]);
    assert_eq!(top.code, Some(0));
    fits(&[], &top.out, COMMANDS_LINES_MAX);
    let mut pending: Vec<Vec<String>> = vec![vec![]];
    let mut count = 0;
    while let Some(words) = pending.pop() {
        let typed: Vec<&str> = words.iter().map(String::as_str).chain(["-h"]).collect();
        let help = home.run(&typed);
        assert_eq!(help.code, Some(0), "{words:?}: {}", help.err);
        let lines_max = match words.is_empty() {
            true => COMMANDS_LINES_MAX,
            false => LINES_MAX,
        };
        fits(&words, &help.out, lines_max);
        for name in listed(&help.out) {
            pending.push(words.iter().cloned().chain([name]).collect());
        }
        count += 1;
    }
    assert!(listed(&top.out).contains(&"man".to_owned()), "{}", top.out);
    assert!(count > 25, "only {count} commands were found");
}

#[test]
fn without_arguments_it_prints_how_to_start() {
    let home = CliHome::new();
    let output = home.run(&[]);
    assert_eq!((output.code, output.err.as_str()), (Some(0), ""));
    assert!(output.out.lines().count() <= 10, "{}", output.out);
    for word in [
        "raddle init",
        "raddle doctor",
        "raddle exec",
        "raddle app-server",
        "codex --remote unix://HOME/app-server-control/",
    ] {
        assert!(output.out.contains(word), "{}", output.out);
    }
}
