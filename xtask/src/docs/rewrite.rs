//! Links of a page, rewritten for the book.
//!
//! A book has the pages at the paths of the repository, so links between pages and to pictures keep
//! working. Other files of the repository are not in the book: a link to one becomes text.

use std::collections::BTreeSet;
use std::ops::Range;

use anyhow::{Result, bail};

use super::contents::book_path;
use super::is_copied;
use crate::repository::Tree;
use crate::tidy::{anchors, links};

/// Returns the text of a page with its links rewritten.
pub fn page(tree: &Tree, pages: &BTreeSet<String>, path: &str) -> Result<String> {
    let text = tree.text(path).unwrap_or_default();
    let mut out = String::new();
    let mut at = 0;
    for link in inline_links(text) {
        if link.whole.start < at {
            continue;
        }
        out.push_str(&text[at..link.whole.start]);
        let words = &text[link.words.clone()];
        let target = text[link.target.clone()].trim();
        match rewritten(tree, pages, path, words, target)? {
            Some(new) => out.push_str(&new),
            None => out.push_str(&text[link.whole.clone()]),
        }
        at = link.whole.end;
    }
    out.push_str(&text[at..]);
    Ok(out)
}

/// Returns the new link, or the text in its place; `None` if the link stays as it is.
fn rewritten(
    tree: &Tree,
    pages: &BTreeSet<String>,
    path: &str,
    words: &str,
    target: &str,
) -> Result<Option<String>> {
    if links::is_elsewhere(target) || target.starts_with('#') {
        return Ok(None);
    }
    let (file, anchor) = match target.split_once('#') {
        Some((file, anchor)) => (file, format!("#{anchor}")),
        None => (target, String::new()),
    };
    let Some(file) = links::resolve(path, file).filter(|it| tree.has(it)) else {
        bail!("{path}: the link to `{target}` leads nowhere");
    };
    let index = format!("{file}/README.md");
    if let Some(page) = [&file, &index].into_iter().find(|it| pages.contains(*it)) {
        let up = "../".repeat(path.matches('/').count());
        let page = book_path(page);
        return Ok(Some(format!("[{words}]({up}{page}{anchor})")));
    }
    if is_copied(&file) {
        return Ok(None);
    }
    Ok(Some(match words.contains('`') || words == file {
        true => words.to_owned(),
        false => format!("{words} (`{file}`)"),
    }))
}

/// A link `[words](target)`.
struct InlineLink {
    whole: Range<usize>,
    words: Range<usize>,
    target: Range<usize>,
}

/// Returns the links of a page outside code. The words may begin on an earlier line.
fn inline_links(text: &str) -> Vec<InlineLink> {
    let outside = anchors::outside_code(text).map(|(number, _)| number);
    let outside: BTreeSet<usize> = outside.collect();
    let mut found = Vec::new();
    let mut start = 0;
    for (at, line) in text.split_inclusive('\n').enumerate() {
        if outside.contains(&(at + 1)) {
            let middles = line.match_indices("](").map(|(middle, _)| middle);
            for middle in middles.filter(|middle| !is_in_code(line, *middle)) {
                found.extend(link_around(text, start + middle));
            }
        }
        start += line.len();
    }
    found
}

/// Returns whether the position is in a code span of the line.
fn is_in_code(line: &str, at: usize) -> bool {
    line[..at].matches('`').count() % 2 == 1 && line[at..].contains('`')
}

/// Returns the link whose words end at `middle`.
fn link_around(text: &str, middle: usize) -> Option<InlineLink> {
    let mut depth = 0;
    let (start, _) = text[..middle].char_indices().rev().find(|(_, letter)| {
        depth += match letter {
            ']' => 1,
            '[' => -1,
            _ => 0,
        };
        depth < 0
    })?;
    let target = middle + "](".len();
    let end = target + text[target..].find(')')?;
    Some(InlineLink {
        whole: start..end + 1,
        words: start + 1..middle,
        target: target..end,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(result(text).expect("a page"), expected, "{text}");
    }

    fn result(text: &str) -> Result<String> {
        let tree = Tree::of(&[
            ("README.md", "# Raddle\n"),
            ("LICENSE", ""),
            ("crates/a.rs", ""),
            ("docs/a.md", text),
            ("docs/b.md", ""),
            ("docs/errors/README.md", ""),
            ("docs/picture.svg", ""),
        ]);
        let pages = [
            "README.md",
            "docs/a.md",
            "docs/b.md",
            "docs/errors/README.md",
        ];
        let pages = pages.into_iter().map(str::to_owned).collect();
        page(&tree, &pages, "docs/a.md")
    }

    #[test]
    fn links_between_pages_lead_to_pages_of_the_book() {
        check("see [b](b.md#part).", "see [b](../docs/b.md#part).");
        check("[up](../README.md)", "[up](../index.md)");
        check("[all](errors/)", "[all](../docs/errors/index.md)");
        check(
            "two [words on\ntwo lines](b.md), [`code`](b.md)",
            "two [words on\ntwo lines](../docs/b.md), [`code`](../docs/b.md)",
        );
    }

    #[test]
    fn links_to_other_files_become_text() {
        check("[Apache-2.0](../LICENSE)", "Apache-2.0 (`LICENSE`)");
        check("[LICENSE](../LICENSE)", "LICENSE");
        check("| [`LIMIT`](../crates/a.rs) |", "| `LIMIT` |");
        check("[the crates](../crates)", "the crates (`crates`)");
    }

    #[test]
    fn other_text_stays() {
        for text in [
            "[site](https://example.com/x) [here](#here) ![seen](picture.svg)",
            "`[code](nowhere.md)` and\n```\n[fenced](nowhere.md)\n```\n",
        ] {
            check(text, text);
        }
    }

    #[test]
    fn dead_link_is_an_error() {
        for text in ["[x](nowhere.md)", "[x](../../README.md)"] {
            let error = result(text).expect_err("a dead link").to_string();
            assert!(error.starts_with("docs/a.md: the link to "), "{error}");
        }
    }
}
