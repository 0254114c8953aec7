//! Check of writes to stdout. On stdio transport, stdout is the wire: one stray line breaks every
//! client. So only the wire may write to it, and the one file through which commands without a wire
//! print.
//!
//! Clippy's `print_stdout` catches the macros; this check also catches other ways, and code that
//! silences Clippy. A child inherits our stdout unless it is given another, so every child must get
//! one.

use super::code_lines;
use crate::repository::Tree;

/// Files that may write to stdout, and why. A new entry needs a very good reason.
const ALLOWED: &[(&str, &str)] = &[
    ("crates/raddle-rpc/src/stdio.rs", "it is the wire"),
    (
        "crates/raddle-console/src/lib.rs",
        "commands that serve no wire print through it",
    ),
];

/// Files that may start a child whose stdout this check cannot see being set, with the reason why
/// they are correct.
const CHILDREN_ALLOWED: &[(&str, &str)] = &[
    (
        "crates/raddle-sandbox/src/confinement/helper.rs",
        "the child is the command, and stdout is what the command was given",
    ),
    (
        "crates/raddle/src/sandbox.rs",
        "the child is what a person ran, and serves no wire",
    ),
];

/// Forbidden calls. A needle that begins with a letter must begin a word: `eprintln!` is not
/// `println!`.
const NEEDLES: &[&str] = &[
    "print!",
    "println!",
    "io::stdout",
    "stdio::stdout",
    "stdout()",
    "stdout as ",
    "process::Command as ",
    ".stdout(Stdio::inherit",
    "clippy::print_stdout",
    "/dev/stdout",
    "/dev/fd/1",
    "/proc/self/fd/1",
];

/// Loggers that write to stdout by default.
const LOGGERS: &[&str] = &[
    "tracing_subscriber::fmt()",
    "tracing_subscriber::fmt::init",
    "fmt::layer()",
];

pub fn check(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    for (path, text) in tree.texts() {
        if !is_product_source(path) {
            continue;
        }
        if !is_listed(ALLOWED, path) {
            check_file(path, text, &mut problems);
        }
        if !is_listed(CHILDREN_ALLOWED, path) {
            check_children(path, text, &mut problems);
        }
    }
    problems
}

fn is_product_source(path: &str) -> bool {
    path.starts_with("crates/") && path.contains("/src/") && path.ends_with(".rs")
}

fn is_listed(list: &[(&str, &str)], path: &str) -> bool {
    list.iter().any(|(listed, _)| *listed == path)
}

/// Searches from each new command to the end of its function for its stdout. `output` sets one by
/// itself.
fn check_children(path: &str, text: &str, problems: &mut Vec<String>) {
    let lines: Vec<(usize, &str)> = code_lines(text).collect();
    for (at, (number, line)) in lines.iter().enumerate() {
        if !line.contains("Command::new(") {
            continue;
        }
        let is_set = lines[at..]
            .iter()
            .take_while(|(_, line)| !contains(line, "fn "))
            .any(|(_, line)| line.contains(".stdout(") || line.contains(".output()"));
        if !is_set {
            problems.push(format!(
                "{path}:{number}: this child inherits stdout, which is the wire; give it \
                 `.stdout(Stdio::null())` or `.stdout(Stdio::piped())` in the same function"
            ));
        }
    }
}

fn check_file(path: &str, text: &str, problems: &mut Vec<String>) {
    let writer_is_set = text.contains(".with_writer(");
    for (number, line) in code_lines(text) {
        if let Some(needle) = NEEDLES.iter().find(|needle| contains(line, needle)) {
            problems.push(format!(
                "{path}:{number}: `{needle}` can write to stdout, which is the wire; log with \
                 `tracing`, write to a file or stderr, or go through raddle-rpc"
            ));
        }
        if !writer_is_set && LOGGERS.iter().any(|logger| line.contains(logger)) {
            problems.push(format!(
                "{path}:{number}: this logger writes to stdout, which is the wire; give it \
                 `.with_writer(std::io::stderr)`"
            ));
        }
    }
}

fn contains(line: &str, needle: &str) -> bool {
    line.match_indices(needle).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let inside_a_word = |it: char| it.is_alphanumeric() || it == '_' || it == '.';
        !needle.starts_with(char::is_alphabetic) || !before.is_some_and(inside_a_word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(path: &str, line: &str) -> usize {
        check(&Tree::of(&[(
            path,
            &format!("fn f() {{\n    {line}\n}}\n"),
        )]))
        .len()
    }

    #[test]
    fn every_write_to_stdout_is_reported() {
        for line in [
            "println!(\"hi\");",
            "std::print!(\"hi\");",
            "let out = std::io::stdout();",
            "let out = tokio::io::stdout();",
            "let out = stdout().lock();",
            "use std::io::{stdout as out};",
            "command.stdout(Stdio::inherit());",
            "#[allow(clippy::print_stdout)]",
            "#[expect(clippy::print_stdout, reason = \"\")]",
            "File::create(\"/dev/stdout\")",
            "tracing_subscriber::fmt().init();",
            "Command::new(\"git\").status()?;",
            "let child = tokio::process::Command::new(\"git\").stdin(Stdio::null()).spawn()?;",
            "let mut command = std::process::Command::new(name);",
            "use std::process::Command as Program;",
        ] {
            assert_eq!(problems("crates/raddle/src/generate.rs", line), 1, "{line}");
        }
    }

    #[test]
    fn similar_code_is_accepted() {
        for line in [
            "eprintln!(\"hi\");",
            "eprint!(\"hi\");",
            "command.stdout(Stdio::piped());",
            "let text = output.stdout;",
            "let pipe = child.stdout();",
            "// println! would break the wire",
            "tracing_subscriber::fmt().with_writer(std::io::stderr).init();",
            "Command::new(\"git\").stdout(Stdio::null()).status()?;",
            "let mut command = Command::new(\"git\");\n    command.stdout(Stdio::piped());",
            "let text = Command::new(\"git\").output()?.stdout;",
            "// Command::new(name).spawn() would hand on the wire",
        ] {
            assert_eq!(problems("crates/raddle/src/main.rs", line), 0, "{line}");
        }
    }

    #[test]
    fn the_stdout_of_another_function_does_not_count() {
        let text = "fn f() {\n    Command::new(\"git\").spawn();\n}\n\npub fn g(it: &mut Command) {\n    \
                    it.stdout(Stdio::null());\n}\n";
        let reported = check(&Tree::of(&[("crates/raddle/src/main.rs", text)]));
        assert_eq!(reported.len(), 1, "{reported:?}");
        assert!(
            reported[0].starts_with("crates/raddle/src/main.rs:2:"),
            "{reported:?}"
        );
    }

    #[test]
    fn only_the_wire_and_developer_tools_may_write_to_stdout() {
        let line = "std::io::stdout();";
        assert_eq!(problems("crates/raddle-rpc/src/stdio.rs", line), 0);
        assert_eq!(problems("crates/raddle-console/src/lib.rs", line), 0);
        assert_eq!(problems("crates/raddle-server/src/lib.rs", line), 1);
        assert_eq!(problems("crates/raddle-rpc/tests/it/main.rs", line), 0);
        assert_eq!(problems("xtask/src/main.rs", line), 0);
        assert_eq!(problems("crates/raddle-rpc/src/deep/stdio.rs", line), 1);
    }
}
