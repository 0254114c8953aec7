//! Help that fits a screen.

use super::CliHome;

/// A screen.
const LINES: usize = 24;
const COLUMNS: usize = 80;

/// How many lines `-h` of a command may have: those that start a server or a sandbox have many options.
const LINES_MAX: usize = 30;

/// The sub-commands that a help lists.
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
    let place = CliHome::new();
    let top = place.run(&["--help"]);
    assert_eq!(top.code, Some(0));
    fits(&[], &top.out, LINES);
    let mut left: Vec<Vec<String>> = vec![vec![]];
    let mut seen = 0;
    while let Some(words) = left.pop() {
        let typed: Vec<&str> = words.iter().map(String::as_str).chain(["-h"]).collect();
        let help = place.run(&typed);
        assert_eq!(help.code, Some(0), "{words:?}: {}", help.err);
        let lines_max = if words.is_empty() { LINES } else { LINES_MAX };
        fits(&words, &help.out, lines_max);
        for name in listed(&help.out) {
            left.push(words.iter().cloned().chain([name]).collect());
        }
        seen += 1;
    }
    assert!(seen > 25, "only {seen} commands were found");
}

#[test]
fn alone_it_says_how_to_begin() {
    let place = CliHome::new();
    let went = place.run(&[]);
    assert_eq!((went.code, went.err.as_str()), (Some(0), ""));
    assert!(went.out.lines().count() <= 10, "{}", went.out);
    for word in [
        "raddle init",
        "raddle doctor",
        "raddle exec",
        "raddle app-server",
        "codex --remote unix://HOME/app-server-control/",
    ] {
        assert!(went.out.contains(word), "{}", went.out);
    }
}
