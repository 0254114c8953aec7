//! Check that every page of the documentation is in its table of contents exactly once.

use std::collections::BTreeMap;

use super::links;
use crate::repository::Tree;

const SUMMARY: &str = "docs/SUMMARY.md";
/// Generated pages, which have their own index.
const REFERENCE: &str = "docs/reference/";

pub fn check(tree: &Tree) -> Vec<String> {
    let Some(summary) = tree.text(SUMMARY) else {
        return vec![format!("{SUMMARY} is missing; it lists the pages of docs/")];
    };
    let mut listed: BTreeMap<String, usize> = BTreeMap::new();
    for (_, target) in links::links(summary) {
        if let Some(page) = links::resolve(SUMMARY, &target) {
            *listed.entry(page).or_default() += 1;
        }
    }
    tree.texts()
        .map(|(path, _)| path)
        .filter(|path| is_page(path))
        .filter_map(|path| match listed.get(path) {
            None => Some(format!("{path} is not in {SUMMARY}; add a line for it")),
            Some(1) => None,
            Some(_) => Some(format!("{path} is in {SUMMARY} more than once; leave one")),
        })
        .collect()
}

fn is_page(path: &str) -> bool {
    let generated = path
        .strip_prefix(REFERENCE)
        .is_some_and(|it| it != "README.md");
    path.starts_with("docs/") && path.ends_with(".md") && path != SUMMARY && !generated
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(summary: &str) -> usize {
        let tree = Tree::of(&[
            (SUMMARY, summary),
            ("docs/a.md", ""),
            ("docs/reference/README.md", ""),
            ("docs/reference/methods/x.md", ""),
            ("README.md", ""),
        ]);
        check(&tree).len()
    }

    #[test]
    fn pages_are_listed_once() {
        let complete = "- [A](a.md)\n  - [All](reference/README.md)\n";
        assert_eq!(problems(complete), 0);
        assert_eq!(problems(&format!("{complete}- [A](a.md)\n")), 1);
        assert_eq!(problems("- [A](a.md)\n"), 1);
        assert_eq!(problems(""), 2);
    }

    #[test]
    fn missing_table_of_contents_is_reported() {
        assert_eq!(check(&Tree::of(&[("docs/a.md", "")])).len(), 1);
    }
}
