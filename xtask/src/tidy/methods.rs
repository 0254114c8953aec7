//! Check that every served method has its handler, its test and its conformance page, all under its
//! name.

use std::collections::BTreeSet;

use super::code_lines;
use crate::repository::Tree;

pub const ROUTES: &str = "crates/raddle-server/src/routes.rs";
const CONFORMANCE: &str = "conformance/";

/// Pages that are not about a single method: how to read the others, bad frames, the gate.
const COMMON: &[&str] = &["README", "frames", "gate"];

pub fn check(tree: &Tree) -> Vec<String> {
    let Some(text) = tree.text(ROUTES) else {
        return vec![format!("{ROUTES} is missing; it holds the route table")];
    };
    let routed = routes(text);
    if routed.is_empty() {
        return vec![format!(
            "{ROUTES} has no line `\"name\" => handler,` inside `routes! {{ … }}`; if the table \
             has moved, tell tidy where"
        )];
    }
    let mut problems = Vec::new();
    let mut paths = BTreeSet::new();
    for method in &routed {
        let path = path_of(method);
        for file in [
            format!("crates/raddle-server/src/handlers/{path}.rs"),
            format!("crates/raddle-server/tests/it/{path}.rs"),
            format!("{CONFORMANCE}{path}.md"),
        ] {
            if !tree.has_file(&file) {
                problems.push(format!(
                    "`{method}` is served, but {file} is missing; write it"
                ));
            }
        }
        if !paths.insert(path) {
            problems.push(format!("`{method}` stands twice in {ROUTES}; keep one"));
        }
    }
    for (file, _) in tree.texts() {
        let Some(path) = file
            .strip_prefix(CONFORMANCE)
            .and_then(|it| it.strip_suffix(".md"))
        else {
            continue;
        };
        if !COMMON.contains(&path) && !paths.contains(path) {
            problems.push(format!(
                "{file} is the conversation of no served method; remove it, or add the method to \
                 {ROUTES}"
            ));
        }
    }
    problems
}

/// Returns the methods of the route table, in its order.
pub fn routes(text: &str) -> Vec<String> {
    code_lines(text)
        .map(|(_, line)| line.trim())
        .skip_while(|line| !line.starts_with("routes! {"))
        .skip(1)
        .take_while(|line| *line != "}")
        .filter_map(|line| {
            let (name, _) = line.strip_prefix('"')?.split_once('"')?;
            line.contains("=>").then(|| name.to_owned())
        })
        .collect()
}

/// Converts a method name to a path: `fs/readFile` becomes `fs/read_file`.
fn path_of(method: &str) -> String {
    let mut path = String::new();
    for letter in method.chars() {
        if letter.is_ascii_uppercase() {
            if !path.is_empty() && !path.ends_with('/') {
                path.push('_');
            }
            path.push(letter.to_ascii_lowercase());
        } else {
            path.push(letter);
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "macro_rules! routes {\n    () => {};\n}\n\nroutes! {\n    \
        // Files.\n    \"fs/readFile\" => fs::read_file,\n    \"fuzzyFileSearch\" => fuzzy,\n}\n\
        \"not/aRoute\" => x,\n";

    fn files_of(path: &str) -> [String; 3] {
        [
            format!("crates/raddle-server/src/handlers/{path}.rs"),
            format!("crates/raddle-server/tests/it/{path}.rs"),
            format!("conformance/{path}.md"),
        ]
    }

    fn problems_without(missing: &str, extra: &[(&str, &str)]) -> Vec<String> {
        let paths = ["fs/read_file", "fuzzy_file_search"];
        let files: Vec<String> = paths
            .iter()
            .flat_map(|it| files_of(it))
            .filter(|it| it != missing)
            .collect();
        let mut all: Vec<(&str, &str)> = files.iter().map(|it| (it.as_str(), "")).collect();
        all.push((ROUTES, TABLE));
        all.push(("conformance/README.md", ""));
        all.extend(extra);
        check(&Tree::of(&all))
    }

    #[test]
    fn names_become_paths() {
        assert_eq!(path_of("fs/readFile"), "fs/read_file");
        assert_eq!(path_of("fuzzyFileSearch"), "fuzzy_file_search");
        assert_eq!(path_of("config/value/write"), "config/value/write");
    }

    #[test]
    fn only_the_table_is_read() {
        assert_eq!(routes(TABLE), ["fs/readFile", "fuzzyFileSearch"]);
    }

    #[test]
    fn a_complete_set_is_fine() {
        assert_eq!(problems_without("", &[]), Vec::<String>::new());
    }

    #[test]
    fn each_missing_file_is_reported() {
        for path in ["fs/read_file", "fuzzy_file_search"] {
            for file in files_of(path) {
                let reported = problems_without(&file, &[]);
                assert_eq!(reported.len(), 1, "{reported:?}");
                assert!(reported[0].contains(&file), "{reported:?}");
            }
        }
    }

    #[test]
    fn orphan_conformance_page_is_reported() {
        let reported = problems_without("", &[("conformance/fs/rename.md", "")]);
        assert_eq!(reported.len(), 1, "{reported:?}");
        assert!(
            reported[0].starts_with("conformance/fs/rename.md"),
            "{reported:?}"
        );
    }

    #[test]
    fn missing_route_table_is_reported() {
        assert_eq!(check(&Tree::of(&[])).len(), 1);
        assert_eq!(check(&Tree::of(&[(ROUTES, "fn main() {}")])).len(), 1);
    }

    #[test]
    fn duplicate_method_is_reported() {
        let twice = TABLE.replace("\"fuzzyFileSearch\" => fuzzy,", "\"fs/readFile\" => again,");
        let reported = check(&Tree::of(&[(ROUTES, &twice)]));
        assert!(
            reported.iter().any(|it| it.contains("stands twice")),
            "{reported:?}"
        );
    }
}
