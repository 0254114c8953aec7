//! Checks of names: a type name that occurs in four or more modules needs a qualifier, and a crate
//! has the name of its directory.

use std::collections::{BTreeMap, BTreeSet};

use super::code_lines;
use crate::repository::Tree;

/// Number of modules from which a type name needs a qualifier.
const MODULES: usize = 4;

/// General words that may name a type anywhere.
const FREE: &[&str] = &[
    "Error", "Handle", "Kind", "Options", "Params", "Result", "State",
];

/// Types of the wire and of the records have the names of the contract.
const CONTRACT: &str = "crates/raddle-protocol/";

/// Directories whose crates have the name of their directory.
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
        problems.extend(name_mismatch(path, text));
    }
    modules.retain(|name, files| files.len() >= MODULES && !FREE.contains(name));
    problems.extend(modules.into_iter().map(|(name, files)| {
        let count = files.len();
        let files: Vec<&str> = files.into_iter().collect();
        format!(
            "{count} modules have a type `{name}`; add a qualifier, as in `Model{name}`: {}",
            files.join(", ")
        )
    }));
    problems
}

/// Returns the names of types that a file defines, without associated types.
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

/// Splits a definition into its keyword and the rest.
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

/// Returns the problem of a manifest whose crate is not named like its directory.
fn name_mismatch(path: &str, text: &str) -> Option<String> {
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
    fn fourth_type_of_a_name_is_reported() {
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
            let reported = check(&Tree::of(&files));
            assert_eq!(reported.len(), expected, "{count} {name}: {reported:?}");
        }
        // These lines define no type.
        let text = "// struct Found;\nimpl X {\n    type Found = u8;\n}\nlet structure = Found;\n";
        let files: Vec<(&str, &str)> = paths.iter().map(|it| (&**it, text)).collect();
        assert_eq!(check(&Tree::of(&files)), Vec::<String>::new());
    }

    #[test]
    fn crate_named_unlike_its_directory_is_reported() {
        let reported = check(&Tree::of(&[
            (
                "tests/turns/Cargo.toml",
                "[package]\nname = \"always-ends\"\n",
            ),
            ("tests/rejoin/Cargo.toml", "[package]\nname = \"rejoin\"\n"),
            ("xtask/Cargo.toml", "[package]\nname = \"other\"\n"),
        ]));
        assert_eq!(reported.len(), 1, "{reported:?}");
        assert!(reported[0].starts_with("tests/turns holds"), "{reported:?}");
    }
}
