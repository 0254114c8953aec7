//! The table of contents of the book.

use std::collections::BTreeSet;

use crate::repository::Tree;
use crate::tidy::anchors::outside_code;

/// The first page.
const COVER: &str = "README.md";

/// The sections, and the pages of each in reading order. `FOLDER/` stands for all pages of a
/// folder, in the order of their names, below its `README.md` or the page `FOLDER.md` beside it.
const SECTIONS: &[(&str, &[&str])] = &[
    (
        "Start",
        &[
            "docs/README.md",
            "docs/exec.md",
            "docs/tui.md",
            "docs/tutorial.md",
            "docs/troubleshooting.md",
            "docs/glossary.md",
        ],
    ),
    (
        "Guides",
        &[
            "docs/models/",
            "docs/policy.md",
            "docs/diffs.md",
            "docs/mcp.md",
            "docs/hooks.md",
            "docs/plugins.md",
            "docs/budgets.md",
            "docs/skills.md",
            "docs/rejoin.md",
            "docs/rust-client.md",
            "docs/mock.md",
            "docs/operating.md",
            "docs/fleet.md",
        ],
    ),
    (
        "Reference",
        &[
            "docs/config.md",
            "docs/plugins-reference.md",
            "docs/reference/",
            "docs/errors/",
            "docs/frames.md",
            "docs/limits.md",
            "docs/clients.md",
            "docs/compatibility.md",
            "docs/versioning.md",
            "CHANGELOG.md",
        ],
    ),
    (
        "Design",
        &[
            "ARCHITECTURE.md",
            "docs/security.md",
            "SECURITY.md",
            "docs/damage.md",
            "docs/promises.md",
            "CONTRIBUTING.md",
        ],
    ),
    ("Decisions", &["docs/decisions/"]),
];

/// Checks that every page of docs/ is in exactly one section.
pub fn check(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    for page in all_pages(tree).filter(|it| it.starts_with("docs/")) {
        let count = entries().filter(|it| is_of(it, page)).count();
        if count != 1 {
            problems.push(format!(
                "{page} is in {count} sections of the book; name it once in SECTIONS of {}",
                file!()
            ));
        }
    }
    for entry in entries() {
        if !all_pages(tree).any(|page| is_of(entry, page)) {
            problems.push(format!(
                "{entry} is in SECTIONS of {}, and there is no such page",
                file!()
            ));
        }
    }
    problems
}

/// Returns the paths of all pages of the book.
pub fn pages(tree: &Tree) -> BTreeSet<String> {
    let is_listed = |page: &str| page == COVER || entries().any(|it| is_of(it, page));
    let pages = all_pages(tree).filter(|it| is_listed(it));
    pages.map(str::to_owned).collect()
}

/// Returns the path in the book: mdBook shows `index.md` for a folder.
pub fn book_path(page: &str) -> String {
    match page.strip_suffix("README.md") {
        Some(folder) => format!("{folder}index.md"),
        None => page.to_owned(),
    }
}

/// Returns the text of SUMMARY.md.
pub fn summary(tree: &Tree) -> String {
    let mut summary = format!("# Summary\n\n{}\n", link(tree, COVER));
    for (title, entries) in SECTIONS {
        summary.push_str(&format!("\n# {title}\n\n"));
        for entry in *entries {
            push_entry(tree, entry, &mut summary);
        }
    }
    summary
}

fn push_entry(tree: &Tree, entry: &str, summary: &mut String) {
    let index = all_pages(tree).find(|page| is_index(entry, page));
    if let Some(index) = index {
        summary.push_str(&format!("- {}\n", link(tree, index)));
    }
    let indent = if index.is_some() { "  " } else { "" };
    let mut group = None;
    for page in all_pages(tree).filter(|it| is_of(entry, it) && Some(*it) != index) {
        let below = page.strip_prefix(entry).unwrap_or_default();
        let Some((folder, _)) = below.split_once('/') else {
            summary.push_str(&format!("{indent}- {}\n", link(tree, page)));
            continue;
        };
        // A folder inside is a heading without a page.
        if group != Some(folder) {
            summary.push_str(&format!("{indent}- [{}]()\n", capitalised(folder)));
            group = Some(folder);
        }
        summary.push_str(&format!("{indent}  - {}\n", link(tree, page)));
    }
}

