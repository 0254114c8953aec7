//! Repository-specific checks beyond those of the compiler.
//!
//! Each check is a function from the files to a list of problems, and each problem says how to fix
//! it. All problems are printed, not only the first.

mod actions;
pub mod anchors;
mod cycles;
mod errors;
mod frozen;
mod layers;
pub mod links;
mod method_lists;
pub mod methods;
mod names;
mod paths;
mod programs;
mod served;
mod sizes;
mod stdout;
mod string_errors;

use std::path::Path;

use anyhow::{Result, bail};

use crate::arguments::Arguments;
use crate::repository::{self, Tree};
use crate::{changelog, clients, docs, limits, promises, versions, vocabulary};

pub fn command(arguments: Arguments) -> Result<()> {
    arguments.end()?;
    run(&repository::root()?)
}

/// Runs every check; fails if there is any problem.
pub fn run(root: &Path) -> Result<()> {
    let tree = Tree::read(root)?;
    let packages = layers::packages(root)?;
    let checks = [
        ("crate arrows", layers::check(&tree, &packages)),
        ("import cycles", cycles::check(&tree)),
        ("files per method", methods::check(&tree)),
        (
            "no list of methods beside the table",
            method_lists::check(&tree),
        ),
        ("nothing but the wire on stdout", stdout::check(&tree)),
        ("a page per error code", errors::check(&tree)),
        ("errors of public functions", string_errors::check(&tree)),
        ("the frozen core of the protocol", frozen::check(&tree)),
        ("the README's number of methods", served::check(&tree)),
        ("links", links::check(&tree)),
        ("every page has its place", docs::contents::check(&tree)),
        (
            "every program that is started is listed",
            programs::check(&tree),
        ),
        ("no path of one machine", paths::check(&tree)),
        ("actions are pinned by commit", actions::check(&tree)),
        ("names of types and crates", names::check(&tree)),
        ("no word of the rename list", vocabulary::check(&tree)),
        (
            "no comment begins with a pronoun",
            vocabulary::check_prose(&tree),
        ),
        ("file sizes and headers", sizes::check(&tree)),
        ("changelog", problems(changelog::stale(&tree))),
        ("one version everywhere", versions::check(&tree)),
        ("the page of limits", problems(limits::stale(&tree))),
        ("the page of clients", problems(clients::stale(&tree))),
        ("the page of promises", problems(promises::stale(&tree))),
    ];
    let mut count = 0;
    for (name, problems) in checks {
        println!(
            "tidy: {name}: {}",
            if problems.is_empty() { "ok" } else { "FAILED" }
        );
        for problem in &problems {
            println!("  {problem}");
        }
        count += problems.len();
    }
    if count > 0 {
        bail!(
            "tidy found {count} problem{}",
            if count == 1 { "" } else { "s" }
        );
    }
    Ok(())
}

fn problems(stale: Result<Option<String>>) -> Vec<String> {
    match stale {
        Ok(stale) => stale.into_iter().collect(),
        Err(error) => vec![format!("{error:#}")],
    }
}

/// Start of unit tests inside a file.
const TESTS: [&str; 2] = [
    "#[cfg(test)]\nmod tests {",
    "#[cfg(test)]\npub(super) mod tests {",
];

/// Whether a file is source code of the product, and not of its tests.
fn is_product_code(path: &str) -> bool {
    let is_tests = path.ends_with("/tests.rs") || path.contains("/tests/");
    path.starts_with("crates/") && path.contains("/src/") && path.ends_with(".rs") && !is_tests
}

/// Returns the text of a file before its unit tests.
fn without_tests(text: &str) -> &str {
    let end = TESTS.iter().filter_map(|it| text.find(it)).min();
    &text[..end.unwrap_or(text.len())]
}

/// Returns lines with their numbers, except those that are only a comment.
fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    numbered(text).filter(|(_, line)| !line.trim_start().starts_with("//"))
}

fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(at, line)| (at + 1, line))
}
