//! Check that links between the files of the repository resolve.

use std::collections::{BTreeMap, BTreeSet};

use super::anchors;
use crate::repository::Tree;

/// Attributes of HTML in a page whose value is a link.
const HTML_ATTRIBUTES: [&str; 3] = ["href=\"", "src=\"", "srcset=\""];

pub fn check(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    let mut pages = Pages::default();
    for (path, text) in tree.texts().filter(|(path, _)| path.ends_with(".md")) {
        for (number, target) in links(text) {
            if is_elsewhere(&target) {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let file = file.split('?').next().unwrap_or_default();
            let page = match file {
                "" => Some(path.to_owned()),
                file => resolve(path, file),
            };
            let problem = match page {
                Some(page) if page.is_empty() || tree.has(&page) => {
                    if anchor.is_empty() || pages.have(tree, &page, anchor) {
                        continue;
                    }
                    "names no heading there; mend the part after #"
                }
                _ => "leads nowhere; mend the path or write the file",
            };
            problems.push(format!("{path}:{number}: the link to `{target}` {problem}"));
        }
    }
    problems
}

/// Headings of the pages read so far.
#[derive(Default)]
struct Pages(BTreeMap<String, BTreeSet<String>>);

impl Pages {
    /// Returns whether the page has the anchor. Anchors in other files, such as lines of code, are
    /// defined by their host.
    fn have(&mut self, tree: &Tree, page: &str, anchor: &str) -> bool {
        if !page.ends_with(".md") {
            return true;
        }
        let headings = self
            .0
            .entry(page.to_owned())
            .or_insert_with(|| tree.text(page).map(anchors::of).unwrap_or_default());
        headings.contains(anchor)
    }
}

/// Returns whether the link leaves the repository.
pub fn is_elsewhere(target: &str) -> bool {
    target.contains("://") || target.starts_with("mailto:")
}

/// Returns the path from the root of the repository, or `None` if the link leaves it.
pub fn resolve(from: &str, target: &str) -> Option<String> {
    let target = target.replace("%20", " ");
    let mut steps: Vec<&str> = match target.strip_prefix('/') {
        Some(_) => Vec::new(),
        None => from
            .split('/')
            .rev()
            .skip(1)
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
            .collect(),
    };
    for step in target.split('/') {
        match step {
            "" | "." => {}
            ".." => {
                steps.pop()?;
            }
            step => steps.push(step),
        }
    }
    Some(steps.join("/"))
}

/// Returns link targets with their line numbers, outside code.
pub fn links(text: &str) -> Vec<(usize, String)> {
    let mut targets = Vec::new();
    for (number, line) in anchors::outside_code(text) {
        let line = without_code(line);
        for (at, _) in line.match_indices("](") {
            if let Some(target) = inline_target(&line[at + 2..]) {
                targets.push((number, target));
            }
        }
        for attribute in HTML_ATTRIBUTES {
            for (at, _) in line.match_indices(attribute) {
                let value = line[at + attribute.len()..].split_once('"');
                targets.extend(value.map(|(target, _)| (number, target.to_owned())));
            }
        }
        if let Some((_, target)) = line.strip_prefix('[').and_then(|it| it.split_once("]: ")) {
            targets.extend(first_word(target).map(|target| (number, target)));
        }
    }
    targets
}

/// Returns the target between the parentheses, without a title.
fn inline_target(after: &str) -> Option<String> {
    let mut depth = 0;
    let end = after.find(|it| {
        depth += match it {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        depth < 0
    })?;
    first_word(&after[..end])
}

fn first_word(text: &str) -> Option<String> {
    let text = text.trim();
    if let Some((target, _)) = text.strip_prefix('<').and_then(|it| it.split_once('>')) {
        return Some(target.to_owned());
    }
    text.split_whitespace().next().map(str::to_owned)
}

/// Removes the code spans of a line. An unpaired backtick at the end opens nothing.
fn without_code(line: &str) -> String {
    let pieces: Vec<&str> = line.split('`').collect();
    let mut out = String::new();
    for (at, piece) in pieces.iter().enumerate() {
        if at % 2 == 0 || at + 1 == pieces.len() {
            out.push_str(piece);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        check(&Tree::of(&[
            ("docs/a.md", text),
            ("docs/errors/b.md", "# Part\n"),
            ("README.md", ""),
        ]))
    }

    #[test]
    fn links_that_lead_somewhere_are_fine() {
        let text = "[b](errors/b.md#part) ![up](../README.md \"title\") [folder](errors/)\n\
            [root](/README.md) [site](https://example.com/x) [here](#here-and-there) [top](..)\n\
            [named]: errors/b.md\n`[code](nowhere.md)` and `a` [b](<errors/b.md>)\n\
            <a href=\"errors/b.md#part\">b</a>\n\
            ```\n[fenced](nowhere.md)\n```\n## Here, and `there`\n";
        assert_eq!(problems(text), Vec::<String>::new());
    }

    #[test]
    fn broken_links_are_reported() {
        for text in [
            "[x](nowhere.md)",
            "[x](errors/c.md#part)",
            "[x](errors/b.md#parts)",
            "[x](#here)",
            "```\n# Here\n```\n[x](#here)",
            "[x](../../README.md)",
            "[`code`](nowhere.md)",
            "[x]: nowhere.md",
            "<img src=\"nowhere.svg\">",
            "<source media=\"print\" srcset=\"nowhere.svg\">",
            "```\nfenced\n```\n[x](/nowhere.md)",
        ] {
            assert_eq!(problems(text).len(), 1, "{text}");
        }
    }

    #[test]
    fn location_is_reported() {
        let reported = problems("one\n[x](nowhere.md)\n");
        assert!(reported[0].starts_with("docs/a.md:2: "), "{reported:?}");
    }
}
