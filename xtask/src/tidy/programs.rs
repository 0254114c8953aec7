//! Check of programs that the product starts: each call site is listed in the table of
//! docs/security.md with how the program is located. A new one would be located by `PATH`, in which
//! a workspace may come first.

use super::{code_lines, is_product_code, without_tests};
use crate::repository::Tree;

/// The page with the table.
const PAGE: &str = "docs/security.md";

/// Files that start a program.
const STARTERS: &[&str] = &[
    "crates/raddle-client/src/child.rs",
    "crates/raddle-sandbox/src/confinement/helper.rs",
    "crates/raddle-sandbox/src/process/keeper.rs",
    "crates/raddle-sandbox/src/process/spawner.rs",
    "crates/raddle/src/daemon.rs",
    "crates/raddle/src/demo/server.rs",
    "crates/raddle/src/init/live_check.rs",
    "crates/raddle/src/sandbox.rs",
];

/// Calls that start a program.
const NEEDLES: &[&str] = &[
    "Command::new(",
    "process::Command as ",
    "posix_spawn",
    "execv",
];

pub fn check(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    let page = tree.text(PAGE).unwrap_or_default();
    for path in STARTERS {
        if !page.contains(&format!("`{path}`")) {
            problems.push(format!(
                "{path} starts a program; say in {PAGE} which, and how it is found"
            ));
        }
        let starts = |text: &str| code(text).any(|(_, line)| is_start(line));
        if !tree.text(path).is_some_and(starts) {
            problems.push(format!(
                "{path} starts no program; take it off the list in this check and off the table in {PAGE}"
            ));
        }
    }
    for (path, text) in tree.texts() {
        if !is_product_code(path) || STARTERS.contains(&path) {
            continue;
        }
        for (number, _) in code(text).filter(|(_, line)| is_start(line)) {
            problems.push(format!(
                "{path}:{number}: a program is started here; start it through `raddle_sandbox::Launcher`, with a file \
                 that `raddle_sandbox::named_program` found, or list this file here and in {PAGE}"
            ));
        }
    }
    problems
}

fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    code_lines(without_tests(text))
}

fn is_start(line: &str) -> bool {
    NEEDLES.iter().any(|it| line.contains(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_starter_of_a_program_is_reported() {
        let known: Vec<(&str, &str)> = STARTERS
            .iter()
            .map(|it| (*it, "let child = Command::new(program);"))
            .collect();
        let page: String = STARTERS.iter().map(|it| format!("| `{it}` |\n")).collect();
        let with = |more: &[(&str, &str)]| {
            let page = [(PAGE, page.as_str())];
            check(&Tree::of(&[&known[..], &page, more].concat())).len()
        };
        assert_eq!(with(&[]), 0);
        let new = "crates/raddle-tools/src/new.rs";
        assert_eq!(with(&[(new, "Command::new(\"git\").spawn()")]), 1);
        assert_eq!(with(&[(new, "use std::process::Command as Child;")]), 1);
        assert_eq!(with(&[(new, "// Command::new(\"git\")")]), 0);
        assert_eq!(
            with(&[(new, "#[cfg(test)]\nmod tests { Command::new(1) }")]),
            0
        );
        assert_eq!(with(&[("xtask/src/new.rs", "Command::new(1)")]), 0);
        assert_eq!(check(&Tree::of(&known)).len(), STARTERS.len());
    }
}
