//! Check that every error code of the server has a page that explains how to handle it.

use std::collections::BTreeMap;

use super::code_lines;
use crate::repository::Tree;

const SOURCES: &[&str] = &[
    "crates/raddle-rpc/src/message.rs",
    "crates/raddle-server/src/wire_error.rs",
];
const PAGES: &str = "docs/errors/";

pub fn check(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    let mut codes = BTreeMap::new();
    for source in SOURCES {
        let Some(text) = tree.text(source) else {
            problems.push(format!(
                "{source} is missing; tidy reads the error codes from it"
            ));
            continue;
        };
        for (number, line) in code_lines(text) {
            for code in codes_in(&line.replace('_', "")) {
                codes
                    .entry(code)
                    .or_insert_with(|| format!("{source}:{number}"));
            }
        }
    }
    if codes.is_empty() && problems.is_empty() {
        problems.push(format!(
            "no error code -32xxx in {}; if they have moved, update the list in tidy/errors.rs",
            SOURCES.join(" or ")
        ));
    }
    for (code, path) in codes {
        if !has_page(tree, &code) {
            problems.push(format!(
                "{path}: error {code} has no page; write one in {PAGES} that names the code and \
                 says what the client can do"
            ));
        }
    }
    problems
}

fn has_page(tree: &Tree, code: &str) -> bool {
    tree.texts()
        .filter(|(path, _)| path.starts_with(PAGES) && path.ends_with(".md"))
        .any(|(_, text)| codes_in(text).any(|it| it == code))
}

/// Returns every `-32xxx` in a text, with exactly five digits.
fn codes_in(text: &str) -> impl Iterator<Item = String> {
    text.match_indices("-32").filter_map(|(at, _)| {
        let digits: String = text[at + 1..]
            .chars()
            .take_while(char::is_ascii_digit)
            .collect();
        (digits.len() == 5).then(|| format!("-{digits}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(page: &str) -> Vec<String> {
        check(&Tree::of(&[
            (
                SOURCES[0],
                "const PARSE: i64 = -32700;\n// -32099 is only spoken of\n",
            ),
            (SOURCES[1], "const OVERLOADED: i64 = -32_001;\n"),
            ("docs/errors/page.md", page),
        ]))
    }

    #[test]
    fn codes_with_pages_are_fine() {
        assert_eq!(problems("`-32700` and `-32001`"), Vec::<String>::new());
    }

    #[test]
    fn code_without_page_is_reported() {
        let reported = problems("`-32700` and -320011");
        assert_eq!(reported.len(), 1, "{reported:?}");
        assert!(reported[0].contains("error -32001"), "{reported:?}");
    }

    #[test]
    fn missing_codes_are_reported() {
        assert_eq!(check(&Tree::of(&[])).len(), 2);
        assert_eq!(
            check(&Tree::of(&[(SOURCES[0], ""), (SOURCES[1], "")])).len(),
            1
        );
    }
}
