//! CHANGELOG.md, assembled from one fragment per change.
//!
//! Fragments keep two changes from conflicting on one line. Released sections are never changed.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::arguments::Arguments;
use crate::generated;
use crate::repository::Tree;

/// Keywords of fragments with their headings, in the order that readers need.
const KINDS: &[(&str, &str)] = &[
    ("breaking", "Breaking"),
    ("added", "Added"),
    ("changed", "Changed"),
    ("fixed", "Fixed"),
];

const FILE: &str = "CHANGELOG.md";
pub const FOLDER: &str = "changes/";
const UNRELEASED: &str = "## Unreleased";
const HEAD: &str = "# Changelog\n\n\
    The section Unreleased is assembled from `changes/` by `cargo xtask changelog`.\n\n";

pub fn command(arguments: Arguments) -> Result<()> {
    generated::command(arguments, stale, write)
}

fn write(root: &Path, tree: &Tree) -> Result<()> {
    let text = expected_text(tree)?;
    if tree.text(FILE) == Some(text.as_str()) {
        println!("{FILE} is up to date");
        return Ok(());
    }
    fs::write(root.join(FILE), text).with_context(|| format!("cannot write {FILE}"))?;
    println!("wrote {FILE}");
    Ok(())
}

/// Returns the problem with CHANGELOG.md, if there is one.
pub fn stale(tree: &Tree) -> Result<Option<String>> {
    if tree.text(FILE) == Some(expected_text(tree)?.as_str()) {
        return Ok(None);
    }
    Ok(Some(format!(
        "{FILE} does not match the fragments in {FOLDER}; run `cargo xtask changelog`"
    )))
}

/// Returns the paths and texts of the fragments.
pub fn fragments(tree: &Tree) -> impl Iterator<Item = (&str, &str)> {
    tree.texts().filter(|(path, _)| {
        let name = path.strip_prefix(FOLDER);
        name.is_some_and(|it| it.ends_with(".md") && it != "README.md")
    })
}

/// Returns whether this version has a section with text.
pub fn has_release(tree: &Tree, version: &str) -> bool {
    let heading = format!("## {version}");
    let mut lines = tree.text(FILE).unwrap_or_default().lines();
    let has_heading = lines.any(|it| it == heading);
    let mut section = lines.take_while(|it| !it.starts_with("## "));
    has_heading && section.any(|it| !it.trim().is_empty())
}

struct ChangeEntry {
    /// Position in `KINDS`.
    kind: usize,
    /// Text of a list item, without its bullet.
    text: String,
}

fn expected_text(tree: &Tree) -> Result<String> {
    // The tree is sorted by path, and the sort by kind keeps that order.
    let mut entries = Vec::new();
    for (path, text) in fragments(tree) {
        entries.push(parse(text).with_context(|| format!("{path} is not a fragment"))?);
    }
    entries.sort_by_key(|entry| entry.kind);
    Ok(assemble(tree.text(FILE).unwrap_or(HEAD), &entries))
}

fn parse(fragment: &str) -> Result<ChangeEntry> {
    let fragment = fragment.trim();
    let (word, text) = fragment.split_once(':').unwrap_or((fragment, ""));
    let Some(kind) = KINDS.iter().position(|(it, _)| *it == word) else {
        let words: Vec<String> = KINDS.iter().map(|(it, _)| format!("`{it}:`")).collect();
        bail!("it begins with none of {}", words.join(", "));
    };
    // Joins the lines into one paragraph.
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.is_empty() {
        bail!("the text is missing after `{word}:`");
    }
    Ok(ChangeEntry { kind, text })
}

fn assemble(old: &str, entries: &[ChangeEntry]) -> String {
    let (head, released) = around_unreleased(old);
    let mut out = format!("{head}{UNRELEASED}\n\n");
    if entries.is_empty() {
        out.push_str("Nothing yet.\n\n");
    }
    for (kind, (_, heading)) in KINDS.iter().enumerate() {
        let mut of_kind = entries.iter().filter(|entry| entry.kind == kind).peekable();
        if of_kind.peek().is_none() {
            continue;
        }
        out.push_str(&format!("### {heading}\n\n"));
        for entry in of_kind {
            out.push_str(&format!("- {}\n", entry.text));
        }
        out.push('\n');
    }
    out.push_str(released);
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

/// Returns the text before the Unreleased section and the text after it.
fn around_unreleased(old: &str) -> (&str, &str) {
    let sections: Vec<usize> = line_starts(old)
        .filter(|at| old[*at..].starts_with("## "))
        .collect();
    let first = sections.first().copied().unwrap_or(old.len());
    let has_unreleased = old[first..].lines().next() == Some(UNRELEASED);
    let released = match sections.get(usize::from(has_unreleased)) {
        Some(at) => &old[*at..],
        None => "",
    };
    (&old[..first], released)
}

fn line_starts(text: &str) -> impl Iterator<Item = usize> {
    std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "# Changelog\n\nWords.\n\n## Unreleased\n\n- gone\n\n## 0.1.0\n\n- kept\n";

    #[test]
    fn fragments_are_sorted_by_kind_then_name_and_releases_are_kept() {
        let tree = Tree::of(&[
            ("CHANGELOG.md", OLD),
            ("changes/README.md", "how to"),
            ("changes/a.md", "fixed: first\n  line two\n"),
            ("changes/b.md", "added: second"),
            ("changes/c.md", "added: third"),
        ]);
        assert_eq!(
            expected_text(&tree).expect("good fragments"),
            "# Changelog\n\nWords.\n\n## Unreleased\n\n### Added\n\n- second\n- third\n\n\
             ### Fixed\n\n- first line two\n\n## 0.1.0\n\n- kept\n"
        );
        assert!(stale(&tree).expect("good fragments").is_some());
    }

    #[test]
    fn written_changelog_is_not_stale() {
        let fragment = ("changes/b.md", "added: second");
        let once = expected_text(&Tree::of(&[fragment])).expect("a good fragment");
        let tree = Tree::of(&[("CHANGELOG.md", &once), fragment]);
        assert_eq!(stale(&tree).expect("a good fragment"), None);
        assert!(once.starts_with(HEAD));
    }

    #[test]
    fn a_release_without_an_unreleased_section_is_kept() {
        let tree = Tree::of(&[("CHANGELOG.md", "# Changelog\n\n## 0.1.0\n\n- kept\n")]);
        assert_eq!(
            expected_text(&tree).expect("no fragments"),
            "# Changelog\n\n## Unreleased\n\nNothing yet.\n\n## 0.1.0\n\n- kept\n"
        );
    }

    #[test]
    fn fragment_without_kind_is_rejected() {
        assert!(parse("improved: everything").is_err());
        assert!(parse("added:   ").is_err());
        assert!(parse("added").is_err());
    }
}
