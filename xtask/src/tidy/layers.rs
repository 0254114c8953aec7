//! Crates may depend on each other only as the `layers` block of ARCHITECTURE.md says.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::numbered;
use crate::repository::{Tree, cargo};

const FILE: &str = "ARCHITECTURE.md";
const OPEN: &str = "```layers";
const CLOSE: &str = "```";

/// A crate of the workspace and the crates of the workspace that it names.
pub struct Package {
    pub name: String,
    pub depends_on: BTreeSet<String>,
    /// Those that only its tests need.
    pub tests_need: BTreeSet<String>,
}

/// Reads the crates from cargo. Nothing is resolved, so this works in a broken workspace too.
pub fn packages(root: &Path) -> Result<Vec<Package>> {
    let text = cargo(root)
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .output()?;
    let metadata: Value = serde_json::from_str(&text).context("the answer of cargo metadata")?;
    Ok(from_metadata(&metadata))
}

fn from_metadata(metadata: &Value) -> Vec<Package> {
    let packages = metadata["packages"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    let name = |value: &Value| value["name"].as_str().unwrap_or_default().to_owned();
    let ours: BTreeSet<String> = packages.iter().map(name).collect();
    packages
        .iter()
        .map(|package| {
            // Normal, dev and build dependencies stand in one list.
            let below = |for_tests: bool| {
                let all = package["dependencies"].as_array().into_iter().flatten();
                all.filter(|it| (it["kind"] == "dev") == for_tests)
                    .map(name)
                    .filter(|it| ours.contains(it) && *it != name(package))
                    .collect()
            };
            Package {
                name: name(package),
                depends_on: below(false),
                tests_need: below(true),
            }
        })
        .collect()
}

pub fn check(tree: &Tree, packages: &[Package]) -> Vec<String> {
    let Some(text) = tree.text(FILE) else {
        return vec![format!(
            "{FILE} is missing; it holds the {OPEN} block with the arrows"
        )];
    };
    let layers = match parse(text) {
        Ok(layers) => layers,
        Err(problem) => return vec![problem],
    };
    let mut problems = Vec::new();
    for package in packages {
        let allowed = layers.get(&package.name);
        let allowed_for_tests = format!("{}{TESTS}", package.name);
        let allowed_for_tests = layers.get(&allowed_for_tests);
        let wanted = package.depends_on.iter().map(|it| (it, false));
        for (below, for_tests) in wanted.chain(package.tests_need.iter().map(|it| (it, true))) {
            let has = |list: Option<&BTreeSet<String>>| list.is_some_and(|it| it.contains(below));
            if !(has(allowed) || for_tests && has(allowed_for_tests)) {
                problems.push(format!(
                    "{0} depends on {below}, but {FILE} has no such arrow; drop the \
                     dependency, or add `{below}` to the line `{0}:` of the {OPEN} block in a \
                     change of its own",
                    package.name
                ));
            }
        }
    }
    let named: BTreeSet<&String> = layers
        .iter()
        .flat_map(|(it, below)| below.iter().chain([it]))
        .collect();
    for name in named {
        let name = name.strip_suffix(TESTS).unwrap_or(name);
        if !packages.iter().any(|package| package.name == name) {
            problems.push(format!(
                "the {OPEN} block of {FILE} names {name}, but the workspace has no such crate; \
                 take it out or mend its name"
            ));
        }
    }
    problems
}

/// Follows the name of a crate on the line of the arrows that only its tests have.
const TESTS: &str = " (tests)";

type Layers = BTreeMap<String, BTreeSet<String>>;

/// One crate per line: `name: below below`, or `name:` for one that needs none of ours.
fn parse(text: &str) -> Result<Layers, String> {
    let mut lines = numbered(text).skip_while(|(_, line)| line.trim() != OPEN);
    if lines.next().is_none() {
        return Err(format!(
            "{FILE} has no {OPEN} block; write one with a line `crate: crate crate` per crate"
        ));
    }
    let mut layers = Layers::new();
    for (number, line) in lines {
        let line = line.trim();
        if line == CLOSE {
            return Ok(layers);
        }
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let Some((name, below)) = line.split_once(':') else {
            return Err(format!(
                "{FILE}:{number}: `{line}` is not of the form `crate: crate crate`"
            ));
        };
        let below = below.split_whitespace().map(str::to_owned);
        layers.entry(name.to_owned()).or_default().extend(below);
    }
    Err(format!("the {OPEN} block of {FILE} is not closed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, depends_on: &[&str]) -> Package {
        Package {
            name: name.to_owned(),
            depends_on: depends_on.iter().map(|it| (*it).to_owned()).collect(),
            tests_need: BTreeSet::new(),
        }
    }

    #[test]
    fn tests_may_have_arrows_of_their_own() {
        let mut a = package("a", &[]);
        a.tests_need.insert("b".to_owned());
        let packages = [a, package("b", &[])];
        assert!(problems("a:\na (tests): b\nb:", &packages).is_empty());
        assert!(problems("a: b\nb:", &packages).is_empty());
        assert_eq!(problems("a:\nb:", &packages).len(), 1);
        let product = [package("a", &["b"]), package("b", &[])];
        assert_eq!(problems("a:\na (tests): b\nb:", &product).len(), 1);
    }

    fn problems(block: &str, packages: &[Package]) -> Vec<String> {
        let text = format!("# Architecture\n\n```layers\n{block}\n```\n");
        check(&Tree::of(&[("ARCHITECTURE.md", &text)]), packages)
    }

    #[test]
    fn listed_arrows_are_fine() {
        let packages = [
            package("a", &["b", "c"]),
            package("b", &[]),
            package("c", &["b"]),
        ];
        assert!(problems("a: b c\n# Words.\n\nb:\nc: b", &packages).is_empty());
    }

    #[test]
    fn an_arrow_that_is_not_listed_is_found() {
        let packages = [package("a", &["b"]), package("b", &["a"])];
        let found = problems("a: b\nb:", &packages);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("b depends on a"), "{found:?}");
    }

    #[test]
    fn a_listed_crate_that_is_not_there_is_found() {
        let found = problems("a: gone", &[package("a", &[])]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("names gone"), "{found:?}");
    }

    #[test]
    fn a_block_that_cannot_be_read_is_a_problem() {
        let packages = [package("a", &[])];
        assert_eq!(check(&Tree::of(&[]), &packages).len(), 1);
        assert_eq!(
            check(&Tree::of(&[("ARCHITECTURE.md", "no block")]), &packages).len(),
            1
        );
        assert_eq!(
            check(
                &Tree::of(&[("ARCHITECTURE.md", "```layers\na:")]),
                &packages
            )
            .len(),
            1
        );
        assert_eq!(problems("a depends on b", &packages).len(), 1);
    }

    #[test]
    fn metadata_gives_arrows_of_every_kind_and_only_ours() {
        let metadata = serde_json::json!({"packages": [
            {"name": "a", "dependencies": [
                {"name": "b", "kind": "dev"},
                {"name": "c", "kind": null},
                {"name": "serde", "kind": null},
            ]},
            {"name": "b", "dependencies": []},
            {"name": "c", "dependencies": [{"name": "b", "kind": "build"}]},
        ]});
        let found: Vec<String> = from_metadata(&metadata)
            .iter()
            .flat_map(|it| {
                it.depends_on
                    .iter()
                    .chain(&it.tests_need)
                    .map(move |below| format!("{}>{below}", it.name))
            })
            .collect();
        assert_eq!(found, ["a>c", "a>b", "c>b"]);
    }
}