fn entries() -> impl Iterator<Item = &'static str> {
    SECTIONS
        .iter()
        .flat_map(|(_, entries)| entries.iter().copied())
}

fn all_pages(tree: &Tree) -> impl Iterator<Item = &str> {
    tree.texts()
        .map(|(path, _)| path)
        .filter(|it| it.ends_with(".md"))
}

/// Returns whether the page belongs to the entry.
fn is_of(entry: &str, page: &str) -> bool {
    match entry.ends_with('/') {
        true => page.starts_with(entry) || is_index(entry, page),
        false => page == entry,
    }
}

/// Returns whether the page stands above the others of the entry.
fn is_index(entry: &str, page: &str) -> bool {
    match entry.strip_suffix('/') {
        Some(folder) => page == format!("{folder}/README.md") || page == format!("{folder}.md"),
        None => page == entry,
    }
}

/// Returns a link with the title of the page, its first heading.
fn link(tree: &Tree, page: &str) -> String {
    let text = tree.text(page).unwrap_or_default();
    let heading = outside_code(text).find_map(|(_, line)| line.strip_prefix("# "));
    let mut title = String::new();
    for letter in heading.unwrap_or(page).chars() {
        if "[]<>*_\\".contains(letter) {
            title.push('\\');
        }
        if letter != '`' {
            title.push(letter);
        }
    }
    format!("[{title}]({})", book_path(page))
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|it| it.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree with a page for every entry, and these.
    fn tree(more: &[(&str, &str)]) -> Tree {
        let mut files = vec![(COVER.to_owned(), "# Raddle\n")];
        for entry in entries() {
            let path = match entry {
                "docs/models/" => "docs/models.md".to_owned(),
                "docs/decisions/" => "docs/decisions/0001-first.md".to_owned(),
                _ if entry.ends_with('/') => format!("{entry}README.md"),
                _ => entry.to_owned(),
            };
            files.push((path, "# A `page`\n"));
        }
        let mut files: Vec<(&str, &str)> = files
            .iter()
            .map(|(path, text)| (path.as_str(), *text))
            .collect();
        files.extend(more);
        Tree::of(&files)
    }

    #[test]
    fn page_without_a_section_is_reported() {
        assert_eq!(check(&tree(&[])), Vec::<String>::new());
        let problems = check(&tree(&[("docs/new.md", ""), ("notes.md", "")]));
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].starts_with("docs/new.md is in 0 sections"));
    }

    #[test]
    fn section_without_its_page_is_reported() {
        let problems = check(&Tree::of(&[("docs/exec.md", "")]));
        assert_eq!(problems.len(), entries().count() - 1, "{problems:?}");
    }

    #[test]
    fn pages_of_a_folder_are_below_its_index() {
        let summary = summary(&tree(&[
            (
                "docs/models/chat.md",
                "<!-- generated -->\n\n# Chat [beta]\n",
            ),
            ("docs/reference/methods/turn/start.md", "# `turn/start`\n"),
            ("docs/reference/types/Turn.md", "# Turn\n"),
        ]));
        for part in [
            "# Summary\n\n[Raddle](index.md)\n\n# Start\n\n- [A page](docs/index.md)\n",
            "- [A page](docs/models.md)\n  - [Chat \\[beta\\]](docs/models/chat.md)\n",
            "- [A page](docs/reference/index.md)\n  - [Methods]()\n    \
             - [turn/start](docs/reference/methods/turn/start.md)\n  - [Types]()\n    \
             - [Turn](docs/reference/types/Turn.md)\n- [A page](docs/errors/index.md)\n",
            "# Decisions\n\n- [A page](docs/decisions/0001-first.md)\n",
        ] {
            assert!(summary.contains(part), "{part}\nis not in\n{summary}");
        }
    }

    #[test]
    fn book_consists_of_the_listed_pages() {
        let pages = pages(&tree(&[
            ("changes/README.md", ""),
            ("docs/models/chat.md", ""),
        ]));
        assert!(pages.contains("README.md"));
        assert!(pages.contains("docs/models/chat.md"));
        assert!(!pages.contains("changes/README.md"));
    }
}
