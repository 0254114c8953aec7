//! A type name means one thing: in four or more modules it needs a qualifier. A crate has the name of its folder.

use std::collections::{BTreeMap, BTreeSet};

use super::code_lines;
use crate::repository::Tree;

/// The number of modules from which on a type name needs a qualifier.
const MODULES: usize = 4;

/// General words that may name a type anywhere.
const FREE: &[&str] = &[
    "Error", "Handle", "Kind", "Options", "Params", "Result", "State",
];

/// Types of the wire and of the records have the names of the contract.
const CONTRACT: &str = "crates/raddle-protocol/";

/// Folders whose crates have the name of their folder.
const CRATES: &[&str] = &["crates/", "tests/"];

pub fn check(tree: &Tree) -> Vec<String> {
    let mut modules: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut problems = Vec::new();
    for (path, text) in tree.texts() {
        if path.ends_with(".rs") && !path.starts_with(CONTRACT) {
            for name in types(text) {
                modules.entry(name).or_default().insert(path);
            }
        }
        problems.extend(other_name(path, text));
    }
    modules.retain(|name, files| files.len() >= MODULES && !FREE.contains(name));
    problems.extend(modules.into_iter().map(|(name, files)| {
        let count = files.len();
        let files: Vec<&str> = files.into_iter().collect();
        format!(
            "{count} modules have a type `{name}`; qualify it by what it is of, as in `Model{name}`: {}",
            files.join(", ")
        )
    }));
    problems
}

/// The names of types that a file defines, without associated types.
fn types(text: &str) -> BTreeSet<&str> {
    let name = |line| {
        let (before, rest) = definition(line)?;
        let is_associated = before == "type" && line.starts_with(' ');
        let end = rest.find(|it: char| !it.is_alphanumeric() && it != '_');
        let name = &rest[..end.unwrap_or(rest.len())];
        let is_type = name.starts_with(|it: char| it.is_ascii_uppercase());
        (is_type && !is_associated).then_some(name)
    };
    code_lines(text)
        .filter_map(|(_, line)| name(line))
        .collect()
}

/// The keyword of a definition, and the text behind it.
fn definition(line: &str) -> Option<(&str, &str)> {
    let mut rest = line.trim_start();
    if let Some(public) = rest.strip_prefix("pub") {
        let scope = public.strip_prefix('(').and_then(|it| it.split_once(')'));
        rest = scope.map_or(public, |(_, it)| it).trim_start();
    }
    let (keyword, rest) = rest.split_once(' ')?;
    let keywords = ["struct", "enum", "trait", "type", "union"];
    keywords.contains(&keyword).then_some((keyword, rest))
}

/// The problem of a manifest whose crate is not called like its folder.
fn other_name(path: &str, text: &str) -> Option<String> {
    let folder = path.strip_suffix("/Cargo.toml")?;
    let expected = CRATES.iter().find_map(|it| folder.strip_prefix(it))?;
    let mut names = text.lines().filter_map(|it| it.strip_prefix("name = "));
    let name = names.next()?.trim_matches('"');
    (name != expected && !expected.contains('/')).then(|| {
        format!("{folder} holds the crate `{name}`; give the folder and the crate one name")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fourth_type_of_a_name_is_found() {
        let definitions = [
            "struct Found;\n",
            "    pub(crate) enum Found {}\n",
            "pub trait Found {}\n",
            "type Found = u8;\n",
        ];
        let paths = ["a", "b", "c", "d"].map(|it| format!("crates/raddle-x/src/{it}.rs"));
        let files = |count: usize, name: &str| -> Vec<(String, String)> {
            let files = paths.iter().zip(definitions).take(count);
            let files = files.map(|(path, text)| (path.clone(), text.replace("Found", name)));
            files.collect()
        };
        for (count, name, expected) in [(3, "Found", 0), (4, "Found", 1), (4, "Options", 0)] {
            let files = files(count, name);
            let files: Vec<(&str, &str)> = files.iter().map(|(a, b)| (&**a, &**b)).collect();
            let found = check(&Tree::of(&files));
            assert_eq!(found.len(), expected, "{count} {name}: {found:?}");
        }
        // These define no type of their own.
        let text = "// struct Found;\nimpl X {\n    type Found = u8;\n}\nlet structure = Found;\n";
        let files: Vec<(&str, &str)> = paths.iter().map(|it| (&**it, text)).collect();
        assert_eq!(check(&Tree::of(&files)), Vec::<String>::new());
    }

    #[test]
    fn a_crate_of_another_name_than_its_folder_is_found() {
        let found = check(&Tree::of(&[
            (
                "tests/turns/Cargo.toml",
                "[package]\nname = \"always-ends\"\n",
            ),
            ("tests/rejoin/Cargo.toml", "[package]\nname = \"rejoin\"\n"),
            ("xtask/Cargo.toml", "[package]\nname = \"other\"\n"),
        ]));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("tests/turns holds"), "{found:?}");
    }
}
